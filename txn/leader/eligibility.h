/* SPDX-License-Identifier: Apache-2.0
 *
 * Eligibility: who may take part in something new now, and which nodes are slow?
 */
#ifndef TXN_LEADER_ELIGIBILITY_H
#define TXN_LEADER_ELIGIBILITY_H

#include "txn/leader/drive.h"
#include "txn/leader/obstacle.h"

struct backoff {
    uint16_t source;
    uint16_t target;
    uint32_t failures;
    uint64_t until_us;
};

/* How a node behaved lately; never replicated. */
struct conduct {
    uint16_t slot;
    uint64_t incarnation;
    uint64_t answer_us;   /* its last vote came so long after the PREPARE; 0 = none yet */
    uint64_t unbroken_us; /* it came back then, or was missed then last; 0 = it never left */
};

struct eligibility {
    struct backoff *backoff; /* owned */
    size_t backoff_count;
    struct conduct *node; /* owned */
    size_t node_count;
    uint16_t node_at[RING_NODES_MAX + 1]; /* by slot: index in node + 1 */
    uint64_t typical_us;                  /* how long a vote takes: their running median */
};

/* This command made a new incarnation of a node. */
void eligibility_registered(struct coordinator *c, const Rh__Command *command,
                            const struct state_result *result);
/* A participant's vote came. */
void eligibility_voted(struct coordinator *c, const struct drive *d, const struct state_txn *t,
                       size_t part);
/* Nodes that were missed must prove themselves again. */
void eligibility_update(struct coordinator *c);
/* Microseconds until the node may take part in moves: it came back, and could leave again (hole
 * 57). */
uint64_t eligibility_in_us(const struct coordinator *c, const struct state_node *node);
/* Why the node may not take part in something new: it is not live, or one that keeps restarting
 * (hole 57). */
struct obstacle eligibility_obstacle(struct coordinator *c, const struct state_node *node);
/* Set `slow[slot]` for each node that lets a transaction wait much longer than others do, or did so
 * the last time. */
void eligibility_mark_slow(const struct coordinator *c, uint8_t slow[RING_NODES_MAX + 1]);
/* The slow node that this transaction has waited for so long that it should make room; 0 = none. */
uint16_t eligibility_culprit(const struct coordinator *c, const struct drive *d);
/* Why the pair may not be asked again yet. */
struct obstacle eligibility_pair_obstacle(const struct coordinator *c, uint16_t source,
                                          uint16_t target);
void eligibility_outcome(struct coordinator *c, const struct state_txn *t, bool committed);
void eligibility_reset(struct coordinator *c); /* all that only a leader remembers */
void eligibility_fini(struct coordinator *c);

#endif
