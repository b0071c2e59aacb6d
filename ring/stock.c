/* SPDX-License-Identifier: Apache-2.0
 *
 * One array of keys, a run of it for each node.
 */
#include "ring/stock.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

int stock_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

void stock_make(struct stock *s, const struct pieces *pieces, uint32_t from)
{
    size_t at = 0;

    mem_free(s->key);
    *s = (struct stock){
        .pieces = pieces, .from = from, .key = mem_new(pieces->count, sizeof *s->key)};
    for (size_t i = 0; i < pieces->count; i++) {
        s->of[pieces->piece[i].owner].count += !pieces->piece[i].fixed;
    }
    for (size_t slot = 0; slot <= RING_NODES_MAX; slot++) {
        s->of[slot].at = at;
        at += s->of[slot].count;
        s->of[slot].count = 0;
    }
    for (uint32_t i = 0; i < pieces->count; i++) {
        struct stock_run *run = &s->of[pieces->piece[i].owner];

        if (!pieces->piece[i].fixed) {
            s->key[run->at + run->count++] = stock_key(pieces, from, i);
        }
    }
}

void stock_fini(struct stock *s)
{
    mem_free(s->key);
}

uint64_t *stock_of(struct stock *s, uint32_t slot)
{
    struct stock_run *run = &s->of[slot];

    if (!run->sorted && run->count > 0) {
        qsort(s->key + run->at, run->count, sizeof *s->key, stock_compare);
    }
    run->sorted = true;
    return s->key + run->at;
}

size_t stock_at_most(struct stock *s, uint32_t slot, int64_t size)
{
    const uint64_t *key = stock_of(s, slot);
    size_t low = 0;
    size_t high = s->of[slot].count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (stock_size(key[middle]) <= size) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t stock_take(struct stock *s, uint32_t slot, size_t place)
{
    uint64_t *key = stock_of(s, slot);
    uint32_t index = stock_index(key[place]);

    s->of[slot].count--;
    memmove(key + place, key + place + 1, (s->of[slot].count - place) * sizeof *key);
    return index;
}

void stock_put(struct stock *s, uint32_t slot, uint32_t index)
{
    uint64_t *key = stock_of(s, slot);
    uint64_t new = stock_key(s->pieces, s->from, index);
    size_t place = s->of[slot].count++;

    // It was here before with a greater size, so there is room.
    for (; place > 0 && key[place - 1] > new; place--) {
        key[place] = key[place - 1];
    }
    key[place] = new;
}
