/* SPDX-License-Identifier: Apache-2.0
 *
 * Random histories over every command of the replicated state: what state.db and a snapshot bring
 * back equals the state in memory, field by field and by its digest. A field that no history gives
 * a value proves nothing, so each must have had one.
 */
#include "storage/state/state_sqlite.h"

#include "base/prng.h"
#include "sim/same.h"
#include "tests/command.h"
#include "txn/state/suspect.h"
#include "wire/versions.h"

#include "tests/test.h"

#include <stdio.h>

enum { HISTORIES = 40, COMMANDS = 300, ROUNDS = 5 };

/* ---- a history ---- */

struct history {
    struct prng random;
    struct state state;
    struct state_db *db;
    uint64_t entry;
    uint64_t time_us;
    size_t accepted[256]; /* by the number of the command's field */
};

static uint64_t pick(struct history *h, uint64_t low, uint64_t high)
{
    return prng_between(&h->random, low, high);
}

static void give(struct history *h, Rh__Command__BodyCase body, void *message)
{
    Rh__Command command = RH__COMMAND__INIT;
    struct state_result result;

    h->time_us += pick(h, 1, 40) * 1000000;
    command.time_us = h->time_us;
    command.proposer = 1;
    command.body_case = body;
    command.init = message; // any member of the union
    state_apply(&h->state, &command, &result);
    state_check(&h->state);
    state_db_apply(h->db, &h->state, &command, &result);
    state_db_commit(h->db, ++h->entry);
    h->accepted[body] += result.accepted;
    state_result_fini(&result);
}

static const char *const node_names[] = {"n1", "n2", "n3", "n4", "m1", "m2"};

static const char *any_name(struct history *h)
{
    return node_names[pick(h, 0, sizeof node_names / sizeof *node_names - 1)];
}

static const struct state_node *any_node(struct history *h)
{
    return h->state.node_count == 0 ? NULL : &h->state.node[pick(h, 0, h->state.node_count - 1)];
}

/* Ids of one to three bytes, so that one begins with another. */
static void any_actor(struct history *h, Rh__Actor *actor, char id[16])
{
    const int size = snprintf(id, 16, "%0*u", (int)pick(h, 1, 3), (unsigned)pick(h, 0, 2));

    *actor = (Rh__Actor)RH__ACTOR__INIT;
    actor->kind = (uint32_t)pick(h, 0, 1) * 2 + 20;
    actor->id = proto_bytes(bytes_of(id, (size_t)size));
}

static void do_register(struct history *h)
{
    const char *name = any_name(h);
    const struct state_node *known = state_node_named(&h->state, name);
    Rh__CommandRegister in = registration(name, prng_u64(&h->random) | 1, 0);
    Rh__Kind kind[3] = {RH__KIND__INIT, RH__KIND__INIT, RH__KIND__INIT};
    Rh__Kind *kinds[] = {&kind[0], &kind[1], &kind[2]};
    Rh__Actor actor[2] = {RH__ACTOR__INIT, RH__ACTOR__INIT};
    Rh__Actor *suspects[] = {&actor[0], &actor[1]};
    char id[2][16];

    kind[0].number = 20;
    kind[0].name = proto_text("boss");
    kind[0].placement = PLACE_SINGLETON;
    kind[1].number = 21;
    kind[1].name = proto_text("clock");
    kind[1].placement = PLACE_DAEMONS;
    kind[1].daemons = 3;
    kind[2].number = 22;
    kind[2].name = proto_text("player");
    in.kinds = kinds;
    in.n_kinds = h->state.format < FLEET_FORMAT_KINDS ? 3 : (size_t)pick(h, 1, 3);
    if (name[0] == 'm') {
        in.role = proto_text("match");
        kind[0].number = 30;
        kind[0].name = proto_text("match");
        kind[0].placement = PLACE_HASH;
        in.n_kinds = 1;
    }
    in.alone = prng_chance(&h->random, 20);
    in.weight = (uint32_t)pick(h, 1, 3);
    if (known != NULL) {
        in.replaces = known->incarnation;
        in.died = prng_chance(&h->random, 70) ? known->incarnation : 0;
        in.suspects = suspects;
        in.n_suspects = 2;
        for (size_t i = 0; i < 2; i++) {
            any_actor(h, &actor[i], id[i]);
        }
    }
    give(h, RH__COMMAND__BODY_REGISTER_, &in);
}

/* A random operation that may be legal: mostly a move between nodes. */
static struct ring_op any_op(struct history *h)
{
    const struct ring *r = &h->state.view.ring;
    const size_t at = pick(h, 0, r->vnode_count - 1);
    const struct ring_vnode *v = &r->vnode[at];
    const struct state_node *to = any_node(h);
    struct ring_op op = {.kind = RING_MOVE, .vnode = v->id, .from = v->owner, .to = to->slot};

