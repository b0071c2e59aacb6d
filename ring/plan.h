/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: which vnodes must move so that every node holds its share.
 *
 * Each segment of the ring is planned by itself, for the nodes of its role and
 * by its policy; one whose role nobody has, or only nodes that leave, stays as
 * it is.
 *
 * Pure, integers only, deterministic: every coordinator computes the same plan
 * from the same ring and the same nodes. Serves join, drain, removal and
 * weight change alike: the difference is in `nodes`.
 */
#ifndef RING_PLAN_H
#define RING_PLAN_H

#include "ring/ring.h"

struct plan_node {
    uint32_t weight; /* 1..1000; share of cells is weight / sum of weights */
    uint16_t slot;
    bool leaving;                   /* draining: its share is 0, it gives everything */
    const char *role;               /* borrowed; NULL = the default one, "" */
    uint64_t incarnation;           /* the least has served longest */
    const struct ring_kinds *kinds; /* borrowed; NULL = all of its role */
};

struct plan_limits {
    uint32_t vnodes_per_weight; /* V: wanted vnodes per unit of weight; 64 */
    uint32_t moves_per_txn;     /* MOVEs of one source-target pair in one transaction; 8 */
    uint32_t wave_cap;          /* concurrent transactions a node takes part in, per wave; 4 */
    bool owned_only;     /* leave a segment alone while a vnode of it is nobody's: it waits for
                          * plan_reassign(), for nobody can vote for giving it */
    const uint8_t *busy; /* borrowed; by vnode id: 1 = something else pends for it; or NULL */
    size_t busy_count;
    const uint32_t *cells_of; /* borrowed; by the source's slot: cells that one transaction should
                               * move at most; 0 = any; or NULL */
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

/* Fill `plan` (uninitialised) with what turns `ring` into the wanted one; no transactions when it
 * is that already. Waves of SPLITs come first, MERGEs last. A vnode that moves and has more cells
 * than cells_of allows is cut for it, and is whole again at the end; where these parts would be
 * more than a thousand, they are larger. vnodes without owner are given away as
 * those of leaving nodes are. After it every node that stays has at most 1 + 0.85/V of its share
 * (V vnodes per weight; a few cells more on a tiny ring), and planning again yields nothing to do.
 * ERR_INVALID, with an empty plan: no node stays at all; a slot is not 1..4095 or twice in `nodes`;
 * a weight or a limit is out of range; a vnode's owner is not in `nodes`. */
MUST_CHECK enum err plan_make(struct plan *plan, const struct ring *ring,
                              const struct plan_node *nodes, size_t node_count,
                              const struct plan_limits *limits);
void plan_fini(struct plan *plan);

/* Return the node that has served longest, of those that stay and fit the segment; NULL = none. */
const struct plan_node *plan_oldest(const struct plan_node *nodes, size_t node_count,
                                    const struct ring_segment *segment);
/* True if the node has the role of the segment (NULL: the default one), and hosts the kind of a
 * singleton or set. */
bool plan_fits(const struct plan_node *node, const struct ring_segment *segment);

/* Plan, in each segment and for the nodes of its role, MOVEs of all that `dead` (RING_NODE_NONE:
 * nobody) owns, whole, largest first, each to that one of `nodes` (their slots distinct, 1..4095,
 * weights as above; leaving ones and `dead` itself get nothing) which lacks most of its share of
 * the cells: no node ends further above its share than by one vnode, unless it was before; a
 * singleton goes to the oldest, a set's actors evenly. Free it with mem_free(). NULL and a count of
 * 0: nothing to move, or nobody to take it. */
struct ring_op *plan_reassign(const struct ring *ring, const struct plan_node *nodes,
                              size_t node_count, uint16_t dead, size_t *count);

#endif
