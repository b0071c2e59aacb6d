/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of lua/words.h.
 */
#include "lua/words.h"

#include "tests/test.h"

#include <stdio.h>
#include <string.h>

/* The words with bars between, or what was wrong. */
static const char *split(const char *text)
{
    static char out[512];
    struct words w = {0};
    const enum err error = words_split(bytes_of(text, strlen(text)), &w);
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; error == ERR_OK && i < w.count; i++) {
        used += (size_t)snprintf(out + used,
                                 sizeof out - used,
                                 "%s%.*s",
                                 i == 0 ? "" : "|",
                                 (int)w.word[i].size,
                                 (const char *)w.word[i].data);
    }
    words_fini(&w);
    return error == ERR_OK ? out : err_name(error);
}

static void words_are_split_at_blanks_and_quotes(void **state)
{
    (void)state;
    assert_string_equal(split(""), "");
    assert_string_equal(split("  \t\n"), "");
    assert_string_equal(split(" join  bob "), "join|bob");
    assert_string_equal(split("say \"hello there\" 'it''s'"), "ERR_INVALID");
    assert_string_equal(split("say \"hello there\" 'it\\'s'"), "say|hello there|it's");
    assert_string_equal(split("a \"\" b ''"), "a||b|");
    assert_string_equal(split("\"\\x41\\x4a\\n\\\\\\\"\\q\""), "AJ\n\\\"q");
    assert_string_equal(split("'\\n \\x41'"), "\\n \\x41");
    assert_string_equal(split("it's ok\"x"), "it's|ok\"x");
    assert_string_equal(split("\"\\x4\""), "x4");
}

static void quotes_that_do_not_end_are_refused(void **state)
{
    const char *const wrong[] = {"\"", "'", "a \"b", "a 'b", "\"a\\\"", "'a\\'", "\"a\"b", "\"\\"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_string_equal(split(wrong[i]), "ERR_INVALID");
    }
}

static void too_many_words_are_refused(void **state)
{
    char text[2 * WORDS_MAX + 8] = "";
    struct words w = {0};

    (void)state;
    for (size_t i = 0; i < WORDS_MAX; i++) {
        memcpy(text + 2 * i, "a ", 3);
    }
    assert_int_equal(words_split(bytes_of(text, strlen(text)), &w), ERR_OK);
    assert_int_equal(w.count, WORDS_MAX);
    memcpy(text + strlen(text), "a", 2);
    assert_int_equal(words_split(bytes_of(text, strlen(text)), &w), ERR_TOO_BIG);
    words_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_split_at_blanks_and_quotes),
        cmocka_unit_test(quotes_that_do_not_end_are_refused),
        cmocka_unit_test(too_many_words_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
