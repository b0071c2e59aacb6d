/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators are told of nodes, voters, vnodes and transactions: a row each.
 */
#include "txn/admin/inside.h"

#include "base/mem.h"
#include "txn/state/delta.h"
#include "txn/state/roles.h"

#include <stdlib.h>
#include <string.h>

void admin_set_text(char **field, const char *text)
{
    if (*field != NULL && *field != protobuf_c_empty_string) {
        mem_free(*field);
    }
    *field = mem_string(text);
}

void admin_not_ready(const struct coordinator *c, Rh__AdminReply *reply)
{
    reply->again = !past_stays(c);
    admin_set_text(&reply->error,
                   reply->again
                       ? "the coordinators are not ready: try again"
                       : "the coordinators' database went back (docs/recovery.md#went-back)");
}

static const char *name_of(const struct coordinator *c, uint16_t slot)
{
    const struct state_node *node = state_node(c->state, slot);

    return node == NULL ? "" : node->name;
}

static void add_parts(Rh__NodeRow *row, const struct told_parts *parts)
{
    row->parts = mem_new(parts->count + 1u, sizeof(Rh__KindPart *));
    for (size_t i = 0; i < parts->count; i++) {
        Rh__KindPart *part = mem_new(1, sizeof *part);

        *part = (Rh__KindPart)RH__KIND_PART__INIT;
        part->kind = parts->part[i].kind;
        part->permille = parts->part[i].permille;
        row->parts[row->n_parts++] = part;
    }
}

Rh__NodeRow *admin_node_row(struct coordinator *c, const struct state_node *node)
{
    const struct seen *seen = peers_seen(c, node);
    Rh__NodeRow *row = mem_new(1, sizeof *row);

    *row = (Rh__NodeRow)RH__NODE_ROW__INIT;
    row->member = delta_member(node);
    row->zone = mem_string(node->zone);
    row->live = peers_live(c, node);
    row->state = mem_string(fence_state(c, node));
    row->lease_us_left = fence_lease_left_us(c, node);
    row->vnodes = (uint32_t)ring_owned_count(&c->state->view.ring, node->slot);
    row->cells = ring_owned_cells(&c->state->view.ring, node->slot);
    row->moves = rebalance_moves(c, node->slot);
    row->joins_us = eligibility_in_us(c, node);
    if (seen == NULL) {
        return row;
    }
    row->version = seen->renew.version;
    row->digest0 = seen->renew.digest0;
    row->digest1 = seen->renew.digest1;
    row->actors = seen->renew.actors;
    row->held = seen->renew.held;
    row->held_total = seen->renew.held_total;
    row->hold_us_max = seen->renew.hold_us_max;
    row->executed = seen->renew.executed;
    row->waiting = seen->renew.waiting;
    row->requests_known = loads_rate(c, node, &row->requests_s);
    row->p99_us = loads_p99_us(c, node);
    row->forwarded = seen->renew.forwarded;
    row->lease_least_us = seen->renew.lease_least_us;
    row->lease_own_us = seen->renew.lease_us;
    row->lease_length_us = seen->renew.lease_length_us;
    row->clock_parts = seen->clock.parts;
    row->lease_gated = seen->renew.lease_gated;
    row->leaseless_total = seen->renew.leaseless_total;
    row->gate_dropped = seen->renew.gate_dropped;
    row->refused_quarantine = seen->renew.refused_quarantine;
    row->heard_us_ago = c->now_us - seen->heard_us;
    add_parts(row, &seen->parts);
    return row;
}

void admin_add_nodes(struct coordinator *c, Rh__AdminReply *reply)
{
    reply->nodes = mem_new(c->state->node_count, sizeof(Rh__NodeRow *));
    for (size_t i = 0; i < c->state->node_count; i++) {
        reply->nodes[reply->n_nodes++] = admin_node_row(c, &c->state->node[i]);
    }
}

