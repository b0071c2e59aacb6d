/* SPDX-License-Identifier: Apache-2.0
 *
 * Callbacks that finish later, by whichever thread; who fails then.
 */
#include "tests/node/scripted_actor.h"

#include <pthread.h>

static void an_activation_may_finish_later(void **state)
{
    struct scripted p = {.activate = RH_PENDING};
    const struct runtime_entry entry = {.ops = &scripted_ops, .shared = &p, .fence = 7, .kind = 3};
    struct runtime_rig t;

    (void)state;
    runtime_rig_build(&t);
    runtime_rig_enter(&t, &entry);
    assert_int_equal(t.told[VERB_ACTIVATE], 0);
    assert_int_equal(t.told[VERB_DEFER], 1);
    assert_int_equal(rh_reply_later(p.token, rh_nil()), RH_INVALID);
    assert_int_equal(rh_done(p.token, RH_PENDING), RH_INVALID);
    assert_int_equal(rh_done(p.token, RH_OK), RH_OK);
    assert_int_equal(rh_done(p.token, RH_OK), RH_GONE);
    runtime_tick(t.runtime, 0);
    assert_int_equal(t.told[VERB_ACTIVATE], 1);
    assert_int_equal(t.told[VERB_FINISH], 1);
    assert_int_equal(t.error, ERR_OK);
    assert_string_equal(runtime_rig_call(&t, "x"), "x");
    runtime_rig_close(&t);
}

static void an_activation_that_fails_later_leaves_nothing(void **state)
{
    struct scripted p = {.activate = RH_PENDING};
    const struct runtime_entry entry = {.ops = &scripted_ops, .shared = &p, .fence = 7, .kind = 3};
    struct runtime_rig t;

    (void)state;
    runtime_rig_build(&t);
    runtime_rig_enter(&t, &entry);
    assert_int_equal(rh_done(p.token, RH_FAILED), RH_OK);
    runtime_tick(t.runtime, 0);
    assert_int_equal(t.error, ERR_REFUSED);
    assert_null(t.actor);
    assert_int_equal(p.ended, 0);
    runtime_rig_close(&t);
}

static void who_is_stopped_while_it_loads_is_deactivated(void **state)
{
    struct scripted p = {.activate = RH_PENDING};
    const struct runtime_entry entry = {.ops = &scripted_ops, .shared = &p, .fence = 7, .kind = 3};
    struct runtime_rig t;

    (void)state;
    runtime_rig_build(&t);
    runtime_rig_enter(&t, &entry);
    runtime_discard(t.actor, RH_FENCED);
    assert_int_equal(p.ended, 1);
    assert_int_equal(p.why, RH_FENCED);
    assert_int_equal(rh_done(p.token, RH_OK), RH_GONE);
    runtime_tick(t.runtime, 0);
    assert_int_equal(t.told[VERB_ACTIVATE], 0);
    runtime_rig_close(&t);
    assert_int_equal(rh_done(p.token, RH_OK), RH_GONE); // Its runtime is gone as well.
}

/* rh_done() has taken the failure, and before the runtime sees that, the actor is stopped. */
static void who_failed_to_load_is_never_deactivated(void **state)
{
    static const int failures[] = {RH_FAILED, RH_COLD, 77};
    struct scripted p = {.activate = RH_PENDING};
    const struct runtime_entry entry = {.ops = &scripted_ops, .shared = &p, .fence = 7, .kind = 3};
    struct runtime_rig t;

    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        runtime_rig_build(&t);
        runtime_rig_enter(&t, &entry);
        assert_int_equal(rh_done(p.token, failures[i]), RH_OK);
        runtime_discard(t.actor, RH_MOVED);
        assert_int_equal(t.told[VERB_FINISH], 1);
        runtime_tick(t.runtime, 0);
        assert_int_equal(t.told[VERB_ACTIVATE], 0);
        runtime_rig_close(&t);
        runtime_rig_build(&t);
        runtime_rig_enter(&t, &entry);
        assert_int_equal(rh_done(p.token, failures[i]), RH_OK);
        runtime_rig_close(&t); // The node stops.
        assert_int_equal(p.ended, 0);
    }
    runtime_rig_build(&t);
    runtime_rig_enter(&t, &entry);
    assert_int_equal(rh_done(p.token, RH_OK), RH_OK);
    runtime_discard(t.actor, RH_MOVED);
    assert_int_equal(p.ended, 1); // That one lives.
    runtime_rig_close(&t);
}

