/* SPDX-License-Identifier: Apache-2.0
 *
 * The pushes of one bound connection, in order.
 *
 * Its actor numbers them, and takes the count along when it moves; those of the
 * old owner and of the new one come by two links. What comes early is kept until
 * the gap closes; a gap that stays for PUSHES_GAP_US, or in front of
 * PUSHES_KEPT_MAX bytes, is given up: a push is delivered once or not at all.
 *
 * Numbers count within a round, one for each time the connection was bound to an
 * actor begun afresh. What comes of a round that was not confirmed yet waits, and
 * what is still on its way of an older one is dropped.
 *
 * Pure.
 */
#ifndef GATEWAY_CLIENT_PUSHES_H
#define GATEWAY_CLIENT_PUSHES_H

#include "base/list.h"
#include "wire/session.h"

enum { PUSHES_GAP_US = 5 * 1000 * 1000, PUSHES_KEPT_MAX = 256 * 1024 };

struct push_stats {
    uint64_t delivered;
    uint64_t dropped_unknown; /* of no connection here: it has gone, or never was */
    uint64_t dropped_stale;   /* of an older round, or behind a kick */
    uint64_t dropped_copy;
    uint64_t dropped_room; /* the bind was not answered, and too many waited for that */
    uint64_t lost;         /* numbers that never came */
    uint64_t cut;          /* connections closed because they did not read */
    uint64_t kicked;       /* connections closed by their actors, or by a newer one */
    uint64_t resumed;      /* times that a bond was asked for again */
    uint64_t bound;        /* connections, now */
    uint64_t returned;     /* clients that have come back to their session … */
    uint64_t rebound;      /* clients that were let go on as another entity */
    uint64_t gone;         /* … and those that found it over */
};

/* A push that came early. */
struct kept_push {
    struct list_link link;
    uint64_t kept_us;          /* since then */
    struct push_record record; /* its payload is behind it */
};

struct pushes {
    struct push_stats *stats; /* borrowed */
    struct list kept;         /* struct kept_push, by round and number */
    size_t size;              /* bytes of them */
    uint64_t next;            /* number that is delivered next */
    uint64_t gap_us;          /* since when it is missing, 0 = nothing is kept */
    uint32_t round;           /* 0 = none was confirmed yet */
};

void pushes_init(struct pushes *p, struct push_stats *stats);
void pushes_fini(struct pushes *p);

/* This round was confirmed: its pushes begin with number `next`, which is 1 unless the client has
 * returned. */
void pushes_begin(struct pushes *p, uint32_t round, uint64_t next);
/* Pushes of this round with a number below `next` will not come any more. */
void pushes_skip(struct pushes *p, uint64_t next);

/* One came. True: it is the next and to be delivered at once; else it was kept (a copy) or dropped.
 * `open` false: none may be delivered now. */
bool pushes_take(struct pushes *p, const struct push_record *record, bool open, uint64_t now_us);

/* The next one that was kept and is to be delivered now, freed by pushes_free(); NULL = none. */
struct kept_push *pushes_next(struct pushes *p, uint64_t now_us);
void pushes_free(struct kept_push *kept);

/* True if a kept push waits for its time. */
static inline bool pushes_wait(const struct pushes *p)
{
    return p->gap_us != 0;
}

#endif
