/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of gateway/access/admission.h and bucket.h.
 */
#include "gateway/access/admission.h"

#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>

static const uint64_t second_us = 1000000;
static const uint64_t now_us = 1000 * 1000000ull;

static enum admission_verdict come(struct admission_control *d, const char *address, uint64_t at_us,
                                   uint32_t *retry)
{
    struct client_address *v = NULL;
    const enum admission_verdict verdict = admission_enter(d, address, at_us, &v, retry);

    if (verdict == ADMISSION_OPEN) {
        admission_leave(d, v, at_us);
    }
    return verdict;
}

/* ---- the bucket ---- */

static void a_bucket_lets_a_burst_pass_and_then_its_rate(void **state)
{
    const struct bucket_rate r = {.rate = 10, .burst = 3};
    struct bucket b = {0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bucket_take(&b, r, now_us), 0);
    }
    assert_false(bucket_is_full(&b, now_us));
    assert_in_range(bucket_take(&b, r, now_us), 100000, 100001);
    assert_in_range(bucket_take(&b, r, now_us), 100000, 100001); // a refusal takes nothing
    assert_true(bucket_take(&b, r, now_us + 99999) > 0);
    assert_int_equal(bucket_take(&b, r, now_us + 100001), 0);
    assert_true(bucket_take(&b, r, now_us + 100001) > 0);
    assert_true(bucket_is_full(&b, now_us + second_us));
    uint32_t passed = 0;
    for (uint64_t us = second_us; us < 11 * second_us; us += 1000) {
        passed += bucket_take(&b, r, now_us + us) == 0;
    }
    assert_in_range(passed, 100, 103);
}

static void a_bucket_without_a_rate_lets_all_pass(void **state)
{
    struct bucket b = {0};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(bucket_take(&b, (struct bucket_rate){0}, 0), 0);
    }
}

/* ---- the rate in all ---- */

struct attempt {
    uint64_t at_us;
    uint32_t tries;
};

static int by_time(const void *a, const void *b)
{
    const uint64_t x = ((const struct attempt *)a)->at_us;
    const uint64_t y = ((const struct attempt *)b)->at_us;

    return x < y ? -1 : x > y;
}

/* All come within a second, and each as often as it is told to, until it is in. */
static void a_storm_comes_back_over_the_time_that_the_rate_needs(void **state)
{
    enum { N = 50000, RATE = 5000 };
    const struct admission_config config = {.accept = {RATE, RATE / 10}, .seed = 7};
    struct admission_control *d = admission_new(&config);
    struct attempt *a = calloc(N, sizeof *a);
    uint64_t last_us = 0;
    uint64_t tries = 0;
    uint32_t in[64] = {0};
    size_t left = N;

    (void)state;
    for (size_t i = 0; i < N; i++) {
        a[i].at_us = now_us + second_us * i / N;
    }
    while (left > 0) {
        size_t still = 0;

        qsort(a, left, sizeof *a, by_time);
        const uint64_t turn_us = a[0].at_us + 100000; // who comes back comes later than this
        for (size_t i = 0; i < left; i++) {
            uint32_t retry_ms = 0;

            if (a[i].at_us >= turn_us ||
                come(d, "10.0.0.1:1", a[i].at_us, &retry_ms) != ADMISSION_OPEN) {
                tries += retry_ms > 0;
                assert_true(a[i].at_us >= turn_us || retry_ms >= 100);
                a[i].at_us += (uint64_t)retry_ms * 1000;
                a[still++] = a[i];
                continue;
            }
            tries++;
            last_us = a[i].at_us > last_us ? a[i].at_us : last_us;
            in[(a[i].at_us - now_us) / second_us]++;
        }
        left = still;
    }
    printf("          %d let in at %d/s: over %.1f s, %.2f tries each\n",
           N,
           RATE,
           (double)(last_us - now_us) / 1e6,
           (double)tries / N);
    for (size_t i = 0; i < 64; i++) {
        assert_true(in[i] <= RATE + RATE / 10 + 1);
    }
    assert_true(last_us - now_us < 2 * second_us * N / RATE);
    assert_true(tries / N < 4);
    free(a);
    admission_free(d);
}

