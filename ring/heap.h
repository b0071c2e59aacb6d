/* SPDX-License-Identifier: Apache-2.0
 *
 * A heap of numbered items, greatest key first, lowest number first among
 * equals; an item's key may change and any item may leave.
 */
#ifndef RING_HEAP_H
#define RING_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap {
    int64_t *key;    /* owned; of each item */
    uint32_t *item;  /* owned; the heap */
    uint32_t *place; /* owned; item -> place in the heap + 1, 0 = not in it */
    size_t count;    /* items in the heap */
};

/* Items are 0..items-1; the heap starts empty. */
void heap_init(struct heap *h, size_t items);
void heap_fini(struct heap *h);

/* Insert the item, or change its key. */
void heap_put(struct heap *h, uint32_t item, int64_t key);
/* Remove it if it is there. */
void heap_remove(struct heap *h, uint32_t item);

static inline bool heap_has(const struct heap *h, uint32_t item)
{
    return h->place[item] != 0;
}
/* The first item of a heap that is not empty. */
static inline uint32_t heap_top(const struct heap *h)
{
    return h->item[0];
}

#endif
