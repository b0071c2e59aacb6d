/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps libraft's allocations in a list for each replica, so that all of one
 * that is abandoned are freed.
 */
#include "raft/heap.h"

#include "base/assert.h"
#include "base/mem.h"

#include <raft.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* In front of each piece. Its size keeps the piece aligned for any type. */
struct heap_block {
    alignas(16) struct list_link link;
};

static struct heap nobody = {.blocks = LIST_INIT(nobody.blocks)};
static struct heap *current = &nobody;

static void *take(void *data, size_t size)
{
    ASSERT(size < SIZE_MAX - sizeof(struct heap_block));
    struct heap_block *block = malloc(sizeof *block + size);

    (void)data;
    ASSERT(block != NULL);
    list_push_back(&current->blocks, &block->link);
    return block + 1;
}

static struct heap_block *block_of(void *piece)
{
    return (struct heap_block *)piece - 1;
}

static void give(void *data, void *piece)
{
    (void)data;
    if (piece != NULL) {
        list_remove(&block_of(piece)->link);
        free(block_of(piece));
    }
}

static void *take_zeroed(void *data, size_t count, size_t size)
{
    ASSERT(size == 0 || count < SIZE_MAX / size);
    void *piece = take(data, count * size);

    memset(piece, 0, count * size);
    return piece;
}

static void *resize(void *data, void *piece, size_t size)
{
    if (piece == NULL) {
        return take(data, size);
    }
    ASSERT(size < SIZE_MAX - sizeof(struct heap_block));
    list_remove(&block_of(piece)->link);
    struct heap_block *block = realloc(block_of(piece), sizeof *block + size);
    ASSERT(block != NULL);
    list_push_back(&current->blocks, &block->link);
    return block + 1;
}

static void *take_aligned(void *data, size_t alignment, size_t size)
{
    ASSERT(alignment <= alignof(struct heap_block));
    return take(data, size);
}

static void give_aligned(void *data, size_t alignment, void *piece)
{
    (void)alignment;
    give(data, piece);
}

static struct raft_heap hooks = {
    .malloc = take,
    .free = give,
    .calloc = take_zeroed,
    .realloc = resize,
    .aligned_alloc = take_aligned,
    .aligned_free = give_aligned,
};

void heap_init(struct heap *heap)
{
    list_init(&heap->blocks);
    raft_heap_set(&hooks);
}

struct heap *heap_enter(struct heap *heap)
{
    struct heap *before = current;

    current = heap != NULL ? heap : &nobody;
    return before;
}

void heap_abandon(struct heap *heap)
{
    struct list_link *link = list_front(&heap->blocks);

    while (link != NULL) {
        struct list_link *next = list_next(&heap->blocks, link);
        free(CONTAINER_OF(link, struct heap_block, link));
        link = next;
    }
    list_init(&heap->blocks);
}
