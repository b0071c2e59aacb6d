/* SPDX-License-Identifier: Apache-2.0
 *
 * The client of an actor, as its runtime keeps it.
 */
#include "tests/test.h"

#include "tests/node/runtime_rig.h"

enum { GATEWAY = 70, CONNECTION = 5 };

/* An actor that notes what it is told. */
struct told {
    struct runtime_rig t;
    char events[256];
    int result;  /* of its session callback */
    bool defers; /* it finishes later */
    bool quiet;  /* it pushes nothing by itself */
    struct rh_token token;
    int pushed; /* what rh_push() said last */
};

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct told *told = instance;

    if (message->payload.size == 4 && memcmp(message->payload.data, "kick", 4) == 0) {
        told->pushed = rh_kick(actor, RH_KICK_GAME, "go");
    } else if (message->payload.size == 3 && memcmp(message->payload.data, "end", 3) == 0) {
        told->pushed = rh_passivate(actor);
    } else if (message->payload.size == 4 && memcmp(message->payload.data, "fail", 4) == 0) {
        told->pushed = rh_fail(actor, "ERR broken");
    } else {
        told->pushed = rh_push(actor, message->payload);
    }
}

static int on_session(struct rh_actor *actor, void *instance, const struct rh_session *event)
{
    struct told *told = instance;
    const size_t used = strlen(told->events);

    (void)snprintf(
        told->events + used, sizeof told->events - used, "%u.%u ", event->type, event->why);
    if (event->type != RH_SESSION_LOST && !told->quiet) {
        assert_int_equal(rh_push(actor, (struct rh_bytes){"hello", 5}), RH_OK);
    }
    if (told->defers) {
        told->token = rh_defer(actor);
        return RH_PENDING;
    }
    return told->result;
}

static const struct rh_actor_ops ops = {
    .abi = RH_ABI,
    .size = sizeof ops,
    .name = "told",
    .activate = runtime_rig_activate,
    .message = on_message,
    .deactivate = runtime_rig_deactivate,
    .session = on_session,
};

static void open_stage(struct told *told)
{
    *told = (struct told){.result = RH_OK};
    runtime_rig_open(&told->t, &ops, told);
}

static struct note note_of(enum note_type type, uint64_t connection, uint32_t round)
{
    return (struct note){.type = (uint8_t)type,
                         .gateway = GATEWAY,
                         .connection = connection,
                         .round = round,
                         .why = NOTE_LOST_CLOSED};
}

static void binds(struct told *told, uint64_t connection, enum bound_result result)
{
    const struct note note = note_of(NOTE_BIND, connection, 1);

    runtime_rig_note(&told->t, &note);
    assert_int_equal(runtime_rig_bound(&told->t).result, result);
}

static void pushes(struct told *told, const char *text, int result)
{
    const size_t before = told->t.told[VERB_PUSH];

    told->pushed = -1;
    (void)runtime_rig_call(&told->t, text);
    assert_int_equal(told->pushed, result);
    assert_int_equal(told->t.told[VERB_PUSH] - before, result == RH_OK ? 1 : 0);
}

static void a_client_is_bound_pushed_to_and_lost(void **state)
{
    const struct note other = note_of(NOTE_LOST, 99, 0);
    const struct note lost = note_of(NOTE_LOST, CONNECTION, 0);
    struct told told;

    (void)state;
    open_stage(&told);
    pushes(&told, "x", RH_NO_SESSION);
    binds(&told, CONNECTION, BOUND_NEW);
    assert_int_equal(told.t.told[VERB_BIND], 1);
    assert_int_equal(told.t.push.number, 1); // hello
    pushes(&told, "one", RH_OK);
    assert_true(told.t.push.number == 2 && told.t.push.gateway == GATEWAY &&
                told.t.push.connection == CONNECTION && told.t.push.round == 1);
    runtime_rig_note(&told.t, &other); // of one that was replaced long ago
    pushes(&told, "two", RH_OK);
    runtime_rig_note(&told.t, &lost);
    pushes(&told, "x", RH_NO_SESSION);
    assert_string_equal(told.events, "1.0 4.1 ");
    runtime_rig_close(&told.t);
}

