/* SPDX-License-Identifier: Apache-2.0
 *
 * The strategy of `--balance load`: nodes share what the vnodes cost. In this order, for each
 * segment that is hashed:
 *
 *     wishes   as by weight
 *     grow     as by weight
 *     cut      SPLIT a vnode of more than a quarter of a share where that parts its cost
 *     empty    leaving nodes give everything, what costs most first, to whom lacks most
 *     welcome  nodes that have nearly nothing get their share, from whom has most
 *     correct  nodes that have too much give to whom has least: few vnodes at a time
 *     slice, join   as by weight
 *
 * Costs and shares are parts of COST_ALL. An nth of it is spread over the cells, so that a vnode
 * without load counts, too: it has actors that only live, and may be asked any time.
 */
#include "ring/plan.h"

#include "base/mem.h"
#include "ring/planner.h"

#include <stdlib.h>

enum {
    SLOTS = RING_NODES_MAX + 1,
    COST_ALL = 1 << 30,
    CELLS_PART = 32,       /* of COST_ALL: so much is the cells' */
    SEGMENT_PART = 8,      /* a segment of less than that of all costs is not worth a move */
    BEGIN_PERMILLE = 1100, /* of its share: a node with more gives … */
    END_PERMILLE = 1050,   /* … until it has no more than that, and nobody gets more */
    CUT_PART = 4,          /* a vnode of more than that of a share is cut … */
    CUT_LEAST = 8,         /* … if the smaller part has at least that of its cost … */
    CUTS_MAX = 32,         /* … and of a segment so many in one plan */
    WORTH_PART = 512,      /* a vnode of less than that of a share is not worth a move */
    HOT_PART = 16,         /* a vnode of more than that of a share is not joined with others */
};

struct balancer {
    struct planner *p;
    const struct plan_loads *loads; /* borrowed */
    int64_t *load;                  /* owned; by piece, in the reports' unit; then its cost */
    uint64_t all;                   /* the segment's, in the reports' unit */
    bool known;                     /* enough of the load, to go by it */
    uint32_t *sorted;     /* owned; pieces by owner, those that cost most first, as of … */
    size_t at[SLOTS + 1]; /* … before the first was given: slot -> place of its first */
};

static const struct plan_load *load_of(const struct plan_loads *loads, uint32_t vnode)
{
    return vnode < loads->of_count ? &loads->of[vnode] : NULL;
}

/* The vnode of the ring that the piece is, or was cut off. */
static const struct ring_vnode *vnode_of(const struct balancer *b, const struct piece *piece)
{
    return ring_find(b->p->ring, ring_hit_vnode(b->p->ring->cell[piece->from]));
}

static bool rests(const struct balancer *b, const struct piece *piece)
{
    const struct plan_load *l = load_of(b->loads, vnode_of(b, piece)->id);

    return l != NULL && l->rests;
}

/* ---- what each costs ---- */

static void read_loads(struct balancer *b)
{
    const struct planner *p = b->p;
    uint64_t everywhere = 0;

    for (size_t i = 0; i < b->loads->of_count; i++) {
        everywhere += b->loads->of[i].cost;
    }
    b->all = 0;
    b->load = mem_new(p->pieces->count + CUTS_MAX, sizeof *b->load);
    for (size_t i = 0; i < p->pieces->count; i++) {
        const struct piece *piece = &p->pieces->piece[i];
        const struct ring_vnode *v = vnode_of(b, piece);
        const struct plan_load *l = load_of(b->loads, v->id);

        if (l != NULL) { // of what this plan cuts, each cell has the same part
            b->load[i] = (int64_t)l->cost * piece->size / (ring_end(p->ring, v) - v->from);
            b->all += (uint64_t)b->load[i];
        }
    }
    b->known = b->all > 0 && b->all >= everywhere / SEGMENT_PART;
}

