/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of node/books/presence.h.
 */
#include "node/books/presence.h"

#include "tests/test.h"

static const uint64_t away_us = PRESENCE_US;

static void one_that_comes_back_in_time_is_not_missed(void **state)
{
    struct presence p = {0};
    uint64_t gateway = 0;

    (void)state;
    presence_up(&p, 7, 1);
    assert_int_equal(presence_link(&p, 7), 1);
    presence_down(&p, 1, 1000);
    assert_int_equal(presence_link(&p, 7), 0);
    assert_false(presence_gone(&p, 1000 + away_us - 1, &gateway));
    presence_up(&p, 7, 2);
    assert_false(presence_gone(&p, 1000 + 2 * away_us, &gateway));
    presence_down(&p, 99, 1000); // no gateway's
    presence_fini(&p);
}

static void one_that_stays_away_is_told_once(void **state)
{
    struct presence p = {0};
    uint64_t gateway = 0;

    (void)state;
    for (uint64_t i = 1; i <= 20; i++) {
        presence_up(&p, i, 100 + i);
    }
    for (uint64_t i = 1; i <= 20; i += 2) {
        presence_down(&p, 100 + i, 1000 * i);
    }
    for (size_t i = 0; i < 10; i++) {
        assert_true(presence_gone(&p, 20000 + away_us, &gateway));
        assert_int_equal(gateway % 2, 1);
    }
    assert_false(presence_gone(&p, 20000 + away_us, &gateway));
    assert_int_equal(presence_link(&p, 20), 120);
    presence_fini(&p);
}

static void another_link_will_do(void **state)
{
    struct presence p = {0};
    uint64_t gateway = 0;

    (void)state;
    presence_up(&p, 7, 1);
    presence_up(&p, 7, 2);
    assert_int_equal(presence_link(&p, 7), 2);
    presence_down(&p, 2, 1000);
    assert_int_equal(presence_link(&p, 7), 1);
    assert_false(presence_gone(&p, 1000 + away_us, &gateway));
    presence_fini(&p);
}

/* Its actor came by a move, and the gateway died before it dialled here. */
static void one_that_never_was_here_is_missed_too(void **state)
{
    struct presence p = {0};
    uint64_t gateway = 0;

    (void)state;
    presence_bound(&p, 7, 1000);
    presence_bound(&p, 7, 2000); // another client of it: the time runs already
    assert_true(presence_gone(&p, 1000 + away_us, &gateway));
    assert_int_equal(gateway, 7);
    assert_false(presence_gone(&p, 2000 + away_us, &gateway));
    presence_bound(&p, 7, 3000 + away_us);
    assert_true(presence_gone(&p, 3000 + 2 * away_us, &gateway));
    presence_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_comes_back_in_time_is_not_missed),
        cmocka_unit_test(one_that_stays_away_is_told_once),
        cmocka_unit_test(another_link_will_do),
        cmocka_unit_test(one_that_never_was_here_is_missed_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