    if (prng_chance(&h->random, 15)) {
        op = (struct ring_op){.kind = RING_SPLIT,
                              .vnode = v->id,
                              .other = (uint32_t)pick(h, 5000, 9000),
                              .at = v->from + 1};
    } else if (prng_chance(&h->random, 15) && at + 1 < r->vnode_count) {
        op = (struct ring_op){.kind = RING_MERGE, .vnode = v->id, .other = v[1].id};
    }
    return op;
}

static void do_begin(struct history *h)
{
    const struct state *s = &h->state;
    const struct state_txn *last = s->txn_count == 0 ? NULL : &s->txn[s->txn_count - 1];
    Rh__CommandBegin in = RH__COMMAND_BEGIN__INIT;
    struct ring_op ops[2];

    if (s->node_count == 0) {
        return;
    }
    ops[0] = any_op(h);
    ops[1] = any_op(h);
    in.n_ops = pick(h, 1, 2);
    in.ops = view_wire_ops(ops, in.n_ops);
    in.base_version = s->view.ring.version;
    in.supersedes = last != NULL && prng_chance(&h->random, 20) ? last->number : 0;
    in.why = proto_text("a history");
    give(h, RH__COMMAND__BODY_BEGIN, &in);
    for (size_t i = 0; i < in.n_ops; i++) {
        mem_free(in.ops[i]);
    }
    mem_free(in.ops);
}

static void do_decide(struct history *h)
{
    const struct state *s = &h->state;
    Rh__CommandCommit commit_in = RH__COMMAND_COMMIT__INIT;
    Rh__CommandAbort abort_in = RH__COMMAND_ABORT__INIT;
    const struct state_txn *t;
    uint64_t voted[4];

    if (s->txn_count == 0) {
        return;
    }
    t = &s->txn[pick(h, s->txn_count > 8 ? s->txn_count - 8 : 0, s->txn_count - 1)];
    if (prng_chance(&h->random, 25)) {
        abort_in.txn = t->number;
        abort_in.why = proto_text("its deadline passed");
        give(h, RH__COMMAND__BODY_ABORT, &abort_in);
        return;
    }
    commit_in.txn = t->number;
    commit_in.voted = voted;
    for (size_t i = 0; i < t->part_count && i < 4; i++) {
        voted[commit_in.n_voted++] = t->parts[i].incarnation;
    }
    give(h, RH__COMMAND__BODY_COMMIT, &commit_in);
}

static void do_desire(struct history *h)
{
    Rh__CommandDesire in = RH__COMMAND_DESIRE__INIT;

    in.name = proto_text(any_name(h));
    in.weight = (uint32_t)pick(h, 0, 4);
    in.leaving = (uint32_t)pick(h, DESIRE_KEEP, DESIRE_STOP);
    in.wish = prng_u64(&h->random);
    in.seen = h->state.number;
    give(h, RH__COMMAND__BODY_DESIRE, &in);
}

static void do_fence(struct history *h)
{
    const struct state_node *n = any_node(h);
    Rh__CommandFence in = RH__COMMAND_FENCE__INIT;

    if (n != NULL) {
        in.slot = n->slot;
        in.incarnation = n->incarnation;
        in.clean = prng_chance(&h->random, 50);
        give(h, RH__COMMAND__BODY_FENCE, &in);
    }
}

static void do_reassign(struct history *h)
{
    const struct ring *r = &h->state.view.ring;
    const struct state_node *n = any_node(h);
    Rh__CommandReassign in = RH__COMMAND_REASSIGN__INIT;
    struct ring_op op = {.kind = RING_MOVE};
    Rh__Suspect suspect = RH__SUSPECT__INIT;
    Rh__Suspect *suspects = &suspect;
    Rh__Actor actor;
    char id[16];

    for (size_t i = 0; n != NULL && i < r->vnode_count; i++) {
        if (r->vnode[i].owner == n->slot) {
            op.vnode = r->vnode[i].id;
        }
    }
    if (n != NULL) {
        op.from = n->slot;
        op.to = any_node(h)->slot;
        in.slot = n->slot;
        in.incarnation = n->incarnation;
        in.n_moves = 1;
        in.moves = view_wire_ops(&op, 1);
        any_actor(h, &actor, id);
        suspect.actor = &actor;
        suspect.before = any_node(h)->incarnation;
        in.suspects = &suspects;
        in.n_suspects = 1;
        give(h, RH__COMMAND__BODY_REASSIGN, &in);
        mem_free(in.moves[0]);
        mem_free(in.moves);
    }
}

