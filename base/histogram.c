/* SPDX-License-Identifier: Apache-2.0
 *
 * Latencies in buckets of 0.8 %, added, merged and read as percentiles.
 */
#include "base/histogram.h"

enum { SUB_BITS = 7, SUB = 1 << SUB_BITS };

static unsigned bucket_of(uint64_t us)
{
    if (us < SUB) {
        return (unsigned)us;
    }
    const unsigned top = 63u - (unsigned)__builtin_clzll(us);
    const unsigned shift = top - SUB_BITS;
    const unsigned index = (shift + 1) * SUB + (unsigned)((us >> shift) - SUB);

    return index < HISTOGRAM_BUCKETS ? index : HISTOGRAM_BUCKETS - 1;
}

/* The greatest value that falls into the bucket. */
static uint64_t bucket_top(unsigned index)
{
    const unsigned shift = index / SUB;

    if (shift == 0) {
        return index;
    }
    return ((uint64_t)(index % SUB + SUB + 1) << (shift - 1)) - 1;
}

void histogram_add(struct histogram *h, uint64_t us)
{
    histogram_add_many(h, us, 1);
}

void histogram_add_many(struct histogram *h, uint64_t us, uint64_t count)
{
    h->bucket[bucket_of(us)] += count;
    h->count += count;
    h->max_us = us > h->max_us && count > 0 ? us : h->max_us;
}

void histogram_merge(struct histogram *h, const struct histogram *from)
{
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        h->bucket[i] += from->bucket[i];
    }
    h->count += from->count;
    h->max_us = from->max_us > h->max_us ? from->max_us : h->max_us;
}

uint64_t histogram_at(const struct histogram *h, unsigned per_mille)
{
    const uint64_t wanted = (h->count * per_mille + 999) / 1000;
    uint64_t seen = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->bucket[i];
        if (seen >= wanted && seen > 0) {
            return bucket_top(i) < h->max_us ? bucket_top(i) : h->max_us;
        }
    }
    return h->max_us;
}
