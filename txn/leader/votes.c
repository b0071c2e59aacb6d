/* SPDX-License-Identifier: Apache-2.0
 *
 * What participants say: their votes, and why one has not come yet.
 */
#include "txn/leader/inside.h"

/* A number that is decided here is decided for ever; the voter hasn't heard yet. */
static void tell_over(struct coordinator *c, uint64_t peer, uint64_t txn)
{
    const struct state_txn *t = state_txn(c->state, txn);
    Rh__Control out = RH__CONTROL__INIT;
    Rh__PollAnswer body = RH__POLL_ANSWER__INIT;
    Rh__TxnState row = RH__TXN_STATE__INIT;
    Rh__TxnState *rows = &row;

    if (t == NULL || t->state == TXN_PENDING) {
        return; // it may be too old to remember: Poll finds out
    }
    row.txn = txn;
    row.aborted = t->state == TXN_ABORTED;
    body.version = c->state->view.ring.version;
    body.n_txns = 1;
    body.txns = &rows;
    out.body_case = RH__CONTROL__BODY_POLL_ANSWER;
    out.poll_answer = &body;
    peers_send(c, peer, &out);
}

static uint64_t voted_txn(const Rh__Control *message)
{
    if (message->body_case == RH__CONTROL__BODY_PREPARED) {
        return message->prepared->txn;
    }
    return message->body_case == RH__CONTROL__BODY_REFUSED ? message->refused->txn
                                                           : message->stale->txn;
}

static void take_vote(struct coordinator *c, struct drive *d, const struct state_txn *t,
                      size_t part, const Rh__Prepared *vote)
{
    if (drive_waits_for(d, t, part)) {
        eligibility_voted(c, d, t, part);
        d->ballot[part].voted = true;
        phases_voted(c, d->txn, part, vote);
    }
}

void votes_on_vote(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message)
{
    const struct state_node *node = peers_node(c, peer, message->source_incarnation);
    struct drive *d = drive_find(c, voted_txn(message));
    const struct state_txn *t = d == NULL ? NULL : state_txn(c->state, d->txn);
    const struct state_part *part;

    if (d == NULL) {
        tell_over(c, peer->id, voted_txn(message));
        return;
    }
    part = node == NULL || t == NULL ? NULL : state_txn_part(t, node->slot);
    // A vote is (transaction, node, incarnation): of any other it means nothing (hole 15). A target
    // votes before it has seen the states: it may still refuse, and says why, as long as nothing is
    // decided. (It can't be, without its source's vote.)
    if (part == NULL || part->incarnation != node->incarnation || d->state == DRIVE_DECIDING ||
        (d->ballot[part - t->parts].voted && message->body_case != RH__CONTROL__BODY_REFUSED)) {
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_PREPARED) {
        take_vote(c, d, t, (size_t)(part - t->parts), message->prepared);
    } else if (message->body_case == RH__CONTROL__BODY_REFUSED) {
        drive_fault(d, "%s refused: %.50s", node->name, message->refused->why);
    } else {
        drive_fault(d, "%s accepted that number before", node->name);
    }
}

void votes_on_draining(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message)
{
    const struct state_node *node = peers_node(c, peer, message->source_incarnation);
    const Rh__Draining *in = message->draining;
    const struct drive *d = drive_find(c, in->txn);
    const struct state_txn *t = d == NULL ? NULL : state_txn(c->state, d->txn);
    const struct state_part *part =
        node == NULL || t == NULL ? NULL : state_txn_part(t, node->slot);
    struct ballot *ballot;

    if (part == NULL || part->incarnation != node->incarnation) {
        return;
    }
    ballot = &d->ballot[part - t->parts];
    ballot->report_us = c->now_us;
    ballot->busy = in->busy;
    ballot->running_ms = in->running_ms;
    ballot->peer = in->peer <= RING_NODES_MAX ? (uint16_t)in->peer : 0;
    waits_actor(in->kind, bytes_of(in->id.data, in->id.len), ballot->actor);
}
