/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/given.h: older, newer and senseless sizes.
 */
#include "base/given.h"

#include "tests/test.h"

#include <stdint.h>
#include <string.h>

struct thing {
    uint32_t size;
    uint32_t first;
    uint32_t second;
};

static char text[GIVEN_TEXT];

static bool take(const void *data, size_t size, struct thing *to)
{
    const struct given given = {
        .data = data, .size = size, .least = offsetof(struct thing, second)};

    text[0] = '\0';
    return given_take(&given, to, sizeof *to, text);
}

static void what_is_missing_is_0(void **state)
{
    const struct thing old = {.first = 1, .second = 2};
    struct thing to = {.second = 7};

    (void)state;
    assert_true(take(&old, sizeof old, &to));
    assert_int_equal(to.second, 2);
    assert_true(take(&old, offsetof(struct thing, second), &to));
    assert_int_equal(to.first, 1);
    assert_int_equal(to.second, 0);
}

static void what_is_newer_is_taken_if_it_asks_for_nothing(void **state)
{
    struct {
        struct thing thing;
        uint32_t third;
    } newer = {.thing = {.first = 1, .second = 2}};
    struct thing to = {0};

    (void)state;
    assert_true(take(&newer, sizeof newer, &to));
    assert_int_equal(to.second, 2);
    newer.third = 3;
    newer.thing.second = 4;
    assert_false(take(&newer, sizeof newer, &to));
    assert_int_equal(to.second, 2);
    assert_non_null(strstr(text, "it has 16 bytes"));
    assert_non_null(strstr(text, "the first 12"));
    assert_non_null(strstr(text, "newer libringhold"));
}

static void no_size_is_an_error(void **state)
{
    static const size_t bad[] = {0, 4, 7, GIVEN_MAX + 1, SIZE_MAX};
    const struct thing thing = {0};
    struct thing to;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(take(&thing, bad[i], &to));
        assert_non_null(strstr(text, "takes 8 to 12"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_0),
        cmocka_unit_test(what_is_newer_is_taken_if_it_asks_for_nothing),
        cmocka_unit_test(no_size_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
