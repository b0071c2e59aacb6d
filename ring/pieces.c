/* SPDX-License-Identifier: Apache-2.0
 *
 * The working copy of a plan: cuts, gives and joins vnodes and writes down each
 * step.
 */
#include "ring/pieces.h"

#include "base/assert.h"
#include "base/mem.h"
#include "ring/ranking.h"

#include <stdlib.h>

#define NO_PIECE UINT32_MAX

/* Of one plan: each is a transaction, and all go into few messages. */
enum { PARTS_MAX = 1024 };

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

/* `owner` is whose it is before this plan moves anything: that is when it is cut. */
static uint32_t cut(struct pieces *p, uint32_t index, uint32_t size, uint16_t owner)
{
    uint32_t right = (uint32_t)p->count;
    struct piece *left;

    if (p->count == p->cap) {
        p->cap *= 2;
        p->piece = mem_resize(p->piece, p->cap * sizeof *p->piece);
    }
    left = &p->piece[index];
    ASSERT(size > 0 && size < left->size);
    left->size -= size;
    p->count++;
    p->piece[right] = (struct piece){.id = lowest_free_id(p),
                                     .from = left->from + left->size,
                                     .size = size,
                                     .owner = owner,
                                     .apart = left->apart,
                                     .fixed = left->fixed};
    p->used[p->piece[right].id] = 1;
    steps_add(&p->splits,
              (struct step){.op = {.kind = RING_SPLIT,
                                   .vnode = left->id,
                                   .other = p->piece[right].id,
                                   .at = p->piece[right].from},
                            .source = owner,
                            .target = owner});
    return right;
}

uint32_t pieces_cut(struct pieces *p, uint32_t index, uint32_t size)
{
    ASSERT(p->piece[index].move == 0);
    return cut(p, index, size, p->piece[index].owner);
}

/* ---- wishes ---- */

/* From the right, so that each cut makes a small vnode of a large one, which costs what it has. */
static void set_apart(struct pieces *p, uint32_t index, const struct plan_wishes *wishes,
                      pieces_at *at, void *context)
{
    const uint32_t from = p->piece[index].from;
    uint32_t end = from + p->piece[index].size;
    const struct plan_wish *first = plan_wish_in(wishes, from, end);
    size_t left = 0;

    while (first != NULL && first + left < wishes->wish + wishes->count && first[left].from < end) {
        left++;
    }
    for (; left > 0; left--) {
        const struct plan_wish *w = &first[left - 1];
        uint32_t wished = index;

        if (w->to < end) {
            (void)pieces_cut(p, index, end - w->to);
            end = w->to;
        }
        if (w->from > from) {
            wished = pieces_cut(p, index, end - w->from);
            end = w->from;
        }
        p->piece[wished].apart = true;
        at(context, wished, w);
    }
}

void pieces_set_apart(struct pieces *p, const struct plan_wishes *wishes, pieces_at *at,
                      void *context)
{
    const uint32_t whole = (uint32_t)p->count;

    for (uint32_t i = 0; i < whole; i++) {
        set_apart(p, i, wishes, at, context);
    }
}

/* The MOVE of a piece to `target` is the next step. */
static void add_move(struct pieces *p, struct piece *piece, uint16_t target)
{
    steps_add(&p->moves,
              (struct step){
                  .op = {.kind = RING_MOVE, .vnode = piece->id, .from = piece->owner, .to = target},
                  .source = piece->owner,
                  .target = target,
                  .cells = piece->size});
    piece->owner = target;
    piece->move = (uint32_t)p->moves.count;
}

void pieces_give(struct pieces *p, uint32_t index, uint16_t target)
{
    struct piece *piece = &p->piece[index];

    ASSERT(piece->move == 0 && piece->owner != target);
    p->moved_cells += piece->size;
    add_move(p, piece, target);
}

/* ---- slicing ---- */

/* In how many parts a piece moves, each of at most `scale` times what its source should give at a
 * time. */
static uint32_t part_count(const struct pieces *p, const struct piece *piece, uint64_t scale,
                           const uint32_t *cells_of)
{
    const uint16_t source = piece->move == 0 ? 0 : p->moves.step[piece->move - 1].source;
    const uint64_t most = cells_of[source] * scale;

    return piece->move == 0 || most == 0 ? 1 : (uint32_t)((piece->size + most - 1) / most);
}

/* By what power of two to exceed what is wished for, so that the parts are not too many. */
static uint64_t scale_of(const struct pieces *p, const uint32_t *cells_of)
{
    for (uint64_t scale = 1;; scale *= 2) {
        uint64_t parts = p->parts;

        for (uint32_t i = 0; i < p->count; i++) {
            parts += part_count(p, &p->piece[i], scale, cells_of) - 1;
        }
        if (parts <= PARTS_MAX || parts == p->parts) {
            return scale;
        }
    }
}

/* Cut the last of `count` parts off again and again. */
static void slice(struct pieces *p, uint32_t index, uint32_t count)
{
    const struct step move = p->moves.step[p->piece[index].move - 1];

    for (; count > 1; count--) {
        const uint32_t right = cut(p, index, p->piece[index].size / count, move.source);

        p->piece[right].part = true;
        add_move(p, &p->piece[right], move.target);
        p->parts++;
    }
    p->moves.step[p->piece[index].move - 1].cells = p->piece[index].size;
}

void pieces_slice(struct pieces *p, const uint32_t *cells_of)
{
    const uint64_t scale = scale_of(p, cells_of);
    const uint32_t whole = (uint32_t)p->count;

    for (uint32_t i = 0; i < whole; i++) {
        const uint32_t count = part_count(p, &p->piece[i], scale, cells_of);

        if (count > 1) {
            slice(p, i, count);
        }
    }
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

    if (r != NULL && l->owner == r->owner && !l->apart && !r->apart &&
        l->size + r->size <= c->most) {
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

/* MERGE `left` and its right neighbour. */
static void merge(struct pieces *p, struct chain *c, uint32_t left)
{
    const struct piece *l = &c->piece[left];

    steps_add(&p->merges,
              (struct step){
                  .op = {.kind = RING_MERGE, .vnode = l->id, .other = c->piece[c->next[left]].id},
                  .source = l->owner,
                  .target = l->owner});
    join(c, left);
}

void pieces_join(struct pieces *p, size_t enough, uint32_t most)
{
    struct chain c = {.piece = p->piece, .most = most};
    size_t left = p->count;
    bool parts = false;

    for (size_t i = 0; i < p->count; i++) {
        left -= p->piece[i].part || p->piece[i].apart;
        parts = parts || p->piece[i].part;
    }
    if (!parts && left <= enough) {
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
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->piece[i].part) {
            merge(p, &c, c.last[i]);
        }
    }
    for (; left > enough && c.pair.count > 0; left--) {
        merge(p, &c, ranking_top(&c.pair));
    }
    ranking_fini(&c.pair);
    mem_free(c.next);
    mem_free(c.last);
}
