/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads: what does each vnode cost its node, and what may move for that (docs/decisions/081)?
 *
 * Nodes tell it with their renewals. Each report adds a quarter of its rate to what was known, and
 * every LOADS_DECAY_US a quarter of that is forgotten: what is known is the average of the last
 * twenty seconds or so. None of it is replicated; who comes to lead knows nothing, and moves
 * nothing for the load's sake until all nodes have told for balance_warm_ms.
 *
 * With `--balance memory` a cost is what the actors of a vnode take, in KiB, as it was told last:
 * an amount, of which there is no average.
 */
#ifndef TXN_LEADER_LOADS_H
#define TXN_LEADER_LOADS_H

#include "ring/plan.h"
#include "txn/leader/coordinator.h"

enum {
    LOADS_DECAY_US = 5000000, /* as often as nodes tell */
    LOADS_UNIT = 64,          /* a cost in time is in such parts of a microsecond a second */
};

struct leader_loads {
    struct plan_load *of; /* owned; by vnode id */
    uint64_t *rests_us;   /* owned; likewise: until then */
    size_t count;         /* ids that there is room for */
    uint64_t requests;    /* of all nodes, decayed as costs are: those of some twenty seconds */
    uint64_t decayed_us;  /* when that was last */
    uint64_t look_us;     /* not before that another plan that moves for the load's sake */
    uint32_t actors[RING_NODES_MAX + 1]; /* by slot: that live there, as told last */
    uint32_t rate[RING_NODES_MAX + 1];   /* by slot: requests a second, likewise; … */
    uint32_t p99_us[RING_NODES_MAX + 1]; /* … what 99 of 100 took at most; 0 = none was answered */
    uint64_t told_us[RING_NODES_MAX + 1];  /* by slot: when it told last; 0 = never; … */
    uint64_t tells_us[RING_NODES_MAX + 1]; /* … it tells without a gap since then */
};

/* How uneven it is. */
struct loads_state {
    bool known;        /* enough to go by; if not, nothing else here is more than a hint */
    const char *why;   /* not known: static text that says why */
    uint64_t permille; /* what the fullest node has of what it should have of its role's load */
    uint16_t node;     /* that node; 0 = none costs anything */
    uint32_t vnode;    /* that costs most of all, … */
    uint64_t vnode_permille; /* … and its cost, as part of what its node should have */
};

/* A node told. */
void loads_told(struct coordinator *c, const struct state_node *node, const Rh__Costs *costs);
/* A change was applied: what was cut, joined or moved. */
void loads_changed(struct coordinator *c, const Rh__Delta *delta);
/* Forget what is over; and if vnodes are to move for the load's sake, have a plan made. */
void loads_run(struct coordinator *c);
void loads_reset(struct coordinator *c);
/* Requests a second at the node, as it told last. False: it told nothing lately. */
bool loads_rate(const struct coordinator *c, const struct state_node *node, uint64_t *out);
/* What 99 of 100 requests that its actors answered took at most, as it told last. 0: it told
 * nothing lately, or none was answered. */
uint64_t loads_p99_us(const struct coordinator *c, const struct state_node *node);
/* How uneven is it now? O(ring). */
struct loads_state loads_state(struct coordinator *c);
/* What the strategy is to know, borrowed until the next step; what rests, of the ring once all that
 * pends is committed. `moves`: as in struct plan_loads. */
struct plan_loads loads_of(struct coordinator *c, uint32_t moves);
/* How many vnodes the next plan may move for the load's sake. */
uint32_t loads_moves(struct coordinator *c);
/* A plan was made that was allowed `moves`, and has `txns` transactions. */
void loads_planned(struct coordinator *c, uint32_t moves, size_t txns);

#endif
