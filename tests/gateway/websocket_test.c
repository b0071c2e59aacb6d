/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of gateway/protocol/websocket.h with a client's bytes.
 */
#include "gateway/protocol/websocket.h"

#include "tests/test.h"

#include <string.h>

enum { MESSAGE_MAX = 104 };

/* ---- a client's frames */

static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};

static void put_header(struct buffer *out, uint8_t first, uint64_t size, uint8_t masked)
{
    uint8_t head[10] = {first, masked};
    size_t used = 2;

    if (size < 126) {
        head[1] |= (uint8_t)size;
    } else if (size <= UINT16_MAX) {
        head[1] |= 126;
        head[2] = (uint8_t)(size >> 8);
        head[3] = (uint8_t)size;
        used = 4;
    } else {
        head[1] |= 127;
        for (int i = 0; i < 8; i++) {
            head[2 + i] = (uint8_t)(size >> (56 - 8 * i));
        }
        used = 10;
    }
    buffer_put(out, head, used);
}

static void put_frame(struct buffer *out, uint8_t first, const void *body, size_t size)
{
    put_header(out, first, size, 0x80);
    buffer_put(out, mask, sizeof mask);
    for (size_t i = 0; i < size; i++) {
        const uint8_t byte = ((const uint8_t *)body)[i] ^ mask[i % 4];

        buffer_put(out, &byte, 1);
    }
}

/* ---- the rig */

struct rig {
    struct websocket *ws;
    struct buffer in;
    struct buffer packets;
    struct buffer out;
};

static void start(struct rig *r)
{
    *r = (struct rig){.ws = websocket_new(MESSAGE_MAX)};
}

static void stop(struct rig *r)
{
    websocket_free(r->ws);
    buffer_fini(&r->in);
    buffer_fini(&r->packets);
    buffer_fini(&r->out);
}

static void feed(struct rig *r)
{
    websocket_on_bytes(r->ws, buffer_bytes(&r->in), &r->packets, &r->out);
    buffer_clear(&r->in);
}

static void expect(struct buffer *got, const char *what, size_t size)
{
    assert_int_equal(got->size, size);
    assert_memory_equal(got->data, what, size);
    buffer_clear(got);
}

static const char ping_packet[] = {3, 0, 0, 1, 'x'};

/* ---- what may be */

static void a_message_is_a_packet(void **state)
{
    struct rig r;

    (void)state;
    start(&r);
    put_frame(&r.in, 0x82, ping_packet, sizeof ping_packet);
    put_frame(&r.in, 0x82, ping_packet, sizeof ping_packet);
    feed(&r);
    expect(&r.packets, "\3\0\0\1x\3\0\0\1x", 10);
    websocket_put(r.ws, bytes_of("\4\0\0\1x\4\0\0\0", 9), &r.out);
    expect(&r.out, "\x82\5\4\0\0\1x\x82\4\4\0\0\0", 13);
    assert_int_equal(websocket_end(r.ws), WEBSOCKET_OPEN);
    stop(&r);
}

static void it_may_come_byte_by_byte_and_in_pieces(void **state)
{
    struct rig r;
    struct buffer all = {0};

    (void)state;
    start(&r);
    put_frame(&all, 0x02, ping_packet, 2);
    put_frame(&all, 0x89, "hey", 3);
    put_frame(&all, 0x00, "", 0);
    put_frame(&all, 0x8a, "a pong that nobody asked for", 28);
    put_frame(&all, 0x80, ping_packet + 2, 3);
    for (size_t i = 0; i < all.size; i++) {
        buffer_put(&r.in, all.data + i, 1);
        feed(&r);
    }
    expect(&r.packets, "\3\0\0\1x", 5);
    expect(&r.out, "\x8a\3hey", 5);
    assert_int_equal(websocket_end(r.ws), WEBSOCKET_OPEN);
    buffer_fini(&all);
    stop(&r);
}

static void half_a_message_is_handed_on(void **state)
{
    struct rig r;

    (void)state;
    start(&r);
    put_frame(&r.in, 0x02, "\6\0\0\x64", 4);
    put_frame(&r.in, 0x00, "half", 4);
    feed(&r);
    expect(&r.packets, "\6\0\0\x64half", 8);
    stop(&r);
}

static void long_messages_have_long_headers(void **state)
{
    static uint8_t packet[4 + 70000] = {9, 0x01, 0x11, 0x70};
    struct rig r;

    (void)state;
    start(&r);
    websocket_put(r.ws, bytes_of(packet, sizeof packet), &r.out);
    assert_int_equal(r.out.size, 10 + sizeof packet);
    assert_memory_equal(r.out.data, "\x82\x7f\0\0\0\0\0\1\x11\x74", 10);
    buffer_clear(&r.out);
    packet[1] = 0;
    packet[2] = 0;
    packet[3] = 122;
    websocket_put(r.ws, bytes_of(packet, 126), &r.out);
    assert_memory_equal(r.out.data, "\x82\x7e\0\x7e", 4);
    stop(&r);
}

