/* SPDX-License-Identifier: Apache-2.0
 *
 * Broadcasts on their way to the router: one payload for many actors, handed
 * out one actor at a time, so that 65,536 of them keep nobody else waiting.
 *
 * What an actor asks for behind its broadcast waits here for its turn: else it
 * might overtake it. Actors take turns, BROADCASTS_SLICE requests each.
 *
 * Pure.
 */
#ifndef NODE_CALLS_BROADCASTS_H
#define NODE_CALLS_BROADCASTS_H

#include "base/list.h"
#include "base/shared.h"
#include "base/table.h"
#include "node/calls/call.h"

#include <stdatomic.h>

enum {
    BROADCASTS_SLICE = 256,
    BROADCASTS_SIZE_MAX = 32 * 1024 * 1024, /* bytes of those that wait; then RH_OVERLOADED */
};

/* All zero but `waiting` is a valid empty one: broadcasts_init(). */
struct broadcasts {
    struct table by_session; /* struct outbox */
    struct list boxes;       /* the same: the first one's turn; … */
    struct list barred;      /* … but for those that wait for broadcasts_lift() */
    uint64_t last_number;    /* of payloads */
    size_t slice;            /* left of this turn */
    uint64_t made;           /* broadcasts that were taken */
    uint64_t handed;         /* to so many actors */
    uint64_t late;           /* actors that were given up: their broadcast's time was over */
};

void broadcasts_init(struct broadcasts *c);
void broadcasts_fini(struct broadcasts *c, _Atomic size_t *waiting);
/* Forget all that waits. */
void broadcasts_restart(struct broadcasts *c, _Atomic size_t *waiting);

/* True if something of this session waits; then all else that it asks for has to wait, too. */
bool broadcasts_holds(const struct broadcasts *c, uint64_t session);
/* Make all of this session wait until it was lifted as often. */
void broadcasts_bar(struct broadcasts *c, uint64_t session);
void broadcasts_lift(struct broadcasts *c, uint64_t session);
/* A call may pass what is barred, unless some of that is for the same actor. */
bool broadcasts_may_pass(const struct broadcasts *c, const struct call *call);
/* Append a broadcast, or what is asked for behind one; all is copied. Its time ends at `until_us`.
 */
void broadcasts_put(struct broadcasts *c, const struct call *call, uint64_t until_us);
/* End the session behind its broadcasts that wait. False: none waits. */
bool broadcasts_close(struct broadcasts *c, uint64_t session);

/* For metrics. */
struct broadcast_stats {
    uint64_t made;    /* broadcasts that were taken, … */
    uint64_t refused; /* … and that were not: too much waited */
    uint64_t handed;  /* members that they were handed to */
    uint64_t late;    /* members that were given up: its time was over */
};

enum broadcast_type {
    BROADCAST_ONE,    /* of a broadcast: call, but for its payload, and `common` */
    BROADCAST_CALL,   /* call: it waited behind one */
    BROADCAST_CLOSED, /* session: nothing waits any more, and it has ended */
};

struct broadcast_next {
    enum broadcast_type type;
    struct call call;
    struct shared *common; /* caller and payload; of the others NULL */
    uint64_t until_us;
    uint64_t session;
};
/* Take the next; false = none. Borrowed until the next call of any of these. What `waiting` counts
 * goes down as broadcasts are through; it may be NULL. */
bool broadcasts_next(struct broadcasts *c, uint64_t now_us, _Atomic size_t *waiting,
                     struct broadcast_next *out);
/* Take a call that waits, and whose time is over; false = none. Borrowed likewise. */
bool broadcasts_expired(struct broadcasts *c, uint64_t now_us, struct call_answer *out);

/* Bytes that a broadcast adds to `waiting`: known before it is made, and when it is dropped. */
static inline size_t broadcast_size(const struct call *call)
{
    return call->id.size + call->payload.size;
}

#endif
