/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wished of cells: plans do it, and leave it alone from then on.
 */
#include "base/mem.h"
#include "base/prng.h"
#include "ring/plan.h"

#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

enum { NODES = 12, WISHES = 200, V = 8 };

static struct {
    struct ring ring;
    struct plan_node node[NODES];
    size_t count;
    struct plan_wish wish[WISHES];
    struct plan_wishes wishes;
    struct plan_loads loads;
    uint64_t moved_cells;
} f;

static const struct plan_limits limits = {
    .vnodes_per_weight = V, .moves_per_txn = 8, .wave_cap = 4, .owned_only = true};

static void start(uint8_t grid, size_t nodes)
{
    memset(&f, 0, sizeof f);
    ring_init(&f.ring, grid);
    ring_create(&f.ring, 1, 1, 1);
    for (size_t i = 0; i < nodes; i++) {
        f.node[f.count++] = (struct plan_node){.slot = (uint16_t)(i + 1), .weight = 1};
    }
    f.wishes.wish = f.wish;
}

static void wish(uint32_t from, uint32_t to, enum plan_wish_kind kind, uint16_t slot)
{
    f.wish[f.wishes.count++] = (struct plan_wish){from, to, slot, kind};
}

static const struct plan_node *node_of(uint16_t slot)
{
    for (size_t i = 0; i < f.count; i++) {
        if (f.node[i].slot == slot) {
            return &f.node[i];
        }
    }
    return NULL;
}

static const struct plan_wish *wish_of(uint32_t vnode)
{
    const struct ring_vnode *v = ring_find(&f.ring, vnode);

    return plan_wish_in(&f.wishes, v->from, ring_end(&f.ring, v));
}

/* What a step may do to cells of which something is wished. */
static void assert_allowed(const struct ring_op *op)
{
    const struct plan_wish *w = op->kind == RING_SPLIT ? NULL : wish_of(op->vnode);
    const struct plan_node *n = w == NULL ? NULL : node_of(w->slot);

    if (op->kind == RING_MERGE) {
        const struct plan_wish *other = wish_of(op->other);

        // Parts that a move was cut into are put together again.
        assert_true(w == other);
    } else if (w != NULL && w->kind == PLAN_AT && n != NULL && !n->leaving) {
        assert_int_equal(op->to, w->slot);
    } else if (w != NULL && w->kind == PLAN_STAY) {
        assert_int_not_equal(op->from, w->slot);
    }
}

static size_t plan_and_do(void)
{
    const struct plan_view view = {&f.ring, f.node, f.count};
    struct plan plan;
    size_t txns;

    assert_int_equal(plan_make(&plan, plan_by_weight, &view, &f.loads, &f.wishes, &limits), ERR_OK);
    for (size_t i = 0; i < plan.txn_count; i++) {
        assert_int_equal(ring_check(&f.ring, plan.txn[i].ops, plan.txn[i].op_count), ERR_OK);
        for (size_t k = 0; k < plan.txn[i].op_count; k++) {
            assert_allowed(&plan.txn[i].ops[k]);
            ring_apply(&f.ring, &plan.txn[i].ops[k], 1, f.ring.version + 1, 1);
        }
    }
    txns = plan.txn_count;
    f.moved_cells = plan.moved_cells;
    plan_fini(&plan);
    return txns;
}

static void assert_settles(void)
{
    (void)plan_and_do();
    ring_check_invariants(&f.ring);
    assert_int_equal(plan_and_do(), 0); // planning again yields nothing
}

/* It is where it should be, and no vnode has cells of it and others. */
static void assert_wishes_hold(void)
{
    for (size_t i = 0; i < f.wishes.count; i++) {
        const struct plan_wish *w = &f.wish[i];
        const struct plan_node *n = node_of(w->slot);

        for (uint32_t cell = w->from; cell < w->to; cell++) {
            const ring_hit hit = f.ring.cell[cell];
            const struct ring_vnode *v = ring_find(&f.ring, ring_hit_vnode(hit));

            assert_true(v->from >= w->from && ring_end(&f.ring, v) <= w->to);
            if (w->kind == PLAN_AT && n != NULL && !n->leaving) {
                assert_int_equal(ring_hit_node(hit), w->slot);
            }
        }
    }
}

static void wish_at_random(struct prng *p)
{
    const uint32_t gap = (uint32_t)prng_between(p, 1, 60);
    uint32_t cell = 0;

    f.wishes.count = 0;
    while (f.wishes.count < WISHES) {
        const uint32_t from = cell + (uint32_t)prng_between(p, 0, gap);
        const uint32_t size = (uint32_t)(prng_chance(p, 80) ? 1 : prng_between(p, 1, 40));

        cell = from + size;
        if (cell > (uint32_t)1 << f.ring.grid) {
            return;
        }
        wish(from,
             cell,
             (enum plan_wish_kind)prng_between(p, PLAN_AT, PLAN_APART),
             (uint16_t)prng_between(p, 1, NODES + 2)); // some are of nobody here
    }
}