static void hints_grow_with_the_backlog_and_it_passes(void **state)
{
    const struct admission_config config = {.accept = {100, 10}, .seed = 1};
    struct admission_control *d = admission_new(&config);
    uint32_t first = 0;
    uint32_t last = 0;

    (void)state;
    assert_false(admission_state(d, now_us).shedding);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(come(d, "h:1", now_us, &first), ADMISSION_OPEN);
    }
    assert_false(admission_state(d, now_us).shedding);
    assert_int_equal(come(d, "h:1", now_us, &first), ADMISSION_ACCEPT_RATE);
    assert_in_range(first, 100, 150);
    for (int i = 0; i < 999; i++) {
        assert_int_equal(come(d, "h:1", now_us, &last), ADMISSION_ACCEPT_RATE);
    }
    assert_in_range(last, 10000, 12700);
    assert_true(admission_state(d, now_us).shedding);
    assert_in_range(admission_state(d, now_us).backlog_ms, 10000, 10200);
    assert_true(admission_state(d, now_us + 9 * second_us).shedding);
    assert_false(admission_state(d, now_us + 11 * second_us).shedding);
    for (int i = 0; i < 100000; i++) {
        (void)come(d, "h:1", now_us, &last);
        assert_true(last <= 300 * 1000 + 75 * 1000);
    }
    admission_free(d);
}

static void who_finds_no_room_comes_back_as_fast_as_others_leave(void **state)
{
    const struct admission_config config = {.seed = 1};
    struct admission_control *d = admission_new(&config);
    uint32_t slow = 0;
    uint32_t fast = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        slow = admission_turn_away(d, now_us);
    }
    assert_in_range(slow, 10000, 14000); // a hundred a second are thought to leave
    assert_true(admission_state(d, now_us).shedding);
    for (uint64_t ms = 0; ms < 10000; ms++) {
        admission_leave(d, NULL, now_us + 20 * second_us + ms * 1000);
    }
    for (int i = 0; i < 1000; i++) {
        fast = admission_turn_away(d, now_us + 30 * second_us);
    }
    assert_in_range(fast, 1900, 2600);
    for (int i = 0; i < 1000; i++) { // that was long ago
        slow = admission_turn_away(d, now_us + 100 * second_us);
    }
    assert_in_range(slow, 10000, 14000);
    admission_free(d);
}

/* ---- addresses ---- */

static void an_address_has_its_own_rate(void **state)
{
    const struct admission_config config = {.address = {10, 2}, .seed = 1};
    struct admission_control *d = admission_new(&config);
    uint32_t retry = 0;

    (void)state;
    assert_int_equal(come(d, "10.0.0.1:1", now_us, &retry), ADMISSION_OPEN);
    assert_int_equal(come(d, "10.0.0.1:2", now_us, &retry), ADMISSION_OPEN);
    assert_int_equal(come(d, "10.0.0.1:3", now_us, &retry), ADMISSION_ADDRESS_RATE);
    assert_in_range(retry, 100, 260);
    assert_int_equal(come(d, "10.0.0.2:3", now_us, &retry), ADMISSION_OPEN);
    assert_false(admission_state(d, now_us).shedding); // the gateway itself has room
    assert_int_equal(come(d, "10.0.0.1:3", now_us + second_us, &retry), ADMISSION_OPEN);
    // A network of IPv6 is one address, whatever port and form.
    assert_int_equal(come(d, "[2001:db8::1]:1", now_us, &retry), ADMISSION_OPEN);
    assert_int_equal(come(d, "[2001:db8:0:0:1::2]:2", now_us, &retry), ADMISSION_OPEN);
    assert_int_equal(come(d, "[2001:db8::3]:3", now_us, &retry), ADMISSION_ADDRESS_RATE);
    assert_int_equal(come(d, "[2001:db8:0:1::3]:3", now_us, &retry), ADMISSION_OPEN);
    admission_free(d);
}

