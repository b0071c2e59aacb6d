/* SPDX-License-Identifier: Apache-2.0
 *
 * Who gets what a dead node leaves: whole vnodes, largest first, each to whom
 * lacks most of its share; to those of its zone until they have theirs. No cuts: they can wait for
 * the planner, who sees to what is left uneven; the ids that nobody serves can't.
 */
#include "ring/plan.h"

#include "base/mem.h"
#include "base/mutant.h"
#include "ring/ranking.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = RING_NODES_MAX + 1, BITS = 20, MASK = (1 << BITS) - 1, NEAR = 2 * RING_CELLS_MAX };

/* One segment of the ring. */
struct stretch {
    const struct ring *ring;
    const struct ring_segment *segment; /* NULL = the default cells */
    uint32_t from;
    uint32_t end;
    uint32_t open; /* cells up to here count: of a set of daemons only those with an actor */
};

static struct stretch stretch_of(const struct ring *r, const struct ring_segment *s)
{
    struct stretch t = {.ring = r, .segment = s, .end = (uint32_t)1 << r->grid};

    if (s != NULL) {
        t.from = s->from;
        t.end = ring_segment_end(s);
    }
    t.open = s != NULL && s->policy == RING_SPREAD ? s->from + s->open : t.end;
    return t;
}

static bool lies_in(const struct stretch *t, const struct ring_vnode *v)
{
    return v->from >= t->from && v->from < t->end;
}

/* What a vnode is worth: its cells that count. */
static uint32_t size_in(const struct stretch *t, const struct ring_vnode *v)
{
    const uint32_t end = ring_end(t->ring, v) < t->open ? ring_end(t->ring, v) : t->open;

    return end > v->from ? end - v->from : 0;
}

