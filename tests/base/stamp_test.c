/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as people see and type them.
 */
#include "tests/test.h"

#include "base/stamp.h"

enum { ERA_OF_A_RESTORE = 994000 };

static void a_number_is_shown_with_its_era_and_read_again(void **state)
{
    static const struct {
        uint64_t number;
        const char *text;
    } cases[] = {
        {0, "0"},
        {76, "76"},
        {(UINT64_C(1) << 40) - 1, "1099511627775"},
        {UINT64_C(1) << 40, "1.0"},
        {UINT64_C(1) << 40 | 76, "1.76"},
        {(uint64_t)ERA_OF_A_RESTORE << 40 | 77, "994000.77"},
        {UINT64_MAX, "16777215.1099511627775"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t number = 1;

        assert_string_equal(STAMP(cases[i].number), cases[i].text);
        assert_true(stamp_parse(cases[i].text, &number));
        assert_int_equal(number, cases[i].number);
    }
}

static void an_integer_is_read_too(void **state)
{
    uint64_t number;

    (void)state;
    assert_true(stamp_parse("1099511627852", &number));
    assert_string_equal(STAMP(number), "1.76");
    assert_true(stamp_parse("18446744073709551615", &number));
    assert_int_equal(number, UINT64_MAX);
}

static void what_is_no_number_is_not_read(void **state)
{
    static const char *const texts[] = {"",
                                        ".",
                                        "1.",
                                        ".76",
                                        "1.76.1",
                                        "1.x",
                                        "x",
                                        "-1",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "1,76",
                                        "0x10",
                                        "1.-7",
                                        "12x",
                                        "1..76",
                                        "1. 76",
                                        "16777216.76",
                                        "1.1099511627776",
                                        "18446744073709551616"};
    uint64_t number;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_false(stamp_parse(texts[i], &number));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_shown_with_its_era_and_read_again),
        cmocka_unit_test(an_integer_is_read_too),
        cmocka_unit_test(what_is_no_number_is_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
