/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of operators' questions about values, and of their answers.
 */
#include "wire/values_ask.h"

#include "base/mem.h"
#include "tests/hex.h"

static enum err get(struct bytes in)
{
    struct values_ask back;

    return values_ask_get(in, &back);
}

static void a_question_has_these_bytes(void **state)
{
    const struct values_ask read = {
        .verb = VALUES_READ, .one = true, .offset = 7, .key = bytes_of("gold", 4)};
    const struct values_ask change = {.verb = VALUES_CHANGE,
                                      .last = true,
                                      .replace = true,
                                      .batch = 9,
                                      .at = 3,
                                      .page = bytes_of("rows", 4)};
    struct buffer out = {0};
    struct values_ask back;

    (void)state;
    values_ask_put(&out, &read);
    assert_hex(buffer_bytes(&out), "01 01 07000000 676f6c64");
    assert_int_equal(values_ask_get(buffer_bytes(&out), &back), ERR_OK);
    assert_true(back.one && back.offset == 7 && bytes_equal(back.key, read.key));
    for (size_t cut = 0; cut < 7; cut++) { // a shorter key is a key
        assert_int_equal(get(bytes_of(out.data, cut)), ERR_CORRUPT);
    }
    buffer_clear(&out);
    values_ask_put(&out, &change);
    assert_hex(buffer_bytes(&out), "02 03 0900000000000000 03000000 726f7773");
    assert_int_equal(values_ask_get(buffer_bytes(&out), &back), ERR_OK);
    assert_true(back.last && back.replace && back.batch == 9 && back.at == 3);
    assert_true(bytes_equal(back.page, change.page));
    for (size_t cut = 0; cut < 14; cut++) {
        assert_int_equal(get(bytes_of(out.data, cut)), ERR_CORRUPT);
    }
    buffer_fini(&out);
}

static void questions_beyond_the_limits_are_refused(void **state)
{
    static uint8_t big[VALUES_ASK_MAX + 1] = {VALUES_CHANGE};
    uint8_t key[6 + 256] = {VALUES_READ};

    (void)state;
    assert_int_equal(get(bytes_of(big, 14 + VALUES_PAGE_SIZE)), ERR_OK);
    assert_int_equal(get(bytes_of(big, 14 + VALUES_PAGE_SIZE + 1)), ERR_CORRUPT);
    big[1] = 4; // a flag that is none
    assert_int_equal(get(bytes_of(big, 14)), ERR_CORRUPT);
    big[1] = 0;
    big[13] = 0xff; // so much came before
    assert_int_equal(get(bytes_of(big, 14)), ERR_CORRUPT);
    assert_int_equal(get(bytes_of(key, 6)), ERR_OK); // from the first key on
    assert_int_equal(get(bytes_of(key, 6 + 255)), ERR_OK);
    assert_int_equal(get(bytes_of(key, sizeof key)), ERR_CORRUPT);
    key[1] = 1; // one value, of no key
    assert_int_equal(get(bytes_of(key, 6)), ERR_CORRUPT);
    key[0] = 3;
    assert_int_equal(get(bytes_of(key, 10)), ERR_CORRUPT);
}

static void the_first_page_of_a_reading_and_the_last_of_a_change_are_noted(void **state)
{
    const struct bytes key = bytes_of("k", 1);

    (void)state;
    assert_true(values_ask_is_noted(&(struct values_ask){.verb = VALUES_READ}));
    assert_true(
        values_ask_is_noted(&(struct values_ask){.verb = VALUES_READ, .one = true, .key = key}));
    assert_false(values_ask_is_noted(&(struct values_ask){.verb = VALUES_READ, .key = key}));
    assert_false(values_ask_is_noted(&(struct values_ask){.verb = VALUES_CHANGE}));
    assert_true(values_ask_is_noted(&(struct values_ask){.verb = VALUES_CHANGE, .last = true}));
}

static bool row_is_good(struct bytes in)
{
    struct reader r = {.at = in.data, .left = in.size};
    struct values_row row;

    return values_row_next(&r, &row) && !r.bad;
}

static void a_row_has_these_bytes(void **state)
{
    struct buffer out = {0};
    struct values_row row;

    (void)state;
    values_row_put(&out, &(struct values_row){.key = bytes_of("k", 1), .value = bytes_of("xy", 2)});
    values_row_put(&out, &(struct values_row){.gone = true, .key = bytes_of("k", 1)});
    assert_hex(buffer_bytes(&out), "00 01 02000000 6b 7879  01 01 00000000 6b");
    struct reader in = {.at = out.data, .left = out.size};
    assert_true(values_row_next(&in, &row) && !row.gone && row.value.size == 2);
    assert_true(values_row_next(&in, &row) && row.gone && row.key.size == 1);
    assert_true(!values_row_next(&in, &row) && !in.bad);
    for (size_t cut = 1; cut < 9; cut++) {
        assert_false(row_is_good(bytes_of(out.data, cut)));
    }
    assert_false(row_is_good(bytes_of("\2\1\0\0\0\0k", 7)));          // gone, or what?
    assert_false(row_is_good(bytes_of("\0\0\0\0\0\0", 6)));           // no key
    assert_false(row_is_good(bytes_of("\1\1\1\0\0\0kx", 8)));         // gone, with a value
    assert_false(row_is_good(bytes_of("\0\1\xff\xff\xff\xffkx", 8))); // longer than all
    buffer_fini(&out);
}

static void an_answer_has_these_bytes(void **state)
{
    const struct values_piece piece = {
        .key = bytes_of("k", 1), .whole = 5, .at = 2, .bytes = bytes_of("xyz", 3)};
    struct buffer out = {0};
    struct values_answer back;
    struct values_piece p;

    (void)state;
    values_answer_put(&out, &(struct values_answer){VALUES_FULL, true, 8, 9, {0}});
    values_piece_put(&out, &piece);
    assert_hex(buffer_bytes(&out),
               "02 01 08000000 0900000000000000  01 05000000 02000000 03000000 6b 78797a");
    assert_int_equal(values_answer_get(buffer_bytes(&out), &back), ERR_OK);
    assert_true(back.status == VALUES_FULL && back.more && back.count == 8 && back.number == 9);
    struct reader in = {.at = back.pieces.data, .left = back.pieces.size};
    assert_true(values_piece_next(&in, &p) && p.whole == 5 && p.at == 2);
    assert_true(bytes_equal(p.key, piece.key) && bytes_equal(p.bytes, piece.bytes));
    assert_false(values_piece_next(&in, &p));
    for (size_t cut = 0; cut < 14; cut++) {
        assert_int_equal(values_answer_get(bytes_of(out.data, cut), &back), ERR_CORRUPT);
    }
    out.data[15] = 4; // shorter than its end
    in = (struct reader){.at = out.data + 14, .left = out.size - 14};
    assert_true(!values_piece_next(&in, &p) && in.bad);
    out.data[0] = VALUES_STATUS_LAST + 1;
    assert_int_equal(values_answer_get(buffer_bytes(&out), &back), ERR_CORRUPT);
    buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_has_these_bytes),
        cmocka_unit_test(questions_beyond_the_limits_are_refused),
        cmocka_unit_test(the_first_page_of_a_reading_and_the_last_of_a_change_are_noted),
        cmocka_unit_test(a_row_has_these_bytes),
        cmocka_unit_test(an_answer_has_these_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