/* The row of a voter, by id; made if there is none. */
static Rh__VoterRow *voter_row(Rh__AdminReply *reply, uint64_t id)
{
    Rh__VoterRow *row;
    size_t at = 0;

    while (at < reply->n_voters && reply->voters[at]->id < id) {
        at++;
    }
    if (at < reply->n_voters && reply->voters[at]->id == id) {
        return reply->voters[at];
    }
    row = mem_new(1, sizeof *row);
    *row = (Rh__VoterRow)RH__VOTER_ROW__INIT;
    row->id = (uint32_t)id;
    reply->voters = mem_resize(reply->voters, (reply->n_voters + 1) * sizeof(Rh__VoterRow *));
    memmove(&reply->voters[at + 1],
            &reply->voters[at],
            (reply->n_voters - at) * sizeof(Rh__VoterRow *));
    reply->voters[at] = row;
    reply->n_voters++;
    return row;
}

void admin_add_voters(struct coordinator *c, Rh__AdminReply *reply)
{
    for (size_t i = 0; c->config.voter_count == 0 && i < c->state->voter_count; i++) {
        admin_set_text(&voter_row(reply, c->state->voter[i].id)->address,
                       c->state->voter[i].address);
    }
    for (size_t i = 0; i < c->config.voter_count; i++) {
        admin_set_text(&voter_row(reply, c->config.voter[i].id)->address,
                       c->config.voter[i].address);
    }
    for (size_t i = 0; i < c->peers.count; i++) {
        const uint64_t id = strtoull(c->peers.item[i]->name, NULL, 10);

        if (c->peers.item[i]->role == ROLE_COORDINATOR && coordinator_is_voter(c, id)) {
            voter_row(reply, id)->linked = true;
        }
    }
    voter_row(reply, c->config.id)->linked = true;
    for (size_t i = 0; i < reply->n_voters; i++) {
        reply->voters[i]->leader = reply->voters[i]->id == c->leader;
    }
}

Rh__VnodeRow *admin_vnode_row(const struct coordinator *c, const struct ring_vnode *v)
{
    Rh__VnodeRow *row = mem_new(1, sizeof *row);

    *row = (Rh__VnodeRow)RH__VNODE_ROW__INIT;
    row->id = v->id;
    row->from = v->from;
    row->to = ring_end(&c->state->view.ring, v);
    row->owner = mem_string(name_of(c, v->owner));
    row->generation = v->generation;
    row->cold = v->cold;
    row->role = mem_string(roles_of_vnode(&c->state->view.ring, v));
    for (size_t i = 0; i < c->state->txn_count; i++) {
        const struct state_txn *t = &c->state->txn[i];

        for (size_t j = 0; t->state == TXN_PENDING && j < t->op_count; j++) {
            if (t->ops[j].kind == RING_MOVE && t->ops[j].vnode == v->id) {
                row->txn = t->number;
                admin_set_text(&row->to_node, name_of(c, t->ops[j].to));
            }
        }
    }
    return row;
}

/* The op of `t` that moved the vnode; if that was split off, or merged, later, any: the nodes are
 * the same. NULL = none. */
static const struct ring_op *move_of(const struct state_txn *t, uint32_t vnode)
{
    const struct ring_op *found = NULL;

    for (size_t i = 0; i < t->op_count; i++) {
        const struct ring_op *op = &t->ops[i];

        if (op->kind == RING_MOVE && (found == NULL || op->vnode == vnode)) {
            found = op;
        }
    }
    return found;
}

/* Whose name the slot had then: it may be another's by now, which the incarnation tells. */
static const char *name_then(const struct coordinator *c, const struct state_txn *t, uint16_t slot)
{
    const struct state_part *part = state_txn_part(t, slot);
    const struct state_node *node = state_node(c->state, slot);

    return part == NULL || node == NULL || node->incarnation != part->incarnation ? "" : node->name;
}

void admin_set_last_move(const struct coordinator *c, const struct ring_vnode *v, Rh__VnodeRow *row)
{
    const struct state_txn *t = v->txn == 0 ? NULL : state_txn(c->state, v->txn);
    const struct ring_op *op = t == NULL ? NULL : move_of(t, v->id);

    if (op == NULL) {
        return;
    }
    row->moved_txn = t->number;
    admin_set_text(&row->moved_from, name_then(c, t, op->from));
    admin_set_text(&row->moved_to, name_then(c, t, op->to));
    row->moved_us_ago = c->wall_us > t->decided_us ? c->wall_us - t->decided_us : 0;
    admin_set_text(&row->moved_why, t->why);
}

