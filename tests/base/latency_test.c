/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/latency.h: buckets, rows of kinds, sums, stamps; and as /metrics shows them.
 */
#include "base/latency.h"

#include "base/metrics.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

static void a_time_is_in_the_bucket_whose_bound_it_is_below(void **state)
{
    struct latency l = {0};

    (void)state;
    assert_int_equal(latency_bound_us(0), LATENCY_FIRST_US);
    assert_int_equal(latency_bound_us(LATENCY_BUCKETS - 1), UINT64_MAX);
    for (unsigned i = 0; i + 1 < LATENCY_BUCKETS; i++) {
        latency_add(&l, latency_bound_us(i) - 1, 1);
        assert_int_equal(latency_read(&l.bucket[i]), i == 0 ? 1 : 2);
        latency_add(&l, latency_bound_us(i), 1);
        assert_int_equal(latency_read(&l.bucket[i + 1]), 1);
    }
    latency_add(&l, UINT64_C(3600) * 1000000, 3);
    assert_int_equal(latency_read(&l.bucket[LATENCY_BUCKETS - 1]), 4);
    assert_int_equal(latency_count(&l), 2 * (LATENCY_BUCKETS - 1) + 3);
}

static void a_sum_is_of_all_times(void **state)
{
    struct latency l = {0};
    struct latency more = {0};

    (void)state;
    latency_add(&l, 0, 5);
    latency_add(&l, 100, 2);
    latency_add(&more, 7, 1);
    latency_merge(&l, &more);
    assert_int_equal(latency_read(&l.sum_us), 207);
    assert_int_equal(latency_read(&l.bucket[0]), 6);
    assert_int_equal(latency_count(&l), 8);
}

static void kinds_beyond_the_rows_share_one(void **state)
{
    struct latencies all;

    (void)state;
    memset(&all, 0, sizeof all);
    for (unsigned i = 0; i < LATENCY_KINDS; i++) {
        const uint16_t kind = (uint16_t)i;

        assert_int_equal(latencies_find(&all, kind), 0);
        assert_int_equal(latencies_row(&all, kind), i + 1);
    }
    assert_int_equal(latencies_row(&all, 1000), 0);
    assert_int_equal(latencies_row(&all, 3), 4); // as before
    assert_int_equal(latencies_find(&all, 3), 4);
}

static void tables_are_added_kind_by_kind(void **state)
{
    struct latencies a;
    struct latencies b;

    (void)state;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    latency_add(&a.row[latencies_row(&a, 7)].of[1], 10, 1);
    latency_add(&b.row[latencies_row(&b, 8)].of[1], 10, 1);
    latency_add(&b.row[latencies_row(&b, 7)].of[1], 10, 1);
    latency_add(&b.row[0].of[2], 10, 1);
    latencies_merge(&a, &b);
    assert_int_equal(latency_count(&a.row[latencies_find(&a, 7)].of[1]), 2);
    assert_int_equal(latency_count(&a.row[latencies_find(&a, 8)].of[1]), 1);
    assert_int_equal(latency_count(&a.row[0].of[2]), 1);
}

static void a_stamp_tells_row_and_age(void **state)
{
    static const uint64_t times_us[] = {0, 1, 12345, (1u << 27) - 1, 1u << 27, UINT64_C(1) << 40};

    (void)state;
    for (size_t i = 0; i < sizeof times_us / sizeof times_us[0]; i++) {
        for (uint32_t row = 0; row <= LATENCY_KINDS; row++) {
            const uint32_t stamp = latency_stamp(times_us[i], row);

            assert_int_equal(latency_stamp_row(stamp), row);
            assert_int_equal(latency_stamp_age_us(stamp, times_us[i]), 0);
            assert_int_equal(latency_stamp_age_us(stamp, times_us[i] + 1), 1);
            assert_int_equal(latency_stamp_age_us(stamp, times_us[i] + 120000000), 120000000);
        }
    }
}

