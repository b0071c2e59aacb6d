/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of daemon/http_form.h: fields of fixed size, out of pieces of any.
 */
#include "daemon/http_form.h"

#include "tests/test.h"

#include <string.h>

static void a_value_comes_in_pieces(void **state)
{
    struct http_form f = {.fault = NULL};

    (void)state;
    http_form_put(&f, "node", "n", 0, 1);
    http_form_put(&f, "id", "0/", 0, 2);
    http_form_put(&f, "id", "ada", 2, 3);
    http_form_put(&f, "node", "17", 1, 2);
    http_form_put(&f, "reason", "", 0, 0);
    assert_null(f.fault);
    assert_string_equal(f.fields.node, "n17");
    assert_string_equal(f.fields.id, "0/ada");
    assert_string_equal(f.fields.reason, "");
    assert_string_equal(f.fields.by, "");
}

static void a_field_is_full_at_its_last_byte(void **state)
{
    char letters[sizeof((struct http_fields *)NULL)->id + 1];

    (void)state;
    memset(letters, 'a', sizeof letters);
#define X(name, size)                                            \
    {                                                            \
        struct http_form f = {.fault = NULL};                    \
        http_form_put(&f, #name, letters, 0, (size)-1);          \
        assert_null(f.fault);                                    \
        assert_int_equal(strlen(f.fields.name), (size)-1);       \
        http_form_put(&f, #name, letters, (size)-1, 1);          \
        assert_non_null(f.fault);                                \
        assert_int_equal(strlen(f.fields.name), (size)-1);       \
        f.fault = NULL;                                          \
        http_form_put(&f, #name, letters, 0, (size));            \
        assert_non_null(f.fault);                                \
        f.fault = NULL;                                          \
        http_form_put(&f, #name, letters, SIZE_MAX - 1, (size)); \
        assert_non_null(f.fault);                                \
    }
    HTTP_FORM_FIELDS(X)
#undef X
}

static void what_is_no_field_is_refused(void **state)
{
    struct http_form f = {.fault = NULL};

    (void)state;
    http_form_put(&f, "nodes", "n1", 0, 2);
    assert_non_null(f.fault);
    f.fault = NULL;
    http_form_put(&f, "", "n1", 0, 2);
    assert_non_null(f.fault);
    f.fault = NULL;
    http_form_put(&f, "node", "n\0", 0, 2);
    assert_non_null(f.fault);
    assert_string_equal(f.fields.node, "");
}

static void too_much_is_passed_over(void **state)
{
    struct http_form f = {.fault = NULL};
    const char zeros[1024] = {0};

    (void)state;
    for (size_t i = 0; i < HTTP_BODY_MAX; i += sizeof zeros) {
        http_form_take(&f, zeros, sizeof zeros);
    }
    assert_false(f.too_large);
    http_form_take(&f, zeros, 1);
    assert_true(f.too_large);
    http_form_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_comes_in_pieces),
        cmocka_unit_test(a_field_is_full_at_its_last_byte),
        cmocka_unit_test(what_is_no_field_is_refused),
        cmocka_unit_test(too_much_is_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
