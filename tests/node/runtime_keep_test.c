/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients that may come back, as the runtime of their actor keeps them.
 */
#include "tests/test.h"

#include "tests/node/runtime_rig.h"
#include "tests/planted.h"

enum { GATEWAY = 70, OTHER = 71, CONNECTION = 5, KEY = 11, SESSION = 12 };

/* An actor that notes what it is told, and what left it. */
struct told {
    struct runtime_rig t;
    char events[256];
    int result; /* of its session callback */
    int pushed; /* what rh_push() or rh_kick() said last */
    struct rh_actor_ops ops;
};

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct told *told = instance;
    const bool kick = message->payload.size == 4 && memcmp(message->payload.data, "kick", 4) == 0;

    if (message->payload.size == 3 && memcmp(message->payload.data, "me:", 3) == 0) {
        told->pushed = rh_rebind(actor, 7, (struct rh_bytes){"me", 2});
        return;
    }
    told->pushed = kick ? rh_kick(actor, RH_KICK_GAME, "go") : rh_push(actor, message->payload);
}

static int on_session(struct rh_actor *actor, void *instance, const struct rh_session *event)
{
    struct told *told = instance;
    const size_t used = strlen(told->events);

    (void)actor;
    (void)snprintf(
        told->events + used, sizeof told->events - used, "%u.%u ", event->type, event->why);
    return told->result;
}

static void open_stage(struct told *told)
{
    *told = (struct told){.result = RH_OK,
                          .ops = {.abi = RH_ABI,
                                  .size = sizeof told->ops,
                                  .name = "told",
                                  .activate = runtime_rig_activate,
                                  .message = on_message,
                                  .deactivate = runtime_rig_deactivate,
                                  .session = on_session}};
    runtime_rig_open(&told->t, &told->ops, told);
}

static struct note note_of(enum note_type type, uint64_t gateway)
{
    return (struct note){.type = (uint8_t)type,
                         .gateway = gateway,
                         .connection = CONNECTION,
                         .round = 1,
                         .why = NOTE_LOST_CLOSED,
                         .key = KEY,
                         .session = SESSION};
}

/* Run it; how it ended, of those that are answered. */
static struct bound run_note(struct told *told, const struct note *note)
{
    struct bound bound = {.result = 99};

    runtime_rig_note(&told->t, note);
    if (told->t.answer.size > 0) {
        assert_int_equal(bound_get(buffer_bytes(&told->t.answer), &bound), ERR_OK);
    }
    return bound;
}

static struct bound notes(struct told *told, enum note_type type, uint64_t gateway)
{
    const struct note note = note_of(type, gateway);

    return run_note(told, &note);
}

static void pushes(struct told *told, const char *text, size_t records)
{
    const size_t before = told->t.told[VERB_PUSH];

    (void)runtime_rig_call(&told->t, text);
    assert_int_equal(told->pushed, RH_OK);
    assert_int_equal(told->t.told[VERB_PUSH] - before, records);
}

/* It comes back, with all to `got`; a push is told for each letter of `again`. */
static struct bound returns(struct told *told, uint64_t gateway, uint64_t got, const char *again)
{
    struct note note = note_of(NOTE_RETURN, gateway);
    const size_t before = told->t.told[VERB_PUSH];

    note.got = got;
    const struct bound bound = run_note(told, &note);
    assert_int_equal(told->t.told[VERB_PUSH] - before, strlen(again));
    return bound;
}

static void keep(struct told *told)
{
    const struct bound bound = notes(told, NOTE_KEEP, GATEWAY);

    assert_true(bound.result == BOUND_NEW && bound.key == KEY && bound.next == 1 &&
                bound.epoch == 1 && bound.keep_ms == 30000);
}

