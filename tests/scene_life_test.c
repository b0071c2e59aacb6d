/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of an actor on its scene: what finishes later, flushes, timers, ends,
 * calls; and actors that misbehave, which must cost nothing but themselves.
 */
#include "tests/test.h"

#include "base/log.h"
#include "tests/theatre.h"

#include <pthread.h>

/* An actor that does what its payload says, and returns what it is told to. */
struct puppet {
    struct rh_actor *actor;
    struct rh_token token;
    struct rh_out *out;
    int activate; /* results of the callbacks */
    int flush;
    int handoff;
    size_t state_size;
    size_t timers;
    uint64_t timer;
    size_t flushes;
    enum rh_why flushed;
    size_t ended;
    enum rh_why why;
    size_t answers;
    int status;
    char answer[32];
    int result; /* of the function that was asked for */
    bool says_goodbye;
    struct rh_bytes from;
    uint16_t from_kind;
};

static int deferring(struct puppet *p, struct rh_actor *actor, int result)
{
    if (result == RH_PENDING) {
        p->token = rh_defer(actor);
    }
    return result;
}

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct puppet *p = rh_shared(actor);

    (void)state;
    (void)fence;
    p->actor = actor;
    *instance = p;
    return deferring(p, actor, p->activate);
}

static void on_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                      void *argument)
{
    struct puppet *p = instance;

    assert_ptr_equal(argument, p);
    p->answers++;
    p->status = answer->status;
    assert_true(answer->payload.size < sizeof p->answer);
    if (answer->payload.size > 0) {
        memcpy(p->answer, answer->payload.data, answer->payload.size);
    }
    p->answer[answer->payload.size] = '\0';
    (void)rh_reply(actor, rh_text(p->answer)); // RH_INVALID in a turn
}

static int call(struct puppet *p, struct rh_actor *actor, const char *id)
{
    return rh_call(actor,
                   3,
                   (struct rh_bytes){id, strlen(id)},
                   (struct rh_bytes){"hi", 2},
                   1000,
                   0,
                   on_answer,
                   p);
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    static const char big[RECORD_BODY_MAX + 1];
    struct puppet *p = instance;
    const char *what = message->payload.data;

    p->from = message->from;
    p->from_kind = message->from_kind;
    switch (message->payload.size == 0 ? 0 : what[0]) {
    case 't':
        p->timer = rh_timer_start(actor, 50, 0, NULL);
        return;
    case 'e':
        p->timer = rh_timer_start(actor, 50, 100, NULL);
        return;
    case 's':
        p->result = rh_timer_stop(actor, p->timer);
        return;
    case 'p':
        p->result = rh_passivate(actor);
        return;
    case 'f':
        p->result = rh_fail(actor, "ERR broken");
        return;
    case 'F':
        p->result = rh_flush_soon(actor);
        return;
    case 'd':
        p->token = rh_defer(actor);
        return;
    case 'c':
        p->result = call(p, actor, "other");
        return;
    case 'C':
        p->token = rh_defer(actor);
        p->result = call(p, actor, "other");
        return;
    case 'i':
        p->result = call(p, actor, "id");
        return;
    case 'n':
        p->result = rh_send(actor, 3, (struct rh_bytes){"id", 2}, (struct rh_bytes){"hi", 2});
        return;
    case 'b':
        p->result =
            rh_send(actor, 3, (struct rh_bytes){"other", 5}, (struct rh_bytes){big, sizeof big});
        return;
    default:
        (void)rh_reply(actor, rh_bytes_value(message->payload.data, message->payload.size));
    }
}

static int on_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    static const char zeros[4096];
    struct puppet *p = instance;

    p->out = out;
    for (size_t left = p->state_size; left > 0;) {
        const size_t size = left < sizeof zeros ? left : sizeof zeros;

        rh_out_put(out, zeros, size);
        left -= size;
    }
    return deferring(p, actor, p->handoff);
}

static void on_timer(struct rh_actor *actor, void *instance, uint64_t timer, void *argument)
{
    struct puppet *p = instance;

    assert_null(argument);
    assert_int_equal(timer, p->timer);
    assert_int_equal(rh_reply(actor, rh_nil()), RH_INVALID);
    p->timers++;
}

