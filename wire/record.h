/* SPDX-License-Identifier: Apache-2.0
 *
 * The data plane's records: fixed little-endian headers, then the bytes they
 * announce. A frame of FRAME_REQUEST, FRAME_ANSWER, FRAME_STATE or
 * FRAME_STATE_ACK holds `count` of them, back to back. Golden vectors in
 * tests/wire/record_test.c fix every byte. docs/protocol.md has the tables.
 *
 * Encoders append to a buffer; decoders borrow from the input and refuse
 * anything that does not fit with ERR_CORRUPT.
 */
#ifndef WIRE_RECORD_H
#define WIRE_RECORD_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/traceparent.h"
#include "wire/cursor.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    RECORD_ID_MAX = 255,           /* bytes of an entity id, at least 1 */
    RECORD_BODY_MAX = 1024 * 1024, /* payload of a request, its caller not counted, or an answer */
    RECORD_CHUNK_MAX = 64 * 1024,  /* payload of one state record */
    RECORD_CHAIN_MAX = 8,          /* entities of a call chain */
    RECORD_HOPS_MAX = 8,
    RECORD_AGAIN = 0x80,                   /* a bit beside the hops: `again` */
    RECORD_TRACED = 0x40,                  /* likewise: REQUEST_TRACED */
    RECORD_CALLER_MAX = 3 + RECORD_ID_MAX, /* before the body of a call: who asks */
    RECORD_WITH_BODY_MAX = RECORD_CALLER_MAX + TRACE_CONTEXT_SIZE, /* beside a payload, in a body */
    REQUEST_TTL_MAX_MS = 60000, /* longest deadline that a gateway may give */
};

enum request_flags {
    REQUEST_COMMAND = 1,    /* body is an argument list (wire/args.h), not an opaque payload */
    REQUEST_NO_REPLY = 2,   /* TELL: the client was answered already */
    REQUEST_IDEMPOTENT = 4, /* may be run again after a cold take-over */
    REQUEST_HELD = 8,       /* was held at a source: forwarded even past the linger time */
    REQUEST_CALL = 16,      /* of another actor: its body starts with a caller (caller_get()), and
                               gateway is the incarnation of the node that hosts it */
    REQUEST_SESSION = 32, /* body is a note of wire/session.h, for the runtime and not the actor */
    REQUEST_AWAKE = 64,   /* only for an actor that is awake; else refused: NO_KIND */
    REQUEST_TRACED = 128, /* its body ends with a trace context (base/traceparent.h) that is
                             sampled. Not with SESSION */
};

/* In the flags of a record in a frame, where TRACED has a bit of its own: its body is that of the
 * record before it, and is not written again (request_put_same()). Not with TRACED. */
enum { REQUEST_SAME = 128 };

/* A request's name, which it keeps wherever it is asked (decision 090): who asks, and that one's
 * number of it. Numbers of one asker grow. A record's is its session and seq. */
struct request_name {
    uint64_t asker; /* never 0 */
    uint64_t number;
};

/* Whether the request of a name may have run before, where that counts: it may not run twice. */
enum asked {
    ASKED_FIRST,
    ASKED_AGAIN, /* elsewhere: what is saved of it is its answer, else it runs */
    ASKED_LATE,  /* a later one of its asker has begun: what is saved is its answer, else nobody
                    knows, and it does not run (decision 118) */
};

/* Specification §2. A session is one client connection; sequence numbers grow within a session.
 * `prev` links the requests of one (session, entity): the owner runs seq when its predecessor
 * ran (last >= prev) or was given up (prev < base). Equal to the model's seq == max(last+1, base)
 * with seq renumbered per entity (docs/decisions/). */
struct request_record {
    uint64_t gateway; /* who answers the client: random id of the gateway process */
    uint64_t session;
    uint32_t session_epoch; /* fences older copies after a client's reconnect */
    uint64_t seq;           /* of this session, grows; from 1 */
    uint64_t prev;    /* seq of the request before it to the same entity, 0 = none unfinished; < seq
                       */
    uint64_t base;    /* lowest unfinished seq of (session, entity) */
    uint64_t first;   /* gateway's ring version at the first send */
    uint64_t version; /* sender's ring version */
    uint32_t ttl_ms;  /* what is left; counted down at every queue */
    uint16_t kind;
    uint8_t hops;  /* forwards so far */
    uint8_t copy;  /* 1 = first copy */
    uint8_t flags; /* enum request_flags */
    uint8_t chain_count;
    bool again;                       /* it may have run at a node that is dead: behind COLD */
    uint64_t chain[RECORD_CHAIN_MAX]; /* positions of the entities whose calls led here */
    struct bytes id;
    struct bytes body;
};

/* Why there is none. */
enum no_kind {
    NO_KIND_UNKNOWN = 0,     /* nobody hosts that kind, or there is no such id of it */
    NO_KIND_QUARANTINED = 1, /* it killed its process again and again */
    NO_KIND_DEADLOCK = 2,    /* of a call: it waits for its caller, which waits for the answer */
};

enum answer_code {
    ANSWER_OK = 0,
    ANSWER_APP_ERROR = 1, /* the actor says no: body is the text */
    ANSWER_MOVED = 2,     /* not run; aux = newest ring version known here */
    ANSWER_BUSY = 3,      /* not run; aux = milliseconds to wait */
    ANSWER_COLD = 4,      /* not run; aux = the cold stamp */
    ANSWER_EXPIRED = 5,   /* not run, and never will be: ttl spent in a queue */
    ANSWER_NO_KIND = 6,   /* not run: no such actor here; aux = enum no_kind */
    ANSWER_LOST = 7,      /* a copy of it ran; what that answered is not kept any more */
    ANSWER_OVERLOAD = 8,  /* not run: no room for it; aux = milliseconds to wait */
    ANSWER_CODE_LAST = ANSWER_OVERLOAD,
};