static void do_deregister(struct history *h)
{
    const struct state_node *n = any_node(h);
    Rh__CommandDeregister in = RH__COMMAND_DEREGISTER__INIT;

    if (n != NULL) {
        in.slot = n->slot;
        in.incarnation = n->incarnation;
        give(h, RH__COMMAND__BODY_DEREGISTER, &in);
    }
}

static void do_voter(struct history *h)
{
    Rh__CommandVoter in = RH__COMMAND_VOTER__INIT;
    uint64_t group[5];

    in.id = pick(h, 1, 9);
    in.identity = prng_u64(&h->random);
    in.address = proto_text(prng_chance(&h->random, 50) ? "" : "127.0.0.1:7400");
    in.group = group;
    if (prng_chance(&h->random, 50)) {
        group[in.n_group++] = in.id;
        while (in.n_group < 5) {
            group[in.n_group++] = pick(h, 1, 9);
        }
    }
    give(h, RH__COMMAND__BODY_VOTER, &in);
}

static void do_quarantine(struct history *h)
{
    Rh__CommandQuarantine in = RH__COMMAND_QUARANTINE__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;

    actor.kind = 20;
    actor.id = proto_bytes(bytes_of("00", pick(h, 1, 2)));
    in.actor = &actor;
    in.add = prng_chance(&h->random, 70);
    give(h, RH__COMMAND__BODY_QUARANTINE, &in);
}

static void do_pin(struct history *h)
{
    const struct ring *ring = &h->state.view.ring;
    Rh__CommandPin in = RH__COMMAND_PIN__INIT;
    Rh__Pin pin = RH__PIN__INIT;
    Rh__Pin *list[] = {&pin};
    Rh__Actor actor;
    char id[16];

    any_actor(h, &actor, id);
    if (ring->vnode_count > 0 && prng_chance(&h->random, 50)) {
        const struct ring_vnode *v = &ring->vnode[pick(h, 0, ring->vnode_count - 1)];

        pin.from = v->from;
        pin.to = ring_end(ring, v);
    } else {
        pin.actor = &actor;
    }
    pin.node = proto_text(any_name(h));
    pin.waits = prng_chance(&h->random, 30);
    in.add = in.remove = list;
    if (prng_chance(&h->random, 60)) {
        in.n_add = 1;
    } else {
        in.n_remove = 1;
    }
    give(h, RH__COMMAND__BODY_PIN, &in);
}

/* The word of a node about ids that it may own, or an operator's. */
static void do_remember(struct history *h)
{
    const struct state_node *node = any_node(h);
    Rh__CommandRemember in = RH__COMMAND_REMEMBER__INIT;
    Rh__RememberRow row[4];
    Rh__RememberRow *rows[4];
    Rh__Actor actor[4];
    char id[4][16];

    for (size_t i = 0; i < 4; i++) {
        any_actor(h, &actor[i], id[i]);
        actor[i].kind = (uint32_t)pick(h, 0, 1) * 8 + 22;
        row[i] = (Rh__RememberRow)RH__REMEMBER_ROW__INIT;
        row[i].actor = &actor[i];
        row[i].forget = prng_chance(&h->random, 30);
        rows[i] = &row[i];
    }
    in.rows = rows;
    in.n_rows = (size_t)pick(h, 1, 4);
    if (node != NULL && prng_chance(&h->random, 90)) {
        in.slot = node->slot;
        in.incarnation = node->incarnation;
    }
    give(h, RH__COMMAND__BODY_REMEMBER, &in);
}

static void do_small(struct history *h)
{
    Rh__CommandLease lease = RH__COMMAND_LEASE__INIT;
    Rh__CommandDaemons daemons = RH__COMMAND_DAEMONS__INIT;
    Rh__CommandFormat format = RH__COMMAND_FORMAT__INIT;
    Rh__CommandNote note = RH__COMMAND_NOTE__INIT;
    Rh__CommandSettled settled = RH__COMMAND_SETTLED__INIT;

    switch (pick(h, 0, 4)) {
    case 0:
        lease.lease_us = pick(h, 1, 60) * 1000000;
        give(h, RH__COMMAND__BODY_LEASE, &lease);
        return;
    case 1:
        daemons.name = proto_text("clock");
        daemons.count = (uint32_t)pick(h, 0, 9);
        give(h, RH__COMMAND__BODY_DAEMONS, &daemons);
        return;
    case 2:
        format.format = FLEET_FORMAT;
        give(h, RH__COMMAND__BODY_FORMAT, &format);
        return;
    case 3:
        note.subject = proto_text("node n2");
        note.what = proto_text("fix");
        give(h, RH__COMMAND__BODY_NOTE, &note);
        return;
    default:
        give(h, RH__COMMAND__BODY_SETTLED, &settled);
    }
}

