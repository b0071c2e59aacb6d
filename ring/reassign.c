/* SPDX-License-Identifier: Apache-2.0
 *
 * Who gets what a dead node leaves: whole vnodes, largest first, each to whom
 * lacks most of its share. No cuts: they can wait for the planner, who sees to
 * what is left uneven; the ids that nobody serves can't.
 */
#include "ring/plan.h"

#include "base/mem.h"
#include "ring/ranking.h"

#include <stdlib.h>

enum { SLOTS = RING_NODES_MAX + 1, BITS = 20, MASK = (1 << BITS) - 1 };

/* size << 40 | (from, descending) << 20 | index: the last is the largest, at the lowest cell. */
static uint64_t key_of(const struct ring *r, size_t index)
{
    const struct ring_vnode *v = &r->vnode[index];

    return (uint64_t)(ring_end(r, v) - v->from) << (2 * BITS) | (uint64_t)(MASK - v->from) << BITS |
           index;
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* How many cells each node owns, by slot. */
static int64_t *count_cells(const struct ring *r)
{
    int64_t *own = mem_new(SLOTS, sizeof *own);

    for (const struct ring_vnode *v = r->vnode; v < r->vnode + r->vnode_count; v++) {
        own[v->owner] += ring_end(r, v) - v->from;
    }
    return own;
}

/* Everyone who stays, by what he lacks of his share. */
static void rank(struct ranking *need, const struct ring *r, const struct plan_node *nodes,
                 size_t count)
{
    int64_t *own = count_cells(r);
    uint64_t weight = 0;

    for (size_t i = 0; i < count; i++) {
        weight += nodes[i].leaving ? 0 : nodes[i].weight;
    }
    for (size_t i = 0; i < count; i++) {
        const struct plan_node *n = &nodes[i];

        if (!n->leaving) {
            const uint64_t share = ((uint64_t)n->weight << r->grid) / weight;

            ranking_put(need, n->slot, (int64_t)share - own[n->slot]);
        }
    }
    mem_free(own);
}

struct ring_op *plan_reassign(const struct ring *ring, const struct plan_node *nodes,
                              size_t node_count, uint16_t dead, size_t *count)
{
    uint64_t *key = mem_new(ring->vnode_count, sizeof *key);
    struct ring_op *moves = NULL;
    struct ranking need;
    size_t left = 0;

    *count = 0;
    ranking_init(&need, SLOTS);
    rank(&need, ring, nodes, node_count);
    ranking_remove(&need, dead);
    for (size_t i = 0; need.count > 0 && i < ring->vnode_count; i++) {
        if (ring->vnode[i].owner == dead) {
            key[left++] = key_of(ring, i);
        }
    }
    qsort(key, left, sizeof *key, by_key);
    if (left > 0) {
        moves = mem_new(left, sizeof *moves);
    }
    while (left > 0) {
        const uint64_t largest = key[--left];
        const uint32_t to = ranking_top(&need);

        moves[(*count)++] = (struct ring_op){
            .kind = RING_MOVE,
            .vnode = ring->vnode[largest & MASK].id,
            .from = dead,
            .to = (uint16_t)to,
        };
        ranking_put(&need, to, need.key[to] - (int64_t)(largest >> (2 * BITS)));
    }
    ranking_fini(&need);
    mem_free(key);
    return moves;
}
