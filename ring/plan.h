/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner: which vnodes must move so that every node holds its share.
 *
 * Pure, integers only, deterministic: every coordinator computes the same plan
 * from the same ring and the same nodes. Serves join, drain, removal and
 * weight change alike: the difference is in `nodes`.
 */
#ifndef RING_PLAN_H
#define RING_PLAN_H

#include "ring/ring.h"

struct plan_node {
    uint16_t slot;
    uint32_t weight; /* 1..1000; share of cells is weight / sum of weights */
    bool leaving;    /* draining: its share is 0, it gives everything */
};

struct plan_limits {
    uint32_t vnodes_per_weight; /* V: wanted vnodes per unit of weight; 64 */
    uint32_t moves_per_txn;     /* MOVEs of one donor-receiver pair in one transaction; 8 */
    uint32_t wave_cap;          /* concurrent transactions a node takes part in, per wave; 4 */
};

/* One transaction of the plan: the ops to BEGIN with. SPLIT/MERGE transactions have no MOVE. */
struct plan_txn {
    struct ring_op *ops; /* owned by the plan */
    size_t op_count;
    uint16_t donor;    /* 0 for SPLIT/MERGE only */
    uint16_t receiver; /* 0 for SPLIT/MERGE only */
    uint32_t wave;     /* transactions of one wave may run side by side; waves in order */
};

struct plan {
    struct plan_txn *txn; /* owned; sorted by wave */
    size_t txn_count;
    uint32_t wave_count;
    uint64_t moved_cells; /* cells that change owner */
};

/* Fill `plan` (uninitialised) with what turns `ring` into the wanted one; empty when the ring is
 * within tolerance (0.5/V of a share). SPLITs that a MOVE needs come in an earlier wave. Every
 * slot that owns a vnode must be in `nodes`; at least one must stay (ERR_INVALID otherwise). */
MUST_CHECK enum err plan_make(struct plan *plan, const struct ring *ring,
                              const struct plan_node *nodes, size_t node_count,
                              const struct plan_limits *limits);
void plan_fini(struct plan *plan);

#endif