static int on_flush(struct rh_actor *actor, void *instance, enum rh_why why, uint64_t fence)
{
    struct puppet *p = instance;

    assert_int_equal(fence, rh_fence(actor));
    p->flushes++;
    p->flushed = why;
    return deferring(p, actor, p->flush);
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    struct puppet *p = instance;

    assert_int_equal(rh_defer(actor).number, 0);
    assert_int_equal(rh_timer_start(actor, 1, 0, NULL), 0);
    assert_int_equal(rh_passivate(actor), RH_INVALID);
    assert_int_equal(call(p, actor, "other"), RH_INVALID);
    p->ended++;
    p->why = why;
    if (p->says_goodbye) {
        p->result = rh_reply(actor, rh_nil());
    }
}

static const struct rh_actor_ops puppet_ops = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "puppet",
    .activate = on_activate,
    .message = on_message,
    .handoff = on_handoff,
    .deactivate = on_deactivate,
    .timer = on_timer,
    .flush = on_flush,
    .flush_ms = 1000,
};

static void open_stage(struct theatre *t, struct puppet *p)
{
    *p = (struct puppet){0};
    theatre_open(t, &puppet_ops, p);
}

static size_t lines; /* so many were logged */

static void no_line(void *context, enum log_level level, const char *line)
{
    char *kept = context;

    (void)level;
    lines++;
    (void)snprintf(kept, 256, "%s", line);
}

static char line[256]; /* the last that was logged */

static int set_up(void **state)
{
    (void)state;
    line[0] = '\0';
    log_set_sink(no_line, line);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    log_set_sink(NULL, NULL);
    return 0;
}

/* ---- later */

static void answer(struct theatre *t, int status, const char *text)
{
    const struct call_answer a = {
        .number = t->call.number, .status = status, .payload = bytes_of(text, strlen(text))};

    scene_answer(t->scene, &a);
}

static void an_activation_may_finish_later(void **state)
{
    struct puppet p = {.activate = RH_PENDING};
    const struct scene_entry entry = {.ops = &puppet_ops, .shared = &p, .fence = 7, .kind = 3};
    struct theatre t;

    (void)state;
    theatre_build(&t);
    theatre_enter(&t, &entry);
    assert_int_equal(t.told[SCENE_ACTIVATED], 0);
    assert_int_equal(t.told[SCENE_DEFERRED], 1);
    assert_int_equal(rh_reply_later(p.token, rh_nil()), RH_INVALID);
    assert_int_equal(rh_done(p.token, RH_PENDING), RH_INVALID);
    assert_int_equal(rh_done(p.token, RH_OK), RH_OK);
    assert_int_equal(rh_done(p.token, RH_OK), RH_GONE);
    scene_tick(t.scene, 0);
    assert_int_equal(t.told[SCENE_ACTIVATED], 1);
    assert_int_equal(t.told[SCENE_FINISHED], 1);
    assert_int_equal(t.error, ERR_OK);
    assert_string_equal(theatre_call(&t, "x"), "x");
    theatre_close(&t);
}

static void an_activation_that_fails_later_leaves_nothing(void **state)
{
    struct puppet p = {.activate = RH_PENDING};
    const struct scene_entry entry = {.ops = &puppet_ops, .shared = &p, .fence = 7, .kind = 3};
    struct theatre t;

    (void)state;
    theatre_build(&t);
    theatre_enter(&t, &entry);
    assert_int_equal(rh_done(p.token, RH_FAILED), RH_OK);
    scene_tick(t.scene, 0);
    assert_int_equal(t.error, ERR_REFUSED);
    assert_null(t.actor);
    assert_int_equal(p.ended, 0);
    theatre_close(&t);
}

