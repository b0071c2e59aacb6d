/* SPDX-License-Identifier: Apache-2.0
 *
 * The leader's machine: what a coordinator does with messages, applied commands
 * and time. Registers nodes, plans and drives transactions, answers polls and
 * operators. Specification §3.3-3.6.
 *
 * Pure. Every replica feeds it every applied command; only while it leads does
 * it act. All it knows of transactions is rebuilt from `state` when it begins
 * to lead, so a new leader takes up whatever is unfinished:
 *
 *     begin proposed --applied--> PREP_IN --all in-only voted--> PREP_OUT
 *       PREP_*    PREPARED of a current incarnation     note the vote
 *       PREP_*    resend timer                          PREPARE again to those without vote
 *       PREP_OUT  all voted                             propose COMMIT          DECIDING
 *       PREP_*    deadline, REFUSED, operator, restart  propose ABORT           DECIDING
 *       PREP_*    waits for a slow node, and another    propose ABORT           DECIDING
 *                 could begin in its place
 *       DECIDING  nothing applied for T_prepare         propose ABORT too
 *       any       COMMIT applied                        COMMIT to all nodes and gateways
 *       any       ABORT applied                         CANCEL to participants; back off
 *       any       leadership lost                       forget
 *     on leading: each pending transaction -> propose BEGIN(supersedes it)
 *
 * An outcome leaves only after it was applied (holes 9, 11); POLL, REGISTER and
 * RENEW are answered only after a barrier that began after they came (hole 13).
 */
#ifndef TXN_LEADER_COORDINATOR_H
#define TXN_LEADER_COORDINATOR_H

#include "txn/state/state.h"
#include "wire/control.pb-c.h"
#include "wire/versions.h"

enum { COORDINATOR_LEAST_MAX = 16, COORDINATOR_ZONES_MAX = 64 };

enum coordinator_event_type {
    COORDINATOR_LEAD,    /* a barrier of my term is applied */
    COORDINATOR_FOLLOW,  /* leadership lost */
    COORDINATOR_APPLIED, /* one command was applied to `state` */
    COORDINATOR_DONE,    /* a propose or barrier ended: tag, error */
    COORDINATOR_PEER_UP, /* a link with hello: peer, role, name, incarnation */
    COORDINATOR_PEER_DOWN,
    COORDINATOR_MESSAGE, /* a Control from a peer */
    COORDINATOR_VOTERS,  /* other voters from now on; whoever is linked is told */
    COORDINATOR_NOTE,    /* the shell has something for the history: note. Lost if I don't lead */
    COORDINATOR_TICK,    /* every 10..50 ms; while coordinator_rests_ms() says so, later */
};

/* Something that was done and changes no state, for the audit history. All are texts, none NULL. */
struct history_note {
    const char *action;  /* a word: "fix" */
    const char *subject; /* "node n2" */
    const char *what;
    const char *by;     /* "" = we */
    const char *reason; /* "" = he gave none */
};

struct coordinator_event {
    enum coordinator_event_type type;
    uint64_t now_us;                   /* CLOCK_BOOTTIME */
    uint64_t wall_us;                  /* CLOCK_REALTIME, for records that people read only */
    uint64_t term;                     /* LEAD */
    uint64_t leader;                   /* FOLLOW: voter id of the leader, 0 = unknown */
    uint64_t tag;                      /* DONE; APPLIED: 0 when another proposed it */
    uint64_t index;                    /* APPLIED: of the Raft entry; for people only */
    enum err error;                    /* DONE */
    const Rh__Command *command;        /* APPLIED, borrowed */
    const struct state_result *result; /* APPLIED, borrowed */
    uint64_t peer;              /* PEER_*, MESSAGE: the shell's id of the link, never reused */
    int role;                   /* PEER_UP: enum link_role */
    const char *name;           /* PEER_UP */
    uint64_t incarnation;       /* PEER_UP */
    uint64_t identity;          /* PEER_UP of a coordinator */
    const char *address;        /* PEER_UP of a coordinator: where it takes links; may be NULL */
    const char *product;        /* PEER_UP: its hello's; may be NULL */
    struct versions format;     /* PEER_UP: of the fleet, that it reads; 0..0 = the first */
    uint32_t protocol;          /* PEER_UP: of the link */
    struct fleet_id fleet;      /* PEER_UP: that it belongs to */
    const Rh__Control *message; /* MESSAGE, borrowed */
    const struct state_voter *voter; /* VOTERS: ids and addresses, borrowed */
    size_t voter_count;              /* VOTERS */
    const struct history_note *note; /* NOTE, borrowed */
};

enum coordinator_effect_type {
    COORDINATOR_PROPOSE, /* bytes: a packed Command; tag */
    COORDINATOR_BARRIER, /* tag */
    COORDINATOR_SEND,    /* bytes: a packed Control; to peer */
};

struct coordinator_effect {
    enum coordinator_effect_type type;
    uint64_t tag;
    uint64_t peer;
    size_t at; /* in effects.bytes */
    size_t size;
};

