/* SPDX-License-Identifier: Apache-2.0
 *
 * Transactions from BEGIN to the outcome: specification §3.3.
 */
#include "txn/leader/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/stamp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { RENEWED_MS = 2000 }; /* COMMIT only if each participant renewed since */

// To the first: the log refused an outcome, maybe the second of two that were proposed.
static const struct machine_state states[] = {
    [DRIVE_PREP_IN] = {"preparing targets",
                       TO(DRIVE_PREP_IN) | TO(DRIVE_PREP_OUT) | TO(DRIVE_DECIDING)},
    [DRIVE_PREP_OUT] = {"preparing sources", TO(DRIVE_PREP_IN) | TO(DRIVE_DECIDING)},
    // Once more: no outcome came out of the log.
    [DRIVE_DECIDING] = {"deciding", TO(DRIVE_PREP_IN) | TO(DRIVE_DECIDING)},
};
static const struct machine drive_machine = {"a transaction's drive", states};

struct drive *drive_find(const struct coordinator *c, uint64_t txn)
{
    for (size_t i = 0; i < c->drives.count; i++) {
        if (c->drives.item[i].txn == txn) {
            return &c->drives.item[i];
        }
    }
    return NULL;
}

static struct drive *drive_new(struct coordinator *c, const struct state_txn *t)
{
    struct drive *d;

    ASSERT(c->drives.count == 0 || c->drives.item[c->drives.count - 1].txn < t->number);
    c->drives.item = mem_resize(c->drives.item, (c->drives.count + 1) * sizeof *c->drives.item);
    d = &c->drives.item[c->drives.count++];
    *d = (struct drive){
        .txn = t->number,
        .started_us = c->now_us,
        .resend_us = c->now_us,
        .ballot = mem_new(t->part_count, sizeof *d->ballot),
        .part_count = t->part_count,
    };
    return d;
}

void drive_begin(struct coordinator *c, const struct proposal *p, uint64_t txn)
{
    const struct state_txn *t = state_txn(c->state, txn);
    struct drive *d;

    if (t == NULL || t->state != TXN_PENDING || drive_find(c, txn) != NULL) {
        return;
    }
    d = drive_new(c, t);
    d->supersedes = p->txn;
    phases_begun(c, t);
    d->plan_id = p->txn == 0 ? p->plan_id : 0;
    d->planned_at = p->planned_at;
    log_info("txn",
             "begun",
             "txn=%s ops=%zu why=\"%s\" supersedes=%s",
             STAMP(txn),
             t->op_count,
             t->why,
             STAMP(p->txn));
}

void drive_prune(struct coordinator *c)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->drives.count; i++) {
        const struct state_txn *t = state_txn(c->state, c->drives.item[i].txn);

        if (t != NULL && t->state == TXN_PENDING) {
            c->drives.item[kept++] = c->drives.item[i];
        } else {
            mem_free(c->drives.item[i].ballot);
        }
    }
    c->drives.count = kept;
}

void drive_forget_all(struct coordinator *c)
{
    for (size_t i = 0; i < c->drives.count; i++) {
        mem_free(c->drives.item[i].ballot);
    }
    c->drives.count = 0;
}

void drive_fini(struct coordinator *c)
{
    mem_free(c->drives.item);
}

void drive_fault(struct drive *d, const char *format, ...)
{
    va_list list;

    if (d->fault[0] == '\0') {
        va_start(list, format);
        (void)vsnprintf(d->fault, sizeof d->fault, format, list);
        va_end(list);
    }
}

void drive_yield(struct drive *d, const struct state_node *slow)
{
    d->yields = true;
    drive_fault(d, "%s is slow, and others waited for its place", slow->name);
}

/* ---- PREPARE ---- */

/* Who is asked in this phase: first those who only receive, so that the hold at those who give is
 * as short as can be. */
static bool is_asked(const struct drive *d, const struct state_part *part)
{
    return d->state != DRIVE_PREP_IN || !part->gives;
}

static bool all_voted(const struct drive *d, const struct state_txn *t)
{
    for (size_t i = 0; i < t->part_count; i++) {
        if (is_asked(d, &t->parts[i]) && !d->ballot[i].voted) {
            return false;
        }
    }
    return true;
}

bool drive_waits_for(const struct drive *d, const struct state_txn *t, size_t part)
{
    return d->state != DRIVE_DECIDING && d->ballot[part].asked_us != 0 && !d->ballot[part].voted &&
           is_asked(d, &t->parts[part]);
}

static bool only_moves(const struct state_txn *t)
{
    for (size_t i = 0; i < t->op_count; i++) {
        if (t->ops[i].kind != RING_MOVE) {
            return false;
        }
    }
    return true;
}