static void who_is_stopped_while_it_loads_is_deactivated(void **state)
{
    struct puppet p = {.activate = RH_PENDING};
    const struct scene_entry entry = {.ops = &puppet_ops, .shared = &p, .fence = 7, .kind = 3};
    struct theatre t;

    (void)state;
    theatre_build(&t);
    theatre_enter(&t, &entry);
    scene_discard(t.actor, RH_FENCED);
    assert_int_equal(p.ended, 1);
    assert_int_equal(p.why, RH_FENCED);
    assert_int_equal(rh_done(p.token, RH_OK), RH_GONE);
    scene_tick(t.scene, 0);
    assert_int_equal(t.told[SCENE_ACTIVATED], 0);
    theatre_close(&t);
    assert_int_equal(rh_done(p.token, RH_OK), RH_GONE); // Its scene is gone as well.
}

/* rh_done() has taken the failure, and before the scene sees that, the actor is stopped. */
static void who_failed_to_load_is_never_deactivated(void **state)
{
    static const int failures[] = {RH_FAILED, RH_COLD, 77};
    struct puppet p = {.activate = RH_PENDING};
    const struct scene_entry entry = {.ops = &puppet_ops, .shared = &p, .fence = 7, .kind = 3};
    struct theatre t;

    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        theatre_build(&t);
        theatre_enter(&t, &entry);
        assert_int_equal(rh_done(p.token, failures[i]), RH_OK);
        scene_discard(t.actor, RH_MOVED);
        assert_int_equal(t.told[SCENE_FINISHED], 1);
        scene_tick(t.scene, 0);
        assert_int_equal(t.told[SCENE_ACTIVATED], 0);
        theatre_close(&t);
        theatre_build(&t);
        theatre_enter(&t, &entry);
        assert_int_equal(rh_done(p.token, failures[i]), RH_OK);
        theatre_close(&t); // The node stops.
        assert_int_equal(p.ended, 0);
    }
    theatre_build(&t);
    theatre_enter(&t, &entry);
    assert_int_equal(rh_done(p.token, RH_OK), RH_OK);
    scene_discard(t.actor, RH_MOVED);
    assert_int_equal(p.ended, 1); // That one lives.
    theatre_close(&t);
}

static void on_late(struct rh_actor *actor, void *instance, void *argument)
{
    struct puppet *p = instance;

    (void)actor;
    (void)argument;
    p->timers++;
}

static void on_fails(struct rh_actor *actor, void *instance, void *argument)
{
    struct puppet *p = instance;

    (void)actor;
    (void)argument;
    assert_int_equal(rh_done(p->token, RH_FAILED), RH_OK);
}

/* Who has finished it may have freed the instance. */
static void nothing_is_called_for_who_failed_to_load(void **state)
{
    struct puppet p = {.activate = RH_PENDING};
    const struct scene_entry entry = {.ops = &puppet_ops, .shared = &p, .fence = 7, .kind = 3};
    struct theatre t;

    (void)state;
    theatre_build(&t);
    theatre_enter(&t, &entry);
    assert_int_equal(rh_after(p.actor, 10, on_late, NULL), RH_OK);
    assert_int_equal(rh_after(p.actor, 10, on_fails, NULL), RH_OK);
    assert_int_equal(rh_after(p.actor, 10, on_late, NULL), RH_OK);
    assert_int_equal(call(&p, p.actor, "other"), RH_OK);
    scene_tick(t.scene, 10000); // The second one fails.
    assert_int_equal(p.timers, 1);
    answer(&t, RH_OK, "there");
    assert_int_equal(p.answers, 0);
    scene_tick(t.scene, 10000);
    assert_int_equal(t.error, ERR_REFUSED);
    assert_int_equal(p.timers, 1);
    assert_int_equal(p.ended, 0);
    theatre_close(&t);
}

static void *finish_elsewhere(void *argument)
{
    struct puppet *p = argument;

    return rh_reply_later(p->token, rh_text("from elsewhere")) == RH_OK ? p : NULL;
}

static void any_thread_may_answer(void **state)
{
    pthread_t thread;
    void *ended = NULL;
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    (void)theatre_call(&t, "d");
    assert_int_equal(pthread_create(&thread, NULL, finish_elsewhere, &p), 0);
    assert_int_equal(pthread_join(thread, &ended), 0);
    assert_ptr_equal(ended, &p);
    assert_int_equal(t.answers, 0);
    scene_tick(t.scene, 0);
    assert_string_equal(t.text, "from elsewhere");
    theatre_close(&t);
}

