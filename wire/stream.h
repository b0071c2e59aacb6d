/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of streams (decision 070): fixed little-endian headers, then the
 * bytes they announce. Golden vectors in tests/wire/stream_wire_test.c fix every
 * byte; docs/protocol.md has the tables.
 *
 * Encoders write where room is; decoders borrow from the input and refuse with
 * ERR_CORRUPT what does not fit.
 */
#ifndef WIRE_STREAM_H
#define WIRE_STREAM_H

#include "base/assert.h"
#include "wire/args.h"
#include "wire/frame.h"
#include "wire/record.h"

/* Types of their frames. */
enum stream_frame {
    STREAM_REQUEST = FRAME_STREAM_REQUEST,
    STREAM_ANSWER = FRAME_STREAM_ANSWER,
    STREAM_BEGIN = FRAME_STREAM_BEGIN,
    STREAM_JOIN = FRAME_STREAM_JOIN,
    STREAM_JOINED = FRAME_STREAM_JOINED,
    STREAM_GONE = FRAME_STREAM_GONE,
    STREAM_ACK = FRAME_STREAM_ACK,
};

enum {
    STREAM_HEADER_SIZE = FRAME_HEADER_SIZE + 40, /* of each frame, with that of all frames */
    STREAM_REQUEST_SIZE = 39,                    /* before what is of changing size */
    STREAM_OWNED_SIZE = 28,
    STREAM_NAME_SIZE = 16,
    STREAM_BODY_AT = 20, /* and so on: where sizes and bits are */
    STREAM_FLAGS_AT = 26,
    STREAM_BITS_AT = 27, /* enum stream_bits */
    STREAM_HOPS_AT = 28,
    STREAM_ID_AT = 30,
    STREAM_HASH_AT = 31,
    STREAM_ANSWER_SIZE = 29,
    STREAM_HOPS_MAX = 1, /* forwards of a request (stream/forward.h) */
    STREAM_REQUEST_FLAGS = REQUEST_COMMAND | REQUEST_NO_REPLY | REQUEST_IDEMPOTENT | REQUEST_CALL |
                           REQUEST_SESSION | REQUEST_AWAKE | REQUEST_TRACED,
};

/* What all frames have behind the header of wire/frame.h. */
struct stream_head {
    uint64_t from; /* asker's id, or server's incarnation */
    uint64_t to;
    uint64_t first;   /* number of the first record, from 1; or an epoch, from 1; of ACK 0 */
    uint64_t ack;     /* the sender has all records of the other end up to this number */
    uint64_t version; /* sender's ring version when it began the frame */
};

/* Of a session that its client owns (hole 44): as in struct request_record. */
struct stream_owned {
    uint64_t seq; /* 0 = its client does not own it, and the others say nothing */
    uint64_t base;
    uint64_t first;
    uint32_t epoch;
};

/* Bits behind the flags of a request. */
enum stream_bits {
    STREAM_OWNED = 1,
    STREAM_NAMED = 2, /* it has another's name */
    STREAM_AGAIN = 4, /* it may have run at a node that is dead */
};

struct stream_request {
    uint64_t rid; /* asker's name of it, never 0; comes back in its answer */
    uint64_t session;
    uint64_t hash;   /* asker's ring_position() of the id: a hint, to be checked; 0 = not told */
    uint32_t ttl_ms; /* what is left; counted down at every queue */
    uint16_t kind;
    uint8_t flags; /* enum request_flags; not HELD */
    uint8_t hops;  /* forwards so far, up to STREAM_HOPS_MAX */
    bool plain;    /* as decoded: no call, no trace, no chain, no hops, and none of stream_bits */
    bool again;    /* STREAM_AGAIN */
    struct bytes chain; /* u64 positions, up to RECORD_CHAIN_MAX, of whose calls led here */
    struct stream_owned owned;
    struct request_name name; /* asker 0 = that of its stream, and its rid */
    struct bytes id;
    struct bytes body;
    const struct args_command *command; /* of one to be encoded: what `body` has the size of */
};

/* Codes of an answer: those of enum answer_code but COLD and LOST for sessions that nobody owns,
 * and these. */
enum stream_code {
    STREAM_CODE_BEHIND = 9,   /* not run: one before it in its lane was refused */
    STREAM_CODE_UNKNOWN = 10, /* it was forwarded to a node that is dead */
    STREAM_CODE_LEFT = 11,    /* rid 0, the last entry of a log: nothing behind aux was taken */
    STREAM_CODE_LAST = STREAM_CODE_LEFT,
};

