/* SPDX-License-Identifier: Apache-2.0
 *
 * What a change of owners weighs on its way to a node or gateway: specification §2,
 * "COMMIT". The sizes are those of a fleet of 1000 nodes with 64 vnodes each.
 */
#include "base/mem.h"
#include "ring/ring.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/moves.h"

#include "tests/test.h"

enum { OPS_MAX = 5000, MOVE_BYTES_MAX = 64, EIGHT_BYTES_MAX = 96, ERA = 7 };

struct letter {
    Rh__Control control;
    Rh__Commit commit;
    Rh__Delta delta;
    Rh__RingOp op[OPS_MAX];
    Rh__RingOp *list[OPS_MAX];
};

static struct letter letter;

static const uint64_t base = ((uint64_t)ERA << MOVES_ERA_BIT) + 1000000;

/* A Commit of `count` MOVEs from node 998 to node 999. */
static struct letter *write_letter(size_t count)
{
    struct letter *l = &letter;

    l->control = (Rh__Control)RH__CONTROL__INIT;
    l->commit = (Rh__Commit)RH__COMMIT__INIT;
    l->delta = (Rh__Delta)RH__DELTA__INIT;
    for (size_t i = 0; i < count; i++) {
        l->op[i] = (Rh__RingOp)RH__RING_OP__INIT;
        l->op[i].kind = RING_MOVE;
        l->op[i].vnode = (uint32_t)(63999 - i);
        l->op[i].from = 998;
        l->op[i].to = 999;
        l->list[i] = &l->op[i];
    }
    l->delta.version = base;
    l->delta.prev_version = base - 129; // 64 others were begun and committed between
    l->delta.txn = base - 300;
    l->delta.digest0 = UINT64_C(0x0123456789abcdef);
    l->delta.digest1 = UINT64_C(0xfedcba9876543210);
    l->delta.ops = l->list;
    l->delta.n_ops = count;
    l->commit.txn = l->delta.txn;
    l->commit.delta = &l->delta;
    l->control.era = ERA;
    l->control.version = base;
    l->control.body_case = RH__CONTROL__BODY_COMMIT;
    l->control.commit = &l->commit;
    return l;
}

/* On the wire, frame header included. */
static size_t wire_size(const struct letter *l)
{
    struct buffer body = {0};
    struct buffer out = {0};
    size_t size;

    control_put(&body, &l->control);
    frame_put(&out, FRAME_CONTROL, 1, buffer_bytes(&body));
    size = out.size;
    buffer_fini(&body);
    buffer_fini(&out);
    return size;
}

/* What comes out at the other end has the very bytes of protobuf that the Commit has. */
static void assert_arrives(const struct letter *l)
{
    struct buffer bytes = {0};
    struct buffer before = {0};
    struct buffer after = {0};
    Rh__Control *got;

    control_put(&bytes, &l->control);
    got = control_get(buffer_bytes(&bytes));
    assert_non_null(got);
    proto_put(&before, &l->control.base);
    proto_put(&after, &got->base);
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data, after.data, before.size);
    control_free(got);
    buffer_fini(&bytes);
    buffer_fini(&before);
    buffer_fini(&after);
}

static void one_move_takes_64_bytes_at_most(void **state)
{
    (void)state;
    assert_in_range(wire_size(write_letter(1)), 1, MOVE_BYTES_MAX);
    assert_in_range(wire_size(write_letter(8)), 1, EIGHT_BYTES_MAX);
}

static void it_arrives_as_the_commit_it_was(void **state)
{
    struct letter *l = write_letter(9);

    (void)state;
    assert_arrives(l);
    l->op[3].from = 5; // other pairs in between, and the first one again
    l->op[5].to = 1;
    assert_arrives(l);
    l->op[8].vnode = l->op[0].vnode; // twice the same: their order counts
    l->op[8].from = 999;
    l->op[8].to = 998;
    assert_arrives(l);
    l->control.version = base + 77; // told late, by one who knows more
    assert_arrives(l);
    l->control.era = ERA + 1;
    assert_arrives(l);
    l->delta.txn = l->commit.txn = 0;
    assert_arrives(l);
    l->delta.txn = l->commit.txn = base + 5; // nonsense stays what it is
    l->delta.prev_version = base + 9;
    assert_arrives(l);
}

static void what_else_a_commit_says_goes_in_full(void **state)
{
    struct letter *l = write_letter(2);

    (void)state;
    l->delta.cold = 1;
    assert_arrives(l);
    assert_true(wire_size(l) > MOVE_BYTES_MAX);
    l = write_letter(2);
    l->op[1].kind = RING_SPLIT;
    l->op[1].other = 64000;
    l->op[1].at = 1;
    assert_arrives(l);
    l = write_letter(0);
    l->delta.renewed = 9;
    assert_arrives(l);
    l = write_letter(1);
    l->commit.txn++;
    assert_arrives(l);
    assert_arrives(write_letter(MOVES_MAX));
    assert_arrives(write_letter(MOVES_MAX + 1));
    l = write_letter(1);
    l->commit.delta = NULL;
    assert_arrives(l);
}

static void moves_of_nothing_or_too_many_are_refused(void **state)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Moves moves = RH__MOVES__INIT;
    Rh__MovePair pair = RH__MOVE_PAIR__INIT;
    Rh__MovePair *list[] = {&pair, &pair};
    uint32_t *vnode = mem_new(MOVES_MAX, sizeof *vnode);
    struct buffer bytes = {0};

    (void)state;
    control.body_case = RH__CONTROL__BODY_MOVES;
    control.moves = &moves;
    moves.pairs = list;
    control_put(&bytes, &control);
    assert_null(control_get(buffer_bytes(&bytes)));
    moves.n_pairs = 2;
    pair.vnodes = vnode;
    pair.n_vnodes = MOVES_MAX;
    buffer_clear(&bytes);
    control_put(&bytes, &control);
    assert_null(control_get(buffer_bytes(&bytes)));
    buffer_fini(&bytes);
    mem_free(vnode);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_move_takes_64_bytes_at_most),
        cmocka_unit_test(it_arrives_as_the_commit_it_was),
        cmocka_unit_test(what_else_a_commit_says_goes_in_full),
        cmocka_unit_test(moves_of_nothing_or_too_many_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
