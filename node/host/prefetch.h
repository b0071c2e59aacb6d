/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetch: which memory do the next requests and moves need (prefetch.c)? Hints that change
 * nothing anybody could see; host_prefetch() is the shell's.
 */
#ifndef NODE_HOST_PREFETCH_H
#define NODE_HOST_PREFETCH_H

#include "node/host/actor.h"
#include "node/host/host.h"

struct prefetch {
    uint64_t version; /* host_prefetch() told positions of this ring; 0 = of none */
};

/* The ring changed: positions that were told are void. */
void prefetch_forget(struct prefetch *a);
/* Hint that these actors are held or released next: fetches the memory that it needs. */
void prefetch_actors(const struct host *h, struct actor *const *a, size_t count);
/* Actors are made of these, one by one: the same for those that come soon. */
void prefetch_images(const struct host *h, struct image *const *image, size_t count);

#endif
