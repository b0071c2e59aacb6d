/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of conform/wsframe.h against the gateway's own WebSocket.
 */
#include "conform/frame16.h"
#include "conform/where.h"
#include "conform/wsframe.h"

#include "tests/test.h"

#include <string.h>

static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};

/* The parts of a packet as they are sent become frames with these first bytes. */
static void cut_into(struct bytes parts[], size_t count, const char *firsts)
{
    struct wsframe_cut cut = {.sent = 0};
    struct buffer out = {0};
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        wsframe_put_packets(&out, &cut, mask, parts[i]);
    }
    for (; *firsts != '\0'; firsts += 2) {
        const char hex[] = "0123456789abcdef";

        assert_true(at + 6 <= out.size);
        assert_int_equal(out.data[at] >> 4, strchr(hex, firsts[0]) - hex);
        assert_int_equal(out.data[at] & 0xF, strchr(hex, firsts[1]) - hex);
        assert_memory_equal(out.data + at + 2, mask, sizeof mask);
        at += 6 + (size_t)(out.data[at + 1] & 0x7F);
    }
    assert_int_equal(at, out.size);
    buffer_fini(&out);
}

static void each_packet_is_a_message(void **state)
{
    const uint8_t two[] = {3, 0, 0, 1, 'a', 4, 0, 0, 0};

    (void)state;
    cut_into((struct bytes[]){bytes_of(two, sizeof two)}, 1, "8282");
    cut_into((struct bytes[]){bytes_of(two, 5), bytes_of(two + 5, 4)}, 2, "8282");
}

static void a_part_is_a_fragment(void **state)
{
    const uint8_t two[] = {3, 0, 0, 1, 'a', 4, 0, 0, 0};

    (void)state;
    cut_into((struct bytes[]){bytes_of(two, 2)}, 1, "02");
    cut_into((struct bytes[]){bytes_of(two, 4), bytes_of(two + 4, 1)}, 2, "0280");
    cut_into((struct bytes[]){bytes_of(two, 1), bytes_of(two + 1, 2), bytes_of(two + 3, 6)},
             3,
             "02008082");
}

static void what_is_put_bare_is_read(void **state)
{
    static const size_t sizes[] = {0, 1, 125, 126, 65535, 65536, 100000};
    static uint8_t bytes[100000];
    const char *why = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct buffer out = {0};
        struct wsframe frame;

        wsframe_put(&out, WSFRAME_BINARY | WSFRAME_FINAL, NULL, bytes_of(bytes, sizes[i]));
        for (size_t cut = 0; cut < out.size && cut < 16; cut++) {
            assert_int_equal(wsframe_next(bytes_of(out.data, cut), &frame, &why), WSFRAME_MORE);
        }
        assert_int_equal(wsframe_next(buffer_bytes(&out), &frame, &why), WSFRAME_WHOLE);
        assert_int_equal(frame.opcode, WSFRAME_BINARY);
        assert_int_equal(frame.payload.size, sizes[i]);
        assert_int_equal(frame.size, out.size);
        buffer_fini(&out);
    }
}

static void what_no_gateway_sends_is_wrong(void **state)
{
    static const uint8_t all[][12] = {
        {0xC2, 1, 'a'},                // a reserved bit
        {0x82, 0x81, 1, 2, 3, 4, 'a'}, // masked
        {0x02, 1, 'a'},                // a fragment
        {0x80, 1, 'a'},                // the rest of one
        {0x89, 126, 0, 126},           // a long ping
        {0x82, 126, 0, 5},             // not the shortest length
        {0x82, 127, 0, 0, 0, 0, 0, 0, 0, 5},
        {0x82, 127, 0, 0, 0, 1, 0, 0, 0, 0}, // longer than any packet
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct wsframe frame;
        const char *why = NULL;

        assert_int_equal(wsframe_next(bytes_of(all[i], sizeof all[i]), &frame, &why),
                         WSFRAME_WRONG);
        assert_non_null(why);
    }
}

