/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds that are placed by their hosts: who may own their cells, and how much a canary gets of
 * them.
 */
#include "base/mem.h"
#include "base/prng.h"
#include "ring/plan.h"

#include "tests/planted.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

enum { KIND = 3, NODES = 6 };

static struct ring r;
static struct plan_node node[NODES];
static struct ring_kinds kinds[NODES];
static struct plan_part part[NODES];
static struct plan_loads loads; /* by load: known, and even */

/* The default cells, and a segment for the kind; the nodes are 1 to NODES, and all host it. */
static int setup(void **state)
{
    const struct ring_segment s = {
        .policy = RING_HOSTS, .bits = 14, .kind_count = 1, .kind = {KIND}};

    (void)state;
    ring_init(&r, 14);
    ring_create(&r, 64, 1, 10);
    ring_put_segment(&r, 0, &s, 64, 11);
    for (unsigned i = 0; i < NODES; i++) {
        kinds[i] = (struct ring_kinds){.count = 2, .kind = {0, KIND}};
        part[i].kind = KIND;
        node[i] = (struct plan_node){.slot = (uint16_t)(i + 1),
                                     .weight = 1,
                                     .kinds = &kinds[i],
                                     .parts = &part[i],
                                     .incarnation = i + 1u};
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ring_fini(&r);
    return 0;
}

static void host(size_t i, bool does)
{
    kinds[i] = (struct ring_kinds){.count = does ? 2 : 1, .kind = {0, KIND}};
}

static void take_part(size_t i, uint32_t permille)
{
    part[i].permille = (uint16_t)permille;
    node[i].part_count = permille < RING_PART_WHOLE;
}

static size_t plan_once(plan_strategy *strategy)
{
    const struct plan_limits limits = {.vnodes_per_weight = 64, .moves_per_txn = 8, .wave_cap = 4};
    struct plan plan;
    size_t moves = 0;

    assert_int_equal(
        plan_make(&plan, strategy, &(struct plan_view){&r, node, NODES}, &loads, NULL, &limits),
        ERR_OK);
    for (size_t i = 0; i < plan.txn_count; i++) {
        moves += plan.txn[i].target != 0;
        ring_apply(&r, plan.txn[i].ops, plan.txn[i].op_count, r.version + 1, 1);
    }
    plan_fini(&plan);
    return moves;
}

static void settle(plan_strategy *strategy)
{
    (void)plan_once(strategy);
    assert_int_equal(plan_once(strategy), 0); // and it rests
    ring_check_invariants(&r);
}

static uint32_t cells_of(unsigned owner)
{
    uint32_t own = 0;

    for (uint32_t c = r.segment[0].from; c < ring_segment_end(&r.segment[0]); c++) {
        own += ring_hit_node(r.cell[c]) == owner;
    }
    return own;
}

static void reassign(uint16_t from)
{
    size_t count = 0;
    struct ring_op *moves = plan_reassign(&(struct plan_view){&r, node, NODES}, NULL, from, &count);

    if (count > 0) {
        ring_reassign(&r, moves, count, r.version + 1);
    }
    mem_free(moves);
}

static void a_kind_lives_only_on_nodes_that_host_it(void **state)
{
    static plan_strategy *const strategies[] = {plan_by_weight, plan_by_load};
    struct prng prng = {.state = 7};

    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        bool any = false;

        for (unsigned i = 0; i < NODES; i++) {
            node[i].leaving = prng_chance(&prng, 25);
            // What a node owns when it hosts the kind no more is given away before (roles.h).
            const bool does = prng_chance(&prng, 50) || cells_of(i + 1) > 0;

            host(i, does);
            any = any || (does && !node[i].leaving);
        }
        node[round % NODES].leaving = false;
        any = any || ring_kinds_have(&kinds[round % NODES], KIND);
        settle(strategies[round % 2]);
        reassign(RING_NODE_NONE);
        for (unsigned i = 0; i < NODES; i++) {
            const bool may = ring_kinds_have(&kinds[i], KIND);

            assert_true(may || cells_of(i + 1) == 0);
            assert_true(may || !ring_kinds_fit(&kinds[i], &r.segment[0]));
            assert_true(ring_kinds_fit(&kinds[i], NULL)); // of the default cells it may own any
            assert_true(!any || !node[i].leaving || cells_of(i + 1) == 0);
        }
        assert_true(!any || cells_of(RING_NODE_NONE) == 0);
    }
}

