/* SPDX-License-Identifier: Apache-2.0
 *
 * REGISTER, DESIRE, FENCE, REASSIGN and DEREGISTER: specification §3.1.
 */
#include "txn/state/change.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "txn/state/delta.h"
#include "txn/state/roles.h"
#include "txn/state/suspect.h"
#include "wire/versions.h"

#include <string.h>

static void abort_of_node(struct change *c, uint16_t slot, const char *why)
{
    for (size_t i = 0; i < c->s->txn_count; i++) {
        struct state_txn *t = &c->s->txn[i];

        if (t->state == TXN_PENDING && state_txn_part(t, slot) != NULL) {
            change_abort(c, t, why);
        }
    }
}

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

/* ---- REGISTER ---- */

static void fill_node(struct state_node *n, const Rh__CommandRegister *in, uint64_t incarnation,
                      uint32_t format)
{
    change_text(n->name, in->name, sizeof n->name);
    change_text(n->address, in->address, sizeof n->address);
    change_text(n->zone, in->zone, sizeof n->zone);
    change_text(n->role, in->role, sizeof n->role);
    n->kinds = (struct ring_kinds){0};
    for (size_t i = 0; format >= FLEET_FORMAT_KINDS && i < in->n_kinds; i++) {
        (void)ring_kinds_add(&n->kinds,
                             (uint16_t)in->kinds[i]->number); // roles_fault() counted them
    }
    memcpy(n->boot_id, in->boot_id.data, STATE_UUID_SIZE);
    memcpy(n->data_uuid, in->data_uuid.data, STATE_UUID_SIZE);
    n->incarnation = incarnation;
    n->nonce = in->nonce;
    n->weight = in->weight;
    n->leaving = n->leaving && (!n->stopping || mutant(M_STOPSTAYS)) && !mutant(M_DRAINOVER);
    n->stopping = false;
    n->removed = false;
    n->barred = false;
    n->clean = false;
}

/* The incarnation is the new version too: what the node owns was renewed under that stamp. */
void apply_register(struct change *c, const Rh__CommandRegister *in)
{
    const char *fault = state_registration_fault(in);
    struct state_node *n = find_named(c->s, in->name);
    char misfit[ROLES_FAULT_SIZE];
    Rh__Delta *delta;

    if (fault != NULL) {
        change_refuse(c, fault);
        return;
    }
    roles_fault(c->s, in, misfit);
    if (misfit[0] != '\0') {
        change_refuse(
            c,
            "the node's role or kinds do not match the fleet's"); // it asks again, and is told
        return;
    }
    if (n != NULL && n->nonce == in->nonce && !n->barred && !mutant(M_NONCETWICE)) {
        c->r->stamp = n->incarnation; // the same start of the node asks again
        return;
    }
    if ((n == NULL ? 0 : n->incarnation) != in->replaces) {
        change_refuse(c, "another process registered this name in the meantime");
        return;
    }
    n = n != NULL ? n : insert_node(c->s);
    if (n == NULL) {
        change_refuse(c, "the fleet has already 4095 nodes");
        return;
    }
    // What it staged and held is gone with its memory; decision 003.
    abort_of_node(c, n->slot, "a participant restarted");
    c->r->stamp = change_draw(c);
    fill_node(n, in, c->r->stamp, c->s->format);
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
    suspect_forget(c->s, in->replaces);
    change_delta(c, delta);
}

/* ---- DESIRE ---- */

/* An operator's wish may come again, long after: who asks does so until he is answered, of whoever
 * leads then. It has an effect once, and none after a later one that knew of it. */
static const char *wish_fault(const struct state_node *n, const Rh__CommandDesire *in)
{
    return in->wish != 0 && in->wish != n->wish && in->seen < n->wished && !mutant(M_OLDWISH)
               ? "superseded: a later command changed that node"
               : NULL;
}

