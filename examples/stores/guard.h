/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock guard: who activates an actor also takes a lock on its id, which
 * names its owner and its generation. It finds what fences alone do not: two
 * fleets that were pointed at the same store by mistake, where both have an
 * actor of that id. The second one is refused, or takes over from an older
 * generation; in both cases the holder of the lock gets a notice.
 *
 * This file is the holder's ear: a thread that listens on the channel of this
 * process. The lock itself is taken in store_redis.c, in the script of a claim.
 * A notice may get lost; the fence is what protects the row.
 */
#ifndef EXAMPLES_STORES_GUARD_H
#define EXAMPLES_STORES_GUARD_H

#include "stored.h"

enum { GUARD_OWNER_SIZE = 192 };

struct redisContext;
struct guard;

struct guard_options {
    /* A connection by `until_ms`, or NULL and why. */
    struct redisContext *(*dial)(void *store, int64_t until_ms, char why[JOBS_WHY_SIZE]);
    void *store;
    const char *channel;   /* to listen on; copied */
    struct stored *stored; /* whose counters are deposed */
};

/* NODE@HOST:PID, one word: differs from that of every other process. */
void guard_name_owner(char out[GUARD_OWNER_SIZE], const char *node);
/* NULL: no memory or thread. */
struct guard *guard_start(const struct guard_options *options);
/* NULL is fine. */
void guard_stop(struct guard *guard);
/* Notices up to now. From any thread; NULL is fine. */
int64_t guard_conflicts(const struct guard *guard);

#endif
