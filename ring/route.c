/* SPDX-License-Identifier: Apache-2.0 */
#include "ring/route.h"

#include "ring/hash.h"

/* Enough misses in flight for any memory, and the positions stay in the first cache. */
enum { STAGE = 64 };

static void prefetch(struct ring_table table, uint64_t position)
{
    __builtin_prefetch(&table.cell[position >> (64 - table.grid)]);
}

static void resolve(struct ring_table table, const uint64_t *position, size_t count, ring_hit *hits)
{
    for (size_t i = 0; i < count; i++) {
        hits[i] = ring_table_at(table, position[i]);
    }
}

static size_t stage_size(size_t left)
{
    return left < STAGE ? left : STAGE;
}

void ring_route_u64(struct ring_table table, struct ring_key key, const uint64_t *ids, size_t count,
                    ring_hit *hits)
{
    uint64_t position[STAGE];

    for (size_t at = 0, size = 0; at < count; at += size) {
        size = stage_size(count - at);
        for (size_t i = 0; i < size; i++) {
            position[i] = siphash_u64(key, ids[at + i]);
            prefetch(table, position[i]);
        }
        resolve(table, position, size, hits + at);
    }
}

void ring_route_bytes(struct ring_table table, struct ring_key key, const struct bytes *ids,
                      size_t count, ring_hit *hits)
{
    uint64_t position[STAGE];

    for (size_t at = 0, size = 0; at < count; at += size) {
        size = stage_size(count - at);
        for (size_t i = 0; i < size; i++) {
            position[i] = siphash_bytes(key, ids[at + i]);
            prefetch(table, position[i]);
        }
        resolve(table, position, size, hits + at);
    }
}
