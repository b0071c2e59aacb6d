/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets: the binary protocol of clients, version 1. docs/protocol-client.md
 * has every byte; tests/gateway/packet_test.c fixes them.
 *
 *     u8 type, u24 size of the body, body                  big endian throughout
 *
 * Pure. Encoders append to a buffer. Decoders borrow from the input and refuse
 * what does not fit with ERR_CORRUPT.
 */
#ifndef GATEWAY_PROTOCOL_PACKET_H
#define GATEWAY_PROTOCOL_PACKET_H

#include "base/assert.h"
#include "base/big.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/traceparent.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PACKET_VERSION = 1,
    PACKET_HEADER = 4,
    PACKET_BODY_MAX = 0xFFFFFF,
    PACKET_PING_MAX = 64,        /* bytes that a ping may bring */
    PACKET_TOKEN_MAX = 520,      /* bytes of a token */
    PACKET_TEXT_MAX = 255,       /* of a kick, a goaway and an error */
    PACKET_OPTIONAL = 0x80,      /* a type with this bit that is not known is passed over */
    PACKET_REQUEST_HEADER = 8,   /* of the body, before deadline, id and payload */
    PACKET_RESPONSE_HEADER = 9,  /* of the body, before the payload */
    PACKET_HELLO_MAGIC = 0x5248, /* "RH" */
    PACKET_SESSION_SIZE = 36,    /* struct session_packet */
    PACKET_RETURN_SIZE = 38,     /* struct return_packet */
};

enum packet_type {
    PACKET_HELLO = 1,     /* client: first of all */
    PACKET_HELLO_ACK = 2, /* gateway: what is agreed */
    PACKET_PING = 3,      /* either: answer it */
    PACKET_PONG = 4,      /* either: with the same body */
    PACKET_KICK = 5,      /* gateway: code and text; it closes */
    PACKET_REQUEST = 6,   /* client: to an entity */
    PACKET_RESPONSE = 7,  /* gateway: the answer to a request, a bind or an unbind */
    PACKET_NOTIFY = 8,    /* client: a request without an answer */
    PACKET_PUSH = 9,      /* gateway: of the entity that the client is bound to */
    PACKET_GOAWAY = 10,   /* gateway: it stops; go to another one */
    PACKET_BIND = 11,     /* client: a request without payload: bind me to the entity */
    PACKET_UNBIND = 12,   /* client: u32 request */
    PACKET_AUTH = 13,     /* client: a token (token.h), or what the login actor takes */
    PACKET_RESUME = 14,   /* client: a request with a struct return_packet: here I am again */
    PACKET_AUTH_OK = 15,  /* gateway: who the client is now */
    PACKET_BEGUN = 16,    /* gateway: struct session_packet: the actor was begun afresh */
    PACKET_ACK = 17,      /* client: struct ack_packet */
    PACKET_REBOUND = 18,  /* gateway: struct auth_ok_packet: it goes on as this entity */
};

enum packet_status {
    STATUS_OK = 0,
    STATUS_ACTOR_FAILED = 1,  /* ran; the actor answered with an error: payload is its text */
    STATUS_UNKNOWN = 2,       /* was with a node that was lost: may have run, at most once */
    STATUS_TIMEOUT = 3,       /* no answer: may have run or may run still, at most once */
    STATUS_MOVING = 4,        /* found nobody to run it: did not run, never will */
    STATUS_OVERLOADED = 5,    /* no room for it: did not run, never will */
    STATUS_NO_OWNER = 6,      /* no node hosts such actors: did not run */
    STATUS_QUARANTINED = 7,   /* its actor killed processes: did not run */
    STATUS_REJECTED = 8,      /* a bind: the actor or its kind takes no session */
    STATUS_BAD_REQUEST = 9,   /* does not make sense: did not run */
    STATUS_UNAUTHORIZED = 10, /* not the entity of the token: did not run */
    STATUS_RATE_LIMITED = 11, /* more than a connection may ask: did not run */
};

