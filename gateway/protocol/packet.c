/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and decodes every packet of the clients' binary protocol.
 */
#include "gateway/protocol/packet.h"

#include "base/assert.h"
#include "base/big.h"

#include <string.h>

const char *packet_kick_name(enum packet_kick code)
{
    static const char *const names[PACKET_KICK_COUNT] = {"bad_packet",
                                                         "too_large",
                                                         "no_hello",
                                                         "version",
                                                         "silent",
                                                         "no_memory",
                                                         "no_auth",
                                                         "token_malformed",
                                                         "token_unknown_key",
                                                         "token_forged",
                                                         "token_foreign",
                                                         "token_expired",
                                                         "login_refused",
                                                         "login_broken"};

    ASSERT(code >= PACKET_KICK_BAD_PACKET && code < PACKET_KICK_BAD_PACKET + PACKET_KICK_COUNT);
    return names[code - PACKET_KICK_BAD_PACKET];
}

/* ---- fields ---- */

static uint8_t *put_run(uint8_t *at, struct bytes run)
{
    if (run.size > 0) {
        memcpy(at, run.data, run.size);
    }
    return at + run.size;
}

/* The header; returns where the body goes, which the caller fills whole. */
static uint8_t *begin(struct buffer *out, enum packet_type type, size_t size)
{
    ASSERT(size <= PACKET_BODY_MAX);
    uint8_t *at = buffer_reserve(out, PACKET_HEADER + size);

    out->size += PACKET_HEADER + size;
    return big_put32(at, (uint32_t)type << 24 | (uint32_t)size);
}

/* What follows the first `count` bytes. */
static struct bytes rest_of(struct bytes body, size_t count)
{
    return bytes_of(body.data + count, body.size - count);
}

/* ---- packets ---- */

enum packet_result packet_next(struct bytes in, size_t size_max, struct packet *out)
{
    if (in.size < PACKET_HEADER) {
        return PACKET_MORE;
    }
    const size_t size = big_get24(in.data + 1);

    if (size > size_max) {
        return PACKET_LARGE;
    }
    if (in.size - PACKET_HEADER < size) {
        return PACKET_MORE;
    }
    out->type = in.data[0];
    out->body = bytes_of(in.data + PACKET_HEADER, size);
    return PACKET_WHOLE;
}

enum {
    HELLO_SIZE = 6,
    HELLO_ACK_SIZE = 24,
    PUSH_HEADER = 8,
    NOTICE_HEADER = 4,
    AUTH_OK_HEADER = 11,
    NAME_SIZE = 24,
    ACK_SIZE = 12,
};

enum err packet_get_hello(struct bytes body, struct hello_packet *out)
{
    if (body.size < HELLO_SIZE || big_get16(body.data) != PACKET_HELLO_MAGIC) {
        return ERR_CORRUPT;
    }
    *out = (struct hello_packet){.version_min = body.data[2],
                                 .version_max = body.data[3],
                                 .flags = (uint16_t)big_get16(body.data + 4)};
    return out->version_min <= out->version_max ? ERR_OK : ERR_CORRUPT;
}

void packet_put_hello(struct buffer *out, const struct hello_packet *hello)
{
    uint8_t *at = begin(out, PACKET_HELLO, HELLO_SIZE);

    at = big_put16(at, PACKET_HELLO_MAGIC);
    at = big_put8(at, hello->version_min);
    at = big_put8(at, hello->version_max);
    big_put16(at, hello->flags);
}

enum err packet_get_hello_ack(struct bytes body, struct hello_ack_packet *out)
{
    if (body.size < HELLO_ACK_SIZE) {
        return ERR_CORRUPT;
    }
    *out = (struct hello_ack_packet){.version = body.data[0],
                                     .flags = (uint16_t)big_get16(body.data + 2),
                                     .heartbeat_ms = big_get32(body.data + 4),
                                     .packet_size_max = big_get32(body.data + 8),
                                     .requests_max = big_get32(body.data + 12),
                                     .connection = big_get64(body.data + 16)};
    return ERR_OK;
}

