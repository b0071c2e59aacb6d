/* SPDX-License-Identifier: Apache-2.0
 *
 * The default strategy: to each its share by weight. Its unit is one wanted
 * vnode, cells / wanted vnodes: a node of weight 1 holds V of them, so an excess
 * of half a unit is 0.5/V of its share. In this order:
 *
 *     wishes  SPLIT off and give what operators want to be at a node: it stays there
 *     grow    SPLIT the largest vnodes until there are V for each unit of weight
 *     empty   leaving nodes give everything, largest first, to whom lacks most
 *     fill    nodes that lack more than 1 unit take from whom has most
 *     level   nodes that have more than 0.85 units too many give to whom lacks most
 *     slice   SPLIT what moves from a source of many actors: a part a transaction
 *     join    MERGE what was sliced, and neighbours of one owner while there are
 *             more than 1.5 V
 *
 * Who may not take what another has (plan_limits.may) takes from others, and what nobody may take
 * stays, with a leaving node too.
 *
 * Whole vnodes move where one fits; a SPLIT for a fit is the last resort. The
 * gap between what starts a move (1 or 0.85 units) and what ends it (0.5) keeps
 * a balanced ring still: its nodes sit between -1 and +0.85 units, so no node
 * holds more than 1 + 0.85/V of its share, and no vnode moves without need. A canary may have a
 * share of less than a unit: of it a quarter counts as a unit, where that is less.
 */
#include "ring/plan.h"

#include "base/mem.h"
#include "ring/planner.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = RING_NODES_MAX + 1,
    SOURCES_TRIED = 16, /* for one move, before a worse fit is taken */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What a piece counts: of a set of daemons only open cells do, of which each is a piece. */
static int64_t size_of(const struct planner *p, const struct piece *piece)
{
    const bool spread = p->segment != NULL && p->segment->policy == RING_SPREAD;

    return spread ? piece->from - p->from < p->segment->open : piece->size;
}

static int64_t unit_of(const struct planner *p, uint32_t slot)
{
    const struct plan_share *s = &p->share[slot];

    return s->part ? least(p->unit, most(s->target / 4, 1)) : p->unit;
}

static int64_t close_enough(const struct planner *p, uint32_t slot)
{
    return unit_of(p, slot) / 2;
}

static int64_t too_much(const struct planner *p, uint32_t slot)
{
    return unit_of(p, slot) * 17 / 20;
}

uint32_t planner_neediest(const struct planner *p, uint32_t source)
{
    uint32_t best = ranking_top(&p->need);

    if (planner_may_give(p, source, best)) {
        return best;
    }
    best = RING_NODE_NONE;
    for (size_t i = 1; i < p->need.count; i++) {
        const uint32_t slot = p->need.item[i];
        const int64_t lack = p->need.key[slot];
        const bool better = best == RING_NODE_NONE || lack > p->need.key[best] ||
                            (lack == p->need.key[best] && best > slot);

        if (better && planner_may_give(p, source, slot)) {
            best = slot;
        }
    }
    return best;
}

/* ---- what everyone should have ---- */

/* The shares of one segment: only who fits it stays in it. False: nobody does. */
static bool read_segment(struct planner *p, const struct plan_view *view)
{
    uint64_t *weight = plan_weights(view, p->segment, &p->weight);

    memset(p->share, 0, sizeof p->share);
    for (size_t i = 0; i < view->node_count; i++) {
        const struct plan_node *n = &view->nodes[i];

        p->share[n->slot] =
            (struct plan_share){.stays = !n->leaving && plan_fits(n, p->segment),
                                .part = weight[i] < (uint64_t)n->weight * RING_PART_WHOLE,
                                .weight = weight[i]};
    }
    mem_free(weight);
    for (size_t i = 0; i < p->pieces->count; i++) {
        p->share[p->pieces->piece[i].owner].own += p->pieces->piece[i].size;
    }
    return p->weight > 0;
}

static void set_targets(struct planner *p)
{
    shares_set_targets(p->share, (uint64_t)p->cells, p->weight);
}

static int64_t cells_not_apart(const struct planner *p)
{
    int64_t cells = 0;

    for (size_t i = 0; i < p->pieces->count; i++) {
        cells += p->pieces->piece[i].apart ? 0 : p->pieces->piece[i].size;
    }
    return cells;
}

