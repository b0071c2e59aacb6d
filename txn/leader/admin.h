/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators: what of their questions and wishes does the leader's step have to do with? All of it
 * is in txn/admin/, which this folder does not include.
 */
#ifndef TXN_LEADER_ADMIN_H
#define TXN_LEADER_ADMIN_H

#include "txn/leader/drive.h"

struct fleet_upgrade {
    uint64_t ahead_term; /* in which I proposed AHEAD */
};

/* ---- admin.c ---- */

bool admin_waits(const Rh__Admin *in); /* must a barrier come first? */
void admin_on_question(struct coordinator *c, struct leader_peer *peer, const Rh__Admin *in);
/* Answer with that error, and do nothing. */
void admin_refuse(struct coordinator *c, const struct leader_peer *peer, const Rh__Admin *in,
                  const char *error);

/* ---- what an operator waits for came out of the log, by `p` ---- */

void admin_applied(struct coordinator *c, const struct proposal *p,
                   const struct state_result *result);
/* Answer the operator who resolved a transaction, when the command was applied (resolve.c). */
void resolve_applied(struct coordinator *c, const struct proposal *p,
                     const struct state_result *result);
/* The request stands in the history: send it now. */
void operator_request_applied(struct coordinator *c, const struct proposal *p,
                              const struct state_result *result);
/* The repair stands in the history: do it now. */
void inspect_repair_applied(struct coordinator *c, const struct proposal *p,
                            const struct state_result *result);

/* ---- maintenance.c ---- */

/* The log has another longest lease; if an operator wished it, extend leases from now on, and
 * answer. */
void maintenance_applied(struct coordinator *c, const struct proposal *p,
                         const struct state_result *result);

/* ---- operator_request.c ---- */

/* A gateway answers, or the node that was asked for values. */
void operator_request_relay(struct coordinator *c, const struct leader_peer *from,
                            const Rh__OperatorRequestAnswer *answer);

/* ---- residents.c ---- */

/* A node tells who lives there. */
void residents_relay(struct coordinator *c, const Rh__ActorsAnswer *answer);

/* ---- quarantine.c ---- */

/* Log who came into the quarantine and who left it, by a command that was applied. */
void admin_log_quarantine(const struct coordinator *c, const struct state_result *result);

/* ---- gateways.c ---- */

/* One has come: warn if it has another's name. */
void gateways_look(const struct coordinator *c, const struct leader_peer *peer);

/* ---- upgrade.c ---- */

/* Do what only a newer format has. */
void upgrade_run(struct coordinator *c);

/* ---- inspect.c: whether I lead or not ---- */

/* Tell the operator how I am, and ask all that are linked to me the same. */
void inspect_ask(struct coordinator *c, const struct leader_peer *peer, const Rh__Admin *in);
/* Pass a node's or gateway's answer on to the operator to whom it belongs. */
void inspect_relay(struct coordinator *c, const Rh__InspectAnswer *answer);
/* Tell the peer to repair itself: enum repair_task. */
void inspect_tell_repair(struct coordinator *c, const struct leader_peer *peer, uint32_t what);

/* ---- waits.c ---- */

/* "n2: actor 0/boss-7 did not stop in 10 s" into `text`: as an outcome's reason. */
void waits_over(struct coordinator *c, const struct drive *d, char *text, size_t size);
/* Write an actor's name, KIND/ID; of a long one the beginning, and three dots. */
void waits_actor(uint32_t kind, struct bytes id, char text[WAITS_ACTOR_MAX + 1]);

#endif
