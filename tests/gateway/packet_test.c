/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of docs/protocol-client.md, and what is none.
 */
#include "gateway/protocol/packet.h"

#include "base/mem.h"
#include "base/prng.h"
#include "tests/hex.h"

static struct packet only(const struct buffer *b)
{
    struct packet p = {0};

    assert_int_equal(packet_next(buffer_bytes(b), PACKET_BODY_MAX, &p), PACKET_WHOLE);
    assert_int_equal(PACKET_HEADER + p.body.size, b->size);
    return p;
}

static void a_hello_is_these_bytes(void **state)
{
    struct buffer b = {0};
    struct hello_packet hello;

    (void)state;
    packet_put_hello(&b,
                     &(struct hello_packet){.version_min = 1, .version_max = 3, .flags = 0x0102});
    assert_hex(buffer_bytes(&b), "01 000006  5248 01 03 0102");
    assert_int_equal(packet_get_hello(only(&b).body, &hello), ERR_OK);
    assert_int_equal(hello.version_min, 1);
    assert_int_equal(hello.version_max, 3);
    assert_int_equal(hello.flags, 0x0102);
    buffer_fini(&b);
}

static void a_hello_ack_is_these_bytes(void **state)
{
    struct buffer b = {0};
    struct hello_ack_packet ack;

    (void)state;
    packet_put_hello_ack(&b,
                         &(struct hello_ack_packet){.version = 1,
                                                    .heartbeat_ms = 30000,
                                                    .packet_size_max = 65536,
                                                    .requests_max = 1024,
                                                    .connection = 0x1122334455667788});
    assert_hex(buffer_bytes(&b),
               "02 000018  01 00 0000 00007530 00010000 00000400 1122334455667788");
    assert_int_equal(packet_get_hello_ack(only(&b).body, &ack), ERR_OK);
    assert_int_equal(ack.version, 1);
    assert_int_equal(ack.heartbeat_ms, 30000);
    assert_int_equal(ack.packet_size_max, 65536);
    assert_int_equal(ack.requests_max, 1024);
    assert_true(ack.connection == 0x1122334455667788);
    buffer_fini(&b);
}

static void a_return_is_these_bytes(void **state)
{
    const struct return_packet back = {
        .name = {.key = 1, .session = 2, .version = 3}, .has = {5, 8}, .attempt = 4};
    uint8_t bytes[PACKET_RETURN_SIZE];
    struct return_packet r;

    (void)state;
    packet_put_return(bytes, &back);
    assert_hex(bytes_of(bytes, sizeof bytes),
               "0000000000000001 0000000000000002 0000000000000003 0000000000000005 00000008 0004");
    assert_int_equal(packet_get_return(bytes_of(bytes, sizeof bytes), &r), ERR_OK);
    assert_true(r.name.key == 1 && r.name.session == 2 && r.name.version == 3 &&
                r.has.pushes == 5 && r.has.answers == 8 && r.attempt == 4);
    // An older client's has no attempt.
    assert_int_equal(packet_get_return(bytes_of(bytes, sizeof bytes - 2), &r), ERR_OK);
    assert_true(r.has.answers == 8 && r.attempt == 0);
    assert_int_equal(packet_get_return(bytes_of(bytes, sizeof bytes - 3), &r), ERR_CORRUPT);
}

static void a_request_is_these_bytes(void **state)
{
    struct buffer b = {0};
    struct request_packet r;
    const struct request_packet request = {.request = 0x01020304,
                                           .flags = PACKET_IDEMPOTENT,
                                           .kind = 0x0506,
                                           .id = text("boss"),
                                           .payload = text("hit 7")};

    (void)state;
    packet_put_request(&b, PACKET_REQUEST, &request);
    assert_hex(buffer_bytes(&b), "06 000011  01020304 01 04 0506  626f7373  6869742037");
    assert_int_equal(packet_get_request(only(&b).body, &r), ERR_OK);
    assert_int_equal(r.request, 0x01020304);
    assert_int_equal(r.kind, 0x0506);
    assert_int_equal(r.deadline_ms, 0);
    assert_true(bytes_equal(r.id, text("boss")));
    assert_true(bytes_equal(r.payload, text("hit 7")));
    buffer_fini(&b);
}

static void a_deadline_stands_before_the_id(void **state)
{
    struct buffer b = {0};
    struct request_packet r;
    const struct request_packet request = {
        .request = 9, .flags = PACKET_DEADLINE, .deadline_ms = 2000, .id = text("a")};

    (void)state;
    packet_put_request(&b, PACKET_NOTIFY, &request);
    assert_hex(buffer_bytes(&b), "08 00000d  00000009 02 01 0000  000007d0  61");
    assert_int_equal(packet_get_request(only(&b).body, &r), ERR_OK);
    assert_int_equal(r.deadline_ms, 2000);
    assert_int_equal(r.payload.size, 0);
    buffer_clear(&b);
    packet_put_unbind(&b, 9);
    assert_hex(buffer_bytes(&b), "0c 000004  00000009");
    buffer_fini(&b);
}

