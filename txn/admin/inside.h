/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this folder call of each other; what the leader calls of them is in
 * txn/leader/admin.h. ../README.md says what each file is for.
 */
#ifndef TXN_ADMIN_INSIDE_H
#define TXN_ADMIN_INSIDE_H

#include "txn/leader/inside.h"

enum { ADMIN_TEXT_SIZE = 256 }; /* of what an operator is told in words */

/* ---- admin.c ---- */

/* The answer to question `tag`, with how the fleet stands; owned by the caller. */
Rh__AdminReply *admin_reply_new(const struct coordinator *c, uint64_t tag);
/* Takes `reply`. */
void admin_send_reply(struct coordinator *c, uint64_t peer, Rh__AdminReply *reply);

/* ---- rows.c ---- */

/* The field becomes a copy. */
void admin_set_text(char **field, const char *text);
/* Answer that nothing can be proposed now, or as long as this process runs. */
void admin_not_ready(const struct coordinator *c, Rh__AdminReply *reply);
void admin_add_nodes(struct coordinator *c, Rh__AdminReply *reply);
void admin_add_voters(struct coordinator *c, Rh__AdminReply *reply);
void admin_add_vnodes(const struct coordinator *c, Rh__AdminReply *reply);
void admin_add_txn(struct coordinator *c, Rh__AdminReply *reply, const struct state_txn *t);
/* Make one row; the reply frees it. */
Rh__NodeRow *admin_node_row(struct coordinator *c, const struct state_node *node);
Rh__VnodeRow *admin_vnode_row(const struct coordinator *c, const struct ring_vnode *v);
/* Which transaction moved the vnode last, if it is still known. */
void admin_set_last_move(const struct coordinator *c, const struct ring_vnode *v,
                         Rh__VnodeRow *row);
/* Nodes, gateways, voters, vnodes, pending transactions. */
void admin_overview(struct coordinator *c, Rh__AdminReply *reply);

/* ---- waits.c ---- */

/* "n2: actor 'boss-7' has run for 8.2 s (deadline in 1.8 s); vnodes 3, 9" into `text`. */
void waits_now(struct coordinator *c, const struct drive *d, char *text, size_t size);

/* Why planned transactions do not begin: a row for each reason. */
void admin_add_obstacles(struct coordinator *c, Rh__AdminReply *reply);

/* ---- wish.c: true: the answer comes when the command was applied ---- */

bool wish_drain(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                const Rh__AdminDrain *in);
bool wish_remove(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                 const Rh__AdminRemove *in);
bool wish_weight(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                 const Rh__AdminWeight *in);
bool wish_daemons(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                  const Rh__AdminDaemons *in);
bool wish_quarantine(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                     const Rh__AdminQuarantine *in);
bool wish_upgrade(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                  const Rh__AdminUpgrade *in);

/* ---- hour.c ---- */

/* The points of the trend with this number and greater ones; 0 = none are asked for. */
void admin_add_hour(const struct coordinator *c, Rh__AdminReply *reply, uint64_t from);

/* ---- roles.c ---- */

/* The ring's segments, the default one first. */
void admin_add_roles(struct coordinator *c, Rh__AdminReply *reply);
/* Propose another number of daemons; NULL and an error in `reply`: not now, or never. */
struct proposal *admin_daemons(struct coordinator *c, Rh__AdminReply *reply,
                               const Rh__AdminDaemons *in);

/* ---- preview.c ---- */

/* Answer what would move. Changes nothing. */
void admin_preview(struct coordinator *c, Rh__AdminReply *reply, const Rh__AdminPreview *in);

/* What a plan is asked of. */
struct preview {
    struct rebalance_question of;
    const char *added;   /* name of the one in … */
    uint16_t added_slot; /* … this slot, which is no member; 0 = none */
};
/* The nodes as they are planned now, and what else is wished, or NULL. */
struct preview preview_of(struct coordinator *c, struct plan_node *nodes, size_t count,
                          const struct plan_wishes *more);
/* Answer its transactions, or an error. */
void preview_plan(struct coordinator *c, Rh__AdminReply *reply, const struct preview *p);

/* ---- balance.c ---- */

/* How even the load is, as far as it is known. */
void admin_add_balance(struct coordinator *c, Rh__AdminReply *reply);

/* ---- move.c ---- */

/* Judge the moves, answer what would move, and unless it is a rehearsal, wish it. True: the answer
 * comes when the command was applied. */
