/* SPDX-License-Identifier: Apache-2.0
 *
 * What gateways and actors tell one another of sessions: that a client is bound
 * to an actor, and what the actor pushes to it (docs/decisions/012-sessions.md).
 *
 * A session note is the body of a request with REQUEST_SESSION: it goes the way
 * of every request, so it is held, forwarded, run once and in order like one.
 * A push record travels the other way, straight from the owner to the gateway, in
 * a frame of FRAME_PUSH. Little endian. Golden vectors in tests/wire/session_wire_test.c.
 */
#ifndef WIRE_SESSION_H
#define WIRE_SESSION_H

#include "base/bytes.h"
#include "base/err.h"
#include "wire/cursor.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PUSH_SIZE_MAX = 256 * 1024,        /* bytes of one push */
    PUSH_TEXT_MAX = 255,               /* of a kick */
    NOTE_SEND_MAX = 1024 * 1024 - 512, /* of a send: with its sender and number it fits a body */
    BOND_SIZE = 48,                    /* as it travels with its actor … */
    BOND_KEPT_SIZE = 72,               /* … at least, if it is kept without its connection */
    REBIND_ID_MAX = 255,
    REBIND_SIZE_MAX = 2 + REBIND_ID_MAX,
    BOND_UNACKED_MAX = 64 * 1024, /* bytes of the pushes that go along */
    BONDS_MAX = 16                /* of one actor */
};

/* Stamp that orders all bonds that an actor ever had: the fence under which one was made, then a
 * count. */
struct bond_stamp {
    uint64_t fence;
    uint64_t count;
};

/* A round is the attempt of its connection's client to return (docs/decisions/055), above what
 * counts the notes of that connection: 0 = its client does not count them. */
enum { ROUND_ATTEMPT_AT = 16 };

static inline uint32_t round_attempt(uint32_t round)
{
    return round >> ROUND_ATTEMPT_AT;
}

static inline bool bond_stamp_before(struct bond_stamp a, struct bond_stamp b)
{
    return a.fence < b.fence || (a.fence == b.fence && a.count < b.count);
}

/* The entity as which a client is to go on. Its bytes: u16 kind, id. */
struct rebind {
    uint16_t kind;
    uint8_t id_size; /* 1..REBIND_ID_MAX; 0 = nobody else */
    uint8_t id[REBIND_ID_MAX];
};
void rebind_put(struct buffer *out, const struct rebind *r);
MUST_CHECK enum err rebind_get(struct bytes in, struct rebind *r);

/* A client of a gateway, bound to an actor. */
struct bond {
    uint64_t gateway;    /* random id of the gateway process */
    uint64_t connection; /* of it, never used again there */
    uint32_t round;      /* counts the notes BIND and RESUME of the connection, and its client's
                            attempts: round_attempt(); pushes are numbered within one */
    bool kicked;         /* it was told to go */
    uint64_t number;     /* of the last push */
    struct bond_stamp stamp;
    /* Of a bond that is kept for a while without its connection (019); 0 = it is not. */
    uint64_t key;         /* what the client comes back with; another one when the actor is lost */
    uint64_t session;     /* its requests are numbered in; 0 = not kept */
    uint32_t epoch;       /* of that: counts the client's connections */
    uint32_t left_ms;     /* without its connection, it is kept so long; with it: BOND_THERE */
    struct rebind rebind; /* it was told to go on so; but its gateway may not have heard of it */
    struct bytes unacked_pushes; /* pushes that it may have to be sent again, to number `number`:
                            each u32 size, payload. Borrowed; of what travels only */
    bool followed; /* of what travels: another one of the same actor stands behind it */
};
#define BOND_THERE UINT32_MAX

/* Append it as BOND_SIZE bytes: u64 gateway, u64 connection, u32 round, u32 flags (1 = kicked, 2 =
 * kept, 4 = rebound), u64 number, u64 fence, u64 count. Then, of a kept one: u64 key, u64 session,
 * u32 epoch, u32 left_ms. Of a rebound one: u8 size of the id, struct rebind. Of a kept one: its
 * unacked_pushes, behind a u32 of its size if another bond follows (flag 8). No bond is kicked and
 * has time left: where an actor moves that says whose place was given away, by `session`. */
void bond_put(struct buffer *out, const struct bond *b);
/* Take the next one off; ERR_CORRUPT: it makes no sense. */
MUST_CHECK enum err bond_take(struct reader *in, struct bond *b);
/* ERR_CORRUPT: not exactly one. */
MUST_CHECK enum err bond_get(struct bytes in, struct bond *b);
/* Take the next of `unacked_pushes` off; false = no more, or it makes no sense: then `in->bad`. */
bool unacked_pushes_next(struct reader *in, struct bytes *payload);

/* ---- notes ---- */

enum note_type {
    NOTE_BIND = 1,    /* a client wants to be bound */
    NOTE_RESUME = 2,  /* it was bound, and its actor may have been lost since */
    NOTE_LOST = 3,    /* it has gone */
    NOTE_PUSH = 4,    /* of an actor: push this to whoever is bound */
    NOTE_KEEP = 5,    /* BIND, and keep it when my connection is lost */
    NOTE_RETURN = 6,  /* it was bound so by a connection that is lost */
    NOTE_RENEW = 7,   /* RESUME of one that is kept */
    NOTE_ACK = 8,     /* its client has what it was pushed */
    NOTE_KICK = 9,    /* an operator ends the session of whoever is bound */
    NOTE_TRACE = 10,  /* an operator follows it on its way: wire/trace.h */
    NOTE_VALUES = 11, /* an operator asks for values of a durable actor: wire/values_ask.h */
    NOTE_SEND = 12,   /* of an actor's outbox (node/durable/outbox.h): again until it is taken */
    NOTE_TYPE_LAST = NOTE_SEND,
};

