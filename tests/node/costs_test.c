/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node tells of its vnodes: each request counts once, by whichever way it came, for the
 * vnode that its actor lives in.
 */
#include "tests/test.h"

#include "bench/node_mill.h"
#include "node/host/inside.h"
#include "wire/control.h"

enum { ACTORS = 601, FRAME = 64 };

/* What it tells with its next renewal, which is due by now; owned. */
static Rh__Costs *take(struct mill *m)
{
    struct host *h = m->node.host;

    h->costs.due_us = 0;
    do {
        costs_tick(h);
    } while (!h->costs.ready);
    Rh__Costs *costs = costs_take(h);
    assert_non_null(costs);
    costs_tick(h);
    assert_null(costs_take(h)); // and then there is nothing for a while
    return costs;
}

/* Each row has what its cells have, and a cut that parts it. */
static void assert_told(const struct mill *m, const Rh__Costs *costs, uint64_t requests)
{
    const struct ring *ring = &host_view(m->node.host)->ring;
    uint64_t sum = 0;

    assert_int_equal(costs->requests, requests);
    for (size_t i = 0; i < costs->n_vnodes; i++) {
        const Rh__VnodeCost *row = costs->vnodes[i];
        const struct ring_vnode *v = ring_find(ring, row->vnode);

        assert_non_null(v);
        assert_int_equal(v->owner, 1);
        assert_true(row->cut == 0 || (row->cut > v->from && row->cut < ring_end(ring, v)));
        assert_true(row->left <= 1000000);
        sum += row->requests;
    }
    assert_int_equal(sum, requests); // it has no more vnodes than there are rows
}

static void every_request_counts_once(void **state)
{
    (void)state;
    for (int kind = MILL_KV; kind < MILL_KINDS; kind++) {
        struct mill m;

        if (kind == MILL_SLOW) {
            mill_open(&m, ACTORS, 3);
        } else {
            mill_open_inline(&m, ACTORS, 3);
        }
        mill_warm(&m, (uint16_t)kind, FRAME);
        proto_free(&take(&m)->base);
        const uint64_t before = m.made;
        mill_warm(&m, (uint16_t)kind, FRAME);
        Rh__Costs *costs = take(&m);
        assert_told(&m, costs, m.made - before);
        proto_free(&costs->base);
        mill_make(&m, (uint16_t)kind, FRAME);
        if (kind == MILL_SLOW) {
            mill_admit(&m);
            mill_run(&m);
            mill_answer(&m);
        } else {
            mill_serve(&m);
        }
        costs = take(&m);
        assert_told(&m, costs, FRAME);
        proto_free(&costs->base);
        costs = take(&m);
        assert_told(&m, costs, 0);
        proto_free(&costs->base);
        mill_close(&m);
    }
}

static void requests_of_a_stream_count_too(void **state)
{
    struct mill m;

    (void)state;
    mill_open_inline(&m, ACTORS, 1);
    mill_warm(&m, MILL_KV, FRAME);
    mill_begin_stream(&m, MILL_KV, FRAME);
    proto_free(&take(&m)->base);
    mill_make_frame(&m, MILL_KV, FRAME);
    mill_feed(&m);
    (void)mill_pour(&m);
    Rh__Costs *costs = take(&m);
    assert_told(&m, costs, FRAME);
    proto_free(&costs->base);
    mill_close(&m);
}

static void for_how_long_actors_ran_is_told_as_the_shell_says(void **state)
{
    struct mill m;

    (void)state;
    mill_open(&m, ACTORS, 1);
    host_set_busy_time(m.node.host, 1000);
    proto_free(&take(&m)->base);
    host_set_busy_time(m.node.host, 1500);
    Rh__Costs *costs = take(&m);
    assert_int_equal(costs->busy_us, 500);
    proto_free(&costs->base);
    mill_close(&m);
}

/* Each once, in the report of the time in which it was answered. */
static void how_long_answers_took_is_told(void **state)
{
    struct mill m;

    (void)state;
    mill_open_inline(&m, ACTORS, 1);
    mill_warm(&m, MILL_KV, FRAME);
    mill_begin_stream(&m, MILL_KV, FRAME);
    host_served(m.node.host, m.node.host->now_us);
    proto_free(&take(&m)->base);
    mill_make_frame(&m, MILL_KV, FRAME);
    mill_feed(&m);
    (void)mill_pour(&m);
    host_served(m.node.host, m.node.host->now_us + 500);
    Rh__Costs *costs = take(&m);
    uint64_t count = 0;
    assert_int_equal(costs->n_took, LATENCY_BUCKETS);
    for (size_t i = 0; i < costs->n_took; i++) {
        count += costs->took[i];
    }
    assert_int_equal(count, FRAME);
    proto_free(&costs->base);
    costs = take(&m); // nothing was asked since
    assert_int_equal(costs->n_took, 0);
    proto_free(&costs->base);
    mill_close(&m);
}

