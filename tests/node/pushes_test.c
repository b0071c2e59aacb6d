/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of gateway/client/pushes.h: order, gaps, copies.
 */
#include "gateway/client/pushes.h"

#include "tests/test.h"

#include <string.h>

enum { COUNT = 200 };

static const uint64_t start_us = 1000;

static struct push_record numbered(uint32_t round, uint64_t number)
{
    return (struct push_record){
        .round = round, .number = number, .payload = bytes_of("payload", 7)};
}

static bool take(struct pushes *p, uint32_t round, uint64_t number, bool open, uint64_t now_us)
{
    const struct push_record r = numbered(round, number);

    return pushes_take(p, &r, open, now_us);
}

/* Number of the next kept one that may go; 0 = none. */
static uint64_t next(struct pushes *p, uint64_t now_us)
{
    struct kept_push *k = pushes_next(p, now_us);
    uint64_t number = 0;

    if (k != NULL) {
        number = k->record.number;
        assert_int_equal(k->record.payload.size, 7);
        assert_memory_equal(k->record.payload.data, "payload", 7);
        pushes_free(k);
    }
    return number;
}

static void what_comes_early_waits_for_its_turn(void **state)
{
    struct push_stats f = {0};
    struct pushes p;

    (void)state;
    pushes_init(&p, &f);
    pushes_begin(&p, 1, 1);
    assert_true(take(&p, 1, 1, true, start_us));
    assert_false(take(&p, 1, 4, true, start_us));
    assert_false(take(&p, 1, 3, true, start_us));
    assert_false(take(&p, 1, 3, true, start_us)); // a copy
    assert_int_equal(next(&p, start_us), 0);
    assert_true(pushes_wait(&p));
    assert_true(take(&p, 1, 2, true, start_us));
    assert_int_equal(next(&p, start_us), 3);
    assert_int_equal(next(&p, start_us), 4);
    assert_int_equal(next(&p, start_us), 0);
    assert_false(pushes_wait(&p));
    assert_false(take(&p, 1, 4, true, start_us)); // a copy of what was delivered
    assert_int_equal(f.dropped_copy, 2);
    assert_int_equal(f.lost, 0);
    pushes_fini(&p);
}

static void a_gap_is_given_up_in_time(void **state)
{
    struct push_stats f = {0};
    struct pushes p;

    (void)state;
    pushes_init(&p, &f);
    pushes_begin(&p, 1, 1);
    assert_false(take(&p, 1, 3, true, start_us));
    assert_false(take(&p, 1, 6, true, start_us));
    assert_int_equal(next(&p, start_us + PUSHES_GAP_US - 1), 0);
    assert_int_equal(next(&p, start_us + PUSHES_GAP_US), 3);
    assert_int_equal(f.lost, 2);
    // The gap behind it is another one.
    assert_int_equal(next(&p, start_us + PUSHES_GAP_US), 0);
    assert_int_equal(next(&p, start_us + 2 * (uint64_t)PUSHES_GAP_US), 6);
    assert_int_equal(f.lost, 4);
    assert_false(take(&p, 1, 4, true, start_us)); // it comes too late: never out of order
    assert_int_equal(f.dropped_copy, 1);
    pushes_fini(&p);
}

static void a_gap_is_given_up_for_want_of_room(void **state)
{
    struct push_stats f = {0};
    struct pushes p;
    uint64_t number = 2;

    (void)state;
    pushes_init(&p, &f);
    pushes_begin(&p, 1, 1);
    while (p.size <= PUSHES_KEPT_MAX) {
        assert_false(take(&p, 1, number, true, start_us));
        number++;
    }
    for (uint64_t i = 2; i < number; i++) {
        assert_int_equal(next(&p, start_us), i);
    }
    assert_int_equal(f.lost, 1);
    assert_int_equal(p.size, 0);
    pushes_fini(&p);
}

