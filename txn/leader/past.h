/* SPDX-License-Identifier: Apache-2.0
 *
 * Past: does anything show that this database is an older copy (hole 54)? Asked after a barrier.
 */
#ifndef TXN_LEADER_PAST_H
#define TXN_LEADER_PAST_H

#include "txn/leader/peers.h"

struct past {
    uint64_t newer; /* number that a node knows and that was never drawn here; 0 = none */
};

/* The message tells that this database is an older copy: nothing is promised on it. */
bool past_shows(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message);
/* One did since I lead: no number is drawn, for it may have been before. */
bool past_found(const struct coordinator *c);
void past_forget(struct coordinator *c);

#endif
