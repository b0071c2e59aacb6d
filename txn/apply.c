/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of the replicated state, one function each: PROTOCOL §3.1.
 * A handler first refuses, then acts: once it has drawn a stamp it does not fail.
 */
#include "txn/state.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "txn/delta.h"
#include "txn/roles.h"
#include "txn/suspect.h"
#include "wire/versions.h"

#include <stdio.h>
#include <string.h>

enum { NUMBER_BITS = 40, ERA_MAX = (1 << 24) - 1, CREATED_VNODES_MAX = 4096 };

static const uint64_t LEASE_US_MAX = (uint64_t)STATE_LEASE_S_MAX * 1000000;

/* What the handlers share. */
struct change {
    struct state *s;
    struct state_result *r;
    uint64_t time_us;
    const char *by; /* who asked for it; "" = the coordinator by itself */
};

static void refuse(struct change *c, const char *why)
{
    c->r->accepted = false;
    c->r->why = why;
}

static uint64_t draw(struct state *s)
{
    ASSERT((s->number & ((UINT64_C(1) << NUMBER_BITS) - 1)) + 1 < UINT64_C(1) << NUMBER_BITS);
    return ++s->number;
}

static void copy_text(char *to, const char *from, size_t size)
{
    memset(to, 0, size);
    (void)snprintf(to, size, "%s", from);
}

static bool fits(const char *text, size_t size_max)
{
    return text[0] != '\0' && strlen(text) <= size_max;
}

/* Seal the delta, change the view by the code that everyone else runs, hand it out. */
static void take_delta(struct change *c, Rh__Delta *delta)
{
    bool legal = view_seal(&c->s->view, delta);
    enum view_result result;

    ASSERT(legal);
    result = view_apply(&c->s->view, delta);
    ASSERT(result == VIEW_APPLIED);
    ASSERT(c->r->delta == NULL);
    c->r->delta = delta;
}

/* ---- transactions ---- */

static struct state_txn *find_txn(struct state *s, uint64_t number)
{
    const struct state_txn *t = state_txn(s, number);

    return t == NULL ? NULL : &s->txn[t - s->txn];
}

static struct state_txn *find_pending(struct state *s, uint64_t number)
{
    struct state_txn *t = find_txn(s, number);

    return t != NULL && t->state == TXN_PENDING ? t : NULL;
}

static void abort_txn(struct change *c, struct state_txn *t, const char *why)
{
    struct state_result *r = c->r;

    t->state = TXN_ABORTED;
    t->decided_us = c->time_us;
    copy_text(t->outcome_why, why, sizeof t->outcome_why);
    r->aborted = mem_resize(r->aborted, (r->aborted_count + 1) * sizeof *r->aborted);
    r->aborted[r->aborted_count++] = t->number;
}

static void abort_of_node(struct change *c, uint16_t slot, const char *why)
{
    for (size_t i = 0; i < c->s->txn_count; i++) {
        struct state_txn *t = &c->s->txn[i];

        if (t->state == TXN_PENDING && state_txn_part(t, slot) != NULL) {
            abort_txn(c, t, why);
        }
    }
}

