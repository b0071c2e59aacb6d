/* SPDX-License-Identifier: Apache-2.0
 *
 * Past: does anything show that this database is an older copy (hole 54)? Asked after a barrier.
 */
#ifndef TXN_LEADER_PAST_H
#define TXN_LEADER_PAST_H

#include "txn/leader/peers.h"

/* Whose word it is, for they are not believed alike. */
enum past_teller { PAST_NODE, PAST_GATEWAY };
enum { PAST_TELLERS = PAST_GATEWAY + 1 };

struct past_word {
    uint64_t newer;   /* the greatest number that was never drawn here; 0 = none */
    uint64_t told;    /* so often was one told */
    uint64_t said_us; /* when the log was */
};

struct past {
    struct past_word word[PAST_TELLERS];
    uint64_t born_us; /* when this process began */
    bool sure;        /* whoever could know better has been asked, or has no lease any more */
    uint64_t denied[RING_NODES_MAX + 1]; /* by slot: incarnation that knows nothing newer */
};

/* What was drawn here up to a moment. */
struct drawn {
    uint64_t version;
    uint64_t number; /* of a transaction */
};

/* past_drawn() returns what is drawn by now. */
struct drawn past_drawn(const struct coordinator *c);
/* past_born() notes that this process begins now. */
void past_born(struct coordinator *c);
/* The sender of `message` knows of more than `drawn`, which was drawn here: this is an older copy,
 * or I don't know yet that I fell. */
bool past_knows_more(const struct drawn *drawn, const Rh__Control *message);

/* The message, which came when no more was drawn than `drawn`, tells that this database is an older
 * copy: nothing is promised on it. What I drew since then may be the very number that it tells of,
 * for something else. */
bool past_shows(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message,
                const struct drawn *drawn);
/* past_note() keeps that `name` knows a number that was never drawn here. */
void past_note(struct coordinator *c, enum past_teller teller, const char *name, uint64_t knows);
/* True if somebody showed that the database is one of the past: no number is drawn in this era, for
 * it may have been drawn before. A gateway has no lease and runs nothing: its word counts as long
 * as a lease of before may be left. */
bool past_found(const struct coordinator *c);
/* And it stays so as long as this process runs. */
bool past_stays(const struct coordinator *c);
/* The node knows nothing newer. */
void past_denied(struct coordinator *c, const struct state_node *node);
/* True if this process began on what it found on its disk, and a node that may serve has not been
 * heard since: no number is drawn as long as a lease of before may be left. */
bool past_unsure(struct coordinator *c);
/* Note that this process founded the fleet: there is nothing older. */
void past_founded(struct coordinator *c);
/* Forget what nodes denied: it counts for one leadership. */
void past_forget(struct coordinator *c);

#endif
