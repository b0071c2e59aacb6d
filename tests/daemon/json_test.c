/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of daemon/json.h.
 */
#include "daemon/json.h"

#include "tests/test.h"

static void values_have_commas_between_them(void **state)
{
    struct buffer out = {0};

    (void)state;
    json_begin(&out, NULL, '{');
    json_number(&out, "a", 0);
    json_begin(&out, "b", '[');
    json_end(&out, ']');
    json_begin(&out, "c", '[');
    json_begin(&out, NULL, '[');
    json_text(&out, NULL, "x");
    json_number(&out, NULL, 7);
    json_end(&out, ']');
    json_begin(&out, NULL, '[');
    json_end(&out, ']');
    json_end(&out, ']');
    json_text(&out, "d", "");
    json_end(&out, '}');
    buffer_put(&out, "", 1);
    assert_string_equal((const char *)out.data,
                        "{\"a\":0,\"b\":[],\"c\":[[\"x\",7],[]],\"d\":\"\"}");
    buffer_fini(&out);
}

static void text_is_escaped_and_large_numbers_are_text(void **state)
{
    struct buffer out = {0};

    (void)state;
    json_begin(&out, NULL, '[');
    json_text(&out, NULL, "a\"\\\n\x1f/é");
    json_text(&out, NULL, "[");
    json_number(&out, NULL, (1ull << 53) - 1);
    json_number(&out, NULL, 1ull << 53);
    json_end(&out, ']');
    buffer_put(&out, "", 1);
    assert_string_equal(
        (const char *)out.data,
        "[\"a\\u0022\\u005c\\u000a\\u001f/é\",\"[\",9007199254740991,\"9007199254740992\"]");
    buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_commas_between_them),
        cmocka_unit_test(text_is_escaped_and_large_numbers_are_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