static void addresses_and_urls_say_where(void **state)
{
    static const struct {
        const char *text;
        bool encrypted;
        bool websocket;
        const char *host;
        uint16_t port;
        const char *path;
    } all[] = {
        {"127.0.0.1:7000", false, false, "127.0.0.1", 7000, "/"},
        {"tcp://a.example:7000", false, false, "a.example", 7000, "/"},
        {"tls://[::1]:7000", true, false, "::1", 7000, "/"},
        {"ws://a.example", false, true, "a.example", 80, "/"},
        {"ws://[::1]/game", false, true, "::1", 80, "/game"},
        {"wss://[::1]:8443/game?a=b", true, true, "::1", 8443, "/game?a=b"},
        {"wss://a.example?a=b", true, true, "a.example", 443, "/?a=b"},
        {"skynet://a.example:8888", false, false, "a.example", 8888, "/"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct conform_where where;

        assert_int_equal(where_parse(all[i].text, &where), ERR_OK);
        assert_int_equal(where.encrypted, all[i].encrypted);
        assert_int_equal(where.websocket, all[i].websocket);
        assert_int_equal(where.skynet, strncmp(all[i].text, "skynet", 6) == 0);
        assert_string_equal(where.to.host, all[i].host);
        assert_int_equal(where.to.port, all[i].port);
        assert_string_equal(where.path, all[i].path);
    }
}

static void what_says_nowhere_is_refused(void **state)
{
    static const char *const all[] = {"",
                                      "nowhere",
                                      "127.0.0.1",
                                      "tcp://127.0.0.1",
                                      "127.0.0.1:7000/",
                                      "http://127.0.0.1:7000/",
                                      "ws://",
                                      "ws:///",
                                      "ws://a:x/",
                                      "ws://a:70000/",
                                      "ws://a/ b",
                                      "ws://a/#b"};
    struct conform_where where;
    char text[2048] = "ws://";

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(where_parse(all[i], &where), ERR_INVALID);
    }
    memset(text + 5, 'a', sizeof text - 6);
    assert_int_equal(where_parse(text, &where), ERR_INVALID);
    text[10] = '/';
    assert_int_equal(where_parse(text, &where), ERR_INVALID);
}

static void a_packet_is_a_frame_of_skynets(void **state)
{
    static const uint8_t packets[] = {3, 0, 0, 1, 'a', 4, 0, 0, 0, 1, 0};
    static const uint8_t frames[] = {0, 2, 3, 'a', 0, 1, 4, 0};
    static const uint8_t large[] = {6, 0, 0xff, 0xff};

    (void)state;
    for (size_t part = 1; part <= sizeof packets; part++) {
        struct frame16_cut cut = {.left = 0};
        struct buffer out = {0};
        struct packet packet;

        for (size_t at = 0; at < sizeof packets; at += part) {
            const size_t left = sizeof packets - at;

            assert_true(
                frame16_put_packets(&out, &cut, bytes_of(packets + at, left < part ? left : part)));
        }
        frame16_put_half(&out, &cut);
        assert_true(bytes_equal(buffer_bytes(&out), bytes_of(frames, sizeof frames)));
        assert_int_equal(frame16_next(buffer_bytes(&out), &packet), 4);
        assert_true(packet.type == 3 && bytes_equal(packet.body, bytes_of("a", 1)));
        assert_int_equal(frame16_next(bytes_of(frames + 4, 3), &packet), 3);
        assert_true(packet.type == 4 && packet.body.size == 0);
        assert_int_equal(frame16_next(bytes_of(frames + 4, 2), &packet), 0);
        assert_int_equal(frame16_next(bytes_of(packets + 1, 2), &packet), SIZE_MAX);
        cut = (struct frame16_cut){.left = 0};
        assert_false(frame16_put_packets(&out, &cut, bytes_of(large, sizeof large)));
        buffer_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_packet_is_a_message),
        cmocka_unit_test(a_part_is_a_fragment),
        cmocka_unit_test(what_is_put_bare_is_read),
        cmocka_unit_test(what_no_gateway_sends_is_wrong),
        cmocka_unit_test(a_packet_is_a_frame_of_skynets),
        cmocka_unit_test(addresses_and_urls_say_where),
        cmocka_unit_test(what_says_nowhere_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
