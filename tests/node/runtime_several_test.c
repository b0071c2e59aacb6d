/* SPDX-License-Identifier: Apache-2.0
 *
 * Several clients of one actor, as its runtime keeps them (docs/decisions/027-several-sessions.md).
 */
#include "tests/test.h"

#include "tests/node/runtime_rig.h"

enum { GATEWAY = 70, MAX = 3, TOLD = 16 };

/* An actor that notes what it is told. */
struct devices {
    struct runtime_rig t;
    struct rh_actor_ops ops;
    struct rh_session told[TOLD];
    size_t told_count;
    uint64_t meant; /* session, for what it is asked; 0 = all */
    int result;     /* of what it was asked */
};

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    struct devices *d = instance;
    const struct rh_bytes me = {"me", 2};
    const char *verb = message->payload.data;

    if (verb[0] == 'k') {
        d->result = d->meant == 0 ? rh_kick(actor, RH_KICK_GAME, "go")
                                  : rh_kick_one(actor, d->meant, RH_KICK_GAME, "go");
    } else if (verb[0] == 'r') {
        d->result = d->meant == 0 ? rh_rebind(actor, 4, me) : rh_rebind_one(actor, d->meant, 4, me);
    } else {
        d->result = d->meant == 0 ? rh_push(actor, message->payload)
                                  : rh_push_one(actor, d->meant, message->payload);
    }
}

static int on_session(struct rh_actor *actor, void *instance, const struct rh_session *event)
{
    struct devices *d = instance;

    (void)actor;
    assert_true(d->told_count < TOLD);
    d->told[d->told_count++] = *event;
    return RH_OK;
}

static void open_stage(struct devices *d)
{
    *d = (struct devices){.ops = {.abi = RH_ABI,
                                  .size = sizeof d->ops,
                                  .name = "devices",
                                  .activate = runtime_rig_activate,
                                  .message = on_message,
                                  .deactivate = runtime_rig_deactivate,
                                  .session = on_session,
                                  .sessions = RH_SESSIONS_ALLOW,
                                  .sessions_max = MAX}};
    runtime_rig_open(&d->t, &d->ops, d);
}

static struct note note_of(enum note_type type, uint64_t device)
{
    return (struct note){.type = (uint8_t)type,
                         .gateway = GATEWAY,
                         .connection = device,
                         .round = 1,
                         .why = NOTE_LOST_CLOSED,
                         .key = 1000 + device,
                         .session = 2000 + device};
}

static void notes(struct devices *d, const struct note *note, enum bound_result result)
{
    runtime_rig_note(&d->t, note);
    assert_int_equal(runtime_rig_bound(&d->t).result, result);
}

/* It is kept when its connection is lost. Its session. */
static uint64_t binds(struct devices *d, uint64_t device)
{
    const struct note note = note_of(NOTE_KEEP, device);

    notes(d, &note, BOUND_NEW);
    return d->told[d->told_count - 1].session;
}

static void loses(struct devices *d, uint64_t device)
{
    const struct note note = note_of(NOTE_LOST, device);

    runtime_rig_note(&d->t, &note);
}

/* What it was told last. */
static void told(const struct devices *d, enum rh_session_type type, uint64_t session,
                 uint64_t former)
{
    const struct rh_session *last = &d->told[d->told_count - 1];

    assert_int_equal(last->type, type);
    assert_int_equal(last->session, session);
    assert_int_equal(last->former, former);
}

/* How many push records that came to. */
static size_t asks(struct devices *d, const char *what, uint64_t meant, int result)
{
    const size_t before = d->t.told[VERB_PUSH];

    d->meant = meant;
    d->result = -1;
    (void)runtime_rig_call(&d->t, what);
    assert_int_equal(d->result, result);
    return d->t.told[VERB_PUSH] - before;
}