/* Four cells are the least that a vnode should have on average: else it can't be balanced. */
static void set_unit(struct planner *p, uint32_t vnodes_per_weight)
{
    uint64_t wanted = vnodes_per_weight * p->weight / RING_PART_WHOLE;
    uint64_t limit = (uint64_t)p->cells / 4;

    p->wanted = (int64_t)(wanted < limit ? wanted : limit);
    p->wanted = most(p->wanted, 1);
    p->unit = p->cells / p->wanted;
    p->wanted = most(p->wanted * cells_not_apart(p) / p->cells, 1);
}

/* ---- grow ---- */

static void grow(struct planner *p)
{
    struct ranking size;
    int64_t count = 0;

    for (size_t i = 0; i < p->pieces->count; i++) {
        count += !p->pieces->piece[i].apart;
    }
    if (count >= p->wanted) {
        return;
    }
    ranking_init(&size, p->pieces->count + (size_t)p->wanted);
    for (uint32_t i = 0; i < p->pieces->count; i++) {
        if (!p->pieces->piece[i].apart) {
            ranking_put(&size, i, p->pieces->piece[i].size);
        }
    }
    // There are about four cells for each wanted vnode; fewer where many are apart.
    while ((int64_t)size.count < p->wanted && size.count > 0 &&
           p->pieces->piece[ranking_top(&size)].size > 1) {
        uint32_t left = ranking_top(&size);
        uint32_t right = pieces_cut(p->pieces, left, p->pieces->piece[left].size / 2);

        ranking_put(&size, left, p->pieces->piece[left].size);
        ranking_put(&size, right, p->pieces->piece[right].size);
    }
    ranking_fini(&size);
}

void planner_grow(struct planner *p, const struct plan_limits *limits)
{
    set_unit(p, limits->vnodes_per_weight);
    grow(p);
}

/* ---- giving ---- */

static void refresh(struct planner *p, uint32_t slot)
{
    if (ranking_has(&p->rich, slot)) {
        ranking_put(&p->rich, slot, planner_excess(p, slot));
    }
    if (ranking_has(&p->need, slot)) {
        ranking_put(&p->need, slot, -planner_excess(p, slot));
    }
}

static void give(struct planner *p, uint32_t index, uint32_t target)
{
    uint32_t source = p->pieces->piece[index].owner;
    int64_t size = p->pieces->piece[index].size;

    pieces_give(p->pieces, index, (uint16_t)target);
    p->share[source].own -= size;
    p->share[target].own += size;
    refresh(p, source);
    refresh(p, target);
}

/* ---- wishes ---- */

static void fulfil(void *context, uint32_t index, const struct plan_wish *wish)
{
    struct planner *p = context;
    struct piece *piece = &p->pieces->piece[index];

    if (wish->kind == PLAN_AT && p->share[wish->slot].stays) {
        piece->fixed = true;
        if (piece->owner != wish->slot) {
            give(p, index, wish->slot);
        }
    }
    piece->fixed = piece->fixed || (wish->kind == PLAN_STAY && piece->owner == wish->slot);
}

void planner_fulfil(struct planner *p, const struct plan_wishes *wishes)
{
    pieces_set_apart(p->pieces, wishes, fulfil, p);
    for (size_t i = 0; i < p->pieces->count; i++) {
        const struct piece *piece = &p->pieces->piece[i];

        p->share[piece->owner].fixed += piece->fixed ? size_of(p, piece) : 0;
    }
}

/* Cut `size` cells off the source's largest vnode; returns the part's index. */
static uint32_t cut_largest(struct planner *p, uint32_t source, int64_t size)
{
    uint32_t largest = stock_take(&p->stock, source, stock_count(&p->stock, source) - 1);
    uint32_t part = pieces_cut(p->pieces, largest, (uint32_t)size);

    stock_put(&p->stock, source, largest);
    return part;
}

static bool has_more_than(struct planner *p, uint32_t source, int64_t size)
{
    size_t count = stock_count(&p->stock, source);

    return count > 0 && stock_size(stock_of(&p->stock, source)[count - 1]) > size;
}

static void all_who_stay(const struct planner *p, struct ranking *h, int sign)
{
    for (uint32_t slot = 1; slot < SLOTS; slot++) {
        if (p->share[slot].stays) {
            ranking_put(h, slot, sign * planner_excess(p, slot));
        }
    }
}

static void clear(struct ranking *h)
{
    while (h->count > 0) {
        ranking_remove(h, h->item[h->count - 1]);
    }
}

/* ---- empty ---- */

