/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: which vnodes must move, and in which transactions.
 *
 * A strategy decides what moves: it is a function of what is (plan_view), what
 * is known of the load (plan_loads) and what operators wish (plan_wishes), and
 * writes down SPLITs, MOVEs and MERGEs. plan_make() checks what it is asked,
 * and makes transactions in waves of what the strategy wrote, whichever it is.
 *
 * Pure, integers only, deterministic: every coordinator computes the same plan
 * from the same ring, nodes and wishes. Serves join, drain, removal and weight
 * change alike: the difference is in the nodes.
 */
#ifndef RING_PLAN_H
#define RING_PLAN_H

#include "ring/ring.h"

struct pieces;

/* Of a kind that is placed by its hosts a node takes less than by its weight: a canary. */
struct plan_part {
    uint16_t kind;
    uint16_t permille; /* of its weight, less than RING_PART_WHOLE */
};

struct plan_node {
    uint32_t weight; /* 1..1000; share of cells is weight / sum of weights */
    uint16_t slot;
    bool leaving;                   /* draining: its share is 0, it gives everything */
    const char *role;               /* borrowed; NULL = the default one, "" */
    uint64_t incarnation;           /* the least has served longest */
    const struct ring_kinds *kinds; /* borrowed; NULL = all of its role */
    const char *zone;               /* borrowed; NULL or "" = none */
    const struct plan_part *parts;  /* borrowed; of other kinds it takes all that its weight says */
    uint16_t part_count;
    bool untold; /* nobody knows its parts yet: they count as none */
};

struct plan_limits {
    uint32_t vnodes_per_weight; /* V: wanted vnodes per unit of weight; 64 */
    uint32_t moves_per_txn;     /* MOVEs of one source-target pair in one transaction; 8 */
    uint32_t wave_cap;          /* concurrent transactions a node takes part in, per wave; 4 */
    bool owned_only;     /* leave a segment alone while a vnode of it is nobody's: it waits for
                          * plan_reassign(), for nobody can vote for giving it */
    const uint8_t *busy; /* borrowed; by vnode id: 1 = something else pends for it; or NULL */
    size_t busy_count;
    /* May what `source` has of the segment (NULL: the default one) go to `target`? What may not
     * stays, unless it is wished to be there. NULL = always. */
    bool (*may)(const void *context, uint16_t source, uint16_t target,
                const struct ring_segment *segment);
    const void *context;
};

/* What is: the ring, and the nodes that own it or could. All borrowed. */
struct plan_view {
    const struct ring *ring;
    const struct plan_node *nodes;
    size_t node_count;
};

/* What one vnode costs its owner, in any unit that is the same for all. */
struct plan_load {
    uint32_t cost;
    uint32_t cut; /* first cell of its right part, if it is cut where that parts the cost best … */
    uint32_t left; /* … and so much of the cost is left of it; cut 0: not known */
    bool rests;    /* it changed hands lately: no balance may take it yet */
};

/* What is known of the load. All zero: nothing. */
struct plan_loads {
    const uint32_t *cells_of;   /* borrowed; by the source's slot: so many cells have as many actors
                                 * as one transaction should move; 0 = any; or NULL */
    const struct plan_load *of; /* borrowed; by vnode id; what is not there costs nothing */
    size_t of_count;
    uint32_t moves; /* at most so many vnodes move because others cost less; 0: what costs are
                     * known may be wrong, or it is too soon after the last */
};

/* What is wished of the cells [from, to): they are vnodes of their own, which are merged with
 * nothing else, and … */
enum plan_wish_kind {
    PLAN_AT,   /* … node `slot` owns them; one that leaves, or that can't have them: as APART */
    PLAN_STAY, /* … what `slot` owns of them stays there, even if it leaves; the rest: as APART */
    PLAN_APART, /* … move as any others */
};
struct plan_wish {
    uint32_t from; /* of one segment, which may have more wishes */
    uint32_t to;
    uint16_t slot;
    enum plan_wish_kind kind;
};

/* All zero: none. */
struct plan_wishes {
    struct plan_wish *wish; /* the caller's; ascending, and no two have a cell in common */
    size_t count;
};

/* One transaction of the plan: the ops to BEGIN with. Either MOVEs of one source-target pair, or
 * SPLITs, or MERGEs; those of any owners, for they need nobody's vote, but what builds on a busy
 * vnode is by itself, owner by owner. */
struct plan_txn {
    struct ring_op *ops; /* owned by the plan */
    size_t op_count;
    uint16_t source; /* 0 for SPLIT/MERGE, and where vnodes that had no owner get one */
    uint16_t target; /* 0 for SPLIT/MERGE */
    uint32_t wave;   /* transactions of one wave may run side by side; waves in order */
};