/* Done in order. Grows as needed; the caller clears it between steps. */
struct coordinator_effects {
    struct coordinator_effect *item; /* owned */
    size_t count;
    size_t cap;
    struct buffer bytes;
};
void coordinator_effects_clear(struct coordinator_effects *e);
void coordinator_effects_fini(struct coordinator_effects *e);

/* Number of nodes of a role that must be there before any of them gets vnodes for the first time.
 */
struct coordinator_least {
    char role[RING_ROLE_MAX + 1];
    uint32_t members;
};

/* A zone in which a role is kept; it may have several. */
struct coordinator_zone {
    char role[RING_ROLE_MAX + 1];
    char zone[VIEW_NAME_MAX + 1];
};

/* What nodes share, by weight. */
enum balance_by {
    BALANCE_BY_HASH,   /* the cells */
    BALANCE_BY_LOAD,   /* what their vnodes cost in time */
    BALANCE_BY_MEMORY, /* what the actors of their vnodes take */
};
const char *balance_by_name(enum balance_by by);

struct coordinator_config {
    uint64_t id;                                /* my voter id */
    uint64_t identity;                          /* of my folder; 0 = not recorded */
    struct state_voter voter[STATE_VOTERS_MAX]; /* all voters and where they are, for people */
    size_t voter_count;
    struct versions formats; /* of the fleet, that this build reads */
    char cluster[VIEW_NAME_MAX + 1];
    struct fleet_id fleet;      /* random; used only by the first leader ever */
    struct ring_key key;        /* random; likewise */
    uint8_t grid;               /* 14 */
    uint32_t vnodes_per_weight; /* 64 */
    uint32_t moves_per_txn;     /* at most; 8 */
    uint32_t actors_per_txn;    /* about; else fewer moves, or parts of vnodes; 112 */
    uint32_t txns_max;          /* in flight; 8 */
    uint32_t txns_per_node;     /* 2 */
    uint32_t prepare_ms;        /* T_prepare: deadline of a transaction; 8000 */
    uint32_t resend_ms;         /* 300 */
    uint32_t retry_ms;          /* first back-off after an abort; 1000, doubled up to 60000 */
    uint32_t settle_ms;         /* registrations are gathered so long before planning; 200 */
    uint32_t suspect_ms;        /* no RENEW for so long: not live; 1500 */
    uint64_t lease_us;          /* D; 0: leases are not in force */
    uint64_t lease_margin_us;   /* δL; (D - δK)(1 + clock rate error) < D + δL; 300000 */
    uint32_t eligible_ms;       /* a restarted node takes part after so long without a gap; 10000 */
    uint32_t slow_ms;           /* a vote that takes longer, and 8 times the median, is slow; 100 */
    uint32_t yield_ms;          /* waiting so long for a slow node, it makes room; 300 */
    struct coordinator_least least[COORDINATOR_LEAST_MAX]; /* roles not named here: 1 */
    size_t least_count;
    struct coordinator_zone zone[COORDINATOR_ZONES_MAX]; /* roles not named here: any */
    size_t zone_count;
    uint32_t remember_max; /* ids that the fleet remembers; 100000 */
    enum balance_by balance_by;
    uint32_t balance_warm_ms; /* that a node has told what its vnodes cost for, before that counts;
                                 20000 */
    uint32_t
        balance_period_ms;    /* from one plan that moves for the load's sake to the next; 10000 */
    uint32_t balance_rest_ms; /* what moved for the load's sake stays so long; 600000 */
    uint32_t balance_moves;   /* for LOAD and MEMORY a node gives so many vnodes a minute, on the
                                 average; 6 */
};
struct coordinator_config coordinator_config_default(void);
/* Leases of `lease_ms` with the margins that go with it: δL = D/10, T_suspect = D/2. */
void coordinator_config_lease(struct coordinator_config *config, uint32_t lease_ms);
/* Static text that says what is wrong with the leases of `config`, or NULL. The worst clock that
 * the margins cover must be off by 5 % at least (hole 27), and an election of `election_ms` must
 * leave time to renew: else each election would end every lease. */
const char *coordinator_config_fault(const struct coordinator_config *config, uint32_t election_ms);

struct coordinator;
/* `state` is borrowed for life; the shell applies commands to it before the APPLIED event. */
struct coordinator *coordinator_new(const struct coordinator_config *config,
                                    const struct state *state);
/* From now on its prepare_ms, suspect_ms, txns_max, txns_per_node, `least`, zones, remember_max and
 * balance hold. */
void coordinator_configure(struct coordinator *c, const struct coordinator_config *config);
void coordinator_free(struct coordinator *c);
void coordinator_step(struct coordinator *c, const struct coordinator_event *event,
                      struct coordinator_effects *out);
/* Return for how long from the last step on a COORDINATOR_TICK would bring nothing further: there
 * is no proposal, no transaction, and no node that may fall under suspicion. 0: tick as ever. */
uint32_t coordinator_rests_ms(const struct coordinator *c);
/* Return how many plans the leader ever made that had something to do. */
uint64_t coordinator_plans_made(const struct coordinator *c);
/* Abort unless every invariant holds (I9-I11). */
void coordinator_check(const struct coordinator *c);

#endif