/* All that leaving nodes and nobody own, as sorted keys; returns how many. */
static size_t collect_leaving(const struct planner *p, uint64_t *key)
{
    size_t count = 0;

    for (uint32_t i = 0; i < p->pieces->count; i++) {
        if (!p->share[p->pieces->piece[i].owner].stays && !p->pieces->piece[i].fixed) {
            key[count++] = stock_key(p->pieces, p->from, i);
        }
    }
    qsort(key, count, sizeof *key, stock_compare);
    return count;
}

static void give_away(struct planner *p, uint32_t index)
{
    for (;;) {
        // While a leaving node has cells, someone who stays lacks at least one. But who lacks
        // nothing gets all that nobody else may take.
        uint32_t target = planner_neediest(p, p->pieces->piece[index].owner);
        if (target == RING_NODE_NONE) {
            return;
        }
        int64_t lack = -planner_excess(p, target);
        int64_t part = most(most(lack, close_enough(p, target)), 1);

        if (target != ranking_top(&p->need) ||
            p->pieces->piece[index].size <= lack + too_much(p, target)) {
            give(p, index, target);
            return;
        }
        give(p, pieces_cut(p->pieces, index, (uint32_t)part), target);
    }
}

static void empty(struct planner *p)
{
    uint64_t *key = mem_new(p->pieces->count, sizeof *key);
    size_t count = collect_leaving(p, key);

    all_who_stay(p, &p->need, -1);
    while (count > 0) {
        give_away(p, stock_index(key[--count]));
    }
    clear(&p->need);
    mem_free(key);
}

/* ---- fill ---- */

/* No move is worth it that leaves source and target further apart than before, that takes the
 * source more than a unit below its share, or the target more than half a unit above. */
static int64_t bearable(const struct planner *p, uint32_t source, uint32_t target)
{
    int64_t lack = -planner_excess(p, target);
    int64_t over = planner_excess(p, source);

    return least(least(lack + close_enough(p, target), over + unit_of(p, source)), over + lack - 1);
}

/* Better: what leaves neither far from its share. */
static int64_t fitting(const struct planner *p, uint32_t source, uint32_t target)
{
    int64_t lack = -planner_excess(p, target);
    int64_t over = most(planner_excess(p, source), 0);

    return least(least(over, lack) + close_enough(p, target), bearable(p, source, target));
}

/* The richest sources, out of the heap while one of them is chosen. */
struct choice {
    uint32_t source[SOURCES_TRIED];
    size_t count;
};

static bool give_fitting(struct planner *p, uint32_t source, uint32_t target)
{
    size_t fits = stock_at_most(&p->stock, source, fitting(p, source, target));

    if (fits == 0 && planner_excess(p, source) > too_much(p, source)) {
        // It has to give in any case: better now than in a second move to someone else.
        fits = stock_at_most(&p->stock, source, bearable(p, source, target)) > 0;
    }
    if (fits == 0) {
        return false;
    }
    give(p, stock_take(&p->stock, source, fits - 1), target);
    return true;
}

/* The smallest vnode that any of the sources can bear to give. */
static bool give_bearable(struct planner *p, const struct choice *c, uint32_t target)
{
    uint32_t best = RING_NODE_NONE;
    int64_t best_size = INT64_MAX;

    for (size_t i = 0; i < c->count; i++) {
        if (stock_at_most(&p->stock, c->source[i], bearable(p, c->source[i], target)) > 0) {
            int64_t size = stock_size(stock_of(&p->stock, c->source[i])[0]);

            best = size < best_size ? c->source[i] : best;
            best_size = least(size, best_size);
        }
    }
    if (best == RING_NODE_NONE) {
        return false;
    }
    give(p, stock_take(&p->stock, best, 0), target);
    return true;
}

static bool give_cut(struct planner *p, const struct choice *c, uint32_t target)
{
    int64_t lack = -planner_excess(p, target);

    for (size_t i = 0; i < c->count; i++) {
        uint32_t source = c->source[i];
        int64_t part = least(lack, most(planner_excess(p, source), close_enough(p, target)));

        part = least(part, bearable(p, source, target));
        if (part > 0 && has_more_than(p, source, part)) {
            give(p, cut_largest(p, source, part), target);
            return true;
        }
    }
    return false;
}

/* One move to `target`; false if nobody has anything for it. */
static bool feed(struct planner *p, uint32_t target)
{
    struct choice c = {.count = 0};
    bool given = false;

    while (!given && c.count < SOURCES_TRIED && p->rich.count > 0) {
        uint32_t source = ranking_top(&p->rich);

        ranking_remove(&p->rich, source);
        if (!planner_may_give(p, source, target)) {
            p->aside[p->aside_count++] = source;
            continue;
        }
        c.source[c.count++] = source;
        given = give_fitting(p, source, target);
    }
    given = given || give_bearable(p, &c, target) || give_cut(p, &c, target);
    for (size_t i = 0; i < c.count; i++) {
        ranking_put(&p->rich, c.source[i], planner_excess(p, c.source[i]));
    }
    while (p->aside_count > 0) {
        const uint32_t source = p->aside[--p->aside_count];

        ranking_put(&p->rich, source, planner_excess(p, source));
    }
    return given;
}