void apply_desire(struct change *c, const Rh__CommandDesire *in)
{
    struct state_node *n = find_named(c->s, in->name);
    const bool drain = in->leaving == DESIRE_DRAIN || in->leaving == DESIRE_STOP;
    bool leaving;
    uint32_t weight;
    Rh__Delta *delta;

    if (n == NULL) {
        change_refuse(c, "no such node");
        return;
    }
    if (in->weight > VIEW_WEIGHT_MAX || in->leaving > DESIRE_STOP) {
        change_refuse(c, "the weight is not 1..1000, or the command is unknown");
        return;
    }
    if (wish_fault(n, in) != NULL) {
        change_refuse(c, wish_fault(n, in));
        return;
    }
    if (in->wish != 0 && in->wish == n->wish) {
        return; // done already
    }
    if (drain && !n->leaving && !state_others_stay(c->s, n->slot) && !mutant(M_LASTDRAINS)) {
        change_refuse(c,
                      n->role[0] == '\0' ? "the node is the last one"
                                         : "the node is the last one of its role");
        return;
    }
    leaving = in->leaving == DESIRE_KEEP ? n->leaving : drain;
    weight = in->weight == 0 ? n->weight : in->weight;
    // An operator's drain outlives the process and does not end it; a stop does both.
    n->stopping =
        leaving && (in->leaving == DESIRE_STOP || (n->stopping && in->leaving != DESIRE_DRAIN));
    n->removed = n->stopping && (n->removed || mutant(M_STOPFORGOTTEN) ||
                                 (in->leaving == DESIRE_STOP && in->wish != 0));
    if (in->wish != 0) {
        c->r->stamp = change_draw(c); // also when nothing changes: an older one must not undo that
        n->wish = in->wish;
        n->wished = c->r->stamp;
    }
    if (leaving == n->leaving && weight == n->weight) {
        return;
    }
    n->leaving = leaving;
    n->weight = weight;
    c->r->stamp = c->r->stamp != 0 ? c->r->stamp : change_draw(c);
    delta = delta_new(c->r->stamp, 0);
    delta_change(delta, n);
    change_delta(c, delta);
}

/* ---- FENCE, REASSIGN, DEREGISTER ---- */

void apply_fence(struct change *c, const Rh__CommandFence *in)
{
    struct state_node *n = find_incarnation(c->s, in->slot, in->incarnation);

    if (n == NULL) {
        change_refuse(c, "that incarnation has ended");
        return;
    }
    if (in->clean != 0 && ring_owned_count(&c->s->view.ring, n->slot) > 0) {
        change_refuse(c, "the node owns vnodes that came after its BYE left");
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
        return "the transaction has no moves, or too many";
    }
    if (moves == NULL || ring_check(&s->view.ring, moves, count) != ERR_OK ||
        change_moves_twice(moves, count)) {
        return "its operations do not fit the ring";
    }
    for (size_t i = 0; i < count; i++) {
        const struct state_node *to = state_node(s, moves[i].to);

        if (moves[i].kind != RING_MOVE || moves[i].from != dead) {
            return "the transaction moves more than the dead node's vnodes";
        }
        if (to == NULL || to->barred) {
            return "a successor is not registered";
        }
    }
    if (!change_keeps_roles(s, moves, count)) {
        return "a node would get a vnode of another role";
    }
    return NULL; // what is left behind, a next one takes
}

void apply_reassign(struct change *c, const Rh__CommandReassign *in)
{
    const bool nobodys = in->slot == RING_NODE_NONE && in->incarnation == 0;
    struct state_node *n = find_incarnation(c->s, in->slot, in->incarnation);
    struct ring_op *moves;
    const struct state_txn *other;
    const char *fault;
    Rh__Delta *delta;

    if (!nobodys && (n == NULL || !n->barred)) {
        change_refuse(c, "that incarnation has ended, or is not fenced");
        return;
    }
    moves = view_ops(in->moves, in->n_moves);
    fault = reassign_fault(c->s, (uint16_t)in->slot, moves, in->n_moves);
    if (fault != NULL) {
        mem_free(moves);
        change_refuse(c, fault);
        return;
    }
    while ((other = state_conflict(c->s, moves, in->n_moves, 0)) != NULL) {
        change_abort(c, change_txn(c->s, other->number), "a vnode was reassigned");
    }
    c->r->stamp = change_draw(c);
    delta = delta_new(c->r->stamp, 0);
    delta->cold = true;
    delta->silent_us = in->silent_us;
    delta_ops(delta, moves, in->n_moves);
    if (!nobodys) {
        suspect_unanswered(c->s, in, c->time_us, delta);
        suspect_lose(c->s, in->incarnation, moves, in->n_moves);
    }
    mem_free(moves);
    change_delta(c, delta);
}

void apply_deregister(struct change *c, const Rh__CommandDeregister *in)
{
    struct state *s = c->s;
    struct state_node *n = find_incarnation(s, in->slot, in->incarnation);
    Rh__Delta *delta;

    if (n == NULL) {
        change_refuse(c, "that incarnation has ended");
        return;
    }
    if (ring_owned_count(&s->view.ring, n->slot) > 0) {
        change_refuse(c, "the node owns vnodes");
        return;
    }
    if (state_takes_part(s, n->slot)) {
        change_refuse(c, "the node takes part in a pending transaction");
        return;
    }
    c->r->stamp = change_draw(c);
    delta = delta_new(c->r->stamp, 0);
    delta_remove(delta, n->slot);
    suspect_forget(s, in->incarnation);
    s->node_count--;
    memmove(n, n + 1, (s->node_count - (size_t)(n - s->node)) * sizeof *n);
    change_delta(c, delta);
}