static void change_at_random(struct prng *p)
{
    f.count = (size_t)prng_between(p, 1, NODES);
    for (size_t i = 0; i < NODES; i++) {
        f.node[i] = (struct plan_node){.slot = (uint16_t)(i + 1),
                                       .weight = (uint32_t)prng_between(p, 1, 3),
                                       .leaving = i > 0 && prng_chance(p, 25)};
    }
    // Who has gone gives all that it has before.
    for (size_t i = f.count; i < NODES; i++) {
        f.node[i].leaving = true;
    }
    f.count = NODES;
}

static void plans_for_any_ring_do_what_is_wished_and_then_rest(void **state)
{
    static uint32_t cells_of[RING_NODES_MAX + 1];
    struct prng p = {19};

    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        start((uint8_t)prng_between(&p, 6, 12), NODES);
        for (unsigned step = 0; step < 8; step++) {
            if (step == 0 || prng_chance(&p, 50)) {
                wish_at_random(&p);
            }
            if (prng_chance(&p, 70)) {
                change_at_random(&p);
            }
            for (size_t i = 1; i <= NODES; i++) {
                cells_of[i] = prng_chance(&p, 30) ? (uint32_t)prng_between(&p, 1, 64) : 0;
            }
            f.loads.cells_of = cells_of;
            assert_settles();
            assert_wishes_hold();
        }
        ring_fini(&f.ring);
    }
}

static void what_is_wished_counts_as_part_of_the_share(void **state)
{
    (void)state;
    start(12, 4);
    assert_settles();
    for (uint32_t i = 0; i < 100; i++) { // less than its share of 1024
        wish(i * 40, i * 40 + 1, PLAN_AT, 2);
    }
    assert_settles();
    for (uint16_t slot = 1; slot <= 4; slot++) {
        assert_in_range(ring_owned_cells(&f.ring, slot), 1024 - 128, 1024 + 128);
    }
    ring_fini(&f.ring);
}

static void where_it_is_more_than_the_share_the_others_share_the_rest(void **state)
{
    (void)state;
    start(12, 4);
    wish(0, 1000, PLAN_AT, 2);
    wish(1000, 2800, PLAN_AT, 2);
    assert_settles();
    assert_int_equal(ring_owned_cells(&f.ring, 2), 2800);
    for (uint16_t slot = 1; slot <= 4; slot++) {
        if (slot != 2) {
            assert_in_range(ring_owned_cells(&f.ring, slot), 432 - 128, 432 + 128);
        }
    }
    ring_fini(&f.ring);
}

static void one_wish_moves_one_cell(void **state)
{
    (void)state;
    start(12, 4);
    assert_settles();
    const uint16_t owner = ring_hit_node(f.ring.cell[77]);
    wish(77, 78, PLAN_AT, owner == 3 ? 4 : 3);
    assert_settles();
    assert_int_equal(ring_hit_node(f.ring.cell[77]), f.wish[0].slot);
    f.wishes.count = 0; // it goes: the cell may stay where it is
    (void)plan_and_do();
    assert_int_equal(f.moved_cells, 0);
    ring_fini(&f.ring);
}

static void a_node_that_leaves_gives_what_is_wished_at_it_but_not_what_is_to_stay(void **state)
{
    (void)state;
    start(10, 3);
    wish(10, 11, PLAN_AT, 2);
    wish(20, 21, PLAN_AT, 2);
    assert_settles();
    f.node[1].leaving = true;
    f.wish[1].kind = PLAN_STAY;
    assert_settles();
    assert_int_not_equal(ring_hit_node(f.ring.cell[10]), 2);
    assert_int_equal(ring_hit_node(f.ring.cell[20]), 2);
    assert_int_equal(ring_owned_cells(&f.ring, 2), 1);
    f.node[1].leaving = false; // it is back, and so is what is wished
    f.wish[1].kind = PLAN_AT;
    assert_settles();
    assert_wishes_hold();
    ring_fini(&f.ring);
}

static void add_segment(enum ring_policy policy, uint8_t bits, uint32_t open, uint16_t kind)
{
    struct ring_segment s = {
        .policy = policy, .bits = bits, .open = open, .kind = {kind}, .kind_count = 1};
    struct ring_op *moves;
    size_t count;

    ring_put_segment(&f.ring, f.ring.segment_count, &s, 4, f.ring.version + 1);
    moves = plan_reassign(
        &(struct plan_view){&f.ring, f.node, f.count}, &f.wishes, RING_NODE_NONE, &count);
    ring_reassign(&f.ring, moves, count, f.ring.version + 1);
    mem_free(moves);
}

