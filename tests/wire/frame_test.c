/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of wire/frame.h: these bytes, and no others.
 */
#include "wire/frame.h"

#include "base/mem.h"

#include "tests/hex.h"
#include "tests/test.h"

enum { SMALL_MAX = 1024 };

/* Decode from memory of exactly that size, so that a sanitizer sees any look past the end. */
static enum err decode_exact(struct bytes in, size_t size_max, size_t *size)
{
    uint8_t *copy = mem_copy(in.data, in.size);
    struct frame frame;
    const enum err e = frame_decode(bytes_of(copy, in.size), size_max, &frame, size);

    mem_free(copy);
    return e;
}

static void frames_have_these_bytes(void **state)
{
    struct buffer out = {0};

    (void)state;
    frame_put(&out, FRAME_PING, 1, (struct bytes){0});
    assert_hex(buffer_bytes(&out), "08000000 04 00 0100");
    buffer_clear(&out);
    frame_put(&out, FRAME_REQUEST, 515, text("abc"));
    assert_hex(buffer_bytes(&out), "0b000000 10 00 0302 616263");
    buffer_fini(&out);
}

static void a_frame_comes_back_as_it_was_put(void **state)
{
    const enum frame_type types[] = {FRAME_HELLO,
                                     FRAME_WELCOME,
                                     FRAME_REFUSED,
                                     FRAME_PING,
                                     FRAME_PONG,
                                     FRAME_CONTROL,
                                     FRAME_RAFT,
                                     FRAME_REQUEST,
                                     FRAME_ANSWER,
                                     FRAME_STATE,
                                     FRAME_STATE_ACK};
    struct buffer out = {0};
    struct bytes rest;

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        frame_put(&out, types[i], 1, bytes_of("0123456789", i));
    }
    rest = buffer_bytes(&out);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct frame frame;
        size_t size;

        assert_int_equal(frame_decode(rest, SMALL_MAX, &frame, &size), ERR_OK);
        assert_int_equal(frame.type, types[i]);
        assert_int_equal(frame.count, 1);
        assert_true(bytes_equal(frame.body, bytes_of("0123456789", i)));
        rest = bytes_of(rest.data + size, rest.size - size);
    }
    assert_int_equal(rest.size, 0);
    buffer_fini(&out);
}

static void a_frame_in_two_steps_can_grow(void **state)
{
    struct buffer out = {0};
    struct buffer whole = {0};

    (void)state;
    frame_put(&out, FRAME_PONG, 1, (struct bytes){0});
    const size_t at = frame_begin(&out, FRAME_ANSWER, 0);
    buffer_put(&out, "one", 3);
    frame_end(&out, at, 1);
    buffer_put(&out, "two", 3);
    frame_end(&out, at, 2);
    frame_put(&whole, FRAME_PONG, 1, (struct bytes){0});
    frame_put(&whole, FRAME_ANSWER, 2, text("onetwo"));
    assert_true(bytes_equal(buffer_bytes(&out), buffer_bytes(&whole)));
    buffer_fini(&out);
    buffer_fini(&whole);
}

static void every_prefix_is_not_whole_yet(void **state)
{
    struct buffer out = {0};

    (void)state;
    frame_put(&out, FRAME_STATE, 7, text("some records"));
    for (size_t cut = 0; cut < out.size; cut++) {
        size_t size = 99;

        assert_int_equal(decode_exact(bytes_of(out.data, cut), SMALL_MAX, &size), ERR_BUSY);
        assert_int_equal(size, cut < 4 ? 0 : out.size);
    }
    buffer_fini(&out);
}

static void what_is_no_frame_is_refused_as_early_as_it_shows(void **state)
{
    const struct {
        const char *bytes;
        size_t size;
    } strangers[] = {
        {"GET ", 4},
        {"*1\r\n$4\r\nPING\r\n", 14},
        {"\x16\x03\x01\x02", 4},                 // a TLS hello
        {"\x07\x00\x00\x00", 4},                 // smaller than its header
        {"\x00\x00\x00\x00", 4},                 //
        {"\xff\xff\xff\xff", 4},                 //
        {"\x01\x04\x00\x00", 4},                 // SMALL_MAX + 1
        {"\x08\x00\x00\x00\x00", 5},             // no such type
        {"\x08\x00\x00\x00\x06", 5},             //
        {"\x08\x00\x00\x00\x0a", 5},             //
        {"\x08\x00\x00\x00\x15", 5},             //
        {"\x08\x00\x00\x00\x04\x01\x01\x00", 8}, // flags
        {"\x08\x00\x00\x00\x10\x02\x01\x00", 8}, //
        {"\x08\x00\x00\x00\x10\xff\x01\x00", 8}, //
        {"\x08\x00\x00\x00\x04\x00\x02\x00", 8}, // two pings
        {"\x08\x00\x00\x00\x10\x00\x00\x00", 8}, // no record
    };

    (void)state;
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        size_t size;

        assert_int_equal(
            decode_exact(bytes_of(strangers[i].bytes, strangers[i].size), SMALL_MAX, &size),
            ERR_CORRUPT);
    }
}

static void the_size_limit_is_inclusive(void **state)
{
    struct buffer out = {0};
    struct frame frame;
    size_t size;

    (void)state;
    frame_put(&out, FRAME_CONTROL, 1, text("12345678"));
    assert_int_equal(frame_decode(buffer_bytes(&out), 16, &frame, &size), ERR_OK);
    assert_int_equal(frame_decode(buffer_bytes(&out), 15, &frame, &size), ERR_CORRUPT);
    buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(frames_have_these_bytes),
        cmocka_unit_test(a_frame_comes_back_as_it_was_put),
        cmocka_unit_test(a_frame_in_two_steps_can_grow),
        cmocka_unit_test(every_prefix_is_not_whole_yet),
        cmocka_unit_test(what_is_no_frame_is_refused_as_early_as_it_shows),
        cmocka_unit_test(the_size_limit_is_inclusive),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}
