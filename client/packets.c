/* SPDX-License-Identifier: Apache-2.0
 *
 * The packets that a client sends.
 */
#include "client/inside.h"

#include "base/big.h"

#include <string.h>

enum { REQUEST_HEADER = 8 };

static uint8_t *put(uint8_t *at, struct rhc_bytes bytes)
{
    if (bytes.size > 0) {
        memcpy(at, bytes.data, bytes.size);
    }
    return at + bytes.size;
}

static uint8_t *put_head(uint8_t *at, enum packet_number type, size_t size)
{
    return big_put32(at, (uint32_t)type << 24 | (uint32_t)size);
}

/* Room for one; NULL: none, which only a flood of pings brings about. */
static uint8_t *begin(struct rhc *c, enum packet_number type, size_t size)
{
    if (c->bytes.control_size + HEAD + size > CONTROL_MAX) {
        return NULL;
    }
    uint8_t *at = c->bytes.control + c->bytes.control_size;

    c->bytes.control_size += HEAD + size;
    return put_head(at, type, size);
}

void say_hello(struct rhc *c)
{
    uint8_t *at = begin(c, P_HELLO, 6);

    at = big_put16(at, 0x5248);
    at = big_put8(at, 1);
    at = big_put8(at, 1);
    big_put16(at, 0);
}

void say_auth(struct rhc *c)
{
    const struct rhc_bytes shown = login_show(c);
    uint8_t *at = begin(c, P_AUTH, shown.size);

    if (at != NULL) {
        put(at, shown);
    }
}

static uint8_t *begin_asking(struct rhc *c, enum packet_number type, uint8_t flags, size_t more)
{
    const struct bound_session *s = &c->session.now;
    uint8_t *at = begin(c, type, REQUEST_HEADER + s->id_size + more);

    if (at == NULL) {
        return NULL;
    }
    at = big_put32(at, NAME_BIND);
    at = big_put8(at, flags);
    at = big_put8(at, s->id_size);
    at = big_put16(at, s->kind);
    return put(at, bytes_at(s->id, s->id_size));
}

void say_bind(struct rhc *c)
{
    if (begin_asking(c, P_BIND, c->session.now.plain ? 0 : F_KEEP, 0) == NULL) {
        give_up(c, "too many pings");
    }
}

bool say_resume(struct rhc *c, uint32_t attempt)
{
    const struct bound_session *s = &c->session.now;
    uint8_t *at = begin_asking(c, P_RESUME, 0, SESSION_SIZE + 8 + 4 + 2);

    if (at == NULL) {
        give_up(c, "too many pings");
        return false;
    }
    at = put(at, bytes_at(s->name, SESSION_SIZE));
    at = big_put64(at, s->pushed);
    at = big_put32(at, log_least(&c->log, c->asking.last_name + 1));
    big_put16(at, attempt <= UINT16_MAX ? (uint16_t)attempt : 0);
    return true;
}

void say_unbind(struct rhc *c)
{
    uint8_t *at = begin(c, P_UNBIND, 4);

    if (at != NULL) {
        big_put32(at, NAME_UNBIND);
    }
}

void say_ack(struct rhc *c)
{
    uint8_t *at = begin(c, P_ACK, 12);

    if (at != NULL) {
        at = big_put64(at, c->session.now.pushed);
        big_put32(at, log_least(&c->log, c->asking.last_name + 1));
    }
}

void say_ping(struct rhc *c, enum packet_number type, struct rhc_bytes body)
{
    uint8_t *at = begin(c, type, body.size);

    if (at != NULL) {
        put(at, body);
    }
}

size_t asking_size(const struct rhc_request *r)
{
    return REQUEST_HEADER + (r->deadline_ms > 0 ? 4u : 0u) + r->id.size + r->payload.size;
}

void asking_write(uint8_t *out, enum packet_number type, uint32_t name, const struct rhc_request *r)
{
    const bool idempotent = (r->flags & RHC_IDEMPOTENT) != 0;
    uint8_t *at = put_head(out, type, asking_size(r));

    at = big_put32(at, name);
    at = big_put8(
        at, (uint8_t)((idempotent ? F_IDEMPOTENT : 0) | (r->deadline_ms > 0 ? F_DEADLINE : 0)));
    at = big_put8(at, (uint8_t)r->id.size);
    at = big_put16(at, r->kind);
    if (r->deadline_ms > 0) {
        at = big_put32(at, r->deadline_ms);
    }
    put(put(at, r->id), r->payload);
}