/* Where to cut the piece, or 0: it costs little enough, or that would not part its cost. */
static uint32_t find_cut(const struct balancer *b, uint32_t index)
{
    const struct planner *p = b->p;
    const struct piece *piece = &p->pieces->piece[index];
    const struct ring_vnode *v = vnode_of(b, piece);
    const struct plan_load *l = load_of(b->loads, v->id);
    const struct plan_share *s = &p->share[piece->owner];
    const uint64_t share = b->all * s->weight / p->weight;

    if (l == NULL || !s->stays || piece->apart || piece->move != 0 || piece->from != v->from ||
        piece->from + piece->size != ring_end(p->ring, v) || l->cut <= piece->from ||
        l->cut >= piece->from + piece->size || l->left > l->cost) {
        return 0;
    }
    const uint32_t lesser = l->left < l->cost - l->left ? l->left : l->cost - l->left;
    return (uint64_t)l->cost > share / CUT_PART && lesser >= l->cost / CUT_LEAST ? l->cut : 0;
}

static void cut_hot(struct balancer *b)
{
    const size_t whole = b->p->pieces->count;
    uint32_t cuts = 0;

    for (uint32_t i = 0; i < whole && cuts < CUTS_MAX && b->known && b->loads->moves > 0; i++) {
        const uint32_t cut = find_cut(b, i);

        if (cut != 0) {
            const struct piece *piece = &b->p->pieces->piece[i];
            const uint32_t left = load_of(b->loads, piece->id)->left;
            const uint32_t right = pieces_cut(b->p->pieces, i, piece->from + piece->size - cut);

            b->load[right] = b->load[i] - left;
            b->load[i] = left;
            cuts++;
        }
    }
}

/* From loads to costs. */
static void weigh(struct balancer *b)
{
    const struct planner *p = b->p;
    const int64_t of_cells = b->known ? COST_ALL / CELLS_PART : COST_ALL;

    for (size_t i = 0; i < p->pieces->count; i++) {
        const int64_t size = p->pieces->piece[i].size;
        const int64_t load = b->known ? b->load[i] : 0;

        // A load has 32 bits, COST_ALL 30.
        b->load[i] = size * of_cells / p->cells +
                     load * (COST_ALL - of_cells) / (int64_t)(b->known ? b->all : 1);
    }
}

/* It is more than its node should have, and nobody's to take: the others share the rest. */
static bool is_alone_too_much(const struct balancer *b, const struct piece *piece, int64_t cost)
{
    const struct plan_share *s = &b->p->share[piece->owner];

    return s->stays && s->weight > 0 && cost > (int64_t)(COST_ALL * s->weight / b->p->weight);
}

static void set_shares(struct balancer *b)
{
    struct planner *p = b->p;
    int64_t all = 0;

    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        p->share[slot].own = p->share[slot].fixed = 0;
    }
    for (size_t i = 0; i < p->pieces->count; i++) {
        const struct piece *piece = &p->pieces->piece[i];
        struct plan_share *s = &p->share[piece->owner];

        s->own += b->load[i];
        s->fixed += piece->fixed || is_alone_too_much(b, piece, b->load[i]) ? b->load[i] : 0;
        all += b->load[i];
    }
    shares_set_targets(p->share, (uint64_t)all, p->weight);
}

/* ---- giving ---- */

static void hand(struct balancer *b, uint32_t index, uint32_t target)
{
    struct planner *p = b->p;

    p->share[p->pieces->piece[index].owner].own -= b->load[index];
    p->share[target].own += b->load[index];
    pieces_give(p->pieces, index, (uint16_t)target);
}

/* qsort() passes nothing on. */
struct by_owner {
    uint32_t index;
    uint16_t owner;
    int64_t cost;
};

static int by_owner(const void *a, const void *b)
{
    const struct by_owner *x = a;
    const struct by_owner *y = b;

    if (x->owner != y->owner) {
        return x->owner < y->owner ? -1 : 1;
    }
    if (x->cost != y->cost) {
        return x->cost > y->cost ? -1 : 1;
    }
    return (x->index > y->index) - (x->index < y->index);
}

static void sort(struct balancer *b)
{
    const struct pieces *pieces = b->p->pieces;
    struct by_owner *list = mem_new(pieces->count, sizeof *list);

    for (uint32_t i = 0; i < pieces->count; i++) {
        list[i] = (struct by_owner){i, pieces->piece[i].owner, b->load[i]};
        b->at[pieces->piece[i].owner + 1]++;
    }
    qsort(list, pieces->count, sizeof *list, by_owner);
    b->sorted = mem_new(pieces->count, sizeof *b->sorted);
    for (size_t i = 0; i < pieces->count; i++) {
        b->sorted[i] = list[i].index;
    }
    for (size_t slot = 0; slot < SLOTS; slot++) {
        b->at[slot + 1] += b->at[slot];
    }
    mem_free(list);
}

