/* SPDX-License-Identifier: Apache-2.0
 *
 * Life, questions and invariants; txn/state/apply*.c have the commands.
 */
#include "txn/state/state.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "txn/state/delta.h"
#include "txn/state/pins.h"
#include "txn/state/remembered.h"
#include "txn/state/roles.h"
#include "txn/state/suspect.h"
#include "wire/versions.h"

#include <string.h>

static const struct machine_state states[] = {
    [TXN_PENDING] = {"pending", TO(TXN_COMMITTED) | TO(TXN_ABORTED)},
    [TXN_COMMITTED] = {"committed", 0},
    [TXN_ABORTED] = {"aborted", 0},
};
const struct machine txn_machine = {"a transaction", states};

const char *txn_state_name(enum txn_state state)
{
    return machine_name(&txn_machine, state);
}

void state_init(struct state *s)
{
    *s = (struct state){.format = FLEET_FORMAT_OLDEST};
    view_init(&s->view, RING_GRID_MIN);
}

void state_fini(struct state *s)
{
    for (size_t i = 0; i < s->txn_count; i++) {
        mem_free(s->txn[i].ops);
        mem_free(s->txn[i].parts);
    }
    mem_free(s->txn);
    mem_free(s->node);
    mem_free(s->kind);
    mem_free(s->suspect);
    mem_free(s->lost);
    mem_free(s->struck);
    pins_fini(s);
    remembered_fini(s);
    view_fini(&s->view);
    *s = (struct state){0};
}

void state_raise(struct state *s, uint64_t era, uint64_t lease_us)
{
    const uint64_t low = s->number & ((UINT64_C(1) << STATE_NUMBER_BITS) - 1);

    ASSERT(era > s->view.era);
    // Whoever has a version of the old era, higher than this state's, moves up to the new one, and
    // no version names two rings (I2, I3).
    s->number = era << STATE_NUMBER_BITS | (low + 1);
    s->view.era = era;
    s->view.ring.version = s->number;
    s->settling = true; // hole 52
    // What was granted since this state was saved may be longer than what it knows of.
    if (lease_us > s->lease_us && !mutant(M_BACKUPLEASE)) {
        s->lease_us = lease_us;
    }
}

void state_result_fini(struct state_result *r)
{
    delta_free(r->delta);
    mem_free(r->aborted);
    *r = (struct state_result){0};
}

const struct state_node *state_node(const struct state *s, uint16_t slot)
{
    size_t low = 0;
    size_t high = s->node_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (s->node[middle].slot < slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < s->node_count && s->node[low].slot == slot ? &s->node[low] : NULL;
}

const struct state_node *state_node_named(const struct state *s, const char *name)
{
    for (size_t i = 0; i < s->node_count; i++) {
        if (strcmp(s->node[i].name, name) == 0) {
            return &s->node[i];
        }
    }
    return NULL;
}

const struct state_txn *state_txn(const struct state *s, uint64_t number)
{
    size_t low = 0;
    size_t high = s->txn_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (s->txn[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < s->txn_count && s->txn[low].number == number ? &s->txn[low] : NULL;
}

size_t state_pending_count(const struct state *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->txn_count; i++) {
        count += s->txn[i].state == TXN_PENDING;
    }
    return count;
}

const struct state_part *state_txn_part(const struct state_txn *t, uint16_t slot)
{
    for (size_t i = 0; i < t->part_count; i++) {
        if (t->parts[i].slot == slot) {
            return &t->parts[i];
        }
    }
    return NULL;
}

bool state_takes_part(const struct state *s, uint16_t slot)
{
    for (size_t i = 0; i < s->txn_count; i++) {
        if (s->txn[i].state == TXN_PENDING && state_txn_part(&s->txn[i], slot) != NULL) {
            return true;
        }
    }
    return false;
}

bool state_others_stay(const struct state *s, uint16_t slot)
{
    const struct state_node *node = state_node(s, slot);
    const char *role = node == NULL ? "" : node->role;

    for (size_t i = 0; i < s->node_count; i++) {
        if (s->node[i].slot != slot && !s->node[i].leaving && !s->node[i].barred &&
            strcmp(s->node[i].role, role) == 0) {
            return true;
        }
    }
    return false;
}

static bool fits(const char *text, size_t size_max)
{
    return text[0] != '\0' && strlen(text) <= size_max;
}

const char *state_registration_fault(const Rh__CommandRegister *in)
{
    if (!fits(in->name, VIEW_NAME_MAX)) {
        return "the node's name is empty or too long";
    }
    if (!fits(in->address, VIEW_ADDRESS_MAX)) {
        return "the node's address is empty or too long";
    }
    if (strlen(in->zone) > VIEW_NAME_MAX) {
        return "the node's zone is too long";
    }
    if (in->weight < 1 || in->weight > VIEW_WEIGHT_MAX) {
        return "the node's weight is not 1..1000";
    }
    if (in->boot_id.len != STATE_UUID_SIZE || in->data_uuid.len != STATE_UUID_SIZE) {
        return "boot id or data id is not 16 bytes";
    }
    return in->nonce == 0 ? "the nonce is missing" : NULL;
}

/* ---- conflicts ---- */

/* The second vnode that an op names, or the first again. */
static uint32_t second_vnode(const struct ring_op *op)
{
    return op->kind == RING_MOVE ? op->vnode : op->other;
}

static bool ops_share_vnode(const struct ring_op *a, const struct ring_op *b)
{
    return a->vnode == b->vnode || a->vnode == second_vnode(b) || second_vnode(a) == b->vnode ||
           second_vnode(a) == second_vnode(b);
}

static bool txn_touches(const struct state_txn *t, const struct ring_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < t->op_count; j++) {
            if (ops_share_vnode(&ops[i], &t->ops[j])) {
                return true;
            }
        }
    }
    return false;
}

