/* SPDX-License-Identifier: Apache-2.0
 *
 * What each node of a segment should have of it.
 */
#ifndef RING_SHARES_H
#define RING_SHARES_H

#include "ring/ring.h"

/* Slot 0 stands for "nobody" and is leaving: what has no owner is given away. */
struct plan_share {
    bool stays;      /* and has the segment's role */
    bool full;       /* what it has to keep is more than its share, or it doesn't stay */
    bool part;       /* its weight is a part of what the node has elsewhere */
    uint64_t weight; /* in thousandths */
    int64_t target;  /* cells */
    int64_t own;     /* cells */
    int64_t fixed;   /* of them: what no balance may take */
};

/* Set the target of each of the RING_NODES_MAX + 1 shares, so that together they have `cells`. Who
 * stays has as much as his weight is of `weight`, which is all theirs and not 0, by largest
 * remainder, the lowest slot first among equals; but who has to keep more has that, and the others
 * share the rest. Who doesn't stay has what he has to keep. */
void shares_set_targets(struct plan_share *share, uint64_t cells, uint64_t weight);

#endif