/* What may be given at a time. */
struct bounds {
    int64_t most;     /* at most that, if it can be; … */
    int64_t bearable; /* … else the least, if it is at most that */
    bool rested;      /* nothing that rests */
};

/* The piece of the source that costs most of those within bounds. UINT32_MAX: there is none. */
static uint32_t choose(const struct balancer *b, uint32_t source, struct bounds bounds)
{
    const struct planner *p = b->p;
    const int64_t worth = p->share[source].target / WORTH_PART;
    uint32_t found = UINT32_MAX;

    for (size_t i = b->at[source]; i < b->at[source + 1]; i++) {
        const uint32_t index = b->sorted[i];
        const struct piece *piece = &p->pieces->piece[index];

        if (piece->move != 0 || piece->fixed || b->load[index] > bounds.bearable ||
            b->load[index] < worth || (bounds.rested && rests(b, piece))) {
            continue;
        }
        found = index;
        if (b->load[index] <= bounds.most) {
            break;
        }
    }
    return found;
}

/* ---- empty ---- */

static void empty_one(struct balancer *b, uint32_t slot)
{
    struct planner *p = b->p;

    for (size_t i = b->at[slot]; i < b->at[slot + 1]; i++) {
        const struct piece *piece = &p->pieces->piece[b->sorted[i]];

        if (piece->move == 0 && !piece->fixed) {
            const uint32_t target = planner_neediest(p, slot);

            if (target == RING_NODE_NONE) {
                return; // nobody may take what it has
            }
            hand(b, b->sorted[i], target);
            ranking_put(&p->need, target, -planner_excess(p, target));
        }
    }
}

static void empty(struct balancer *b)
{
    struct planner *p = b->p;

    for (uint32_t slot = 1; slot < SLOTS; slot++) {
        if (p->share[slot].stays) {
            ranking_put(&p->need, slot, -planner_excess(p, slot));
        }
    }
    for (uint32_t slot = 0; slot < SLOTS; slot++) { // nobody's vnodes are those of slot 0
        if (!p->share[slot].stays) {
            empty_one(b, slot);
        }
    }
    while (p->need.count > 0) {
        ranking_remove(&p->need, ranking_top(&p->need));
    }
}

/* ---- welcome ---- */

/* It came just now, or got all that it has by chance: less than half of its share of the costs, and
 * less than a quarter of that of the cells. */
static bool is_new(const struct balancer *b, uint32_t slot, int64_t cells)
{
    const struct planner *p = b->p;
    const struct plan_share *s = &p->share[slot];

    return s->stays && s->own * 2 < s->target &&
           cells * 4 < (int64_t)((uint64_t)p->cells * s->weight / p->weight);
}

static uint32_t richest(const struct balancer *b, const bool *but)
{
    uint32_t found = RING_NODE_NONE;

    for (uint32_t slot = 1; slot < SLOTS; slot++) {
        if (b->p->share[slot].stays && !but[slot] &&
            (found == RING_NODE_NONE || planner_excess(b->p, slot) > planner_excess(b->p, found))) {
            found = slot;
        }
    }
    return found;
}

static void welcome(struct balancer *b)
{
    struct planner *p = b->p;
    const int64_t unit = COST_ALL / p->wanted; // what a vnode costs on the average
    int64_t cells[SLOTS] = {0};
    bool gives_nothing[SLOTS] = {false};

    for (size_t i = 0; i < p->pieces->count; i++) {
        cells[p->pieces->piece[i].owner] += p->pieces->piece[i].size;
    }
    for (uint32_t slot = 1; slot < SLOTS; slot++) {
        gives_nothing[slot] = is_new(b, slot, cells[slot]);
        if (gives_nothing[slot]) {
            ranking_put(&p->need, slot, -planner_excess(p, slot));
        }
    }
    while (p->need.count > 0) {
        const uint32_t target = ranking_top(&p->need);
        const uint32_t source = richest(b, gives_nothing);
        const int64_t lack = -planner_excess(p, target);
        const int64_t over = source == RING_NODE_NONE ? 0 : planner_excess(p, source);

        if (source == RING_NODE_NONE || lack <= unit / 2 || over <= -unit) {
            ranking_remove(&p->need, target);
            continue;
        }
        // Neither a node that has too much of it, nor one that is left with too little.
        const int64_t most = lack < over + unit ? lack : over + unit;
        const uint32_t index = planner_may_give(p, source, target)
                                   ? choose(b, source, (struct bounds){most, most, false})
                                   : UINT32_MAX;
        if (index == UINT32_MAX) {
            gives_nothing[source] = true;
        } else {
            hand(b, index, target);
            ranking_put(&p->need, target, -planner_excess(p, target));
        }
    }
}

