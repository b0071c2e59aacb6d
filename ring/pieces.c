/* SPDX-License-Identifier: Apache-2.0 */
#include "ring/pieces.h"

#include "base/assert.h"
#include "base/mem.h"
#include "ring/ranking.h"

#include <stdlib.h>

#define NO_PIECE UINT32_MAX

void pieces_init(struct pieces *p, const struct ring *r)
{
    *p = (struct pieces){.cap = r->vnode_count + 64};
    p->piece = mem_new(p->cap, sizeof *p->piece);
    // Every piece has a cell of its own: there is always a free id below the number of cells.
    p->used = mem_new(r->slot_count + r->cell_count, sizeof *p->used);
    for (size_t i = 0; i < r->vnode_count; i++) {
        p->used[r->vnode[i].id] = 1;
    }
}

void pieces_load(struct pieces *p, const struct ring *r, uint32_t from, uint32_t end)
{
    p->count = 0;
    for (const struct ring_vnode *v = r->vnode; v < r->vnode + r->vnode_count; v++) {
        if (v->from >= from && v->from < end) {
            p->piece[p->count++] = (struct piece){
                .id = v->id, .from = v->from, .size = ring_end(r, v) - v->from, .owner = v->owner};
        }
    }
}

void pieces_fini(struct pieces *p)
{
    mem_free(p->piece);
    mem_free(p->used);
    mem_free(p->splits.step);
    mem_free(p->moves.step);
    mem_free(p->merges.step);
    *p = (struct pieces){0};
}

static void steps_add(struct steps *s, struct step step)
{
    if (s->count == s->cap) {
        s->cap = s->cap == 0 ? 64 : 2 * s->cap;
        s->step = mem_resize(s->step, s->cap * sizeof *s->step);
    }
    s->step[s->count++] = step;
}

static uint32_t lowest_free_id(struct pieces *p)
{
    while (p->used[p->free] != 0) {
        p->free++;
    }
    return p->free;
}

uint32_t pieces_cut(struct pieces *p, uint32_t index, uint32_t size)
{
    uint32_t right = (uint32_t)p->count;
    struct piece *left;

    if (p->count == p->cap) {
        p->cap *= 2;
        p->piece = mem_resize(p->piece, p->cap * sizeof *p->piece);
    }
    left = &p->piece[index];
    ASSERT(size > 0 && size < left->size && !left->moved);
    left->size -= size;
    p->count++;
    p->piece[right] = (struct piece){.id = lowest_free_id(p),
                                     .from = left->from + left->size,
                                     .size = size,
                                     .owner = left->owner};
    p->used[p->piece[right].id] = 1;
    steps_add(&p->splits,
              (struct step){.op = {.kind = RING_SPLIT,
                                   .vnode = left->id,
                                   .other = p->piece[right].id,
                                   .at = p->piece[right].from},
                            .donor = left->owner,
                            .receiver = left->owner});
    return right;
}

void pieces_give(struct pieces *p, uint32_t index, uint16_t receiver)
{
    struct piece *piece = &p->piece[index];

    ASSERT(!piece->moved && piece->owner != receiver);
    steps_add(
        &p->moves,
        (struct step){
            .op = {.kind = RING_MOVE, .vnode = piece->id, .from = piece->owner, .to = receiver},
            .donor = piece->owner,
            .receiver = receiver});
    p->moved_cells += piece->size;
    piece->owner = receiver;
    piece->moved = true;
}

/* ---- joining ---- */

static int by_from(const void *a, const void *b)
{
    const struct piece *x = a;
    const struct piece *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

struct chain {
    struct piece *piece;
    uint32_t *next;      /* right neighbour or NO_PIECE */
    uint32_t *last;      /* left neighbour or NO_PIECE */
    struct ranking pair; /* left pieces of pairs that may be joined; smallest sum first */
    uint32_t most;
};

/* Put the pair of `left` and its right neighbour into the heap, if it may be joined. */
static void offer(struct chain *c, uint32_t left)
{
    const struct piece *l = &c->piece[left];
    const struct piece *r = c->next[left] == NO_PIECE ? NULL : &c->piece[c->next[left]];

    if (r != NULL && l->owner == r->owner && l->size + r->size <= c->most) {
        ranking_put(&c->pair, left, -(int64_t)(l->size + r->size));
    } else {
        ranking_remove(&c->pair, left);
    }
}

static void join(struct chain *c, uint32_t left)
{
    uint32_t right = c->next[left];

    ranking_remove(&c->pair, right);
    c->piece[left].size += c->piece[right].size;
    c->next[left] = c->next[right];
    if (c->next[left] != NO_PIECE) {
        c->last[c->next[left]] = left;
    }
    offer(c, left);
    if (c->last[left] != NO_PIECE) {
        offer(c, c->last[left]);
    }
}

void pieces_join(struct pieces *p, size_t enough, uint32_t most)
{
    struct chain c = {.piece = p->piece, .most = most};

    if (p->count <= enough) {
        return;
    }
    qsort(p->piece, p->count, sizeof *p->piece, by_from);
    ranking_init(&c.pair, p->count);
    c.next = mem_new(p->count, sizeof *c.next);
    c.last = mem_new(p->count, sizeof *c.last);
    for (uint32_t i = 0; i < p->count; i++) {
        c.next[i] = i + 1 < p->count ? i + 1 : NO_PIECE;
        c.last[i] = i > 0 ? i - 1 : NO_PIECE;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        offer(&c, i);
    }
    for (size_t left = p->count; left > enough && c.pair.count > 0; left--) {
        uint32_t at = ranking_top(&c.pair);
        const struct piece *l = &p->piece[at];

        steps_add(&p->merges,
                  (struct step){
                      .op = {.kind = RING_MERGE, .vnode = l->id, .other = p->piece[c.next[at]].id},
                      .donor = l->owner,
                      .receiver = l->owner});
        join(&c, at);
    }
    ranking_fini(&c.pair);
    mem_free(c.next);
    mem_free(c.last);
}
