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

struct lanes {
    struct table table;
    struct table_link *spare; /* kept for the next lane: most live for one request only */
    size_t spare_count;
};

/* Hints: fetch it; the bucket that such a lane is in, or will be; and, when that is there, who
 * comes first in it. */
static inline void lane_fetch(const struct lane *lane)
{
    __builtin_prefetch(lane, 1);
    __builtin_prefetch((const uint8_t *)lane + 64, 1);
}
void lanes_fetch(const struct lanes *l, uint64_t session, uint64_t position);
void lanes_fetch_front(const struct lanes *l, uint64_t session, uint64_t position);

/* All zero is a valid empty one. */
void lanes_fini(struct lanes *l);

/* The lane of p's (session, kind, id), made if there is none; `p` takes its place in it by seq.
 * `position`, the id's hash under a key that no client knows, finds it: clients choose the ids, and
 * could aim them all at one bucket. */
struct lane *lane_add(struct lanes *l, uint64_t session, uint64_t position, struct pending *p);

/* The key is another one: each lane gets the position that this says, and is found by it. */
void lanes_move(struct lanes *l, uint64_t (*position)(void *context, const struct lane *lane),
                void *context);

/* Take `p` out of its lane; the lane goes when it was the last: then this returns NULL. */
struct lane *lane_remove(struct lanes *l, struct pending *p);

struct pending *lane_front(const struct lane *lane); /* lowest seq */
struct pending *lane_next(const struct lane *lane, const struct pending *p);
/* Seq of the one before `p`, 0 = none. */
uint64_t lane_prev_seq(const struct lane *lane, const struct pending *p);

/* Not to be sent from now. */
bool lane_is_blocked(const struct lane *lane);
/* End stall and rest. */
void lane_unblock(struct lane *lane);

#endif
