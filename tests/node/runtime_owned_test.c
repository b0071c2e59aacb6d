/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments that the library owns, of calls and of timers: freed once, whatever comes of those. And
 * which life of an actor it is.
 */
#include "tests/node/scripted_actor.h"

#include <stdlib.h>

static const struct rh_bytes other = {"other", 5};
static size_t freed; /* so far */

/* On the heap, so that a build with a sanitizer sees what is used too late, and what stays. */
static int *owned_new(int value)
{
    int *owned = malloc(sizeof *owned);

    assert_non_null(owned);
    *owned = value;
    return owned;
}

static void owned_free(void *argument)
{
    freed++;
    free(argument);
}

static void owned_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                         void *argument)
{
    struct scripted *p = instance;

    assert_int_equal(*(int *)argument, 5);
    p->answers++;
    p->status = answer->status;
    (void)rh_reply(actor, rh_nil());
    assert_int_equal(*(int *)argument, 5);
}

static int call_owned(struct rh_actor *actor)
{
    return rh_call_owned(actor, 3, other, other, 1000, 0, owned_answer, owned_new(5), owned_free);
}

/* A message that is deferred, amidst which the actor has called. */
static void open_caller(struct runtime_rig *t, struct scripted *p)
{
    freed = 0;
    open_stage(t, p);
    (void)runtime_rig_call(t, "d");
    assert_int_equal(call_owned(t->actor), RH_OK);
    assert_int_equal(freed, 0);
}

static void an_answer_frees_it(void **state)
{
    static const int statuses[] = {RH_OK, RH_FAILED, RH_TIMEOUT, RH_UNKNOWN, RH_DEADLOCK};
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        open_caller(&t, &p);
        answer(&t, statuses[i], "");
        assert_int_equal(p.status, statuses[i]);
        assert_int_equal(freed, 1);
        answer(&t, statuses[i], ""); // There is no call any more.
        runtime_rig_close(&t);
        assert_int_equal(p.answers, 1);
        assert_int_equal(freed, 1);
    }
}

static void an_answer_in_a_turn_frees_it(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_caller(&t, &p);
    assert_int_equal(rh_reply_later(p.token, rh_nil()), RH_OK);
    runtime_tick(t.runtime, 0);
    answer(&t, RH_OK, "there");
    assert_int_equal(freed, 0);
    runtime_turn(t.actor, 2);
    assert_int_equal(p.answers, 1);
    assert_int_equal(freed, 1);
    runtime_rig_close(&t);
}

static void who_moves_frees_it(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_caller(&t, &p);
    assert_int_equal(rh_reply_later(p.token, rh_nil()), RH_OK);
    runtime_tick(t.runtime, 0);
    runtime_rig_move(&t, &scripted_ops, &p);
    assert_int_equal(freed, 1);
    answer(&t, RH_OK, "there");
    assert_int_equal(p.answers, 0);
    runtime_rig_close(&t);
    assert_int_equal(freed, 1);
}

static void who_ends_frees_it(void **state)
{
    static const enum rh_why ends[] = {RH_BROKEN, RH_FENCED, RH_STOP};
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        open_caller(&t, &p);
        assert_int_equal(rh_reply_later(p.token, rh_nil()), RH_OK);
        runtime_tick(t.runtime, 0);
        answer(&t, RH_OK, "there"); // It waits for a turn, which never comes.
        runtime_discard(t.actor, ends[i]);
        assert_int_equal(freed, 1);
        assert_int_equal(p.answers, 0);
        runtime_rig_close(&t);
        assert_int_equal(freed, 1);
    }
}