/* An actor that retired may begin again on another worker, under the same fence. */
static void runtimes_of_a_node_number_bonds_together(void **state)
{
    struct told first;
    struct told second;

    (void)state;
    open_stage(&first);
    open_stage(&second);
    binds(&first, CONNECTION, BOUND_NEW);
    binds(&first, 6, BOUND_NEW);
    binds(&second, CONNECTION, BOUND_NEW);
    assert_true(
        bond_stamp_before(runtime_rig_bound(&first.t).stamp, runtime_rig_bound(&second.t).stamp));
    runtime_rig_close(&first.t);
    runtime_rig_close(&second.t);
}

static void a_newer_client_replaces_it(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    told.quiet = true;
    binds(&told, CONNECTION, BOUND_NEW);
    const struct bond_stamp first = runtime_rig_bound(&told.t).stamp;
    binds(&told, CONNECTION, BOUND_KEPT); // a copy
    binds(&told, 6, BOUND_NEW);
    assert_true(bond_stamp_before(first, runtime_rig_bound(&told.t).stamp));
    assert_int_equal(told.t.told[VERB_PUSH], 1);
    assert_true(told.t.push.type == PUSH_KICK && told.t.push.code == KICK_REPLACED &&
                told.t.push.connection == CONNECTION);
    assert_string_equal(told.events, "1.0 2.0 ");

    // The one before comes again: it is told that it is too late.
    struct note again = note_of(NOTE_RESUME, CONNECTION, 2);
    again.stamp = first;
    runtime_rig_note(&told.t, &again);
    assert_int_equal(runtime_rig_bound(&told.t).result, BOUND_OLD);
    runtime_rig_close(&told.t);
}

/* Its gateway got no answer and asked once more: fleet_sim --profile sessions --seed 2180. */
static void who_binds_itself_anew_replaces_itself(void **state)
{
    const struct note again = note_of(NOTE_BIND, CONNECTION, 2);
    struct told told;

    (void)state;
    open_stage(&told);
    binds(&told, CONNECTION, BOUND_NEW);
    runtime_rig_note(&told.t, &again);
    assert_int_equal(runtime_rig_bound(&told.t).result, BOUND_NEW);
    assert_string_equal(told.events, "1.0 2.0 ");
    assert_int_equal(told.t.push.type, PUSH_DATA); // it is not kicked
    assert_true(told.t.push.round == 2 && told.t.push.number == 1);
    runtime_rig_close(&told.t);
}

static void who_is_refused_is_not_bound(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    told.result = RH_FAILED;
    binds(&told, CONNECTION, BOUND_REFUSED);
    pushes(&told, "x", RH_NO_SESSION);
    runtime_rig_close(&told.t);
}

static void the_answer_may_come_later(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    told.defers = true;
    const struct note note = note_of(NOTE_BIND, CONNECTION, 1);
    runtime_rig_note(&told.t, &note);
    assert_int_equal(told.t.answers, 0);
    assert_int_equal(told.t.told[VERB_DEFER], 1);
    assert_int_equal(rh_reply_later(told.token, rh_nil()), RH_INVALID);
    assert_int_equal(rh_done(told.token, RH_OK), RH_OK);
    runtime_tick(told.t.runtime, 1000);
    assert_int_equal(told.t.answers, 1);
    assert_int_equal(runtime_rig_bound(&told.t).result, BOUND_NEW);
    pushes(&told, "x", RH_OK);

    // One that is stopped meanwhile has no answer, and nothing is left of it.
    const struct note second = note_of(NOTE_BIND, 6, 1);
    runtime_rig_note(&told.t, &second);
    runtime_rig_close(&told.t);
    assert_int_equal(rh_done(told.token, RH_OK), RH_GONE);
}