static void who_is_lost_comes_back_and_gets_what_it_missed(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    pushes(&told, "one", 1);
    pushes(&told, "two", 1);
    (void)notes(&told, NOTE_LOST, GATEWAY);
    pushes(&told, "three", 0); // kept
    const struct bound bound = returns(&told, OTHER, 1, "pp");
    assert_true(bound.result == BOUND_KEPT && bound.next == 2 && bound.epoch == 2);
    assert_true(told.t.push.number == 3 && told.t.push.gateway == OTHER);
    pushes(&told, "four", 1);
    assert_int_equal(told.t.push.number, 4);
    assert_string_equal(told.events, "1.0 4.1 3.1 ");

    // A copy of the note: nothing happens twice.
    assert_int_equal(returns(&told, OTHER, 1, "").epoch, 2);
    (void)notes(&told, NOTE_LOST, GATEWAY); // of the connection before
    pushes(&told, "five", 1);
    runtime_rig_close(&told.t);
}

static void a_line_that_hangs_is_kicked(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    pushes(&told, "one", 1);
    const struct bound bound = returns(&told, OTHER, 1, "p");
    assert_int_equal(bound.result, BOUND_KEPT);
    assert_true(told.t.push.type == PUSH_KICK && told.t.push.gateway == GATEWAY &&
                told.t.push.code == KICK_REPLACED && told.t.push.number == 2);
    pushes(&told, "two", 1);
    assert_int_equal(told.t.push.number, 2); // the kick took none
    assert_string_equal(told.events, "1.0 3.1 ");
    runtime_rig_close(&told.t);
}

/* The client left that line before, and is back by another: whatever the late note finds there. */
static void a_return_that_comes_late_takes_nobodys_place(void **state)
{
    struct note late = note_of(NOTE_RETURN, OTHER);
    struct note newer = note_of(NOTE_RETURN, OTHER + 1);
    struct note uncounted = note_of(NOTE_RETURN, OTHER + 2);
    struct told told;

    (void)state;
    late.round |= 1U << ROUND_ATTEMPT_AT;
    newer.round |= 2U << ROUND_ATTEMPT_AT;
    open_stage(&told);
    keep(&told);
    (void)notes(&told, NOTE_LOST, GATEWAY);
    assert_int_equal(run_note(&told, &newer).result, BOUND_KEPT);
    const size_t before = told.t.told[VERB_PUSH];
    assert_int_equal(run_note(&told, &late).result, BOUND_OLD);
    assert_int_equal(told.t.told[VERB_PUSH], before); // nobody is kicked
    pushes(&told, "one", 1);
    assert_int_equal(told.t.push.gateway, OTHER + 1);
    (void)notes(&told, NOTE_LOST, OTHER + 1); // it is away
    assert_int_equal(run_note(&told, &late).result, BOUND_OLD);
    assert_string_equal(told.events, "1.0 4.1 3.1 4.1 ");

    // Who doesn't count is taken as it comes, and so is what follows.
    assert_int_equal(run_note(&told, &uncounted).result, BOUND_KEPT);
    assert_int_equal(run_note(&told, &late).result, BOUND_KEPT);
    runtime_rig_close(&told.t);
}

static void it_is_kept_for_a_time(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    (void)notes(&told, NOTE_LOST, GATEWAY);
    assert_int_equal(runtime_next_us(told.t.runtime), 30000000);
    runtime_retire(told.t.actor);
    assert_int_equal(told.t.error, ERR_BUSY); // it is waited for
    runtime_tick(told.t.runtime, 30000000);
    (void)runtime_rig_call(&told.t, "x");
    assert_int_equal(told.pushed, RH_NO_SESSION);
    assert_int_equal(returns(&told, OTHER, 0, "").result, BOUND_GONE);
    assert_string_equal(told.events, "1.0 4.1 ");
    assert_true(runtime_next_us(told.t.runtime) == UINT64_MAX);
    runtime_retire(told.t.actor);
    assert_null(told.t.actor);
    runtime_rig_close(&told.t);
}

