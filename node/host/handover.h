/* SPDX-License-Identifier: Apache-2.0
 *
 * Hand-over of actors' images inside a prepare: a stream at the source, a stage
 * at the target. Specification §8.2.
 *
 *     source                                   target
 *     stream_add() …                          staging_take(): only the next index
 *     stream_end()
 *     stream_next() while the window allows   --- STATE 0 1 2 … END --->
 *     stream_on_ack()                         <-- ACK next (cumulative) ---
 *     nothing came back for a while: stream_rewind() to the last ack (go-back-N)
 *
 * An actor may come several times: what came last of it replaces what came before, also if it is
 * nothing (an empty image). END says that no more will come, so what is there then is what counts.
 *
 * What is staged is live nowhere: the commit of the very same transaction turns
 * it into actors, any other outcome throws it away (holes 49, 50).
 *
 * Pure.
 */
#ifndef NODE_HOST_HANDOVER_H
#define NODE_HOST_HANDOVER_H

#include "node/books/image.h"
#include "wire/record.h"

struct handover_piece {
    struct image *image; /* a reference of its own, given back when acknowledged */
    uint32_t offset;
    uint32_t size;
};

struct handover_stream {
    struct list_link link; /* in its hold */
    uint64_t txn;
    uint64_t source;              /* my incarnation */
    uint16_t slot;                /* of the target */
    uint64_t target;              /* its incarnation */
    struct handover_piece *piece; /* owned */
    size_t piece_count;
    size_t piece_cap;
    bool ended;       /* nothing is added any more: STATE_END has index piece_count */
    uint8_t refused;  /* enum state_refusal: the target can't take it */
    size_t acked;     /* records taken, END included */
    size_t sent;      /* records on their way or taken */
    size_t sent_max;  /* highest `sent` ever: acks go no farther */
    size_t in_flight; /* bytes of [acked, sent) */
    size_t unsent;    /* bytes of what is behind that */
    uint64_t progress_us;
};

struct handover_stream *stream_new(uint64_t txn, uint64_t source);
void stream_free(struct handover_stream *s);
/* Borrows the image, takes references. The same actor may come again: its last image counts. */
void stream_add(struct handover_stream *s, struct image *image);
void stream_end(struct handover_stream *s);
/* Fill `r` with the next record to send, if the window of so many bytes has room. Its bytes are
 * good until the next call on this stream. */
bool stream_next(struct handover_stream *s, size_t window, struct state_record *r);
/* False: it made no sense (beyond what was sent). */
bool stream_on_ack(struct handover_stream *s, const struct state_ack_record *ack, uint64_t now_us);
void stream_rewind(struct handover_stream *s);
bool stream_is_done(const struct handover_stream *s); /* all was taken, END too */

struct staging {
    struct list_link link; /* in its hold */
    uint64_t txn;
    uint64_t source; /* incarnation of the source */
    uint32_t next;   /* index expected */
    bool ended;
    bool refused;
    bool unreadable; /* … for the last image: its state is of this version, not read here */
    uint32_t unread_version;
    bool ack_due;
    uint64_t peer; /* link the last record came by: the ack goes there */
    struct image_store store;
    struct image **image; /* owned; whole ones: of each actor the last that came */
    size_t image_count;
    size_t image_cap;
    struct table by_position; /* of these */
    size_t replaced;          /* images that a later one of their actor replaced */
    size_t size;              /* bytes staged */
    size_t since_ack;         /* bytes taken since the last ack */
    struct buffer partial;    /* chunks of the image under way */
    struct image_name name;   /* of it; id points to `id` */
    uint32_t total;           /* of it */
    uint8_t id[RECORD_ID_MAX];
};

enum staging_verdict {
    STAGING_TAKEN,
    STAGING_AGAIN, /* had it already */
    STAGING_GAP,   /* an earlier one is missing, or its bytes are damaged: it will come again */
    STAGING_FULL,  /* no room, no image, or unreadable: the transaction cannot go on */
};

/* The versions of states that a kind reads. */
struct state_range {
    uint32_t least;
    uint32_t most;
};

struct staging *staging_new(uint64_t txn, uint64_t source);
void staging_free(struct staging *s);
/* Take one record. `position` is the entity's, `reads` of its kind: NULL = any version, for it is
 * only kept. `size_max` bounds all that is staged here. */
enum staging_verdict staging_take(struct staging *s, const struct state_record *r,
                                  uint64_t position, const struct state_range *reads,
                                  size_t size_max);

#endif
