/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of drain_eta_us(); tests/e2e/smoke/smoke_waits.py shows a drain that waits.
 */
#include "cli/drain_watch.h"

#include "tests/test.h"

static const uint64_t S = 1000000;

static uint64_t eta_s(struct drain_pace pace)
{
    return drain_eta_us(&pace) / S;
}

static void what_is_left_takes_as_long_as_what_moved(void **state)
{
    (void)state;
    assert_int_equal(
        eta_s((struct drain_pace){.done = 10, .left = 30, .moved_us = 2 * S, .moves = true}), 6);
    assert_int_equal(eta_s((struct drain_pace){.left = 30, .moved_us = 2 * S, .moves = true}), 0);
}

static void while_nothing_moves_the_wait_comes_on_top(void **state)
{
    const struct drain_pace pace = {.done = 10, .left = 30, .moved_us = 2 * S, .wait_us = 9 * S};
    const struct drain_pace first = {.left = 30, .wait_us = 9 * S};

    (void)state;
    assert_int_equal(eta_s(pace), 15);
    assert_int_equal(eta_s(first), 9);
}

static void while_others_move_the_longer_counts(void **state)
{
    struct drain_pace pace = {
        .done = 10, .left = 30, .moved_us = 2 * S, .wait_us = 9 * S, .moves = true};

    (void)state;
    assert_int_equal(eta_s(pace), 9);
    pace.wait_us = S;
    assert_int_equal(eta_s(pace), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_takes_as_long_as_what_moved),
        cmocka_unit_test(while_nothing_moves_the_wait_comes_on_top),
        cmocka_unit_test(while_others_move_the_longer_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