static void a_call_that_is_refused_frees_it(void **state)
{
    static const char big[RECORD_BODY_MAX + 1];
    const struct rh_bytes itself = {"id", 2};
    const struct rh_bytes long_one = {big, sizeof big};
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    freed = 0;
    assert_int_equal(call_owned(t.actor), RH_INVALID); // Nothing runs.
    assert_int_equal(call_owned(NULL), RH_INVALID);
    (void)runtime_rig_call(&t, "d");
    assert_int_equal(
        rh_call_owned(t.actor, 3, itself, other, 1000, 0, owned_answer, owned_new(5), owned_free),
        RH_INVALID);
    assert_int_equal(
        rh_call_owned(t.actor, 3, other, long_one, 1000, 0, owned_answer, owned_new(5), owned_free),
        RH_TOO_BIG);
    assert_int_equal(
        rh_call_owned(t.actor, 3, other, other, 1000, 0, NULL, owned_new(5), owned_free),
        RH_INVALID);
    assert_int_equal(freed, 5);
    assert_int_equal(rh_call_owned(t.actor, 3, other, other, 1000, 0, owned_answer, &p, NULL),
                     RH_INVALID);
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        assert_int_equal(call_owned(t.actor), RH_OK);
    }
    assert_int_equal(call_owned(t.actor), RH_OVERLOADED);
    assert_int_equal(freed, 6);
    runtime_rig_close(&t);
    assert_int_equal(freed, 6 + RUNTIME_CALLS_MAX);
}

/* ---- timers */

static uint64_t own_timer;

static void count(struct rh_actor *actor, void *instance, void *argument)
{
    struct scripted *p = instance;

    assert_int_equal(rh_reply(actor, rh_nil()), RH_INVALID);
    p->timers++;
    ++*(int *)argument;
}

static void stop_itself(struct rh_actor *actor, void *instance, void *argument)
{
    count(actor, instance, argument);
    assert_int_equal(rh_timer_stop(actor, own_timer), RH_OK);
    assert_int_equal(freed, 0);
    assert_int_equal(*(int *)argument, 6);
}

static void wait(struct rh_actor *actor, void *instance, void *argument)
{
    struct scripted *p = instance;

    count(actor, instance, argument);
    p->token = rh_defer(actor);
}

/* A kind without a `timer`, whose actor has set one that calls. */
static struct rh_actor_ops without;
static void open_timer(struct runtime_rig *t, struct scripted *p, uint32_t every_ms, rh_timer then)
{
    freed = 0;
    *p = (struct scripted){0};
    without = scripted_ops;
    without.timer = NULL;
    runtime_rig_open(t, &without, p);
    (void)runtime_rig_call(t, "d");
    assert_int_equal(rh_timer_start(t->actor, 50, every_ms, NULL), 0);
    own_timer = rh_timer_call(t->actor, 50, every_ms, then, owned_new(5), owned_free);
    assert_true(own_timer > 0);
    assert_int_equal(rh_reply_later(p->token, rh_nil()), RH_OK);
    runtime_tick(t->runtime, 0);
}

static void pass_ms(struct runtime_rig *t, uint64_t ms)
{
    const size_t pokes = t->told[VERB_POKE];

    runtime_tick(t->runtime, ms * 1000);
    if (t->told[VERB_POKE] > pokes) {
        runtime_turn(t->actor, ms);
    }
}

static void a_timer_calls_and_frees(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_timer(&t, &p, 0, count);
    pass_ms(&t, 49);
    assert_int_equal(p.timers, 0);
    pass_ms(&t, 50);
    assert_int_equal(p.timers, 1);
    assert_int_equal(freed, 1);
    pass_ms(&t, 200);
    runtime_rig_close(&t);
    assert_int_equal(p.timers, 1);
    assert_int_equal(freed, 1);
}

static void a_timer_frees_when_it_has_ended(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_timer(&t, &p, 50, count);
    pass_ms(&t, 50);
    pass_ms(&t, 100);
    assert_int_equal(p.timers, 2);
    assert_int_equal(freed, 0);
    assert_int_equal(rh_timer_stop(t.actor, own_timer), RH_OK);
    assert_int_equal(freed, 1);
    assert_int_equal(rh_timer_stop(t.actor, own_timer), RH_GONE);
    runtime_rig_close(&t);

    open_timer(&t, &p, 50, stop_itself);
    pass_ms(&t, 50);
    pass_ms(&t, 100);
    assert_int_equal(p.timers, 1);
    assert_int_equal(freed, 1);
    runtime_rig_close(&t);

    open_timer(&t, &p, 50, count);
    pass_ms(&t, 50);
    runtime_rig_move(&t, &without, &p); // It does not go along.
    assert_int_equal(freed, 1);
    pass_ms(&t, 1000);
    assert_int_equal(p.timers, 1);
    runtime_rig_close(&t);
    assert_int_equal(freed, 1);
}

