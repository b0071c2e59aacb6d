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
    m->node.host->costs.due_us = 0;
    Rh__Costs *costs = costs_take(m->node.host);
    assert_non_null(costs);
    assert_null(costs_take(m->node.host)); // and then there is nothing for a while
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
        assert_true(i == 0 || costs->vnodes[i - 1]->requests >= row->requests);
        assert_true(row->cut == 0 || (row->cut > v->from && row->cut < ring_end(ring, v)));
        assert_true(row->left <= row->requests);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_counts_once),
        cmocka_unit_test(requests_of_a_stream_count_too),
        cmocka_unit_test(for_how_long_actors_ran_is_told_as_the_shell_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