struct answer_record {
    uint64_t gateway;
    uint64_t session;
    uint64_t seq;
    uint64_t fence;    /* generation of the vnode that ran it; 0 = not run */
    uint64_t version;  /* answerer's ring version */
    uint64_t aux;      /* see enum answer_code */
    uint8_t code;      /* enum answer_code */
    uint8_t copy;      /* of the request */
    struct bytes body; /* OK: a value (wire/args.h) for REQUEST_COMMAND, else opaque */
};

/* One chunk of one actor's image (node/books/image.h) on its way to the new owner. Records of one
 * (txn, source) are numbered from 0; the receiver takes only the next one (go-back-N). The last
 * record has STATE_END and no chunk: index then says how many there were. */
enum state_flags { STATE_END = 1 };

struct state_record {
    uint64_t txn;
    uint64_t source; /* incarnation of the sender */
    uint32_t index;
    uint8_t flags;
    uint16_t kind;
    uint32_t total;  /* size of the whole image */
    uint32_t offset; /* of this chunk in it */
    uint32_t crc;    /* CRC-32C of the chunk */
    struct bytes id;
    struct bytes chunk; /* <= RECORD_CHUNK_MAX */
};

/* Why the transaction cannot go on. */
enum state_refusal {
    STATE_TAKEN = 0,
    STATE_NO_ROOM = 1,
    STATE_UNREAD = 2, /* a state has a version that its kind does not read there. Only who sends
                       * states with versions is told, so whoever is, knows it */
};

struct state_ack_record {
    uint64_t txn;
    uint64_t source; /* incarnation of the sender of the state */
    uint32_t next;   /* first index not yet taken */
    uint8_t refused; /* enum state_refusal */
};

/* An actor that asks another one. */
struct caller {
    uint16_t kind;
    struct bytes id; /* 1..RECORD_ID_MAX bytes */
};

/* Bytes that the caller takes at the front of a REQUEST_CALL's body. */
size_t caller_size(const struct caller *c);
void caller_put(struct writer *out, const struct caller *c);
/* Take it off the front of such a body; borrows from it. ERR_CORRUPT: there is none. */
MUST_CHECK enum err caller_get(struct bytes *body, struct caller *c);
/* True if a request with these flags may have that body. The body of a call says who asks, that of
 * a traced one ends with its context, and the limit applies to its payload. */
bool request_body_is_sound(uint8_t flags, struct bytes body);

/* Bytes that one of these takes when encoded. */
enum { REQUEST_HEADER_SIZE = 75 };
static inline size_t request_size(const struct request_record *r)
{
    return REQUEST_HEADER_SIZE + r->chain_count * sizeof r->chain[0] + r->id.size + r->body.size;
}
size_t answer_size(const struct answer_record *a);

/* Put what stands before a record's chain, id and body, where REQUEST_HEADER_SIZE bytes are
 * reserved: inline, for who makes a record to write it. Not of one that is TRACED. Returns
 * what is behind it. */
__attribute__((always_inline)) static inline uint8_t *request_store(uint8_t *at,
                                                                    const struct request_record *r)
{
    at = store_u64(at, r->gateway);
    at = store_u64(at, r->session);
    at = store_u32(at, r->session_epoch);
    at = store_u64(at, r->seq);
    at = store_u64(at, r->prev);
    at = store_u64(at, r->base);
    at = store_u64(at, r->first);
    at = store_u64(at, r->version);
    at = store_u32(at, r->ttl_ms);
    at = store_u16(at, r->kind);
    at = store_u8(at, (uint8_t)(r->hops | (r->again ? RECORD_AGAIN : 0)));
    at = store_u8(at, r->copy);
    at = store_u8(at, r->flags);
    at = store_u8(at, r->chain_count);
    at = store_u8(at, (uint8_t)r->id.size);
    return store_u32(at, (uint32_t)r->body.size);
}

/* Append one. Sizes, flags and codes must be within the limits above. */
void request_put(struct buffer *out, const struct request_record *r);
/* Like request_put(), for a record that may be invalid: for tests of its readers. */
void request_put_any(struct buffer *out, const struct request_record *r);
/* Append it without its body, with REQUEST_SAME: where it follows a record with the same body. */
void request_put_same(struct buffer *out, const struct request_record *r);
/* Append what request_put_same() wrote with its body, as request_put() would have. */
void request_put_whole(struct buffer *out, struct bytes same, struct bytes body);
void answer_put(struct buffer *out, const struct answer_record *a);
void state_put(struct buffer *out, const struct state_record *s);
void state_ack_put(struct buffer *out, const struct state_ack_record *a);

/* Take the next record off `in`; sticky-bad on anything wrong, then the record is unusable.
 * Returns ERR_CORRUPT then. */
MUST_CHECK enum err request_get(struct reader *in, struct request_record *r);
/* Like request_get(), behind a record with body `before`: the record may have REQUEST_SAME. Then
 * `r` borrows that body, and has the flag no more. `before.data` NULL: there is none. */
MUST_CHECK enum err request_get_behind(struct reader *in, struct bytes before,
                                       struct request_record *r);
MUST_CHECK enum err answer_get(struct reader *in, struct answer_record *a);
MUST_CHECK enum err state_get(struct reader *in, struct state_record *s);
MUST_CHECK enum err state_ack_get(struct reader *in, struct state_ack_record *a);

#endif