static void what_a_timer_calls_may_finish_later(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_timer(&t, &p, 0, wait);
    pass_ms(&t, 50);
    assert_int_equal(p.timers, 1);
    assert_int_equal(freed, 1);
    assert_int_equal(t.told[VERB_TURN], 0);
    assert_int_equal(rh_done(p.token, RH_OK), RH_OK);
    runtime_tick(t.runtime, 60000);
    assert_int_equal(t.told[VERB_TURN], 1);
    runtime_rig_close(&t);
}

static void a_timer_that_is_refused_frees(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    freed = 0;
    assert_int_equal(rh_timer_call(t.actor, 1, 0, count, owned_new(5), owned_free), 0);
    assert_int_equal(rh_timer_call(t.actor, 1, 0, NULL, owned_new(5), owned_free), 0);
    assert_int_equal(rh_timer_call(NULL, 1, 0, count, owned_new(5), owned_free), 0);
    assert_int_equal(freed, 3);
    assert_int_equal(rh_timer_call(NULL, 1, 0, count, &p, NULL), 0);
    runtime_rig_close(&t);
}

/* ---- which life it is */

static int later(struct rh_incarnation a, struct rh_incarnation b)
{
    char of_a[RH_INCARNATION_TEXT];
    char of_b[RH_INCARNATION_TEXT];

    rh_incarnation_text(a, of_a);
    rh_incarnation_text(b, of_b);
    assert_int_equal(strlen(of_a), RH_INCARNATION_TEXT - 1);
    return strcmp(of_b, of_a) > 0 ? 1 : 0;
}

static void each_life_is_another(void **state)
{
    const struct runtime_entry again = {.ops = &scripted_ops, .fence = 7, .kind = 3};
    struct runtime_entry entry = again;
    struct scripted p;
    struct runtime_rig t;
    char text[RH_INCARNATION_TEXT];

    (void)state;
    open_stage(&t, &p);
    const struct rh_incarnation first = rh_incarnation(t.actor);
    assert_int_equal(first.fence, 7);
    (void)runtime_rig_call(&t, "x");
    assert_int_equal(rh_incarnation(t.actor).start, first.start);
    runtime_discard(t.actor, RH_BROKEN); // Its vnode stays, and so does its fence.
    entry.shared = &p;
    runtime_rig_enter(&t, &entry);
    const struct rh_incarnation second = rh_incarnation(t.actor);
    assert_int_equal(second.fence, 7);
    assert_true(later(first, second));
    assert_true(second.start > first.start);
    runtime_rig_move(&t, &scripted_ops, &p);
    assert_true(later(second, rh_incarnation(t.actor)));
    runtime_rig_close(&t);
    rh_incarnation_text((struct rh_incarnation){.fence = 0x1f, .start = UINT64_MAX}, text);
    assert_string_equal(text, "000000000000001f-ffffffffffffffff");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_frees_it),
        cmocka_unit_test(an_answer_in_a_turn_frees_it),
        cmocka_unit_test(who_moves_frees_it),
        cmocka_unit_test(who_ends_frees_it),
        cmocka_unit_test(a_call_that_is_refused_frees_it),
        cmocka_unit_test(a_timer_calls_and_frees),
        cmocka_unit_test(a_timer_frees_when_it_has_ended),
        cmocka_unit_test(what_a_timer_calls_may_finish_later),
        cmocka_unit_test(a_timer_that_is_refused_frees),
        cmocka_unit_test(each_life_is_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