/* Outcomes are kept for people to read; nothing depends on them. */
static void forget_old_outcomes(struct state *s)
{
    size_t decided = s->txn_count - state_pending_count(s);
    size_t kept = 0;

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

/* ---- nodes ---- */

static struct state_node *find_node(struct state *s, uint16_t slot)
{
    const struct state_node *n = state_node(s, slot);

    return n == NULL ? NULL : &s->node[n - s->node];
}

static struct state_node *find_named(struct state *s, const char *name)
{
    const struct state_node *n = state_node_named(s, name);

    return n == NULL ? NULL : &s->node[n - s->node];
}

/* The node if `incarnation` is its current one. */
static struct state_node *find_incarnation(struct state *s, uint32_t slot, uint64_t incarnation)
{
    struct state_node *n = slot > RING_NODES_MAX ? NULL : find_node(s, (uint16_t)slot);

    return n != NULL && n->incarnation == incarnation ? n : NULL;
}

/* A row for a new node, in the lowest free slot. NULL: every slot is taken. */
static struct state_node *insert_node(struct state *s)
{
    size_t at = 0;

    ASSERT(IMPLIES(s->node_count > 0, s->node != NULL));
    if (s->node_count == RING_NODES_MAX) {
        return NULL;
    }
    while (at < s->node_count && s->node[at].slot == at + 1) {
        at++;
    }
    s->node = mem_resize(s->node, (s->node_count + 1) * sizeof *s->node);
    memmove(&s->node[at + 1], &s->node[at], (s->node_count - at) * sizeof *s->node);
    s->node[at] = (struct state_node){.slot = (uint16_t)(at + 1)};
    s->node_count++;
    return &s->node[at];
}

/* ---- INIT ---- */

static void on_init(struct change *c, const Rh__CommandInit *in)
{
    struct state *s = c->s;

    if (s->begun) {
        refuse(c, "the cluster exists already");
        return;
    }
    if (!fits(in->cluster, VIEW_NAME_MAX) || in->grid < RING_GRID_MIN || in->grid > RING_GRID_MAX ||
        in->vnodes_per_weight < 1 || in->vnodes_per_weight > CREATED_VNODES_MAX ||
        in->era > ERA_MAX || in->lease_us > LEASE_US_MAX || (in->key0 == 0 && in->key1 == 0)) {
        refuse(c, "a setting of the cluster is out of range");
        return;
    }
    s->begun = true;
    copy_text(s->cluster, in->cluster, sizeof s->cluster);
    s->cluster_id = in->cluster_id;
    s->vnodes_per_weight = in->vnodes_per_weight;
    s->lease_us = in->lease_us;
    s->number = (uint64_t)in->era << NUMBER_BITS;
    view_fini(&s->view);
    view_init(&s->view, (uint8_t)in->grid);
    s->view.key = (struct ring_key){in->key0, in->key1};
    s->view.era = in->era;
}

/* ---- REGISTER ---- */

static void fill_node(struct state_node *n, const Rh__CommandRegister *in, uint64_t incarnation)
{
    copy_text(n->name, in->name, sizeof n->name);
    copy_text(n->address, in->address, sizeof n->address);
    copy_text(n->zone, in->zone, sizeof n->zone);
    copy_text(n->role, in->role, sizeof n->role);
    memcpy(n->boot_id, in->boot_id.data, STATE_UUID_SIZE);
    memcpy(n->data_uuid, in->data_uuid.data, STATE_UUID_SIZE);
    n->incarnation = incarnation;
    n->nonce = in->nonce;
    n->weight = in->weight;
    n->leaving = n->leaving && !n->stopping;
    n->stopping = false;
    n->barred = false;
    n->clean = false;
}

/* The incarnation is the new version too: what the node owns was renewed under that stamp. */
static void on_register(struct change *c, const Rh__CommandRegister *in)
{
    const char *fault = state_registration_fault(in);
    struct state_node *n = find_named(c->s, in->name);
    char misfit[ROLES_FAULT_SIZE];
    Rh__Delta *delta;

    if (fault != NULL) {
        refuse(c, fault);
        return;
    }
    roles_fault(c->s, in, misfit);
    if (misfit[0] != '\0') {
        refuse(c, "its role or its kinds do not fit the fleet's"); // it asks again, and is told
        return;
    }
    if (n != NULL && n->nonce == in->nonce && !n->barred) {
        c->r->stamp = n->incarnation; // the same start of the node asks again
        return;
    }
    if ((n == NULL ? 0 : n->incarnation) != in->replaces) {
        refuse(c, "another process registered this name meanwhile");
        return;
    }
    n = n != NULL ? n : insert_node(c->s);
    if (n == NULL) {
        refuse(c, "there are 4095 nodes already");
        return;
    }
    // What it staged and held is gone with its memory; variant T6 of PROTOCOL §9.3.
    abort_of_node(c, n->slot, "a participant restarted");
    c->r->stamp = draw(c->s);
    fill_node(n, in, c->r->stamp);
    delta = delta_new(c->r->stamp, 0);
    delta_change(delta, n);
    if (c->s->view.ring.vnode_count == 0) {
        delta->created_vnodes = c->s->vnodes_per_weight;
        // They are of the default role; nobody's until its nodes are as many as they should be.
        delta->renewed = in->role[0] != '\0' || in->alone ? RING_NODE_NONE : n->slot;
    } else if (ring_owned_count(&c->s->view.ring, n->slot) > 0) {
        delta->renewed = n->slot;
    }
    roles_bind(c->s, in, delta);
    suspect_strike(c->s, in, c->time_us, delta);
    take_delta(c, delta);
}

/* ---- BEGIN ---- */

static bool moves_twice(const struct ring_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; ops[i].kind == RING_MOVE && j < i; j++) {
            if (ops[j].kind == RING_MOVE && ops[j].vnode == ops[i].vnode) {
                return true;
            }
        }
    }
    return false;
}

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

