/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of txn/leader/obstacle.h; tests/story/coordinator/waits.txt shows when a leader names
 * which.
 */
#include "txn/leader/obstacle.h"

#include "tests/test.h"

#include <string.h>

static void each_reason_has_a_word_of_its_own(void **state)
{
    (void)state;
    for (enum obstacle_reason a = OBSTACLE_NONE; a <= OBSTACLE_UNREAD; a++) {
        assert_int_equal(obstacle_word(a)[0] == '\0', a == OBSTACLE_NONE);
        for (enum obstacle_reason b = OBSTACLE_NONE; b < a; b++) {
            assert_string_not_equal(obstacle_word(a), obstacle_word(b));
        }
    }
}

static void of_two_obstacles_that_one_counts_which_lasts_longer(void **state)
{
    const struct obstacle none = {OBSTACLE_NONE, 0, 0, 0};
    const struct obstacle brief = {OBSTACLE_BACKOFF, 1, 2, 1000};
    const struct obstacle lengthy = {OBSTACLE_RETURNED, 1, 0, 9000};
    const struct obstacle open = {OBSTACLE_SILENT, 2, 0, 0};

    (void)state;
    assert_int_equal(obstacle_longer(none, none).reason, OBSTACLE_NONE);
    assert_int_equal(obstacle_longer(none, brief).reason, OBSTACLE_BACKOFF);
    assert_int_equal(obstacle_longer(brief, none).reason, OBSTACLE_BACKOFF);
    assert_int_equal(obstacle_longer(brief, lengthy).reason, OBSTACLE_RETURNED);
    assert_int_equal(obstacle_longer(lengthy, brief).reason, OBSTACLE_RETURNED);
    assert_int_equal(obstacle_longer(lengthy, open).reason, OBSTACLE_SILENT);
    assert_int_equal(obstacle_longer(open, lengthy).reason, OBSTACLE_SILENT);
}

static void what_waits_for_the_same_is_one_row(void **state)
{
    struct obstacles all = {.count = 0};
    struct obstructed o = {
        .by = {OBSTACLE_BACKOFF, 1, 2, 1000}, .drains = 1, .txns = 1, .vnodes = 8};

    (void)state;
    obstacles_add(&all, &o);
    o.by.left_us = 2000;
    o.vnodes = 3;
    obstacles_add(&all, &o);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.item[0].by.left_us, 2000);
    assert_int_equal(all.item[0].txns, 2);
    assert_int_equal(all.item[0].vnodes, 11);
    o.by.other = 3;
    obstacles_add(&all, &o);
    o.drains = 0;
    obstacles_add(&all, &o);
    assert_int_equal(all.count, 3);
}

static void the_rows_are_bounded(void **state)
{
    struct obstacles all = {.count = 0};

    (void)state;
    for (unsigned slot = 1; slot <= 2 * OBSTACLES_MAX; slot++) {
        const struct obstructed o = {.by = {OBSTACLE_NODE_CAP, (uint16_t)slot, 0, 0}, .txns = 1};

        obstacles_add(&all, &o);
        obstacles_add(&all, &o);
    }
    assert_int_equal(all.count, OBSTACLES_MAX);
    assert_int_equal(all.item[OBSTACLES_MAX - 1].txns, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reason_has_a_word_of_its_own),
        cmocka_unit_test(of_two_obstacles_that_one_counts_which_lasts_longer),
        cmocka_unit_test(what_waits_for_the_same_is_one_row),
        cmocka_unit_test(the_rows_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