struct stream_answer {
    uint64_t rid;
    uint64_t token; /* generation of the vnode that ran it; 0 = not run */
    uint64_t aux;   /* by code */
    uint8_t code;   /* enum answer_code, enum stream_code */
    struct bytes body;
};

/* The answer says that the request did not run and, unless it is sent again, never will (R7). */
static inline bool stream_code_refuses(uint8_t code)
{
    return code != ANSWER_OK && code != ANSWER_APP_ERROR && code != ANSWER_LOST &&
           code != STREAM_CODE_UNKNOWN && code != STREAM_CODE_LEFT;
}

/* Write the header of a frame that has `size` bytes in all, where STREAM_HEADER_SIZE bytes are. */
static inline void stream_head_store(uint8_t *at, enum stream_frame type,
                                     const struct stream_head *h)
{
    at = store_u32(at, STREAM_HEADER_SIZE);
    at = store_u8(at, (uint8_t)type);
    at = store_u8(at, 0);
    at = store_u16(at, 1);
    at = store_u64(at, h->from);
    at = store_u64(at, h->to);
    at = store_u64(at, h->first);
    at = store_u64(at, h->ack);
    (void)store_u64(at, h->version);
}
/* Write size and count (1..FRAME_RECORDS_MAX) of a frame's records into its header at `at`. */
static inline void stream_frame_end(uint8_t *at, size_t size, uint64_t count)
{
    ASSERT(count >= 1 && count <= FRAME_RECORDS_MAX && size <= FRAME_SIZE_MAX);
    (void)store_u32(at, (uint32_t)size);
    (void)store_u16(at + 6, (uint16_t)count);
}

/* Bytes that one takes when encoded. */
static inline size_t stream_request_size(const struct stream_request *r)
{
    size_t size = STREAM_REQUEST_SIZE + r->chain.size + r->id.size + r->body.size;

    if (__builtin_expect((r->owned.seq | r->name.asker) != 0, false)) {
        size += (r->owned.seq != 0 ? STREAM_OWNED_SIZE : 0u) +
                (r->name.asker != 0 ? STREAM_NAME_SIZE : 0u);
    }
    return size;
}
static inline size_t stream_answer_size(const struct stream_answer *a)
{
    return STREAM_ANSWER_SIZE + a->body.size;
}

/* Write one where there is room for it. Sizes, flags and codes must be within the limits above. */
void stream_request_store(uint8_t *at, const struct stream_request *r);
/* A request without chain, hops and a client's numbers: what most have. */
struct stream_plain {
    uint64_t session;
    uint64_t hash;
    uint32_t ttl_ms;
    uint16_t kind;
    uint8_t flags;
    struct bytes id;
    struct bytes body;
    const struct args_command *command; /* as in struct stream_request */
};
static inline size_t stream_plain_size(const struct stream_plain *r)
{
    return STREAM_REQUEST_SIZE + r->id.size + r->body.size;
}
/* Write one as stream_request_store() does. */
__attribute__((always_inline)) static inline void stream_plain_store(uint8_t *at, uint64_t rid,
                                                                     const struct stream_plain *r)
{
    ASSERT(rid != 0 && r->id.size - 1 < RECORD_ID_MAX &&
           r->body.size <= RECORD_BODY_MAX + TRACE_CONTEXT_SIZE);
    ASSERT((r->flags & ~STREAM_REQUEST_FLAGS) == 0);
    at = store_u64(at, rid);
    at = store_u64(at, r->session);
    at = store_u32(at, r->ttl_ms);
    at = store_u32(at, (uint32_t)r->body.size);
    at = store_u16(at, r->kind);
    at = store_u32(at, r->flags); // and three that are 0: of a client's numbers, hops, chain
    at = store_u8(at, (uint8_t)r->id.size);
    at = store_u64(at, r->hash);
    bytes_copy(at, r->id.data, r->id.size);
    if (r->command != NULL) {
        args_command_put(at + r->id.size, r->command);
    } else {
        bytes_copy_value(at + r->id.size, r->body.data, r->body.size);
    }
}
/* For a record that is sent again: another name, and what is left of its time. */
static inline void stream_request_rename(uint8_t *at, uint64_t rid, uint32_t ttl_ms)
{
    (void)store_u32(store_u64(at, rid) + 8, ttl_ms);
}
/* Note in a record that it may have run, for whoever it is sent to from now on. */
static inline void stream_request_again(uint8_t *at)
{
    at[STREAM_BITS_AT] |= STREAM_AGAIN;
}
/* Write all but the body of one, whose size it says; returns the place of that. */
static inline uint8_t *stream_answer_head_store(uint8_t *at, const struct stream_answer *a)
{
    at = store_u64(at, a->rid);
    at = store_u64(at, a->token);
    at = store_u64(at, a->aux);
    at = store_u8(at, a->code);
    return store_u32(at, (uint32_t)a->body.size);
}
__attribute__((always_inline)) static inline void stream_answer_store(uint8_t *at,
                                                                      const struct stream_answer *a)
{
    bytes_copy(stream_answer_head_store(at, a), a->body.data, a->body.size);
}

