/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON of an actor's values, written and read.
 */
#include "cli/values_json.h"

#include "base/mem.h"
#include "tests/test.h"
#include "wire/values_ask.h"

#include <stdio.h>

static void put(struct buffer *rows, struct bytes key, struct bytes value)
{
    values_row_put(rows, &(struct values_row){.key = key, .value = value});
}

static struct bytes of(const char *text)
{
    return bytes_of(text, strlen(text));
}

static void what_is_no_text_is_base64(void **state)
{
    struct buffer rows = {0};
    struct buffer json = {0};
    struct buffer back = {0};
    char why[VALUES_JSON_WHY_SIZE];

    (void)state;
    put(&rows, of("gold"), of("7"));
    put(&rows, of("a\"\\\n"), of("\xc3\xa4\t"));
    put(&rows, bytes_of("\0\xff", 2), bytes_of("a\0", 2));
    put(&rows, of("none"), of(""));
    put(&rows, of("\x7f"), of("\xff\xfe\xfd"));
    values_json_write(&json, "0/ann", 12, buffer_bytes(&rows));
    buffer_put(&json, "", 1);
    assert_string_equal((const char *)json.data,
                        "{\"actor\":\"0/ann\",\"number\":12,\"values\":[\n"
                        "{\"key\":\"gold\",\"value\":\"7\"},\n"
                        "{\"key\":\"a\\u0022\\u005c\\u000a\",\"value\":\"\xc3\xa4\\u0009\"},\n"
                        "{\"key64\":\"AP8\",\"value64\":\"YQA\"},\n"
                        "{\"key\":\"none\",\"value\":\"\"},\n"
                        "{\"key64\":\"fw\",\"value64\":\"__79\"}]}\n");
    assert_true(values_json_read(bytes_of(json.data, json.size - 1), &back, why));
    assert_true(bytes_equal(buffer_bytes(&back), buffer_bytes(&rows)));
    buffer_fini(&rows);
    buffer_fini(&json);
    buffer_fini(&back);
}

/* The first row's value, or the fault. */
static const char *reads(const char *text)
{
    static char out[VALUES_JSON_WHY_SIZE];
    uint8_t *exact = mem_copy(text, strlen(text));
    struct buffer rows = {0};

    if (values_json_read(bytes_of(exact, strlen(text)), &rows, out)) {
        struct reader in = {.at = rows.data, .left = rows.size};
        struct values_row row = {0};

        (void)values_row_next(&in, &row);
        (void)snprintf(out, sizeof out, "%.*s", (int)row.value.size, (const char *)row.value.data);
    }
    buffer_fini(&rows);
    mem_free(exact);
    return out;
}

static void other_writers_are_read(void **state)
{
    (void)state;
    assert_string_equal(reads(" { \"values\" : [ { \"value\" : \"x\" , \"key\":\"k\" } ] }\n"),
                        "x");
    assert_string_equal(
        reads("{\"number\":\"99\",\"values\":[{\"key\":\"k\",\"value64\":\"eHk=\"}]}"), "xy");
    assert_string_equal(reads("{\"values\":[],\"actor\":\"0/a\"}"), "");
    assert_string_equal(
        reads("{\"values\":[{\"key\":\"k\",\"value\":\"\\u00e4\\ud83d\\ude00\\/\\n\\f\"}]}"),
        "\xc3\xa4\xf0\x9f\x98\x80/\n\f");
}

static void nonsense_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"values\":[]",
        "{\"values\":[]}x",
        "{\"values\":[{}]}",
        "{\"values\":[{\"key\":\"k\"}]}",
        "{\"values\":[{\"key\":\"k\",\"key\":\"l\",\"value\":\"\"}]}",
        "{\"values\":[{\"key\":\"\",\"value\":\"\"}]}",
        "{\"values\":[{\"key\":\"k\",\"value\":7}]}",
        "{\"values\":[{\"key\":\"k\",\"value64\":\"A\"}]}",
        "{\"values\":[{\"key\":\"k\",\"value64\":\"+_\"}]}",
        "{\"values\":[{\"key\":\"k\",\"value\":\"\\ud83d\"}]}",
        "{\"values\":[{\"key\":\"k\",\"value\":\"\\u12\"}]}",
        "{\"values\":[{\"key\":\"k\",\"value\":\"\\x\"}]}",
        "{\"values\":[{\"key\":\"k\",\"value\":\"a\nb\"}]}",
        "{\"values\":[{\"key\":\"k\",\"value\":\"never ends",
        "{\"values\":[{\"key\":\"k\",\"value\":\"\",\"more\":\"\"}]}",
        "{\"other\":[]}",
    };
    struct buffer rows = {0};
    char why[VALUES_JSON_WHY_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t *exact = mem_copy(bad[i], strlen(bad[i]));

        assert_false(values_json_read(bytes_of(exact, strlen(bad[i])), &rows, why));
        assert_string_not_equal(why, "");
        mem_free(exact);
    }
    buffer_fini(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_text_is_base64),
        cmocka_unit_test(other_writers_are_read),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
