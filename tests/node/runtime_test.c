/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of node/runtime/runtime.h with an actor of the test's own.
 */
#include "tests/test.h"

#include "node/actors/actors.h"
#include "node/runtime/alarm.h"
#include "tests/node/runtime_rig.h"

/* An actor that does what its payload says. */
struct scripted {
    struct rh_token token;
    size_t fired;
    size_t resumed;
    enum rh_why why;
};

static int scripted_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                             void **instance)
{
    assert_int_equal(rh_fence(actor), fence);
    assert_int_equal(rh_reply(actor, rh_nil()), RH_INVALID);
    *instance = rh_shared(actor);
    return state != NULL && state->size == 3 && memcmp(state->data, "bad", 3) == 0 ? RH_FAILED
                                                                                   : RH_OK;
}

static void on_timer(struct rh_actor *actor, void *instance, void *argument)
{
    struct scripted *p = instance;

    p->fired++;
    if (argument != NULL) {
        assert_int_equal(rh_reply(actor, rh_text(argument)), RH_OK);
    }
}

static void scripted_message(struct rh_actor *actor, void *instance,
                             const struct rh_message *message)
{
    static char late[] = "late";
    struct scripted *p = instance;
    const uint8_t *bytes = message->payload.data;
    const uint8_t what = message->payload.size == 0 ? 0 : bytes[0];

    if (what == 'd') {
        p->token = rh_defer(actor);
    } else if (what == 't') {
        p->token = rh_defer(actor);
        assert_int_equal(rh_after(actor, 30, on_timer, NULL), RH_OK);
        assert_int_equal(rh_after(actor, 20, on_timer, late), RH_OK);
        assert_int_equal(rh_after(actor, 10, on_timer, NULL), RH_OK);
    } else if (what == 'r') {
        assert_int_equal(rh_reply(actor, rh_error("ERR first\r\nline")), RH_OK);
        assert_int_equal(rh_reply(actor, rh_nil()), RH_INVALID);
        assert_int_equal(rh_after(actor, 1, on_timer, NULL), RH_INVALID);
    } else if (what == 'b') {
        static char big[RECORD_BODY_MAX];

        assert_int_equal(rh_reply(actor, rh_bytes_value(big, sizeof big)), RH_TOO_BIG);
    }
}

static int scripted_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    (void)instance;
    assert_int_equal(rh_reply(actor, rh_nil()), RH_INVALID);
    rh_out_put(out, "st", 2);
    rh_out_put(out, "ate", 3);
    return RH_OK;
}

static void scripted_resume(struct rh_actor *actor, void *instance)
{
    struct scripted *p = instance;

    (void)actor;
    p->resumed++;
}

static void scripted_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    struct scripted *p = instance;

    assert_int_equal(rh_reply(actor, rh_nil()), RH_INVALID);
    p->why = why;
}

static const struct rh_actor_ops scripted_ops = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "scripted",
    .activate = scripted_activate,
    .message = scripted_message,
    .handoff = scripted_handoff,
    .resume = scripted_resume,
    .deactivate = scripted_deactivate,
};

static void who_does_not_reply_answers_nothing(void **state)
{
    struct scripted p = {0};
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &scripted_ops, &p);
    assert_string_equal(runtime_rig_call(&t, ""), "");
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.code, ANSWER_OK);
    assert_string_equal(runtime_rig_command(&t, "X"), "n:");
    runtime_rig_close(&t);
    assert_int_equal(p.why, RH_STOP);
}

static void the_first_reply_counts(void **state)
{
    struct scripted p = {0};
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &scripted_ops, &p);
    assert_string_equal(runtime_rig_call(&t, "r"), "ERR first  line");
    assert_int_equal(t.code, ANSWER_APP_ERROR);
    assert_int_equal(t.answers, 1);
    runtime_rig_close(&t);
}

static void a_reply_has_a_limit(void **state)
{
    struct scripted p = {0};
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &scripted_ops, &p);
    assert_string_equal(runtime_rig_call(&t, "b"), "ERR the reply is over its limit of 1 MiB");
    assert_int_equal(t.code, ANSWER_APP_ERROR);
    runtime_rig_close(&t);
}