/* What a gap in front of an older round took of the time is not counted. */
static void a_round_that_is_confirmed_has_a_gap_of_its_own(void **state)
{
    struct push_stats f = {0};
    struct pushes p;

    (void)state;
    pushes_init(&p, &f);
    pushes_begin(&p, 1, 1);
    assert_false(take(&p, 2, 1, true, start_us));
    assert_false(take(&p, 3, 2, true, start_us + PUSHES_GAP_US / 2));
    pushes_begin(&p, 3, 1);
    assert_int_equal(next(&p, start_us + PUSHES_GAP_US), 0);
    assert_int_equal(f.lost, 0);
    assert_int_equal(next(&p, start_us + PUSHES_GAP_US / 2 + PUSHES_GAP_US), 2);
    assert_int_equal(f.lost, 1);
    pushes_fini(&p);
}

static void a_round_that_is_not_confirmed_waits_in_bounds(void **state)
{
    struct push_stats f = {0};
    struct pushes p;

    (void)state;
    pushes_init(&p, &f);
    assert_false(take(&p, 1, 1, false, start_us));
    assert_false(take(&p, 2, 1, false, start_us));
    assert_int_equal(next(&p, start_us), 0);
    pushes_begin(&p, 2, 1);
    assert_int_equal(f.dropped_stale, 1);
    assert_int_equal(next(&p, start_us), 1);
    assert_false(take(&p, 1, 2, true, start_us)); // what is left of the round before
    assert_int_equal(f.dropped_stale, 2);
    for (uint64_t i = 1; f.dropped_room == 0; i++) {
        assert_true(i < PUSHES_KEPT_MAX);
        assert_false(take(&p, 3, i, true, start_us));
    }
    assert_true(p.size <= PUSHES_KEPT_MAX);
    pushes_fini(&p);
}

/* A reply that stands in front keeps them back, in bounds too. */
static void what_must_not_go_yet_is_kept_in_bounds(void **state)
{
    struct push_stats f = {0};
    struct pushes p;

    (void)state;
    pushes_init(&p, &f);
    pushes_begin(&p, 1, 1);
    for (uint64_t i = 1; f.dropped_room == 0; i++) {
        assert_true(i < PUSHES_KEPT_MAX);
        assert_false(take(&p, 1, i, false, start_us));
    }
    assert_int_equal(next(&p, start_us), 1);
    pushes_fini(&p);
}

/* Two links, whatever their speed: the old owner's pushes and the new one's, some twice. */
static void any_mix_comes_out_in_order(void **state)
{
    uint64_t dice = 1;

    (void)state;
    for (int run = 0; run < 50; run++) {
        struct push_stats f = {0};
        struct pushes p;
        uint64_t at[2] = {1, COUNT / 2 + 1};
        const uint64_t end[2] = {COUNT / 2, COUNT};
        uint64_t out = 0;

        pushes_init(&p, &f);
        pushes_begin(&p, 1, 1);
        while (at[0] <= end[0] || at[1] <= end[1]) {
            dice = dice * 6364136223846793005u + 1442695040888963407u;
            const size_t link = at[0] > end[0] ? 1 : at[1] > end[1] ? 0 : dice >> 63;
            uint64_t number = at[link]++;

            for (int copies = 0; copies <= (int)(dice >> 60 & 1); copies++) {
                if (take(&p, 1, number, true, start_us)) {
                    assert_int_equal(number, ++out);
                }
            }
            while ((number = next(&p, start_us)) != 0) {
                assert_int_equal(number, ++out);
            }
        }
        assert_int_equal(out, COUNT);
        assert_int_equal(f.lost, 0);
        pushes_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_early_waits_for_its_turn),
        cmocka_unit_test(a_gap_is_given_up_in_time),
        cmocka_unit_test(a_gap_is_given_up_for_want_of_room),
        cmocka_unit_test(a_round_that_is_confirmed_has_a_gap_of_its_own),
        cmocka_unit_test(a_round_that_is_not_confirmed_waits_in_bounds),
        cmocka_unit_test(what_must_not_go_yet_is_kept_in_bounds),
        cmocka_unit_test(any_mix_comes_out_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
