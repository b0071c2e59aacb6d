/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator decides a pending transaction: what each choice would do to each
 * participant, what the protocol forbids and why, and the proposal. Like every
 * outcome it counts only if the transaction is still pending when it comes out
 * of the log (hole 12).
 */
#include "txn/admin/inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/stamp.h"

#include <stdio.h>

enum { TEXT_SIZE = 256 };

#define COMMIT RH__RESOLVE_CHOICE__RESOLVE_COMMIT
#define ABORT  RH__RESOLVE_CHOICE__RESOLVE_ABORT
#define RETRY  RH__RESOLVE_CHOICE__RESOLVE_RETRY

/* ---- what is forbidden ---- */

/* Whom a COMMIT lacks, into `text`. COMMIT's own rule refuses the same (holes 2 and 15); here it
 * is said before, by name. */
static void commit_refusal(const struct coordinator *c, const struct state_txn *t,
                           const struct drive *d, char *text, size_t size)
{
    for (size_t i = 0; i < t->part_count; i++) {
        const struct state_node *node = state_node(c->state, t->parts[i].slot);

        if (node == NULL || node->barred || node->incarnation != t->parts[i].incarnation) {
            (void)snprintf(text,
                           size,
                           "%s was restarted or fenced since then: its prepared state is lost",
                           node == NULL ? "a participant" : node->name);
            return;
        }
        if (!d->ballot[i].voted && !mutant(M_FORCED)) {
            (void)snprintf(text,
                           size,
                           "%s has not voted: its actors may still run, and COMMIT would give them "
                           "a second owner",
                           node->name);
            return;
        }
    }
}

/* Why `choice` is forbidden, into `text`; empty: it is not. `t` is pending. */
static void refusal(const struct coordinator *c, const struct state_txn *t,
                    Rh__ResolveChoice choice, char *text, size_t size)
{
    const struct drive *d = drive_find(c, t->number);

    text[0] = '\0';
    if (d == NULL && choice != ABORT) {
        (void)snprintf(text, size, "the new leader is about to begin it anew: check again");
    } else if (choice == COMMIT && d->state == DRIVE_DECIDING) {
        (void)snprintf(text, size, "its outcome is being written to the log");
    } else if (choice == COMMIT) {
        commit_refusal(c, t, d, text, size);
    }
    if (text[0] == '\0' && choice != ABORT &&
        ring_check(&c->state->view.ring, t->ops, t->op_count) != ERR_OK) {
        (void)snprintf(text, size, "its moves no longer fit the ring");
    }
}

/* ---- what would happen ---- */

static const char *holds_now(const struct state_part *part, const struct ballot *b)
{
    if (b == NULL || b->asked_us == 0) {
        return "nothing yet: it was not asked, and serves as before";
    }
    if (part->gives) {
        return b->voted ? "its vnodes: actors frozen and handed over, requests wait"
                        : "its vnodes: actors are stopping, requests wait";
    }
    return b->voted ? "room, and the state it was sent" : "has not answered yet";
}

static const char *effect_on(const struct state_part *part, const struct ballot *b,
                             Rh__ResolveChoice choice)
{
    const bool asked = b != NULL && b->asked_us != 0;

    if (choice == COMMIT) {
        return part->gives ? "drops the frozen actors, sends the requests on to the new owner"
                           : "owns the vnodes, starts their actors from the received state";
    }
    if (!asked) {
        return choice == RETRY ? "is asked under the new number" : "nothing";
    }
    if (choice == RETRY) {
        return part->gives ? "keeps its hold under the new number, hands over again"
                           : "drops the received state, is asked again";
    }
    return part->gives ? "wakes its actors, runs the requests that wait"
                       : "drops the received state";
}

static const char *effect_on_txn(Rh__ResolveChoice choice)
{
    if (choice == COMMIT) {
        return "its moves take effect under a new version; this cannot be undone, only moved back";
    }
    return choice == RETRY ? "aborted and begun anew in one log entry: another number, no vote"
                           : "nothing moves; the same moves are planned again after a back-off";
}

static Rh__ResolvePart *part_row(const struct coordinator *c, const struct state_txn *t, size_t i,
                                 Rh__ResolveChoice choice)
{
    const struct drive *d = drive_find(c, t->number);
    const struct ballot *b = d == NULL ? NULL : &d->ballot[i];
    const struct state_node *node = state_node(c->state, t->parts[i].slot);
    Rh__ResolvePart *row = mem_new(1, sizeof *row);

    *row = (Rh__ResolvePart)RH__RESOLVE_PART__INIT;
    row->node = mem_string(node == NULL ? "?" : node->name);
    row->vote = mem_string(b != NULL && b->voted ? "prepared" : "none");
    row->holds = mem_string(holds_now(&t->parts[i], b));
    row->effect = mem_string(effect_on(&t->parts[i], b, choice));
    return row;
}