static void a_trace_stands_behind_the_deadline(void **state)
{
    struct buffer b = {0};
    struct request_packet r;
    uint8_t trace[TRACE_CONTEXT_SIZE];
    const struct request_packet request = {.request = 9,
                                           .flags = PACKET_DEADLINE | PACKET_TRACE,
                                           .deadline_ms = 2000,
                                           .trace = trace,
                                           .id = text("a"),
                                           .payload = text("b")};

    (void)state;
    memset(trace, 0x4b, sizeof trace);
    packet_put_request(&b, PACKET_REQUEST, &request);
    assert_hex(buffer_bytes(&b),
               "06 000027  00000009 12 01 0000  000007d0"
               "4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b 4b4b4b4b4b4b4b4b 4b  61 62");
    assert_int_equal(packet_get_request(only(&b).body, &r), ERR_OK);
    assert_int_equal(r.deadline_ms, 2000);
    assert_memory_equal(r.trace, trace, sizeof trace);
    assert_true(bytes_equal(r.id, text("a")) && bytes_equal(r.payload, text("b")));
    for (size_t cut = 8; cut < 38; cut++) { // it has no id then
        assert_int_equal(packet_get_request(bytes_of(b.data + 4, cut), &r), ERR_INVALID);
        assert_int_equal(r.request, 9);
    }
    buffer_fini(&b);
}

static void a_response_is_these_bytes(void **state)
{
    struct buffer b = {0};
    struct response_packet r;
    const struct response_packet response = {
        .request = 0x01020304, .status = STATUS_OVERLOADED, .retry_ms = 100, .payload = text("no")};

    (void)state;
    packet_put_response(&b, &response);
    assert_hex(buffer_bytes(&b), "07 00000b  01020304 05 00000064  6e6f");
    assert_int_equal(packet_get_response(only(&b).body, &r), ERR_OK);
    assert_int_equal(r.request, 0x01020304);
    assert_int_equal(r.status, STATUS_OVERLOADED);
    assert_int_equal(r.retry_ms, 100);
    assert_true(bytes_equal(r.payload, text("no")));
    assert_string_equal(packet_status_name(r.status), "OVERLOADED");
    assert_string_equal(packet_status_name(200), "?");
    buffer_fini(&b);
}

static void pushes_and_notices_are_these_bytes(void **state)
{
    struct buffer b = {0};
    struct push_packet push;
    struct notice_packet notice;

    (void)state;
    packet_put_push(&b, &(struct push_packet){.sequence = 7, .payload = text("hi")});
    assert_hex(buffer_bytes(&b), "09 00000a  0000000000000007  6869");
    assert_int_equal(packet_get_push(only(&b).body, &push), ERR_OK);
    assert_int_equal(push.sequence, 7);
    assert_true(bytes_equal(push.payload, text("hi")));
    buffer_clear(&b);
    packet_put_notice(
        &b, PACKET_KICK, &(struct notice_packet){.number = 1000, .text = text("bye")});
    assert_hex(buffer_bytes(&b), "05 000007  000003e8  627965");
    buffer_clear(&b);
    packet_put_notice(
        &b, PACKET_GOAWAY, &(struct notice_packet){.number = 100, .text = text("stop")});
    assert_hex(buffer_bytes(&b), "0a 000008  00000064  73746f70");
    assert_int_equal(packet_get_notice(only(&b).body, &notice), ERR_OK);
    assert_int_equal(notice.number, 100);
    assert_true(bytes_equal(notice.text, text("stop")));
    buffer_clear(&b);
    packet_put_ping(&b, PACKET_PING, text("x"));
    packet_put_ping(&b, PACKET_PONG, (struct bytes){NULL, 0});
    assert_hex(buffer_bytes(&b), "03 000001 78  04 000000");
    buffer_fini(&b);
}

static void an_auth_and_its_answer_are_these_bytes(void **state)
{
    struct buffer b = {0};
    struct auth_ok_packet ok;

    (void)state;
    packet_put_auth(&b, text("rh1.k1.AA.BB"));
    assert_hex(buffer_bytes(&b), "0d 00000c  7268312e6b312e41412e4242");
    assert_true(bytes_equal(only(&b).body, text("rh1.k1.AA.BB")));
    buffer_clear(&b);
    packet_put_auth_ok(
        &b, &(struct auth_ok_packet){.expires_s = 1800000000, .kind = 7, .id = text("boss")});
    assert_hex(buffer_bytes(&b), "0f 00000f  000000006b49d200 0007 04 626f7373");
    assert_int_equal(packet_get_auth_ok(only(&b).body, &ok), ERR_OK);
    assert_int_equal(ok.expires_s, 1800000000);
    assert_int_equal(ok.kind, 7);
    assert_true(bytes_equal(ok.id, text("boss")));
    for (size_t size = 0; size < only(&b).body.size; size++) {
        assert_int_equal(packet_get_auth_ok(bytes_of(only(&b).body.data, size), &ok), ERR_CORRUPT);
    }
    assert_int_equal(ok.token.size, 0);
    buffer_clear(&b);
    packet_put_auth_ok(
        &b,
        &(struct auth_ok_packet){
            .expires_s = 1800000000, .kind = 7, .id = text("boss"), .token = text("rh1.k1.AA.BB")});
    assert_hex(buffer_bytes(&b),
               "0f 00001d  000000006b49d200 0007 04 626f7373 000c 7268312e6b312e41412e4242");
    assert_int_equal(packet_get_auth_ok(only(&b).body, &ok), ERR_OK);
    assert_true(bytes_equal(ok.id, text("boss")));
    assert_true(bytes_equal(ok.token, text("rh1.k1.AA.BB")));
    for (size_t size = 17; size < only(&b).body.size; size++) { // a token that isn't whole
        assert_int_equal(packet_get_auth_ok(bytes_of(only(&b).body.data, size), &ok), ERR_CORRUPT);
    }
    buffer_fini(&b);
}

