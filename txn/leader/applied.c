/* SPDX-License-Identifier: Apache-2.0
 *
 * What came out of the log, and which proposals are over.
 */
#include "txn/leader/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/stamp.h"

static void announce(struct coordinator *c, const struct state_result *result)
{
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Commit body = RH__COMMIT__INIT;

    body.txn = result->delta->txn;
    body.delta = result->delta;
    out.body_case = RH__CONTROL__BODY_COMMIT;
    out.commit = &body;
    peers_broadcast(c, &out, body.txn == 0 ? NULL : state_txn(c->state, body.txn));
}

/* A proposal of mine came out of the log. */
static void on_mine(struct coordinator *c, const struct proposal *p,
                    const struct coordinator_event *event)
{
    const struct state_result *result = event->result;
    struct leader_peer *asker = p->asked ? peers_find(c, p->peer) : NULL;

    if (asker != NULL && p->kind != PROPOSAL_OPERATOR_REQUEST) {
        asker->done = p->question; // of a request, its target answers
    }
    if (!result->accepted) {
        log_info("txn", "refused", "why=\"%s\"", result->why);
    }
    switch (p->kind) {
    case PROPOSAL_INIT:
        past_founded(c);
        return;
    case PROPOSAL_REGISTER:
        register_applied(c, p, result);
        return;
    case PROPOSAL_BEGIN:
        if (result->accepted) {
            drive_begin(c, p, result->stamp);
        } else if (!p->asked) {
            drive_refused(c, p, result->why);
            rebalance_failed(c, p);
        }
        resolve_applied(c, p, result);
        return;
    case PROPOSAL_DECIDE:
        if (!result->accepted) {
            drive_undecided(c, p->txn, p->asked ? NULL : result->why);
        }
        resolve_applied(c, p, result);
        return;
    case PROPOSAL_DESIRE:
    case PROPOSAL_DEREGISTER:
    case PROPOSAL_DAEMONS:
    case PROPOSAL_QUARANTINE:
    case PROPOSAL_PIN:
    case PROPOSAL_FORMAT:
        admin_applied(c, p, result);
        return;
    case PROPOSAL_FORGET:
        admin_applied(c, p, result);
        recall_applied(c, p, event);
        return;
    case PROPOSAL_REMEMBER:
        recall_applied(c, p, event);
        return;
    case PROPOSAL_FENCE:
        fence_applied(c, p, result);
        return;
    case PROPOSAL_REPAIR:
        inspect_repair_applied(c, p, result);
        return;
    case PROPOSAL_OPERATOR_REQUEST:
        operator_request_applied(c, p, result);
        return;
    case PROPOSAL_LEASE:
        maintenance_applied(c, p, result);
        return;
    case PROPOSAL_NOTE:
    case PROPOSAL_VOTER:
    case PROPOSAL_REASSIGN:
    case PROPOSAL_SETTLE:
    case PROPOSAL_AHEAD:
        return;
    }
    UNREACHABLE();
}

static void log_outcome(const struct state_txn *t)
{
    log_info("txn",
             txn_state_name(t->state),
             "txn=%s version=%s why=\"%s\" outcome=\"%s\"",
             STAMP(t->number),
             STAMP(t->version),
             t->why,
             t->outcome_why);
}

static void count_outcomes(struct coordinator *c, const struct state_result *result)
{
    c->applied.committed += result->delta != NULL && result->delta->txn != 0;
    c->applied.reassigned += result->delta != NULL && result->delta->cold;
    c->applied.aborted += result->aborted_count;
}

void applied_on_entry(struct coordinator *c, const struct coordinator_event *event)
{
    const struct state_result *result = event->result;
    const struct state_txn *t;
    struct proposal p;

    c->applied.changes++;
    // A directory that changed has other incarnations.
    if (result->delta != NULL && result->delta->txn == 0) {
        peers_look_again(c);
    }
    c->applied.index = event->index > c->applied.index ? event->index : c->applied.index;
    if (event->command->body_case == RH__COMMAND__BODY_INIT) {
        peers_part(c);
    }
    if (result->delta != NULL) {
        history_put(c, result->delta);
    }
    count_outcomes(c, result);
    eligibility_registered(c, event->command, result);
    if (!c->leading) {
        return;
    }
    if (result->delta != NULL) {
        loads_changed(c, result->delta);
        trend_changed(&c->trend, result->delta);
        announce(c, result);
    }
    if (result->delta != NULL && result->delta->txn != 0) {
        t = state_txn(c->state, result->delta->txn);
        if (t != NULL) {
            log_outcome(t);
            phases_outcome(c, t);
            rebalance_outcome(c, t, true);
        }
    } else if (result->delta != NULL) {
        rebalance_touch(c); // the directory changed
        admin_log_quarantine(c, result);
    }
    if (event->command->body_case == RH__COMMAND__BODY_PIN && result->accepted) {
        rebalance_touch(c); // no delta: only the leader asks what is pinned
    }
    for (size_t i = 0; i < result->aborted_count; i++) {
        t = state_txn(c->state, result->aborted[i]);
        drive_cancel(c, result->aborted[i]);
        if (t != NULL) {
            log_outcome(t);
            phases_outcome(c, t);
            rebalance_outcome(c, t, false);
        }
    }
    drive_prune(c);
    if (event->tag != 0 && proposals_take(c, event->tag, &p)) {
        on_mine(c, &p, event);
        proposal_fini(&p);
    }
}

void applied_on_done(struct coordinator *c, const struct coordinator_event *event)
{
    struct proposal p;

    if (event->error != ERR_OK) {
        proposals_pause(c);
    }
    if (c->barrier.tag != 0 && event->tag == c->barrier.tag) {
        barrier_done(c, event->error);
        return;
    }
    if (!proposals_take(c, event->tag, &p)) {
        return;
    }
    if (p.kind == PROPOSAL_DECIDE) {
        drive_undecided(c, p.txn, NULL);
    } else if (p.kind == PROPOSAL_BEGIN) {
        rebalance_failed(c, &p);
    }
    proposal_fini(&p);
}

void applied_look_again(struct coordinator *c)
{
    c->applied.changes++;
}
