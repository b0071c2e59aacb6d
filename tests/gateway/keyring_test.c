/* SPDX-License-Identifier: Apache-2.0
 *
 * Keyrings, and the base64 that is in them and in tokens.
 */
#include "gateway/access/keyring.h"

#include "base/base64.h"
#include "tests/folder.h"
#include "tests/hex.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HEX32  "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define BASE32 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

static void it_reads_both_spellings(void **state)
{
    struct keyring keys;
    unsigned line = 9;

    (void)state;
    assert_null(keyring_parse(text("# ours\n\n  a-1\thex:" HEX32 "  \r\n"
                                   "b_2 base64:" BASE32 "=\n"
                                   "c base64:" BASE32),
                              &keys,
                              &line));
    assert_int_equal(keys.count, 3);
    for (size_t i = 0; i < keys.count; i++) {
        assert_int_equal(keys.key[i].size, 32);
        assert_memory_equal(keys.key[i].secret, keys.key[0].secret, 32);
        assert_int_equal(keys.key[i].secret[31], 0x1f);
    }
    assert_ptr_equal(keyring_find(&keys, text("b_2")), &keys.key[1]);
    assert_null(keyring_find(&keys, text("b_")));
    assert_null(keyring_find(&keys, text("")));
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
    static const struct {
        const char *text;
        unsigned line;
    } bad[] = {
        {"", 0},
        {"# nothing\n", 0},
        {"a hex:" HEX32 "\na hex:" HEX32 "\n", 2},
        {"\n\na\n", 3},
        {"a " HEX32 "\n", 1},
        {"a hex:" HEX32 "0\n", 1},
        {"a hex:zz0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", 1},
        {"a hex:00\n", 1},
        {"a hex:" HEX32 HEX32 "00\n", 1},
        {"a base64:" BASE32 "==\n", 1},
        {"a base64:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9\n", 1}, // bits left over
        {"a hex:" HEX32 " more\n", 1},
        {"a.b hex:" HEX32 "\n", 1},
        {"a23456789012345678901234567890123 hex:" HEX32 "\n", 1},
        {"a hex:" HEX32 "\nb hex:" HEX32 "\nc hex:" HEX32 "\nd hex:" HEX32 "\ne hex:" HEX32, 5},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct keyring keys;
        unsigned line = 99;

        assert_non_null(keyring_parse(text(bad[i].text), &keys, &line));
        assert_int_equal(line, bad[i].line);
    }
}

static void write_file(const char *path, const char *content, mode_t mode)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void a_file_that_others_can_read_is_refused(void **state)
{
    static const mode_t refused[] = {0604, 0602, 0620, 0644, 0666};
    struct keyring keys = {0};
    char why[KEYRING_WHY_SIZE];
    char folder[256];
    char path[512];

    (void)state;
    folder_make(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/keys", folder);
    write_file(path, "a hex:" HEX32 "\n", 0600);
    assert_true(keyring_load(path, &keys, why));
    assert_int_equal(keys.count, 1);
    assert_int_equal(chmod(path, 0640), 0);
    assert_true(keyring_load(path, &keys, why));
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(chmod(path, refused[i]), 0);
        assert_false(keyring_load(path, &keys, why));
        assert_non_null(strstr(why, "chmod 600"));
    }
    assert_int_equal(keys.count, 1); // as it was
    folder_remove(folder);
}

static void an_error_names_file_and_line(void **state)
{
    struct keyring keys = {0};
    char why[KEYRING_WHY_SIZE];
    char expected[600];
    char folder[256];
    char path[512];

    (void)state;
    folder_make(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/keys", folder);
    write_file(path, "a hex:" HEX32 "\nb hex:0badc0de\n", 0600);
    assert_false(keyring_load(path, &keys, why));
    (void)snprintf(expected, sizeof expected, "%s:2: a secret has at least 32 bytes", path);
    assert_string_equal(why, expected);
    assert_null(strstr(why, "0badc0de"));
    assert_false(keyring_load(folder, &keys, why)); // a folder
    assert_non_null(strstr(why, "not a regular file"));
    assert_false(keyring_load("/nowhere/keys", &keys, why));
    assert_non_null(strstr(why, "/nowhere/keys: "));
    folder_remove(folder);
}

static void base64_is_strict(void **state)
{
    static const char *const texts[] = {"", "Zg", "Zm8", "Zm9v", "Zm9vYg", "Zm9vYmE", "Zm9vYmFy"};
    static const char *const bad[] = {"Z", "Zh", "Zm9", "Zg==", "Zm 8", "Zm+v", "Zm/v", "Zm9vY"};
    uint8_t out[8];
    size_t size = 0;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct buffer made = {0};

        base64_put(&made, bytes_of("foobar", i));
        assert_int_equal(made.size, BASE64_SIZE(i));
        assert_true(bytes_equal(buffer_bytes(&made), text(texts[i])));
        assert_int_equal(base64_get(text(texts[i]), BASE64_URL, out, sizeof out, &size), ERR_OK);
        assert_true(bytes_equal(bytes_of(out, size), bytes_of("foobar", i)));
        buffer_fini(&made);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(base64_get(text(bad[i]), BASE64_URL, out, sizeof out, &size), ERR_CORRUPT);
    }
    assert_int_equal(base64_get(text("-_-_"), BASE64_URL, out, sizeof out, &size), ERR_OK);
    assert_int_equal(base64_get(text("+/+/"), BASE64_PLAIN, out, sizeof out, &size), ERR_OK);
    assert_int_equal(base64_get(text("Zg=="), BASE64_PLAIN, out, sizeof out, &size), ERR_OK);
    assert_int_equal(base64_get(text("Zg="), BASE64_PLAIN, out, sizeof out, &size), ERR_CORRUPT);
    assert_int_equal(base64_get(text("Zg==="), BASE64_PLAIN, out, sizeof out, &size), ERR_CORRUPT);
    assert_int_equal(base64_get(text("Zm9vYmFy"), BASE64_URL, out, 5, &size), ERR_TOO_BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_reads_both_spellings),
        cmocka_unit_test(what_is_wrong_is_said_with_its_line),
        cmocka_unit_test(a_file_that_others_can_read_is_refused),
        cmocka_unit_test(an_error_names_file_and_line),
        cmocka_unit_test(base64_is_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
