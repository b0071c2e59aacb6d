/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of an actor, their answers; and actors that misbehave, which must cost nothing but
 * themselves.
 */
#include "tests/node/scripted_actor.h"

static const char *called(struct runtime_rig *t)
{
    buffer_put(&t->called, "", 1);
    return (const char *)t->called.data;
}

static void an_answer_comes_as_a_turn(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    (void)runtime_rig_call(&t, "c");
    assert_int_equal(p.result, RH_OK);
    assert_string_equal(called(&t), "3 other hi");
    assert_int_equal(t.call.timeout_ms, 1000);
    assert_true(bytes_equal(t.call.from, bytes_of("id", 2)) || t.call.from.size == 2);
    answer(&t, RH_OK, "there");
    assert_int_equal(p.answers, 0);
    assert_int_equal(t.told[VERB_POKE], 1);
    runtime_turn(t.actor, 2);
    assert_int_equal(p.answers, 1);
    assert_int_equal(p.status, RH_OK);
    assert_string_equal(p.answer, "there");
    answer(&t, RH_OK, "again");
    assert_int_equal(t.told[VERB_POKE], 1); // One call, one answer.
    runtime_rig_close(&t);
    assert_int_equal(t.told[VERB_END_CALLS], 1);
}

static void a_call_of_a_traced_message_has_its_context_behind(void **state)
{
    static const char plain[] = "3 other hi";
    const struct trace_context trace = {.trace = {1}, .span = {2}, .flags = TRACE_SAMPLED};
    const struct runtime_message message = {
        .ticket = 1, .flags = REQUEST_TRACED, .body = bytes_of("c", 1), .trace = &trace};
    char text[RH_TRACE_SIZE];
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    runtime_run(t.actor, &message);
    assert_int_equal(t.call.flags, CALL_TRACED);
    assert_int_equal(t.called.size, sizeof plain - 1 + TRACE_CONTEXT_SIZE);
    assert_memory_equal(t.called.data, plain, sizeof plain - 1);
    assert_memory_equal(t.called.data + sizeof plain - 1, &trace, TRACE_CONTEXT_SIZE);
    assert_int_equal(rh_trace(t.actor, text), RH_GONE); // it is over
    assert_string_equal(text, "");
    (void)runtime_rig_call(&t, "c"); // the next is not traced
    assert_int_equal(t.call.flags, 0);
    assert_string_equal(called(&t), plain);
    runtime_rig_close(&t);
}

static void an_answer_comes_in_the_midst_of_a_message(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    (void)runtime_rig_call(&t, "C");
    assert_int_equal(t.answers, 0);
    answer(&t, RH_TIMEOUT, "");
    assert_int_equal(p.status, RH_TIMEOUT);
    assert_int_equal(t.answers, 1); // It replied from there.
    runtime_rig_close(&t);
}

static void an_answer_that_waits_is_there_for_who_defers(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    (void)runtime_rig_call(&t, "c");
    answer(&t, RH_OK, "there");
    (void)runtime_rig_call(&t, "d"); // Its turn would come after this message only.
    assert_int_equal(p.answers, 1);
    assert_string_equal(t.text, "there");
    runtime_rig_close(&t);
}

static void an_answer_for_who_moved_is_dropped(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    (void)runtime_rig_call(&t, "c");
    runtime_rig_move(&t, &scripted_ops, &p);
    answer(&t, RH_OK, "there");
    assert_int_equal(t.told[VERB_POKE], 0);
    assert_int_equal(p.answers, 0);
    runtime_rig_close(&t);
}

static void bad_calls_are_refused(void **state)
{
    static const char long_id[RECORD_ID_MAX + 1];
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    (void)runtime_rig_call(&t, "i");
    assert_int_equal(p.result, RH_INVALID);
    assert_non_null(strstr(line, "calls_itself actor=3/id kind=scripted"));
    (void)runtime_rig_call(&t, "b");
    assert_int_equal(p.result, RH_TOO_BIG);
    assert_int_equal(t.told[VERB_CALL], 0);
    (void)runtime_rig_call(&t, "n"); // To send itself something is fine.
    assert_int_equal(p.result, RH_OK);
    assert_int_equal(t.told[VERB_CALL], 1);
    (void)runtime_rig_call(&t, "d");
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
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        assert_int_equal(rh_call(t.actor, 3, ok, ok, 1000, 0, on_answer, &p), RH_OK);
    }
    assert_int_equal(rh_call(t.actor, 3, ok, ok, 1000, 0, on_answer, &p), RH_OVERLOADED);
    runtime_rig_close(&t);
}

static void a_message_says_who_sent_it(void **state)
{
    const struct caller caller = {.kind = 8, .id = bytes_of("boss", 4)};
    uint8_t body[32];
    struct writer w = {.at = body, .left = sizeof body};
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    caller_put(&w, &caller);
    put_u8(&w, 'x');
    runtime_rig_run(&t, REQUEST_CALL, bytes_of(body, sizeof body - w.left));
    assert_string_equal(t.text, "x");
    assert_int_equal(p.from_kind, 8);
    assert_int_equal(p.from.size, 4);
    runtime_rig_run(&t, REQUEST_CALL, bytes_of("\1", 1));
    assert_int_equal(t.code, ANSWER_APP_ERROR);
    (void)runtime_rig_call(&t, "y");
    assert_int_equal(p.from.size, 0);
    runtime_rig_close(&t);
}