static void it_is_a_histogram_of_each_kind_and_outcome(void **state)
{
    static const struct metric took = {"t_seconds", "Took.", METRIC_HISTOGRAM};
    static const char *const words[] = {"ok", "error"};
    static const struct metrics_series by_outcome = {"outcome", words, 1, 2};
    static const struct metrics_series by_kind = {NULL, NULL, 0, 1};
    struct latencies l;
    struct buffer out = {0};
    struct metrics m;

    (void)state;
    memset(&l, 0, sizeof l);
    latency_add(&l.row[latencies_row(&l, 3)].of[2], 100, 2);
    latency_add(&l.row[0].of[0], 1000000, 1);
    metrics_begin(&m, METRICS_TEXT, &out);
    metrics_put_latencies(&m, &took, &by_outcome, &l, NULL);
    buffer_put(&out, "", 1);
    static const char head[] = "# HELP t_seconds Took.\n# TYPE t_seconds histogram\n"
                               "t_seconds_bucket{kind=\"3\",outcome=\"error\",le=\"0.000064\"} 0\n"
                               "t_seconds_bucket{kind=\"3\",outcome=\"error\",le=\"0.000128\"} 2\n";
    static const char tail[] = "t_seconds_bucket{kind=\"3\",outcome=\"error\",le=\"16.777216\"} 2\n"
                               "t_seconds_bucket{kind=\"3\",outcome=\"error\",le=\"+Inf\"} 2\n"
                               "t_seconds_sum{kind=\"3\",outcome=\"error\"} 0.000200\n"
                               "t_seconds_count{kind=\"3\",outcome=\"error\"} 2\n";
    assert_true(out.size > sizeof head + sizeof tail);
    assert_memory_equal(out.data, head, sizeof head - 1);
    assert_string_equal((const char *)out.data + out.size - sizeof tail, tail);
    buffer_clear(&out);
    metrics_begin(&m, METRICS_JSON, &out);
    metrics_put_latencies(&m, &took, &by_outcome, &l, NULL);
    metrics_put_latencies(&m, &took, &by_kind, &l, NULL);
    metrics_end(&m);
    buffer_put(&out, "", 1);
    assert_string_equal((const char *)out.data,
                        "{\"t_seconds_sum{3,error}\":0.000200,\"t_seconds_count{3,error}\":2,"
                        "\"t_seconds_sum{other}\":1.000000,\"t_seconds_count{other}\":1}");
    buffer_fini(&out);
}

static void a_quantile_is_reckoned_within_its_bucket(void **state)
{
    uint64_t count[LATENCY_BUCKETS] = {0};

    (void)state;
    assert_int_equal(latency_quantile_us(count, 990), 0); // there are none
    count[3] = 100;                                       // 256 us to 512 us
    assert_int_equal(latency_quantile_us(count, 1000), 512);
    assert_int_equal(latency_quantile_us(count, 500), 256 + 128);
    assert_int_equal(latency_quantile_us(count, 10), 256 + 2);
    count[0] = 9900; // 1 % take longer, and none of them counts
    assert_int_equal(latency_quantile_us(count, 990), 64);
    count[3] = 101;
    assert_in_range(latency_quantile_us(count, 990), 257, 260);
    count[LATENCY_BUCKETS - 1] = 1000;
    assert_int_equal(latency_quantile_us(count, 990), LATENCY_LAST_US);
    for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
        count[i] = UINT64_C(1) << 48;
    }
    assert_int_equal(latency_quantile_us(count, 950), LATENCY_LAST_US);
    assert_int_equal(latency_quantile_us(count, 50), 64);
    memset(count, 0, sizeof count);
    count[0] = 1000;
    assert_int_equal(latency_quantile_us(count, 1), 1); // not 0, which is none
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_is_in_the_bucket_whose_bound_it_is_below),
        cmocka_unit_test(a_sum_is_of_all_times),
        cmocka_unit_test(a_quantile_is_reckoned_within_its_bucket),
        cmocka_unit_test(kinds_beyond_the_rows_share_one),
        cmocka_unit_test(tables_are_added_kind_by_kind),
        cmocka_unit_test(a_stamp_tells_row_and_age),
        cmocka_unit_test(it_is_a_histogram_of_each_kind_and_outcome),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
