/* SPDX-License-Identifier: Apache-2.0
 *
 * Registration: which nodes come, stay and go, and who votes? All but Bye is asked after a barrier.
 */
#ifndef TXN_LEADER_REGISTER_H
#define TXN_LEADER_REGISTER_H

#include "txn/leader/peers.h"
#include "txn/leader/proposal.h"

struct registration {
    uint64_t tidied;     /* of the changes (applied.h), when register_tidy() had nothing to do */
    uint64_t other_maps; /* renewals of who has another ring at the same version */
};

void register_on_register(struct coordinator *c, struct leader_peer *peer, const Rh__Register *in);
void register_on_renew(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message);
/* When to say next, at least `least_us` from now, what nodes and gateways say regularly: at the
 * same moment as some others, so that I wake, and prove that I lead, once for all of them.
 * `number`: what tells who says it from others; 0 = leases are not in force. */
uint32_t register_next_us(const struct coordinator *c, uint64_t number, uint32_t least_us);
/* False: this renewal of `node` can wait some milliseconds, for most of its lease is left. */
bool register_is_urgent(struct coordinator *c, const struct state_node *node, const Rh__Renew *in);
/* Keep what a node tells of itself, for status. */
void register_note(struct seen *seen, const Rh__Renew *in);
void register_on_bye(struct coordinator *c, struct leader_peer *peer, uint64_t incarnation);
void register_on_poll(struct coordinator *c, struct leader_peer *peer, const Rh__Poll *in);
void register_applied(struct coordinator *c, const struct proposal *p,
                      const struct state_result *result);
/* One that waits to join, or votes no more, may be linked as well. Nobody told me of the voters:
 * all are. */
bool coordinator_is_voter(const struct coordinator *c, uint64_t id);
/* Record the voters that are linked: for people, and to see that a folder was replaced. */
void register_voters(struct coordinator *c);
/* Tell a link that its incarnation is over; `node` is that which has its name, or NULL. */
void register_bar(struct coordinator *c, uint64_t peer, const struct state_node *node);
/* Remove nodes that said BYE and are empty. */
void register_tidy(struct coordinator *c);

#endif