void packet_put_hello_ack(struct buffer *out, const struct hello_ack_packet *ack)
{
    uint8_t *at = begin(out, PACKET_HELLO_ACK, HELLO_ACK_SIZE);

    at = big_put8(at, ack->version);
    at = big_put8(at, 0);
    at = big_put16(at, ack->flags);
    at = big_put32(at, ack->heartbeat_ms);
    at = big_put32(at, ack->packet_size_max);
    at = big_put32(at, ack->requests_max);
    big_put64(at, ack->connection);
}

/* What may stand before the id, in a body that is long enough. Returns where the id is. */
static size_t get_rare(struct bytes body, uint8_t flags, struct request_packet *out)
{
    size_t at = PACKET_REQUEST_HEADER;

    if ((flags & PACKET_DEADLINE) != 0) {
        out->deadline_ms = big_get32(body.data + at);
        at += sizeof out->deadline_ms;
    }
    if ((flags & PACKET_TRACE) != 0) {
        out->trace = body.data + at;
        at += TRACE_CONTEXT_SIZE;
    }
    return at;
}

static size_t rare_size(uint8_t flags)
{
    return ((flags & PACKET_DEADLINE) != 0 ? sizeof(uint32_t) : 0u) +
           ((flags & PACKET_TRACE) != 0 ? (size_t)TRACE_CONTEXT_SIZE : 0u);
}

enum err packet_get_request(struct bytes body, struct request_packet *out)
{
    if (body.size < PACKET_REQUEST_HEADER) {
        return ERR_CORRUPT;
    }
    const uint8_t flags = body.data[4];
    const size_t id_size = body.data[5];
    const bool rare = (flags & (PACKET_DEADLINE | PACKET_TRACE)) != 0;
    size_t id_at = PACKET_REQUEST_HEADER;

    *out = (struct request_packet){.request = big_get32(body.data), // for the refusal too
                                   .flags = flags,
                                   .kind = (uint16_t)big_get16(body.data + 6)};
    if ((flags & ~(unsigned)PACKET_FLAGS_KNOWN) != 0 || id_size == 0 ||
        body.size < id_at + id_size + (rare ? rare_size(flags) : 0)) {
        return ERR_INVALID;
    }
    if (rare) {
        id_at = get_rare(body, flags, out);
    }
    out->id = bytes_of(body.data + id_at, id_size);
    out->payload = rest_of(body, id_at + id_size);
    return ERR_OK;
}

void packet_put_request(struct buffer *out, enum packet_type type, const struct request_packet *r)
{
    const size_t deadline = (r->flags & PACKET_DEADLINE) != 0 ? 4 : 0;
    const size_t trace = (r->flags & PACKET_TRACE) != 0 ? TRACE_CONTEXT_SIZE : 0;
    const size_t more = deadline + trace;

    ASSERT(r->id.size >= 1 && r->id.size <= UINT8_MAX);
    uint8_t *at = begin(out, type, PACKET_REQUEST_HEADER + more + r->id.size + r->payload.size);

    at = big_put32(at, r->request);
    at = big_put8(at, r->flags);
    at = big_put8(at, (uint8_t)r->id.size);
    at = big_put16(at, r->kind);
    if (deadline > 0) {
        at = big_put32(at, r->deadline_ms);
    }
    if (trace > 0) {
        memcpy(at, r->trace, trace);
        at += trace;
    }
    put_run(put_run(at, r->id), r->payload);
}

enum err packet_get_unbind(struct bytes body, uint32_t *request)
{
    if (body.size < 4) {
        return ERR_CORRUPT;
    }
    *request = big_get32(body.data);
    return ERR_OK;
}

void packet_put_unbind(struct buffer *out, uint32_t request)
{
    big_put32(begin(out, PACKET_UNBIND, 4), request);
}

