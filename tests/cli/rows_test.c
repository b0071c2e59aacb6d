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
static void some_rows(enum rows_format format, bool any)
{
    static const char *const columns[] = {"ID", "USED MS", NULL};
    struct rows r;

    rows_init(&r, columns);
    for (uint64_t i = 1; i <= 2 && any; i++) {
        rows_text(&r, "a");
        rows_number(&r, i);
    }
    if (any) {
        rows_print_some(&r, format);
        assert_int_equal(r.cell_count, 0);
        rows_text(&r, "longer");
        rows_number(&r, 3);
    }
    rows_print(&r, format);
    rows_fini(&r);
}

static void three_rows(enum rows_format format)
{
    some_rows(format, true);
}

static void no_rows(enum rows_format format)
{
    some_rows(format, false);
}

/* What people and programs get of figures. */
static void figures(enum rows_format format)
{
    static const char *const columns[] = {"NODE",
                                          "SHARE=share_ppm",
                                          "LEASE=lease_ms",
                                          "TOOK=us",
                                          "SIZE=bytes",
                                          "TXN",
                                          "ZONE",
                                          "+DIGEST",
                                          "-WHY",
                                          NULL};
    struct rows r;

    rows_init(&r, columns);
    rows_text(&r, "n1");
    rows_share(&r, 333333);
    rows_ms(&r, 2900);
    rows_us(&r, 1500);
    rows_size(&r, 82000);
    rows_stamp(&r, UINT64_C(1) << 40 | 76);
    rows_text(&r, "%s", "");
    rows_text(&r, "0f");
    rows_text(&r, "a\tb");
    rows_text(&r, "n\xc3\xbc");
    rows_share(&r, 1000000);
    rows_ms(&r, 330);
    rows_us(&r, 7);
    rows_size(&r, 984);
    rows_stamp(&r, 0);
    rows_text(&r, "%s", "");
    rows_text(&r, "1f");
    rows_text(&r, "%s", "");
    rows_print(&r, format);
    rows_fini(&r);
}

/* A last column of text that is too wide, and a table of which it is not the only one. */
static void long_texts(enum rows_format format)
{
    static const char *const columns[] = {"ID", "WHAT", NULL};
    struct rows r;

    rows_init(&r, columns);
    rows_number(&r, 1);
    rows_text(&r,
              "%s",
              "the first forty letters of this sentence stand in its first line and the rest does "
              "in the one below");
    rows_number(&r, 2);
    rows_text(&r, "short");
    rows_print(&r, format);
    rows_fini(&r);
}

static void long_names(enum rows_format format)
{
    static const char *const columns[] = {"NODE", "ADDRESS", "COUNT", "ROLE", NULL};
    struct rows r;

    rows_init(&r, columns);
    rows_text(&r, "%s", "a-name-of-fifty-letters-which-is-more-than-usual-1");
    rows_text(&r, "%s", "an-address-of-forty-letters.example.org:");
    rows_number(&r, 7);
    rows_text(&r, "%s", "default-role-of-20-1");
    rows_print(&r, format);
    rows_fini(&r);
}

static void expect(void (*print)(enum rows_format format), enum rows_format format,
                   const char *expected)
{
    char text[2048] = "";
    FILE *file = tmpfile();
    const int out = dup(STDOUT_FILENO);

    assert_non_null(file);
    (void)fflush(stdout);
    assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
    print(format);
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
    expect(three_rows, ROWS_TABLE, "ID  USED MS\na         1\na         2\nlonger        3\n");
    expect(no_rows, ROWS_TABLE, "ID  USED MS\n");
}

static void some_at_a_time_are_one_array(void **state)
{
    (void)state;
    expect(three_rows,
           ROWS_JSON,
           "[{\"id\":\"a\",\"used_ms\":1},{\"id\":\"a\",\"used_ms\":2},"
           "{\"id\":\"longer\",\"used_ms\":3}]");
    expect(no_rows, ROWS_JSON, "[]");
}

static void some_at_a_time_have_one_header(void **state)
{
    (void)state;
    expect(three_rows, ROWS_TSV, "id\tused_ms\na\t1\na\t2\nlonger\t3\n");
    expect(no_rows, ROWS_TSV, "id\tused_ms\n");
}

/* Letters of two bytes take one column, and a column in which no row has anything is left out. */
static void people_get_units_and_programs_plain_figures(void **state)
{
    (void)state;
    expect(figures,
           ROWS_TABLE,
           "NODE    SHARE   LEASE    TOOK      SIZE   TXN\n"
           "n1     33.3 %   2.9 s  1.5 ms  80.1 KiB  1.76\n"
           "n\xc3\xbc    100.0 %  330 ms    7 us     984 B\n");
    expect(figures,
           ROWS_WIDE,
           "NODE    SHARE   LEASE    TOOK      SIZE   TXN  ZONE  DIGEST\n"
           "n1     33.3 %   2.9 s  1.5 ms  80.1 KiB  1.76        0f\n"
           "n\xc3\xbc    100.0 %  330 ms    7 us     984 B              1f\n");
    expect(figures,
           ROWS_TSV,
           "node\tshare_ppm\tlease_ms\tus\tbytes\ttxn\tzone\tdigest\twhy\n"
           "n1\t333333\t2900\t1500\t82000\t1.76\t\t0f\ta b\n"
           "n\xc3\xbc\t1000000\t330\t7\t984\t0\t\t1f\t\n");
    expect(figures,
           ROWS_JSON,
           "[{\"node\":\"n1\",\"share_ppm\":333333,\"lease_ms\":2900,\"us\":1500,"
           "\"bytes\":82000,\"txn\":\"1.76\",\"zone\":\"\",\"digest\":\"0f\","
           "\"why\":\"a\\u0009b\"},"
           "{\"node\":\"n\xc3\xbc\",\"share_ppm\":1000000,\"lease_ms\":330,\"us\":7,"
           "\"bytes\":984,\"txn\":\"0\",\"zone\":\"\",\"digest\":\"1f\",\"why\":\"\"}]");
}

static void a_table_fits_a_hundred_columns(void **state)
{
    (void)state;
    expect(long_texts,
           ROWS_TABLE,
           "ID  WHAT\n"
           " 1  the first forty letters of this sentence stand in its first line and the rest does "
           "in the one\n"
           "    below\n"
           " 2  short\n");
    expect(long_texts,
           ROWS_WIDE,
           "ID  WHAT\n"
           " 1  the first forty letters of this sentence stand in its first line and the rest does "
           "in the one below\n"
           " 2  short\n");
    expect(long_names,
           ROWS_TABLE,
           "NODE                                                ADDRESS                            "
           "       COUNT\n"
           "a-name-of-fifty-letters-which-is-more-than-usual-1  "
           "an-address-of-forty-letters.example.org:      7\n"
           "(no room for ROLE: see -o wide)\n");
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
        cmocka_unit_test(some_at_a_time_have_one_header),
        cmocka_unit_test(people_get_units_and_programs_plain_figures),
        cmocka_unit_test(a_table_fits_a_hundred_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
