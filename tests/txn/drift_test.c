/* SPDX-License-Identifier: Apache-2.0
 *
 * With --mutants: what these cases catch.
 */
#include "tests/test.h"

#include "txn/leader/drift.h"

#include "tests/planted.h"

enum { EVERY_US = 500000, LEASE_US = 3000000, LATE = 11 };

/* A node's renewals, and how late each is read. */
struct renewals {
    uint64_t now_us;        /* true time, and mine */
    uint64_t clock_us;      /* the node's */
    uint64_t late_us[LATE]; /* one after the other, again and again */
    size_t sent;
};

/* So many windows with a clock of that rate. Returns how often it was news. */
static size_t run(struct drift *d, struct renewals *r, uint64_t percent, size_t windows)
{
    const uint64_t end_us = r->now_us + windows * DRIFT_WINDOW_US;
    size_t news = 0;

    while (r->now_us < end_us) {
        r->now_us += EVERY_US;
        r->clock_us += EVERY_US * percent / 100;
        news += drift_take(d, r->now_us + r->late_us[r->sent++ % LATE], r->clock_us);
    }
    return news;
}

static const struct renewals begin = {.now_us = 1000000, .clock_us = 900000000};

static void clocks_within_the_promise_are_not_told(void **state)
{
    static const uint64_t rates[] = {91, 95, 100, 105, 110};

    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct drift d = {0};
        struct renewals r = begin;

        assert_int_equal(run(&d, &r, rates[i], 10), 0);
        assert_int_equal(d.parts, 0);
        assert_int_equal(drift_lease_us(&d, LEASE_US), LEASE_US);
    }
}

static void a_fast_clock_is_told_and_keeps_its_lease(void **state)
{
    struct drift d = {0};
    struct renewals r = begin;

    (void)state;
    assert_int_equal(run(&d, &r, 120, 5), 1);
    assert_in_range(d.parts, 180, 200);
    assert_int_equal(drift_lease_us(&d, LEASE_US), LEASE_US);
    assert_int_equal(run(&d, &r, 200, 5), 0);
    assert_in_range(d.parts, 900, 1000);
    assert_int_equal(run(&d, &r, 100, 5), 1); // it is right again
    assert_int_equal(d.parts, 0);
}

/* What it is granted ends before the wait for it, a tenth more than a lease, does. */
static void a_slow_clock_gets_a_lease_that_ends_in_time(void **state)
{
    (void)state;
    for (uint64_t percent = 30; percent <= 88; percent++) {
        struct drift d = {0};
        struct renewals r = begin;

        assert_int_equal(run(&d, &r, percent, 5), 1);
        const uint64_t lasts_us = drift_lease_us(&d, LEASE_US) * 100 / percent;
        assert_in_range(lasts_us, LEASE_US * 9 / 10, LEASE_US * 11 / 10);
    }
}

static void a_clock_that_stands_still_or_goes_back_is_told(void **state)
{
    struct drift d = {0};
    struct renewals r = begin;

    (void)state;
    assert_int_equal(run(&d, &r, 0, 5), 1);
    assert_int_equal(d.parts, -1000);
    assert_int_equal(drift_lease_us(&d, LEASE_US), LEASE_US / DRIFT_LEASE_PART);
    assert_int_equal(drift_lease_us(&d, 0), 0); // leases are not in force
    assert_int_equal(run(&d, &r, 100, 5), 1);
    r.clock_us = 1; // as after a restart of the machine
    assert_int_equal(run(&d, &r, 100, 1), 0);
    (void)run(&d, &r, 100, 3);
    assert_int_equal(d.parts, 0);
}

/* Of two stalls: what is read at the end of one was sent at any time of it. */
static void what_comes_late_is_no_clocks_fault(void **state)
{
    static const struct renewals late = {
        .now_us = 1000000,
        .clock_us = 900000000,
        .late_us =
            {0, 1200000, 700000, 200000, 3000000, 2500000, 2000000, 1500000, 1000000, 500000, 0},
    };
    struct drift d = {0};
    struct renewals r = late;

    (void)state;
    assert_int_equal(run(&d, &r, 100, 50), 0);
    assert_int_equal(run(&d, &r, 80, 5), 1);
    assert_in_range(-d.parts, 150, 250);
}

static void any_times_give_an_answer_within_bounds(void **state)
{
    uint64_t x = 88172645463325252;
    struct drift d = {0};
    uint64_t now_us = 1;

    (void)state;
    for (size_t i = 0; i < 100000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        now_us += x % 3 == 0 ? x % 10000000 : 500000;
        (void)drift_take(&d, now_us, x % 5 == 0 ? UINT64_MAX - x % 1000 : x);
        assert_true(d.parts >= -1000 && d.parts <= DRIFT_PARTS_MAX);
        assert_in_range(drift_lease_us(&d, LEASE_US), LEASE_US / DRIFT_LEASE_PART, LEASE_US);
    }
}

static void an_older_node_tells_nothing(void **state)
{
    struct drift d = {0};

    (void)state;
    for (uint64_t i = 1; i < 100; i++) {
        assert_false(drift_take(&d, i * EVERY_US, 0));
    }
    assert_int_equal(d.parts, 0);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_within_the_promise_are_not_told),
        cmocka_unit_test(a_fast_clock_is_told_and_keeps_its_lease),
        cmocka_unit_test(a_slow_clock_gets_a_lease_that_ends_in_time),
        cmocka_unit_test(a_clock_that_stands_still_or_goes_back_is_told),
        cmocka_unit_test(what_comes_late_is_no_clocks_fault),
        cmocka_unit_test(any_times_give_an_answer_within_bounds),
        cmocka_unit_test(an_older_node_tells_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant planted[] = {M_SLOWCLOCK, M_LATECLOCK};

    return planted_main(argc, argv, all_cases, planted, sizeof planted / sizeof planted[0]);
}