enum err packet_get_response(struct bytes body, struct response_packet *out)
{
    if (body.size < PACKET_RESPONSE_HEADER) {
        return ERR_CORRUPT;
    }
    *out = (struct response_packet){.request = big_get32(body.data),
                                    .status = body.data[4],
                                    .retry_ms = big_get32(body.data + 5),
                                    .payload = rest_of(body, PACKET_RESPONSE_HEADER)};
    return ERR_OK;
}

void packet_put_response(struct buffer *out, const struct response_packet *r)
{
    uint8_t *at = begin(out, PACKET_RESPONSE, PACKET_RESPONSE_HEADER + r->payload.size);

    at = big_put32(at, r->request);
    at = big_put8(at, r->status);
    at = big_put32(at, r->retry_ms);
    put_run(at, r->payload);
}

enum err packet_get_push(struct bytes body, struct push_packet *out)
{
    if (body.size < PUSH_HEADER) {
        return ERR_CORRUPT;
    }
    *out = (struct push_packet){.sequence = big_get64(body.data),
                                .payload = rest_of(body, PUSH_HEADER)};
    return ERR_OK;
}

void packet_put_push(struct buffer *out, const struct push_packet *p)
{
    uint8_t *at = begin(out, PACKET_PUSH, PUSH_HEADER + p->payload.size);

    put_run(big_put64(at, p->sequence), p->payload);
}

static struct session_name get_name(const uint8_t *at)
{
    return (struct session_name){
        .key = big_get64(at), .session = big_get64(at + 8), .version = big_get64(at + 16)};
}

static uint8_t *put_name(uint8_t *at, const struct session_name *name)
{
    return big_put64(big_put64(big_put64(at, name->key), name->session), name->version);
}

enum err packet_get_session(struct bytes body, struct session_packet *out)
{
    if (body.size < PACKET_SESSION_SIZE) {
        return ERR_CORRUPT;
    }
    *out = (struct session_packet){.name = get_name(body.data),
                                   .next = big_get64(body.data + NAME_SIZE),
                                   .keep_ms = big_get32(body.data + NAME_SIZE + 8)};
    return ERR_OK;
}

enum err packet_get_ack(struct bytes body, struct ack_packet *out)
{
    if (body.size < ACK_SIZE) {
        return ERR_CORRUPT;
    }
    *out = (struct ack_packet){.pushes = big_get64(body.data), .answers = big_get32(body.data + 8)};
    return ERR_OK;
}

enum err packet_get_return(struct bytes payload, struct return_packet *out)
{
    if (payload.size < NAME_SIZE) {
        return ERR_CORRUPT;
    }
    *out = (struct return_packet){.name = get_name(payload.data)};
    if (payload.size >= PACKET_RETURN_SIZE) { // older clients don't count
        out->attempt = (uint16_t)big_get16(payload.data + NAME_SIZE + ACK_SIZE);
    }
    return packet_get_ack(rest_of(payload, NAME_SIZE), &out->has);
}

void packet_put_session(uint8_t out[PACKET_SESSION_SIZE], const struct session_packet *s)
{
    big_put32(big_put64(put_name(out, &s->name), s->next), s->keep_ms);
}

void packet_put_begun(struct buffer *out, const struct session_packet *s)
{
    packet_put_session(begin(out, PACKET_BEGUN, PACKET_SESSION_SIZE), s);
}

static uint8_t *put_ack(uint8_t *at, const struct ack_packet *ack)
{
    return big_put32(big_put64(at, ack->pushes), ack->answers);
}

void packet_put_ack(struct buffer *out, const struct ack_packet *ack)
{
    (void)put_ack(begin(out, PACKET_ACK, ACK_SIZE), ack);
}

void packet_put_return(uint8_t out[PACKET_RETURN_SIZE], const struct return_packet *r)
{
    big_put16(put_ack(put_name(out, &r->name), &r->has), r->attempt);
}