/* ---- correct ---- */

static int64_t permille(const struct plan_share *s)
{
    return s->target == 0 ? (s->own == 0 ? 0 : INT64_MAX) : s->own * 1000 / s->target;
}

static uint32_t fullest(const struct balancer *b, const bool *but)
{
    uint32_t found = RING_NODE_NONE;

    for (uint32_t slot = 1; slot < SLOTS; slot++) {
        const struct plan_share *s = &b->p->share[slot];

        if (s->stays && !but[slot] &&
            (found == RING_NODE_NONE || permille(s) > permille(&b->p->share[found]))) {
            found = slot;
        }
    }
    return found;
}

static uint32_t emptiest(const struct balancer *b)
{
    uint32_t found = RING_NODE_NONE;

    for (uint32_t slot = 1; slot < SLOTS; slot++) {
        const struct plan_share *s = &b->p->share[slot];

        if (s->stays && s->target > 0 &&
            (found == RING_NODE_NONE || permille(s) < permille(&b->p->share[found]))) {
            found = slot;
        }
    }
    return found;
}

static void correct(struct balancer *b)
{
    const struct planner *p = b->p;
    bool gives_nothing[SLOTS] = {false};
    uint32_t left = b->known ? b->loads->moves : 0;
    int64_t bound = BEGIN_PERMILLE;

    while (left > 0) {
        const uint32_t source = fullest(b, gives_nothing);
        const uint32_t target = emptiest(b);

        if (source == RING_NODE_NONE || target == RING_NODE_NONE || source == target ||
            permille(&p->share[source]) <= bound) {
            return;
        }
        const struct plan_share *to = &p->share[target];
        const int64_t room = to->target * END_PERMILLE / 1000 - to->own;
        const int64_t over =
            planner_excess(p, source) + p->share[source].target * (END_PERMILLE - 1000) / 1000;
        const uint32_t index =
            planner_may_give(p, source, target)
                ? choose(b, source, (struct bounds){over < room ? over : room, room, true})
                : UINT32_MAX;
        if (index == UINT32_MAX) {
            gives_nothing[source] = true;
            continue;
        }
        hand(b, index, target);
        bound = END_PERMILLE;
        left--;
    }
}

/* ---- all of it ---- */

static void keep_hot_apart(struct balancer *b)
{
    struct planner *p = b->p;

    for (size_t i = 0; i < p->pieces->count && b->known; i++) {
        struct piece *piece = &p->pieces->piece[i];
        const uint64_t share = COST_ALL * p->share[piece->owner].weight / p->weight;

        piece->apart = piece->apart || b->load[i] > (int64_t)(share / HOT_PART);
    }
}

static void balance_by_load(struct planner *p, const struct plan_loads *loads,
                            const struct plan_wishes *wishes, const struct plan_limits *limits)
{
    struct balancer *b = mem_new(1, sizeof *b);

    b->p = p;
    b->loads = loads;
    planner_fulfil(p, wishes);
    planner_grow(p, limits);
    read_loads(b);
    cut_hot(b);
    weigh(b);
    set_shares(b);
    sort(b);
    empty(b);
    welcome(b);
    correct(b);
    keep_hot_apart(b);
    planner_finish(p, loads);
    mem_free(b->load);
    mem_free(b->sorted);
    mem_free(b);
}

void plan_by_load(const struct plan_view *view, const struct plan_loads *loads,
                  const struct plan_wishes *wishes, const struct plan_limits *limits,
                  struct pieces *moves)
{
    planner_run(view, loads, wishes, limits, moves, balance_by_load);
}
