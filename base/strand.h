/* SPDX-License-Identifier: Apache-2.0
 *
 * Intrusive doubly linked lists of the records of a pool, by handle: 8 bytes in
 * a record. The records form a ring; where the list begins is known to its
 * owner, as the handle of the first record (0 = empty), or of one that is in it
 * for that alone: then a record leaves without anybody knowing which list it is in.
 *
 *     struct strand cells = {&pool, offsetof(struct actor, cell)};
 *     uint32_t first = 0;
 *     strand_push(cells, &first, actor->handle);
 *     for (uint32_t i = first; i != 0; i = strand_next(cells, first, i)) { … }
 */
#ifndef BASE_STRAND_H
#define BASE_STRAND_H

#include "base/assert.h"
#include "base/pool.h"

#include <stdbool.h>

struct strand_link {
    uint32_t prev; /* 0 = in no list */
    uint32_t next;
};

/* The index of one of the list links in a record. */
struct strand {
    const struct pool *pool;
    size_t at;
};

static inline struct strand_link *strand_at(struct strand s, uint32_t item)
{
    return (struct strand_link *)(void *)((uint8_t *)pool_at(s.pool, item) + s.at);
}

static inline bool strand_linked(const struct strand_link *link)
{
    return link->prev != 0;
}

/* Begin a list of this one record. */
static inline void strand_begin(struct strand s, uint32_t item)
{
    *strand_at(s, item) = (struct strand_link){item, item};
}

static inline void strand_put_before(struct strand s, uint32_t at, uint32_t item)
{
    struct strand_link *next = strand_at(s, at);

    *strand_at(s, item) = (struct strand_link){next->prev, at};
    strand_at(s, next->prev)->next = item;
    next->prev = item;
}

static inline void strand_cut(struct strand s, uint32_t item)
{
    struct strand_link *link = strand_at(s, item);

    ASSERT(strand_linked(link));
    strand_at(s, link->prev)->next = link->next;
    strand_at(s, link->next)->prev = link->prev;
    *link = (struct strand_link){0, 0};
}

/* ---- lists that are known by their first record ---- */

/* Append the item to the list. */
static inline void strand_push(struct strand s, uint32_t *first, uint32_t item)
{
    if (*first == 0) {
        *first = item;
        strand_begin(s, item);
    } else {
        strand_put_before(s, *first, item);
    }
}

static inline void strand_remove(struct strand s, uint32_t *first, uint32_t item)
{
    const uint32_t next = strand_at(s, item)->next;

    if (*first == item) {
        *first = next == item ? 0 : next;
    }
    strand_cut(s, item);
}

/* The one after it; 0 = no more. */
static inline uint32_t strand_next(struct strand s, uint32_t first, uint32_t item)
{
    const uint32_t next = strand_at(s, item)->next;

    return next == first ? 0 : next;
}

#endif
