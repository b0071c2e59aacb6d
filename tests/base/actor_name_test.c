/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/actor_name.h.
 */
#include "base/actor_name.h"

#include "base/prng.h"
#include "tests/test.h"

#include <string.h>

static struct bytes text(const char *s)
{
    return bytes_of(s, strlen(s));
}

static void names_are_read(void **state)
{
    static const struct {
        const char *word;
        enum actor_spelling spelling;
        unsigned kind;
        const char *kind_name;
        const char *id;
        bool at;
    } cases[] = {
        {"2/boss", ACTOR_SPELLING_NUMBER, 2, "", "boss", false},
        {"0/7", ACTOR_SPELLING_NUMBER, 0, "", "7", false},
        {"65535/x", ACTOR_SPELLING_NUMBER, 65535, "", "x", false},
        {"9/mail/3", ACTOR_SPELLING_NUMBER, 9, "", "mail/3", false},
        {"0/@7/boss", ACTOR_SPELLING_NUMBER, 0, "", "@7/boss", false},
        {"0//", ACTOR_SPELLING_NUMBER, 0, "", "/", false},
        {"0/a%20b%2fc%2F%25", ACTOR_SPELLING_NUMBER, 0, "", "a b/c/%", false},
        {"0/a b$'", ACTOR_SPELLING_NUMBER, 0, "", "a b$'", false},
        {"player/alice", ACTOR_SPELLING_NAME, 0, "player", "alice", false},
        {"7up/x", ACTOR_SPELLING_NAME, 0, "7up", "x", false},
        {"@2/boss", ACTOR_SPELLING_NUMBER, 2, "", "boss", true},
        {"@0/@2/boss", ACTOR_SPELLING_NUMBER, 0, "", "@2/boss", true},
        {"@player/alice", ACTOR_SPELLING_NAME, 0, "player", "alice", true},
        {"ann", ACTOR_SPELLING_BARE, 0, "", "ann", false},
        {"@home", ACTOR_SPELLING_BARE, 0, "", "@home", false},
        {"%407%2Fx", ACTOR_SPELLING_BARE, 0, "", "@7/x", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct actor_name name;

        assert_int_equal(actor_name_parse(text(cases[i].word), &name), cases[i].spelling);
        assert_int_equal(name.kind, cases[i].kind);
        assert_int_equal(name.kind_name.size, strlen(cases[i].kind_name));
        assert_int_equal(name.id_size, strlen(cases[i].id));
        assert_memory_equal(name.id, cases[i].id, name.id_size);
        assert_int_equal(name.at, cases[i].at);
    }
}

static void what_names_nobody_is_refused(void **state)
{
    static const char *const words[] = {"",
                                        "2/",
                                        "/",
                                        "/x",
                                        "@/x",
                                        "@2/",
                                        "07/x",
                                        "00/x",
                                        "%",
                                        "2/%",
                                        "2/%4",
                                        "2/%4g",
                                        "%zz",
                                        "65536/x",
                                        "123456/x",
                                        "p/%1",
                                        "player/"};
    char long_id[300];

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct actor_name name;

        assert_int_equal(actor_name_parse(text(words[i]), &name), ACTOR_SPELLING_NONE);
    }
    memset(long_id, 'x', sizeof long_id);
    long_id[0] = '1';
    long_id[1] = '/';
    struct actor_name name;
    assert_int_equal(actor_name_parse(bytes_of(long_id, 2 + 255), &name), ACTOR_SPELLING_NUMBER);
    assert_int_equal(actor_name_parse(bytes_of(long_id, 2 + 256), &name), ACTOR_SPELLING_NONE);
}

static void a_name_is_one_plain_word(void **state)
{
    static const struct {
        const char *id;
        const char *printed;
    } cases[] = {
        {"boss-7", "2/boss-7"},
        {"room:1", "2/room:1"},
        {"mail/3", "2/mail/3"},
        {"room-7{match-42}", "2/room-7{match-42}"},
        {"{a,b}", "2/{a%2Cb}"},
        {"{1..3}", "2/{1.%2E3}"},
        {"..", "2/.%2E"},
        {"...", "2/.%2E."},
        {"a b", "2/a%20b"},
        {"100%", "2/100%25"},
        {"~`!#$^&*()\\|;'\"<>?[]",
         "2/%7E%60%21%23%24%5E%26%2A%28%29%5C%7C%3B%27%22%3C%3E%3F%5B%5D"},
        {"\xe5\xbc\xa0\n", "2/%E5%BC%A0%0A"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[ACTOR_NAME_SIZE];

        assert_string_equal(actor_name_print(2, text(cases[i].id), out), cases[i].printed);
    }
}

/* Each byte alone, and ids by chance of every length. */
static void what_is_printed_is_read_as_the_same(void **state)
{
    static const char odd[] = "./%{},@ 0a";
    struct prng p;
    uint8_t id[ACTOR_NAME_ID_MAX];

    (void)state;
    p.state = 98;
    for (size_t i = 0; i < 20000; i++) {
        const size_t size = i < 256 ? 1 : (size_t)prng_between(&p, 1, ACTOR_NAME_ID_MAX);
        const uint32_t kind = (uint32_t)prng_between(&p, 0, ACTOR_NAME_KIND_MAX);
        char out[ACTOR_NAME_SIZE];
        struct actor_name name;

        for (size_t k = 0; k < size; k++) {
            id[k] = i < 256      ? (uint8_t)i
                    : i % 2 == 0 ? (uint8_t)prng_u64(&p)
                                 : (uint8_t)odd[prng_u64(&p) % (sizeof odd - 1)];
        }
        (void)actor_name_print(kind, bytes_of(id, size), out);
        assert_int_equal(actor_name_parse(text(out), &name), ACTOR_SPELLING_NUMBER);
        assert_int_equal(name.kind, kind);
        assert_int_equal(name.id_size, size);
        assert_memory_equal(name.id, id, size);
        assert_int_equal(strspn(out,
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_.:/@+={}%"),
                         strlen(out));
        assert_null(strstr(out, ".."));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read),
        cmocka_unit_test(what_names_nobody_is_refused),
        cmocka_unit_test(a_name_is_one_plain_word),
        cmocka_unit_test(what_is_printed_is_read_as_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