static void who_says_so_or_is_kicked_does_not_return(void **state)
{
    static const uint8_t why[] = {NOTE_LOST_LEFT, NOTE_LOST_KICKED};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct note lost = note_of(NOTE_LOST, GATEWAY);
        struct told told;

        open_stage(&told);
        keep(&told);
        lost.why = why[i];
        (void)run_note(&told, &lost);
        assert_string_equal(told.events, i == 0 ? "1.0 4.1 " : "1.0 4.2 ");
        assert_int_equal(returns(&told, OTHER, 0, "").result, BOUND_GONE);
        runtime_rig_close(&told.t);
    }
    struct told told;
    open_stage(&told);
    keep(&told);
    (void)notes(&told, NOTE_LOST, GATEWAY);
    pushes(&told, "kick", 0); // while it is away
    assert_int_equal(returns(&told, OTHER, 0, "").result, BOUND_GONE);
    runtime_rig_close(&told.t);
}

static void another_client_takes_its_place(void **state)
{
    struct note bind = note_of(NOTE_BIND, OTHER);
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    (void)notes(&told, NOTE_LOST, GATEWAY);
    assert_int_equal(run_note(&told, &bind).result, BOUND_NEW);
    assert_int_equal(told.t.told[VERB_PUSH], 0); // nobody is there to be kicked
    assert_int_equal(returns(&told, GATEWAY, 0, "").result, BOUND_OLD);
    assert_string_equal(told.events, "1.0 4.1 1.0 ");
    runtime_rig_close(&told.t);
}

static void what_is_acknowledged_is_not_sent_again(void **state)
{
    struct note ack = note_of(NOTE_ACK, GATEWAY);
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    pushes(&told, "one", 1);
    pushes(&told, "two", 1);
    ack.got = 1;
    (void)run_note(&told, &ack);
    ack.got = 2;
    ack.round = 9; // of another round: it counts otherwise
    (void)run_note(&told, &ack);
    ack.round = 1;
    ack.gateway = OTHER;
    (void)run_note(&told, &ack);
    const struct bound bound = returns(&told, OTHER, 0, "pp"); // it lies; and the kick
    assert_int_equal(bound.next, 2);                           // … and is told
    runtime_rig_close(&told.t);
}

static void a_gateway_that_was_away_gets_the_rest_again(void **state)
{
    struct note renew = note_of(NOTE_RENEW, GATEWAY);
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    pushes(&told, "one", 1);
    pushes(&told, "two", 1);
    renew.round = 2;
    renew.key = 99;
    renew.got_round = 1;
    renew.got = 1;
    struct bound bound = run_note(&told, &renew);
    assert_true(bound.result == BOUND_KEPT && bound.round == 1 && bound.key == KEY &&
                bound.next == 2);
    assert_true(told.t.told[VERB_PUSH] == 3 && told.t.push.number == 2);
    assert_string_equal(told.events, "1.0 ");

    // It was missed, and is heard of again.
    runtime_gateway_gone(told.t.runtime, GATEWAY);
    pushes(&told, "three", 0);
    runtime_turn(told.t.actor, 8);
    bound = run_note(&told, &renew);
    assert_int_equal(bound.result, BOUND_KEPT);
    assert_true(told.t.told[VERB_PUSH] == 5 && told.t.push.number == 3);
    assert_string_equal(told.events, "1.0 4.4 3.1 ");

    // Its actor was lost: it is bound anew, by another key.
    runtime_discard(told.t.actor, RH_BROKEN);
    const struct runtime_entry entry = {.ops = &told.ops, .shared = &told, .kind = 3, .fence = 9};
    runtime_rig_enter(&told.t, &entry);
    renew.epoch = 4;
    bound = run_note(&told, &renew);
    assert_true(bound.result == BOUND_NEW && bound.key == 99 && bound.next == 1 &&
                bound.epoch == 4);
    assert_int_equal(returns(&told, OTHER, 0, "").result, BOUND_GONE); // by the key of before
    runtime_rig_close(&told.t);
}

static void move(struct told *told)
{
    runtime_export(told->t.actor);
    assert_int_equal(told->t.error, ERR_OK);
    runtime_discard(told->t.actor, RH_MOVED);
    const struct runtime_entry entry = {.ops = &told->ops,
                                        .shared = told,
                                        .bond = buffer_bytes(&told->t.bond),
                                        .has_state = true,
                                        .kind = 3,
                                        .fence = 9};
    runtime_rig_enter(&told->t, &entry);
    assert_int_equal(told->t.error, ERR_OK);
}