/* The cells that `op` moves on `ring`. */
static Rh__Arc arc_of(const struct ring *ring, const struct state_txn *t, const struct ring_op *op,
                      uint16_t slot)
{
    const struct ring_vnode *v = ring_find(ring, op->vnode);
    const uint16_t peer = op->from == slot ? op->to : op->from;
    Rh__Arc arc = RH__ARC__INIT;

    ASSERT(v != NULL);
    arc.from = v->from;
    arc.to = ring_end(ring, v);
    arc.out = op->from == slot;
    arc.peer = peer;
    arc.peer_incarnation = state_txn_part(t, peer)->incarnation;
    arc.vnode = op->vnode;
    return arc;
}

/* Fill `arcs` with what one participant gives and gets. Nothing that a pending transaction touches
 * changes meanwhile, so today's ring is as good as that of its base. */
static size_t arcs_of(const struct coordinator *c, const struct state_txn *t, uint16_t slot,
                      Rh__Arc *arcs)
{
    const struct ring *now = &c->state->view.ring;
    const bool plain = only_moves(t);
    struct ring scratch;
    size_t count = 0;

    if (!plain) {
        ring_copy(&scratch, now);
    }
    for (size_t i = 0; i < t->op_count; i++) {
        const struct ring_op *op = &t->ops[i];

        if (op->kind == RING_MOVE && (op->from == slot || op->to == slot)) {
            arcs[count++] = arc_of(plain ? now : &scratch, t, op, slot);
        }
        if (!plain) {
            ring_apply(&scratch, op, 1, now->version, t->number);
        }
    }
    if (!plain) {
        ring_fini(&scratch);
    }
    return count;
}

static uint64_t prepare_us(const struct coordinator *c)
{
    return (uint64_t)c->config.prepare_ms * 1000;
}

static void send_prepare(struct coordinator *c, const struct drive *d, const struct state_txn *t,
                         const struct state_part *part)
{
    const struct state_node *node = state_node(c->state, part->slot);
    const struct leader_peer *peer = node == NULL ? NULL : peers_of_node(c, node);
    const uint64_t spent_us = c->now_us - d->started_us;
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Prepare body = RH__PREPARE__INIT;
    Rh__Arc *arcs;

    if (peer == NULL) {
        return;
    }
    arcs = mem_new(t->op_count, sizeof *arcs);
    body.txn = t->number;
    body.base_version = t->base;
    body.supersedes = d->supersedes;
    body.deadline_ms = (uint32_t)(spent_us < prepare_us(c) ? (prepare_us(c) - spent_us) / 1000 : 0);
    body.n_arcs = arcs_of(c, t, part->slot, arcs);
    body.arcs = mem_new(body.n_arcs, sizeof(Rh__Arc *));
    for (size_t i = 0; i < body.n_arcs; i++) {
        body.arcs[i] = &arcs[i];
    }
    out.target_incarnation = part->incarnation;
    out.body_case = RH__CONTROL__BODY_PREPARE;
    out.prepare = &body;
    peers_send(c, peer->id, &out);
    mem_free(body.arcs);
    mem_free(arcs);
}

static void ask_all(struct coordinator *c, struct drive *d, const struct state_txn *t)
{
    if (c->now_us < d->resend_us) {
        return;
    }
    for (size_t i = 0; i < t->part_count; i++) {
        if (is_asked(d, &t->parts[i]) && !d->ballot[i].voted) {
            if (d->ballot[i].asked_us == 0) {
                d->ballot[i].asked_us = c->now_us;
                phases_asked(c, d->txn, i);
            }
            send_prepare(c, d, t, &t->parts[i]);
        }
    }
    d->resend_us = c->now_us + (uint64_t)c->config.resend_ms * 1000;
}

/* ---- the decision ---- */

/* Who wants it, and why: for the audit history. NULL: the leader by itself. */
static void sign(Rh__Command *command, const Rh__AdminResolve *wish)
{
    if (wish != NULL) {
        command->by = wish->by;
        command->reason = wish->reason;
    }
}

static struct proposal *propose_abort(struct coordinator *c, struct drive *d, uint64_t txn,
                                      const char *why, const Rh__AdminResolve *wish)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandAbort body = RH__COMMAND_ABORT__INIT;
    struct proposal *p;

    body.txn = txn;
    body.why = proto_text(why);
    command.body_case = RH__COMMAND__BODY_ABORT;
    command.abort = &body;
    sign(&command, wish);
    p = coordinator_propose(c, PROPOSAL_DECIDE, &command);
    if (p != NULL) {
        p->txn = txn;
        phases_proposed(c, txn);
    }
    if (mutant(M_EARLY) || mutant(M_SAMENUM_CANCEL)) {
        drive_cancel(c, txn);
    }
    if (p != NULL && d != NULL) {
        d->state = machine_enter(&drive_machine, d->state, DRIVE_DECIDING);
        d->decided_us = c->now_us;
    }
    return p;
}