static void on_late(struct rh_actor *actor, void *instance, void *argument)
{
    struct scripted *p = instance;

    (void)actor;
    (void)argument;
    p->timers++;
}

static void on_fails(struct rh_actor *actor, void *instance, void *argument)
{
    struct scripted *p = instance;

    (void)actor;
    (void)argument;
    assert_int_equal(rh_done(p->token, RH_FAILED), RH_OK);
}

/* Who has finished it may have freed the instance. */
static void nothing_is_called_for_who_failed_to_load(void **state)
{
    struct scripted p = {.activate = RH_PENDING};
    const struct runtime_entry entry = {.ops = &scripted_ops, .shared = &p, .fence = 7, .kind = 3};
    struct runtime_rig t;

    (void)state;
    runtime_rig_build(&t);
    runtime_rig_enter(&t, &entry);
    assert_int_equal(rh_after(p.actor, 10, on_late, NULL), RH_OK);
    assert_int_equal(rh_after(p.actor, 10, on_fails, NULL), RH_OK);
    assert_int_equal(rh_after(p.actor, 10, on_late, NULL), RH_OK);
    assert_int_equal(call(&p, p.actor, "other"), RH_OK);
    runtime_tick(t.runtime, 10000); // The second one fails.
    assert_int_equal(p.timers, 1);
    answer(&t, RH_OK, "there");
    assert_int_equal(p.answers, 0);
    runtime_tick(t.runtime, 10000);
    assert_int_equal(t.error, ERR_REFUSED);
    assert_int_equal(p.timers, 1);
    assert_int_equal(p.ended, 0);
    runtime_rig_close(&t);
}

static void *finish_elsewhere(void *argument)
{
    struct scripted *p = argument;

    return rh_reply_later(p->token, rh_text("from elsewhere")) == RH_OK ? p : NULL;
}

static void any_thread_may_answer(void **state)
{
    pthread_t thread;
    void *ended = NULL;
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    (void)runtime_rig_call(&t, "d");
    assert_int_equal(pthread_create(&thread, NULL, finish_elsewhere, &p), 0);
    assert_int_equal(pthread_join(thread, &ended), 0);
    assert_ptr_equal(ended, &p);
    assert_int_equal(t.answers, 0);
    runtime_tick(t.runtime, 0);
    assert_string_equal(t.text, "from elsewhere");
    runtime_rig_close(&t);
}

/* ---- rh_post() */

static void on_posted(struct rh_actor *actor, void *instance, void *argument)
{
    struct scripted *p = instance;

    p->timers++;
    if (argument != NULL) { // of a message that is deferred
        p->result = rh_reply(actor, rh_text(argument));
    }
}

static void on_posted_fail(struct rh_actor *actor, void *instance, void *argument)
{
    (void)instance;
    assert_int_equal(rh_fail(actor, argument), RH_OK);
}

static void *post_elsewhere(void *argument)
{
    const struct rh_token *life = argument;

    assert_int_equal(rh_post(*life, on_posted, NULL), RH_OK);
    return argument;
}