static void an_address_has_so_many_connections_at_a_time(void **state)
{
    const struct admission_config config = {.address_count_max = 2, .accept = {1000, 3}, .seed = 1};
    struct admission_control *d = admission_new(&config);
    struct client_address *v[3] = {NULL};
    uint32_t retry = 0;

    (void)state;
    assert_int_equal(admission_enter(d, "h:1", now_us, &v[0], &retry), ADMISSION_OPEN);
    assert_int_equal(admission_enter(d, "h:2", now_us, &v[1], &retry), ADMISSION_OPEN);
    for (int i = 0; i < 10; i++) { // takes nobody's place
        assert_int_equal(admission_enter(d, "h:3", now_us, &v[2], &retry), ADMISSION_ADDRESS_COUNT);
        assert_null(v[2]);
    }
    assert_in_range(retry, 5000, 6400);
    admission_leave(d, v[0], now_us);
    assert_int_equal(admission_enter(d, "h:3", now_us, &v[0], &retry), ADMISSION_OPEN);
    admission_leave(d, v[0], now_us);
    admission_leave(d, v[1], now_us);
    admission_free(d);
}

static void addresses_that_are_remembered_are_bounded(void **state)
{
    const struct admission_config config = {
        .address = {1, 1}, .address_count_max = 1, .addresses_max = 1000, .seed = 1};
    struct admission_control *d = admission_new(&config);
    struct client_address *here[10] = {NULL};
    uint32_t retry = 0;
    char text[32];

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        (void)snprintf(text, sizeof text, "192.168.0.%u:1", i);
        assert_int_equal(admission_enter(d, text, now_us, &here[i], &retry), ADMISSION_OPEN);
    }
    for (unsigned i = 0; i < 100000; i++) {
        (void)snprintf(text, sizeof text, "10.%u.%u.%u:1", i >> 16, i >> 8 & 255, i & 255);
        assert_int_equal(come(d, text, now_us, &retry), ADMISSION_OPEN);
        assert_true(admission_state(d, now_us).addresses <= 1000);
    }
    // Those that somebody is here from are known, and so is who came last.
    assert_int_equal(come(d, "192.168.0.9:2", now_us, &retry), ADMISSION_ADDRESS_COUNT);
    assert_int_equal(come(d, text, now_us, &retry), ADMISSION_ADDRESS_RATE);
    // Nobody is remembered for longer than it makes a difference.
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(
            come(d, "172.16.0.1:1", now_us + (20 + 2 * (uint64_t)i) * second_us, &retry),
            ADMISSION_OPEN);
    }
    (void)come(d, "172.16.0.2:1", now_us + 3000 * second_us, &retry);
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(text, sizeof text, "10.9.%u.%u:1", i >> 8, i & 255);
        (void)come(d, text, now_us + (4000 + 2 * (uint64_t)i) * second_us, &retry);
    }
    assert_true(admission_state(d, now_us).addresses <= 12);
    for (unsigned i = 0; i < 10; i++) {
        admission_leave(d, here[i], now_us);
    }
    admission_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_lets_a_burst_pass_and_then_its_rate),
        cmocka_unit_test(a_bucket_without_a_rate_lets_all_pass),
        cmocka_unit_test(a_storm_comes_back_over_the_time_that_the_rate_needs),
        cmocka_unit_test(hints_grow_with_the_backlog_and_it_passes),
        cmocka_unit_test(who_finds_no_room_comes_back_as_fast_as_others_leave),
        cmocka_unit_test(an_address_has_its_own_rate),
        cmocka_unit_test(an_address_has_so_many_connections_at_a_time),
        cmocka_unit_test(addresses_that_are_remembered_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
