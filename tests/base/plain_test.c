/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/plain.h, and of log lines with hostile text.
 */
#include "base/plain.h"

#include "base/log.h"
#include "wire/control.h"

#include "tests/test.h"

#include <string.h>

static void controls_and_what_is_no_utf8_are_not_plain(void **state)
{
    static const struct {
        const char *text;
        const char *plain;
    } cases[] = {
        {"", ""},
        {"alice@ops from 127.0.0.1:7", "alice@ops from 127.0.0.1:7"},
        {"d\xc3\xa9j\xc3\xa0 \xe5\xae\xb9 \xf0\x9f\x98\x80",
         "d\xc3\xa9j\xc3\xa0 \xe5\xae\xb9 \xf0\x9f\x98\x80"},
        {"a\nb\tc\rd", "a?b?c?d"},
        {"\033[31m", "?[31m"},
        {"\x7f", "?"},
        {"\xc2\x9b"
         "2J",
         "??2J"}, // CSI as one character of C1
        {"\x9b"
         "2J",
         "?2J"},            // and as one byte
        {"\xc0\x8a", "??"}, // a line's end that is written too long
        {"\xe5\xae", "??"}, // cut short
        {"\xff\xf5\x80\x80\x80", "?????"},
        {"\xe0\x82\x9b\xf0\x80\x82\x9b", "???????"}, // C1, written too long
        {"\xed\xa0\x80\xed\xbf\xbf", "??????"},      // halves of UTF-16
        {"\xf4\x90\x80\x80", "????"},                // beyond Unicode
        {"\xe0\xa0\x80\xed\x9f\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
         "\xe0\xa0\x80\xed\x9f\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];

        (void)snprintf(text, sizeof text, "%s", cases[i].text);
        assert_int_equal(plain_is(text), strcmp(cases[i].text, cases[i].plain) == 0);
        plain_make(text);
        assert_string_equal(text, cases[i].plain);
        assert_true(plain_is(text));
    }
}

static void lines_may_have_tabs_and_ends(void **state)
{
    (void)state;
    assert_true(plain_is_lines("a\tb\n\nc\xc3\xa9", 8));
    assert_true(plain_is_lines("", 0));
    assert_false(plain_is_lines("a\r\n", 3));
    assert_false(plain_is_lines("a\0", 2));
    assert_false(plain_is_lines("\xc3\xa9", 1)); // it ends in the middle of a character
    assert_false(plain_is_lines("\xf0\x90\x80\x80", 3));
}

static char seen[256];

static void on_line(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)snprintf(seen, sizeof seen, "%s", line);
}

static void a_line_of_the_log_is_one_line(void **state)
{
    (void)state;
    log_set_sink(on_line, NULL);
    log_warn("test", "said", "by=\"%s\"", "eve\n2026-01-01T00:00:00.000Z info coordinator forged");
    log_set_sink(NULL, NULL);
    assert_non_null(strstr(seen, "by=\"eve?2026"));
}

/* At the top, in a message in a message, in a list. */
static void every_text_of_a_message_is_looked_at(void **state)
{
    char bad[] = "n\0331";
    char good[] = "n1";
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Register body = RH__REGISTER__INIT;
    Rh__Kind kind = RH__KIND__INIT;
    Rh__Kind *kinds[] = {&kind};
    char **texts[] = {&body.name, &body.address, &body.zone, &body.role, &kind.name};

    (void)state;
    control.body_case = RH__CONTROL__BODY_REGISTER_;
    control.register_ = &body;
    body.kinds = kinds;
    body.n_kinds = 1;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = good;
    }
    assert_true(control_texts_are_plain(&control));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = bad;
        bad[1] = '\033';
        assert_false(control_texts_are_plain(&control));
        control_make_texts_plain(&control);
        assert_string_equal(bad, "n?1");
        assert_true(control_texts_are_plain(&control));
        *texts[i] = good;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(controls_and_what_is_no_utf8_are_not_plain),
        cmocka_unit_test(lines_may_have_tabs_and_ends),
        cmocka_unit_test(a_line_of_the_log_is_one_line),
        cmocka_unit_test(every_text_of_a_message_is_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