static void either_side_may_end_it(void **state)
{
    struct rig r;

    (void)state;
    start(&r);
    put_frame(&r.in, 0x88, "\3\xe8why", 5);
    put_frame(&r.in, 0x82, ping_packet, sizeof ping_packet);
    feed(&r);
    assert_int_equal(websocket_end(r.ws), WEBSOCKET_LEFT);
    expect(&r.out, "\x88\5\3\xe8why", 7);
    assert_int_equal(r.packets.size, 0);
    websocket_put(r.ws, bytes_of(ping_packet, sizeof ping_packet), &r.out);
    websocket_close(r.ws, WEBSOCKET_NORMAL, &r.out);
    assert_int_equal(r.out.size, 0);
    stop(&r);

    start(&r);
    put_frame(&r.in, 0x88, "", 0);
    feed(&r);
    assert_int_equal(websocket_end(r.ws), WEBSOCKET_LEFT);
    expect(&r.out, "\x88\0", 2);
    stop(&r);

    for (int code = 1012; code <= 1014; code++) { // registered later than the RFC
        struct buffer all = {0};
        const char body[] = {3, (char)code, 'w', 'h', 'y'};

        start(&r);
        put_frame(&all, 0x88, body, sizeof body);
        for (size_t i = 0; i < all.size; i++) {
            buffer_put(&r.in, all.data + i, 1);
            feed(&r);
        }
        assert_int_equal(websocket_end(r.ws), WEBSOCKET_LEFT);
        expect(&r.out, (const char[]){'\x88', 2, 3, (char)code}, 4);
        buffer_fini(&all);
        stop(&r);
    }

    start(&r);
    websocket_close(r.ws, WEBSOCKET_GOING_AWAY, &r.out);
    expect(&r.out, "\x88\2\3\xe9", 4);
    put_frame(&r.in, 0x82, ping_packet, sizeof ping_packet);
    feed(&r);
    assert_int_equal(r.packets.size + r.out.size, 0);
    stop(&r);
}

static void pings_are_answered_so_many_a_second(void **state)
{
    struct rig r;

    (void)state;
    start(&r);
    for (int second = 0; second < 3; second++) {
        for (int i = 0; i < WEBSOCKET_PINGS_MAX; i++) {
            put_frame(&r.in, 0x89, "a", 1);
        }
        feed(&r);
        assert_int_equal(r.out.size, 3 * WEBSOCKET_PINGS_MAX);
        buffer_clear(&r.out);
        websocket_rest(r.ws);
    }
    for (int i = 0; i <= WEBSOCKET_PINGS_MAX; i++) {
        put_frame(&r.in, 0x89, "a", 1);
    }
    feed(&r);
    assert_int_equal(websocket_end(r.ws), WEBSOCKET_PINGS);
    expect(&r.out, "\x88\2\3\xf0", 4);
    stop(&r);
}

/* ---- what may not */

