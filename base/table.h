/* SPDX-License-Identifier: Apache-2.0
 *
 * Intrusive chained hash table. The caller hashes, compares and owns the
 * items; the table owns only its bucket array and grows it by doubling.
 *
 *     for (struct table_link *l = table_first(&t, hash); l; l = table_same(l)) {
 *         struct actor *a = CONTAINER_OF(l, struct actor, link);
 *         if (actor_is(a, id)) { return a; }
 *     }
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include "base/assert.h"

#include <stddef.h>
#include <stdint.h>

struct table_link {
    struct table_link *next;
    uint64_t hash;
};

struct table {
    struct table_link **bucket; /* owned; NULL until the first put */
    size_t bucket_count;        /* power of two, or 0 */
    size_t count;               /* items */
};

/* Double the buckets: what table_put() does when there is no room. */
void table_grow(struct table *t);

/* Insert; the caller has checked that no equal item is there. */
static inline void table_put(struct table *t, struct table_link *item, uint64_t hash)
{
    if (t->count >= t->bucket_count) {
        table_grow(t);
    }
    struct table_link **bucket = &t->bucket[hash & (t->bucket_count - 1)];

    item->hash = hash;
    item->next = *bucket;
    *bucket = item;
    t->count++;
}

/* Remove an item that is in the table. */
static inline void table_remove(struct table *t, struct table_link *item)
{
    ASSERT(t->count > 0);
    struct table_link **at = &t->bucket[item->hash & (t->bucket_count - 1)];

    while (*at != item) {
        ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = item->next;
    item->next = NULL;
    t->count--;
}

/* First item of the bucket that those of this hash are in, whatever its own; or NULL. */
static inline struct table_link *table_front(const struct table *t, uint64_t hash)
{
    return t->count == 0 ? NULL : t->bucket[hash & (t->bucket_count - 1)];
}

/* Fetch that bucket. A hint. */
static inline void table_fetch(const struct table *t, uint64_t hash)
{
    if (t->count > 0) {
        __builtin_prefetch((const void *)&t->bucket[hash & (t->bucket_count - 1)]);
    }
}

static inline struct table_link *table_with_hash(struct table_link *item, uint64_t hash)
{
    while (item != NULL && item->hash != hash) {
        item = item->next;
    }
    return item;
}

/* First item whose hash is exactly `hash`, or NULL. */
static inline struct table_link *table_first(const struct table *t, uint64_t hash)
{
    return table_with_hash(table_front(t, hash), hash);
}

/* Next item with the same hash, or NULL. */
static inline struct table_link *table_same(const struct table_link *item)
{
    return table_with_hash(item->next, item->hash);
}

/* Walk all items: `*at` starts at 0. Returns NULL at the end. The item just
 * returned may be removed (and freed); nothing may be put during a walk. */
struct table_walk {
    size_t bucket;
    struct table_link *next;
};
struct table_link *table_walk(const struct table *t, struct table_walk *at);

/* Free the bucket array. The items are the caller's. */
void table_fini(struct table *t);

/* Mix an integer key into 64 good bits (splitmix64's finalizer). */
static inline uint64_t table_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

#endif