static void who_is_kicked_gets_no_more(void **state)
{
    const struct note resume = note_of(NOTE_RESUME, CONNECTION, 2);
    struct told told;

    (void)state;
    open_stage(&told);
    binds(&told, CONNECTION, BOUND_NEW);
    pushes(&told, "kick", RH_OK);
    assert_true(told.t.push.type == PUSH_KICK && told.t.push.code == RH_KICK_GAME &&
                told.t.push.number == 2);
    pushes(&told, "x", RH_NO_SESSION);
    pushes(&told, "kick", RH_NO_SESSION);
    runtime_rig_note(&told.t, &resume); // the kick was lost with its link
    assert_int_equal(runtime_rig_bound(&told.t).result, BOUND_REFUSED);
    runtime_rig_close(&told.t);
}

/* Discard it, and begin it anew with what it was handed over with. */
static void move(struct told *told, bool cold)
{
    runtime_export(told->t.actor);
    assert_int_equal(told->t.error, ERR_OK);
    runtime_discard(told->t.actor, RH_MOVED);
    const struct runtime_entry entry = {.ops = &ops,
                                        .shared = told,
                                        .bond = buffer_bytes(&told->t.bond),
                                        .has_state = !cold,
                                        .kind = 3,
                                        .fence = 9};
    runtime_rig_enter(&told->t, &entry);
    assert_int_equal(told->t.error, ERR_OK);
}

static void the_bond_moves_with_its_numbers(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    binds(&told, CONNECTION, BOUND_NEW);
    pushes(&told, "two", RH_OK);
    move(&told, false);
    assert_int_equal(told.t.told[VERB_BIND], 2);
    assert_int_equal(told.t.told[VERB_PUSH], 2); // nothing by itself
    pushes(&told, "three", RH_OK);
    assert_int_equal(told.t.push.number, 3);
    assert_string_equal(told.events, "1.0 ");

    // The stamps go on, too: who comes now is newer.
    const struct bond_stamp before = {.fence = 7, .count = UINT64_MAX};
    binds(&told, 6, BOUND_NEW);
    assert_true(bond_stamp_before(before, runtime_rig_bound(&told.t).stamp));
    runtime_rig_close(&told.t);
}

static void one_that_moves_cold_is_told_of_its_client(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    binds(&told, CONNECTION, BOUND_NEW);
    move(&told, true);
    assert_int_equal(told.t.told[VERB_POKE], 1);
    runtime_turn(told.t.actor, 8);
    assert_string_equal(told.events, "1.0 3.0 ");
    assert_int_equal(told.t.push.number, 2);
    move(&told, true);
    told.result = RH_FAILED; // now it does not want it
    runtime_turn(told.t.actor, 9);
    assert_true(told.t.push.type == PUSH_KICK && told.t.push.code == KICK_REFUSED);
    pushes(&told, "x", RH_NO_SESSION);
    runtime_rig_close(&told.t);
}

/* It came cold, with a client whose gateway is missed before its turn comes. */
static void who_was_never_told_of_is_not_lost(void **state)
{
    const struct note resume = note_of(NOTE_RESUME, CONNECTION, 2);
    struct told told;

    (void)state;
    open_stage(&told);
    binds(&told, CONNECTION, BOUND_NEW);
    move(&told, true);
    runtime_gateway_gone(told.t.runtime, GATEWAY);
    runtime_turn(told.t.actor, 8);
    assert_string_equal(told.events, "1.0 ");
    pushes(&told, "x", RH_NO_SESSION);
    move(&told, true);
    binds(&told, CONNECTION, BOUND_NEW);
    move(&told, true);
    runtime_gateway_gone(told.t.runtime, GATEWAY);
    // It is back before the turn: its actor hears of it all the same.
    runtime_rig_note(&told.t, &resume);
    assert_string_equal(told.events, "1.0 1.0 3.0 ");
    runtime_rig_close(&told.t);
}

