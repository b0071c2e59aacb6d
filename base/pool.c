/* SPDX-License-Identifier: Apache-2.0
 *
 * Hands out records in chunks; a handle names a record by its chunk and its
 * place there.
 */
#include "base/pool.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#ifdef MEM_IS_CHECKED
#include <sanitizer/asan_interface.h>
#define FORBID(at, size) ASAN_POISON_MEMORY_REGION(at, size)
#define ALLOW(at, size)  ASAN_UNPOISON_MEMORY_REGION(at, size)
#else
#define FORBID(at, size) ((void)(at), (void)(size))
#define ALLOW(at, size)  ((void)(at), (void)(size))
#endif

enum { CHUNK_SIZE = 16 * 1024, CHUNK_START = 16, INDEX_MAX = 1 << POOL_INDEX_BITS, WORD = 64 };

/* ---- chunks with room ---- */

static void room_add(struct pool *p, uint32_t number)
{
    struct pool_chunk *c = &p->chunk[number];
    uint32_t *first = &p->room[c->item_size / POOL_GRAIN];

    c->prev = 0;
    c->next = *first;
    if (*first != 0) {
        p->chunk[*first].prev = number;
    }
    *first = number;
}

static void room_remove(struct pool *p, uint32_t number)
{
    const struct pool_chunk *c = &p->chunk[number];

    if (c->prev != 0) {
        p->chunk[c->prev].next = c->next;
    } else {
        p->room[c->item_size / POOL_GRAIN] = c->next;
    }
    if (c->next != 0) {
        p->chunk[c->next].prev = c->prev;
    }
}

static uint32_t number_new(struct pool *p)
{
    const uint32_t vacant = p->vacant;

    if (vacant != 0) {
        p->vacant = p->chunk[vacant].next;
        return vacant;
    }
    if (p->chunk_count == p->chunk_cap) {
        p->chunk_cap = p->chunk_cap == 0 ? CHUNK_START : p->chunk_cap * 2;
        p->chunk = mem_resize(p->chunk, p->chunk_cap * sizeof *p->chunk);
    }
    if (p->chunk_count == 0) {
        p->chunk[p->chunk_count++] = (struct pool_chunk){0}; // so that no handle is 0
    }
    ASSERT(p->chunk_count < UINT32_MAX >> POOL_INDEX_BITS);
    return p->chunk_count++;
}

static uint32_t chunk_new(struct pool *p, uint16_t item_size)
{
    const uint32_t number = number_new(p);
    const uint16_t fit = (uint16_t)(CHUNK_SIZE / item_size);
    struct pool_chunk *c = &p->chunk[number];

    *c = (struct pool_chunk){.item_size = item_size,
                             .cap = fit < INDEX_MAX ? fit : (uint16_t)INDEX_MAX};
    c->memory = mem_lines((size_t)c->cap * item_size); // records of a line or two are no more lines
    FORBID(c->memory, (size_t)c->cap * item_size);
    p->size += (size_t)c->cap * item_size;
    room_add(p, number);
    return number;
}

static void chunk_free(struct pool *p, uint32_t number)
{
    struct pool_chunk *c = &p->chunk[number];

    room_remove(p, number);
    p->size -= (size_t)c->cap * c->item_size;
    ALLOW(c->memory, (size_t)c->cap * c->item_size);
    mem_free(c->memory);
    *c = (struct pool_chunk){.next = p->vacant};
    p->vacant = number;
}

/* ---- records ---- */

void *pool_take(struct pool *p, size_t size, uint32_t *handle)
{
    const uint16_t item_size =
        (uint16_t)((size + POOL_GRAIN - 1) / POOL_GRAIN * POOL_GRAIN); // of its class

    ASSERT(size > 0 && size <= POOL_ITEM_MAX);
    const uint32_t first = p->room[item_size / POOL_GRAIN];
    const uint32_t number = first != 0 ? first : chunk_new(p, item_size);
    struct pool_chunk *c = &p->chunk[number];
    const uint16_t index = c->free != 0 ? (uint16_t)(c->free - 1) : c->fresh++;
    uint8_t *at = c->memory + (size_t)index * item_size;

    ALLOW(at, item_size);
    if (c->free != 0) {
        memcpy(&c->free, at, sizeof c->free);
    }
    memset(at, 0, item_size);
    if (c->used == 0 && p->empty[item_size / POOL_GRAIN] == number) {
        p->empty[item_size / POOL_GRAIN] = 0;
    }
    c->taken[index / WORD] |= 1ull << index % WORD;
    c->used++;
    p->count++;
    if (c->used == c->cap) {
        room_remove(p, number);
    }
    *handle = number << POOL_INDEX_BITS | index;
    return at;
}

void pool_give(struct pool *p, uint32_t handle)
{
    const uint32_t number = handle >> POOL_INDEX_BITS;
    struct pool_chunk *c = &p->chunk[number];
    uint8_t *at = pool_at(p, handle);
    const uint32_t index = handle & (INDEX_MAX - 1);

    ASSERT((c->taken[index / WORD] >> index % WORD & 1) != 0);
    c->taken[index / WORD] &= ~(1ull << index % WORD);
    memcpy(at, &c->free, sizeof c->free);
    FORBID(at, c->item_size);
    c->free = (uint16_t)(index + 1);
    if (c->used == c->cap) {
        room_add(p, number);
    }
    c->used--;
    p->count--;
    // One is kept, lest it be freed and made by turns.
    uint32_t *empty = &p->empty[c->item_size / POOL_GRAIN];
    if (c->used == 0 && *empty == 0) {
        *empty = number;
    } else if (c->used == 0) {
        chunk_free(p, number);
    }
}

uint32_t pool_next(const struct pool *p, uint32_t handle)
{
    const uint32_t end = p->chunk_count << POOL_INDEX_BITS;

    for (uint32_t at = handle + 1; at < end;) {
        const uint32_t index = at & (INDEX_MAX - 1);
        const uint64_t word = p->chunk[at >> POOL_INDEX_BITS].taken[index / WORD] >> index % WORD;

        if ((word & 1) != 0) {
            return at;
        }
        at = word == 0 ? (at | (WORD - 1)) + 1 : at + 1;
    }
    return 0;
}

void pool_fini(struct pool *p)
{
    for (uint32_t i = 0; i < p->chunk_count; i++) {
        struct pool_chunk *c = &p->chunk[i];

        if (c->memory != NULL) {
            ALLOW(c->memory, (size_t)c->cap * c->item_size);
            mem_free(c->memory);
        }
    }
    mem_free(p->chunk);
    *p = (struct pool){0};
}
