/* SPDX-License-Identifier: Apache-2.0
 *
 * A lane: the unfinished requests of one (session, entity), in order.
 *
 * All of a lane goes to one owner, so a lane waits as a whole: `stalled` until
 * the ring or a link changes, `resting` until a time, or for what comes first.
 * Requests leave it in order of seq and at most `window` are on their way.
 */
#ifndef ROUTE_LANE_H
#define ROUTE_LANE_H

#include "base/bytes.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/table.h"
#include "route/pending.h"

#include <stdbool.h>
#include <stdint.h>

struct lane {
    struct table_link link;
    struct list all; /* struct pending, in_lane; never empty between steps */
    struct list_link stalled;
    struct list_link resting;
    uint64_t session;
    uint64_t position; /* of the entity: where it is on the ring, by the key that the router has */
    uint32_t sent;     /* of them on their way */
    uint32_t waiting;  /* of them at the gateway */
    uint16_t kind;
};

enum { LANES_SPARE_MAX = 4096 };

struct lanes {
    struct table table;
    struct table_link *spare; /* kept for the next lane: most live for one request only */
    size_t spare_count;
};

/* Hash of a lane. Of two sessions the same id has one position, of two kinds it has two. */
static inline uint64_t lane_hash(uint64_t session, uint64_t position)
{
    return position + session * 0x9e3779b97f4a7c15u;
}

/* Hints: fetch it; and the bucket that such a lane is in, or will be. */
static inline void lane_fetch(const struct lane *lane)
{
    __builtin_prefetch(lane, 1);
    __builtin_prefetch((const uint8_t *)lane + 64, 1);
}
static inline void lanes_fetch(const struct lanes *l, uint64_t session, uint64_t position)
{
    table_fetch(&l->table, lane_hash(session, position));
}

/* Free the lanes; a struct that is all zero is a valid empty one. */
void lanes_fini(struct lanes *l);

/* The lane of p's (session, kind, id), made if there is none; `p` takes its place in it by seq.
 * `position`, the id's hash under a key that no client knows, finds it: clients choose the ids, and
 * could aim them all at one bucket. */
struct lane *lane_add(struct lanes *l, uint64_t session, uint64_t position, struct pending *p);

/* True if there is a lane of that session at that position. */
bool lanes_have(const struct lanes *l, uint64_t session, uint64_t position);

/* The key is another one: each lane gets the position that this says, and is found by it. */
void lanes_move(struct lanes *l, uint64_t (*position)(void *context, const struct lane *lane),
                void *context);

/* Lowest seq. */
static inline struct pending *lane_front(const struct lane *lane)
{
    struct list_link *front = list_front(&lane->all);

    return front == NULL ? NULL : CONTAINER_OF(front, struct pending, in_lane);
}

static inline struct pending *lane_next(const struct lane *lane, const struct pending *p)
{
    struct list_link *next = list_next(&lane->all, &p->in_lane);

    return next == NULL ? NULL : CONTAINER_OF(next, struct pending, in_lane);
}

/* Seq of the one before `p`, 0 = none. */
static inline uint64_t lane_prev_seq(const struct lane *lane, const struct pending *p)
{
    struct list_link *prev = p->in_lane.prev;

    return prev == &lane->all.head ? 0 : CONTAINER_OF(prev, struct pending, in_lane)->seq;
}

/* Not to be sent from now. */
static inline bool lane_is_blocked(const struct lane *lane)
{
    return list_linked(&lane->stalled) || list_linked(&lane->resting);
}

/* End stall and rest. */
static inline void lane_unblock(struct lane *lane)
{
    if (list_linked(&lane->stalled)) {
        list_remove(&lane->stalled);
    }
    if (list_linked(&lane->resting)) {
        list_remove(&lane->resting);
    }
}

static inline void lane_free(struct lanes *l, struct lane *lane)
{
    ASSERT(lane->sent == 0 && lane->waiting == 0);
    lane_unblock(lane);
    table_remove(&l->table, &lane->link);
    if (l->spare_count >= LANES_SPARE_MAX) {
        mem_free(lane);
        return;
    }
    lane->link.next = l->spare;
    l->spare = &lane->link;
    l->spare_count++;
}

/* Take `p` out of its lane; the lane goes when it was the last: then this returns NULL. */
static inline struct lane *lane_remove(struct lanes *l, struct pending *p)
{
    struct lane *lane = p->lane;

    list_remove(&p->in_lane);
    p->lane = NULL;
    if (!list_empty(&lane->all)) {
        return lane;
    }
    lane_free(l, lane);
    return NULL;
}

#endif
