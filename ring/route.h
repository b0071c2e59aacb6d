/* SPDX-License-Identifier: Apache-2.0
 *
 * From ids to vnodes and nodes, many at a time.
 *
 * A batch is hashed first, its cells are prefetched, then read: on a cold ring
 * the cache misses of a batch overlap instead of adding up.
 */
#ifndef RING_ROUTE_H
#define RING_ROUTE_H

#include "ring/ring.h"

/* A table of cells to look in: a ring's or a snapshot's. Borrowed. */
struct ring_table {
    const uint32_t *cell;
    uint8_t grid;
};

static inline struct ring_table ring_table_of(const struct ring *r)
{
    return (struct ring_table){r->cell, r->grid};
}
static inline ring_hit ring_table_at(struct ring_table t, uint64_t position)
{
    return t.cell[position >> (64 - t.grid)];
}

/* hits[i] = the hit of ids[i], for `count` of them. `key` is of the ids' kind. */
void ring_route_u64(struct ring_table table, struct ring_key key, const uint64_t *ids, size_t count,
                    ring_hit *hits);
/* The same for ids of 1..255 bytes. */
void ring_route_bytes(struct ring_table table, struct ring_key key, const struct bytes *ids,
                      size_t count, ring_hit *hits);

#endif