/* An actor of the mill, and its cell. */
static const struct actor *any_actor(const struct host *h, uint32_t *cell)
{
    for (*cell = 0; cell_first(&h->actors, *cell) == NULL; ++*cell) {
    }
    return cell_first(&h->actors, *cell);
}

static const Rh__VnodeCost *row_of(const Rh__Costs *costs, uint32_t vnode)
{
    size_t i = 0;

    while (i < costs->n_vnodes && costs->vnodes[i]->vnode != vnode) {
        i++;
    }
    return i == costs->n_vnodes ? NULL : costs->vnodes[i];
}

static void the_time_of_an_actor_is_told_with_its_vnode(void **state)
{
    struct mill m;
    uint32_t cell = 0;

    (void)state;
    mill_open(&m, ACTORS, 1);
    mill_warm(&m, MILL_KV, FRAME);
    proto_free(&take(&m)->base);
    const struct host *h = m.node.host;
    const struct actor *a = any_actor(h, &cell);
    const uint32_t vnode = ring_hit_vnode(host_view(h)->ring.cell[cell]);
    host_count_time(m.node.host, a, 700);
    host_count_time(m.node.host, a, 50);
    Rh__Costs *costs = take(&m);
    const Rh__VnodeCost *row = row_of(costs, vnode);
    assert_non_null(row);
    assert_int_equal(row->busy_us, 750);
    assert_int_equal(costs->vnodes[0]->vnode, vnode); // what costs most is first
    proto_free(&costs->base);
    costs = take(&m);
    row = row_of(costs, vnode);
    assert_true(row == NULL || row->busy_us == 0);
    proto_free(&costs->base);
    h->cells.cost[cell].busy_us = UINT32_MAX - 10; // it does not begin anew
    host_count_time(m.node.host, a, 700);
    assert_int_equal(h->cells.cost[cell].busy_us, UINT32_MAX);
    mill_close(&m);
}

/* Each takes as much as an actor that has nothing: their kind says no more. */
static void what_live_actors_take_is_told(void **state)
{
    struct mill m;
    uint64_t sum = 0;

    (void)state;
    mill_open(&m, ACTORS, 1);
    mill_warm(&m, MILL_KV, FRAME);
    struct host *h = m.node.host;
    Rh__Costs *costs = take(&m);
    assert_true(h->work.live > 0);
    assert_int_equal(costs->actors, h->work.live);
    assert_int_equal(costs->memory, h->work.live * CELL_MEMORY_UNIT);
    for (size_t i = 0; i < costs->n_vnodes; i++) {
        sum += costs->vnodes[i]->memory;
    }
    assert_int_equal(sum, costs->memory);
    proto_free(&costs->base);
    host_check(h); // by cell, too
    mill_close(&m);
}

/* However many cells there are. */
static void a_tick_looks_at_a_bounded_number_of_cells(void **state)
{
    struct mill m;
    uint32_t turns = 0;

    (void)state;
    mill_open(&m, ACTORS, 1);
    mill_warm(&m, MILL_KV, FRAME);
    struct host *h = m.node.host;
    const struct ring *ring = &host_view(h)->ring;
    proto_free(&take(&m)->base);
    h->costs.due_us = 0;
    for (uint32_t most = 16; !h->costs.ready; turns++) {
        const struct costs before = h->costs;
        struct costs *c = &h->costs;

        costs_turn(h, most);
        const bool same = before.report == c->report && before.at.id == c->at.id &&
                          before.at.to == c->at.to && before.at.again == c->at.again;
        assert_true(!same || c->cell - before.cell <= most);
    }
    // Of its own it looks at each twice, for a cut.
    assert_in_range(turns, ring->cell_count / 16, 2 * ring->cell_count / 16 + 1);
    Rh__Costs *costs = costs_take(h);
    assert_int_equal(costs->memory, h->work.live * CELL_MEMORY_UNIT);
    proto_free(&costs->base);
    mill_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_counts_once),
        cmocka_unit_test(requests_of_a_stream_count_too),
        cmocka_unit_test(for_how_long_actors_ran_is_told_as_the_shell_says),
        cmocka_unit_test(how_long_answers_took_is_told),
        cmocka_unit_test(the_time_of_an_actor_is_told_with_its_vnode),
        cmocka_unit_test(what_live_actors_take_is_told),
        cmocka_unit_test(a_tick_looks_at_a_bounded_number_of_cells),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