static void a_deferred_message_is_answered_once(void **state)
{
    struct scripted p = {0};
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &scripted_ops, &p);
    (void)runtime_rig_call(&t, "d");
    assert_int_equal(t.answers, 0);
    assert_int_equal(rh_reply_later(p.token, rh_integer(5)), RH_OK);
    assert_int_equal(rh_reply_later(p.token, rh_integer(6)), RH_GONE);
    assert_int_equal(t.answers, 0); // It may come from any thread: the runtime's own finishes it.
    runtime_tick(t.runtime, 0);
    assert_string_equal(t.text, "5");
    assert_int_equal(rh_reply_later(p.token, rh_integer(6)), RH_GONE);
    const struct rh_token old = p.token;
    (void)runtime_rig_call(&t, "d");
    assert_int_equal(rh_reply_later(old, rh_integer(6)), RH_GONE);
    runtime_discard(t.actor, RH_FENCED);
    assert_int_equal(p.why, RH_FENCED);
    assert_int_equal(rh_reply_later(p.token, rh_integer(6)), RH_GONE);
    assert_int_equal(t.answers, 1);
    runtime_rig_close(&t);
}

static void timers_end_with_their_message(void **state)
{
    struct scripted p = {0};
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &scripted_ops, &p);
    runtime_tick(t.runtime, 1000);
    (void)runtime_rig_call(&t, "t");
    runtime_tick(t.runtime, 10000);
    assert_int_equal(p.fired, 0);
    runtime_tick(t.runtime, 11000);
    assert_int_equal(p.fired, 1);
    runtime_tick(t.runtime, 60000);
    assert_int_equal(p.fired, 2); // The second one answered.
    assert_string_equal(t.text, "late");
    runtime_tick(t.runtime, 90000);
    assert_int_equal(p.fired, 2);
    (void)runtime_rig_call(&t, "t");
    runtime_rig_close(&t);
    assert_int_equal(p.fired, 2);
}

static void a_frozen_actor_may_stay(void **state)
{
    struct scripted p = {0};
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &scripted_ops, &p);
    runtime_export(t.actor);
    assert_true(t.has_state);
    assert_true(bytes_equal(buffer_bytes(&t.state), bytes_of("state", 5)));
    runtime_unfreeze(t.actor);
    assert_int_equal(p.resumed, 1);
    assert_string_equal(runtime_rig_call(&t, "x"), "");
    assert_int_equal(t.answers, 1);
    runtime_rig_close(&t);
}

static void an_actor_may_refuse_to_live(void **state)
{
    struct scripted p = {0};
    struct runtime_rig t;
    const struct runtime_entry entry = {
        .ops = &scripted_ops, .shared = &p, .state = bytes_of("bad", 3), .has_state = true};

    (void)state;
    runtime_rig_build(&t);
    runtime_rig_enter(&t, &entry);
    assert_int_equal(t.error, ERR_REFUSED);
    assert_null(t.actor);
    runtime_rig_close(&t);
}

static void a_command_that_does_not_decode_is_refused(void **state)
{
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &actor_echo, NULL);
    runtime_rig_run(&t, REQUEST_COMMAND, bytes_of("\xff", 1));
    assert_string_equal(t.text, "e:ERR the command can't be decoded");
    runtime_rig_close(&t);
}

static void echo_answers_what_it_is_told(void **state)
{
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &actor_echo, NULL);
    assert_string_equal(runtime_rig_call(&t, "hello"), "hello");
    assert_string_equal(runtime_rig_command(&t, "SET k v"), "b:v");
    runtime_rig_move(&t, &actor_echo, NULL);
    assert_string_equal(runtime_rig_call(&t, "again"), "again");
    runtime_rig_close(&t);
}

static void alarms_come_in_order(void **state)
{
    enum { COUNT = 100 };
    struct alarms s = {0};
    struct alarm a[COUNT] = {{0}};
    size_t seen = 0;
    uint64_t last = 0;

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        alarms_set(&s, &a[i], i * 37 % 50);
    }
    for (size_t i = 0; i < COUNT; i += 3) {
        alarms_unset(&s, &a[i]);
        alarms_unset(&s, &a[i]);
    }
    const struct alarm *before = NULL;
    for (const struct alarm *at = alarms_due(&s, 49); at != NULL; at = alarms_due(&s, 49)) {
        assert_true((at - a) % 3 != 0);
        assert_true(at->at_us >= last);
        assert_true(before == NULL || before->at_us != at->at_us || before->order < at->order);
        last = at->at_us;
        before = at;
        seen++;
    }
    assert_int_equal(seen, COUNT - (COUNT + 2) / 3);
    alarms_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_does_not_reply_answers_nothing),
        cmocka_unit_test(the_first_reply_counts),
        cmocka_unit_test(a_reply_has_a_limit),
        cmocka_unit_test(a_deferred_message_is_answered_once),
        cmocka_unit_test(timers_end_with_their_message),
        cmocka_unit_test(a_frozen_actor_may_stay),
        cmocka_unit_test(an_actor_may_refuse_to_live),
        cmocka_unit_test(a_command_that_does_not_decode_is_refused),
        cmocka_unit_test(echo_answers_what_it_is_told),
        cmocka_unit_test(alarms_come_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
