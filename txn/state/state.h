/* SPDX-License-Identifier: Apache-2.0
 *
 * The replicated state: what every coordinator agrees on. Commands change it,
 * in log order, by the rules of specification §3.1; a rejected command changes
 * nothing. storage/state/state_sqlite.h mirrors it into state.db.
 *
 * One counter feeds transaction numbers, ring versions and incarnations:
 *     stamp = era:24 << 40 | number:40
 * It never goes down and no stamp is used twice (hole 14).
 *
 * Pure and deterministic: no clock, no randomness; they come in the command.
 */
#ifndef TXN_STATE_STATE_H
#define TXN_STATE_STATE_H

#include "base/machine.h"
#include "base/stamp.h"
#include "ring/view.h"
#include "wire/raft.pb-c.h"

enum {
    STATE_TXNS_KEPT = 1024,   /* decided ones: for who asks, and for diagnosis */
    STATE_PENDING_MAX = 256,  /* transactions */
    STATE_TXN_OPS_MAX = 4096, /* of one transaction; as many arcs as a participant takes */
    STATE_WHY_MAX = 127,
    STATE_UUID_SIZE = 16,
    STATE_VOTERS_MAX = 5,
    STATE_NUMBER_BITS = STAMP_COUNT_BITS, /* of a stamp; the era is above */
    STATE_LEASE_S_MAX = 3600,
};

struct state_node {
    uint16_t slot;
    char name[VIEW_NAME_MAX + 1];
    char address[VIEW_ADDRESS_MAX + 1];
    char zone[VIEW_NAME_MAX + 1];
    char role[RING_ROLE_MAX + 1];
    struct ring_kinds kinds; /* from FLEET_FORMAT_KINDS on */
    uint64_t incarnation;
    uint64_t nonce; /* of the REGISTER that drew the incarnation */
    uint8_t boot_id[STATE_UUID_SIZE];
    uint8_t data_uuid[STATE_UUID_SIZE];
    uint32_t weight;
    bool leaving;    /* the operator or the node itself wants it empty */
    bool stopping;   /* leaving because its process is to end: undone by the next REGISTER */
    bool removed;    /* stopping because an operator has it removed: dead, it is forgotten */
    bool barred;     /* fenced: this incarnation never serves again */
    bool clean;      /* barred by its own BYE */
    uint64_t wish;   /* an operator's last about it, by its random number; 0 = none yet */
    uint64_t wished; /* drawn by that one; what was wished before is superseded */
};

/* How the ids of a kind find their nodes; as enum rh_placement. */
enum {
    PLACE_HASH = 0,
    PLACE_SINGLETON = 1,
    PLACE_DAEMONS = 2,
    PLACE_TOGETHER = 3,
    PLACE_HOSTS = 4
};

/* A kind of actor, as the nodes of its role declared it. */
struct state_kind {
    uint16_t number;
    uint8_t placement;
    char role[RING_ROLE_MAX + 1];
    char name[VIEW_NAME_MAX + 1];
};

enum txn_state { TXN_PENDING, TXN_COMMITTED, TXN_ABORTED };
extern const struct machine txn_machine;
const char *txn_state_name(enum txn_state state);

struct state_part {
    uint16_t slot;
    uint64_t incarnation; /* at BEGIN; COMMIT needs it still current (hole 15) */
    bool gives;
    bool takes;
    bool voted; /* its vote was counted by COMMIT */
};

struct state_txn {
    uint64_t number;
    enum txn_state state;
    struct ring_op *ops; /* owned */
    size_t op_count;
    struct state_part *parts; /* owned; sorted by slot; none: SPLIT/MERGE only */
    size_t part_count;
    uint64_t base;
    uint64_t version; /* drawn at commit */
    uint64_t superseded_by;
    uint64_t created_us; /* leader's wall clock */
    uint64_t decided_us;
    char why[STATE_WHY_MAX + 1];
    char outcome_why[STATE_WHY_MAX + 1];
};

struct state_voter {
    uint64_t id;
    uint64_t identity;
    char address[VIEW_ADDRESS_MAX + 1];
};

/* An actor that ran when its process died; txn/state/suspect.h. */
struct state_suspect {
    struct quarantined actor;
    bool quarantined;             /* no node activates it */
    uint32_t strikes;             /* processes that died while it ran */
    uint64_t struck_us;           /* the last strike; leader's wall clock */
    uint64_t since_us;            /* in quarantine since */
    char node[VIEW_NAME_MAX + 1]; /* whose process died last */
};

/* Cells that an operator wants to be at a node; txn/state/pins.h. */
struct state_pin {
    uint32_t from; /* first cell */
    uint32_t to;   /* not of them */
    uint16_t kind;
    uint8_t id_size; /* 0: they are wished themselves, else they are the id's */
    bool waits;      /* for the node when it is dead; else others get them */
    uint8_t *id;     /* owned; NULL if id_size is 0 */
    char node[VIEW_NAME_MAX + 1];
};

