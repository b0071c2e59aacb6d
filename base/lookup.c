/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear hashing over a pool's records: the table grows by one bucket at a time,
 * so that no insert takes long.
 */
#include "base/lookup.h"

#include "base/assert.h"
#include "base/mem.h"

enum { BUCKETS_START = 16 };

static uint32_t *same_of(const struct lookup *t, uint32_t handle)
{
    return (uint32_t *)(void *)((uint8_t *)pool_at(t->pool, handle) + t->same);
}

static size_t bucket_of(const struct lookup *t, uint32_t handle)
{
    return lookup_bucket(t, t->hash(pool_at(t->pool, handle)));
}

/* Buckets are made in turn: the records of those whose turn is soon are fetched. */
static void fetch_next(const struct lookup *t)
{
    enum { HEAD_AT = 8, RECORD_AT = 5, NEXT_AT = 2 };
    const size_t half = t->mask >> 1;
    const uint32_t soon = t->bucket[(t->bucket_count + NEXT_AT) & half];

    // Below `half` each is an old one, whose records part with the new one.
    pool_fetch_head(t->pool, t->bucket[(t->bucket_count + HEAD_AT) & half]);
    pool_fetch_front(t->pool, t->bucket[(t->bucket_count + RECORD_AT) & half]);
    pool_fetch_front(t->pool, soon == 0 ? 0 : *same_of(t, soon));
}

/* One bucket more: it gets what belongs to it from the one that had it so far. */
static void grow(struct lookup *t)
{
    if (t->bucket_count == t->bucket_cap) {
        t->bucket_cap = t->bucket_cap == 0 ? BUCKETS_START : t->bucket_cap * 2;
        t->bucket = mem_resize(t->bucket, t->bucket_cap * sizeof *t->bucket);
    }
    const size_t made = t->bucket_count++;
    t->mask = made > t->mask ? t->mask * 2 + 1 : t->mask;
    uint32_t *to = &t->bucket[made];
    uint32_t *from = &t->bucket[made & t->mask >> 1];

    *to = 0;
    fetch_next(t);
    while (made > 0 && *from != 0) {
        if (bucket_of(t, *from) == made) {
            *to = *from;
            *from = *same_of(t, *to);
            to = same_of(t, *to);
            *to = 0;
        } else {
            from = same_of(t, *from);
        }
    }
}

void lookup_put(struct lookup *t, uint32_t handle)
{
    if (t->count >= t->bucket_count) {
        grow(t);
    }
    uint32_t *bucket = &t->bucket[bucket_of(t, handle)];

    *same_of(t, handle) = *bucket;
    *bucket = handle;
    t->count++;
}

void lookup_remove(struct lookup *t, uint32_t handle)
{
    ASSERT(t->count > 0);
    uint32_t *at = &t->bucket[bucket_of(t, handle)];

    while (*at != handle) {
        ASSERT(*at != 0);
        at = same_of(t, *at);
    }
    *at = *same_of(t, handle);
    *same_of(t, handle) = 0;
    t->count--;
}

/* Its lowest bit first. */
static uint64_t reversed(uint64_t hash)
{
    hash = (hash >> 1 & 0x5555555555555555) | (hash & 0x5555555555555555) << 1;
    hash = (hash >> 2 & 0x3333333333333333) | (hash & 0x3333333333333333) << 2;
    hash = (hash >> 4 & 0x0f0f0f0f0f0f0f0f) | (hash & 0x0f0f0f0f0f0f0f0f) << 4;
    return __builtin_bswap64(hash);
}

uint32_t lookup_walk(const struct lookup *t, uint64_t *at)
{
    const uint64_t hash = reversed(*at);
    const size_t half = t->mask >> 1;

    if (t->count == 0) {
        *at = 0;
        return 0;
    }
    const size_t bucket = lookup_bucket(t, hash);
    // One that has not parted yet has those of two.
    const bool parted = bucket > half || bucket + half + 1 < t->bucket_count;
    *at = reversed(bucket | ~(uint64_t)(parted ? t->mask : half)) + 1;
    return t->bucket[bucket];
}

void lookup_fini(struct lookup *t)
{
    ASSERT(t->count == 0);
    mem_free(t->bucket);
    *t = (struct lookup){0};
}
