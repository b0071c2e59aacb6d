/* SPDX-License-Identifier: Apache-2.0
 *
 * BEGIN, COMMIT and ABORT: specification §3.1.
 */
#include "txn/state/change.h"

#include "base/mem.h"
#include "base/mutant.h"
#include "txn/state/delta.h"

#include <stdio.h>
#include <string.h>

/* Outcomes are kept for people to read; nothing depends on them. */
static void forget_old_outcomes(struct state *s)
{
    size_t decided = s->txn_count - state_pending_count(s);
    size_t kept = 0;

    if (decided <= STATE_TXNS_KEPT) {
        return;
    }
    for (size_t i = 0; i < s->txn_count; i++) {
        if (decided > STATE_TXNS_KEPT && s->txn[i].state != TXN_PENDING) {
            mem_free(s->txn[i].ops);
            mem_free(s->txn[i].parts);
            decided--;
        } else {
            s->txn[kept++] = s->txn[i];
        }
    }
    s->txn_count = kept;
}

/* ---- BEGIN ---- */

static struct state_part *part_of(struct state_txn *t, uint16_t slot)
{
    size_t at = 0;

    while (at < t->part_count && t->parts[at].slot < slot) {
        at++;
    }
    if (at < t->part_count && t->parts[at].slot == slot) {
        return &t->parts[at];
    }
    t->parts = mem_resize(t->parts, (t->part_count + 1) * sizeof *t->parts);
    memmove(&t->parts[at + 1], &t->parts[at], (t->part_count - at) * sizeof *t->parts);
    t->parts[at] = (struct state_part){.slot = slot};
    t->part_count++;
    return &t->parts[at];
}

/* False if a participant is not registered, or fenced. */
static bool find_parts(const struct state *s, struct state_txn *t)
{
    for (size_t i = 0; i < t->op_count; i++) {
        if (t->ops[i].kind == RING_MOVE) {
            part_of(t, t->ops[i].from)->gives = true;
            part_of(t, t->ops[i].to)->takes = true;
        }
    }
    for (size_t i = 0; i < t->part_count; i++) {
        const struct state_node *n = state_node(s, t->parts[i].slot);

        if (n == NULL || n->barred) {
            return false;
        }
        t->parts[i].incarnation = n->incarnation;
    }
    return true;
}

/* Reads the transaction; what is wrong with it, or NULL. */
static const char *read_begin(const struct state *s, const Rh__CommandBegin *in,
                              struct state_txn *t)
{
    if (in->base_version != s->view.ring.version) {
        return "the transaction was computed from an older version";
    }
    if (in->n_ops == 0 || in->n_ops > STATE_TXN_OPS_MAX) {
        return "the transaction has no operations, or too many";
    }
    t->ops = view_ops(in->ops, in->n_ops);
    t->op_count = in->n_ops;
    if (t->ops == NULL || ring_check(&s->view.ring, t->ops, t->op_count) != ERR_OK ||
        change_moves_twice(t->ops, t->op_count)) {
        return "its operations do not fit the ring";
    }
    if (state_conflict(s, t->ops, t->op_count, in->supersedes) != NULL) {
        return "the transaction touches a vnode of a pending transaction";
    }
    if (!change_keeps_roles(s, t->ops, t->op_count)) {
        return "a node would get a vnode of another role";
    }
    if (!find_parts(s, t)) {
        return "a participant is not registered";
    }
    if (state_pending_count(s) >= STATE_PENDING_MAX) {
        return "too many transactions are pending";
    }
    return NULL;
}

void apply_begin(struct change *c, const Rh__CommandBegin *in)
{
    struct state *s = c->s;
    struct state_txn t = {.base = in->base_version, .created_us = c->time_us};
    struct state_txn *old = change_pending(s, in->supersedes);
    const char *fault = in->supersedes != 0 && old == NULL
                            ? "the transaction that it supersedes has ended"
                            : read_begin(s, in, &t);
    char why[STATE_WHY_MAX + 1];

    if (fault != NULL) {
        mem_free(t.ops);
        mem_free(t.parts);
        change_refuse(c, fault);
        return;
    }
    t.number = change_draw(c);
    change_text(t.why, in->why, sizeof t.why);
    if (old != NULL) {
        old->superseded_by = t.number;
        (void)snprintf(
            why, sizeof why, "superseded by %.80s", c->by[0] == '\0' ? "a new leader" : c->by);
        change_abort(c, old, why);
    }
    s->txn = mem_resize(s->txn, (s->txn_count + 1) * sizeof *s->txn);
    s->txn[s->txn_count++] = t;
    c->r->stamp = t.number;
    c->r->txn = t.number;
    forget_old_outcomes(s);
}