/* ---- flush, handoff, ends */

static void a_move_flushes_first(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    p.flush = RH_FAILED;
    scene_export(t.actor);
    assert_int_equal(t.error, ERR_BUSY); // It is asked again.
    assert_int_equal(p.flushed, RH_MOVED);
    assert_null(p.out);
    assert_string_equal(theatre_call(&t, "x"), "x");
    p.flush = RH_PENDING;
    p.state_size = 5;
    scene_export(t.actor);
    assert_int_equal(t.told[SCENE_EXPORTED], 1);
    assert_int_equal(rh_done(p.token, RH_OK), RH_OK);
    scene_tick(t.scene, 0);
    assert_int_equal(t.told[SCENE_EXPORTED], 2);
    assert_int_equal(t.error, ERR_OK);
    assert_true(t.has_state);
    assert_int_equal(t.state.size, 5);
    theatre_close(&t);
}

static void who_trades_is_asked_again(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    p.handoff = RH_BUSY;
    scene_export(t.actor);
    assert_int_equal(t.error, ERR_BUSY);
    assert_string_equal(theatre_call(&t, "x"), "x");
    p.handoff = RH_COLD;
    scene_export(t.actor);
    assert_int_equal(t.error, ERR_OK);
    assert_false(t.has_state);
    theatre_close(&t);
}

static void who_hands_over_too_much_moves_cold(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    p.state_size = SCENE_STATE_DEFAULT;
    scene_export(t.actor);
    assert_true(t.has_state);
    assert_int_equal(t.state.size, SCENE_STATE_DEFAULT);
    scene_unfreeze(t.actor);
    p.state_size = SCENE_STATE_DEFAULT + 1;
    scene_export(t.actor);
    assert_int_equal(t.error, ERR_OK);
    assert_false(t.has_state);
    assert_non_null(strstr(line, "state_too_big kind=3 actor=puppet id=id"));
    theatre_close(&t);
}

static void state_written_late_goes_nowhere(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    p.handoff = RH_PENDING;
    scene_export(t.actor);
    scene_discard(t.actor, RH_FENCED);
    rh_out_put(p.out, "still mine", 10); // Who defers it may go on until it is done.
    assert_int_equal(rh_done(p.token, RH_OK), RH_GONE);
    theatre_close(&t);
}

static void an_idle_actor_is_flushed_and_ended(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    p.flush = RH_FAILED;
    scene_retire(t.actor);
    assert_int_equal(t.error, ERR_IO);
    assert_int_equal(p.flushed, RH_IDLE);
    assert_int_equal(p.ended, 0);
    assert_string_equal(theatre_call(&t, "x"), "x");
    p.flush = RH_OK;
    scene_retire(t.actor);
    assert_int_equal(t.error, ERR_OK);
    assert_null(t.actor);
    assert_int_equal(p.ended, 1);
    assert_int_equal(p.why, RH_IDLE);
    theatre_close(&t);
}

static void a_stop_flushes_what_it_can(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    p.flush = RH_FAILED;
    assert_int_equal(scene_save(t.scene), 1);
    p.flush = RH_PENDING;
    assert_int_equal(scene_save(t.scene), 1);
    assert_int_equal(scene_save(t.scene), 1); // It is under way.
    assert_int_equal(p.flushes, 2);
    assert_int_equal(p.flushed, RH_STOP);
    assert_int_equal(rh_done(p.token, RH_OK), RH_OK);
    scene_tick(t.scene, 0);
    assert_int_equal(scene_save(t.scene), 0);
    assert_int_equal(p.flushes, 2);
    theatre_close(&t);
    assert_int_equal(p.why, RH_STOP);
}

