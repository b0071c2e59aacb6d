/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches: what the protocol thread submits to a worker, and what the worker completes, kept so
 * that a whole batch changes hands and nothing is allocated for one of them: items in an array,
 * their bytes behind one another.
 *
 * A batch of submissions stays where it is once it was sent: either side may then touch the state
 * of one, by compare-and-swap. A completion can be taken as soon as it is put, without a lock: one
 * side puts, the other takes.
 */
#ifndef NODE_WORKER_BATCH_UV_H
#define NODE_WORKER_BATCH_UV_H

#include "node/bridge/operation.h"

#include <stdatomic.h>

enum queued_state { QUEUED, STARTED, RECALLED };

struct queued {
    struct submission submission;
    _Atomic int state; /* enum queued_state */
    size_t at;         /* in the batch's bytes */
    size_t size;
};

struct batch {
    struct queued *item; /* owned */
    size_t count;
    size_t cap;
    size_t brief_count; /* of them */
    struct buffer bytes;
    struct batch *next;      /* of those that wait, or are done */
    struct batch *next_sent; /* of all that were sent and not seen again */
    bool done;               /* protocol thread: it was seen again */
};

/* First in, first out. All zero is empty. */
struct batches {
    struct batch *first;
    struct batch *last;
};

void batch_put(struct batch *b, const struct submission *submission, struct bytes bytes);
struct bytes batch_bytes(const struct batch *b, const struct queued *q);
/* Empty it, keep its memory. */
void batch_clear(struct batch *b);
void batch_free(struct batch *b);

void batches_put(struct batches *l, struct batch *b);
/* NULL = none. */
struct batch *batches_take(struct batches *l);

/* ---- the way back */

enum { CHUNK_COMPLETIONS = 256 };

/* Never moves, so that one side can read it while the other writes behind. */
struct completion_chunk {
    struct completion item[CHUNK_COMPLETIONS]; /* what they point to is in `bytes` */
    _Atomic size_t ready;                      /* the first so many may be read */
    _Atomic(struct completion_chunk *) then;   /* the next one, when this is full; NULL = not yet */
    struct completion_chunk *spare;
    size_t size; /* of the bytes in use */
    size_t cap;
    uint8_t bytes[]; /* flexible */
};

/* One thread puts, one takes. */
struct completion_queue {
    struct completion_chunk *writing; /* owned, like all of them; who puts */
    struct completion_chunk *unused;  /* likewise */
    uint8_t apart[64];
    struct completion_chunk *reading;         /* who takes */
    size_t taken;                             /* of it */
    _Atomic(struct completion_chunk *) spare; /* given back by who takes */
    _Atomic size_t spare_count;
};

void completion_queue_init(struct completion_queue *q);
/* Put a completion_copy() of the completion into the queue. */
void completion_queue_put(struct completion_queue *q, const struct completion *c);
/* NULL = all that was put was taken. Borrowed until the next call. */
const struct completion *completion_queue_take(struct completion_queue *q);
/* True if all that was put was taken; for the side that takes. */
static inline bool completion_queue_is_empty(const struct completion_queue *q)
{
    const struct completion_chunk *c = q->reading;
    const bool last = atomic_load_explicit(&c->then, memory_order_acquire) == NULL;

    return last && q->taken == atomic_load_explicit(&c->ready, memory_order_acquire);
}
/* The one that is taken so many calls later, if that is known yet; or NULL. */
const struct completion *completion_queue_peek(const struct completion_queue *q, size_t ahead);
void completion_queue_fini(struct completion_queue *q);

#endif