struct proposal *drive_abort(struct coordinator *c, struct drive *d, uint64_t txn,
                             const Rh__AdminResolve *wish)
{
    char why[STATE_WHY_MAX + 1];

    (void)snprintf(why,
                   sizeof why,
                   "aborted by %.40s%s%.70s",
                   wish->by,
                   wish->reason[0] == '\0' ? "" : ": ",
                   wish->reason);
    return propose_abort(c, d, txn, why, wish);
}

struct proposal *drive_commit(struct coordinator *c, struct drive *d, const struct state_txn *t,
                              const Rh__AdminResolve *wish)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandCommit body = RH__COMMAND_COMMIT__INIT;
    struct proposal *p;

    // A timer's ABORT may be under way at any time: what is applied first counts. Where that rule
    // is taken away, the race is made to happen.
    if (mutant(M_UNCOND)) {
        (void)propose_abort(c, NULL, t->number, "its deadline passed", NULL);
    }
    body.txn = t->number;
    body.voted = mem_new(t->part_count, sizeof *body.voted);
    for (size_t i = 0; i < t->part_count; i++) {
        body.voted[body.n_voted++] = t->parts[i].incarnation;
    }
    command.body_case = RH__COMMAND__BODY_COMMIT;
    command.commit = &body;
    sign(&command, wish);
    p = coordinator_propose(c, PROPOSAL_DECIDE, &command);
    mem_free(body.voted);
    if (p != NULL) {
        p->txn = t->number;
        phases_proposed(c, t->number);
        d->state = machine_enter(&drive_machine, d->state, DRIVE_DECIDING);
        d->decided_us = c->now_us;
    }
    return p;
}

bool drive_renewed(struct coordinator *c, const struct state_node *node)
{
    const struct seen *seen = peers_seen(c, node);

    return c->config.lease_us == 0 || (seen != NULL && seen->granted_us != 0 &&
                                       c->now_us - seen->granted_us <= (uint64_t)RENEWED_MS * 1000);
}

/* Each participant lives, and where leases are in force renewed its own within RENEWED_MS: what
 * COMMIT gives away goes to nobody who is just being lost (specification §3.3). */
static bool all_live(struct coordinator *c, const struct state_txn *t)
{
    if (mutant(M_FENCEPEND)) {
        return true; // it would mostly keep such a commit back, too
    }
    for (size_t i = 0; i < t->part_count; i++) {
        const struct state_node *node = state_node(c->state, t->parts[i].slot);

        if (node == NULL || !peers_live(c, node) || !drive_renewed(c, node)) {
            return false;
        }
    }
    return true;
}

static bool is_late(const struct coordinator *c, uint64_t since_us)
{
    return c->now_us - since_us >= prepare_us(c) && !mutant(M_NOTIMER); // hole 21
}

/* A participant fell silent: it will not vote in time, and what the others hold need not wait for
 * what becomes of it. */
static void look_who_fell_silent(struct coordinator *c, struct drive *d, const struct state_txn *t)
{
    if (c->config.lease_us == 0 || mutant(M_FENCEPEND)) {
        return;
    }
    for (size_t i = 0; i < t->part_count; i++) {
        const struct state_node *node = state_node(c->state, t->parts[i].slot);

        if (node != NULL && fence_suspects(c, node)) {
            drive_fault(d, "%s fell silent", node->name);
        }
    }
}

static void advance(struct coordinator *c, struct drive *d)
{
    const struct state_txn *t = state_txn(c->state, d->txn);

    ASSERT(t != NULL && t->state == TXN_PENDING);
    if (d->state == DRIVE_DECIDING) {
        if (is_late(c, d->decided_us)) {
            (void)propose_abort(c, d, d->txn, "no outcome came out of the log", NULL);
        }
        return;
    }
    look_who_fell_silent(c, d, t);
    if (d->fault[0] == '\0' && is_late(c, d->started_us)) {
        waits_over(c, d, d->fault, sizeof d->fault);
    }
    if (d->fault[0] != '\0') {
        (void)propose_abort(c, d, d->txn, d->fault, NULL);
        return;
    }
    if (d->state == DRIVE_PREP_IN && all_voted(d, t)) {
        d->state = machine_enter(&drive_machine, d->state, DRIVE_PREP_OUT);
        d->resend_us = c->now_us;
    }
    if (d->state == DRIVE_PREP_OUT && (all_voted(d, t) || mutant(M_COMMIT)) && all_live(c, t)) {
        (void)drive_commit(c, d, t, NULL);
        return;
    }
    ask_all(c, d, t);
}