/* Why a client has gone; as in enum rh_lost_why. */
enum note_lost {
    NOTE_LOST_CLOSED = 1,
    NOTE_LOST_KICKED = 2,
    NOTE_LOST_SLOW = 3,
    NOTE_LOST_LEFT = 4,    /* of one that is kept: it said so itself, and will not return */
    NOTE_LOST_REBOUND = 5, /* it goes on as another entity, as its actor has said */
};

struct note {
    uint8_t type; /* enum note_type */
    uint8_t why;  /* LOST: enum note_lost */
    uint64_t gateway;
    uint64_t connection;
    uint32_t round;          /* BIND, RESUME, KEEP, RETURN, RENEW, ACK */
    struct bond_stamp stamp; /* RESUME, RENEW */
    struct bytes payload;    /* PUSH: at most PUSH_SIZE_MAX; KICK: the text, at most PUSH_TEXT_MAX;
                                TRACE: hops, at most TRACE_SIZE_MAX; SEND: at most NOTE_SEND_MAX;
                                VALUES: at most VALUES_ASK_MAX */
    uint64_t number;         /* SEND: its sender's number of it, not 0 */
    uint32_t code;           /* KICK */
    uint64_t key;            /* KEEP, RETURN: of the bond; RENEW: if it has to be made anew */
    uint64_t session;        /* the same: of the client's requests */
    uint32_t epoch;          /* RENEW: of that */
    uint32_t got_round;      /* RENEW: in which it got pushes */
    uint64_t got;            /* RETURN, RENEW, ACK: it has all pushes to this number */
};

/* Append one: u8 type; BIND: u64 gateway, u64 connection, u32 round; RESUME: the same, u64 fence,
 * u64 count; LOST: u64 gateway, u64 connection, u8 why; PUSH: the payload. KEEP: as BIND, u64 key,
 * u64 session; RETURN: as KEEP, u64 got; RENEW: as RESUME, u64 key, u64 session, u32 epoch,
 * u32 got_round, u64 got; ACK: as BIND, u64 got. KICK: u32 code, the text. TRACE: its hops. SEND:
 * u64 number, the payload. VALUES: its question. */
void note_put(struct buffer *out, const struct note *n);
MUST_CHECK enum err note_get(struct bytes in, struct note *n);

/* Body of the answer to KICK: one byte, 1 = somebody was bound and is told to go, 0 = nobody was.
 */

/* Body of the answer to SEND: one byte, 1 = it is taken; none: it is not, and is to come again. */

/* How BIND and RESUME end. */
enum bound_result {
    BOUND_NEW = 0,     /* bound; pushes of this round begin with number 1 */
    BOUND_KEPT = 1,    /* it is bound still, with the round that is told, and its numbers go on */
    BOUND_OLD = 2,     /* another client was bound since */
    BOUND_REFUSED = 3, /* the actor does not want it, or has kicked it */
    BOUND_NEVER = 4,   /* actors of this kind take no sessions */
    BOUND_GONE = 5,    /* RETURN: there is nothing to return to */
    BOUND_TAKEN = 6,   /* another client is bound, and stays: the kind wants it so */
    BOUND_RESULT_LAST = BOUND_TAKEN,
};

struct bound {
    uint8_t result; /* enum bound_result */
    uint32_t round;
    struct bond_stamp stamp;
    /* Of one that is kept. */
    uint64_t key;     /* 0 = it is not */
    uint64_t next;    /* number of the push that it gets next */
    uint32_t epoch;   /* of its requests */
    uint32_t keep_ms; /* so long without a connection */
};

/* Body of the answer, 21 bytes: u8 result, u32 round, u64 fence, u64 count. 45 of one that is kept:
 * u64 key, u64 next, u32 epoch, u32 keep_ms. */
void bound_put(struct buffer *out, const struct bound *b);
MUST_CHECK enum err bound_get(struct bytes in, struct bound *b);

/* ---- pushes ---- */

enum push_type {
    PUSH_DATA = 0,
    PUSH_KICK = 1,  /* last of its round: code, and payload is the text */
    PUSH_AGAIN = 2, /* not numbered: the actor was begun afresh, its bond is lost: RESUME */
    PUSH_REBIND =
        3, /* last of its round: payload is a struct rebind. Comes again with its number */
    PUSH_TYPE_LAST = PUSH_REBIND,
};

/* Codes of kicks that are not the game's own. As in enum rh_kick. */
enum kick_code {
    KICK_REPLACED = 1, /* another connection was bound to the actor */
    KICK_REFUSED = 2,  /* the actor takes the session no more */
    KICK_ENDED = 3,    /* the actor ended itself */
};

struct push_record {
    uint64_t gateway;
    uint64_t connection;
    uint64_t number; /* from 1, of the round; 0 of AGAIN */
    uint32_t round;
    uint32_t code; /* KICK */
    uint8_t type;  /* enum push_type */
    struct bytes payload;
};

/* 37 bytes, then the payload: u64 gateway, u64 connection, u64 number, u32 round, u32 code,
 * u8 type, u32 size. */
enum { PUSH_HEADER_SIZE = 37 };
void push_put(struct buffer *out, const struct push_record *p);
/* Take the next one off `in`; ERR_CORRUPT as of wire/record.h. */
MUST_CHECK enum err push_get(struct reader *in, struct push_record *p);

#endif
