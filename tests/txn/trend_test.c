/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of txn/leader/trend.h: what a leader keeps of the last hour.
 */
#include "txn/leader/trend.h"

#include "ring/ring.h"

#include "tests/test.h"

#include <string.h>

enum { BEGUN_US = 7000000 };

struct told {
    uint64_t seq;
    uint64_t executed;
    uint64_t held;
};

static Rh__Renew renewal(struct told told)
{
    Rh__Renew r = RH__RENEW__INIT;

    r.seq = told.seq;
    r.executed = told.executed;
    r.held_total = told.held;
    return r;
}

static void a_point_has_what_came_in_its_time(void **state)
{
    struct leader_trend t = {.next = 9};
    const Rh__Renew none = RH__RENEW__INIT;
    const Rh__Renew first = renewal((struct told){1, 1000, 10});
    const Rh__Renew second = renewal((struct told){2, 1300, 14});

    (void)state;
    trend_begin(&t, BEGUN_US);
    assert_int_equal(t.next, 1);
    trend_told(&t, &none, &first); // what it ran before is of no time that is known
    trend_told(&t, &first, &second);
    trend_run(&t, BEGUN_US + TREND_POINT_US - 1, 1);
    assert_int_equal(t.next, 1);
    trend_run(&t, BEGUN_US + TREND_POINT_US + 5, 77);
    assert_int_equal(t.next, 2);
    assert_int_equal(trend_at(&t, 1)->requests, 300);
    assert_int_equal(trend_at(&t, 1)->held, 4);
    assert_int_equal(trend_at(&t, 1)->wall_us, 77);
    assert_int_equal(trend_at(&t, 1)->took_us, TREND_POINT_US + 5);
    trend_run(&t, BEGUN_US + 2 * TREND_POINT_US + 5, 78);
    assert_int_equal(trend_at(&t, 2)->requests, 0);
}

static void p99_is_of_all_that_nodes_told_in_this_time(void **state)
{
    struct leader_trend t;
    const Rh__Renew before = renewal((struct told){1, 0, 0});
    Rh__Renew now = renewal((struct told){2, 0, 0});
    Rh__Costs costs = RH__COSTS__INIT;
    uint64_t fast[LATENCY_BUCKETS] = {0};
    uint64_t slow[LATENCY_BUCKETS] = {0};

    (void)state;
    fast[0] = 980; // of one node, less than 64 us; of another one …
    slow[6] = 20;  // … 2 to 4 ms
    trend_begin(&t, BEGUN_US);
    now.costs = &costs;
    costs.n_took = LATENCY_BUCKETS;
    costs.took = fast;
    trend_told(&t, &before, &now);
    costs.took = slow;
    trend_told(&t, &before, &now);
    trend_run(&t, BEGUN_US + TREND_POINT_US, 1);
    assert_int_equal(trend_at(&t, 1)->p99_us, 2048 + 1024);
    trend_run(&t, BEGUN_US + 2 * TREND_POINT_US, 1); // nothing was answered
    assert_int_equal(trend_at(&t, 2)->p99_us, 0);
}

/* What a liar tells counts for no more than that, and of more buckets than there are none. */
static void what_a_node_tells_of_times_is_bounded(void **state)
{
    uint64_t sum[LATENCY_BUCKETS + 1] = {0};
    uint64_t took[LATENCY_BUCKETS + 1];
    Rh__Costs costs = RH__COSTS__INIT;

    (void)state;
    memset(took, 0xff, sizeof took);
    costs.took = took;
    costs.n_took = LATENCY_BUCKETS + 1;
    trend_add_took(&costs, sum);
    for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
        assert_int_equal(sum[i], UINT32_MAX);
    }
    assert_int_equal(sum[LATENCY_BUCKETS], 0);
    costs.n_took = 1; // an older build's, with fewer
    trend_add_took(&costs, sum);
    assert_int_equal(sum[0], 2 * (uint64_t)UINT32_MAX);
    assert_int_equal(sum[1], UINT32_MAX);
}

static void a_count_that_shrinks_counts_nothing(void **state)
{
    struct leader_trend t;
    const Rh__Renew before = renewal((struct told){1, 1000, 10});
    const Rh__Renew now = renewal((struct told){2, 3, 0});

    (void)state;
    trend_begin(&t, BEGUN_US);
    trend_told(&t, &before, &now);
    trend_run(&t, BEGUN_US + TREND_POINT_US, 1);
    assert_int_equal(trend_at(&t, 1)->requests, 0);
    assert_int_equal(trend_at(&t, 1)->held, 0);
}

static void only_moves_of_vnodes_count_as_moves(void **state)
{
    struct leader_trend t;
    Rh__Delta delta = RH__DELTA__INIT;
    Rh__RingOp op[3] = {RH__RING_OP__INIT, RH__RING_OP__INIT, RH__RING_OP__INIT};
    Rh__RingOp *ops[3] = {&op[0], &op[1], &op[2]};

    (void)state;
    op[0].kind = RING_SPLIT;
    op[1].kind = op[2].kind = RING_MOVE;
    delta.ops = ops;
    delta.n_ops = 3;
    trend_begin(&t, BEGUN_US);
    trend_changed(&t, &delta);
    trend_run(&t, BEGUN_US + TREND_POINT_US, 1);
    assert_int_equal(trend_at(&t, 1)->moves, 2);
}

static void an_hour_is_kept_and_no_more(void **state)
{
    struct leader_trend t;
    const uint64_t points = TREND_POINTS_MAX + 100;

    (void)state;
    trend_begin(&t, BEGUN_US);
    assert_int_equal(trend_first(&t), t.next);
    for (uint64_t n = 1; n <= points; n++) {
        trend_run(&t, BEGUN_US + n * TREND_POINT_US, n);
    }
    assert_int_equal(t.next, points + 1);
    assert_int_equal(trend_first(&t), 101);
    for (uint64_t n = trend_first(&t); n < t.next; n++) {
        assert_int_equal(trend_at(&t, n)->wall_us, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_has_what_came_in_its_time),
        cmocka_unit_test(p99_is_of_all_that_nodes_told_in_this_time),
        cmocka_unit_test(what_a_node_tells_of_times_is_bounded),
        cmocka_unit_test(a_count_that_shrinks_counts_nothing),
        cmocka_unit_test(only_moves_of_vnodes_count_as_moves),
        cmocka_unit_test(an_hour_is_kept_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
