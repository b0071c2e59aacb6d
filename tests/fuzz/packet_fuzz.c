/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as packets of clients. What decodes encodes to the same bytes.
 */
#include "base/assert.h"
#include "gateway/protocol/packet.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const struct buffer *made, struct bytes body)
{
    ASSERT(made->size >= PACKET_HEADER);
    // What follows the last field that is known is not kept.
    ASSERT(made->size - PACKET_HEADER <= body.size);
    ASSERT(memcmp(made->data + PACKET_HEADER, body.data, made->size - PACKET_HEADER) == 0);
}

static void check_body(const struct packet *p, struct buffer *made)
{
    struct request_packet request;
    struct response_packet response;
    struct push_packet push;
    struct hello_packet hello;
    struct hello_ack_packet ack;
    struct auth_ok_packet ok;
    struct notice_packet notice;
    uint32_t unbind = 0;

    if (packet_get_request(p->body, &request) == ERR_OK) {
        packet_put_request(made, PACKET_REQUEST, &request);
        check_same(made, p->body);
    }
    buffer_clear(made);
    if (packet_get_response(p->body, &response) == ERR_OK) {
        packet_put_response(made, &response);
        check_same(made, p->body);
    }
    buffer_clear(made);
    if (packet_get_push(p->body, &push) == ERR_OK) {
        packet_put_push(made, &push);
        check_same(made, p->body);
    }
    buffer_clear(made);
    if (packet_get_hello(p->body, &hello) == ERR_OK) {
        packet_put_hello(made, &hello);
        check_same(made, p->body);
    }
    buffer_clear(made);
    if (packet_get_hello_ack(p->body, &ack) == ERR_OK) {
        packet_put_hello_ack(made, &ack);
        ASSERT(made->size - PACKET_HEADER <= p->body.size); // a byte of it is kept for later
    }
    buffer_clear(made);
    if (packet_get_auth_ok(p->body, &ok) == ERR_OK) {
        packet_put_auth_ok(made, &ok);
        check_same(made, p->body);
    }
    buffer_clear(made);
    if (packet_get_notice(p->body, &notice) == ERR_OK) {
        packet_put_notice(made, PACKET_KICK, &notice); // cuts its text
        check_same(made, p->body);
    }
    buffer_clear(made);
    if (packet_get_unbind(p->body, &unbind) == ERR_OK) {
        packet_put_unbind(made, unbind);
        check_same(made, p->body);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = bytes_of(data, size);
    struct packet p;

    while (packet_next(in, 4096, &p) == PACKET_WHOLE) {
        struct buffer made = {0};

        ASSERT(p.body.data + p.body.size <= data + size);
        check_body(&p, &made);
        buffer_fini(&made);
        in = bytes_of(p.body.data + p.body.size, (size_t)(data + size - p.body.data) - p.body.size);
    }
    return 0;
}
