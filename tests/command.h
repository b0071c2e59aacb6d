/* SPDX-License-Identifier: Apache-2.0
 *
 * Short ways to give a command to a state, for tests.
 */
#ifndef TESTS_COMMAND_H
#define TESTS_COMMAND_H

#include "base/mem.h"
#include "txn/state/state.h"
#include "wire/control.h"

#include <string.h>

enum { TEST_VNODES = 8 };

static uint8_t test_uuid[STATE_UUID_SIZE] = {7};

static struct state_result apply(struct state *s, Rh__Command__BodyCase body, void *message)
{
    Rh__Command command = RH__COMMAND__INIT;
    struct state_result result;

    command.time_us = 1000;
    command.proposer = 1;
    command.body_case = body;
    command.init = message; // any member of the union
    state_apply(s, &command, &result);
    state_check(s);
    return result;
}

/* Apply, and return what was drawn; 0 = refused. */
static uint64_t stamp_of(struct state_result result)
{
    const uint64_t stamp = result.accepted ? result.stamp : 0;

    state_result_fini(&result);
    return stamp;
}

__attribute__((unused)) static void init(struct state *s)
{
    Rh__CommandInit in = RH__COMMAND_INIT__INIT;
    struct state_result r;

    state_init(s);
    in.cluster = proto_text("test");
    in.fleet_high = 98;
    in.fleet_low = 99;
    in.key0 = 1;
    in.key1 = 2;
    in.grid = RING_GRID_MIN;
    in.vnodes_per_weight = TEST_VNODES;
    in.era = 3;
    r = apply(s, RH__COMMAND__BODY_INIT, &in);
    state_result_fini(&r);
}

__attribute__((unused)) static Rh__CommandRegister registration(const char *name, uint64_t nonce,
                                                                uint64_t replaces)
{
    Rh__CommandRegister in = RH__COMMAND_REGISTER__INIT;

    in.name = proto_text(name);
    in.address = proto_text("127.0.0.1:1");
    in.zone = proto_text("z1");
    in.weight = 1;
    in.nonce = nonce;
    in.replaces = replaces;
    in.boot_id = proto_bytes(bytes_of(test_uuid, sizeof test_uuid));
    in.data_uuid = in.boot_id;
    return in;
}

__attribute__((unused)) static struct state_result enroll(struct state *s, const char *name,
                                                          uint64_t nonce, uint64_t replaces)
{
    Rh__CommandRegister in = registration(name, nonce, replaces);

    return apply(s, RH__COMMAND__BODY_REGISTER_, &in);
}

// NOLINTBEGIN(bugprone-easily-swappable-parameters): tests' shorthands
__attribute__((unused)) static struct state_result begin_at(struct state *s,
                                                            const struct ring_op *ops, size_t count,
                                                            uint64_t base, uint64_t supersedes)
{
    Rh__CommandBegin in = RH__COMMAND_BEGIN__INIT;
    struct state_result r;

    in.ops = view_wire_ops(ops, count);
    in.n_ops = count;
    in.base_version = base;
    in.supersedes = supersedes;
    in.why = proto_text("test");
    r = apply(s, RH__COMMAND__BODY_BEGIN, &in);
    for (size_t i = 0; i < count; i++) {
        mem_free(in.ops[i]);
    }
    mem_free(in.ops);
    return r;
}

// NOLINTEND(bugprone-easily-swappable-parameters)

__attribute__((unused)) static struct state_result begin(struct state *s, const struct ring_op *ops,
                                                         size_t count)
{
    return begin_at(s, ops, count, s->view.ring.version, 0);
}

/* Begin the move of one vnode; returns the transaction's number, 0 = refused. */
__attribute__((unused)) static uint64_t begin_move(struct state *s, uint32_t vnode, uint16_t to)
{
    const struct ring_op op = {.kind = RING_MOVE,
                               .vnode = vnode,
                               .from = ring_find(&s->view.ring, vnode)->owner,
                               .to = to};

    return stamp_of(begin(s, &op, 1));
}

/* Commit with the votes of all participants. */
__attribute__((unused)) static struct state_result commit(struct state *s, uint64_t txn)
{
    Rh__CommandCommit in = RH__COMMAND_COMMIT__INIT;
    const struct state_txn *t = state_txn(s, txn);
    uint64_t voted[16];

    in.txn = txn;
    for (size_t i = 0; t != NULL && i < t->part_count; i++) {
        voted[in.n_voted++] = t->parts[i].incarnation;
    }
    in.voted = voted;
    return apply(s, RH__COMMAND__BODY_COMMIT, &in);
}

__attribute__((unused)) static struct state_result abort_of(struct state *s, uint64_t txn)
{
    Rh__CommandAbort in = RH__COMMAND_ABORT__INIT;

    in.txn = txn;
    in.why = proto_text("its deadline passed");
    return apply(s, RH__COMMAND__BODY_ABORT, &in);
}

__attribute__((unused)) static struct state_result desire(struct state *s, const char *name,
                                                          uint32_t weight, uint32_t leaving)
{
    Rh__CommandDesire in = RH__COMMAND_DESIRE__INIT;

    in.name = proto_text(name);
    in.weight = weight;
    in.leaving = leaving;
    return apply(s, RH__COMMAND__BODY_DESIRE, &in);
}

__attribute__((unused)) static struct state_result fence(struct state *s, uint32_t slot,
                                                         uint64_t incarnation)
{
    Rh__CommandFence in = RH__COMMAND_FENCE__INIT;

    in.slot = slot;
    in.incarnation = incarnation;
    return apply(s, RH__COMMAND__BODY_FENCE, &in);
}

__attribute__((unused)) static struct state_result deregister(struct state *s, uint32_t slot,
                                                              uint64_t incarnation)
{
    Rh__CommandDeregister in = RH__COMMAND_DEREGISTER__INIT;

    in.slot = slot;
    in.incarnation = incarnation;
    return apply(s, RH__COMMAND__BODY_DEREGISTER, &in);
}

__attribute__((unused)) static struct state_result reassign(struct state *s, uint32_t slot,
                                                            uint64_t incarnation,
                                                            const struct ring_op *ops, size_t count)
{
    Rh__CommandReassign in = RH__COMMAND_REASSIGN__INIT;
    struct state_result r;

    in.slot = slot;
    in.incarnation = incarnation;
    in.moves = view_wire_ops(ops, count);
    in.n_moves = count;
    r = apply(s, RH__COMMAND__BODY_REASSIGN, &in);
    for (size_t i = 0; i < count; i++) {
        mem_free(in.moves[i]);
    }
    mem_free(in.moves);
    return r;
}

#endif