/* ---- COMMIT and ABORT ---- */

/* What forbids the commit, or NULL. Marks the votes that `in` counts. */
static const char *commit_fault(const struct state *s, const struct state_txn *t,
                                const Rh__CommandCommit *in)
{
    for (size_t i = 0; i < t->part_count && !mutant(M_UNCOND); i++) {
        const struct state_part *p = &t->parts[i];
        const struct state_node *n = state_node(s, p->slot);
        bool voted = false;

        for (size_t j = 0; j < in->n_voted; j++) {
            voted = voted || in->voted[j] == p->incarnation;
        }
        if (!voted) {
            return "a participant's vote is missing";
        }
        if ((n == NULL || n->barred || n->incarnation != p->incarnation) &&
            !(mutant(M_FENCEPEND) && n != NULL && n->barred)) {
            return "a participant was restarted or fenced";
        }
    }
    return ring_check(&s->view.ring, t->ops, t->op_count) == ERR_OK
               ? NULL
               : "its operations do not fit the ring";
}

/* The planted bug of hole 46: what others committed since BEGIN is moved back, for the ring that
 * was computed then knew nothing of it. Returns the ops, owned. */
static struct ring_op *undo_others(const struct state *s, const struct state_txn *t, size_t *count)
{
    struct ring_op *ops = mem_copy(t->ops, t->op_count * sizeof *ops);

    *count = t->op_count;
    for (size_t i = 0; i < s->txn_count; i++) {
        const struct state_txn *other = &s->txn[i];

        for (size_t k = 0; other->version > t->base && k < other->op_count; k++) {
            const struct ring_op *op = &other->ops[k];
            const struct ring_vnode *v = ring_find(&s->view.ring, op->vnode);

            if (other != t && op->kind == RING_MOVE && v != NULL && v->owner == op->to &&
                state_node(s, op->from) != NULL) {
                ops = mem_resize(ops, (*count + 1) * sizeof *ops);
                ops[*count] = *op;
                ops[*count].from = op->to;
                ops[(*count)++].to = op->from;
            }
        }
    }
    return ops;
}

/* What COMMIT changes: the operations, on the ring of this moment (hole 46), under a version drawn
 * now, for transactions overtake each other (hole 47). */
static Rh__Delta *delta_of(struct change *c, struct state_txn *t)
{
    struct state *s = c->s;
    Rh__Delta *delta = delta_new(t->version, t->number);
    struct ring_op *ops;
    size_t count;

    if (!mutant(M_SNAPSHOT)) {
        delta_ops(delta, t->ops, t->op_count);
        return delta;
    }
    ops = undo_others(s, t, &count);
    if (ring_check(&s->view.ring, ops, count) != ERR_OK) {
        count = t->op_count;
    }
    delta_ops(delta, ops, count);
    mem_free(ops);
    return delta;
}

static uint64_t draw_version(struct change *c, const struct state_txn *t)
{
    struct state *s = c->s;

    if (mutant(M_VERTXN)) {
        s->view.ring.version =
            s->view.ring.version < t->number ? s->view.ring.version : t->number - 1;
        return t->number;
    }
    return change_draw(c);
}

void apply_commit(struct change *c, const Rh__CommandCommit *in)
{
    struct state_txn *t =
        mutant(M_UNCOND) ? change_txn(c->s, in->txn) : change_pending(c->s, in->txn);
    const char *fault = t == NULL ? "the transaction is not pending" : commit_fault(c->s, t, in);

    c->r->txn = in->txn;
    if (fault != NULL) {
        change_refuse(c, fault);
        return;
    }
    t->state = machine_enter(&txn_machine, t->state, TXN_COMMITTED);
    t->version = draw_version(c, t);
    t->decided_us = c->time_us;
    for (size_t i = 0; i < t->part_count; i++) {
        t->parts[i].voted = true;
    }
    c->r->stamp = t->version;
    change_delta(c, delta_of(c, t));
    forget_old_outcomes(c->s);
}

void apply_abort(struct change *c, const Rh__CommandAbort *in)
{
    struct state_txn *t = change_pending(c->s, in->txn);

    c->r->txn = in->txn;
    if (t == NULL) {
        change_refuse(c, "the transaction is not pending");
        return;
    }
    change_abort(c, t, in->why);
    forget_old_outcomes(c->s);
}