static void moves(struct devices *d, bool warm)
{
    runtime_export(d->t.actor);
    assert_int_equal(d->t.error, ERR_OK);
    runtime_discard(d->t.actor, RH_MOVED);
    const struct runtime_entry entry = {.ops = &d->ops,
                                        .shared = d,
                                        .has_state = warm,
                                        .bond = buffer_bytes(&d->t.bond),
                                        .kind = 3,
                                        .fence = 9};
    runtime_rig_enter(&d->t, &entry);
}

static void each_is_pushed_to_alone_or_all_are(void **state)
{
    struct devices d;

    (void)state;
    open_stage(&d);
    const uint64_t one = binds(&d, 1);
    told(&d, RH_SESSION_BOUND, one, 0);
    const uint64_t two = binds(&d, 2);
    told(&d, RH_SESSION_BOUND, two, 0);
    assert_true(one != two && one != 0 && two != 0);
    assert_int_equal(asks(&d, "all", 0, RH_OK), 2);
    assert_int_equal(asks(&d, "x", one, RH_OK), 1);
    assert_true(d.t.push.connection == 1 && d.t.push.number == 2);
    assert_int_equal(asks(&d, "x", two, RH_OK), 1);
    assert_true(d.t.push.connection == 2 && d.t.push.number == 2);
    assert_int_equal(asks(&d, "x", one + 1, RH_NO_SESSION), 0);

    const struct note cast = {.type = NOTE_PUSH, .payload = bytes_of("all", 3)};
    const size_t before = d.t.told[VERB_PUSH];
    runtime_rig_note(&d.t, &cast);
    assert_int_equal(d.t.told[VERB_PUSH] - before, 2);
    loses(&d, 1);
    told(&d, RH_SESSION_LOST, one, 0);
    assert_int_equal(asks(&d, "all", 0, RH_OK), 1); // and one is kept
    assert_int_equal(d.t.push.connection, 2);
    runtime_rig_close(&d.t);
}

static void each_comes_back_to_its_own(void **state)
{
    struct devices d;

    (void)state;
    open_stage(&d);
    const uint64_t one = binds(&d, 1);
    const uint64_t two = binds(&d, 2);
    loses(&d, 1);
    assert_int_equal(asks(&d, "missed", 0, RH_OK), 1);
    struct note back = note_of(NOTE_RETURN, 1);
    back.connection = 9;
    notes(&d, &back, BOUND_KEPT);
    told(&d, RH_SESSION_RESUMED, one, 0);
    assert_true(d.t.push.connection == 9 && d.t.push.number == 1 &&
                runtime_rig_bound(&d.t).next == 1);
    // The other one's line hung; neither key nor name of another gets it.
    back = note_of(NOTE_RETURN, 2);
    back.connection = 10;
    back.key++;
    notes(&d, &back, BOUND_GONE);
    back.session = 77;
    notes(&d, &back, BOUND_GONE);
    back = note_of(NOTE_RETURN, 2);
    back.connection = 10;
    notes(&d, &back, BOUND_KEPT);
    told(&d, RH_SESSION_RESUMED, two, 0);
    assert_int_equal(asks(&d, "x", two, RH_OK), 1);
    assert_int_equal(d.t.push.connection, 10);
    assert_int_equal(d.told_count, 5);
    runtime_rig_close(&d.t);
}

/* UNBIND got lost, and the connection goes on with the session that another one had. */
static void a_connection_has_one_session(void **state)
{
    struct devices d;

    (void)state;
    open_stage(&d);
    const uint64_t one = binds(&d, 1);
    const uint64_t two = binds(&d, 2);
    struct note back = note_of(NOTE_RETURN, 1);
    back.connection = 2;
    notes(&d, &back, BOUND_KEPT);
    told(&d, RH_SESSION_RESUMED, one, 0);
    runtime_turn(d.t.actor, 1);
    told(&d, RH_SESSION_LOST, two, 0);
    assert_int_equal(d.told[d.told_count - 1].why, RH_LOST_CLOSED);
    loses(&d, 2); // its end is that of the first one
    told(&d, RH_SESSION_LOST, one, 0);
    assert_int_equal(asks(&d, "kept", two, RH_OK), 0);
    runtime_rig_close(&d.t);
}

