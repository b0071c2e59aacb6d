/* SPDX-License-Identifier: Apache-2.0
 *
 * Broadcasts on their way to the router: one payload for many actors, handed
 * out one actor at a time, so that 65,536 of them keep nobody else waiting.
 *
 * What an actor asks for behind its broadcast waits here for its turn: else it
 * might overtake it. Actors take turns, CASTS_SLICE requests each.
 *
 * Pure.
 */
#ifndef NODE_CALLS_CASTS_H
#define NODE_CALLS_CASTS_H

#include "base/list.h"
#include "base/shared.h"
#include "base/table.h"
#include "node/calls/call.h"

#include <stdatomic.h>

enum {
    CASTS_SLICE = 256,
    CASTS_SIZE_MAX = 32 * 1024 * 1024, /* bytes of those that wait; then RH_OVERLOADED */
};

/* All zero but `waiting` is a valid empty one: casts_init(). */
struct casts {
    struct table by_session; /* struct outbox */
    struct list boxes;       /* the same: the first one's turn; … */
    struct list barred;      /* … but for those that wait for casts_lift() */
    uint64_t last_number;    /* of payloads */
    size_t slice;            /* left of this turn */
    uint64_t made;           /* broadcasts that were taken */
    uint64_t handed;         /* to so many actors */
    uint64_t late;           /* actors that were given up: their broadcast's time was over */
};

void casts_init(struct casts *c);
void casts_fini(struct casts *c, _Atomic size_t *waiting);
/* All that waits is forgotten. */
void casts_restart(struct casts *c, _Atomic size_t *waiting);

/* Does something of this session wait? Then all else it asks for has to. */
bool casts_holds(const struct casts *c, uint64_t session);
/* All of this session waits until it was lifted as often. */
void casts_bar(struct casts *c, uint64_t session);
void casts_lift(struct casts *c, uint64_t session);
/* A call may pass what is barred, unless some of that is for the same actor. */
bool casts_may_pass(const struct casts *c, const struct call *call);
/* Append a broadcast, or what is asked for behind one; all is copied. Its time ends at `until_us`.
 */
void casts_put(struct casts *c, const struct call *call, uint64_t until_us);
/* Its session ends behind what waits of it. False: nothing does. */
bool casts_close(struct casts *c, uint64_t session);

/* For metrics. */
struct casts_figures {
    uint64_t made;    /* broadcasts that were taken, … */
    uint64_t refused; /* … and that were not: too much waited */
    uint64_t handed;  /* members that they were handed to */
    uint64_t late;    /* members that were given up: its time was over */
};

enum cast_type {
    CAST_ONE,    /* of a broadcast: call, but for its payload, and `common` */
    CAST_CALL,   /* call: it waited behind one */
    CAST_CLOSED, /* session: nothing waits any more, and it has ended */
};

struct cast_next {
    enum cast_type type;
    struct call call;
    struct shared *common; /* caller and payload; of the others NULL */
    uint64_t until_us;
    uint64_t session;
};
/* Take the next; false = none. Borrowed until the next call of any of these. What `waiting` counts
 * goes down as broadcasts are through; it may be NULL. */
bool casts_next(struct casts *c, uint64_t now_us, _Atomic size_t *waiting, struct cast_next *out);
/* Take a call that waits, and whose time is over; false = none. Borrowed likewise. */
bool casts_expired(struct casts *c, uint64_t now_us, struct call_answer *out);

/* What a broadcast counts with in `waiting`: known before it is made, and when it is dropped. */
static inline size_t cast_size(const struct call *call)
{
    return call->id.size + call->payload.size;
}

#endif