static void a_flush_has_its_period(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    scene_tick(t.scene, 500000);
    assert_int_equal(t.told[SCENE_POKE], 0);
    scene_tick(t.scene, 1000000);
    assert_int_equal(t.told[SCENE_POKE], 1);
    assert_int_equal(p.flushes, 0); // It waits for its turn.
    scene_turn(t.actor, 9);
    assert_int_equal(p.flushes, 1);
    assert_int_equal(p.flushed, RH_PERIODIC);
    assert_int_equal(t.ticket, 9);
    scene_turn(t.actor, 10);
    assert_int_equal(p.flushes, 1);
    (void)theatre_call(&t, "F");
    assert_int_equal(p.result, RH_OK);
    assert_int_equal(t.told[SCENE_POKE], 2);
    p.flush = RH_PENDING;
    scene_turn(t.actor, 11);
    assert_int_equal(t.ticket, 1);
    assert_int_equal(rh_done(p.token, RH_FAILED), RH_OK);
    scene_tick(t.scene, 1000000);
    assert_int_equal(t.ticket, 11);
    theatre_close(&t);
}

/* ---- timers */

static void timers_run_between_messages(void **state)
{
    struct rh_actor_ops ops = puppet_ops;
    struct puppet p = {0};
    struct theatre t;

    (void)state;
    ops.flush = NULL;
    theatre_open(&t, &ops, &p);
    (void)theatre_call(&t, "e");
    (void)theatre_call(&t, "d");
    scene_tick(t.scene, 50000);
    assert_int_equal(t.told[SCENE_POKE], 1); // The host gives it a turn when it is through.
    assert_int_equal(rh_reply_later(p.token, rh_nil()), RH_OK);
    scene_tick(t.scene, 50000);
    assert_int_equal(p.timers, 0);
    scene_turn(t.actor, 2);
    assert_int_equal(p.timers, 1);
    scene_tick(t.scene, 900000); // Missed eight times: run once.
    scene_turn(t.actor, 3);
    assert_int_equal(p.timers, 2);
    scene_tick(t.scene, 999999);
    assert_int_equal(t.told[SCENE_POKE], 2);
    (void)theatre_call(&t, "s");
    assert_int_equal(p.result, RH_OK);
    (void)theatre_call(&t, "s");
    assert_int_equal(p.result, RH_GONE);
    theatre_close(&t);
}

static void a_frozen_actor_has_its_timers_later(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    (void)theatre_call(&t, "t");
    scene_export(t.actor);
    scene_tick(t.scene, 60000);
    assert_int_equal(t.told[SCENE_POKE], 0);
    scene_unfreeze(t.actor);
    assert_int_equal(t.told[SCENE_POKE], 1);
    scene_turn(t.actor, 2);
    assert_int_equal(p.timers, 1);
    theatre_close(&t);
}

/* ---- ends of its own */

static void it_may_ask_to_be_ended(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    (void)theatre_call(&t, "p");
    assert_int_equal(p.result, RH_OK);
    (void)theatre_call(&t, "p");
    assert_int_equal(t.told[SCENE_PASSIVATE], 1);
    theatre_close(&t);
}

static void who_is_broken_answers_its_error(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    assert_string_equal(theatre_call(&t, "f"), "ERR broken");
    assert_int_equal(t.code, ANSWER_APP_ERROR);
    assert_int_equal(t.told[SCENE_FAILED], 1);
    assert_non_null(strstr(line, "failed kind=3 actor=puppet id=id what=\"ERR broken\""));
    scene_discard(t.actor, RH_BROKEN);
    assert_int_equal(p.flushes, 0);
    assert_int_equal(p.why, RH_BROKEN);
    theatre_close(&t);
}

/* ---- calls */

static const char *called(struct theatre *t)
{
    buffer_put(&t->called, "", 1);
    return (const char *)t->called.data;
}

static void an_answer_comes_as_a_turn(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    (void)theatre_call(&t, "c");
    assert_int_equal(p.result, RH_OK);
    assert_string_equal(called(&t), "3 other hi");
    assert_int_equal(t.call.timeout_ms, 1000);
    assert_true(bytes_equal(t.call.from, bytes_of("id", 2)) || t.call.from.size == 2);
    answer(&t, RH_OK, "there");
    assert_int_equal(p.answers, 0);
    assert_int_equal(t.told[SCENE_POKE], 1);
    scene_turn(t.actor, 2);
    assert_int_equal(p.answers, 1);
    assert_int_equal(p.status, RH_OK);
    assert_string_equal(p.answer, "there");
    answer(&t, RH_OK, "again");
    assert_int_equal(t.told[SCENE_POKE], 1); // One call, one answer.
    theatre_close(&t);
    assert_int_equal(t.told[SCENE_GONE], 1);
}

