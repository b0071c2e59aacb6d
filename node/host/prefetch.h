/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetch: which memory do the next requests and moves need (prefetch.c)? Hints that change
 * nothing anybody could see; host_prefetch() is the shell's.
 */
#ifndef NODE_HOST_PREFETCH_H
#define NODE_HOST_PREFETCH_H

#include "node/books/actor.h"
#include "node/host/host.h"

/* How far the way of one request is known. */
struct way {
    uint64_t session;
    uint64_t position;
    uint64_t key;        /* of its order record */
    struct actor *actor; /* NULL = not found yet */
    struct order *order; /* likewise */
    uint32_t next;       /* in the bucket that is gone through; 0 = no more */
};

struct prefetch {
    uint64_t version; /* host_prefetch() told positions of this ring; 0 = of none */
    struct way way[HOST_PREFETCH_MAX]; /* of the last requests, … */
    size_t count;                      /* … so many; 0 = what was found may be gone */
    size_t taken;                      /* of these */
};

/* Forget what was found: the host was stepped, so it may be gone. */
static inline void prefetch_stale(struct prefetch *p)
{
    p->count = 0;
}
/* The way of the next request, if it is of that session to that position; or NULL. */
static inline const struct way *prefetch_take(struct prefetch *p, uint64_t position,
                                              uint64_t session)
{
    const struct way *w = p->taken < p->count ? &p->way[p->taken++] : NULL;

    return w != NULL && w->position == position && w->session == session ? w : NULL;
}

/* The ring changed: positions that were told are void. */
void prefetch_forget(struct prefetch *a);
/* Requests of a stream for these, STREAM_TAKEN_AT_ONCE at most, come next: find an actor at each
 * position, of whatever id, NULL = there is none. Good until something else is done with the host.
 * `fetch` as in struct host_server. */
void prefetch_taken(const struct host *h, const uint64_t *position, size_t count,
                    void (*fetch)(const struct rh_actor *instance), struct actor **found);
/* Hint that these actors are held or released next: fetches the memory that it needs. */
void prefetch_actors(const struct host *h, struct actor *const *a, size_t count);
/* Actors are made of these, one by one: the same for those that come soon. */
void prefetch_images(const struct host *h, struct image *const *image, size_t count);

#endif
