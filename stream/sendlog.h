/* SPDX-License-Identifier: Apache-2.0
 *
 * Records on their way to the other end of a stream: numbered without a gap,
 * encoded in frames, kept in chunks until nobody needs them. Either end has one.
 *
 *     head ... chunk ... send ... tail
 *     |<- handed to the  ->|<- not yet ->|<- open frame ->|
 *         network
 *
 * What is numbered is not copied again: the network takes it from its chunk, and
 * a record that is sent once more is read there. Pure; no chunk is allocated
 * while there are spare ones.
 */
#ifndef STREAM_SENDLOG_H
#define STREAM_SENDLOG_H

#include "wire/stream.h"

enum { STREAM_CHUNK_SIZE = 64 * 1024 }; /* bytes; a larger record has a chunk of its own */

struct stream_chunk {
    struct stream_chunk *next;
    uint64_t last; /* number of the last record of its closed frames */
    uint32_t cap;
    uint32_t used; /* bytes */
    uint32_t sent; /* of them handed to the network */
    uint32_t live; /* records of it that its owner still needs; by the owner */
    uint8_t data[];
};

/* Where chunks come from, for all streams of a thread. All zero but for `spare_max` is a valid
 * empty one. */
struct stream_chunks {
    struct stream_chunk *spare; /* owned */
    size_t spare_count;
    size_t spare_max;
    size_t count; /* chunks in use, … */
    size_t size;  /* … and their bytes */
};
/* Free the spare ones. The others must have been given back. */
void stream_chunks_fini(struct stream_chunks *c);

struct sendlog {
    struct stream_chunks *chunks; /* borrowed */
    struct stream_chunk *head;    /* owned, with those behind it; NULL = nothing is kept */
    struct stream_chunk *tail;
    struct stream_chunk *send; /* what is not handed out yet begins here */
    uint8_t *frame;            /* open, in the tail; or NULL */
    struct stream_head said;   /* in the next frame; `first` is of the open one */
    uint64_t next;             /* number of the next record, from 1 */
    uint64_t told;             /* `ack` of the last frame, … */
    uint64_t looked;           /* … and of the last one when sendlog_look() was called last */
    bool ack_due;              /* a frame may say `ack` and nothing else */
    size_t size;               /* bytes of its chunks */
    enum stream_frame type;
    uint8_t
        ack_left; /* bytes of `ack` that the network did not take yet; 0 = it has none to take */
    uint8_t ack[STREAM_HEADER_SIZE]; /* a frame that says nothing else */
};

void sendlog_init(struct sendlog *l, struct stream_chunks *chunks, enum stream_frame type,
                  uint64_t from, uint64_t to);
/* Give all chunks back: nothing is kept. The numbers go on. */
void sendlog_drop(struct sendlog *l);

/* Bytes of records that the open frame has room for, fewer than STREAM_CHUNK_SIZE: a larger record
 * leaves none in its chunk. 0 = the next record begins another frame. */
static inline size_t sendlog_left(const struct sendlog *l)
{
    return __builtin_expect(l->frame != NULL && l->next - l->said.first < FRAME_RECORDS_MAX, true)
               ? l->tail->cap - l->tail->used
               : 0;
}
/* The slow way of sendlog_room(): another frame, or chunk. */
void sendlog_grow(struct sendlog *l, size_t size);
/* Where the next record goes, for which sendlog_left() has room. */
static inline uint8_t *sendlog_at(const struct sendlog *l)
{
    return l->tail->data + l->tail->used;
}
/* Where the next record goes, of `size` bytes; sendlog_put() when it is there. A frame says `ack`
 * and `version` of `said` as they are when it is begun (R4). */
static inline uint8_t *sendlog_room(struct sendlog *l, size_t size)
{
    if (__builtin_expect(sendlog_left(l) < size, false)) {
        sendlog_grow(l, size);
    }
    return sendlog_at(l);
}
static inline void sendlog_put(struct sendlog *l, size_t size)
{
    l->tail->used += (uint32_t)size;
    l->next++;
}
/* What comes now goes into another frame: `said` has changed in a way that matters (R4). */
void sendlog_close(struct sendlog *l);

/* Bytes for the network, which sendlog_sent() is told of when it took them; size 0 = there are
 * none. Closes the open frame. When all is sent, and sendlog_look() wants it, there is one that
 * says `ack` and nothing else. Borrowed until the next call with this log. */
struct bytes sendlog_unsent(struct sendlog *l);
void sendlog_sent(struct sendlog *l, size_t size);
/* From time to time: an `ack` that no frame has said since the last call gets one of its own. At
 * once it would cost a small load as much again: a frame written, read and woken for, where most
 * often a request is about to say the same. Returns true if there is one for the network. */
bool sendlog_look(struct sendlog *l);
/* The head of a frame without records; counts as one that says `ack`. */
struct stream_head sendlog_say(struct sendlog *l, uint64_t first);

/* Records up to this number are needed no more, but for live ones: what can go goes. */
void sendlog_free(struct sendlog *l, uint64_t number);
/* True: the network has a part of a frame, and the rest is to come behind it. */
bool sendlog_is_cut(const struct sendlog *l);
/* A new connection: hand out again from the frame that has this number (R2). */
void sendlog_again(struct sendlog *l, uint64_t number);
/* A new connection: what is not taken is withdrawn; go on with this number, hand out nothing of
 * what is here. */
void sendlog_cut(struct sendlog *l, uint64_t number);

#endif