static void each_broken_rule_has_its_code(void **state)
{
    static const uint8_t many[130] = {6, 0, 0, 126};
    static const struct {
        enum websocket_end end;
        uint16_t code;
        struct {
            uint8_t first;
            const void *body;
            size_t size;
        } frame[2];
    } table[] = {
        {WEBSOCKET_TEXT, 1003, {{0x81, "hi", 2}}},
        {WEBSOCKET_TEXT, 1003, {{0x01, "", 0}}},
        {WEBSOCKET_TEXT, 1003, {{0x81, "\xff", 1}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0xc2, ping_packet, 5}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0xa2, ping_packet, 5}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x92, ping_packet, 5}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0xc9, "", 0}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x83, "", 0}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x87, "", 0}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x8b, "", 0}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x8f, "", 0}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x80, "x", 1}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x02, ping_packet, 2}, {0x82, ping_packet, 5}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x02, ping_packet, 2}, {0x81, "x", 1}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x09, "x", 1}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x08, "\3\xe8", 2}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x89, many, 126}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x88, "\3", 1}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x88, "\3\xed", 2}}}, /* 1005 is not sent */
        {WEBSOCKET_PROTOCOL, 1002, {{0x88, "\0\1", 2}}},
        {WEBSOCKET_PROTOCOL, 1002, {{0x88, "\3\xf7", 2}}}, /* 1015 is not sent */
        {WEBSOCKET_BAD_UTF8, 1007, {{0x88, "\3\xe8\xc0\xaf", 4}}},
        {WEBSOCKET_BAD_UTF8, 1007, {{0x88, "\3\xe8\xe2\x82", 4}}},
        {WEBSOCKET_TOO_LARGE, 1009, {{0x82, many, sizeof many}}},
        {WEBSOCKET_TOO_LARGE, 1009, {{0x02, many, 100}, {0x80, many, 5}}},
        {WEBSOCKET_BAD_MESSAGE, 1008, {{0x82, "", 0}}},
        {WEBSOCKET_BAD_MESSAGE, 1008, {{0x82, "\3\0\0", 3}}},
        {WEBSOCKET_BAD_MESSAGE, 1008, {{0x82, "\3\0\0\1", 4}}},
        {WEBSOCKET_BAD_MESSAGE, 1008, {{0x82, "\3\0\0\0x", 5}}},
        {WEBSOCKET_BAD_MESSAGE, 1008, {{0x02, "\3\0\0\0", 4}, {0x80, "\3\0\0\0", 4}}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const uint8_t code[] = {(uint8_t)(table[i].code >> 8), (uint8_t)table[i].code};
        struct rig r;

        start(&r);
        for (size_t f = 0; f < 2 && table[i].frame[f].body != NULL; f++) {
            put_frame(
                &r.in, table[i].frame[f].first, table[i].frame[f].body, table[i].frame[f].size);
        }
        feed(&r);
        if (websocket_end(r.ws) != table[i].end || r.out.size != 4 ||
            memcmp(r.out.data + 2, code, 2) != 0) {
            fail_msg("row %zu: end %d, %zu bytes", i, (int)websocket_end(r.ws), r.out.size);
        }
        stop(&r);
    }
}

static void frames_without_a_mask_are_refused(void **state)
{
    struct rig r;

    (void)state;
    start(&r);
    put_header(&r.in, 0x82, sizeof ping_packet, 0);
    buffer_put(&r.in, ping_packet, sizeof ping_packet);
    feed(&r);
    assert_int_equal(websocket_end(r.ws), WEBSOCKET_PROTOCOL);
    assert_int_equal(r.packets.size, 0);
    expect(&r.out, "\x88\2\3\xea", 4);
    stop(&r);
}

static void lengths_that_make_no_sense_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        enum websocket_end end;
    } table[] = {
        {"\x82\xfe\0\5\0\0\0\0aaaaa", 13, WEBSOCKET_PROTOCOL},
        {"\x82\xff\0\0\0\0\0\0\0\x80\0\0\0\0a", 15, WEBSOCKET_PROTOCOL},
        {"\x82\xff\x80\0\0\0\0\0\0\0\0\0\0\0a", 15, WEBSOCKET_PROTOCOL},
        {"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0a", 15, WEBSOCKET_TOO_LARGE},
        {"\x02\xff\0\0\0\0\0\1\0\0\0\0\0\0a", 15, WEBSOCKET_TOO_LARGE},
        // Not a byte of the body has come.
        {"\x02\xff\0\0\0\0\0\1\0\0\0\0\0\0", 14, WEBSOCKET_TOO_LARGE},
        {"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14, WEBSOCKET_TOO_LARGE},
        {"\x82\xfe\0\x7e\0\0\0\0", 8, WEBSOCKET_TOO_LARGE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct rig r;

        start(&r);
        buffer_put(&r.in, table[i].bytes, table[i].size);
        feed(&r);
        assert_int_equal(websocket_end(r.ws), table[i].end);
        stop(&r);

        start(&r); // behind others, cut anywhere
        put_frame(&r.in, 0x82, ping_packet, sizeof ping_packet);
        put_frame(&r.in, 0x89, "", 0);
        for (size_t at = 0; at < table[i].size; at++) {
            buffer_put(&r.in, table[i].bytes + at, 1);
            feed(&r);
        }
        assert_int_equal(websocket_end(r.ws), table[i].end);
        expect(&r.packets, ping_packet, sizeof ping_packet);
        stop(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_a_packet),
        cmocka_unit_test(it_may_come_byte_by_byte_and_in_pieces),
        cmocka_unit_test(half_a_message_is_handed_on),
        cmocka_unit_test(long_messages_have_long_headers),
        cmocka_unit_test(either_side_may_end_it),
        cmocka_unit_test(pings_are_answered_so_many_a_second),
        cmocka_unit_test(each_broken_rule_has_its_code),
        cmocka_unit_test(frames_without_a_mask_are_refused),
        cmocka_unit_test(lengths_that_make_no_sense_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