/* size << 40 | (from, descending) << 20 | index: the last is the largest, at the lowest cell. */
static uint64_t key_of(const struct stretch *t, size_t index)
{
    const struct ring_vnode *v = &t->ring->vnode[index];

    return (uint64_t)size_in(t, v) << (2 * BITS) | (uint64_t)(MASK - (v->from - t->from)) << BITS |
           index;
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* How many cells each node owns, by slot. */
static int64_t *count_cells(const struct stretch *t)
{
    int64_t *own = mem_new(SLOTS, sizeof *own);
    const struct ring *r = t->ring;

    for (const struct ring_vnode *v = r->vnode; v < r->vnode + r->vnode_count; v++) {
        own[v->owner] += lies_in(t, v) ? size_in(t, v) : 0;
    }
    return own;
}

static bool may_get(const struct stretch *t, const struct plan_node *n)
{
    return !n->leaving && plan_fits(n, t->segment);
}

static const char *zone_of(const struct plan_node *n)
{
    return n->zone == NULL ? "" : n->zone;
}

/* Who is of the dead node's zone; nobody if it had none. By slot; returns owned. */
static bool *find_neighbours(const struct plan_node *nodes, size_t count, uint16_t dead)
{
    bool *near = mem_new(SLOTS, sizeof *near);
    const char *zone = "";

    for (size_t i = 0; i < count; i++) {
        zone = nodes[i].slot == dead ? zone_of(&nodes[i]) : zone;
    }
    for (size_t i = 0; i < count; i++) {
        near[nodes[i].slot] = zone[0] != '\0' && strcmp(zone_of(&nodes[i]), zone) == 0;
    }
    return near;
}

/* The key of who lacks so much: a neighbour that lacks anything comes before all others. */
static int64_t key_of_lack(bool is_near, int64_t lack)
{
    return is_near && lack > 0 ? lack + NEAR : lack;
}

static int64_t lack_of_key(int64_t key)
{
    return key > NEAR ? key - NEAR : key;
}

static bool is_older(const struct plan_node *a, const struct plan_node *b)
{
    return (a->incarnation < b->incarnation) != mutant(M_YOUNGEST);
}

bool plan_fits(const struct plan_node *node, const struct ring_segment *segment)
{
    const char *role = segment == NULL ? "" : segment->role;

    return mutant(M_ROLE) || (strcmp(node->role == NULL ? "" : node->role, role) == 0 &&
                              (node->kinds == NULL || ring_kinds_fit(node->kinds, segment)));
}

static uint64_t part_of(const struct plan_node *n, const struct ring_segment *segment)
{
    if (segment == NULL || segment->policy != RING_HOSTS || segment->kind_count == 0 ||
        mutant(M_CANARYWHOLE)) {
        return RING_PART_WHOLE;
    }
    for (size_t i = 0; i < n->part_count && !n->untold; i++) {
        if (n->parts[i].kind == segment->kind[0]) {
            return n->parts[i].permille;
        }
    }
    return n->untold ? 0 : RING_PART_WHOLE;
}

uint64_t *plan_weights(const struct plan_view *view, const struct ring_segment *segment,
                       uint64_t *all)
{
    uint64_t *weight = mem_new(view->node_count + 1, sizeof *weight);

    *all = 0;
    for (int whole = 0; whole < 2 && *all == 0; whole++) { // who takes no part does, if all do so
        for (size_t i = 0; i < view->node_count; i++) {
            const struct plan_node *n = &view->nodes[i];
            const uint64_t part = whole ? RING_PART_WHOLE : part_of(n, segment);

            weight[i] = n->leaving || !plan_fits(n, segment) ? 0 : n->weight * part;
            *all += weight[i];
        }
    }
    return weight;
}

const struct plan_node *plan_oldest(const struct plan_node *nodes, size_t node_count,
                                    const struct ring_segment *segment)
{
    const struct plan_node *oldest = NULL;

    for (size_t i = 0; i < node_count; i++) {
        if ((!nodes[i].leaving || mutant(M_OLDESTDRAINS)) && plan_fits(&nodes[i], segment) &&
            (oldest == NULL || is_older(&nodes[i], oldest))) {
            oldest = &nodes[i];
        }
    }
    return oldest;
}

/* Everyone of its role who stays, by what he lacks of his share. */
static void rank(struct ranking *need, const struct stretch *t, const struct plan_view *view,
                 const bool *near)
{
    int64_t *own = count_cells(t);
    uint64_t all;
    uint64_t *weight = plan_weights(view, t->segment, &all);

    for (size_t i = 0; i < view->node_count; i++) {
        const struct plan_node *n = &view->nodes[i];

        if (weight[i] > 0) {
            const uint64_t share = weight[i] * (t->open - t->from) / all;

            ranking_put(need, n->slot, key_of_lack(near[n->slot], (int64_t)share - own[n->slot]));
        }
    }
    mem_free(weight);
    mem_free(own);
}

/* Of a singleton's role only the oldest. */
static void rank_oldest(struct ranking *need, const struct plan_node *nodes, size_t count)
{
    const struct plan_node *oldest = NULL;

    for (size_t i = 0; i < count; i++) {
        if (ranking_has(need, nodes[i].slot) && (oldest == NULL || is_older(&nodes[i], oldest))) {
            oldest = &nodes[i];
        }
    }
    while (need->count > 0) {
        ranking_remove(need, need->item[0]);
    }
    if (oldest != NULL) {
        ranking_put(need, oldest->slot, 0);
    }
}

/* The moves of one segment, behind those that are there. */
struct moves {
    struct ring_op *op; /* owned */
    size_t count;
    const bool *near; /* by slot: it is in the zone of who loses them */
};

/* True: it may get a vnode that is wished to be there. */
static bool is_taker(const struct plan_view *view, const struct stretch *t, uint16_t slot,
                     uint16_t dead)
{
    for (const struct plan_node *n = view->nodes; n < view->nodes + view->node_count; n++) {
        if (n->slot == slot && slot != dead) {
            return may_get(t, n);
        }
    }
    return false;
}

static void give_all(struct moves *moves, const struct stretch *t, struct ranking *need,
                     const struct plan_view *view, const struct plan_wishes *wishes, uint16_t dead)
{
    const struct ring *ring = t->ring;
    uint64_t *key = mem_new(ring->vnode_count, sizeof *key);
    size_t left = 0;

    for (size_t i = 0; need->count > 0 && i < ring->vnode_count; i++) {
        const struct ring_vnode *v = &ring->vnode[i];
        const struct plan_wish *w = plan_wish_in(wishes, v->from, v->from + 1);

        if (v->owner == dead && lies_in(t, v) &&
            (w == NULL || w->kind != PLAN_STAY || w->slot != dead)) {
            key[left++] = key_of(t, i);
        }
    }
    qsort(key, left, sizeof *key, by_key);
    if (left > 0) {
        moves->op = mem_resize(moves->op, (moves->count + left) * sizeof *moves->op);
    }
    while (left > 0) {
        const uint64_t largest = key[--left];
        const uint32_t from = ring->vnode[largest & MASK].from;
        const struct plan_wish *w = plan_wish_in(wishes, from, from + 1);
        const bool wished = w != NULL && w->kind == PLAN_AT && is_taker(view, t, w->slot, dead);
        const uint32_t to = wished ? w->slot : ranking_top(need);

        moves->op[moves->count++] = (struct ring_op){
            .kind = RING_MOVE,
            .vnode = ring->vnode[largest & MASK].id,
            .from = dead,
            .to = (uint16_t)to,
        };
        if (ranking_has(need, to)) { // of a singleton's role only the oldest is there
            const int64_t lack = lack_of_key(need->key[to]) - (int64_t)(largest >> (2 * BITS));

            ranking_put(need, to, key_of_lack(moves->near[to], lack));
        }
    }
    mem_free(key);
}

struct ring_op *plan_reassign(const struct plan_view *view, const struct plan_wishes *wishes,
                              uint16_t dead, size_t *count)
{
    bool *near = find_neighbours(view->nodes, view->node_count, dead);
    struct moves moves = {.near = near};

    for (size_t i = 0; i <= view->ring->segment_count; i++) {
        const struct ring_segment *s = i == 0 ? NULL : &view->ring->segment[i - 1];
        const struct stretch t = stretch_of(view->ring, s);
        struct ranking need;

        ranking_init(&need, SLOTS);
        rank(&need, &t, view, near);
        ranking_remove(&need, dead);
        if (s != NULL && s->policy == RING_OLDEST) {
            rank_oldest(&need, view->nodes, view->node_count);
        }
        give_all(&moves, &t, &need, view, wishes, dead);
        ranking_fini(&need);
    }
    mem_free(near);
    *count = moves.count;
    return moves.op;
}
