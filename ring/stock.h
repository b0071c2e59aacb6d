/* SPDX-License-Identifier: Apache-2.0
 *
 * What each node may give: its pieces that are not fixed, by size.
 */
#ifndef RING_STOCK_H
#define RING_STOCK_H

#include "ring/pieces.h"

/* A node's: a run of the keys, sorted when first asked for. */
struct stock_run {
    size_t at;
    size_t count;
    bool sorted;
};

struct stock {
    const struct pieces *pieces; /* borrowed */
    uint32_t from;               /* first cell of their segment */
    uint64_t *key;               /* owned; see stock_key() */
    struct stock_run of[RING_NODES_MAX + 1];
};

/* Take stock of all pieces that are loaded, in the place of what there was (at first all zero). */
void stock_make(struct stock *s, const struct pieces *pieces, uint32_t from);
void stock_fini(struct stock *s);

/* How many the node may give. */
static inline size_t stock_count(const struct stock *s, uint32_t slot)
{
    return s->of[slot].count;
}
/* The node's keys, sorted. */
uint64_t *stock_of(struct stock *s, uint32_t slot);
/* How many of the node's have at most `size` cells: the last of those is the largest. */
size_t stock_at_most(struct stock *s, uint32_t slot, int64_t size);
/* Take the one at `place` out of the stock; returns its index. */
uint32_t stock_take(struct stock *s, uint32_t slot, size_t place);
/* Put one back that was taken with a greater size. */
void stock_put(struct stock *s, uint32_t slot, uint32_t index);

/* size << 40 | (from, descending) << 20 | index: the last is the largest, at the lowest cell. */
static inline uint64_t stock_key(const struct pieces *pieces, uint32_t from, uint32_t index)
{
    const struct piece *piece = &pieces->piece[index];

    return (uint64_t)piece->size << 40 | (uint64_t)(RING_VNODES_MAX - (piece->from - from)) << 20 |
           index;
}
static inline uint32_t stock_index(uint64_t key)
{
    return (uint32_t)(key & RING_VNODES_MAX);
}
static inline int64_t stock_size(uint64_t key)
{
    return (int64_t)(key >> 40);
}
/* Order of two keys, for qsort(). */
int stock_compare(const void *a, const void *b);

#endif
