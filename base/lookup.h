/* SPDX-License-Identifier: Apache-2.0
 *
 * Hash table of the records of a pool, chained by handle: 4 bytes in a record,
 * and 4 in the table. It grows by one bucket with each record (linear hashing,
 * Litwin 1980), so that none of a million has to wait until all have moved.
 *
 *     for (uint32_t i = lookup_first(&t, hash); i != 0; i = a->same) {
 *         a = pool_at(t.pool, i);
 *         if (actor_is(a, id)) { return a; }
 *     }
 */
#ifndef BASE_LOOKUP_H
#define BASE_LOOKUP_H

#include "base/pool.h"

struct lookup {
    const struct pool *pool;
    size_t same;                          /* where a record has the next of its bucket: uint32_t;
                                           * like what is hashed it belongs to the front */
    uint64_t (*hash)(const void *record); /* its low bits are used */
    uint32_t *bucket;                     /* owned */
    size_t bucket_count;                  /* more than half of mask, mask + 1 at most */
    size_t bucket_cap;
    size_t mask;
    size_t count; /* records */
};

/* Add a record. The table has none of the same name. */
void lookup_put(struct lookup *t, uint32_t handle);
/* Remove `handle`, which must be in the table. */
void lookup_remove(struct lookup *t, uint32_t handle);
/* Frees the buckets; there are no records. */
void lookup_fini(struct lookup *t);
/* Go through the buckets in an order that no growth changes: by the lowest bit of the hash first,
 * so that the two into which a bucket parts come one after the other, in its place. `*at` is 0 to
 * begin with, then as the call left it: 0 = that was the last. Returns the bucket's first record; 0
 * = it is empty. A record that is there from the first call to the last is in exactly one of the
 * buckets, whatever is put or removed between the calls. */
uint32_t lookup_walk(const struct lookup *t, uint64_t *at);

static inline size_t lookup_bucket(const struct lookup *t, uint64_t hash)
{
    const size_t b = hash & t->mask;

    return b < t->bucket_count ? b : b & t->mask >> 1;
}

/* Fetch the bucket that those of this hash are in. A hint. */
static inline void lookup_fetch(const struct lookup *t, uint64_t hash)
{
    if (t->count > 0) {
        __builtin_prefetch(&t->bucket[lookup_bucket(t, hash)]);
    }
}

/* First record of the bucket that those of this hash are in; 0 = none. */
static inline uint32_t lookup_first(const struct lookup *t, uint64_t hash)
{
    return t->count == 0 ? 0 : t->bucket[lookup_bucket(t, hash)];
}

#endif