static void what_it_missed_moves_with_its_actor(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    pushes(&told, "one", 1);
    move(&told);
    assert_int_equal(told.t.told[VERB_BIND], 2);
    (void)notes(&told, NOTE_LOST, GATEWAY);
    pushes(&told, "two", 0);
    runtime_tick(told.t.runtime, 10000000);
    move(&told);
    assert_int_equal(told.t.told[VERB_BIND], 2);                 // nobody is there
    assert_int_equal(runtime_next_us(told.t.runtime), 30000000); // the rest of its time
    pushes(&told, "three", 0);
    const struct bound bound = returns(&told, OTHER, 0, "ppp");
    assert_true(bound.next == 1 && bound.epoch == 2 && told.t.push.number == 3);
    runtime_rig_close(&told.t);
}

static void a_kind_may_refuse_a_second_client(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    told.ops.sessions = RH_SESSIONS_REJECT_NEW;
    keep(&told);
    assert_int_equal(notes(&told, NOTE_BIND, OTHER).result, BOUND_TAKEN);
    assert_int_equal(notes(&told, NOTE_KEEP, OTHER).result, BOUND_TAKEN);
    pushes(&told, "one", 1);
    assert_int_equal(told.t.push.gateway, GATEWAY);
    (void)notes(&told, NOTE_LOST, GATEWAY);
    assert_int_equal(notes(&told, NOTE_BIND, OTHER).result, BOUND_NEW);
    runtime_gateway_gone(told.t.runtime, OTHER); // so does one whose gateway is gone
    assert_int_equal(notes(&told, NOTE_BIND, 72).result, BOUND_NEW);
    runtime_rig_close(&told.t);
}

/* The answer was lost with the node that had sent its bind on, so its gateway asks once more:
 * fleet_sim --profile sessions --seed 150004560. */
static void nobody_is_refused_for_itself(void **state)
{
    struct note again = note_of(NOTE_KEEP, GATEWAY);
    struct told told;

    (void)state;
    open_stage(&told);
    told.ops.sessions = RH_SESSIONS_REJECT_NEW;
    keep(&told);
    again.round = 2;
    assert_int_equal(run_note(&told, &again).result, BOUND_NEW);
    assert_string_equal(told.events, "1.0 2.0 ");
    assert_int_equal(told.t.told[VERB_PUSH], 0); // it is not kicked
    runtime_rig_close(&told.t);
}

/* Its actor has lost its memory: whom it had bound later is asked about by its gateway, too. The
 * place was given to that one while the other was taken for gone, and nobody gets it by luck. */
static void of_two_that_come_again_the_newer_one_stays_though_none_may_be_replaced(void **state)
{
    struct note older = note_of(NOTE_RESUME, GATEWAY);
    struct note newer = note_of(NOTE_RESUME, OTHER);

    (void)state;
    older.stamp = (struct bond_stamp){.fence = 1, .count = 1};
    newer.stamp = (struct bond_stamp){.fence = 1, .count = 2};
    for (int newer_first = 0; newer_first < 2; newer_first++) {
        struct told told;

        open_stage(&told);
        told.ops.sessions = RH_SESSIONS_REJECT_NEW;
        assert_int_equal(run_note(&told, newer_first ? &newer : &older).result, BOUND_NEW);
        assert_int_equal(notes(&told, NOTE_BIND, 72).result, BOUND_TAKEN);
        assert_int_equal(run_note(&told, newer_first ? &older : &newer).result,
                         newer_first ? BOUND_OLD : BOUND_NEW);
        assert_int_equal(run_note(&told, &older).result, BOUND_OLD);
        assert_int_equal(run_note(&told, &newer).result, BOUND_KEPT);
        runtime_rig_close(&told.t);
    }
}

static void a_kind_may_keep_none(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    told.ops.resume_ms = UINT32_MAX;
    const struct bound bound = notes(&told, NOTE_KEEP, GATEWAY);
    assert_true(bound.result == BOUND_NEW && bound.key == 0);
    (void)notes(&told, NOTE_LOST, GATEWAY);
    assert_int_equal(returns(&told, OTHER, 0, "").result, BOUND_GONE);
    runtime_rig_close(&told.t);
}