void admin_add_vnodes(const struct coordinator *c, Rh__AdminReply *reply)
{
    const struct ring *ring = &c->state->view.ring;

    reply->vnodes = mem_new(ring->vnode_count, sizeof(Rh__VnodeRow *));
    for (size_t i = 0; i < ring->vnode_count; i++) {
        reply->vnodes[reply->n_vnodes++] = admin_vnode_row(c, &ring->vnode[i]);
    }
}

static void add_moves(const struct coordinator *c, const struct state_txn *t, Rh__TxnRow *row)
{
    row->moves = mem_new(t->op_count, sizeof(Rh__TxnMove *));
    for (size_t i = 0; i < t->op_count; i++) {
        Rh__TxnMove *move;

        if (t->ops[i].kind != RING_MOVE) {
            continue;
        }
        move = mem_new(1, sizeof *move);
        *move = (Rh__TxnMove)RH__TXN_MOVE__INIT;
        move->vnode = t->ops[i].vnode;
        move->from = mem_string(name_of(c, t->ops[i].from));
        move->to = mem_string(name_of(c, t->ops[i].to));
        row->moves[row->n_moves++] = move;
    }
}

static void add_votes(const struct coordinator *c, const struct state_txn *t, Rh__TxnRow *row)
{
    const struct drive *d = drive_find(c, t->number);

    row->votes = mem_new(t->part_count, sizeof(Rh__TxnVote *));
    for (size_t i = 0; i < t->part_count; i++) {
        Rh__TxnVote *vote = mem_new(1, sizeof *vote);
        const bool voted = t->parts[i].voted || (d != NULL && d->ballot[i].voted);

        *vote = (Rh__TxnVote)RH__TXN_VOTE__INIT;
        vote->node = mem_string(name_of(c, t->parts[i].slot));
        vote->incarnation = t->parts[i].incarnation;
        vote->vote = mem_string(voted ? "prepared" : "none");
        vote->to_go = d != NULL && !voted && d->ballot[i].report_us != 0 ? d->ballot[i].busy : 0;
        row->votes[row->n_votes++] = vote;
    }
}

void admin_add_txn(struct coordinator *c, Rh__AdminReply *reply, const struct state_txn *t)
{
    const struct drive *d = drive_find(c, t->number);
    Rh__TxnRow *row = mem_new(1, sizeof *row);
    char text[ADMIN_TEXT_SIZE];

    *row = (Rh__TxnRow)RH__TXN_ROW__INIT;
    row->txn = t->number;
    row->state = mem_string(txn_state_name(t->state));
    row->why = mem_string(t->why);
    row->created_us = t->created_us;
    row->decided_us = t->decided_us;
    row->version = t->version;
    row->outcome_why = mem_string(t->outcome_why);
    row->superseded_by = t->superseded_by;
    add_moves(c, t, row);
    add_votes(c, t, row);
    phases_tell(c, row);
    if (d != NULL) {
        waits_now(c, d, text, sizeof text);
        row->waiting_for = mem_string(text);
    }
    reply->txns = mem_resize(reply->txns, (reply->n_txns + 1) * sizeof(Rh__TxnRow *));
    reply->txns[reply->n_txns++] = row;
}

void admin_overview(struct coordinator *c, Rh__AdminReply *reply)
{
    admin_add_nodes(c, reply);
    admin_gateways(c, reply);
    admin_add_voters(c, reply);
    admin_add_vnodes(c, reply);
    admin_add_roles(c, reply);
    admin_add_quarantine(c, reply);
    for (size_t i = 0; i < c->state->txn_count; i++) {
        if (c->state->txn[i].state == TXN_PENDING) {
            admin_add_txn(c, reply, &c->state->txn[i]);
        }
    }
}
