/* SPDX-License-Identifier: Apache-2.0
 *
 * Which actors of one kind are unused for long? A wheel of slots, one for each
 * sixteenth of the kind's idle time. A request only notes when it came
 * (actor.used_ms): the actor stays in its slot, and goes on to a later one when
 * the wheel gets there. So nothing is moved on the message path, nobody scans
 * all actors, and an actor is found a sixteenth late at most.
 *
 * Pure.
 */
#ifndef NODE_BOOKS_IDLE_H
#define NODE_BOOKS_IDLE_H

#include "node/books/actor.h"

enum {
    IDLE_SLOTS = 32,
    IDLE_NEVER_MS = 600000, /* turn of the wheel of a kind whose actors never go for being idle */
};

struct idle {
    struct actors *actors; /* borrowed */
    struct actor_list slot[IDLE_SLOTS];
    uint64_t grain_us; /* of one slot */
    uint64_t swept;    /* slots up to here, counted from time 0, are empty */
    uint32_t idle_ms;
    bool never; /* only for want of room */
};

/* Make a wheel for those actors, whose lists it uses. It is all zero before, or empty. `idle_ms` 0
 * or UINT32_MAX: never. */
void idle_init(struct idle *i, struct actors *actors, uint32_t idle_ms, uint64_t now_us);
/* An actor that is in no wheel. */
void idle_put(struct idle *i, struct actor *a, uint64_t now_us);
/* Takes out and returns one that was unused for the idle time; NULL = none. At most *steps are
 * looked at, and counted down. */
struct actor *idle_take(struct idle *i, uint64_t now_us, size_t *steps);
/* The one that is unused longest, a sixteenth more or less; it stays in. NULL = none, or not found
 * within *steps. */
struct actor *idle_oldest(struct idle *i, uint64_t now_us, size_t *steps);

static inline uint32_t idle_age_ms(const struct actor *a, uint64_t now_us)
{
    return (uint32_t)(now_us / 1000) - a->used_ms;
}

#endif