static void a_singleton_and_a_daemon_go_where_they_are_wished(void **state)
{
    (void)state;
    start(10, 3);
    assert_settles();
    add_segment(RING_OLDEST, 0, 0, 7);
    add_segment(RING_SPREAD, RING_DAEMON_BITS, 6, 8);
    assert_settles();
    assert_int_equal(ring_hit_node(f.ring.cell[1024]), 1);
    wish(1024, 1025, PLAN_AT, 3);
    wish(1025 + 2, 1025 + 3, PLAN_AT, 2);
    wish(1025 + 3, 1025 + 4, PLAN_AT, 2);
    wish(1025 + 4, 1025 + 5, PLAN_AT, 2);
    assert_settles();
    assert_wishes_hold();
    for (uint16_t slot = 1; slot <= 3; slot++) { // of six daemons, three are wished at node 2
        size_t has = 0;

        for (uint32_t i = 0; i < 6; i++) {
            has += ring_hit_node(f.ring.cell[1025 + i]) == slot;
        }
        assert_in_range(has, 1, slot == 2 ? 3 : 2);
    }
    ring_fini(&f.ring);
}

/* ---- what a dead node leaves ---- */

static void what_is_to_stay_is_left_to_the_dead(void **state)
{
    struct ring_op *moves;
    size_t count;

    (void)state;
    start(10, 3);
    wish(10, 11, PLAN_AT, 2);
    wish(20, 21, PLAN_AT, 2);
    wish(30, 31, PLAN_AT, 2);
    assert_settles();
    f.wish[0].kind = PLAN_STAY;
    f.wish[1].kind = PLAN_APART;
    f.wish[2].slot = 3;
    f.node[1].leaving = true;
    moves = plan_reassign(&(struct plan_view){&f.ring, f.node, f.count}, &f.wishes, 2, &count);
    assert_int_equal(count, ring_owned_count(&f.ring, 2) - 1);
    ring_reassign(&f.ring, moves, count, f.ring.version + 1);
    mem_free(moves);
    assert_int_equal(ring_hit_node(f.ring.cell[10]), 2);
    assert_int_not_equal(ring_hit_node(f.ring.cell[20]), 2);
    assert_int_equal(ring_hit_node(f.ring.cell[30]), 3);
    assert_null(plan_reassign(&(struct plan_view){&f.ring, f.node, f.count}, &f.wishes, 2, &count));
    assert_int_equal(count, 0);
    ring_fini(&f.ring);
}

static void wishes_that_overlap_are_refused(void **state)
{
    const struct plan_view view = {&f.ring, f.node, 3};
    struct plan plan;

    (void)state;
    start(10, 3);
    wish(10, 12, PLAN_AT, 2);
    wish(11, 13, PLAN_AT, 3);
    assert_int_equal(plan_make(&plan, plan_by_weight, &view, NULL, &f.wishes, &limits),
                     ERR_INVALID);
    plan_fini(&plan);
    f.wish[1] = (struct plan_wish){12, 12, 3, PLAN_AT}; // no cell
    assert_int_equal(plan_make(&plan, plan_by_weight, &view, NULL, &f.wishes, &limits),
                     ERR_INVALID);
    plan_fini(&plan);
    ring_fini(&f.ring);
}

/* ---- the most that there may be ---- */

static void a_hundred_thousand_cells_are_wished_one_by_one(void **state)
{
    enum { MOST = 100000 };
    struct plan_wishes many = {.wish = mem_new(MOST, sizeof(struct plan_wish)), .count = MOST};
    const struct plan_limits wide = {
        .vnodes_per_weight = 64, .moves_per_txn = 8, .wave_cap = 4, .owned_only = true};
    struct plan_view view = {&f.ring, f.node, NODES};
    struct plan plan;

    (void)state;
    start(20, NODES);
    for (uint32_t i = 0; i < MOST; i++) {
        many.wish[i] = (struct plan_wish){i * 10, i * 10 + 1, (uint16_t)(i % NODES + 1), PLAN_AT};
    }
    for (unsigned turn = 0; turn < 2; turn++) {
        assert_int_equal(plan_make(&plan, plan_by_weight, &view, NULL, &many, &wide), ERR_OK);
        assert_int_equal(plan.txn_count > 0, turn == 0);
        for (size_t i = 0; i < plan.txn_count; i++) {
            ring_apply(&f.ring, plan.txn[i].ops, plan.txn[i].op_count, f.ring.version + 1, 1);
        }
        plan_fini(&plan);
    }
    for (uint32_t i = 0; i < MOST; i++) {
        assert_int_equal(ring_hit_node(f.ring.cell[many.wish[i].from]), many.wish[i].slot);
    }
    ring_check_invariants(&f.ring);
    mem_free(many.wish);
    ring_fini(&f.ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_for_any_ring_do_what_is_wished_and_then_rest),
        cmocka_unit_test(what_is_wished_counts_as_part_of_the_share),
        cmocka_unit_test(where_it_is_more_than_the_share_the_others_share_the_rest),
        cmocka_unit_test(one_wish_moves_one_cell),
        cmocka_unit_test(a_node_that_leaves_gives_what_is_wished_at_it_but_not_what_is_to_stay),
        cmocka_unit_test(a_singleton_and_a_daemon_go_where_they_are_wished),
        cmocka_unit_test(what_is_to_stay_is_left_to_the_dead),
        cmocka_unit_test(wishes_that_overlap_are_refused),
        cmocka_unit_test(a_hundred_thousand_cells_are_wished_one_by_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