/* Read what a frame of such a type has before its records; `records` then reads `f->count` of them,
 * which borrow from the frame, and must end with it. ERR_CORRUPT: it is none. */
MUST_CHECK enum err stream_head_get(const struct frame *f, struct stream_head *h,
                                    struct reader *records);
/* The rest of stream_request_get(), of one that has what few have: its fixed fields were read. */
MUST_CHECK enum err stream_request_get_other(struct reader *in, struct stream_request *r);
/* Take the next record off `in`. ERR_CORRUPT: it is unusable, and the reader is bad. */
MUST_CHECK enum err stream_answer_get(struct reader *in, struct stream_answer *a);
MUST_CHECK __attribute__((always_inline)) static inline enum err
stream_request_get(struct reader *in, struct stream_request *r)
{
    const uint8_t *at = in->at;

    if (in->bad || in->left < STREAM_REQUEST_SIZE) {
        in->bad = true;
        return ERR_CORRUPT;
    }
    r->rid = load_u64(at);
    r->session = load_u64(at + 8);
    r->hash = load_u64(at + STREAM_HASH_AT);
    r->ttl_ms = load_u32(at + 16);
    r->kind = load_u16(at + 24);
    r->flags = at[STREAM_FLAGS_AT];
    r->hops = at[STREAM_HOPS_AT];
    // Few are traced, another node's, a chain's, asked again or of a session that its client owns:
    // one look sees that.
    const uint32_t rare = load_u32(at + STREAM_FLAGS_AT) &
                          ~(uint32_t)(STREAM_REQUEST_FLAGS & ~(REQUEST_CALL | REQUEST_TRACED));
    const size_t body_size = load_u32(at + STREAM_BODY_AT);
    const size_t id_size = at[STREAM_ID_AT];
    const size_t size = STREAM_REQUEST_SIZE + id_size + body_size;
    r->plain = rare == 0;
    if (!r->plain || body_size > RECORD_BODY_MAX) {
        return stream_request_get_other(in, r);
    }
    if (r->rid == 0 || id_size == 0 || in->left < size) {
        in->bad = true;
        return ERR_CORRUPT;
    }
    r->chain = (struct bytes){0};
    r->owned.seq = 0;
    r->name.asker = 0;
    r->again = false;
    r->command = NULL;
    r->id = bytes_of(at + STREAM_REQUEST_SIZE, id_size);
    r->body = bytes_of(at + STREAM_REQUEST_SIZE + id_size, body_size);
    in->at = at + size;
    in->left -= size;
    return ERR_OK;
}
/* Take one as it is, by its size alone: stream_answer_get() finds out if it is usable. False: it is
 * not, and the reader is bad. */
MUST_CHECK static inline bool stream_answer_skip(struct reader *in, struct bytes *record)
{
    const size_t body = in->left < STREAM_ANSWER_SIZE ? SIZE_MAX / 2 : load_u32(in->at + 25);
    const size_t size = STREAM_ANSWER_SIZE + body;

    if (in->bad || body > RECORD_BODY_MAX || in->left < size) {
        in->bad = true;
        return false;
    }
    *record = bytes_of(in->at, size);
    in->at += size;
    in->left -= size;
    return true;
}
/* What such a record says. */
static inline uint8_t stream_answer_code(struct bytes record)
{
    return record.data[24];
}
static inline struct bytes stream_answer_body(struct bytes record)
{
    return bytes_of(record.data + STREAM_ANSWER_SIZE, record.size - STREAM_ANSWER_SIZE);
}

#endif
