/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/histogram.h.
 */
#include "base/histogram.h"

#include "tests/test.h"

static void percentiles_are_within_one_bucket(void **state)
{
    struct histogram h = {0};

    (void)state;
    for (uint64_t us = 1; us <= 100000; us++) {
        histogram_add(&h, us);
    }
    const unsigned per_mille[] = {10, 500, 990, 999};
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t exact = (uint64_t)per_mille[i] * 100;
        const uint64_t got = histogram_at(&h, per_mille[i]);

        assert_true(got >= exact);
        assert_true(got <= exact + exact / 127);
    }
    assert_int_equal(histogram_at(&h, 1000), 100000);
}

static void an_empty_one_says_zero_and_huge_values_fit(void **state)
{
    struct histogram h = {0};

    (void)state;
    assert_int_equal(histogram_at(&h, 500), 0);
    histogram_add(&h, UINT64_MAX);
    assert_int_equal(h.max_us, UINT64_MAX);
}

static void a_value_comes_many_times_at_once(void **state)
{
    struct histogram one = {0};
    struct histogram many = {0};

    (void)state;
    for (int i = 0; i < 7; i++) {
        histogram_add(&one, 4711);
    }
    histogram_add_many(&many, 4711, 7);
    histogram_add_many(&many, 9999, 0); // it never came
    assert_memory_equal(&one, &many, sizeof one);
}

static void merging_adds_counts_and_keeps_the_greatest(void **state)
{
    struct histogram a = {0};
    struct histogram b = {0};

    (void)state;
    histogram_add(&a, 5);
    histogram_add(&b, 7);
    histogram_add(&b, 9000);
    histogram_merge(&a, &b);
    assert_int_equal(a.count, 3);
    assert_int_equal(a.max_us, 9000);
    assert_int_equal(histogram_at(&a, 500), 7);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(percentiles_are_within_one_bucket),
        cmocka_unit_test(a_value_comes_many_times_at_once),
        cmocka_unit_test(merging_adds_counts_and_keeps_the_greatest),
        cmocka_unit_test(an_empty_one_says_zero_and_huge_values_fit),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
