/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/fleet_id.h.
 */
#include "base/fleet_id.h"

#include "tests/test.h"

static void an_id_is_printed_as_32_digits_and_read_again(void **state)
{
    const struct fleet_id f = {0x0123456789abcdefu, 0xfedcba9876543210u};
    char text[FLEET_ID_TEXT_SIZE];
    struct fleet_id read;

    (void)state;
    fleet_id_print(f, text);
    assert_string_equal(text, "0123456789abcdeffedcba9876543210");
    assert_true(fleet_id_parse(text, &read));
    assert_true(fleet_id_same(read, f));
    assert_true(fleet_id_parse("00000000000000000000000000000001\nmore", &read));
    assert_true(fleet_id_same(read, (struct fleet_id){0, 1}));
    fleet_id_print((struct fleet_id){0}, text);
    assert_string_equal(text, "");
}

static void what_is_no_id_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "\n",
        "0123456789abcdef",
        "0123456789abcdeffedcba987654321",
        "0123456789abcdeffedcba98765432100",
        "0123456789abcdeffedcba987654321g",
        "0123456789abcdef-edcba9876543210",
        "00000000000000000000000000000000",
    };
    struct fleet_id read;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(fleet_id_parse(bad[i], &read));
        assert_false(fleet_id_known(read));
    }
}

static void who_knows_no_fleet_differs_from_none(void **state)
{
    const struct fleet_id none = {0, 0};
    const struct fleet_id a = {1, 2};

    (void)state;
    assert_false(fleet_id_differs(none, a));
    assert_false(fleet_id_differs(a, none));
    assert_false(fleet_id_differs(none, none));
    assert_false(fleet_id_differs(a, a));
    assert_true(fleet_id_differs(a, (struct fleet_id){1, 3}));
    assert_true(fleet_id_differs(a, (struct fleet_id){2, 2}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_printed_as_32_digits_and_read_again),
        cmocka_unit_test(what_is_no_id_is_refused),
        cmocka_unit_test(who_knows_no_fleet_differs_from_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
