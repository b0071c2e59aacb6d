/* SPDX-License-Identifier: Apache-2.0
 *
 * Is this database one of the past? Put back as a whole its files agree with each other, and only
 * others can tell: a registered node knows a number that was never drawn here (hole 54). Asked of
 * what came before a barrier of my own, so that it is no newer leader who drew it.
 */
#include "txn/leader/inside.h"

#include "base/log.h"
#include "base/mutant.h"

#include <inttypes.h>

static uint64_t highest_of(const Rh__Control *message)
{
    uint64_t highest = message->body_case == RH__CONTROL__BODY_RENEW ? message->renew->version : 0;

    for (size_t i = 0; message->body_case == RH__CONTROL__BODY_POLL && i < message->poll->n_txns;
         i++) {
        highest = message->poll->txns[i] > highest ? message->poll->txns[i] : highest;
    }
    return highest;
}

bool past_shows(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message)
{
    const bool renews = message->body_case == RH__CONTROL__BODY_RENEW;
    const struct state_node *node = peers_node(c, peer, message->source_incarnation);
    const uint64_t highest = highest_of(message);
    const uint64_t drawn = renews ? c->state->view.ring.version : c->state->number;

    if (node == NULL || highest <= drawn || mutant(M_OLDCOPY)) {
        return false;
    }
    if (highest > c->past.newer) {
        c->past.newer = highest;
        log_error("txn",
                  "database_went_back",
                  "node=%s knows=%" PRIu64 " number=%" PRIu64
                  " effect=\"no changes, registrations, or leases for who knows more\" "
                  "reason=\"an older copy of the folder was put back\" remedy=\"stop the "
                  "coordinators and restore again (docs/recovery.md#went-back)\"",
                  node->name,
                  highest,
                  c->state->number);
    }
    struct seen *seen = peers_heard(c, node); // alive, and not to be fenced by who knows less
    if (renews) {
        register_note(seen, message->renew);
    }
    return true;
}

bool past_found(const struct coordinator *c)
{
    return c->past.newer != 0;
}

void past_forget(struct coordinator *c)
{
    c->past.newer = 0;
}
