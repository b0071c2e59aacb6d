/* SPDX-License-Identifier: Apache-2.0
 *
 * Recall: which ids do nodes tell that the fleet is to remember, and which does a node get back?
 * What is remembered is in the replicated state (txn/state/remembered.h). A node tells many ids in
 * one message, which is one entry of the log, and tells no more before that came out.
 */
#ifndef TXN_LEADER_RECALL_H
#define TXN_LEADER_RECALL_H

#include "txn/leader/coordinator.h"

struct proposal;

/* A node's last Remember. */
struct recall_told {
    uint64_t incarnation;
    uint64_t number;
};

struct recall {
    struct recall_told of_slot[RING_NODES_MAX + 1];
    uint64_t full;  /* rows that were refused as there were too many, … */
    uint64_t stale; /* … and as the node that told them does not own them */
};

/* A node tells ids. What is older than what it told last is over, and ignored. */
void recall_on_remember(struct coordinator *c, struct leader_peer *peer,
                        const Rh__Control *message);
/* Answer a page of what is the node's. After a barrier. */
void recall_on_recall(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message);
/* The command came out of the log. A node hears so; of what an operator had forgotten the owners
 * hear. */
void recall_applied(struct coordinator *c, const struct proposal *p,
                    const struct coordinator_event *event);

#endif
