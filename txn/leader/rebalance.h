/* SPDX-License-Identifier: Apache-2.0
 *
 * Rebalance: which transactions are to begin (specification §3.6)?
 */
#ifndef TXN_LEADER_REBALANCE_H
#define TXN_LEADER_REBALANCE_H

#include "ring/plan.h"
#include "txn/leader/obstacle.h"
#include "txn/leader/proposal.h"

/* One transaction of the plan. */
enum planned_reason {
    REASON_REBALANCE,
    REASON_JOIN,
    REASON_DRAIN,
    REASON_SPLIT,
    REASON_MERGE,
    REASON_WISH,
    REASON_LOAD,
};
struct planned {
    bool begun;
    enum planned_reason reason;
};

struct rebalance {
    struct plan plan;
    struct planned *planned; /* owned; one for each of plan.txn */
    bool has_plan;
    uint64_t plan_id;    /* of the last plan made */
    uint64_t plans_made; /* that had something to do */
    bool dirty;          /* the plan must be made anew */
    uint64_t dirty_us;   /* since when */
    uint64_t touched_us; /* when something changed last */
    uint64_t lives;      /* fingerprint of who was live when last looked at */
    uint64_t lives_us;   /* when that was */
};

void rebalance_touch(struct coordinator *c); /* something changed: plan anew, soon */
void rebalance_reset(struct coordinator *c);
void rebalance_run(struct coordinator *c);
/* The nodes as the planner takes them, with room for more behind them. mem_free() them. */
struct plan_node *rebalance_nodes(struct coordinator *c, size_t room);
/* What a plan is made for. */
struct rebalance_question {
    struct plan_node *nodes; /* those outside of their role's zones will be told to leave */
    size_t count;
    const struct plan_wishes *more; /* beside what is wished (wishes_make()); or NULL */
    bool by_load;                   /* what costs are known count, and … */
    uint32_t moves;                 /* … so many vnodes may move for them alone */
};
/* The plan, and the ring once all that pends is committed, which goes to `ring`; both are the
 * caller's, also after an error. Changes nothing else. */
MUST_CHECK enum err rebalance_plan(struct coordinator *c, const struct rebalance_question *q,
                                   struct plan *plan, struct ring *ring);
/* Transactions of the plan that have not begun, by what the log says: their BEGIN may be on its way
 * through it. */
size_t rebalance_planned(const struct coordinator *c);
/* True if something changed and the plan is not made anew yet: nothing moves and nothing is
 * planned, but that isn't the end of it. */
bool rebalance_planning(const struct coordinator *c);
/* Fill `out` with why what is planned, or is to be, does not begin now: by the rules by which it
 * would. Nothing, while all of it is under way. Changes nothing. */
void rebalance_obstacles(struct coordinator *c, struct obstacles *out);
/* The node takes part in a transaction that is pending, or whose BEGIN is on its way: who owns
 * nothing may own something after it. */
bool rebalance_moves(const struct coordinator *c, uint16_t slot);
/* Open the place in the plan again of a BEGIN that didn't come to pass. */
void rebalance_failed(struct coordinator *c, const struct proposal *p);
/* True: the transaction moves vnodes for nothing else than the load of their nodes. */
bool rebalance_is_for_load(const struct state_txn *t);
/* A transaction is decided. */
void rebalance_outcome(struct coordinator *c, const struct state_txn *t, bool committed);

#endif