/* Its gateway is missed, and tells that it has gone before that is told. */
static void who_is_lost_twice_is_told_of_once(void **state)
{
    const struct note lost = note_of(NOTE_LOST, CONNECTION, 0);
    struct told told;

    (void)state;
    open_stage(&told);
    binds(&told, CONNECTION, BOUND_NEW);
    runtime_gateway_gone(told.t.runtime, GATEWAY);
    runtime_rig_note(&told.t, &lost);
    runtime_turn(told.t.actor, 9);
    assert_string_equal(told.events, "1.0 4.4 ");
    pushes(&told, "x", RH_NO_SESSION);
    runtime_rig_close(&told.t);
}

static void the_clients_of_a_gateway_that_is_gone_are_lost(void **state)
{
    const struct note resume = note_of(NOTE_RESUME, CONNECTION, 2);
    struct told told;

    (void)state;
    open_stage(&told);
    binds(&told, CONNECTION, BOUND_NEW);
    runtime_gateway_gone(told.t.runtime, 99);
    assert_int_equal(told.t.told[VERB_POKE], 0);
    runtime_gateway_gone(told.t.runtime, GATEWAY);
    assert_int_equal(told.t.told[VERB_POKE], 1);
    pushes(&told, "x", RH_NO_SESSION);
    runtime_rig_note(&told.t, &resume); // it is back before it was missed
    assert_int_equal(runtime_rig_bound(&told.t).result, BOUND_KEPT);
    runtime_turn(told.t.actor, 8);
    pushes(&told, "two", RH_OK);
    runtime_gateway_gone(told.t.runtime, GATEWAY);
    told.defers = true;
    runtime_turn(told.t.actor, 9);
    assert_int_equal(rh_done(told.token, RH_OK), RH_OK);
    runtime_tick(told.t.runtime, 1000);
    assert_string_equal(told.events, "1.0 4.4 ");
    assert_int_equal(told.t.ticket, 9); // the turn ended when that was through
    pushes(&told, "x", RH_NO_SESSION);
    runtime_rig_close(&told.t);
}

static void a_client_keeps_it_alive(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    told.quiet = true;
    binds(&told, CONNECTION, BOUND_NEW);
    runtime_retire(told.t.actor);
    assert_int_equal(told.t.error, ERR_BUSY);
    assert_non_null(told.t.actor);
    pushes(&told, "x", RH_OK);
    (void)runtime_rig_call(&told.t, "end"); // unless it wants to
    runtime_retire(told.t.actor);
    assert_null(told.t.actor);
    assert_true(told.t.push.type == PUSH_KICK && told.t.push.code == KICK_ENDED);
    runtime_rig_close(&told.t);
}

static void one_that_breaks_has_its_client_come_again(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    binds(&told, CONNECTION, BOUND_NEW);
    (void)runtime_rig_call(&told.t, "fail");
    runtime_discard(told.t.actor, RH_BROKEN);
    assert_true(told.t.push.type == PUSH_AGAIN && told.t.push.number == 0);
    runtime_rig_close(&told.t);
}

static void pushes_for_others_are_passed_on_or_dropped(void **state)
{
    const struct note push = {.type = NOTE_PUSH, .payload = bytes_of("hi", 2)};
    struct told told;

    (void)state;
    open_stage(&told);
    runtime_rig_note(&told.t, &push);
    assert_int_equal(told.t.told[VERB_PUSH], 0);
    told.quiet = true;
    binds(&told, CONNECTION, BOUND_NEW);
    runtime_rig_note(&told.t, &push);
    assert_int_equal(told.t.told[VERB_PUSH], 1);
    assert_int_equal(told.t.push.payload.size, 2);
    assert_int_equal(told.t.answers, 3);
    runtime_rig_close(&told.t);
}