static void one_more_takes_the_place_of_the_oldest(void **state)
{
    struct devices d;

    (void)state;
    open_stage(&d);
    const uint64_t one = binds(&d, 1);
    const uint64_t two = binds(&d, 2);
    const uint64_t three = binds(&d, 3);
    const uint64_t four = binds(&d, 4);
    told(&d, RH_SESSION_REPLACED, four, one);
    assert_true(d.t.push.type == PUSH_KICK && d.t.push.code == KICK_REPLACED &&
                d.t.push.connection == 1);
    loses(&d, 1); // of one that is none any more
    assert_int_equal(d.told_count, 4);
    // One that is away is in nobody's way, though it came later.
    loses(&d, 3);
    const uint64_t five = binds(&d, 5);
    told(&d, RH_SESSION_BOUND, five, 0);
    assert_int_equal(asks(&d, "x", three, RH_NO_SESSION), 0);
    assert_int_equal(asks(&d, "x", two, RH_OK), 1);
    // Nor is one that was told to go.
    (void)asks(&d, "kick", four, RH_OK);
    told(&d, RH_SESSION_BOUND, five, 0);
    const uint64_t six = binds(&d, 6);
    told(&d, RH_SESSION_REPLACED, six, four);
    assert_int_equal(asks(&d, "all", 0, RH_OK), MAX);
    runtime_rig_close(&d.t);
}

/* fleet_sim --streams always --profile sessions --seed 130011210: its gateway was missed, and one
 * more was bound in front of the turn that tells so. */
static void who_may_come_back_stays_longer_than_who_was_told_to_go(void **state)
{
    struct devices d;

    (void)state;
    open_stage(&d);
    struct note first = note_of(NOTE_KEEP, 1);
    first.gateway = GATEWAY + 1;
    notes(&d, &first, BOUND_NEW);
    const uint64_t one = d.told[0].session;
    (void)binds(&d, 2);
    const uint64_t three = binds(&d, 3);
    (void)asks(&d, "rebind", three, RH_OK);
    runtime_gateway_gone(d.t.runtime, GATEWAY + 1);
    const uint64_t four = binds(&d, 4);
    told(&d, RH_SESSION_REPLACED, four, three);
    runtime_turn(d.t.actor, 1);
    told(&d, RH_SESSION_LOST, one, 0);
    const struct note back = note_of(NOTE_RETURN, 1);
    notes(&d, &back, BOUND_KEPT);
    told(&d, RH_SESSION_RESUMED, one, 0);
    runtime_rig_close(&d.t);
}

/* Four come again when their actor has lost its memory: the kick of one was lost with it. */
static void of_those_that_come_again_the_newest_stay(void **state)
{
    struct devices d;

    (void)state;
    open_stage(&d);
    for (uint64_t device = 1; device <= 4; device++) {
        struct note again = note_of(NOTE_RENEW, device);

        again.stamp = (struct bond_stamp){.fence = 5, .count = 10 - device};
        notes(&d, &again, device <= MAX ? BOUND_NEW : BOUND_OLD);
    }
    assert_int_equal(d.told_count, MAX);
    struct note again = note_of(NOTE_RENEW, 5);
    again.stamp = (struct bond_stamp){.fence = 6, .count = 1};
    notes(&d, &again, BOUND_NEW);
    told(&d, RH_SESSION_REPLACED, d.told[3].session, d.told[2].session);
    runtime_rig_close(&d.t);
}

/* fleet_sim --profile sessions --seed 74001894: it was on its way when its client was passed on,
 * and another one came. */
