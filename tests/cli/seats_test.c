/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of daemon/seats.h: who is cut when strangers crowd an HTTP server.
 */
#include "tests/test.h"

#include "daemon/seats.h"

static struct seat *come(struct seats *s, uint8_t from, uint64_t now_ms)
{
    struct seat *seat = seats_come(s, &(struct seat_address){{from}}, now_ms);

    assert_non_null(seat);
    return seat;
}

static void who_has_no_answer_by_the_deadline_is_cut(void **state)
{
    struct seats s = {0};
    struct seat *slow = come(&s, 1, 1000);
    struct seat *kept = come(&s, 2, 1000);

    (void)state;
    assert_int_equal(seats_wait_ms(&s, 1500), SEAT_DEADLINE_MS - 500);
    seats_answered(&s, kept, 3000);
    assert_null(seats_cut(&s, 1000 + SEAT_DEADLINE_MS - 1));
    assert_ptr_equal(seats_cut(&s, 1000 + SEAT_DEADLINE_MS), slow);
    assert_null(seats_cut(&s, 1000 + SEAT_DEADLINE_MS));
    assert_int_equal(seats_wait_ms(&s, 1000 + SEAT_DEADLINE_MS), 2000);
    assert_ptr_equal(seats_cut(&s, 9000 + SEAT_DEADLINE_MS), kept);
    assert_int_equal(s.cut[SEAT_CUT_DEADLINE], 1);
    assert_int_equal(s.cut[SEAT_CUT_IDLE], 1);
    assert_int_equal(seats_wait_ms(&s, 9000), UINT64_MAX);
    seats_gone(&s, slow);
    seats_gone(&s, kept);
    assert_int_equal(s.taken, 0);
}

static void a_prober_outlasts_a_flood_from_one_address(void **state)
{
    struct seats s = {0};
    struct seat *prober = come(&s, 9, 0);

    (void)state;
    for (size_t i = 1; i < 10000; i++) {
        struct seat *gone = NULL;

        (void)come(&s, 1, i % SEAT_DEADLINE_MS);
        gone = seats_cut(&s, i % SEAT_DEADLINE_MS);
        assert_int_equal(gone != NULL, i >= SEATS_TAKEN_MAX);
        if (gone != NULL) {
            assert_ptr_not_equal(gone, prober);
            seats_gone(&s, gone);
        }
    }
    assert_int_equal(s.taken, SEATS_TAKEN_MAX);
    assert_int_equal(s.cut[SEAT_CUT_CROWDED], 10000 - SEATS_TAKEN_MAX);
}

static void of_strangers_from_everywhere_the_oldest_goes(void **state)
{
    struct seats s = {0};
    struct seat *first = come(&s, 0, 0);
    struct seat *second = come(&s, 1, 0);

    (void)state;
    for (size_t i = 2; i <= SEATS_TAKEN_MAX; i++) {
        assert_null(seats_cut(&s, 0));
        (void)come(&s, (uint8_t)i, 0);
    }
    seats_answered(&s, first, 0); // it asks again, and has not waited for long
    assert_ptr_equal(seats_cut(&s, 0), second);
    assert_null(seats_cut(&s, 0));
}

static void none_is_cut_twice_or_seated_before_it_is_gone(void **state)
{
    struct seats s = {0};
    struct seat *seat = NULL;
    size_t cut = 0;

    (void)state;
    for (size_t i = 0; i < SEATS_MAX; i++) {
        (void)come(&s, 1, 0);
    }
    assert_null(seats_come(&s, &(struct seat_address){{1}}, 0));
    while (seats_cut(&s, 0) != NULL) {
        cut++;
    }
    assert_int_equal(cut, SEATS_MAX - SEATS_TAKEN_MAX);
    while ((seat = seats_cut(&s, SEAT_DEADLINE_MS)) != NULL) {
        cut++;
        seats_gone(&s, seat);
    }
    assert_int_equal(cut, SEATS_MAX);
    (void)come(&s, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_no_answer_by_the_deadline_is_cut),
        cmocka_unit_test(a_prober_outlasts_a_flood_from_one_address),
        cmocka_unit_test(of_strangers_from_everywhere_the_oldest_goes),
        cmocka_unit_test(none_is_cut_twice_or_seated_before_it_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