static void nonsense_has_failed(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    p.flush = 77;
    runtime_retire(t.actor);
    assert_int_equal(t.error, ERR_IO);
    assert_non_null(strstr(line, "bad_result actor=3/id kind=scripted what=\"flush\""));
    p.flush = RH_OK;
    p.handoff = -1;
    runtime_export(t.actor);
    assert_int_equal(t.error, ERR_OK);
    assert_false(t.has_state);
    assert_non_null(strstr(line, "what=\"handoff\""));
    runtime_rig_close(&t);
}

static void who_complains_without_end_is_cut_short(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    lines = 0;
    for (size_t i = 0; i < 1000; i++) {
        (void)runtime_rig_call(&t, "i");
    }
    assert_int_equal(lines, 20);
    runtime_tick(t.runtime, 1000000);
    (void)runtime_rig_call(&t, "i");
    assert_int_equal(lines, 22); // One says how many were left out.
    runtime_rig_close(&t);
}

/* The first word of what a call ends with is its status. */
static void no_call_that_failed_is_without_a_text(void **state)
{
    static const struct {
        int status;
        const char *payload;
        const char *text;
    } cases[] = {
        {RH_OK, "", ""},
        {RH_FAILED, "", "ERR "},
        {RH_FAILED, "NO its own", "NO its own"},
        {RH_UNKNOWN, "", "UNKNOWN "},
        {RH_TIMEOUT, "", "TIMEOUT "},
        {RH_REJECTED, "", "REJECTED "},
        {RH_NO_KIND, "", "NOKIND "},
        {RH_OVERLOADED, "", "OVERLOADED "},
        {RH_QUARANTINED, "", "QUARANTINED "},
        {RH_DEADLOCK, "", "DEADLOCK "},
    };
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)runtime_rig_call(&t, "C");
        answer(&t, cases[i].status, cases[i].payload);
        assert_int_equal(p.status, cases[i].status);
        assert_memory_equal(p.answer, cases[i].text, strlen(cases[i].text));
        assert_int_equal(p.answer[0] == '\0', cases[i].status == RH_OK);
    }
    runtime_rig_close(&t);
}

static void a_call_of_an_unknown_kind_is_named(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    (void)runtime_rig_call(&t, "C");
    answer(&t, RH_NO_KIND, "");
    assert_int_equal(p.status, RH_NO_KIND);
    assert_non_null(strstr(line, "unknown_kind actor=3/id kind=scripted"));
    runtime_rig_close(&t);
}

static void a_reply_at_the_end_is_named(void **state)
{
    struct scripted p;
    struct runtime_rig t;

    (void)state;
    open_stage(&t, &p);
    p.says_goodbye = true;
    runtime_discard(t.actor, RH_BROKEN);
    assert_int_equal(p.result, RH_INVALID);
    assert_non_null(strstr(line, "reply_at_end actor=3/id kind=scripted"));
    assert_int_equal(t.answers, 0);
    runtime_rig_close(&t);
}

static void pending_without_a_token_has_failed(void **state)
{
    struct scripted p = {.activate = RH_OK};
    struct rh_actor_ops ops = scripted_ops;
    struct runtime_rig t;

    (void)state;
    runtime_rig_open(&t, &ops, &p);
    const struct rh_value none = {.type = (enum rh_value_type)99};
    (void)runtime_rig_call(&t, "d");
    assert_int_equal(rh_reply(t.actor, none), RH_INVALID);
    assert_int_equal(rh_reply_later(p.token, none), RH_INVALID);
    assert_int_equal(t.answers, 0);
    assert_int_equal(rh_reply(t.actor, rh_nil()), RH_OK);
    assert_int_equal(rh_reply_later(p.token, rh_nil()), RH_GONE);
    runtime_rig_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTED_CASE(an_answer_comes_as_a_turn),
        SCRIPTED_CASE(a_call_of_a_traced_message_has_its_context_behind),
        SCRIPTED_CASE(an_answer_comes_in_the_midst_of_a_message),
        SCRIPTED_CASE(an_answer_that_waits_is_there_for_who_defers),
        SCRIPTED_CASE(an_answer_for_who_moved_is_dropped),
        SCRIPTED_CASE(bad_calls_are_refused),
        SCRIPTED_CASE(a_message_says_who_sent_it),
        SCRIPTED_CASE(nonsense_has_failed),
        SCRIPTED_CASE(who_complains_without_end_is_cut_short),
        SCRIPTED_CASE(no_call_that_failed_is_without_a_text),
        SCRIPTED_CASE(a_call_of_an_unknown_kind_is_named),
        SCRIPTED_CASE(a_reply_at_the_end_is_named),
        SCRIPTED_CASE(pending_without_a_token_has_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
