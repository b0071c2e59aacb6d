/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of gateway/protocol/frame16.h.
 */
#include "gateway/protocol/frame16.h"

#include "base/mem.h"
#include "gateway/protocol/packet.h"
#include "gateway/protocol/transport.h"
#include "tests/hex.h"

#include <string.h>

/* The examples of docs/protocol-client.md, as packets and as frames. */
static const uint8_t packets[] = {1, 0, 0, 6, 0x52, 0x48, 1, 1, 0, 0, 3, 0, 0, 1, 'x', 4, 0, 0, 0};
static const char frames[] = "0007 01 5248 01 01 0000  0002 03 78  0001 04";

static void a_frame_is_a_packet_with_its_size_in_front(void **state)
{
    struct buffer out = {0};

    (void)state;
    assert_true(frame16_put(bytes_of(packets, sizeof packets), &out));
    assert_hex(buffer_bytes(&out), frames);
    buffer_fini(&out);
}

static void frames_come_in_any_pieces(void **state)
{
    struct buffer in = {0};

    (void)state;
    assert_true(frame16_put(bytes_of(packets, sizeof packets), &in));
    for (size_t piece = 1; piece <= in.size; piece++) {
        struct frame16 f = {0};
        struct buffer got = {0};

        for (size_t at = 0; at < in.size; at += piece) {
            const size_t count = in.size - at < piece ? in.size - at : piece;

            assert_true(frame16_on_bytes(&f, bytes_of(in.data + at, count), &got));
        }
        assert_int_equal(got.size, sizeof packets);
        assert_memory_equal(got.data, packets, sizeof packets);
        buffer_fini(&got);
    }
    buffer_fini(&in);
}

static void a_frame_without_a_type_is_none(void **state)
{
    struct frame16 f = {0};
    struct buffer got = {0};

    (void)state;
    assert_false(frame16_on_bytes(&f, bytes_of("\0\1\4\0\0\0\1\4", 8), &got));
    assert_hex(buffer_bytes(&got), "04 000000");
    buffer_fini(&got);
}

static void what_does_not_fit_is_not_sent(void **state)
{
    const size_t size = FRAME16_BODY_MAX + 1;
    uint8_t *body = mem_new(1, size);

    (void)state;
    for (size_t more = 0; more < 2; more++) {
        struct buffer in = {0};
        struct buffer out = {0};

        packet_put_ping(&in, PACKET_PONG, bytes_of(body, 0));
        packet_put_ping(&in, PACKET_PONG, bytes_of(body, FRAME16_BODY_MAX + more));
        assert_true(frame16_put(buffer_bytes(&in), &out) == (more == 0));
        assert_int_equal(out.size, more == 0 ? 3 + 2 + UINT16_MAX : 3);
        buffer_fini(&in);
        buffer_fini(&out);
    }
    mem_free(body);
}

/* ---- the carrier of them ---- */

struct rig {
    struct transport_stats stats;
    struct transport_rules rules;
    struct client_transport *c;
    struct buffer plain;
};

static void start(struct rig *r)
{
    *r = (struct rig){.rules = transport_rules_default()};
    r->rules.stats = &r->stats;
    r->rules.packet_size_max = UINT16_MAX;
    r->c = transport_new(ENTRY_SKYNET, &r->rules, 1);
}

static void stop(struct rig *r)
{
    transport_free(r->c);
    buffer_fini(&r->plain);
}

static void it_is_open_at_once(void **state)
{
    struct rig r;

    (void)state;
    start(&r);
    assert_int_equal(transport_state(r.c), TRANSPORT_OPEN);
    transport_on_bytes(r.c, bytes_of("\0\2\3x\0", 5), &r.plain);
    assert_hex(buffer_bytes(&r.plain), "03 000001 78");
    transport_put(r.c, bytes_of("\4\0\0\1x", 5));
    assert_hex(buffer_bytes(transport_output(r.c)), "0002 04 78");
    transport_tick(r.c, 100000000);
    transport_close(r.c, true);
    assert_int_equal(transport_state(r.c), TRANSPORT_ENDED);
    assert_int_equal(r.stats.count[TRANSPORT_FRAME_OPENED], 1);
    stop(&r);
}

static void what_breaks_the_rules_is_kicked(void **state)
{
    struct rig r;

    (void)state;
    start(&r);
    transport_on_bytes(r.c, bytes_of("\0\0\0\2\3x", 6), &r.plain);
    assert_int_equal(transport_state(r.c), TRANSPORT_ENDED);
    assert_int_equal(r.plain.size, 0);
    assert_int_equal(r.stats.count[TRANSPORT_FRAME_EMPTY], 1);
    assert_hex(bytes_of(transport_output(r.c)->data + 2, 5), "05 00000064"); // 100: bad packet
    transport_on_bytes(r.c, bytes_of("\0\2\3x", 4), &r.plain);
    assert_int_equal(r.plain.size, 0);
    stop(&r);
}

static void what_does_not_fit_ends_it(void **state)
{
    const size_t size = FRAME16_BODY_MAX + 1;
    uint8_t *body = mem_new(1, size);
    struct buffer in = {0};
    struct rig r;

    (void)state;
    start(&r);
    packet_put_ping(&in, PACKET_PONG, bytes_of(body, 1));
    packet_put_ping(&in, PACKET_PONG, bytes_of(body, size));
    transport_put(r.c, buffer_bytes(&in));
    assert_int_equal(transport_state(r.c), TRANSPORT_ENDED);
    assert_int_equal(r.stats.count[TRANSPORT_FRAME_TOO_LARGE], 1);
    assert_hex(bytes_of(transport_output(r.c)->data, 4), "0002 04 00");
    assert_hex(bytes_of(transport_output(r.c)->data + 6, 5), "05 00000065"); // 101: too large
    mem_free(body);
    buffer_fini(&in);
    stop(&r);
}

static void who_may_not_come_in_gets_a_goaway(void **state)
{
    struct rig r;

    (void)state;
    start(&r);
    transport_refuse(r.c, bytes_of("\x0a\0\0\6\0\0\0\x64no", 10));
    assert_int_equal(transport_state(r.c), TRANSPORT_ENDED);
    assert_hex(buffer_bytes(transport_output(r.c)), "0007 0a 00000064 6e6f");
    stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_is_a_packet_with_its_size_in_front),
        cmocka_unit_test(frames_come_in_any_pieces),
        cmocka_unit_test(a_frame_without_a_type_is_none),
        cmocka_unit_test(what_does_not_fit_is_not_sent),
        cmocka_unit_test(it_is_open_at_once),
        cmocka_unit_test(what_breaks_the_rules_is_kicked),
        cmocka_unit_test(what_does_not_fit_ends_it),
        cmocka_unit_test(who_may_not_come_in_gets_a_goaway),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