static void explain(const struct coordinator *c, Rh__AdminReply *reply, const struct state_txn *t,
                    Rh__ResolveChoice choice)
{
    Rh__ResolveRow *row = mem_new(1, sizeof *row);
    char text[TEXT_SIZE];

    *row = (Rh__ResolveRow)RH__RESOLVE_ROW__INIT;
    refusal(c, t, choice, text, sizeof text);
    row->choice = choice;
    row->refusal = mem_string(text);
    row->effect = mem_string(effect_on_txn(choice));
    row->parts = mem_new(t->part_count, sizeof(Rh__ResolvePart *));
    for (size_t i = 0; i < t->part_count; i++) {
        row->parts[row->n_parts++] = part_row(c, t, i, choice);
    }
    reply->resolve = mem_resize(reply->resolve, (reply->n_resolve + 1) * sizeof(Rh__ResolveRow *));
    reply->resolve[reply->n_resolve++] = row;
}

/* ---- the question ---- */

/* NULL, and why in `reply`: there is nothing to decide. */
static const struct state_txn *wanted(const struct coordinator *c, Rh__AdminReply *reply,
                                      uint64_t number)
{
    const struct state_txn *t = state_txn(c->state, number);
    char text[TEXT_SIZE];

    if (t != NULL && t->state == TXN_PENDING) {
        return t;
    }
    if (t == NULL) {
        (void)snprintf(text,
                       sizeof text,
                       "no transaction %s (the last %d are kept)",
                       STAMP(number),
                       STATE_TXNS_KEPT);
    } else {
        (void)snprintf(text,
                       sizeof text,
                       "transaction %s is %s%s%s: an outcome never changes",
                       STAMP(number),
                       txn_state_name(t->state),
                       t->outcome_why[0] == '\0' ? "" : ", ",
                       t->outcome_why);
    }
    admin_set_text(&reply->error, text);
    return NULL;
}

/* The same question, asked again because its answer takes long. */
static bool is_under_way(const struct coordinator *c, const struct leader_peer *peer,
                         uint64_t question)
{
    for (size_t i = 0; i < c->proposals.count; i++) {
        const struct proposal *p = &c->proposals.item[i];

        if (p->asked && p->peer == peer->id && p->question == question &&
            (p->kind == PROPOSAL_DECIDE || p->kind == PROPOSAL_BEGIN)) {
            return true;
        }
    }
    return false;
}

static struct proposal *propose(struct coordinator *c, const struct state_txn *t,
                                const Rh__AdminResolve *in)
{
    struct drive *d = drive_find(c, t->number);

    if (in->choice == ABORT) {
        return drive_abort(c, d, t->number, in);
    }
    ASSERT(d != NULL);
    return in->choice == COMMIT ? drive_commit(c, d, t, in) : drive_supersede(c, t, in);
}

bool resolve_on_question(struct coordinator *c, const struct leader_peer *peer,
                         Rh__AdminReply *reply, const Rh__AdminResolve *in)
{
    const bool known = in->choice == COMMIT || in->choice == ABORT || in->choice == RETRY;
    const struct state_txn *t;
    struct proposal *p;

    if (is_under_way(c, peer, reply->tag)) {
        return true;
    }
    t = wanted(c, reply, in->txn);
    if (t == NULL) {
        return false;
    }
    admin_add_txn(c, reply, t);
    for (Rh__ResolveChoice choice = COMMIT; choice <= RETRY; choice++) {
        if (!known || choice == in->choice) {
            explain(c, reply, t, choice);
        }
    }
    if (!known || in->dry_run || reply->resolve[0]->refusal[0] != '\0') {
        return false; // the answer says what, and why not
    }
    p = propose(c, t, in);
    if (p == NULL) {
        admin_not_ready(c, reply);
        return false;
    }
    wish_expect(p, peer, reply->tag, 0);
    return true;
}

void resolve_applied(struct coordinator *c, const struct proposal *p,
                     const struct state_result *result)
{
    const struct state_txn *t = state_txn(c->state, p->txn);
    Rh__AdminReply *reply;
    char text[TEXT_SIZE] = "aborted";

    if (!p->asked || peers_find(c, p->peer) == NULL) {
        return;
    }
    reply = admin_reply_new(c, p->question);
    if (!result->accepted) {
        (void)snprintf(text, sizeof text, "not done: %s", result->why);
    } else if (p->kind == PROPOSAL_BEGIN) {
        (void)snprintf(text, sizeof text, "begun anew as %s", STAMP(result->stamp));
    } else if (t != NULL && t->state == TXN_COMMITTED) {
        (void)snprintf(text, sizeof text, "committed as version %s", STAMP(t->version));
    }
    admin_set_text(result->accepted ? &reply->text : &reply->error, text);
    admin_send_reply(c, p->peer, reply);
}