bool move_ask(struct coordinator *c, struct leader_peer *peer, Rh__AdminReply *reply,
              const Rh__AdminMove *in);

/* ---- pin.c ---- */

/* Judge the pins and propose them, or their end. True: the answer comes when it was applied. */
bool pin_ask(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
             const Rh__AdminPin *in);
/* Propose pins of these cells, each at the node of its slot; likewise. */
bool pin_cells(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
               const struct plan_wishes *cells, const Rh__AdminMove *in);
/* Write into `text` which pin forbids another one of these cells, and what to do; "" = none does.
 */
void pin_rival_text(const struct coordinator *c, const struct state_pin *pin,
                    char text[ADMIN_TEXT_SIZE]);
/* Tell a page of the pins. */
void pin_list(struct coordinator *c, Rh__AdminReply *reply, const Rh__AdminPins *in);
/* Tell how many there are, and how many of them have no node to be at. */
void pin_count(struct coordinator *c, Rh__AdminReply *reply);
/* How many there are at the node of that name. */
size_t pin_count_at(const struct coordinator *c, const char *node);

/* ---- remembered.c ---- */

/* Tell how many ids are remembered, and what was refused. */
void remembered_count(const struct coordinator *c, Rh__AdminReply *reply);
/* Tell a page of them. */
void remembered_list(const struct coordinator *c, Rh__AdminReply *reply,
                     const Rh__AdminRemembered *in);
/* Propose that some are forgotten. True: the answer comes when it was applied. */
bool remembered_forget(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                       const Rh__AdminForget *in);

/* ---- wish.c ---- */

/* The proposal (NULL: none) is of an operator, who waits for the answer to that question. */
void wish_expect(struct proposal *p, const struct leader_peer *peer, uint64_t question,
                 uint16_t slot);

/* ---- operator_request.c ---- */

/* Pass it on to a gateway, or to the owner of the actor whose values it asks for; when it stands in
 * the history, unless it only reads values. True: the answer comes later. */
bool operator_request_ask(struct coordinator *c, const struct leader_peer *peer,
                          Rh__AdminReply *reply, const Rh__AdminOperatorRequest *in);

/* ---- residents.c ---- */

/* The newest link of the node with that name, for it may have come anew; NULL = it has none. */
const struct leader_peer *residents_find_node(const struct coordinator *c, const char *name);

/* Have a node tell who lives there. True: the answer comes later. */
bool residents_ask(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                   const Rh__AdminActors *in);

/* ---- quarantine.c ---- */

/* Actors in quarantine, and those with strikes. */
void admin_add_quarantine(const struct coordinator *c, Rh__AdminReply *reply);
/* Propose to put one in or take it out; NULL and an error in `reply`: not now, or never. */
struct proposal *admin_quarantine(struct coordinator *c, Rh__AdminReply *reply,
                                  const Rh__AdminQuarantine *in);

/* ---- resolve.c ---- */

/* True: the answer comes when the command was applied. */
bool resolve_on_question(struct coordinator *c, const struct leader_peer *peer,
                         Rh__AdminReply *reply, const Rh__AdminResolve *in);

/* ---- gateways.c ---- */

/* The gateways that are linked: a row for each process. */
void admin_gateways(struct coordinator *c, Rh__AdminReply *reply);

/* ---- upgrade.c ---- */

/* Tell which version each process has, the fleet's format, and to which format it may rise or why
 * to none. */
void upgrade_tell(struct coordinator *c, Rh__AdminReply *reply);
/* Like upgrade_tell(); if the operator wishes it, also propose that the format rises. NULL: the
 * answer is complete. */
struct proposal *upgrade_on_question(struct coordinator *c, Rh__AdminReply *reply,
                                     const Rh__AdminUpgrade *in);

/* ---- maintenance.c ---- */

/* Have nodes serve without coordinators for a while. True: the answer comes when the log has the
 * longest lease. */
bool maintenance_on_question(struct coordinator *c, const struct leader_peer *peer,
                             Rh__AdminReply *reply, const Rh__AdminMaintenance *in);

/* ---- inspect.c ---- */

/* Have one process repair itself, after a barrier. True: the answer comes when the repair was
 * recorded. */
bool inspect_repair(struct coordinator *c, const struct leader_peer *peer, Rh__AdminReply *reply,
                    const Rh__AdminRepair *in);

#endif