static void what_is_posted_runs_between_messages(void **state)
{
    struct runtime_rig t;
    struct scripted p;
    pthread_t thread;

    (void)state;
    open_stage(&t, &p);
    struct rh_token life = rh_life(p.actor);
    assert_int_equal(rh_life(p.actor).number, life.number);
    assert_int_equal(pthread_create(&thread, NULL, post_elsewhere, &life), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(t.told[VERB_POKE], 0);
    runtime_tick(t.runtime, 0);
    assert_int_equal(t.told[VERB_POKE], 1);
    assert_int_equal(p.timers, 0);
    runtime_turn(t.actor, 1);
    assert_int_equal(p.timers, 1);
    assert_int_equal(t.told[VERB_TURN], 1);
    assert_int_equal(rh_done(life, RH_OK), RH_INVALID); // It is no callback.
    assert_int_equal(rh_reply_later(life, rh_nil()), RH_INVALID);
    assert_int_equal(rh_post(life, on_posted, NULL), RH_OK);
    runtime_tick(t.runtime, 0); // It waits for a turn when the actor ends.
    runtime_rig_close(&t);
    assert_int_equal(p.timers, 1);
    assert_int_equal(rh_post(life, on_posted, NULL), RH_GONE);
}

static void what_is_posted_is_part_of_what_is_deferred(void **state)
{
    static char text[] = "posted";
    struct runtime_rig t;
    struct scripted p;

    (void)state;
    open_stage(&t, &p);
    const struct rh_token life = rh_life(p.actor);
    (void)runtime_rig_call(&t, "d");
    assert_int_equal(rh_post(p.token, on_posted, NULL), RH_INVALID); // That token is a callback's.
    assert_int_equal(rh_post(life, on_posted, text), RH_OK);
    assert_int_equal(rh_post(life, on_posted, NULL), RH_OK);
    runtime_tick(t.runtime, 0);
    assert_string_equal(t.text, "posted");
    assert_int_equal(p.result, RH_OK);
    assert_int_equal(p.timers, 1); // The second one has a turn of its own: the message is over.
    assert_int_equal(t.told[VERB_POKE], 1);
    runtime_turn(t.actor, 1);
    assert_int_equal(p.timers, 2);
    runtime_rig_close(&t);
}

static void who_is_idle_can_be_ended_by_a_post(void **state)
{
    static char text[] = "ERR it is over";
    struct runtime_rig t;
    struct scripted p;

    (void)state;
    open_stage(&t, &p);
    assert_int_equal(rh_post(rh_life(p.actor), on_posted_fail, text), RH_OK);
    runtime_tick(t.runtime, 0);
    runtime_turn(t.actor, 1);
    assert_int_equal(t.told[VERB_FAIL], 1);
    runtime_rig_close(&t);
}

/* ---- timers */

static void a_timer_may_finish_later(void **state)
{
    struct runtime_rig t;
    struct scripted p;

    (void)state;
    open_stage(&t, &p);
    (void)runtime_rig_call(&t, "t");
    p.timer_waits = true;
    runtime_tick(t.runtime, 50000);
    assert_int_equal(t.told[VERB_POKE], 1);
    assert_int_equal(rh_post(rh_life(p.actor), on_posted, NULL), RH_OK);
    runtime_tick(t.runtime, 50000); // behind the timer, in the same turn
    runtime_turn(t.actor, 1);
    assert_int_equal(p.timers, 1);
    assert_int_equal(t.told[VERB_TURN], 0);
    assert_int_equal(t.told[VERB_DEFER], 1);
    assert_int_equal(rh_reply_later(p.token, rh_nil()), RH_INVALID);
    assert_int_equal(rh_done(p.token, RH_OK), RH_OK);
    runtime_tick(t.runtime, 50000);
    assert_int_equal(t.told[VERB_FINISH], 1);
    assert_int_equal(t.told[VERB_TURN], 1);
    assert_int_equal(t.told[VERB_POKE], 2); // What was posted has the next turn.
    runtime_turn(t.actor, 2);
    assert_int_equal(p.timers, 2);
    assert_string_equal(runtime_rig_call(&t, "x"), "x");
    runtime_rig_close(&t);
}

static void who_is_stopped_amidst_a_timer_is_deactivated(void **state)
{
    struct runtime_rig t;
    struct scripted p;

    (void)state;
    open_stage(&t, &p);
    (void)runtime_rig_call(&t, "t");
    p.timer_waits = true;
    runtime_tick(t.runtime, 50000);
    runtime_turn(t.actor, 1);
    runtime_discard(t.actor, RH_FENCED);
    assert_int_equal(p.why, RH_FENCED);
    assert_int_equal(rh_done(p.token, RH_OK), RH_GONE);
    runtime_rig_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTED_CASE(an_activation_may_finish_later),
        SCRIPTED_CASE(an_activation_that_fails_later_leaves_nothing),
        SCRIPTED_CASE(who_is_stopped_while_it_loads_is_deactivated),
        SCRIPTED_CASE(who_failed_to_load_is_never_deactivated),
        SCRIPTED_CASE(nothing_is_called_for_who_failed_to_load),
        SCRIPTED_CASE(any_thread_may_answer),
        SCRIPTED_CASE(what_is_posted_runs_between_messages),
        SCRIPTED_CASE(what_is_posted_is_part_of_what_is_deferred),
        SCRIPTED_CASE(who_is_idle_can_be_ended_by_a_post),
        SCRIPTED_CASE(a_timer_may_finish_later),
        SCRIPTED_CASE(who_is_stopped_amidst_a_timer_is_deactivated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
