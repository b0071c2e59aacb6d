/* SPDX-License-Identifier: Apache-2.0
 *
 * A client under test that speaks packets, and what it hears.
 */
#ifndef TESTS_GATEWAY_PACKET_TALK_H
#define TESTS_GATEWAY_PACKET_TALK_H

#include "tests/gateway/client_rig.h"
#include "tests/test.h"

#include <string.h>

struct talk {
    struct client_rig r;
    struct client *c;
    struct buffer said;
    struct buffer heard;
    size_t heard_at;
};

static inline struct bytes of(const char *text)
{
    return bytes_of(text, strlen(text));
}

static inline void start(struct talk *t, const struct clients_config *clients)
{
    const struct router_config router = router_config_default();

    *t = (struct talk){0};
    client_rig_init(&t->r, clients, &router);
    client_rig_ring(&t->r);
    t->c = client_new(t->r.all, CLIENT_PACKETS, "x", t->r.rig.now_us);
}

static inline void stop(struct talk *t)
{
    client_rig_free(&t->r, t->c);
    client_rig_fini(&t->r);
    buffer_fini(&t->said);
    buffer_fini(&t->heard);
}

static inline void send(struct talk *t)
{
    client_rig_bytes(&t->r, t->c, buffer_bytes(&t->said));
    buffer_clear(&t->said);
}

static inline void say(struct talk *t, enum packet_type type, uint32_t request, const char *id)
{
    packet_put_request(
        &t->said,
        type,
        &(struct request_packet){.request = request, .id = of(id), .payload = of("p")});
}

/* The next packet that the client gets. */
static inline struct packet hear(struct talk *t)
{
    const struct bytes out = client_output(t->c);
    struct packet p = {0};

    buffer_put(&t->heard, out.data, out.size);
    client_sent(t->c, out.size, t->r.rig.now_us);
    const struct bytes timer_wheel = {t->heard.data + t->heard_at, t->heard.size - t->heard_at};
    assert_int_equal(packet_next(timer_wheel, PACKET_BODY_MAX, &p), PACKET_WHOLE);
    t->heard_at += PACKET_HEADER + p.body.size;
    return p;
}

static inline void hears_nothing(struct talk *t)
{
    assert_int_equal(client_output(t->c).size, 0);
    assert_int_equal(t->heard_at, t->heard.size);
}

static inline struct response_packet hears_answer(struct talk *t, uint32_t request,
                                                  enum packet_status status)
{
    const struct packet p = hear(t);
    struct response_packet r = {0};

    assert_int_equal(p.type, PACKET_RESPONSE);
    assert_int_equal(packet_get_response(p.body, &r), ERR_OK);
    assert_int_equal(r.request, request);
    assert_string_equal(packet_status_name(r.status), packet_status_name((uint8_t)status));
    assert_true(status == STATUS_OK || r.payload.size > 0);
    return r;
}

static inline void hears_notice(struct talk *t, enum packet_type type, uint32_t number)
{
    const struct packet p = hear(t);
    struct notice_packet n = {0};

    assert_int_equal(p.type, type);
    assert_int_equal(packet_get_notice(p.body, &n), ERR_OK);
    assert_int_equal(n.number, number);
}

static inline void greet(struct talk *t)
{
    packet_put_hello(&t->said, &(struct hello_packet){.version_min = 1, .version_max = 1});
    send(t);
    assert_int_equal(hear(t).type, PACKET_HELLO_ACK);
}

/* Another connection, which is told that it has to say who it is. */
static inline void come_asked(struct talk *t)
{
    struct hello_ack_packet ack;

    t->c = client_new(t->r.all, CLIENT_PACKETS, "10.0.0.1:999", t->r.rig.now_us);
    packet_put_hello(&t->said, &(struct hello_packet){.version_min = 1, .version_max = 1});
    send(t);
    const struct packet p = hear(t);
    assert_int_equal(p.type, PACKET_HELLO_ACK);
    assert_int_equal(packet_get_hello_ack(p.body, &ack), ERR_OK);
    assert_int_equal(ack.flags, PACKET_ACK_AUTH);
}

static inline void start_greeted(struct talk *t)
{
    const struct clients_config clients = clients_config_default();

    start(t, &clients);
    greet(t);
}

static inline void pass(struct talk *t, uint64_t us)
{
    t->r.rig.now_us += us;
    client_tick(t->c, t->r.rig.now_us);
}

#endif