static void one_that_does_not_want_it_back_says_so(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    (void)notes(&told, NOTE_LOST, GATEWAY);
    told.result = RH_FAILED;
    assert_int_equal(returns(&told, OTHER, 0, "").result, BOUND_REFUSED);
    told.result = RH_OK;
    assert_int_equal(returns(&told, OTHER, 0, "").result, BOUND_GONE);
    runtime_rig_close(&told.t);
}

/* The push that was told last lets the client go on as "me" of kind 7. */
static void told_to_go_on(const struct told *told, uint64_t gateway, uint64_t number)
{
    const struct push_record *p = &told->t.push;

    assert_int_equal(p->type, PUSH_REBIND);
    assert_true(p->gateway == gateway && p->number == number);
}

static void one_that_goes_on_as_another_has_left(void **state)
{
    struct note lost = note_of(NOTE_LOST, GATEWAY);
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    pushes(&told, "one", 1);
    pushes(&told, "me:", 1);
    told_to_go_on(&told, GATEWAY, 2);
    (void)runtime_rig_call(&told.t, "two");
    assert_int_equal(told.pushed, RH_NO_SESSION);
    (void)runtime_rig_call(&told.t, "me:");
    assert_int_equal(told.pushed, RH_NO_SESSION);
    lost.why = NOTE_LOST_REBOUND;
    (void)run_note(&told, &lost);
    assert_string_equal(told.events, "1.0 4.5 ");
    assert_int_equal(returns(&told, OTHER, 0, "").result, BOUND_GONE);
    runtime_rig_close(&told.t);
}

/* Its gateway is lost before it has done so: nothing is left half done. */
static void one_that_comes_back_is_told_again(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    pushes(&told, "one", 1);
    pushes(&told, "me:", 1);
    (void)notes(&told, NOTE_LOST, GATEWAY);
    assert_int_equal(returns(&told, OTHER, 0, "pr").next, 1);
    told_to_go_on(&told, OTHER, 2);
    assert_string_equal(told.events, "1.0 4.1 3.1 ");
    (void)notes(&told, NOTE_LOST, OTHER);
    move(&told);
    assert_int_equal(returns(&told, GATEWAY, 1, "r").next, 2);
    told_to_go_on(&told, GATEWAY, 2);
    runtime_rig_close(&told.t);
}

static void one_that_is_away_is_told_when_it_is_back(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    (void)notes(&told, NOTE_LOST, GATEWAY);
    pushes(&told, "me:", 0);
    assert_int_equal(returns(&told, OTHER, 0, "r").next, 1);
    told_to_go_on(&told, OTHER, 1);
    runtime_rig_close(&told.t);
}

/* A client that binds itself anew is not rebound. */
static void a_new_client_stays(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    pushes(&told, "me:", 1);
    assert_int_equal(notes(&told, NOTE_KEEP, OTHER).result, BOUND_NEW);
    pushes(&told, "x", 1);
    assert_true(told.t.push.type == PUSH_DATA && told.t.push.number == 1);
    runtime_rig_close(&told.t);
}

/* Found by fleet_sim --profile sessions: its line hung when its actor was begun afresh. */
static void who_did_not_hear_of_that_comes_anew(void **state)
{
    struct note back = note_of(NOTE_RETURN, OTHER);
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    back.key = KEY - 1;
    assert_int_equal(run_note(&told, &back).result, BOUND_GONE); // nobody took its place
    pushes(&told, "one", 1);
    struct note anew = note_of(NOTE_KEEP, OTHER);
    anew.session = SESSION + 1;
    assert_int_equal(run_note(&told, &anew).result, BOUND_NEW);
    assert_string_equal(told.events, "1.0 2.0 ");
    runtime_rig_close(&told.t);
}

