/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of an actor on its runtime: flushes, moves, timers, ends.
 */
#include "tests/node/scripted_actor.h"

static void a_move_flushes_first(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    p.flush = RH_FAILED;
    runtime_export(t.actor);
    assert_int_equal(t.error, ERR_BUSY); // It is asked again.
    assert_int_equal(p.flushed, RH_MOVED);
    assert_null(p.out);
    assert_string_equal(runtime_rig_call(&t, "x"), "x");
    p.flush = RH_PENDING;
    p.state_size = 5;
    runtime_export(t.actor);
    assert_int_equal(t.told[VERB_EXPORT], 1);
    assert_int_equal(rh_done(p.token, RH_OK), RH_OK);
    runtime_tick(t.runtime, 0);
    assert_int_equal(t.told[VERB_EXPORT], 2);
    assert_int_equal(t.error, ERR_OK);
    assert_true(t.has_state);
    assert_int_equal(t.state.size, 5);
    runtime_rig_close(&t);
}

static void who_trades_is_asked_again(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    p.handoff = RH_BUSY;
    runtime_export(t.actor);
    assert_int_equal(t.error, ERR_BUSY);
    assert_string_equal(runtime_rig_call(&t, "x"), "x");
    p.handoff = RH_COLD;
    runtime_export(t.actor);
    assert_int_equal(t.error, ERR_OK);
    assert_false(t.has_state);
    runtime_rig_close(&t);
}

static void a_copy_is_its_state_and_it_goes_on(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    struct rh_actor_ops ops = scripted_ops;

    ops.flush = NULL;
    p = (struct scripted){0};
    runtime_rig_open(&t, &ops, &p);
    p.state_size = 5;
    runtime_copy(t.actor);
    assert_int_equal(t.told[VERB_COPY], 1);
    assert_int_equal(t.error, ERR_OK);
    assert_true(t.has_state);
    assert_int_equal(t.state.size, 5);
    assert_string_equal(runtime_rig_call(&t, "x"), "x");
    p.handoff = RH_BUSY;
    runtime_copy(t.actor);
    assert_int_equal(t.error, ERR_BUSY);
    p.handoff = RH_COLD; // That is decided when it moves.
    runtime_copy(t.actor);
    assert_int_equal(t.error, ERR_BUSY);
    p.handoff = RH_OK;
    p.state_size = RUNTIME_STATE_DEFAULT + 1;
    runtime_copy(t.actor);
    assert_int_equal(t.error, ERR_BUSY);
    runtime_export(t.actor);
    assert_int_equal(t.told[VERB_EXPORT], 1);
    runtime_rig_close(&t);
}

static void who_hands_over_too_much_moves_cold(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    p.state_size = RUNTIME_STATE_DEFAULT;
    runtime_export(t.actor);
    assert_true(t.has_state);
    assert_int_equal(t.state.size, RUNTIME_STATE_DEFAULT);
    runtime_unfreeze(t.actor);
    p.state_size = RUNTIME_STATE_DEFAULT + 1;
    runtime_export(t.actor);
    assert_int_equal(t.error, ERR_OK);
    assert_false(t.has_state);
    assert_non_null(strstr(line, "state_too_big actor=3/id kind=scripted"));
    runtime_rig_close(&t);
}

static void state_written_late_goes_nowhere(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    p.handoff = RH_PENDING;
    runtime_export(t.actor);
    runtime_discard(t.actor, RH_FENCED);
    rh_out_put(p.out, "still mine", 10); // Who defers it may go on until it is done.
    assert_int_equal(rh_done(p.token, RH_OK), RH_GONE);
    runtime_rig_close(&t);
}

static void an_idle_actor_is_flushed_and_ended(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    p.flush = RH_FAILED;
    runtime_retire(t.actor);
    assert_int_equal(t.error, ERR_IO);
    assert_int_equal(p.flushed, RH_IDLE);
    assert_int_equal(p.ended, 0);
    assert_string_equal(runtime_rig_call(&t, "x"), "x");
    p.flush = RH_OK;
    runtime_retire(t.actor);
    assert_int_equal(t.error, ERR_OK);
    assert_null(t.actor);
    assert_int_equal(p.ended, 1);
    assert_int_equal(p.why, RH_IDLE);
    runtime_rig_close(&t);
}

static void one_that_has_ended_sees_no_message(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    p.flush = RH_FAILED;
    assert_string_equal(runtime_rig_call(&t, "P"), "done");
    assert_int_equal(p.result, RH_OK);
    assert_string_equal(runtime_rig_call(&t, "x"), "");
    assert_int_equal(t.run_error, ERR_BUSY);
    runtime_retire(t.actor);
    assert_int_equal(t.error, ERR_IO);
    assert_string_equal(runtime_rig_call(&t, "x"), "x"); // It lives on, as it could not be saved.
    assert_int_equal(t.run_error, ERR_OK);
    assert_string_equal(runtime_rig_call(&t, "B"), "done");
    assert_int_equal(p.result, RH_OK);
    assert_string_equal(runtime_rig_call(&t, "x"), "");
    assert_int_equal(t.run_error, ERR_BUSY);
    runtime_rig_close(&t);
}