static bool operator_kicks(struct told *told)
{
    const struct note kick = {.type = NOTE_KICK, .code = 1234, .payload = bytes_of("bye", 3)};

    runtime_rig_note(&told->t, &kick);
    assert_int_equal(told->t.answer.size, 1);
    return told->t.answer.data[0] == 1;
}

static void an_operator_ends_the_session_of_whoever_is_bound(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    assert_false(operator_kicks(&told));
    assert_int_equal(told.t.told[VERB_PUSH], 0);
    binds(&told, CONNECTION, BOUND_NEW);
    assert_true(operator_kicks(&told));
    assert_true(told.t.push.type == PUSH_KICK && told.t.push.code == 1234);
    assert_int_equal(told.t.push.payload.size, 3);
    pushes(&told, "x", RH_NO_SESSION);
    assert_false(operator_kicks(&told));
    runtime_rig_close(&told.t);
}

static void what_is_traced_goes_back_and_its_code_is_not_asked(void **state)
{
    const struct note trace = {.type = NOTE_TRACE, .payload = bytes_of("hops", 4)};
    struct told told;

    (void)state;
    open_stage(&told);
    told.pushed = -1;
    runtime_rig_note(&told.t, &trace);
    assert_true(bytes_equal(buffer_bytes(&told.t.answer), trace.payload));
    assert_int_equal(told.pushed, -1);
    runtime_rig_close(&told.t);
}

static void nonsense_is_answered_and_nothing_more(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    runtime_rig_run(&told.t, REQUEST_SESSION, bytes_of("\x09nonsense", 9));
    runtime_rig_run(&told.t, REQUEST_SESSION, (struct bytes){0});
    runtime_rig_run(&told.t, REQUEST_SESSION | REQUEST_CALL, bytes_of("\x01", 1));
    assert_int_equal(told.t.answers, 3);
    assert_string_equal(told.events, "");

    const struct runtime_entry entry = {
        .ops = &ops, .shared = &told, .bond = bytes_of("bad", 3), .kind = 3};
    runtime_discard(told.t.actor, RH_STOP);
    runtime_rig_enter(&told.t, &entry);
    pushes(&told, "x", RH_NO_SESSION);
    runtime_rig_close(&told.t);
}

static void a_kind_without_the_callback_takes_none(void **state)
{
    struct rh_actor_ops without = ops;
    struct told told = {.result = RH_OK};

    (void)state;
    without.session = NULL;
    runtime_rig_open(&told.t, &without, &told);
    binds(&told, CONNECTION, BOUND_NEVER);
    runtime_rig_close(&told.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_is_bound_pushed_to_and_lost),
        cmocka_unit_test(runtimes_of_a_node_number_bonds_together),
        cmocka_unit_test(a_newer_client_replaces_it),
        cmocka_unit_test(who_binds_itself_anew_replaces_itself),
        cmocka_unit_test(who_is_refused_is_not_bound),
        cmocka_unit_test(the_answer_may_come_later),
        cmocka_unit_test(who_is_kicked_gets_no_more),
        cmocka_unit_test(the_bond_moves_with_its_numbers),
        cmocka_unit_test(one_that_moves_cold_is_told_of_its_client),
        cmocka_unit_test(who_was_never_told_of_is_not_lost),
        cmocka_unit_test(the_clients_of_a_gateway_that_is_gone_are_lost),
        cmocka_unit_test(who_is_lost_twice_is_told_of_once),
        cmocka_unit_test(a_client_keeps_it_alive),
        cmocka_unit_test(one_that_breaks_has_its_client_come_again),
        cmocka_unit_test(pushes_for_others_are_passed_on_or_dropped),
        cmocka_unit_test(an_operator_ends_the_session_of_whoever_is_bound),
        cmocka_unit_test(what_is_traced_goes_back_and_its_code_is_not_asked),
        cmocka_unit_test(nonsense_is_answered_and_nothing_more),
        cmocka_unit_test(a_kind_without_the_callback_takes_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
