/* SPDX-License-Identifier: Apache-2.0
 *
 * What the strategies that ship share: one segment of the ring while it is planned. What is not
 * hashed (singletons, sets of daemons) and what is wished is the same in all of them; how the
 * vnodes of a hashed segment are balanced is what tells them apart.
 */
#ifndef RING_PLANNER_H
#define RING_PLANNER_H

#include "ring/pieces.h"
#include "ring/ranking.h"
#include "ring/shares.h"
#include "ring/stock.h"

struct planner {
    struct pieces *pieces;              /* borrowed */
    const struct plan_limits *limits;   /* borrowed */
    const struct ring *ring;            /* borrowed */
    const struct ring_segment *segment; /* borrowed; NULL = the default cells */
    uint32_t from;                      /* its first cell */
    struct plan_share share[RING_NODES_MAX + 1];
    struct stock stock;
    struct ranking rich;                /* nodes that may give, greatest excess first */
    struct ranking need;                /* nodes that may take, greatest lack first */
    uint32_t aside[RING_NODES_MAX + 1]; /* out of `rich`: may not give to the one that is fed */
    size_t aside_count;
    uint64_t weight; /* sum of those who stay, in thousandths */
    int64_t cells;
    int64_t wanted; /* vnodes, those aside that are apart */
    int64_t unit;   /* cells */
};

/* Balances the vnodes of one hashed segment, which are loaded. */
typedef void planner_balance(struct planner *p, const struct plan_loads *loads,
                             const struct plan_wishes *wishes, const struct plan_limits *limits);

/* Plan each segment by itself, those that are hashed by `balance`; the rest as plan_strategy. */
void planner_run(const struct plan_view *view, const struct plan_loads *loads,
                 const struct plan_wishes *wishes, const struct plan_limits *limits,
                 struct pieces *moves, planner_balance *balance);

/* Split off what is wished, give it to whom it is wished for, and note in the shares what each has
 * to keep. */
void planner_fulfil(struct planner *p, const struct plan_wishes *wishes);
/* SPLIT the largest vnodes until there are V for each unit of weight; sets `wanted` and `unit`. */
void planner_grow(struct planner *p, const struct plan_limits *limits);
/* The end of a hashed segment: cut what moves from a source of many actors, and MERGE small
 * neighbours where there are more than half as many vnodes again as wanted. */
void planner_finish(struct planner *p, const struct plan_loads *loads);

/* True if what `source` has (NONE: what is nobody's) may go to `target` (plan_limits.may). */
static inline bool planner_may_give(const struct planner *p, uint32_t source, uint32_t target)
{
    return p->limits->may == NULL || source == RING_NODE_NONE ||
           p->limits->may(p->limits->context, (uint16_t)source, (uint16_t)target, p->segment);
}

/* Who lacks most, of those in `need` that may take what `source` has; NONE: none of them may. */
uint32_t planner_neediest(const struct planner *p, uint32_t source);

/* Above its share by so much, in the unit of the shares; negative: below. */
static inline int64_t planner_excess(const struct planner *p, uint32_t slot)
{
    return p->share[slot].own - p->share[slot].target;
}

#endif
