/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a command, printed at once or some at a time.
 */
#include "tests/test.h"

#include "cli/rows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Two rows, printed by themselves, and a longer third one; or none of them. */
static void print(bool json, bool any)
{
    static const char *const columns[] = {"ID", "USED MS", NULL};
    struct rows r;

    rows_init(&r, columns);
    for (uint64_t i = 1; i <= 2 && any; i++) {
        rows_text(&r, "a");
        rows_number(&r, i);
    }
    if (any) {
        rows_print_some(&r, json);
        assert_int_equal(r.cell_count, 0);
        rows_text(&r, "longer");
        rows_number(&r, 3);
    }
    if (json) {
        rows_print_json(&r);
    } else {
        rows_print_table(&r);
    }
    rows_fini(&r);
}

static void expect(bool json, bool any, const char *expected)
{
    char text[256] = "";
    FILE *file = tmpfile();
    const int out = dup(STDOUT_FILENO);

    assert_non_null(file);
    (void)fflush(stdout);
    assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
    print(json, any);
    (void)fflush(stdout);
    assert_true(dup2(out, STDOUT_FILENO) >= 0);
    (void)close(out);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    assert_string_equal(text, expected);
}

static void some_at_a_time_are_one_table(void **state)
{
    (void)state;
    expect(false, true, "ID  USED MS\na         1\na         2\nlonger        3\n");
    expect(false, false, "ID  USED MS\n");
}

static void some_at_a_time_are_one_array(void **state)
{
    (void)state;
    expect(true,
           true,
           "[{\"id\":\"a\",\"used_ms\":1},{\"id\":\"a\",\"used_ms\":2},"
           "{\"id\":\"longer\",\"used_ms\":3}]");
    expect(true, false, "[]");
}

static void a_span_has_two_units_at_most(void **state)
{
    static const struct {
        uint64_t s;
        const char *text;
    } spans[] = {
        {0, "0s"},
        {59, "59s"},
        {60, "1m00s"},
        {192, "3m12s"},
        {3599, "59m59s"},
        {18120, "5h02m"},
        {86399, "23h59m"},
        {370800, "4d07h"},
        {UINT64_MAX / 1000, "213503982334d14h"},
    };
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        assert_string_equal(span_text(spans[i].s * 1000, text, sizeof text), spans[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_has_two_units_at_most),
        cmocka_unit_test(some_at_a_time_are_one_table),
        cmocka_unit_test(some_at_a_time_are_one_array),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