static void fill(struct planner *p)
{
    for (uint32_t slot = 1; slot < SLOTS; slot++) {
        if (p->share[slot].stays && -planner_excess(p, slot) > unit_of(p, slot)) {
            ranking_put(&p->need, slot, -planner_excess(p, slot));
        } else if (p->share[slot].stays) {
            ranking_put(&p->rich, slot, planner_excess(p, slot));
        }
    }
    while (p->need.count > 0) {
        uint32_t target = ranking_top(&p->need);

        if (-planner_excess(p, target) <= close_enough(p, target) || !feed(p, target)) {
            ranking_remove(&p->need, target);
        }
    }
    clear(&p->rich);
}

/* ---- level ---- */

/* One move from `source`; false if it has nothing left to give. */
static bool relieve(struct planner *p, uint32_t source)
{
    uint32_t target = planner_neediest(p, source);
    if (target == RING_NODE_NONE) {
        return false;
    }
    int64_t over = planner_excess(p, source);
    int64_t lack = -planner_excess(p, target);
    size_t fits = stock_at_most(&p->stock, source, least(over, lack + close_enough(p, target)));
    int64_t part = least(over, most(most(lack, close_enough(p, target)), 1));

    if (fits > 0 && stock_size(stock_of(&p->stock, source)[fits - 1]) < over + lack) {
        give(p, stock_take(&p->stock, source, fits - 1), target);
        return true;
    }
    if (part < over + lack && has_more_than(p, source, part)) {
        give(p, cut_largest(p, source, part), target);
        return true;
    }
    return false;
}

static void level(struct planner *p)
{
    all_who_stay(p, &p->need, -1);
    for (uint32_t slot = 1; slot < SLOTS; slot++) {
        if (p->share[slot].stays && planner_excess(p, slot) > too_much(p, slot)) {
            ranking_put(&p->rich, slot, planner_excess(p, slot));
        }
    }
    while (p->rich.count > 0) {
        uint32_t source = ranking_top(&p->rich);

        if (planner_excess(p, source) <= close_enough(p, source) || !relieve(p, source)) {
            ranking_remove(&p->rich, source);
        }
    }
    clear(&p->need);
}

/* ---- singletons and daemons ---- */

/* Of those that may take what `source` has; NULL = none. */
static const struct plan_node *oldest_for(const struct planner *p, const struct plan_view *view,
                                          uint32_t source)
{
    const struct plan_node *oldest = NULL;

    for (const struct plan_node *n = view->nodes; n < view->nodes + view->node_count; n++) {
        if (!n->leaving && plan_fits(n, p->segment) &&
            (oldest == NULL || n->incarnation < oldest->incarnation) &&
            (n->slot == source || planner_may_give(p, source, n->slot))) {
            oldest = n;
        }
    }
    return oldest;
}

/* One vnode, to the longest-serving node. */
static void appoint(struct planner *p, const struct plan_view *view)
{
    for (uint32_t i = 0; i < p->pieces->count; i++) {
        const struct piece *piece = &p->pieces->piece[i];
        const struct plan_node *oldest = plan_oldest(view->nodes, view->node_count, p->segment);

        if (oldest != NULL && piece->owner != oldest->slot &&
            !planner_may_give(p, piece->owner, oldest->slot)) {
            oldest = oldest_for(p, view, piece->owner);
        }
        if (oldest != NULL && piece->owner != oldest->slot && !piece->fixed) {
            give(p, i, oldest->slot);
        }
    }
}

/* Every open cell its own vnode; what is behind them stays in one piece. */
static void cut_open(struct planner *p)
{
    const uint32_t open = p->segment->open;

    for (uint32_t i = 0; i < p->pieces->count; i++) {
        const uint32_t at = p->pieces->piece[i].from - p->from;
        uint32_t size = p->pieces->piece[i].size;
        const uint32_t most = at < open && at + size > open ? open - at : size;

        if (at >= open) {
            continue;
        }
        if (most < size) {
            (void)pieces_cut(p->pieces, i, size - most);
            size = most;
        }
        for (; size > 1; size--) {
            (void)pieces_cut(p->pieces, i, 1);
        }
    }
}

