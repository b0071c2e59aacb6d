/* SPDX-License-Identifier: Apache-2.0 */
#include "ring/route.h"

#include "ring/hash.h"
#include "ring/lanes.h"

/* Enough misses in flight for any memory, and the positions stay in the first cache. */
enum { STAGE = 64 };

static void prefetch(struct ring_table table, uint64_t position)
{
    __builtin_prefetch(&table.cell[position >> (64 - table.grid)]);
}

static void resolve(struct ring_table table, const uint64_t *position, size_t count, ring_hit *hits)
{
    for (size_t i = 0; i < count; i++) {
        prefetch(table, position[i]);
    }
    for (size_t i = 0; i < count; i++) {
        hits[i] = ring_table_at(table, position[i]);
    }
}

static size_t stage_size(size_t left)
{
    return left < STAGE ? left : STAGE;
}

static void hash_u64s(struct ring_key key, const uint64_t *ids, size_t count, uint64_t *position)
{
    bool lanes = lanes_usable();
    uint64_t word[2][LANES];
    size_t i = 0;

    for (size_t lane = 0; lane < LANES; lane++) {
        word[1][lane] = (uint64_t)8 << 56;
    }
    for (; lanes && i + LANES <= count; i += LANES) {
        memcpy(word[0], ids + i, sizeof word[0]);
        lanes_hash(key, word, 2, position + i);
    }
    for (; i < count; i++) {
        position[i] = siphash_u64(key, ids[i]);
    }
}

/* Lanes go in step: they take ids of one size. */
static bool fit_lanes(const struct bytes *ids, size_t count)
{
    if (count < LANES || ids[0].size > 255) {
        return false;
    }
    for (size_t i = 1; i < LANES; i++) {
        if (ids[i].size != ids[0].size) {
            return false;
        }
    }
    return true;
}

static void hash_lanes(struct ring_key key, const struct bytes *ids, uint64_t *position)
{
    uint64_t word[LANES_WORDS_MAX][LANES];
    size_t whole = ids[0].size / 8;

    for (size_t lane = 0; lane < LANES; lane++) {
        for (size_t w = 0; w < whole; w++) {
            word[w][lane] = siphash_load(ids[lane].data + 8 * w);
        }
        word[whole][lane] = siphash_last(ids[lane]);
    }
    lanes_hash(key, word, whole + 1, position);
}

static void hash_bytes(struct ring_key key, const struct bytes *ids, size_t count,
                       uint64_t *position)
{
    bool lanes = lanes_usable();

    for (size_t i = 0; i < count;) {
        if (lanes && fit_lanes(ids + i, count - i)) {
            hash_lanes(key, ids + i, position + i);
            i += LANES;
        } else {
            position[i] = siphash_bytes(key, ids[i]);
            i++;
        }
    }
}

void ring_route_u64(struct ring_table table, struct ring_key key, const uint64_t *ids, size_t count,
                    ring_hit *hits)
{
    uint64_t position[STAGE];

    for (size_t at = 0, size = 0; at < count; at += size) {
        size = stage_size(count - at);
        hash_u64s(key, ids + at, size, position);
        resolve(table, position, size, hits + at);
    }
}

void ring_route_bytes(struct ring_table table, struct ring_key key, const struct bytes *ids,
                      size_t count, ring_hit *hits)
{
    uint64_t position[STAGE];

    for (size_t at = 0, size = 0; at < count; at += size) {
        size = stage_size(count - at);
        hash_bytes(key, ids + at, size, position);
        resolve(table, position, size, hits + at);
    }
}