static void a_renewal_brings_back_nobody_whose_place_is_taken(void **state)
{
    struct devices d;

    (void)state;
    open_stage(&d);
    (void)binds(&d, 1);
    (void)binds(&d, 2);
    const uint64_t three = binds(&d, 3);
    const struct bond_stamp newest = runtime_rig_bound(&d.t).stamp;
    (void)asks(&d, "rebind", three, RH_OK);
    const uint64_t four = binds(&d, 4);
    told(&d, RH_SESSION_REPLACED, four, three);
    struct note again = note_of(NOTE_RENEW, 3);
    again.stamp = newest; // it came last of those that are there
    again.round = 2;
    notes(&d, &again, BOUND_OLD);
    told(&d, RH_SESSION_REPLACED, four, three);
    assert_int_equal(asks(&d, "all", 0, RH_OK), MAX);
    // Nor where the actor moved meanwhile: fleet_sim --profile sessions --seed 150008612.
    moves(&d, true);
    notes(&d, &again, BOUND_OLD);
    moves(&d, true);
    notes(&d, &again, BOUND_OLD);
    assert_int_equal(asks(&d, "all", 0, RH_OK), MAX);
    runtime_rig_close(&d.t);
}

static void all_move_along(void **state)
{
    struct devices d;

    (void)state;
    open_stage(&d);
    const uint64_t one = binds(&d, 1);
    const uint64_t two = binds(&d, 2);
    const struct note plain = note_of(NOTE_BIND, 3);
    notes(&d, &plain, BOUND_NEW);
    const uint64_t three = d.told[2].session;
    assert_int_equal(asks(&d, "all", 0, RH_OK), 3);
    loses(&d, 2);
    moves(&d, true);
    assert_int_equal(d.t.told[VERB_BIND], 5); // the gateway of the two that are there
    assert_int_equal(d.told_count, 4);
    assert_int_equal(asks(&d, "x", one, RH_OK), 1);
    assert_true(d.t.push.connection == 1 && d.t.push.number == 2);
    assert_int_equal(asks(&d, "x", three, RH_OK), 1);
    assert_true(d.t.push.connection == 3 && d.t.push.number == 2);
    assert_int_equal(asks(&d, "y", two, RH_OK), 0);
    struct note back = note_of(NOTE_RETURN, 2);
    back.connection = 9;
    const size_t before = d.t.told[VERB_PUSH];
    notes(&d, &back, BOUND_KEPT);
    told(&d, RH_SESSION_RESUMED, two, 0);
    assert_int_equal(d.t.told[VERB_PUSH] - before, 2); // all, y
    // Without its memory it is told of each.
    moves(&d, false);
    runtime_turn(d.t.actor, 1);
    assert_int_equal(d.told_count, 8);
    for (size_t i = 5; i < 8; i++) {
        assert_int_equal(d.told[i].type, RH_SESSION_RESUMED);
        assert_int_equal(d.told[i].why, RH_RESUMED_AFRESH);
    }
    runtime_rig_close(&d.t);
}

/* A kind may allow fewer where its actor comes to: who is there stays. */
static void who_came_along_stays_though_fewer_may(void **state)
{
    struct devices d;

    (void)state;
    open_stage(&d);
    const uint64_t one = binds(&d, 1);
    const uint64_t two = binds(&d, 2);
    d.ops.sessions = RH_SESSIONS_KICK_OLD;
    moves(&d, true);
    assert_int_equal(asks(&d, "all", 0, RH_OK), 2);
    loses(&d, 2);
    struct note back = note_of(NOTE_RETURN, 2);
    back.connection = 9;
    notes(&d, &back, BOUND_KEPT);
    told(&d, RH_SESSION_RESUMED, two, 0);
    const uint64_t three = binds(&d, 3);
    told(&d, RH_SESSION_REPLACED, three, one);
    runtime_rig_close(&d.t);
}

