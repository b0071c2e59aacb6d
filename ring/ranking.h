/* SPDX-License-Identifier: Apache-2.0
 *
 * A ranking (a heap) of numbered items, greatest key first, lowest number first among
 * equals; an item's key may change and any item may leave.
 */
#ifndef RING_RANKING_H
#define RING_RANKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ranking {
    int64_t *key;    /* owned; of each item */
    uint32_t *item;  /* owned; the heap */
    uint32_t *place; /* owned; item -> place in the heap + 1, 0 = not in it */
    size_t count;    /* items in the heap */
};

/* Items are 0..items-1; the heap starts empty. */
void ranking_init(struct ranking *h, size_t items);
void ranking_fini(struct ranking *h);

/* Insert the item, or change its key. */
void ranking_put(struct ranking *h, uint32_t item, int64_t key);
/* Remove it if it is there. */
void ranking_remove(struct ranking *h, uint32_t item);

static inline bool ranking_has(const struct ranking *h, uint32_t item)
{
    return h->place[item] != 0;
}
/* The first item of a heap that is not empty. */
static inline uint32_t ranking_top(const struct ranking *h)
{
    return h->item[0];
}

#endif
