/* SPDX-License-Identifier: Apache-2.0
 *
 * Wishes: what do operators want where, beside what the strategy does by itself?
 */
#ifndef TXN_LEADER_WISHES_H
#define TXN_LEADER_WISHES_H

#include "ring/plan.h"
#include "txn/leader/coordinator.h"

struct leader_wishes {
    /* What is to move once: PLAN_AT; owned. Each is forgotten when it is there, when its node
     * leaves or is gone, and when I no longer lead. */
    struct plan_wishes once;
    /* The pins, as they are to be understood by who is there; owned. As of … */
    struct plan_wishes pinned;
    uint64_t changes; /* … so many entries applied, 0 = of none, … */
    uint64_t lives;   /* … and of those who were there then: struct rebalance */
};

/* Fill `out` with all that is wished now, and with `more` (borrowed for the call; may be NULL),
 * which counts in the place of what has cells in common with it. End it with wishes_end(). */
void wishes_make(struct coordinator *c, const struct plan_wishes *more, struct plan_wishes *out);
void wishes_end(struct plan_wishes *wishes);

/* What the pins of that cell, which has some, wish at the moment. */
const struct plan_wish *wishes_pinned(struct coordinator *c, uint32_t cell);
/* How many vnodes of the node may go to others when it is dead: it is not so of what is pinned to
 * it and waits. */
size_t wishes_to_give(struct coordinator *c, const struct state_node *node);

/* Wish that these cells move to their nodes once. */
void wishes_add_once(struct coordinator *c, const struct plan_wishes *wishes);
/* Forget what is fulfilled, or can't be any more. */
void wishes_tidy(struct coordinator *c);
void wishes_reset(struct coordinator *c);

#endif
