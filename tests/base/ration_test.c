/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/ration.h.
 */
#include "tests/test.h"

#include "base/ration.h"

static void so_many_a_second(void **state)
{
    struct ration r = {0};
    uint32_t refused = 9;

    (void)state;
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(ration_take(&r, 700000 + i, 3, &refused), i < 3);
        assert_int_equal(refused, 0);
    }
    assert_false(ration_take(&r, 1699999, 3, &refused));
    assert_true(ration_take(&r, 1700000, 3, &refused));
    assert_int_equal(refused, 3); // Told once.
    assert_true(ration_take(&r, 1700000, 3, &refused));
    assert_int_equal(refused, 0);
    assert_true(ration_take(&r, 1000, 3, &refused)); // A clock of another machine.
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(so_many_a_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