/* An id that is to live again when what had it is gone; txn/state/remembered.h. */
struct state_remembered {
    uint16_t kind;
    uint8_t id_size; /* > 0 */
    uint8_t *id;     /* owned */
};

/* Cells that were given away when their owner was dead: txn/state/suspect.h. */
struct state_lost {
    uint64_t incarnation; /* that had them; until its name is registered anew, or goes */
    uint32_t from;
    uint32_t to; /* not of them */
};

/* A strike that others told of: the dead node's own word, when it comes, is of the same death. */
struct state_struck {
    uint64_t incarnation; /* that died; until its name is registered anew, or goes */
    uint64_t position;    /* of the actor */
};

struct state {
    bool begun;    /* INIT was applied */
    bool settling; /* restored from a backup: no lease, REGISTER or BEGIN yet (hole 52) */
    char cluster[VIEW_NAME_MAX + 1];
    uint32_t vnodes_per_weight;
    uint32_t format;   /* of the fleet: wire/versions.h */
    uint64_t lease_us; /* the longest that any leader may have granted; 0 = none ever was */
    uint64_t number;   /* last stamp drawn, era included */
    struct view view;
    struct state_node *node; /* owned; sorted by slot */
    size_t node_count;
    struct state_txn *txn; /* owned; sorted by number: pending ones and the last outcomes */
    size_t txn_count;
    struct state_voter voter[STATE_VOTERS_MAX]; /* sorted by id */
    size_t voter_count;
    struct state_kind *kind; /* owned; sorted by number */
    size_t kind_count;
    struct state_suspect *suspect; /* owned; sorted by kind and id */
    size_t suspect_count;
    struct state_lost *lost; /* owned; in the order in which they were given away */
    size_t lost_count;
    struct state_struck *struck; /* owned; in the order in which they were struck */
    size_t struck_count;
    struct state_pin *pin; /* owned; sorted by cells, kind and id */
    size_t pin_count;
    struct state_remembered *remembered; /* owned; sorted by kind and id */
    size_t remembered_count;
};

/* CommandDesire.leaving: what is wanted of a node. STOP: drain it, and its process ends then; a
 * drain alone leaves it running, empty. */
enum desire { DESIRE_KEEP = 0, DESIRE_DRAIN = 1, DESIRE_STAY = 2, DESIRE_STOP = 3 };

/* Result of a command. */
struct state_result {
    bool accepted;
    const char *why;   /* refused: static text */
    uint64_t stamp;    /* REGISTER: incarnation; BEGIN: number; COMMIT, REASSIGN: version */
    uint64_t txn;      /* BEGIN, COMMIT, ABORT: the number */
    Rh__Delta *delta;  /* owned; NULL when the view did not change */
    uint64_t *aborted; /* owned; transactions this command aborted */
    size_t aborted_count;
};
void state_result_fini(struct state_result *r);

void state_init(struct state *s);
void state_fini(struct state *s);

/* Make the state the one that a restore begins with (specification §3.7): in the greater era `era`
 * its numbers go on, its ring has a version that no state had before, and no leader serves until
 * old leases ended: as long as the state knows of, or `lease_us`. */
void state_raise(struct state *s, uint64_t era, uint64_t lease_us);

/* Apply one command. `result` is overwritten; free it with state_result_fini(). */
void state_apply(struct state *s, const Rh__Command *command, struct state_result *result);

const struct state_node *state_node(const struct state *s, uint16_t slot);
const struct state_node *state_node_named(const struct state *s, const char *name);
const struct state_txn *state_txn(const struct state *s, uint64_t number);
/* Find a pending transaction, `except` aside, that touches a vnode that `ops` names (specification
 * §3.2); NULL = none. */
const struct state_txn *state_conflict(const struct state *s, const struct ring_op *ops,
                                       size_t count, uint64_t except);
/* True if a node of the same role other than `slot` stays: neither leaving nor fenced. */
bool state_others_stay(const struct state *s, uint16_t slot);
/* The node's part in the transaction; NULL = none. */
const struct state_part *state_txn_part(const struct state_txn *t, uint16_t slot);
/* True if a pending transaction has the node as participant. */
bool state_takes_part(const struct state *s, uint16_t slot);
/* Static text that says what is wrong with a registration whatever the state is, or NULL. */
const char *state_registration_fault(const Rh__CommandRegister *in);
/* Transactions in flight. */
size_t state_pending_count(const struct state *s);

/* Abort unless I9 holds: every cell one owner, owner known, pending sets disjoint, numbers grow. */
void state_check(const struct state *s);

#endif