/* The share of each is a number of actors; only open cells count. */
static void count_open(struct planner *p)
{
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        p->share[slot].own = 0;
    }
    for (uint32_t i = 0; i < p->pieces->count; i++) {
        const struct piece *piece = &p->pieces->piece[i];

        p->share[piece->owner].own += size_of(p, piece);
    }
}

/* Any node with one actor too many gives it to whom lacks most, where that lessens the distance;
 * leaving nodes give all, what is closed included. */
static void spread(struct planner *p, const struct plan_wishes *wishes)
{
    cut_open(p);
    planner_fulfil(p, wishes);
    count_open(p);
    p->cells = p->segment->open;
    set_targets(p);
    all_who_stay(p, &p->need, -1);
    for (uint32_t i = 0; i < p->pieces->count; i++) {
        const struct piece *piece = &p->pieces->piece[i];
        const bool open = piece->from - p->from < p->segment->open;
        const struct plan_share *s = &p->share[piece->owner];
        const uint32_t source = piece->owner;
        const uint32_t target = planner_neediest(p, source);

        if (piece->fixed || target == RING_NODE_NONE) {
            continue;
        }
        if (!s->stays ||
            (open && planner_excess(p, source) > 0 && -planner_excess(p, target) > 0)) {
            pieces_give(p->pieces, i, (uint16_t)target);
            p->share[source].own -= open;
            p->share[target].own += open;
            refresh(p, source);
            refresh(p, target);
        }
    }
    clear(&p->need);
}

/* ---- all of it ---- */

void planner_finish(struct planner *p, const struct plan_loads *loads)
{
    if (loads->cells_of != NULL) {
        pieces_slice(p->pieces, loads->cells_of);
    }
    pieces_join(p->pieces, (size_t)(p->wanted * 3 / 2), (uint32_t)(2 * p->unit));
}

static void balance_by_weight(struct planner *p, const struct plan_loads *loads,
                              const struct plan_wishes *wishes, const struct plan_limits *limits)
{
    planner_fulfil(p, wishes);
    planner_grow(p, limits);
    set_targets(p);
    stock_make(&p->stock, p->pieces, p->from);
    empty(p);
    fill(p);
    level(p);
    planner_finish(p, loads);
}

static bool has_unowned(const struct pieces *p)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->piece[i].owner == RING_NODE_NONE) {
            return true;
        }
    }
    return false;
}

/* Load the segment's vnodes. False: nobody stays for it, or it is to be left alone. */
static bool begin_segment(struct planner *p, const struct plan_view *view,
                          const struct ring_segment *s, const struct plan_limits *limits)
{
    p->segment = s;
    p->from = s == NULL ? 0 : s->from;
    p->cells = s == NULL ? (int64_t)1 << view->ring->grid : (int64_t)1 << s->bits;
    pieces_load(p->pieces, view->ring, p->from, p->from + (uint32_t)p->cells);
    return read_segment(p, view) && (!limits->owned_only || !has_unowned(p->pieces));
}

void planner_run(const struct plan_view *view, const struct plan_loads *loads,
                 const struct plan_wishes *wishes, const struct plan_limits *limits,
                 struct pieces *moves, planner_balance *balance)
{
    struct planner *p = mem_new(1, sizeof *p);

    p->pieces = moves;
    p->limits = limits;
    p->ring = view->ring;
    ranking_init(&p->rich, SLOTS);
    ranking_init(&p->need, SLOTS);
    for (size_t i = 0; i <= view->ring->segment_count; i++) {
        const struct ring_segment *s = i == 0 ? NULL : &view->ring->segment[i - 1];

        if (!begin_segment(p, view, s, limits)) {
            continue;
        }
        switch (s == NULL ? RING_HASH : s->policy) {
        case RING_HASH:
        case RING_TOGETHER:
        case RING_HOSTS:
            balance(p, loads, wishes, limits);
            break;
        case RING_OLDEST:
            planner_fulfil(p, wishes);
            appoint(p, view);
            break;
        case RING_SPREAD:
            spread(p, wishes);
            break;
        }
    }
    ranking_fini(&p->rich);
    ranking_fini(&p->need);
    stock_fini(&p->stock);
    mem_free(p);
}

void plan_by_weight(const struct plan_view *view, const struct plan_loads *loads,
                    const struct plan_wishes *wishes, const struct plan_limits *limits,
                    struct pieces *moves)
{
    planner_run(view, loads, wishes, limits, moves, balance_by_weight);
}