static void a_packet_that_is_not_whole_waits_for_the_rest(void **state)
{
    struct buffer b = {0};
    struct packet p;

    (void)state;
    packet_put_ping(&b, PACKET_PING, text("12345"));
    for (size_t size = 0; size < b.size; size++) {
        assert_int_equal(packet_next(bytes_of(b.data, size), 5, &p), PACKET_MORE);
    }
    assert_int_equal(packet_next(buffer_bytes(&b), 5, &p), PACKET_WHOLE);
    assert_int_equal(packet_next(bytes_of(b.data, PACKET_HEADER), 4, &p), PACKET_LARGE);
    buffer_fini(&b);
}

static void bodies_that_end_too_early_are_refused(void **state)
{
    static const uint8_t request[] = {
        0, 0, 0, 9, PACKET_DEADLINE, 3, 0, 0, 0, 0, 1, 0, 'a', 'b', 'c'};
    struct request_packet r;
    struct hello_packet hello;
    struct hello_ack_packet ack;
    struct response_packet response;
    struct push_packet push;
    struct notice_packet notice;
    uint32_t unbind = 0;

    (void)state;
    for (size_t size = 0; size < sizeof request; size++) {
        assert_int_equal(packet_get_request(bytes_of(request, size), &r),
                         size < PACKET_REQUEST_HEADER ? ERR_CORRUPT : ERR_INVALID);
    }
    assert_int_equal(packet_get_request(bytes_of(request, sizeof request), &r), ERR_OK);
    assert_int_equal(r.deadline_ms, 256);
    assert_int_equal(packet_get_hello(bytes_of("RH\1\1\0", 5), &hello), ERR_CORRUPT);
    assert_int_equal(packet_get_hello(bytes_of("RX\1\1\0\0", 6), &hello), ERR_CORRUPT);
    assert_int_equal(packet_get_hello(bytes_of("RH\2\1\0\0", 6), &hello), ERR_CORRUPT);
    assert_int_equal(packet_get_hello_ack(bytes_of(request, 15), &ack), ERR_CORRUPT);
    assert_int_equal(packet_get_response(bytes_of(request, 8), &response), ERR_CORRUPT);
    assert_int_equal(packet_get_push(bytes_of(request, 7), &push), ERR_CORRUPT);
    assert_int_equal(packet_get_notice(bytes_of(request, 3), &notice), ERR_CORRUPT);
    assert_int_equal(packet_get_unbind(bytes_of(request, 3), &unbind), ERR_CORRUPT);
}

/* Of a block that ends where its memory does, so that a sanitizer sees a byte too many. */
static void any_bytes_are_read_within_their_end(void **state)
{
    struct prng random = {.state = 1};

    (void)state;
    for (int i = 0; i < 20000; i++) {
        const size_t size = prng_between(&random, 1, 40);
        uint8_t *data = mem_new(1, size);
        struct packet p;
        struct request_packet r;

        for (size_t at = 0; at < size; at++) {
            data[at] = (uint8_t)prng_between(&random, 0, prng_chance(&random, 33) ? 255 : 11);
        }
        if (packet_next(bytes_of(data, size), 64, &p) == PACKET_WHOLE) {
            assert_true(p.body.data + p.body.size <= data + size);
        }
        if (packet_get_request(bytes_of(data, size), &r) == ERR_OK) {
            assert_true(r.id.size >= 1 && r.id.data + r.id.size == r.payload.data);
            assert_ptr_equal(r.payload.data + r.payload.size, data + size);
        }
        mem_free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hello_is_these_bytes),
        cmocka_unit_test(a_hello_ack_is_these_bytes),
        cmocka_unit_test(a_return_is_these_bytes),
        cmocka_unit_test(a_request_is_these_bytes),
        cmocka_unit_test(a_deadline_stands_before_the_id),
        cmocka_unit_test(a_trace_stands_behind_the_deadline),
        cmocka_unit_test(a_response_is_these_bytes),
        cmocka_unit_test(pushes_and_notices_are_these_bytes),
        cmocka_unit_test(an_auth_and_its_answer_are_these_bytes),
        cmocka_unit_test(a_packet_that_is_not_whole_waits_for_the_rest),
        cmocka_unit_test(bodies_that_end_too_early_are_refused),
        cmocka_unit_test(any_bytes_are_read_within_their_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