static void one_is_kicked_or_rebound(void **state)
{
    struct devices d;

    (void)state;
    open_stage(&d);
    const uint64_t one = binds(&d, 1);
    const uint64_t two = binds(&d, 2);
    const uint64_t three = binds(&d, 3);
    assert_int_equal(asks(&d, "kick", two, RH_OK), 1);
    assert_true(d.t.push.type == PUSH_KICK && d.t.push.connection == 2);
    assert_int_equal(asks(&d, "rebind", one, RH_OK), 1);
    assert_true(d.t.push.type == PUSH_REBIND && d.t.push.connection == 1);
    assert_int_equal(asks(&d, "all", 0, RH_OK), 1);
    assert_int_equal(d.t.push.connection, 3);
    assert_int_equal(asks(&d, "kick", one, RH_NO_SESSION), 0);
    struct note gone = note_of(NOTE_LOST, 1);
    gone.why = NOTE_LOST_REBOUND;
    runtime_rig_note(&d.t, &gone);
    told(&d, RH_SESSION_LOST, one, 0);
    assert_int_equal(asks(&d, "kick", 0, RH_OK), 1);
    assert_int_equal(asks(&d, "kick", three, RH_NO_SESSION), 0);
    assert_int_equal(asks(&d, "all", 0, RH_NO_SESSION), 0);
    runtime_rig_close(&d.t);
}

static void too_many_bonds_are_no_bonds(void **state)
{
    const struct bond b = {.gateway = GATEWAY, .connection = 1, .round = 1, .followed = true};
    struct devices d;

    (void)state;
    open_stage(&d);
    buffer_clear(&d.t.bond);
    for (int i = 0; i < BONDS_MAX + 1; i++) {
        bond_put(&d.t.bond, &b);
    }
    runtime_discard(d.t.actor, RH_MOVED);
    const struct runtime_entry entry = {.ops = &d.ops,
                                        .shared = &d,
                                        .has_state = true,
                                        .bond = buffer_bytes(&d.t.bond),
                                        .kind = 3,
                                        .fence = 9};
    runtime_rig_enter(&d.t, &entry);
    assert_int_equal(asks(&d, "x", 0, RH_OK), BONDS_MAX);
    runtime_rig_close(&d.t);
}

static void nor_does_a_resume_of_a_plain_one(void **state)
{
    struct devices d;
    struct note n;

    (void)state;
    open_stage(&d);
    for (uint64_t i = 1; i <= 3; i++) {
        n = note_of(NOTE_BIND, i);
        n.session = n.key = 0;
        notes(&d, &n, BOUND_NEW);
    }
    const uint64_t three = d.told[d.told_count - 1].session;
    const struct bond_stamp newest = runtime_rig_bound(&d.t).stamp;
    (void)asks(&d, "rebind", three, RH_OK);
    n = note_of(NOTE_BIND, 4);
    n.session = n.key = 0;
    notes(&d, &n, BOUND_NEW);
    n = note_of(NOTE_RESUME, 3);
    n.session = n.key = 0;
    n.stamp = newest;
    n.round = 2;
    notes(&d, &n, BOUND_OLD);
    runtime_rig_close(&d.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_pushed_to_alone_or_all_are),
        cmocka_unit_test(each_comes_back_to_its_own),
        cmocka_unit_test(a_connection_has_one_session),
        cmocka_unit_test(one_more_takes_the_place_of_the_oldest),
        cmocka_unit_test(who_may_come_back_stays_longer_than_who_was_told_to_go),
        cmocka_unit_test(of_those_that_come_again_the_newest_stay),
        cmocka_unit_test(a_renewal_brings_back_nobody_whose_place_is_taken),
        cmocka_unit_test(nor_does_a_resume_of_a_plain_one),
        cmocka_unit_test(all_move_along),
        cmocka_unit_test(who_came_along_stays_though_fewer_may),
        cmocka_unit_test(one_is_kicked_or_rebound),
        cmocka_unit_test(too_many_bonds_are_no_bonds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
