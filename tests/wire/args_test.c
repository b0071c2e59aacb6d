/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of wire/args.h: these bytes, and no others.
 */
#include "wire/args.h"

#include "base/mem.h"

#include "tests/hex.h"
#include "tests/test.h"

static enum err args_exact(struct bytes in)
{
    uint8_t *copy = mem_copy(in.data, in.size);
    struct args args;
    const enum err e = args_get(bytes_of(copy, in.size), &args);

    mem_free(copy);
    return e;
}

static enum err value_exact(struct bytes in)
{
    uint8_t *copy = mem_copy(in.data, in.size);
    struct value value;
    const enum err e = value_get(bytes_of(copy, in.size), &value);

    mem_free(copy);
    return e;
}

static void arguments_have_these_bytes(void **state)
{
    const struct args args = {.count = 3, .arg = {text("SET"), {0}, bytes_of("\0\r\n", 3)}};
    struct buffer out = {0};
    struct args back;

    (void)state;
    args_put(&out, &args);
    assert_hex(buffer_bytes(&out), "03 03000000 534554 00000000 03000000 000d0a");
    assert_int_equal(args_get(buffer_bytes(&out), &back), ERR_OK);
    assert_int_equal(back.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(bytes_equal(back.arg[i], args.arg[i]));
    }
    for (size_t cut = 0; cut < out.size; cut++) {
        assert_int_equal(args_exact(bytes_of(out.data, cut)), ERR_CORRUPT);
    }
    buffer_put(&out, "x", 1);
    assert_int_equal(args_exact(buffer_bytes(&out)), ERR_CORRUPT);
    buffer_fini(&out);
}

static void the_longest_list_comes_back_and_a_longer_is_refused(void **state)
{
    struct args args = {.count = ARGS_MAX};
    struct buffer out = {0};
    struct args back;

    (void)state;
    for (size_t i = 0; i < ARGS_MAX; i++) {
        args.arg[i] = bytes_of("0123456789", i % 10);
    }
    args_put(&out, &args);
    assert_int_equal(args_get(buffer_bytes(&out), &back), ERR_OK);
    assert_int_equal(back.count, ARGS_MAX);
    assert_true(bytes_equal(back.arg[63], text("012")));
    out.data[0] = ARGS_MAX + 1;
    buffer_put(&out, "\0\0\0\0", 4);
    assert_int_equal(args_exact(buffer_bytes(&out)), ERR_CORRUPT);
    buffer_fini(&out);
}

static void hostile_arguments_are_refused(void **state)
{
    (void)state;
    assert_int_equal(args_exact(bytes_of("\0", 1)), ERR_CORRUPT);
    assert_int_equal(args_exact(bytes_of("\xff", 1)), ERR_CORRUPT);
    assert_int_equal(args_exact(bytes_of("\1\xff\xff\xff\xff", 5)), ERR_CORRUPT);
    assert_int_equal(args_exact(bytes_of("\2\xff\xff\xff\xff\1\0\0\0x", 10)), ERR_CORRUPT);
}

static void values_have_these_bytes_and_come_back(void **state)
{
    const struct {
        struct value value;
        const char *hex;
    } cases[] = {
        {{.type = VALUE_INTEGER, .integer = -2}, "69 feffffffffffffff"},
        {{.type = VALUE_BULK, .text = text("a\r\nb")}, "62 610d0a62"},
        {{.type = VALUE_BULK}, "62"},
        {{.type = VALUE_SIMPLE, .text = text("OK")}, "73 4f4b"},
        {{.type = VALUE_NIL}, "6e"},
        {{.type = VALUE_ERROR, .text = text("ERR no")}, "65 455252206e6f"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buffer out = {0};
        struct value back;

        value_put(&out, &cases[i].value);
        assert_hex(buffer_bytes(&out), cases[i].hex);
        assert_int_equal(value_get(buffer_bytes(&out), &back), ERR_OK);
        assert_int_equal(back.type, cases[i].value.type);
        assert_int_equal(back.integer, cases[i].value.integer);
        assert_true(bytes_equal(back.text, cases[i].value.text));
        buffer_fini(&out);
    }
}

static void a_line_break_in_simple_text_becomes_a_space(void **state)
{
    const struct value value = {.type = VALUE_ERROR, .text = text("ERR a\r\n+b")};
    struct buffer out = {0};

    (void)state;
    value_put(&out, &value);
    assert_true(bytes_equal(buffer_bytes(&out), text("eERR a  +b")));
    buffer_fini(&out);
}

static void hostile_values_are_refused(void **state)
{
    const struct bytes hostile[] = {
        text(""),
        text("x"),
        text("i"),
        text("i1234567"),
        text("i123456789"),
        text("n1"),
        text("sOK\r\n+OK"),
        text("eERR\n"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        assert_int_equal(value_exact(hostile[i]), ERR_CORRUPT);
    }
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(arguments_have_these_bytes),
        cmocka_unit_test(the_longest_list_comes_back_and_a_longer_is_refused),
        cmocka_unit_test(hostile_arguments_are_refused),
        cmocka_unit_test(values_have_these_bytes_and_come_back),
        cmocka_unit_test(a_line_break_in_simple_text_becomes_a_space),
        cmocka_unit_test(hostile_values_are_refused),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