/* The answer of the first was lost, and its gateway said that it has gone. */
static void who_returns_twice_by_one_line_is_there(void **state)
{
    struct note back = note_of(NOTE_RETURN, OTHER);
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    assert_int_equal(run_note(&told, &back).result, BOUND_KEPT);
    assert_int_equal(run_note(&told, &back).result, BOUND_KEPT); // a copy
    (void)notes(&told, NOTE_LOST, OTHER);
    pushes(&told, "one", 0);
    back.round = 2;
    const struct bound bound = run_note(&told, &back);
    assert_true(bound.result == BOUND_KEPT && bound.round == 2 && bound.next == 1);
    assert_true(told.t.push.round == 2 && told.t.push.number == 1);
    pushes(&told, "two", 1);
    assert_string_equal(told.events, "1.0 3.1 4.1 3.1 ");
    runtime_rig_close(&told.t);
}

/* Cold, with the bond of a client. */
static void come_cold(struct told *told)
{
    runtime_export(told->t.actor);
    runtime_discard(told->t.actor, RH_MOVED);
    const struct runtime_entry entry = {.ops = &told->ops,
                                        .shared = told,
                                        .bond = buffer_bytes(&told->t.bond),
                                        .kind = 3,
                                        .fence = 9};
    runtime_rig_enter(&told->t, &entry);
}

static void one_that_comes_cold_hears_whether_its_client_is_there(void **state)
{
    struct told told;

    (void)state;
    open_stage(&told);
    keep(&told);
    come_cold(&told);
    runtime_export(told.t.actor);
    assert_int_equal(told.t.error, ERR_BUSY); // it has to hear of it first
    runtime_turn(told.t.actor, 1);
    assert_string_equal(told.events, "1.0 3.0 ");
    (void)notes(&told, NOTE_LOST, GATEWAY);
    come_cold(&told);
    runtime_turn(told.t.actor, 2);
    runtime_turn(told.t.actor, 3);
    assert_string_equal(told.events, "1.0 3.0 4.1 3.0 4.4 ");
    runtime_turn(told.t.actor, 4);
    come_cold(&told);
    (void)returns(&told, OTHER, 0, ""); // before it heard of it: it knows nothing
    assert_string_equal(told.events, "1.0 3.0 4.1 3.0 4.4 3.0 ");
    come_cold(&told);
    runtime_gateway_gone(told.t.runtime, OTHER); // nor what it has lost
    runtime_turn(told.t.actor, 5);
    runtime_turn(told.t.actor, 6);
    assert_string_equal(told.events, "1.0 3.0 4.1 3.0 4.4 3.0 3.0 4.4 ");
    runtime_rig_close(&told.t);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_lost_comes_back_and_gets_what_it_missed),
        cmocka_unit_test(a_line_that_hangs_is_kicked),
        cmocka_unit_test(a_return_that_comes_late_takes_nobodys_place),
        cmocka_unit_test(it_is_kept_for_a_time),
        cmocka_unit_test(who_did_not_hear_of_that_comes_anew),
        cmocka_unit_test(who_returns_twice_by_one_line_is_there),
        cmocka_unit_test(one_that_comes_cold_hears_whether_its_client_is_there),
        cmocka_unit_test(who_says_so_or_is_kicked_does_not_return),
        cmocka_unit_test(another_client_takes_its_place),
        cmocka_unit_test(what_is_acknowledged_is_not_sent_again),
        cmocka_unit_test(a_gateway_that_was_away_gets_the_rest_again),
        cmocka_unit_test(what_it_missed_moves_with_its_actor),
        cmocka_unit_test(one_that_goes_on_as_another_has_left),
        cmocka_unit_test(one_that_comes_back_is_told_again),
        cmocka_unit_test(one_that_is_away_is_told_when_it_is_back),
        cmocka_unit_test(a_new_client_stays),
        cmocka_unit_test(a_kind_may_refuse_a_second_client),
        cmocka_unit_test(nobody_is_refused_for_itself),
        cmocka_unit_test(of_two_that_come_again_the_newer_one_stays_though_none_may_be_replaced),
        cmocka_unit_test(a_kind_may_keep_none),
        cmocka_unit_test(one_that_does_not_want_it_back_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_REBINDONCE, M_AWAYANEW};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