static void a_stop_flushes_what_it_can(void **state)
{
    struct scripted p;
    struct runtime_rig t;
    size_t flushed = 0;

    (void)state;
    open_stage(&t, &p);
    p.flush = RH_FAILED;
    assert_int_equal(runtime_save(t.runtime, &flushed), 1);
    p.flush = RH_PENDING;
    assert_int_equal(runtime_save(t.runtime, &flushed), 1);
    assert_int_equal(runtime_save(t.runtime, &flushed), 1); // It is under way.
    assert_int_equal(p.flushes, 2);
    assert_int_equal(p.flushed, RH_STOP);
    assert_int_equal(rh_done(p.token, RH_OK), RH_OK);
    runtime_tick(t.runtime, 0);
    assert_int_equal(runtime_save(t.runtime, &flushed), 0);
    assert_int_equal(p.flushes, 2);
    assert_int_equal(flushed, 1);
    runtime_rig_close(&t);
    assert_int_equal(p.why, RH_STOP);
}

static void a_flush_has_its_period(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    runtime_tick(t.runtime, 500000);
    assert_int_equal(t.told[VERB_POKE], 0);
    runtime_tick(t.runtime, 1000000);
    assert_int_equal(t.told[VERB_POKE], 1);
    assert_int_equal(p.flushes, 0); // It waits for its turn.
    runtime_turn(t.actor, 9);
    assert_int_equal(p.flushes, 1);
    assert_int_equal(p.flushed, RH_PERIODIC);
    assert_int_equal(t.ticket, 9);
    runtime_turn(t.actor, 10);
    assert_int_equal(p.flushes, 1);
    (void)runtime_rig_call(&t, "F");
    assert_int_equal(p.result, RH_OK);
    assert_int_equal(t.told[VERB_POKE], 2);
    p.flush = RH_PENDING;
    runtime_turn(t.actor, 11);
    assert_int_equal(t.ticket, 1);
    assert_int_equal(rh_done(p.token, RH_FAILED), RH_OK);
    runtime_tick(t.runtime, 1000000);
    assert_int_equal(t.ticket, 11);
    runtime_rig_close(&t);
}

static void timers_run_between_messages(void **state)
{
    struct rh_actor_ops ops = scripted_ops;
    struct scripted p = {0};
    struct runtime_rig t;

    (void)state;
    ops.flush = NULL;
    runtime_rig_open(&t, &ops, &p);
    (void)runtime_rig_call(&t, "e");
    (void)runtime_rig_call(&t, "d");
    runtime_tick(t.runtime, 50000);
    assert_int_equal(t.told[VERB_POKE], 1); // The host gives it a turn when it is through.
    assert_int_equal(rh_reply_later(p.token, rh_nil()), RH_OK);
    runtime_tick(t.runtime, 50000);
    assert_int_equal(p.timers, 0);
    runtime_turn(t.actor, 2);
    assert_int_equal(p.timers, 1);
    runtime_tick(t.runtime, 900000); // Missed eight times: run once.
    runtime_turn(t.actor, 3);
    assert_int_equal(p.timers, 2);
    runtime_tick(t.runtime, 999999);
    assert_int_equal(t.told[VERB_POKE], 2);
    (void)runtime_rig_call(&t, "s");
    assert_int_equal(p.result, RH_OK);
    (void)runtime_rig_call(&t, "s");
    assert_int_equal(p.result, RH_GONE);
    runtime_rig_close(&t);
}

static void a_frozen_actor_has_its_timers_later(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    (void)runtime_rig_call(&t, "t");
    runtime_export(t.actor);
    runtime_tick(t.runtime, 60000);
    assert_int_equal(t.told[VERB_POKE], 0);
    runtime_unfreeze(t.actor);
    assert_int_equal(t.told[VERB_POKE], 1);
    runtime_turn(t.actor, 2);
    assert_int_equal(p.timers, 1);
    runtime_rig_close(&t);
}

static void it_may_ask_to_be_ended(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    (void)runtime_rig_call(&t, "p");
    assert_int_equal(p.result, RH_OK);
    (void)runtime_rig_call(&t, "p");
    assert_int_equal(t.told[VERB_PASSIVATE], 1);
    runtime_rig_close(&t);
}

static void who_is_broken_answers_its_error(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    assert_string_equal(runtime_rig_call(&t, "f"), "ERR broken");
    assert_int_equal(t.code, ANSWER_APP_ERROR);
    assert_int_equal(t.told[VERB_FAIL], 1);
    assert_non_null(strstr(line, "failed actor=3/id kind=scripted what=\"ERR broken\""));
    runtime_discard(t.actor, RH_BROKEN);
    assert_int_equal(p.flushes, 0);
    assert_int_equal(p.why, RH_BROKEN);
    runtime_rig_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTED_CASE(a_move_flushes_first),
        SCRIPTED_CASE(who_trades_is_asked_again),
        SCRIPTED_CASE(a_copy_is_its_state_and_it_goes_on),
        SCRIPTED_CASE(who_hands_over_too_much_moves_cold),
        SCRIPTED_CASE(state_written_late_goes_nowhere),
        SCRIPTED_CASE(an_idle_actor_is_flushed_and_ended),
        SCRIPTED_CASE(one_that_has_ended_sees_no_message),
        SCRIPTED_CASE(a_stop_flushes_what_it_can),
        SCRIPTED_CASE(a_flush_has_its_period),
        SCRIPTED_CASE(timers_run_between_messages),
        SCRIPTED_CASE(a_frozen_actor_has_its_timers_later),
        SCRIPTED_CASE(it_may_ask_to_be_ended),
        SCRIPTED_CASE(who_is_broken_answers_its_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
