/* SPDX-License-Identifier: Apache-2.0
 *
 * Small records by the million. A record has a handle of 32 bits, half a
 * pointer: those that name each other by handles (strand.h, lookup.h) fit into
 * fewer lines of the cache. It stays where it is until it is given back.
 *
 * Memory is taken in chunks of records of one size, so none has a header or is
 * rounded up by more than 7 bytes; what is given back is taken again, and a
 * chunk of which nothing is left is freed.
 *
 *     handle = number of its chunk << 8 | number in it; never 0
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    POOL_ITEM_MAX = 512, /* bytes */
    POOL_GRAIN = 8,
    POOL_CLASSES = POOL_ITEM_MAX / POOL_GRAIN + 1,
    POOL_INDEX_BITS = 8,
};

struct pool_chunk {
    uint8_t *memory; /* owned; NULL = the number is free */
    uint32_t prev;   /* among those of its size that have room; 0 = none */
    uint32_t next;   /* likewise, or among the free numbers */
    uint16_t item_size;
    uint16_t cap;
    uint16_t used;
    uint16_t fresh; /* from here on none was ever taken */
    uint16_t free;  /* one more than the number of the one given back last; 0 = none */
    uint64_t taken[(1 << POOL_INDEX_BITS) / 64]; /* a bit for each */
};

/* All zero is a valid empty one. */
struct pool {
    struct pool_chunk *chunk; /* owned; number 0 is not used */
    uint32_t chunk_count;
    uint32_t chunk_cap;
    uint32_t vacant;              /* first free number; 0 = none */
    uint32_t room[POOL_CLASSES];  /* first chunk with room, by size / POOL_GRAIN; 0 = none */
    uint32_t empty[POOL_CLASSES]; /* the one that is kept although nothing is in it; 0 = none */
    size_t count;                 /* records */
    size_t size;                  /* bytes of all chunks */
};

/* Returns a zeroed record of at most POOL_ITEM_MAX bytes. Never NULL. */
void *pool_take(struct pool *p, size_t size, uint32_t *handle);
void pool_give(struct pool *p, uint32_t handle);
/* The next that is taken, from after this handle on, whether that is or not; 0: the first. Returns
 * 0 = no more. */
uint32_t pool_next(const struct pool *p, uint32_t handle);
/* Frees all, records included. */
void pool_fini(struct pool *p);

/* True if a record of that size would take as much memory as this one. */
static inline bool pool_fits(const struct pool *p, uint32_t handle, size_t size)
{
    return p->chunk[handle >> POOL_INDEX_BITS].item_size ==
           (size + POOL_GRAIN - 1) / POOL_GRAIN * POOL_GRAIN;
}

/* Fetch what pool_at() reads, or the record itself; of handle 0: nothing. Hints. */
static inline void pool_fetch_head(const struct pool *p, uint32_t handle)
{
    if (handle != 0) {
        __builtin_prefetch(&p->chunk[handle >> POOL_INDEX_BITS]);
    }
}

/* The record of that handle, which was taken. */
static inline void *pool_at(const struct pool *p, uint32_t handle)
{
    const struct pool_chunk *c = &p->chunk[handle >> POOL_INDEX_BITS];

    return c->memory + (size_t)(handle & ((1u << POOL_INDEX_BITS) - 1)) * c->item_size;
}

static inline void pool_fetch(const struct pool *p, uint32_t handle)
{
    if (handle != 0) {
        const uint8_t *at = pool_at(p, handle);

        __builtin_prefetch(at, 1);
        __builtin_prefetch(at + 64, 1);
    }
}
/* Fetch only the front of a record. */
static inline void pool_fetch_front(const struct pool *p, uint32_t handle)
{
    if (handle != 0) {
        __builtin_prefetch(pool_at(p, handle), 1);
    }
}

#endif