/* Codes of a kick that are the gateway's. 1..3 are enum kick_code, 1000 and up the game's. */
enum packet_kick {
    PACKET_KICK_BAD_PACKET = 100, /* bytes that are no packet, or not in this place */
    PACKET_KICK_TOO_LARGE = 101,  /* over the limit of the hello-ack */
    PACKET_KICK_NO_HELLO = 102,   /* nothing came in time, or something else came first */
    PACKET_KICK_VERSION = 103,    /* no version in common */
    PACKET_KICK_SILENT = 104,     /* nothing came for two heartbeats */
    PACKET_KICK_NO_MEMORY = 105,  /* the gateway has no room for a packet of this size now */
    PACKET_KICK_NO_AUTH = 106,    /* no auth came in time, or something else first */
    /* The token: as enum token_verdict. */
    PACKET_KICK_TOKEN_MALFORMED = 107,
    PACKET_KICK_TOKEN_UNKNOWN_KEY = 108,
    PACKET_KICK_TOKEN_FORGED = 109,
    PACKET_KICK_TOKEN_FOREIGN = 110,
    PACKET_KICK_TOKEN_EXPIRED = 111,
    /* The login actor. */
    PACKET_KICK_LOGIN_REFUSED = 112, /* it said no */
    PACKET_KICK_LOGIN_BROKEN = 113,  /* what it answered makes no sense */
};
enum { PACKET_KICK_COUNT = PACKET_KICK_LOGIN_BROKEN - PACKET_KICK_BAD_PACKET + 1 };
/* "bad_packet": what it is counted as. */
const char *packet_kick_name(enum packet_kick code);

/* Of a hello-ack. */
enum packet_ack_flags {
    PACKET_ACK_AUTH = 1,  /* an auth is wanted, before anything but pings */
    PACKET_ACK_TRACE = 2, /* requests may have PACKET_TRACE, and are traced then */
};

enum packet_request_flags {
    PACKET_IDEMPOTENT = 1, /* may be run again after a cold take-over */
    PACKET_DEADLINE = 2,   /* a u32 of milliseconds stands before the id */
    PACKET_KEEP = 4,       /* of a bind: keep the session when its connection is lost */
    PACKET_AGAIN = 8,      /* it was sent before, by a former connection of the session */
    PACKET_TRACE = 16,     /* a trace context stands before the id, behind a deadline */
    PACKET_FLAGS_KNOWN =
        PACKET_IDEMPOTENT | PACKET_DEADLINE | PACKET_KEEP | PACKET_AGAIN | PACKET_TRACE,
};

struct packet {
    uint8_t type;      /* enum packet_type, or anything */
    struct bytes body; /* borrowed from the input */
};

enum packet_result {
    PACKET_WHOLE, /* the packet takes PACKET_HEADER + body.size bytes of the input */
    PACKET_MORE,  /* not whole yet */
    PACKET_LARGE, /* its body is over `size_max`: no more can be read */
};
/* The packet at the front of `in`. */
enum packet_result packet_next(struct bytes in, size_t size_max, struct packet *out);

struct hello_packet {
    uint8_t version_min;
    uint8_t version_max;
    uint16_t flags; /* what the client would like of what later versions offer; 0 */
};

struct hello_ack_packet {
    uint8_t version;
    uint16_t flags;           /* those that are granted */
    uint32_t heartbeat_ms;    /* send something at least so often; 0 = need not */
    uint32_t packet_size_max; /* bytes of the body of a packet to the gateway */
    uint32_t requests_max;    /* under way; what is more is not read yet */
    uint64_t connection;      /* name of it, for logs */
};

/* REQUEST, NOTIFY, BIND. */
struct request_packet {
    uint32_t request; /* the client's name of it, comes back */
    uint8_t flags;    /* enum packet_request_flags */
    uint16_t kind;
    uint32_t deadline_ms; /* with PACKET_DEADLINE; 0 = the gateway's */
    const uint8_t *trace; /* with PACKET_TRACE: TRACE_CONTEXT_SIZE bytes; else NULL */
    struct bytes id;      /* 1..255 bytes */
    struct bytes payload;
};

struct response_packet {
    uint32_t request;
    uint8_t status;    /* enum packet_status, or one of a later version */
    uint32_t retry_ms; /* when it may do better, 0 = now or never */
    struct bytes payload;
};

/* PUSH. */
struct push_packet {
    uint64_t sequence; /* from 1, of this time that the actor took the session */
    struct bytes payload;
};

/* AUTH_OK. */
struct auth_ok_packet {
    uint64_t expires_s; /* of what it showed, seconds since 1970 */
    uint16_t kind;
    struct bytes id;    /* 1..255 bytes */
    struct bytes token; /* to be shown from now on; at most PACKET_TOKEN_MAX bytes; empty = none */
};

