/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of node/worker/profile.h.
 */
#include "tests/test.h"

#include "base/table.h"
#include "node/worker/profile.h"

static void add(struct profile *h, uint64_t now_us, uint8_t id, uint64_t busy_us)
{
    const struct profile_counter c = {
        .hash = table_mix(id), .busy_us = busy_us, .tasks = 1, .id_size = 1, .id = {id}};

    profile_add(h, now_us, &c);
}

static void the_busiest_come_first(void **state)
{
    struct profile h = {0};
    struct profile_counter top[3];

    (void)state;
    for (uint8_t id = 1; id <= 10; id++) {
        add(&h, 1000, id, id);
        add(&h, 2000, id, id);
    }
    assert_int_equal(profile_top(&h, 3000, top, 3), 3);
    for (uint8_t i = 0; i < 3; i++) {
        assert_int_equal(top[i].id[0], 10 - i);
        assert_int_equal(top[i].busy_us, 2 * (10 - i));
        assert_int_equal(top[i].tasks, 2);
    }
}

static void a_heavy_one_is_found_among_many(void **state)
{
    static struct profile h;
    struct profile_counter top[1];

    (void)state;
    for (int round = 0; round < 100; round++) {
        add(&h, 1000, 0, 200);
        for (uint8_t id = 1; id < 255; id++) {
            add(&h, 1000, id, 10);
        }
    }
    assert_int_equal(profile_top(&h, 1000, top, 1), 1);
    assert_int_equal(top[0].id[0], 0);
    assert_true(top[0].busy_us >= 20000); // never too low
}

static void what_is_old_is_forgotten(void **state)
{
    struct profile h = {0};
    struct profile_counter top[2];
    uint64_t now_us = 100000000;

    (void)state;
    add(&h, now_us, 1, 50);
    now_us += PROFILE_WINDOW_US;
    add(&h, now_us, 2, 10);
    assert_int_equal(profile_top(&h, now_us, top, 2), 2); // of two windows
    assert_int_equal(top[0].id[0], 1);
    now_us += PROFILE_WINDOW_US;
    assert_int_equal(profile_top(&h, now_us, top, 2), 1);
    assert_int_equal(top[0].id[0], 2);
    assert_int_equal(profile_top(&h, now_us + 2 * (uint64_t)PROFILE_WINDOW_US, top, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_busiest_come_first),
        cmocka_unit_test(a_heavy_one_is_found_among_many),
        cmocka_unit_test(what_is_old_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
