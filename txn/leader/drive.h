/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives: how far is each pending transaction on its way to an outcome (specification §3.3)?
 *
 * drive.c takes each as far as it can go; votes.c takes what participants say.
 */
#ifndef TXN_LEADER_DRIVE_H
#define TXN_LEADER_DRIVE_H

#include "txn/leader/peers.h"
#include "txn/leader/proposal.h"

enum { WAITS_ACTOR_MAX = 40 };

enum drive_state { DRIVE_PREP_IN, DRIVE_PREP_OUT, DRIVE_DECIDING };

/* A participant's vote, or what is known of why it has not come. */
struct ballot {
    bool voted;
    uint64_t asked_us;  /* first PREPARE; 0 = not asked yet */
    uint64_t report_us; /* when Draining came last; 0 = never. The rest is what it said: */
    uint32_t busy;      /* actors that have not stopped */
    uint32_t running_ms;
    uint16_t peer;                   /* busy = 0: a target that has not got all state; 0 = none */
    char actor[WAITS_ACTOR_MAX + 1]; /* the one that is at it longest */
};

/* A pending transaction on its way to an outcome. */
struct drive {
    uint64_t txn;
    uint8_t state; /* enum drive_state */
    uint64_t supersedes;
    uint64_t started_us;
    uint64_t resend_us;    /* when PREPARE is sent again */
    uint64_t decided_us;   /* when an outcome was proposed last */
    struct ballot *ballot; /* owned; by index of state_txn.parts */
    size_t part_count;
    uint64_t plan_id; /* of the plan it came from, and where it stands there; 0 = of none */
    size_t planned_at;
    bool yields;                   /* it ends because others need its place */
    char fault[STATE_WHY_MAX + 1]; /* not empty: it must be aborted, and why */
};

struct drives {
    struct drive *item; /* owned; by number */
    size_t count;
    uint64_t surveyed; /* of the changes (applied.h), when all that pends was found driven */
};

/* ---- drive.c ---- */

struct drive *drive_find(const struct coordinator *c, uint64_t txn);
/* A BEGIN of mine was applied. */
void drive_begin(struct coordinator *c, const struct proposal *p, uint64_t txn);
/* One that was to supersede was refused. */
void drive_refused(struct coordinator *c, const struct proposal *p, const char *why);
/* Forget those whose transaction is over. */
void drive_prune(struct coordinator *c);
void drive_forget_all(struct coordinator *c);
void drive_fini(struct coordinator *c);
/* Take every transaction as far as it can go now; take up what another leader left. */
void drive_advance(struct coordinator *c);
/* A DECIDE was refused, or lost. */
void drive_undecided(struct coordinator *c, uint64_t txn, const char *why);
/* Tell the participants of an aborted transaction. */
void drive_cancel(struct coordinator *c, uint64_t txn);
/* Note that the transaction must be aborted, and why. The first reason counts. */
void drive_fault(struct drive *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Note that the transaction must be aborted: it waits for `slow`, and others for its place. */
void drive_yield(struct drive *d, const struct state_node *slow);
/* True if the drive waits for this participant's vote now. */
bool drive_waits_for(const struct drive *d, const struct state_txn *t, size_t part);
/* True if the node renewed its lease lately, or leases are not in force. */
bool drive_renewed(struct coordinator *c, const struct state_node *node);
/* Propose an outcome; an operator's comes with his name and reason. NULL: not now. */
struct proposal *drive_commit(struct coordinator *c, struct drive *d, const struct state_txn *t,
                              const Rh__AdminResolve *wish);
struct proposal *drive_abort(struct coordinator *c, struct drive *d, uint64_t txn,
                             const Rh__AdminResolve *wish);
/* Abort it and begin it anew under another number, in one entry. */
struct proposal *drive_supersede(struct coordinator *c, const struct state_txn *t,
                                 const Rh__AdminResolve *wish);

/* ---- votes.c: called by message.c alone ---- */

void votes_on_vote(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message);
/* A node tells why its vote has not come yet. */
void votes_on_draining(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message);

#endif