static void an_answer_comes_in_the_midst_of_a_message(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    (void)theatre_call(&t, "C");
    assert_int_equal(t.answers, 0);
    answer(&t, RH_TIMEOUT, "");
    assert_int_equal(p.status, RH_TIMEOUT);
    assert_int_equal(t.answers, 1); // It replied from there.
    theatre_close(&t);
}

static void an_answer_that_waits_is_there_for_who_defers(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    (void)theatre_call(&t, "c");
    answer(&t, RH_OK, "there");
    (void)theatre_call(&t, "d"); // Its turn would come after this message only.
    assert_int_equal(p.answers, 1);
    assert_string_equal(t.text, "there");
    theatre_close(&t);
}

static void an_answer_for_who_moved_is_dropped(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    (void)theatre_call(&t, "c");
    theatre_move(&t, &puppet_ops, &p);
    answer(&t, RH_OK, "there");
    assert_int_equal(t.told[SCENE_POKE], 0);
    assert_int_equal(p.answers, 0);
    theatre_close(&t);
}

static void bad_calls_are_refused(void **state)
{
    static const char long_id[RECORD_ID_MAX + 1];
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    (void)theatre_call(&t, "i");
    assert_int_equal(p.result, RH_INVALID);
    assert_non_null(strstr(line, "calls_itself kind=3 actor=puppet id=id"));
    (void)theatre_call(&t, "b");
    assert_int_equal(p.result, RH_TOO_BIG);
    assert_int_equal(t.told[SCENE_CALL], 0);
    (void)theatre_call(&t, "n"); // To send itself something is fine.
    assert_int_equal(p.result, RH_OK);
    assert_int_equal(t.told[SCENE_CALL], 1);
    (void)theatre_call(&t, "d");
    p.actor = t.actor;
    const struct rh_bytes ok = {"x", 1};
    const struct rh_bytes long_one = {long_id, sizeof long_id};
    const struct rh_bytes none = {0};
    assert_int_equal(rh_call(t.actor, 3, none, ok, 1000, 0, on_answer, &p), RH_INVALID);
    assert_int_equal(rh_call(t.actor, 3, long_one, ok, 1000, 0, on_answer, &p), RH_INVALID);
    assert_int_equal(rh_call(t.actor, 3, ok, ok, 0, 0, on_answer, &p), RH_INVALID);
    assert_int_equal(rh_call(t.actor, 3, ok, ok, 60001, 0, on_answer, &p), RH_INVALID);
    assert_int_equal(rh_call(t.actor, 3, ok, ok, 1000, 4, on_answer, &p), RH_INVALID);
    assert_int_equal(rh_call(t.actor, 3, ok, ok, 1000, 0, NULL, &p), RH_INVALID);
    for (size_t i = 0; i < SCENE_CALLS_MAX; i++) {
        assert_int_equal(rh_call(t.actor, 3, ok, ok, 1000, 0, on_answer, &p), RH_OK);
    }
    assert_int_equal(rh_call(t.actor, 3, ok, ok, 1000, 0, on_answer, &p), RH_OVERLOADED);
    theatre_close(&t);
}

static void a_message_says_who_sent_it(void **state)
{
    const struct caller caller = {.kind = 8, .id = bytes_of("boss", 4)};
    uint8_t body[32];
    struct writer w = {.at = body, .left = sizeof body};
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    caller_put(&w, &caller);
    put_u8(&w, 'x');
    theatre_run(&t, REQUEST_CALL, bytes_of(body, sizeof body - w.left));
    assert_string_equal(t.text, "x");
    assert_int_equal(p.from_kind, 8);
    assert_int_equal(p.from.size, 4);
    theatre_run(&t, REQUEST_CALL, bytes_of("\1", 1));
    assert_int_equal(t.code, ANSWER_APP_ERROR);
    (void)theatre_call(&t, "y");
    assert_int_equal(p.from.size, 0);
    theatre_close(&t);
}

