/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetch: which memory do the next requests and moves need (ahead.c)? Hints that change nothing
 * anybody could see; host_look_ahead() is the shell's.
 */
#ifndef NODE_HOST_AHEAD_H
#define NODE_HOST_AHEAD_H

#include "node/host/actor.h"
#include "node/host/host.h"

struct ahead {
    uint64_t version; /* host_look_ahead() told positions of this ring; 0 = of none */
};

/* The ring changed: positions that were told are void. */
void ahead_forget(struct ahead *a);
/* They are held or let go next: the memory that it needs is fetched. */
void ahead_actors(const struct host *h, struct actor *const *a, size_t count);
/* Actors are made of these, one by one: the same for those that come soon. */
void ahead_images(const struct host *h, struct image *const *image, size_t count);

#endif