static void cells_wait_for_a_host(void **state)
{
    (void)state;
    for (size_t i = 0; i < NODES; i++) {
        host(i, false);
    }
    settle(plan_by_weight);
    reassign(RING_NODE_NONE);
    assert_int_equal(cells_of(RING_NODE_NONE), 1 << 14);
    host(4, true);
    reassign(RING_NODE_NONE);
    assert_int_equal(cells_of(5), 1 << 14);
    // When the only one dies, nobody gets them.
    node[4].leaving = true;
    reassign(5);
    assert_int_equal(cells_of(5), 1 << 14);
}

/* Of what it should have, in thousandths. */
static uint32_t permille_of(uint32_t permille)
{
    const uint32_t share = (1u << 14) * permille / ((NODES - 1) * RING_PART_WHOLE + permille);

    return cells_of(NODES) * 1000 / share;
}

static void a_canary_gets_its_part(void **state)
{
    static const uint16_t parts[] = {10, 20, 50, 100, 250, 500, 999, 100, 10, 1000, 10};

    (void)state;
    settle(plan_by_weight);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        take_part(NODES - 1, parts[i]);
        settle(plan_by_weight);
        assert_in_range(permille_of(parts[i]), 700, 1300);
        for (unsigned slot = 1; slot < NODES; slot++) {
            assert_in_range(
                cells_of(slot) * (NODES - 1) * 100 / ((1u << 14) - cells_of(NODES)), 97, 103);
        }
    }
    // By load, too, though a few vnodes only move where costs are known to be uneven.
    take_part(NODES - 1, 0);
    settle(plan_by_weight);
    assert_int_equal(cells_of(NODES), 0);
    take_part(NODES - 1, 250);
    settle(plan_by_load);
    assert_in_range(permille_of(250), 700, 1300);
}

static void who_takes_nothing_is_not_given_what_a_dead_node_had(void **state)
{
    (void)state;
    take_part(NODES - 1, 0);
    settle(plan_by_weight);
    node[0].leaving = true;
    reassign(1);
    assert_int_equal(cells_of(1), 0);
    assert_int_equal(cells_of(NODES), 0);
    // Who did not tell yet counts as one that takes nothing.
    take_part(NODES - 1, 1000);
    node[NODES - 1].untold = true;
    settle(plan_by_weight);
    assert_int_equal(cells_of(NODES), 0);
    node[NODES - 1].untold = false;
    settle(plan_by_weight);
    assert_in_range(cells_of(NODES), (1 << 14) / 5 * 9 / 10, (1 << 14) / 5 * 11 / 10);
}

static void where_all_take_nothing_all_take_their_share(void **state)
{
    (void)state;
    for (size_t i = 0; i < NODES; i++) {
        take_part(i, 0);
    }
    reassign(RING_NODE_NONE);
    settle(plan_by_weight);
    for (unsigned slot = 1; slot <= NODES; slot++) {
        assert_in_range(cells_of(slot), (1 << 14) / NODES * 9 / 10, (1 << 14) / NODES * 11 / 10);
    }
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_kind_lives_only_on_nodes_that_host_it, setup, teardown),
        cmocka_unit_test_setup_teardown(cells_wait_for_a_host, setup, teardown),
        cmocka_unit_test_setup_teardown(a_canary_gets_its_part, setup, teardown),
        cmocka_unit_test_setup_teardown(
            who_takes_nothing_is_not_given_what_a_dead_node_had, setup, teardown),
        cmocka_unit_test_setup_teardown(
            where_all_take_nothing_all_take_their_share, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant planted[] = {M_NOTHOST, M_CANARYWHOLE};

    return planted_main(argc, argv, all_cases, planted, sizeof planted / sizeof planted[0]);
}