/* ---- misbehaving */

static void nonsense_has_failed(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    p.flush = 77;
    scene_retire(t.actor);
    assert_int_equal(t.error, ERR_IO);
    assert_non_null(strstr(line, "bad_result kind=3 actor=puppet id=id what=\"flush\""));
    p.flush = RH_OK;
    p.handoff = -1;
    scene_export(t.actor);
    assert_int_equal(t.error, ERR_OK);
    assert_false(t.has_state);
    assert_non_null(strstr(line, "what=\"handoff\""));
    theatre_close(&t);
}

static void who_complains_without_end_is_cut_short(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    lines = 0;
    for (size_t i = 0; i < 1000; i++) {
        (void)theatre_call(&t, "i");
    }
    assert_int_equal(lines, 20);
    scene_tick(t.scene, 1000000);
    (void)theatre_call(&t, "i");
    assert_int_equal(lines, 22); // One says how many were left out.
    theatre_close(&t);
}

static void a_call_of_an_unknown_kind_is_named(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    (void)theatre_call(&t, "C");
    answer(&t, RH_NO_KIND, "");
    assert_int_equal(p.status, RH_NO_KIND);
    assert_non_null(strstr(line, "unknown_kind kind=3 actor=puppet id=id"));
    theatre_close(&t);
}

static void a_reply_at_the_end_is_named(void **state)
{
    struct puppet p;
    struct theatre t;

    (void)state;
    open_stage(&t, &p);
    p.says_goodbye = true;
    scene_discard(t.actor, RH_BROKEN);
    assert_int_equal(p.result, RH_INVALID);
    assert_non_null(strstr(line, "reply_at_end kind=3 actor=puppet id=id"));
    assert_int_equal(t.answers, 0);
    theatre_close(&t);
}

static void pending_without_a_token_has_failed(void **state)
{
    struct puppet p = {.activate = RH_OK};
    struct rh_actor_ops ops = puppet_ops;
    struct theatre t;

    (void)state;
    theatre_open(&t, &ops, &p);
    const struct rh_value none = {.type = (enum rh_value_type)99};
    (void)theatre_call(&t, "d");
    assert_int_equal(rh_reply(t.actor, none), RH_INVALID);
    assert_int_equal(rh_reply_later(p.token, none), RH_INVALID);
    assert_int_equal(t.answers, 0);
    assert_int_equal(rh_reply(t.actor, rh_nil()), RH_OK);
    assert_int_equal(rh_reply_later(p.token, rh_nil()), RH_GONE);
    theatre_close(&t);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_activation_may_finish_later),
        CASE(an_activation_that_fails_later_leaves_nothing),
        CASE(who_is_stopped_while_it_loads_is_deactivated),
        CASE(who_failed_to_load_is_never_deactivated),
        CASE(nothing_is_called_for_who_failed_to_load),
        CASE(any_thread_may_answer),
        CASE(a_move_flushes_first),
        CASE(who_trades_is_asked_again),
        CASE(who_hands_over_too_much_moves_cold),
        CASE(state_written_late_goes_nowhere),
        CASE(an_idle_actor_is_flushed_and_ended),
        CASE(a_stop_flushes_what_it_can),
        CASE(a_flush_has_its_period),
        CASE(timers_run_between_messages),
        CASE(a_frozen_actor_has_its_timers_later),
        CASE(it_may_ask_to_be_ended),
        CASE(who_is_broken_answers_its_error),
        CASE(an_answer_comes_as_a_turn),
        CASE(an_answer_comes_in_the_midst_of_a_message),
        CASE(an_answer_that_waits_is_there_for_who_defers),
        CASE(an_answer_for_who_moved_is_dropped),
        CASE(bad_calls_are_refused),
        CASE(a_message_says_who_sent_it),
        CASE(nonsense_has_failed),
        CASE(who_complains_without_end_is_cut_short),
        CASE(a_call_of_an_unknown_kind_is_named),
        CASE(a_reply_at_the_end_is_named),
        CASE(pending_without_a_token_has_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
