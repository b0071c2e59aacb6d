/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches: what the protocol thread posts to a worker, and what the worker tells
 * back, kept so that a whole batch changes hands and nothing is allocated for one
 * message: items in an array, their bytes behind one another.
 *
 * A batch of posts stays where it is once it was sent: either side may then touch
 * the state of a post, by compare-and-swap. What is told can be taken as soon as it
 * is put, without a lock: one side puts, the other takes.
 */
#ifndef NODE_WORKER_BATCH_UV_H
#define NODE_WORKER_BATCH_UV_H

#include "base/bytes.h"
#include "base/err.h"
#include "node/runtime/runtime.h"

#include <stdatomic.h>

struct kind;

enum post_type {
    POST_ACTIVATE, /* kind, fence; bytes: bond (bond_size), then state (has_state) */
    POST_RUN,      /* number, flags, chain; bytes: body */
    POST_TURN,
    POST_EXPORT,
    POST_UNFREEZE,
    POST_RETIRE,
    POST_DISCARD, /* status: enum rh_why */
    POST_GATEWAY, /* number: a gateway that is gone; of no actor */
    POST_ANSWER,  /* number, status: of a call, of no actor; bytes: payload */
};

enum post_state { POST_QUEUED, POST_STARTED, POST_RECALLED };

struct post {
    enum post_type type;
    _Atomic int state; /* enum post_state */
    struct rh_actor *activation;
    const struct kind *kind; /* ACTIVATE */
    uint64_t fence;          /* likewise */
    uint64_t number;         /* ticket */
    int status;
    uint8_t flags;
    bool has_state;
    uint32_t bond_size;
    uint8_t chain_count;
    bool brief; /* it takes microseconds: worker_run_inline() */
    size_t at;  /* in the batch's bytes: the chain, then the bytes */
    size_t size;
};

struct batch {
    struct post *item; /* owned */
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

void batch_put(struct batch *b, const struct post *post, const uint64_t *chain, struct bytes bytes);
struct bytes batch_chain(const struct batch *b, const struct post *p);
struct bytes batch_bytes(const struct batch *b, const struct post *p);
/* Empty it, keep its memory. */
void batch_clear(struct batch *b);
void batch_free(struct batch *b);

void batches_put(struct batches *l, struct batch *b);
/* NULL = none. */
struct batch *batches_take(struct batches *l);

/* ---- the way back */

enum told_type {
    TOLD_RUNTIME,   /* event; of RUNTIME_RAN also number, code, bytes …; EXPORTED: the bond is the
                     head */
    TOLD_PUSH,      /* number: gateway; bytes: a push record */
    TOLD_CALL,      /* bytes: a struct call, then what it borrows */
    TOLD_DISCARDED, /* nothing of the actor is left */
    TOLD_RETURNED,  /* returned, number, flags, chain; bytes: not begun in time */
};

struct entry {
    enum told_type type;
    enum runtime_event_type event;
    enum post_type returned;
    enum err error;
    enum answer_code code;
    struct rh_actor *activation;
    uint64_t number; /* ticket; GONE: session; BOUND: gateway */
    bool has_state;
    uint8_t flags;
    uint8_t chain_count;
    size_t at; /* in the bytes: the head (chain, call), then the rest */
    size_t head_size;
    size_t size;
};

enum { TOLD_IN_CHUNK = 256 };

/* Never moves, so that one side can read it while the other writes behind. */
struct told_chunk {
    struct entry item[TOLD_IN_CHUNK];
    _Atomic size_t ready;              /* the first so many may be read */
    _Atomic(struct told_chunk *) then; /* the next one, when this is full; NULL = not yet */
    struct told_chunk *spare;
    size_t size; /* of the bytes in use */
    size_t cap;
    uint8_t bytes[]; /* flexible */
};

/* One thread puts, one takes. */
struct telling {
    struct told_chunk *writing; /* owned, like all of them; who puts */
    struct told_chunk *unused;  /* likewise */
    uint8_t apart[64];
    struct told_chunk *reading;         /* who takes */
    size_t taken;                       /* of it */
    _Atomic(struct told_chunk *) spare; /* given back by who takes */
    _Atomic size_t spare_count;
};

void telling_init(struct telling *t);
void telling_put(struct telling *t, const struct entry *entry, struct bytes head,
                 struct bytes rest);
/* NULL = all that was put was taken. Borrowed until the next call. */
const struct entry *telling_take(struct telling *t);
/* The one that is taken so many calls later, if that is known yet; or NULL. */
const struct entry *telling_peek(const struct telling *t, size_t ahead);
/* Of what was taken last. */
struct bytes telling_head(const struct telling *t, const struct entry *e);
struct bytes telling_rest(const struct telling *t, const struct entry *e);
void telling_fini(struct telling *t);

#endif