/* ---- what another leader left ---- */

/* Begin it anew under a number of my own: whatever votes are on their way to it count for nothing
 * (holes 9 and 10). */
struct proposal *drive_supersede(struct coordinator *c, const struct state_txn *t,
                                 const Rh__AdminResolve *wish)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandBegin body = RH__COMMAND_BEGIN__INIT;
    struct proposal *p;

    body.ops = view_wire_ops(t->ops, t->op_count);
    body.n_ops = t->op_count;
    body.base_version = c->state->view.ring.version;
    body.supersedes = t->number;
    body.why = proto_text(t->why);
    command.body_case = RH__COMMAND__BODY_BEGIN;
    command.begin = &body;
    sign(&command, wish);
    p = coordinator_propose(c, PROPOSAL_BEGIN, &command);
    if (p != NULL) {
        p->txn = t->number;
        p->base = body.base_version;
    }
    for (size_t i = 0; i < body.n_ops; i++) {
        mem_free(body.ops[i]);
    }
    mem_free(body.ops);
    return p;
}

// Of the refusals only that of an old base is worth another attempt.
void drive_refused(struct coordinator *c, const struct proposal *p, const char *why)
{
    const struct state_txn *t = p->txn == 0 ? NULL : state_txn(c->state, p->txn);

    if (t != NULL && t->state == TXN_PENDING && p->base == c->state->view.ring.version) {
        (void)propose_abort(c, NULL, t->number, why, NULL);
    }
}

static void take_up(struct coordinator *c, const struct state_txn *t)
{
    if (coordinator_proposal(c, PROPOSAL_BEGIN, t->number) != NULL ||
        coordinator_proposal(c, PROPOSAL_DECIDE, t->number) != NULL) {
        return;
    }
    if (mutant(M_SAMENUM_CANCEL)) { // together with propose_abort()'s: each covers the other
        (void)drive_new(c, t);
    } else if (ring_check(&c->state->view.ring, t->ops, t->op_count) == ERR_OK) {
        (void)drive_supersede(c, t, NULL);
    } else {
        (void)propose_abort(c, NULL, t->number, "its operations do not fit the ring", NULL);
    }
}

/* All that pends is driven, until the state changes. */
static void take_up_all(struct coordinator *c)
{
    bool all = true;

    for (size_t i = 0; i < c->state->txn_count; i++) {
        const struct state_txn *t = &c->state->txn[i];

        if (t->state == TXN_PENDING && drive_find(c, t->number) == NULL) {
            take_up(c, t);
            all = false;
        }
    }
    c->drives.surveyed = all ? c->applied.changes : c->drives.surveyed;
}

void drive_advance(struct coordinator *c)
{
    if (c->drives.surveyed != c->applied.changes) {
        take_up_all(c);
    }
    for (size_t i = 0; i < c->drives.count; i++) {
        advance(c, &c->drives.item[i]);
    }
}

void drive_undecided(struct coordinator *c, uint64_t txn, const char *why)
{
    struct drive *d = drive_find(c, txn);

    if (d == NULL) {
        return;
    }
    d->state = machine_enter(&drive_machine, d->state, DRIVE_PREP_IN);
    if (why != NULL) {
        drive_fault(d, "%s", why);
    }
}

/* ---- outcomes ---- */

static void cancel(struct coordinator *c, const struct state_txn *t, uint64_t number)
{
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Cancel body = RH__CANCEL__INIT;

    body.txn = number;
    body.why = proto_text(t->outcome_why);
    out.body_case = RH__CONTROL__BODY_CANCEL;
    out.cancel = &body;
    for (size_t i = 0; i < t->part_count; i++) {
        const struct state_node *node = state_node(c->state, t->parts[i].slot);
        const struct leader_peer *peer =
            node == NULL || node->incarnation != t->parts[i].incarnation ? NULL
                                                                         : peers_of_node(c, node);

        if (peer != NULL) {
            peers_send(c, peer->id, &out);
        }
    }
}

/* A superseded one isn't cancelled: the PREPARE of its successor takes its holds over. If that one
 * ends before it asked them, they are told of both. */
void drive_cancel(struct coordinator *c, uint64_t txn)
{
    const struct state_txn *t = state_txn(c->state, txn);
    const struct state_txn *end = t;

    if (t == NULL || t->superseded_by != 0) {
        return;
    }
    cancel(c, t, txn);
    while (end > c->state->txn) {
        end--;
        if (end->superseded_by == t->number) {
            cancel(c, end, end->number);
            t = end;
        }
    }
}
