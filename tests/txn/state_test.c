/* SPDX-License-Identifier: Apache-2.0
 *
 * Each row of specification §3.1: what is accepted, what it does, what is refused.
 */
#include "tests/command.h"

#include "tests/test.h"

#define ERA (UINT64_C(3) << 40)

static struct state s;

static int setup(void **state)
{
    (void)state;
    init(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    state_fini(&s);
    return 0;
}

static void expect_refused(struct state_result r, const char *why)
{
    assert_false(r.accepted);
    assert_string_equal(r.why, why);
    assert_null(r.delta);
    assert_int_equal(r.aborted_count, 0);
    state_result_fini(&r);
}

static void expect_aborted(struct state_result r, uint64_t txn)
{
    assert_true(r.accepted);
    assert_int_equal(r.aborted_count, 1);
    assert_int_equal(r.aborted[0], txn);
    assert_int_equal(state_txn(&s, txn)->state, TXN_ABORTED);
    state_result_fini(&r);
}

/* n1 owns all; n2 owns nothing. */
static void two_nodes(void)
{
    assert_int_equal(stamp_of(enroll(&s, "n1", 11, 0)), ERA | 1);
    assert_int_equal(stamp_of(enroll(&s, "n2", 12, 0)), ERA | 2);
}

/* Vnodes 4..7 to n2 in one committed transaction. */
static void share_evenly(void)
{
    struct ring_op ops[4];

    for (uint32_t i = 0; i < 4; i++) {
        ops[i] = (struct ring_op){.kind = RING_MOVE, .vnode = 4 + i, .from = 1, .to = 2};
    }
    assert_int_not_equal(stamp_of(commit(&s, stamp_of(begin(&s, ops, 4)))), 0);
}

static void nothing_is_accepted_before_init_and_init_only_once(void **state)
{
    Rh__CommandInit in = RH__COMMAND_INIT__INIT;
    struct state fresh;

    (void)state;
    state_init(&fresh);
    expect_refused(enroll(&fresh, "n1", 1, 0), "the cluster does not exist yet");
    in.cluster = proto_text("x");
    in.grid = 3;
    in.vnodes_per_weight = 8;
    expect_refused(apply(&fresh, RH__COMMAND__BODY_INIT, &in),
                   "a setting of the cluster is out of range");
    state_fini(&fresh);
    in.grid = 14;
    expect_refused(apply(&s, RH__COMMAND__BODY_INIT, &in), "the cluster exists already");
    assert_int_equal(s.number, ERA);
    assert_string_equal(s.cluster, "test");
}

static void the_first_node_gets_the_whole_ring(void **state)
{
    struct state_result r = enroll(&s, "n1", 11, 0);

    (void)state;
    assert_int_equal(r.stamp, ERA | 1);
    assert_int_equal(r.delta->created_vnodes, TEST_VNODES);
    assert_int_equal(r.delta->version, r.stamp);
    assert_int_equal(ring_owned_count(&s.view.ring, 1), TEST_VNODES);
    assert_int_equal(s.view.ring.vnode[0].generation, r.stamp);
    state_result_fini(&r);
}

static void a_replayed_register_draws_nothing(void **state)
{
    const uint64_t first = stamp_of(enroll(&s, "n1", 11, 0));
    struct state_result r = enroll(&s, "n1", 11, 0);

    (void)state;
    assert_true(r.accepted);
    assert_null(r.delta);
    assert_int_equal(r.stamp, first);
    assert_int_equal(s.number, first);
    state_result_fini(&r);
}

static void a_register_must_name_whom_it_replaces(void **state)
{
    (void)state;
    two_nodes();
    expect_refused(enroll(&s, "n1", 21, 0), "another process registered this name in the meantime");
    expect_refused(enroll(&s, "n9", 21, 5), "another process registered this name in the meantime");
    assert_int_equal(stamp_of(enroll(&s, "n1", 21, ERA | 1)), ERA | 3);
    expect_refused(enroll(&s, "n1", 22, ERA | 1),
                   "another process registered this name in the meantime");
}

static void bad_registrations_are_refused(void **state)
{
    Rh__CommandRegister in = registration("", 1, 0);

    (void)state;
    expect_refused(apply(&s, RH__COMMAND__BODY_REGISTER_, &in),
                   "the node's name is empty or too long");
    in = registration("n1", 1, 0);
    in.weight = 0;
    expect_refused(apply(&s, RH__COMMAND__BODY_REGISTER_, &in), "the node's weight is not 1..1000");
    in.weight = 1;
    in.boot_id.len = 3;
    expect_refused(apply(&s, RH__COMMAND__BODY_REGISTER_, &in),
                   "boot id or data id is not 16 bytes");
    in = registration("n1", 0, 0);
    expect_refused(apply(&s, RH__COMMAND__BODY_REGISTER_, &in), "the nonce is missing");
    in.address = proto_text("");
    expect_refused(apply(&s, RH__COMMAND__BODY_REGISTER_, &in),
                   "the node's address is empty or too long");
}

static void a_restart_renews_what_the_node_owns_and_aborts_its_transactions(void **state)
{
    struct state_result r;
    uint64_t txn;

    (void)state;
    two_nodes();
    share_evenly();
    txn = begin_move(&s, 4, 1);
    r = enroll(&s, "n2", 22, ERA | 2);
    assert_int_equal(r.delta->renewed, 2);
    assert_int_equal(ring_find(&s.view.ring, 4)->generation, r.stamp);
    assert_int_equal(ring_find(&s.view.ring, 4)->cold, r.stamp);
    assert_int_equal(ring_find(&s.view.ring, 0)->cold, ERA | 1);
    assert_string_equal(state_txn(&s, txn)->outcome_why, "a participant restarted");
    expect_aborted(r, txn);
}

static void a_restarted_target_aborts_too(void **state)
{
    uint64_t txn;

    (void)state;
    two_nodes();
    txn = begin_move(&s, 0, 2);
    expect_aborted(enroll(&s, "n2", 22, ERA | 2), txn);
    expect_refused(commit(&s, txn), "the transaction is not pending");
}

static void begin_draws_a_number_and_commit_a_version(void **state)
{
    struct state_result r;
    uint64_t txn;

    (void)state;
    two_nodes();
    txn = begin_move(&s, 0, 2);
    assert_int_equal(txn, ERA | 3);
    assert_int_equal(s.view.ring.version, ERA | 2);
    assert_int_equal(state_txn(&s, txn)->part_count, 2);
    r = commit(&s, txn);
    assert_int_equal(r.stamp, ERA | 4);
    assert_int_equal(r.txn, txn);
    assert_int_equal(r.delta->txn, txn);
    assert_int_equal(r.delta->prev_version, ERA | 2);
    assert_int_equal(s.view.ring.version, ERA | 4);
    assert_int_equal(ring_find(&s.view.ring, 0)->owner, 2);
    assert_int_equal(ring_find(&s.view.ring, 0)->generation, ERA | 4);
    assert_int_equal(ring_find(&s.view.ring, 0)->txn, txn);
    assert_int_equal(ring_find(&s.view.ring, 0)->cold, ERA | 1); // drained: cold stays
    state_result_fini(&r);
    expect_refused(commit(&s, txn), "the transaction is not pending");
}

static void versions_follow_commits_not_begins(void **state)
{
    uint64_t first;
    uint64_t second;

    (void)state;
    two_nodes();
    first = begin_move(&s, 0, 2);
    second = begin_move(&s, 1, 2);
    assert_int_equal(stamp_of(commit(&s, second)), ERA | 5);
    assert_int_equal(stamp_of(commit(&s, first)), ERA | 6);
    assert_int_equal(ring_find(&s.view.ring, 0)->owner, 2);
    assert_int_equal(ring_find(&s.view.ring, 1)->owner, 2);
}

static void begin_is_refused_when_it_does_not_fit(void **state)
{
    const struct ring_op good = {.kind = RING_MOVE, .vnode = 0, .from = 1, .to = 2};
    const struct ring_op wrong_owner = {.kind = RING_MOVE, .vnode = 0, .from = 2, .to = 1};
    const struct ring_op stranger = {.kind = RING_MOVE, .vnode = 0, .from = 1, .to = 9};
    const struct ring_op twice[] = {good, {.kind = RING_MOVE, .vnode = 0, .from = 2, .to = 1}};

    (void)state;
    two_nodes();
    expect_refused(begin_at(&s, &good, 1, ERA | 1, 0),
                   "the transaction was computed from an older version");
    expect_refused(begin(&s, &good, 0), "the transaction has no operations, or too many");
    expect_refused(begin(&s, &wrong_owner, 1), "its operations do not fit the ring");
    expect_refused(begin(&s, twice, 2), "its operations do not fit the ring");
    expect_refused(begin(&s, &stranger, 1), "a participant is not registered");
    assert_int_not_equal(begin_move(&s, 0, 2), 0);
    expect_refused(begin(&s, &good, 1), "the transaction touches a vnode of a pending transaction");
    assert_int_equal(s.number, ERA | 3);
}

static void a_split_conflicts_by_both_its_vnodes(void **state)
{
    const struct ring_op split = {.kind = RING_SPLIT, .vnode = 0, .other = 8, .at = 100};
    const struct ring_op same_id = {.kind = RING_SPLIT, .vnode = 1, .other = 8, .at = 2100};
    struct state_result r;
    uint64_t txn;

    (void)state;
    two_nodes();
    txn = stamp_of(begin(&s, &split, 1));
    assert_int_equal(state_txn(&s, txn)->part_count, 0);
    expect_refused(begin(&s, &same_id, 1),
                   "the transaction touches a vnode of a pending transaction");
    assert_int_equal(begin_move(&s, 0, 2), 0);
    r = commit(&s, txn);
    assert_true(r.accepted);
    assert_int_equal(ring_find(&s.view.ring, 8)->generation, ERA | 1);
    state_result_fini(&r);
}

static void a_merge_conflicts_by_both_its_vnodes(void **state)
{
    const struct ring_op split[] = {
        {.kind = RING_SPLIT, .vnode = 0, .other = 8, .at = 100},
        {.kind = RING_SPLIT, .vnode = 1, .other = 9, .at = 2100},
    };
    const struct ring_op merge[] = {
        {.kind = RING_MERGE, .vnode = 0, .other = 8},
        {.kind = RING_MERGE, .vnode = 1, .other = 9},
    };
    struct state_result r;
    uint64_t txn;

    (void)state;
    two_nodes();
    r = commit(&s, stamp_of(begin(&s, split, 2)));
    assert_true(r.accepted);
    state_result_fini(&r);
    txn = begin_move(&s, 8, 2); // a part goes away while it is to be one with its neighbour
    expect_refused(begin(&s, &merge[0], 1),
                   "the transaction touches a vnode of a pending transaction");
    assert_int_not_equal(stamp_of(begin(&s, &merge[1], 1)), 0);
    assert_int_equal(begin_move(&s, 9, 2), 0);
    assert_int_equal(begin_move(&s, 1, 2), 0);
    r = commit(&s, txn);
    assert_true(r.accepted);
    state_result_fini(&r);
    expect_refused(begin(&s, &merge[0], 1), "its operations do not fit the ring");
}

static void commit_needs_every_vote(void **state)
{
    Rh__CommandCommit in = RH__COMMAND_COMMIT__INIT;
    uint64_t voted[] = {ERA | 1};

    (void)state;
    two_nodes();
    in.txn = begin_move(&s, 0, 2);
    in.n_voted = 1;
    in.voted = voted;
    expect_refused(apply(&s, RH__COMMAND__BODY_COMMIT, &in), "a participant's vote is missing");
    assert_int_equal(state_pending_count(&s), 1);
}

static void the_first_outcome_wins(void **state)
{
    uint64_t txn;

    (void)state;
    two_nodes();
    txn = begin_move(&s, 0, 2);
    expect_aborted(abort_of(&s, txn), txn);
    expect_refused(abort_of(&s, txn), "the transaction is not pending");
    expect_refused(commit(&s, txn), "the transaction is not pending");
    assert_int_equal(ring_find(&s.view.ring, 0)->owner, 1);
    assert_int_equal(s.view.ring.version, ERA | 2);
}

static void supersede_aborts_and_begins_in_one_entry(void **state)
{
    const struct ring_op op = {.kind = RING_MOVE, .vnode = 0, .from = 1, .to = 2};
    struct state_result r;
    uint64_t old;

    (void)state;
    two_nodes();
    old = begin_move(&s, 0, 2);
    r = begin_at(&s, &op, 1, s.view.ring.version, old);
    assert_int_equal(r.stamp, ERA | 4);
    assert_int_equal(state_txn(&s, old)->superseded_by, ERA | 4);
    assert_int_equal(state_txn(&s, ERA | 4)->state, TXN_PENDING);
    expect_aborted(r, old);
    expect_refused(begin_at(&s, &op, 1, s.view.ring.version, old),
                   "the transaction that it supersedes has ended");
    // A refused one leaves the old one as it was.
    expect_refused(begin_at(&s, &op, 1, 1, ERA | 4),
                   "the transaction was computed from an older version");
    assert_int_equal(state_txn(&s, ERA | 4)->state, TXN_PENDING);
}

static void desire_changes_weight_and_leaving_and_spares_the_last_node(void **state)
{
    struct state_result r;

    (void)state;
    two_nodes();
    r = desire(&s, "n1", 0, 1);
    assert_true(r.accepted);
    assert_true(r.delta->changed[0]->leaving);
    assert_int_equal(s.view.ring.version, ERA | 3);
    state_result_fini(&r);
    expect_refused(desire(&s, "n2", 0, 1), "the node is the last one");
    expect_refused(desire(&s, "n7", 0, 1), "no such node");
    r = desire(&s, "n1", 0, 1); // wished already
    assert_true(r.accepted);
    assert_null(r.delta);
    state_result_fini(&r);
    assert_int_equal(stamp_of(desire(&s, "n1", 5, 2)), ERA | 4);
    assert_false(state_node(&s, 1)->leaving);
    assert_int_equal(view_member(&s.view, 1)->weight, 5);
}

struct wish {
    enum desire leaving;
    uint64_t number;
    uint64_t seen;
};

static struct state_result wish(struct wish w)
{
    Rh__CommandDesire in = RH__COMMAND_DESIRE__INIT;

    in.name = proto_text("n1");
    in.leaving = w.leaving;
    in.wish = w.number;
    in.seen = w.seen;
    return apply(&s, RH__COMMAND__BODY_DESIRE, &in);
}

static void a_wish_that_comes_late_again_changes_nothing(void **state)
{
    const char *late = "superseded: a later command changed that node";
    struct state_result r;

    (void)state;
    two_nodes();
    assert_int_equal(stamp_of(wish((struct wish){DESIRE_DRAIN, 71, ERA | 2})), ERA | 3);
    r = wish((struct wish){DESIRE_DRAIN, 71, ERA | 2}); // asked again: it has its answer, once
    assert_true(r.accepted && r.stamp == 0 && r.delta == NULL);
    state_result_fini(&r);
    assert_int_equal(stamp_of(wish((struct wish){DESIRE_STAY, 72, ERA | 3})), ERA | 4);
    expect_refused(wish((struct wish){DESIRE_DRAIN, 71, ERA | 2}), late);
    assert_false(state_node(&s, 1)->leaving);
    // Also one that changes nothing supersedes what it did not know of.
    assert_int_equal(stamp_of(wish((struct wish){DESIRE_STAY, 73, ERA | 4})), ERA | 5);
    expect_refused(wish((struct wish){DESIRE_DRAIN, 74, ERA | 4}), late);
    // What has no number, a node's own stop or an older client's wish, has no order.
    (void)stamp_of(desire(&s, "n1", 0, DESIRE_DRAIN));
    assert_true(state_node(&s, 1)->leaving);
    // A restart of the node does not change what its operator wanted last.
    assert_int_not_equal(stamp_of(enroll(&s, "n1", 21, ERA | 1)), 0);
    expect_refused(wish((struct wish){DESIRE_STAY, 72, ERA | 3}), late);
    assert_true(state_node(&s, 1)->leaving);
}

static void a_stop_is_forgotten_at_register_but_a_drain_is_not(void **state)
{
    (void)state;
    two_nodes();
    (void)stamp_of(desire(&s, "n1", 0, 3));
    assert_true(state_node(&s, 1)->leaving);
    (void)stamp_of(enroll(&s, "n1", 21, ERA | 1));
    assert_false(state_node(&s, 1)->leaving);
    (void)stamp_of(desire(&s, "n1", 0, 3));
    (void)stamp_of(desire(&s, "n1", 0, 1)); // the operator wants it too
    (void)stamp_of(enroll(&s, "n1", 31, state_node(&s, 1)->incarnation));
    assert_true(state_node(&s, 1)->leaving);
}

static bool is_removed(void)
{
    return state_node(&s, 1)->removed;
}

static void an_operators_removal_is_another_stop_than_the_nodes_own(void **state)
{
    (void)state;
    two_nodes();
    (void)stamp_of(desire(&s, "n1", 0, DESIRE_STOP));
    assert_false(is_removed());
    (void)stamp_of(wish((struct wish){DESIRE_STOP, 71, ERA | 3}));
    assert_true(is_removed());
    // The node stops for it, and a weight is no wish to stay.
    (void)stamp_of(desire(&s, "n1", 5, DESIRE_KEEP));
    struct state_result r = desire(&s, "n1", 0, DESIRE_STOP);
    assert_true(r.accepted && is_removed());
    state_result_fini(&r);
    (void)stamp_of(wish((struct wish){DESIRE_DRAIN, 72, s.number}));
    assert_false(is_removed());
    (void)stamp_of(wish((struct wish){DESIRE_STOP, 73, s.number}));
    (void)stamp_of(wish((struct wish){DESIRE_STAY, 74, s.number}));
    assert_false(is_removed());
    (void)stamp_of(wish((struct wish){DESIRE_STOP, 75, s.number}));
    (void)stamp_of(enroll(&s, "n1", 21, ERA | 1));
    assert_false(is_removed());
}

static void fence_ends_an_incarnation_and_its_transactions(void **state)
{
    uint64_t txn;

    (void)state;
    two_nodes();
    expect_refused(fence(&s, 2, ERA | 9), "that incarnation has ended");
    expect_refused(fence(&s, 99999, 1), "that incarnation has ended");
    txn = begin_move(&s, 0, 2);
    expect_aborted(fence(&s, 2, ERA | 2), txn);
    assert_int_equal(begin_move(&s, 0, 2), 0);
    assert_int_equal(stamp_of(enroll(&s, "n2", 22, ERA | 2)), ERA | 4);
    assert_int_not_equal(begin_move(&s, 0, 2), 0);
}

static void reassign_gives_a_fenced_nodes_vnodes_away_cold(void **state)
{
    struct ring_op ops[5];
    struct state_result r;

    (void)state;
    two_nodes();
    (void)stamp_of(enroll(&s, "n3", 13, 0));
    share_evenly();
    for (uint32_t i = 0; i < 4; i++) {
        ops[i] =
            (struct ring_op){.kind = RING_MOVE, .vnode = 4 + i, .from = 2, .to = i < 2 ? 1 : 3};
    }
    expect_refused(reassign(&s, 2, ERA | 2, ops, 4),
                   "that incarnation has ended, or is not fenced");
    r = fence(&s, 2, ERA | 2);
    state_result_fini(&r);
    expect_refused(reassign(&s, 2, ERA | 2, ops, 0), "the transaction has no moves, or too many");
    ops[4] = (struct ring_op){.kind = RING_MOVE, .vnode = 0, .from = 1, .to = 3};
    expect_refused(reassign(&s, 2, ERA | 2, ops, 5),
                   "the transaction moves more than the dead node's vnodes");
    r = reassign(&s, 2, ERA | 2, ops, 3);
    assert_true(r.accepted);
    assert_true(r.delta->cold);
    assert_int_equal(ring_find(&s.view.ring, 4)->cold, r.stamp);
    assert_int_equal(ring_find(&s.view.ring, 4)->generation, r.stamp);
    state_result_fini(&r);
    // A node may own more than one entry takes: the rest comes with the next.
    assert_int_not_equal(stamp_of(reassign(&s, 2, ERA | 2, ops + 3, 1)), 0);
    assert_int_equal(ring_owned_count(&s.view.ring, 2), 0);
    assert_int_not_equal(stamp_of(deregister(&s, 2, ERA | 2)), 0);
    assert_null(view_member(&s.view, 2));
}

static void a_bye_that_came_too_late_is_refused(void **state)
{
    Rh__CommandFence in = RH__COMMAND_FENCE__INIT;
    struct state_result r;

    (void)state;
    two_nodes();
    in.slot = 1;
    in.incarnation = ERA | 1;
    in.clean = true;
    expect_refused(apply(&s, RH__COMMAND__BODY_FENCE, &in),
                   "the node owns vnodes that came after its BYE left");
    in.slot = 2;
    in.incarnation = ERA | 2;
    r = apply(&s, RH__COMMAND__BODY_FENCE, &in);
    assert_true(r.accepted && state_node(&s, 2)->clean);
    state_result_fini(&r);
}

static void the_longest_lease_is_remembered(void **state)
{
    Rh__CommandLease in = RH__COMMAND_LEASE__INIT;
    struct state_result r;

    (void)state;
    expect_refused(apply(&s, RH__COMMAND__BODY_LEASE, &in), "the lease is out of range");
    in.lease_us = 3601 * UINT64_C(1000000);
    expect_refused(apply(&s, RH__COMMAND__BODY_LEASE, &in), "the lease is out of range");
    in.lease_us = 5000000;
    r = apply(&s, RH__COMMAND__BODY_LEASE, &in);
    assert_true(r.accepted);
    assert_int_equal(s.lease_us, 5000000);
    state_result_fini(&r);
}

static void deregister_needs_an_idle_empty_node(void **state)
{
    uint64_t txn;

    (void)state;
    two_nodes();
    expect_refused(deregister(&s, 1, ERA | 1), "the node owns vnodes");
    expect_refused(deregister(&s, 2, ERA | 1), "that incarnation has ended");
    txn = begin_move(&s, 0, 2);
    expect_refused(deregister(&s, 2, ERA | 2), "the node takes part in a pending transaction");
    expect_aborted(abort_of(&s, txn), txn);
    assert_int_equal(stamp_of(deregister(&s, 2, ERA | 2)), ERA | 4);
    assert_int_equal(s.view.member_count, 1);
    assert_int_equal(stamp_of(enroll(&s, "n4", 14, 0)), ERA | 5);
    assert_string_equal(view_member(&s.view, 2)->name, "n4"); // the slot is free again
}

static void voters_are_kept_by_id(void **state)
{
    Rh__CommandVoter in = RH__COMMAND_VOTER__INIT;
    struct state_result r;

    (void)state;
    in.address = proto_text("a:1");
    for (uint64_t id = 1; id <= STATE_VOTERS_MAX; id++) {
        in.id = id;
        r = apply(&s, RH__COMMAND__BODY_VOTER, &in);
        state_result_fini(&r);
    }
    in.id = 3;
    in.identity = 77;
    r = apply(&s, RH__COMMAND__BODY_VOTER, &in);
    assert_true(r.accepted);
    assert_int_equal(s.voter_count, STATE_VOTERS_MAX);
    assert_int_equal(s.voter[2].identity, 77);
    state_result_fini(&r);
    in.id = 6;
    expect_refused(apply(&s, RH__COMMAND__BODY_VOTER, &in), "there are 5 voters already");
    in.id = 0;
    expect_refused(apply(&s, RH__COMMAND__BODY_VOTER, &in),
                   "the voter's id is 0, or its address too long");
}

static void only_the_last_outcomes_are_kept_and_never_a_pending_one_lost(void **state)
{
    uint64_t pending;
    uint64_t txn = 0;

    (void)state;
    two_nodes();
    pending = begin_move(&s, 7, 2);
    for (int i = 0; i < STATE_TXNS_KEPT + 50; i++) {
        struct state_result r;

        txn = begin_move(&s, 0, 2);
        r = abort_of(&s, txn);
        state_result_fini(&r);
    }
    assert_int_equal(s.txn_count, STATE_TXNS_KEPT + 1);
    assert_non_null(state_txn(&s, pending));
    assert_non_null(state_txn(&s, txn));
    assert_null(state_txn(&s, pending + 1));
}

static void a_view_that_follows_the_deltas_equals_the_states(void **state)
{
    const struct ring_op split = {.kind = RING_SPLIT, .vnode = 0, .other = 8, .at = 100};
    struct view follower;
    uint64_t txn;

    (void)state;
    view_init(&follower, RING_GRID_MIN);
    follower.key = s.view.key;
#define FOLLOW(expression)                                                  \
    do {                                                                    \
        struct state_result r = (expression);                               \
        assert_true(r.accepted);                                            \
        if (r.delta != NULL) {                                              \
            assert_int_equal(view_apply(&follower, r.delta), VIEW_APPLIED); \
        }                                                                   \
        state_result_fini(&r);                                              \
    } while (0)
    FOLLOW(enroll(&s, "n1", 1, 0));
    FOLLOW(enroll(&s, "n2", 2, 0));
    txn = stamp_of(begin(&s, &split, 1));
    FOLLOW(commit(&s, txn));
    txn = begin_move(&s, 8, 2);
    FOLLOW(commit(&s, txn));
    FOLLOW(desire(&s, "n2", 3, 0));
    FOLLOW(enroll(&s, "n2", 3, ERA | 2));
#undef FOLLOW
    assert_int_equal(follower.ring.version, s.view.ring.version);
    assert_int_equal(follower.ring.digest[0], s.view.ring.digest[0]);
    assert_int_equal(follower.member_count, 2);
    assert_int_equal(view_member(&follower, 2)->weight, 1);
    view_fini(&follower);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest cases[] = {
        CASE(nothing_is_accepted_before_init_and_init_only_once),
        CASE(the_first_node_gets_the_whole_ring),
        CASE(a_replayed_register_draws_nothing),
        CASE(a_register_must_name_whom_it_replaces),
        CASE(bad_registrations_are_refused),
        CASE(a_restart_renews_what_the_node_owns_and_aborts_its_transactions),
        CASE(a_restarted_target_aborts_too),
        CASE(begin_draws_a_number_and_commit_a_version),
        CASE(versions_follow_commits_not_begins),
        CASE(begin_is_refused_when_it_does_not_fit),
        CASE(a_split_conflicts_by_both_its_vnodes),
        CASE(a_merge_conflicts_by_both_its_vnodes),
        CASE(commit_needs_every_vote),
        CASE(the_first_outcome_wins),
        CASE(supersede_aborts_and_begins_in_one_entry),
        CASE(desire_changes_weight_and_leaving_and_spares_the_last_node),
        CASE(an_operators_removal_is_another_stop_than_the_nodes_own),
        CASE(a_wish_that_comes_late_again_changes_nothing),
        CASE(a_stop_is_forgotten_at_register_but_a_drain_is_not),
        CASE(fence_ends_an_incarnation_and_its_transactions),
        CASE(reassign_gives_a_fenced_nodes_vnodes_away_cold),
        CASE(a_bye_that_came_too_late_is_refused),
        CASE(the_longest_lease_is_remembered),
        CASE(deregister_needs_an_idle_empty_node),
        CASE(voters_are_kept_by_id),
        CASE(only_the_last_outcomes_are_kept_and_never_a_pending_one_lost),
        CASE(a_view_that_follows_the_deltas_equals_the_states),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
