/* SPDX-License-Identifier: Apache-2.0
 *
 * Proposals: which commands of mine are on their way through the log, and who waits for each? Here
 * is also what puts a message, a command or a barrier among a step's effects.
 */
#ifndef TXN_LEADER_PROPOSAL_H
#define TXN_LEADER_PROPOSAL_H

#include "txn/leader/coordinator.h"
#include "wire/control.h"

enum proposal_kind {
    PROPOSAL_INIT,
    PROPOSAL_REGISTER,
    PROPOSAL_BEGIN,
    PROPOSAL_DECIDE, /* COMMIT or ABORT of `txn` */
    PROPOSAL_DESIRE,
    PROPOSAL_FENCE,
    PROPOSAL_DEREGISTER,
    PROPOSAL_VOTER,
    PROPOSAL_LEASE,
    PROPOSAL_REASSIGN,
    PROPOSAL_SETTLE,
    PROPOSAL_DAEMONS,
    PROPOSAL_QUARANTINE,
    PROPOSAL_PIN,
    PROPOSAL_REMEMBER, /* of a node */
    PROPOSAL_FORGET,   /* of an operator */
    PROPOSAL_FORMAT,
    PROPOSAL_AHEAD,
    PROPOSAL_NOTE,             /* only for the history */
    PROPOSAL_OPERATOR_REQUEST, /* a NOTE; the request leaves when it is applied */
    PROPOSAL_REPAIR,           /* a NOTE; what it tells of is done when it is applied */
};

/* A command on its way through the log. Whoever proposes it fills in what it will need then. */
struct proposal {
    enum proposal_kind kind;
    uint64_t tag;
    uint64_t peer;       /* whom to answer; 0 = nobody */
    bool asked;          /* by an operator, who waits at `peer` */
    uint64_t question;   /* tag of the Admin, if it was one */
    uint64_t nonce;      /* REGISTER */
    uint64_t txn;        /* DECIDE, REPAIR: which; BEGIN: which it supersedes */
    uint64_t slot;       /* DESIRE, FENCE, REASSIGN, DEREGISTER, REMEMBER; VOTER: its id */
    uint64_t base;       /* BEGIN: version it was computed from */
    struct ring_op *ops; /* BEGIN: owned */
    size_t op_count;
    uint64_t plan_id; /* BEGIN: of the plan it came from, and where it stands there */
    size_t planned_at;
    uint16_t source;               /* BEGIN: 0 = none */
    uint16_t target;               /* BEGIN */
    uint64_t patient;              /* REPAIR: link to the process */
    uint32_t repair;               /* REPAIR: enum repair_task */
    uint32_t for_ms;               /* LEASE, asked: of a maintenance; 0 = its end */
    uint64_t number;               /* REMEMBER: of the message */
    Rh__Control *operator_request; /* OPERATOR_REQUEST: owned */
};

struct proposals {
    struct proposal *item; /* owned; by tag */
    size_t count;
    uint64_t last_tag;
    uint64_t quiet_us; /* no proposal before */
};

/* Queue a command; returns its record, to be filled in at once. NULL: not now (not leading, or one
 * failed just before). */
struct proposal *coordinator_propose(struct coordinator *c, enum proposal_kind kind,
                                     Rh__Command *command);
/* Find a proposal in flight of that kind about that transaction, slot or nonce, or NULL. */
const struct proposal *coordinator_proposal(const struct coordinator *c, enum proposal_kind kind,
                                            uint64_t about);
/* Propose a note for the history: who did what, with what. NULL: not now. */
struct proposal *coordinator_propose_note(struct coordinator *c, enum proposal_kind kind,
                                          const struct history_note *note);
/* The proposal is over: remove it into `p`, which the caller ends with proposal_fini(). False:
 * there is none with that tag. */
bool proposals_take(struct coordinator *c, uint64_t tag, struct proposal *p);
void proposal_fini(struct proposal *p);
/* The next number for a proposal or a barrier. */
uint64_t proposals_next_tag(struct coordinator *c);
/* Propose nothing for a moment, because a proposal failed. */
void proposals_pause(struct coordinator *c);
void proposals_forget(struct coordinator *c);
void proposals_fini(struct coordinator *c);

/* Queue an effect whose bytes are those behind `at`. */
void coordinator_put(struct coordinator *c, enum coordinator_effect_type type, uint64_t tag,
                     size_t at);
/* Queue a message whose header is filled in. */
void coordinator_put_send(struct coordinator *c, uint64_t peer, const Rh__Control *message);
/* The message that was queued last, to another one too. */
void coordinator_put_again(struct coordinator *c, uint64_t peer);

#endif