static void any_command(struct history *h)
{
    static void (*const some[])(struct history *) = {
        do_register, do_register, do_begin,  do_begin,      do_begin,    do_begin,
        do_decide,   do_decide,   do_desire, do_fence,      do_fence,    do_reassign,
        do_reassign, do_reassign, do_voter,  do_deregister, do_voter,    do_quarantine,
        do_small,    do_pin,      do_pin,    do_remember,   do_remember,
    };
    some[pick(h, 0, sizeof some / sizeof *some - 1)](h);
}

static void history_begin(struct history *h, uint64_t seed)
{
    Rh__CommandInit in = RH__COMMAND_INIT__INIT;

    *h = (struct history){.random = {seed}, .time_us = 1000};
    assert_int_equal(state_db_open(&h->db, NULL), ERR_OK);
    state_init(&h->state);
    in.cluster = proto_text("test");
    in.fleet_high = prng_u64(&h->random) | 1;
    in.fleet_low = prng_u64(&h->random);
    in.key0 = prng_u64(&h->random);
    in.key1 = prng_u64(&h->random);
    in.grid = RING_GRID_MIN;
    in.vnodes_per_weight = TEST_VNODES;
    in.lease_us = 3000000;
    in.era = (uint32_t)pick(h, 1, 9);
    give(h, RH__COMMAND__BODY_INIT, &in);
}

/* A coordinator starts from its snapshot, and goes on with what that brought back. */
static void bring_back(struct history *h)
{
    struct buffer snapshot = {0};
    struct state_db *other = NULL;
    struct state copy;

    state_db_snapshot(h->db, &h->state, &snapshot);
    assert_int_equal(state_db_open(&other, NULL), ERR_OK);
    state_init(&copy);
    assert_true(state_db_restore(other, buffer_bytes(&snapshot), &copy));
    const char *what = same_state(&h->state, &copy);
    if (what != NULL) {
        fail_msg("%s did not come back", what);
    }
    state_fini(&h->state);
    state_db_close(h->db);
    h->state = copy;
    h->db = other;
    buffer_fini(&snapshot);
}

static void what_comes_back_is_what_was_applied(void **state)
{
    static struct history h;
    size_t accepted[256] = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        history_begin(&h, seed);
        h.state.settling = seed % 2 == 0; // as a restore leaves it
        for (int round = 0; round < ROUNDS; round++) {
            for (int i = 0; i < COMMANDS / ROUNDS; i++) {
                any_command(&h);
            }
            bring_back(&h);
        }
        for (size_t i = 0; i < 256; i++) {
            accepted[i] += h.accepted[i];
        }
        state_fini(&h.state);
        state_db_close(h.db);
    }
    for (size_t i = RH__COMMAND__BODY_INIT; i <= RH__COMMAND__BODY_LEASE; i++) {
        assert_int_not_equal(accepted[i], 0); // each was taken somewhere
    }
    assert_int_not_equal(accepted[RH__COMMAND__BODY_DAEMONS], 0);
    assert_int_not_equal(accepted[RH__COMMAND__BODY_QUARANTINE], 0);
    assert_int_not_equal(accepted[RH__COMMAND__BODY_PIN], 0);
    assert_int_not_equal(accepted[RH__COMMAND__BODY_REMEMBER], 0);
    if (same_never_valued() != NULL) {
        fail_msg("no history gave %s a value", same_never_valued());
    }
}

static void put_note(struct history *h, char *subject, char *what)
{
    Rh__CommandNote note = RH__COMMAND_NOTE__INIT;

    note.subject = subject;
    note.what = what;
    give(h, RH__COMMAND__BODY_NOTE, &note);
}

/* An operator's question that comes again, to the next leader, is noted once; asked for again
 * later, it is noted again. */
static void the_newest_note_of_a_subject_is_known(void **state)
{
    static struct history h;
    char group[] = "coordinators";
    char node[] = "node n2";
    char wish[] = "wished: 1,2,3";
    char other[] = "wished: 2,3,4";

    (void)state;
    history_begin(&h, 1);
    assert_false(state_db_ends_with_note(h.db, group, wish));
    put_note(&h, group, wish);
    put_note(&h, node, other);
    assert_true(state_db_ends_with_note(h.db, group, wish));
    put_note(&h, group, other);
    assert_false(state_db_ends_with_note(h.db, group, wish));
    assert_true(state_db_has_note(h.db, group, wish));
    state_fini(&h.state);
    state_db_close(h.db);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(what_comes_back_is_what_was_applied),
        cmocka_unit_test(the_newest_note_of_a_subject_is_known),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}