/* Name and key with which a client resumes its session. Opaque to the client. */
struct session_name {
    uint64_t key;     /* of the bond */
    uint64_t session; /* its requests are numbered in */
    uint64_t version; /* of the ring when that began */
};

/* Payload of the response to a bind with PACKET_KEEP, or a resume; BEGUN. */
struct session_packet {
    struct session_name name;
    uint64_t next; /* sequence of the next push */
    uint32_t keep_ms;
};

/* ACK. */
struct ack_packet {
    uint64_t pushes;  /* it has all to this sequence */
    uint32_t answers; /* and the answers of all requests below this name */
};

/* Payload of a RESUME. */
struct return_packet {
    struct session_name name;
    struct ack_packet has;
    uint16_t attempt; /* counts the resumes that the client sends, of all its sessions; 0 = it does
                         not, or no more */
};

/* KICK: a code; GOAWAY: milliseconds to wait before coming again. */
struct notice_packet {
    uint32_t number;
    struct bytes text;
};

/* Decode the body of a packet. What follows the last field that is known is passed over, so that
 * later versions may say more. */
MUST_CHECK enum err packet_get_hello(struct bytes body, struct hello_packet *out);
MUST_CHECK enum err packet_get_hello_ack(struct bytes body, struct hello_ack_packet *out);
/* ERR_INVALID: it is to be refused, but `out->request` names it. */
MUST_CHECK enum err packet_get_request(struct bytes body, struct request_packet *out);
MUST_CHECK enum err packet_get_unbind(struct bytes body, uint32_t *request);
MUST_CHECK enum err packet_get_response(struct bytes body, struct response_packet *out);
MUST_CHECK enum err packet_get_push(struct bytes body, struct push_packet *out);
MUST_CHECK enum err packet_get_session(struct bytes body, struct session_packet *out);
MUST_CHECK enum err packet_get_return(struct bytes payload, struct return_packet *out);
MUST_CHECK enum err packet_get_ack(struct bytes body, struct ack_packet *out);
MUST_CHECK enum err packet_get_auth_ok(struct bytes body, struct auth_ok_packet *out);
MUST_CHECK enum err packet_get_notice(struct bytes body, struct notice_packet *out);

/* Append one. Bodies are at most PACKET_BODY_MAX bytes; texts are cut to PACKET_TEXT_MAX. */
void packet_put_hello(struct buffer *out, const struct hello_packet *hello);
void packet_put_hello_ack(struct buffer *out, const struct hello_ack_packet *ack);
void packet_put_request(struct buffer *out, enum packet_type type, const struct request_packet *r);
void packet_put_unbind(struct buffer *out, uint32_t request);
void packet_put_response(struct buffer *out, const struct response_packet *r);
/* Likewise, inline, of a request that went well. */
__attribute__((always_inline)) static inline void
packet_put_ok(struct buffer *out, uint32_t request, struct bytes payload)
{
    const size_t size = PACKET_RESPONSE_HEADER + payload.size;

    ASSERT(size <= PACKET_BODY_MAX);
    uint8_t *at = buffer_reserve(out, PACKET_HEADER + size);

    at = big_put32(at, (uint32_t)PACKET_RESPONSE << 24 | (uint32_t)size);
    at = big_put32(at, request);
    at = big_put8(at, STATUS_OK);
    at = big_put32(at, 0); // no time to wait
    bytes_copy_value(at, payload.data, payload.size);
    out->size += PACKET_HEADER + size;
}
void packet_put_push(struct buffer *out, const struct push_packet *p);
void packet_put_begun(struct buffer *out, const struct session_packet *s);
void packet_put_ack(struct buffer *out, const struct ack_packet *ack);
/* Payloads only. */
void packet_put_session(uint8_t out[PACKET_SESSION_SIZE], const struct session_packet *s);
void packet_put_return(uint8_t out[PACKET_RETURN_SIZE], const struct return_packet *r);
void packet_put_auth(struct buffer *out, struct bytes token);
void packet_put_rebound(struct buffer *out, const struct auth_ok_packet *who);
void packet_put_auth_ok(struct buffer *out, const struct auth_ok_packet *ok);
void packet_put_notice(struct buffer *out, enum packet_type type, const struct notice_packet *n);
void packet_put_ping(struct buffer *out, enum packet_type type, struct bytes body);

/* "OVERLOADED"; "?" if it is none. */
const char *packet_status_name(uint8_t status);

#endif