void packet_put_auth(struct buffer *out, struct bytes token)
{
    put_run(begin(out, PACKET_AUTH, token.size), token);
}

enum err packet_get_auth_ok(struct bytes body, struct auth_ok_packet *out)
{
    if (body.size < AUTH_OK_HEADER || body.data[10] == 0 ||
        body.size - AUTH_OK_HEADER < body.data[10]) {
        return ERR_CORRUPT;
    }
    *out = (struct auth_ok_packet){.expires_s = big_get64(body.data),
                                   .kind = (uint16_t)big_get16(body.data + 8),
                                   .id = bytes_of(body.data + AUTH_OK_HEADER, body.data[10])};
    const struct bytes rest = rest_of(body, AUTH_OK_HEADER + out->id.size);
    if (rest.size < 2) {
        return ERR_OK; // it brings no token
    }
    const size_t size = big_get16(rest.data);
    if (size > rest.size - 2 || size > PACKET_TOKEN_MAX) {
        return ERR_CORRUPT;
    }
    out->token = bytes_of(rest.data + 2, size);
    return ERR_OK;
}

static void put_entity(struct buffer *out, enum packet_type type, const struct auth_ok_packet *ok)
{
    ASSERT(ok->id.size >= 1 && ok->id.size <= UINT8_MAX && ok->token.size <= PACKET_TOKEN_MAX);
    const size_t more = ok->token.size == 0 ? 0 : 2 + ok->token.size;
    uint8_t *at = begin(out, type, AUTH_OK_HEADER + ok->id.size + more);

    at = big_put64(at, ok->expires_s);
    at = big_put16(at, ok->kind);
    at = put_run(big_put8(at, (uint8_t)ok->id.size), ok->id);
    if (more > 0) {
        put_run(big_put16(at, (uint16_t)ok->token.size), ok->token);
    }
}

void packet_put_auth_ok(struct buffer *out, const struct auth_ok_packet *ok)
{
    put_entity(out, PACKET_AUTH_OK, ok);
}

void packet_put_rebound(struct buffer *out, const struct auth_ok_packet *who)
{
    put_entity(out, PACKET_REBOUND, who);
}

enum err packet_get_notice(struct bytes body, struct notice_packet *out)
{
    if (body.size < NOTICE_HEADER) {
        return ERR_CORRUPT;
    }
    *out = (struct notice_packet){.number = big_get32(body.data),
                                  .text = rest_of(body, NOTICE_HEADER)};
    return ERR_OK;
}

void packet_put_notice(struct buffer *out, enum packet_type type, const struct notice_packet *n)
{
    const struct bytes text = {n->text.data,
                               n->text.size < PACKET_TEXT_MAX ? n->text.size : PACKET_TEXT_MAX};

    put_run(big_put32(begin(out, type, NOTICE_HEADER + text.size), n->number), text);
}

void packet_put_ping(struct buffer *out, enum packet_type type, struct bytes body)
{
    put_run(begin(out, type, body.size), body);
}

const char *packet_status_name(uint8_t status)
{
    static const char *const names[] = {
        [STATUS_OK] = "OK",
        [STATUS_ACTOR_FAILED] = "ACTOR_FAILED",
        [STATUS_UNKNOWN] = "UNKNOWN",
        [STATUS_TIMEOUT] = "TIMEOUT",
        [STATUS_MOVING] = "MOVING",
        [STATUS_OVERLOADED] = "OVERLOADED",
        [STATUS_NO_OWNER] = "NO_OWNER",
        [STATUS_QUARANTINED] = "QUARANTINED",
        [STATUS_REJECTED] = "REJECTED",
        [STATUS_BAD_REQUEST] = "BAD_REQUEST",
        [STATUS_UNAUTHORIZED] = "UNAUTHORIZED",
        [STATUS_RATE_LIMITED] = "RATE_LIMITED",
    };

    return status < sizeof names / sizeof names[0] ? names[status] : "?";
}
