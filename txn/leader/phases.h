/* SPDX-License-Identifier: Apache-2.0
 *
 * When each step of the last transactions came, as the leader that drove them
 * saw it: for people, who ask why one took so long. Nothing here is replicated
 * or decides anything. At most PHASES_KEPT transactions, then the oldest goes;
 * of each at most PHASES_PARTS_MAX participants.
 */
#ifndef TXN_LEADER_PHASES_H
#define TXN_LEADER_PHASES_H

#include "wire/control.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PHASES_KEPT = 256, PHASES_PARTS_MAX = 64 };

struct coordinator;
struct state_node;
struct state_txn;

/* Times are by the leader's CLOCK_BOOTTIME; 0 = it did not come yet. */
struct phases_part {
    uint16_t slot;
    uint64_t incarnation;
    uint64_t asked_us;   /* first PREPARE */
    uint64_t voted_us;   /* PREPARED came */
    uint64_t adopted_us; /* a committed one: its first message with the new ring */
    uint64_t actors;     /* that it handed over, by its vote */
    uint64_t bytes;
};

struct phases_txn {
    uint64_t txn;
    uint64_t wall_us;     /* CLOCK_REALTIME at … */
    uint64_t begun_us;    /* … BEGIN's coming out of the log */
    uint64_t proposed_us; /* the last proposal of an outcome */
    uint64_t outcome_us;  /* it came out of the log */
    uint64_t version;     /* of a committed one */
    bool open;            /* not every participant has adopted it */
    size_t part_count;
    struct phases_part *part; /* owned; in the order of state_txn.parts */
};

struct phases {
    struct phases_txn *item; /* owned; a ring buffer */
    size_t count;
    size_t at;   /* where the next goes */
    size_t open; /* of them */
};

/* A BEGIN of mine was applied. */
void phases_begun(struct coordinator *c, const struct state_txn *t);
/* PREPARE is sent to that participant. */
void phases_asked(struct coordinator *c, uint64_t txn, size_t part);
/* A participant's vote came and counts. */
void phases_voted(struct coordinator *c, uint64_t txn, size_t part, const Rh__Prepared *vote);
/* An outcome is proposed. */
void phases_proposed(struct coordinator *c, uint64_t txn);
/* The transaction's outcome was applied. */
void phases_outcome(struct coordinator *c, const struct state_txn *t);
/* A message came from the node, which had that version of the ring. */
void phases_heard(struct coordinator *c, const struct state_node *node, uint64_t version);
/* Add the times to the row, whose votes are in the order of the participants. */
void phases_tell(const struct coordinator *c, Rh__TxnRow *row);
void phases_fini(struct coordinator *c);

#endif