const struct state_txn *state_conflict(const struct state *s, const struct ring_op *ops,
                                       size_t count, uint64_t except)
{
    for (size_t i = 0; i < s->txn_count && !mutant(M_OVERLAP); i++) { // hole 45
        if (s->txn[i].state == TXN_PENDING && s->txn[i].number != except &&
            txn_touches(&s->txn[i], ops, count)) {
            return &s->txn[i];
        }
    }
    return NULL;
}

/* ---- invariants ---- */

static void check_node(const struct state *s, const struct state_node *n)
{
    const struct view_member *m = view_member(&s->view, n->slot);

    ASSERT(m != NULL);
    ASSERT(strcmp(m->name, n->name) == 0 && strcmp(m->address, n->address) == 0);
    ASSERT(m->incarnation == n->incarnation && m->incarnation <= s->number);
    ASSERT(m->weight == n->weight && m->leaving == n->leaving);
    ASSERT(strcmp(m->role, n->role) == 0);
    ASSERT(memcmp(&m->kinds, &n->kinds, sizeof n->kinds) == 0);
    ASSERT(IMPLIES(n->clean, n->barred));
    ASSERT(IMPLIES(n->stopping, n->leaving));
    ASSERT(IMPLIES(n->removed, n->stopping));
    ASSERT(n->wished <= s->number && (n->wish == 0) == (n->wished == 0));
}

static void check_txn(const struct state *s, const struct state_txn *t)
{
    ASSERT((t->state == TXN_COMMITTED) == (t->version != 0));
    if (!mutant(M_VERTXN)) { // it stays for the checkers to find
        ASSERT(t->number <= s->number && t->version <= s->view.ring.version);
        ASSERT(IMPLIES(t->state == TXN_COMMITTED, t->version > t->number));
    }
    if (t->state != TXN_PENDING) {
        return;
    }
    ASSERT(state_conflict(s, t->ops, t->op_count, t->number) == NULL);
    for (size_t i = 0; i < t->part_count; i++) {
        const struct state_node *n = state_node(s, t->parts[i].slot);

        // Whatever ends an incarnation aborts its transactions in the same entry.
        ASSERT(n != NULL && n->incarnation == t->parts[i].incarnation);
        ASSERT(!n->barred || mutant(M_FENCEPEND)); // hole 31
    }
}

/* The view names those that the state has in quarantine. */
static void check_suspects(const struct state *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->suspect_count; i++) {
        const struct state_suspect *e = &s->suspect[i];

        ASSERT(i == 0 || quarantine_compare(&e[-1].actor, &e->actor) < 0);
        ASSERT(e->quarantined ==
               quarantine_has(&s->view.quarantine, e->actor.kind, quarantined_id(&e->actor)));
        count += e->quarantined;
    }
    ASSERT(count == s->view.quarantine.count && count <= QUARANTINE_MAX);
    ASSERT(s->suspect_count - count <= SUSPECTS_MAX);
}

void state_check(const struct state *s)
{
    ASSERT(s->view.ring.version <= s->number);
    ASSERT(s->number >> 40 == s->view.era);
    ASSERT(s->node_count == s->view.member_count);
    check_suspects(s);
    ASSERT(pins_are_good(s));
    ASSERT(remembered_are_good(s));
    for (size_t i = 0; i < s->node_count; i++) {
        check_node(s, &s->node[i]);
        ASSERT(i == 0 || s->node[i - 1].slot < s->node[i].slot);
    }
    for (size_t i = 0; i < s->txn_count; i++) {
        check_txn(s, &s->txn[i]);
        ASSERT(i == 0 || s->txn[i - 1].number < s->txn[i].number);
    }
    for (size_t i = 0; i < s->view.ring.vnode_count; i++) {
        const struct ring_vnode *v = &s->view.ring.vnode[i];
        const struct state_node *owner = state_node(s, v->owner);

        // Of the vnode's role: only its nodes can run what lives there. It may host the kind no
        // more.
        ASSERT(v->owner == RING_NODE_NONE ||
               (owner != NULL && strcmp(roles_of_vnode(&s->view.ring, v), owner->role) == 0));
    }
    if (s->view.ring.vnode_count > 0) {
        ring_check_invariants(&s->view.ring);
    }
}