/* False if a vnode is to go to a node of another role: that one could not run what lives there. */
static bool roles_kept(const struct state *s, const struct ring_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct state_node *to = ops[i].kind == RING_MOVE ? state_node(s, ops[i].to) : NULL;

        if (to != NULL && !roles_fit(s, to, ops[i].vnode)) {
            return false;
        }
    }
    return true;
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
        return "it was computed from an older version";
    }
    if (in->n_ops == 0 || in->n_ops > STATE_TXN_OPS_MAX) {
        return "it has no operations, or too many";
    }
    t->ops = view_ops(in->ops, in->n_ops);
    t->op_count = in->n_ops;
    if (t->ops == NULL || ring_check(&s->view.ring, t->ops, t->op_count) != ERR_OK ||
        moves_twice(t->ops, t->op_count)) {
        return "its operations do not fit the ring";
    }
    if (state_conflict(s, t->ops, t->op_count, in->supersedes) != NULL) {
        return "it touches a vnode of a pending transaction";
    }
    if (!roles_kept(s, t->ops, t->op_count)) {
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

static void on_begin(struct change *c, const Rh__CommandBegin *in)
{
    struct state *s = c->s;
    struct state_txn t = {.base = in->base_version, .created_us = c->time_us};
    struct state_txn *old = find_pending(s, in->supersedes);
    const char *fault = in->supersedes != 0 && old == NULL ? "the transaction it supersedes is over"
                                                           : read_begin(s, in, &t);
    char why[STATE_WHY_MAX + 1];

    if (fault != NULL) {
        mem_free(t.ops);
        mem_free(t.parts);
        refuse(c, fault);
        return;
    }
    t.number = draw(s);
    copy_text(t.why, in->why, sizeof t.why);
    if (old != NULL) {
        old->superseded_by = t.number;
        (void)snprintf(
            why, sizeof why, "superseded by %.80s", c->by[0] == '\0' ? "a new leader" : c->by);
        abort_txn(c, old, why);
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

static uint64_t draw_version(struct state *s, const struct state_txn *t)
{
    if (mutant(M_VERTXN)) {
        s->view.ring.version =
            s->view.ring.version < t->number ? s->view.ring.version : t->number - 1;
        return t->number;
    }
    return draw(s);
}

static void on_commit(struct change *c, const Rh__CommandCommit *in)
{
    struct state_txn *t = mutant(M_UNCOND) ? find_txn(c->s, in->txn) : find_pending(c->s, in->txn);
    const char *fault = t == NULL ? "the transaction is not pending" : commit_fault(c->s, t, in);

    c->r->txn = in->txn;
    if (fault != NULL) {
        refuse(c, fault);
        return;
    }
    t->state = TXN_COMMITTED;
    t->version = draw_version(c->s, t);
    t->decided_us = c->time_us;
    for (size_t i = 0; i < t->part_count; i++) {
        t->parts[i].voted = true;
    }
    c->r->stamp = t->version;
    take_delta(c, delta_of(c, t));
    forget_old_outcomes(c->s);
}

static void on_abort(struct change *c, const Rh__CommandAbort *in)
{
    struct state_txn *t = find_pending(c->s, in->txn);

    c->r->txn = in->txn;
    if (t == NULL) {
        refuse(c, "the transaction is not pending");
        return;
    }
    abort_txn(c, t, in->why);
    forget_old_outcomes(c->s);
}

/* ---- DESIRE ---- */

/* An operator's wish may come again, long after: who asks does so until he is answered, of whoever
 * leads then. It has an effect once, and none after a later one that knew of it. */
static const char *wish_fault(const struct state_node *n, const Rh__CommandDesire *in)
{
    return in->wish != 0 && in->wish != n->wish && in->seen < n->wished
               ? "superseded: something else was wished of that node since"
               : NULL;
}

static void on_desire(struct change *c, const Rh__CommandDesire *in)
{
    struct state_node *n = find_named(c->s, in->name);
    const bool drain = in->leaving == DESIRE_DRAIN || in->leaving == DESIRE_STOP;
    bool leaving;
    uint32_t weight;
    Rh__Delta *delta;

    if (n == NULL) {
        refuse(c, "no such node");
        return;
    }
    if (in->weight > VIEW_WEIGHT_MAX || in->leaving > DESIRE_STOP) {
        refuse(c, "the weight is not 1..1000, or the wish is unknown");
        return;
    }
    if (wish_fault(n, in) != NULL) {
        refuse(c, wish_fault(n, in));
        return;
    }
    if (in->wish != 0 && in->wish == n->wish) {
        return; // done already
    }
    if (drain && !n->leaving && !state_others_stay(c->s, n->slot)) {
        refuse(c, n->role[0] == '\0' ? "it is the last node" : "it is the last node of its role");
        return;
    }
    leaving = in->leaving == DESIRE_KEEP ? n->leaving : drain;
    weight = in->weight == 0 ? n->weight : in->weight;
    // An operator's drain outlives the process and does not end it; a stop does both.
    n->stopping =
        leaving && (in->leaving == DESIRE_STOP || (n->stopping && in->leaving != DESIRE_DRAIN));
    if (in->wish != 0) {
        c->r->stamp = draw(c->s); // also when nothing changes: an older one must not undo that
        n->wish = in->wish;
        n->wished = c->r->stamp;
    }
    if (leaving == n->leaving && weight == n->weight) {
        return;
    }
    n->leaving = leaving;
    n->weight = weight;
    c->r->stamp = c->r->stamp != 0 ? c->r->stamp : draw(c->s);
    delta = delta_new(c->r->stamp, 0);
    delta_change(delta, n);
    take_delta(c, delta);
}

/* ---- FENCE, REASSIGN, DEREGISTER ---- */

static void on_fence(struct change *c, const Rh__CommandFence *in)
{
    struct state_node *n = find_incarnation(c->s, in->slot, in->incarnation);

    if (n == NULL) {
        refuse(c, "that incarnation is over");
        return;
    }
    if (in->clean != 0 && ring_owned_count(&c->s->view.ring, n->slot) > 0) {
        refuse(c, "it owns vnodes: they came after its BYE left");
        return;
    }
    n->barred = true;
    n->clean = n->clean || in->clean != 0;
    // In the same entry: a commit after the reassignment would take the version back (hole 31).
    if (!mutant(M_FENCEPEND)) {
        abort_of_node(c, n->slot, "a participant was fenced");
    }
}

static const char *reassign_fault(const struct state *s, uint16_t dead, const struct ring_op *moves,
                                  size_t count)
{
    if (count == 0 || count > STATE_TXN_OPS_MAX) {
        return "it has no moves, or too many";
    }
    if (moves == NULL || ring_check(&s->view.ring, moves, count) != ERR_OK ||
        moves_twice(moves, count)) {
        return "its operations do not fit the ring";
    }
    for (size_t i = 0; i < count; i++) {
        const struct state_node *to = state_node(s, moves[i].to);

        if (moves[i].kind != RING_MOVE || moves[i].from != dead) {
            return "it moves more than the dead node's vnodes";
        }
        if (to == NULL || to->barred) {
            return "a successor is not registered";
        }
    }
    if (!roles_kept(s, moves, count)) {
        return "a node would get a vnode of another role";
    }
    return NULL; // what is left behind, a next one takes
}

static void on_reassign(struct change *c, const Rh__CommandReassign *in)
{
    const bool nobodys = in->slot == RING_NODE_NONE && in->incarnation == 0;
    struct state_node *n = find_incarnation(c->s, in->slot, in->incarnation);
    struct ring_op *moves;
    const struct state_txn *other;
    const char *fault;
    Rh__Delta *delta;

    if (!nobodys && (n == NULL || !n->barred)) {
        refuse(c, "that incarnation is over, or not fenced");
        return;
    }
    moves = view_ops(in->moves, in->n_moves);
    fault = reassign_fault(c->s, (uint16_t)in->slot, moves, in->n_moves);
    if (fault != NULL) {
        mem_free(moves);
        refuse(c, fault);
        return;
    }
    while ((other = state_conflict(c->s, moves, in->n_moves, 0)) != NULL) {
        abort_txn(c, find_txn(c->s, other->number), "a vnode was reassigned");
    }
    c->r->stamp = draw(c->s);
    delta = delta_new(c->r->stamp, 0);
    delta->cold = true;
    delta_ops(delta, moves, in->n_moves);
    mem_free(moves);
    take_delta(c, delta);
}

static void on_deregister(struct change *c, const Rh__CommandDeregister *in)
{
    struct state *s = c->s;
    struct state_node *n = find_incarnation(s, in->slot, in->incarnation);
    Rh__Delta *delta;

    if (n == NULL) {
        refuse(c, "that incarnation is over");
        return;
    }
    if (ring_owned_count(&s->view.ring, n->slot) > 0) {
        refuse(c, "it owns vnodes");
        return;
    }
    if (state_takes_part(s, n->slot)) {
        refuse(c, "it takes part in a pending transaction");
        return;
    }
    c->r->stamp = draw(s);
    delta = delta_new(c->r->stamp, 0);
    delta_remove(delta, n->slot);
    s->node_count--;
    memmove(n, n + 1, (s->node_count - (size_t)(n - s->node)) * sizeof *n);
    take_delta(c, delta);
}

/* ---- DAEMONS ---- */

static void on_daemons(struct change *c, const Rh__CommandDaemons *in)
{
    const struct ring_segment *known = roles_daemons(c->s, in->name);
    struct ring_segment changed;
    Rh__Delta *delta;

    if (known == NULL) {
        refuse(c, "there is no set of daemons of that name");
        return;
    }
    if (in->count > ROLES_DAEMONS_MAX) {
        refuse(c, "a set has at most 1000 daemons");
        return;
    }
    if (in->count == known->open) {
        return;
    }
    changed = *known;
    changed.open = in->count;
    c->r->stamp = draw(c->s);
    delta = delta_new(c->r->stamp, 0);
    delta_segment(delta, (size_t)(known - c->s->view.ring.segment), &changed, 0);
    take_delta(c, delta);
}

/* ---- QUARANTINE ---- */

static void on_quarantine(struct change *c, const Rh__CommandQuarantine *in)
{
    const struct state_suspect *known = NULL;
    struct quarantined actor;
    Rh__Delta *delta;

    if (in->actor == NULL || !quarantined_read(&actor, in->actor)) {
        refuse(c, "an actor's id has 1 to 255 bytes, its kind is at most 65535");
        return;
    }
    known = suspect_find(c->s, &actor);
    if (!in->add && known == NULL) {
        refuse(c, "that actor is not in quarantine, and has no strikes");
        return;
    }
    if (in->add && known != NULL && known->quarantined) {
        return;
    }
    c->r->stamp = draw(c->s);
    delta = delta_new(c->r->stamp, 0);
    if (in->add) {
        suspect_add(c->s, &actor, c->time_us, delta);
    } else {
        suspect_clear(c->s, known, delta);
    }
    take_delta(c, delta);
}

/* ---- VOTER ---- */

static bool is_in(const Rh__CommandVoter *in, uint64_t id)
{
    for (size_t i = 0; i < in->n_group; i++) {
        if (in->group[i] == id) {
            return true;
        }
    }
    return in->n_group == 0;
}

/* Those who vote no more. */
static void drop_former(struct state *s, const Rh__CommandVoter *in)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->voter_count; i++) {
        if (is_in(in, s->voter[i].id)) {
            s->voter[kept++] = s->voter[i];
        }
    }
    s->voter_count = kept;
}

static void on_voter(struct change *c, const Rh__CommandVoter *in)
{
    struct state *s = c->s;
    size_t at = 0;

    if (in->id == 0 || strlen(in->address) > VIEW_ADDRESS_MAX) {
        refuse(c, "the voter's id is 0, or its address too long");
        return;
    }
    drop_former(s, in);
    while (at < s->voter_count && s->voter[at].id != in->id) {
        at++;
    }
    if (at == STATE_VOTERS_MAX) {
        refuse(c, "there are 5 voters already");
        return;
    }
    s->voter_count = at == s->voter_count ? at + 1 : s->voter_count;
    s->voter[at].id = in->id;
    s->voter[at].identity = in->identity;
    copy_text(s->voter[at].address, in->address, sizeof s->voter[at].address);
}

/* ---- LEASE ---- */

static void on_lease(struct change *c, const Rh__CommandLease *in)
{
    if (in->lease_us == 0 || in->lease_us > LEASE_US_MAX) {
        refuse(c, "the lease is out of range");
        return;
    }
    c->s->lease_us = in->lease_us;
}

/* ---- SETTLED ---- */

static void on_settled(struct change *c)
{
    if (!c->s->settling) {
        refuse(c, "it is settled");
        return;
    }
    c->s->settling = false;
}

/* ---- FORMAT ---- */

static void on_format(struct change *c, const Rh__CommandFormat *in)
{
    if (in->format <= c->s->format) {
        refuse(c, "the fleet has that format, or a newer one");
        return;
    }
    c->s->format = in->format;
}

static void on_ahead(struct change *c)
{
    if (c->s->format < FLEET_FORMAT_AHEAD) {
        refuse(c, "that command comes in a later format of the fleet");
        return;
    }
    c->r->stamp = draw(c->s);
}

/* ---- all ---- */

static void dispatch(struct change *c, const Rh__Command *command)
{
    switch (command->body_case) {
    case RH__COMMAND__BODY_INIT:
        on_init(c, command->init);
        return;
    case RH__COMMAND__BODY_REGISTER_:
        on_register(c, command->register_);
        return;
    case RH__COMMAND__BODY_BEGIN:
        on_begin(c, command->begin);
        return;
    case RH__COMMAND__BODY_COMMIT:
        on_commit(c, command->commit);
        return;
    case RH__COMMAND__BODY_ABORT:
        on_abort(c, command->abort);
        return;
    case RH__COMMAND__BODY_DESIRE:
        on_desire(c, command->desire);
        return;
    case RH__COMMAND__BODY_FENCE:
        on_fence(c, command->fence);
        return;
    case RH__COMMAND__BODY_REASSIGN:
        on_reassign(c, command->reassign);
        return;
    case RH__COMMAND__BODY_DEREGISTER:
        on_deregister(c, command->deregister);
        return;
    case RH__COMMAND__BODY_VOTER:
        on_voter(c, command->voter);
        return;
    case RH__COMMAND__BODY_SETTLED:
        on_settled(c);
        return;
    case RH__COMMAND__BODY_LEASE:
        on_lease(c, command->lease);
        return;
    case RH__COMMAND__BODY_DAEMONS:
        on_daemons(c, command->daemons);
        return;
    case RH__COMMAND__BODY_QUARANTINE:
        on_quarantine(c, command->quarantine);
        return;
    case RH__COMMAND__BODY_FORMAT:
        on_format(c, command->format);
        return;
    case RH__COMMAND__BODY_AHEAD:
        on_ahead(c);
        return;
    case RH__COMMAND__BODY_NOTE:
        return; // only for the history
    case RH__COMMAND__BODY__NOT_SET:
    case _RH__COMMAND__BODY__CASE_IS_INT_SIZE:
        break;
    }
    refuse(c, "the command is unknown");
}

void state_apply(struct state *s, const Rh__Command *command, struct state_result *result)
{
    struct change c = {.s = s, .r = result, .time_us = command->time_us, .by = command->by};

    *result = (struct state_result){.accepted = true};
    if (!s->begun && command->body_case != RH__COMMAND__BODY_INIT) {
        refuse(&c, "the cluster does not exist yet");
        return;
    }
    dispatch(&c, command);
}