struct plan {
    struct plan_txn *txn; /* owned; sorted by wave */
    size_t txn_count;
    uint32_t wave_count;
    uint64_t moved_cells; /* cells that change owner */
};

/* A strategy: write down in `moves` (ring/pieces.h; all of the ring is there, and nothing is done
 * to it yet) what is to be cut, moved and joined. What it gets is checked: slots and weights are in
 * range, every owner is among the nodes, and somebody stays. It does what the wishes say, keeps to
 * the limits that concern it, and has nothing to do for a ring that is as it wants it. */
typedef void plan_strategy(const struct plan_view *view, const struct plan_loads *loads,
                           const struct plan_wishes *wishes, const struct plan_limits *limits,
                           struct pieces *moves);

/* The default strategy: each segment of the ring by itself, for the nodes of its role and by its
 * policy; one whose role nobody has, or only nodes that leave, stays as it is. Every node that
 * stays gets its share by weight, at most 1 + 0.85/V of it (V vnodes per weight; a few cells more
 * on a tiny ring), and moves no more than that needs. What is wished to be at a node counts as part
 * of its share; where that alone is more, the others share the rest. A vnode that moves and has
 * more cells than cells_of allows is cut for it, and is whole again at the end; where these parts
 * would be more than a thousand, they are larger. vnodes without owner are given away as those of
 * leaving nodes are. */
plan_strategy plan_by_weight;

/* The strategy of `--balance load`: as by weight, but in a segment that is hashed nodes share what
 * the vnodes cost, of which a 32nd part counts as spread evenly over the cells. By weight, its
 * vnodes are as many; a node that leaves gives its vnodes to those who have least of the cost, and
 * one that has nearly nothing gets its share. Beyond that, vnodes move only from a node that has
 * more than 1.1 of its share to one that has less than its own, until none has more than 1.05 or
 * `moves` are used up; so small changes of the costs move nothing, and what moved makes no node
 * give. A vnode of more than a quarter of a share is cut first, where that parts its cost. One that
 * can't be, and is more than a share, stays; its node gives all else, and the others share the
 * rest. */
plan_strategy plan_by_load;

/* Fill `plan` (uninitialised) with what the strategy says of `view`; `loads` and `wishes` may be
 * NULL. No transactions when there is nothing to do. Waves of SPLITs come first, MERGEs last.
 * ERR_INVALID, with an empty plan: no node stays at all; a slot is not 1..4095 or twice among the
 * nodes; a weight or a limit is out of range; a vnode's owner is not among the nodes; the wishes
 * are not in order. */
MUST_CHECK enum err plan_make(struct plan *plan, plan_strategy *strategy,
                              const struct plan_view *view, const struct plan_loads *loads,
                              const struct plan_wishes *wishes, const struct plan_limits *limits);
void plan_fini(struct plan *plan);

/* Return the node that has served longest, of those that stay and fit the segment; NULL = none. */
const struct plan_node *plan_oldest(const struct plan_node *nodes, size_t node_count,
                                    const struct ring_segment *segment);
/* True if the node has the role of the segment (NULL: the default one), and hosts the kind of one
 * that is not shared. */
bool plan_fits(const struct plan_node *node, const struct ring_segment *segment);
/* The weight of each of the nodes in the segment, by its place among them, in thousandths; 0: it
 * leaves, does not fit, or takes no part of the kind while others do. Their sum into `all`.
 * Returned owned. */
uint64_t *plan_weights(const struct plan_view *view, const struct ring_segment *segment,
                       uint64_t *all);

/* Plan, in each segment and for the nodes of its role, MOVEs of all that `dead` (RING_NODE_NONE:
 * nobody) owns, whole, largest first, each to that one of the nodes (their slots distinct, 1..4095,
 * weights as above; leaving ones and `dead` itself get nothing) which lacks most of its share of
 * the cells, as long as any of the zone that the nodes name for `dead` lacks something to one of
 * these: no node ends further above its share than by one vnode, unless it was before; a singleton
 * goes to the oldest, a set's actors evenly. A vnode that is wished to be at one of the nodes goes
 * there, and what is to stay at `dead` is left to it; `wishes` may be NULL. Free it with
 * mem_free(). NULL and a count of 0: nothing to move, or nobody to take it. */
struct ring_op *plan_reassign(const struct plan_view *view, const struct plan_wishes *wishes,
                              uint16_t dead, size_t *count);

/* The first wish that has one of the cells [from, to); NULL = none. `wishes` may be NULL. */
const struct plan_wish *plan_wish_in(const struct plan_wishes *wishes, uint32_t from, uint32_t to);

#endif
