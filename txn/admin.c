/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators' questions and wishes. Answers are built on the heap, as protobuf-c
 * frees them.
 */
#include "txn/inside.h"

#include "base/mem.h"
#include "txn/delta.h"
#include "txn/roles.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TXNS_DEFAULT = 20, TEXT_SIZE = 256 };

bool admin_waits(const Rh__Admin *in)
{
    // What tells how the group is must be told when the group is not well. A wish about which
    // nothing is to be read first is judged where it is applied: its own entry is all the barrier
    // it needs.
    return in->what_case != RH__ADMIN__WHAT_STATUS && in->what_case != RH__ADMIN__WHAT_NODES &&
           in->what_case != RH__ADMIN__WHAT_QUARANTINE;
}

void admin_set_text(char **field, const char *text)
{
    if (*field != NULL && *field != protobuf_c_empty_string) {
        mem_free(*field);
    }
    *field = mem_string(text);
}

static const char *name_of(const struct coordinator *c, uint16_t slot)
{
    const struct state_node *node = state_node(c->state, slot);

    return node == NULL ? "" : node->name;
}

/* ---- rows ---- */

static Rh__NodeRow *node_row(struct coordinator *c, const struct state_node *node)
{
    const struct seen *seen = peers_seen(c, node);
    Rh__NodeRow *row = mem_new(1, sizeof *row);

    *row = (Rh__NodeRow)RH__NODE_ROW__INIT;
    row->member = delta_member(node);
    row->live = peers_live(c, node);
    row->state = mem_string(fence_state(c, node));
    row->lease_us_left = fence_lease_left_us(c, node);
    row->vnodes = (uint32_t)ring_owned_count(&c->state->view.ring, node->slot);
    row->cells = ring_owned_cells(&c->state->view.ring, node->slot);
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
    row->forwarded = seen->renew.forwarded;
    row->lease_least_us = seen->renew.lease_least_us;
    row->lease_gated = seen->renew.lease_gated;
    row->leaseless_total = seen->renew.leaseless_total;
    row->gate_dropped = seen->renew.gate_dropped;
    row->refused_quarantine = seen->renew.refused_quarantine;
    row->heard_us_ago = c->now_us - seen->heard_us;
    return row;
}

void admin_add_nodes(struct coordinator *c, Rh__AdminReply *reply)
{
    reply->nodes = mem_new(c->state->node_count, sizeof(Rh__NodeRow *));
    for (size_t i = 0; i < c->state->node_count; i++) {
        reply->nodes[reply->n_nodes++] = node_row(c, &c->state->node[i]);
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

static void add_voters(struct coordinator *c, Rh__AdminReply *reply)
{
    for (size_t i = 0; c->config.voter_count == 0 && i < c->state->voter_count; i++) {
        admin_set_text(&voter_row(reply, c->state->voter[i].id)->address,
                       c->state->voter[i].address);
    }
    for (size_t i = 0; i < c->config.voter_count; i++) {
        admin_set_text(&voter_row(reply, c->config.voter[i].id)->address,
                       c->config.voter[i].address);
    }
    for (size_t i = 0; i < c->peer_count; i++) {
        const uint64_t id = strtoull(c->peer[i]->name, NULL, 10);

        if (c->peer[i]->role == ROLE_COORDINATOR && coordinator_is_voter(c, id)) {
            voter_row(reply, id)->linked = true;
        }
    }
    voter_row(reply, c->config.id)->linked = true;
    for (size_t i = 0; i < reply->n_voters; i++) {
        reply->voters[i]->leader = reply->voters[i]->id == c->leader;
    }
}

static Rh__VnodeRow *vnode_row(const struct coordinator *c, const struct ring_vnode *v)
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

static void add_vnodes(const struct coordinator *c, Rh__AdminReply *reply)
{
    const struct ring *ring = &c->state->view.ring;

    reply->vnodes = mem_new(ring->vnode_count, sizeof(Rh__VnodeRow *));
    for (size_t i = 0; i < ring->vnode_count; i++) {
        reply->vnodes[reply->n_vnodes++] = vnode_row(c, &ring->vnode[i]);
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
    char text[TEXT_SIZE];

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

/* ---- answers ---- */

Rh__AdminReply *admin_reply_new(const struct coordinator *c, uint64_t tag)
{
    const struct view *view = &c->state->view;
    Rh__AdminReply *reply = mem_new(1, sizeof *reply);

    *reply = (Rh__AdminReply)RH__ADMIN_REPLY__INIT;
    reply->tag = tag;
    reply->cluster = mem_string(c->state->begun ? c->state->cluster : c->config.cluster);
    reply->leader = (uint32_t)c->leader;
    reply->leading = c->leading;
    reply->term = c->term;
    reply->version = view->ring.version;
    reply->digest0 = view->ring.digest[0];
    reply->digest1 = view->ring.digest[1];
    reply->number = c->state->number;
    reply->era = view->era;
    reply->applied_index = c->applied_index;
    reply->pending = (uint32_t)state_pending_count(c->state);
    reply->planned = (uint32_t)rebalance_planned(c);
    return reply;
}

/* Takes `reply`. */
void admin_send_reply(struct coordinator *c, uint64_t peer, Rh__AdminReply *reply)
{
    Rh__Control out = RH__CONTROL__INIT;

    out.body_case = RH__CONTROL__BODY_ADMIN_REPLY;
    out.admin_reply = reply;
    peers_send(c, peer, &out);
    proto_free(&reply->base);
}

void admin_overview(struct coordinator *c, Rh__AdminReply *reply)
{
    admin_add_nodes(c, reply);
    admin_gateways(c, reply);
    add_voters(c, reply);
    add_vnodes(c, reply);
    admin_add_roles(c, reply);
    admin_add_quarantine(c, reply);
    for (size_t i = 0; i < c->state->txn_count; i++) {
        if (c->state->txn[i].state == TXN_PENDING) {
            admin_add_txn(c, reply, &c->state->txn[i]);
        }
    }
}

static void on_where(struct coordinator *c, Rh__AdminReply *reply, const Rh__AdminWhere *in)
{
    const struct view *view = &c->state->view;
    const struct ring_vnode *v;
    const struct state_node *owner;
    ring_hit hit;

    if (in->id.len < 1 || in->id.len > 255 || in->kind > UINT16_MAX) {
        admin_set_text(&reply->error, "an id has 1 to 255 bytes, a kind is at most 65535");
        return;
    }
    if (view->ring.vnode_count == 0) {
        admin_set_text(&reply->error, "the ring is empty: no node has registered yet");
        return;
    }
    hit = view_lookup(view, (uint16_t)in->kind, bytes_of(in->id.data, in->id.len));
    v = ring_find(&view->ring, ring_hit_vnode(hit));
    owner = state_node(c->state, ring_hit_node(hit));
    reply->vnodes = mem_new(1, sizeof(Rh__VnodeRow *));
    reply->vnodes[reply->n_vnodes++] = vnode_row(c, v);
    if (owner == NULL) {
        admin_set_text(&reply->error, "it is nobody's yet: too few nodes of its role are there");
        return;
    }
    reply->nodes = mem_new(1, sizeof(Rh__NodeRow *));
    reply->nodes[reply->n_nodes++] = node_row(c, owner);
}

static void on_txns(struct coordinator *c, Rh__AdminReply *reply, uint32_t limit)
{
    uint32_t left = limit == 0 ? TXNS_DEFAULT : limit;

    for (size_t i = c->state->txn_count; i-- > 0 && left > 0; left--) {
        admin_add_txn(c, reply, &c->state->txn[i]);
    }
}

static void on_txn(struct coordinator *c, Rh__AdminReply *reply, uint64_t number)
{
    const struct state_txn *t = state_txn(c->state, number);
    char text[TEXT_SIZE];

    if (t != NULL) {
        admin_add_txn(c, reply, t);
        return;
    }
    (void)snprintf(text,
                   sizeof text,
                   "no transaction %" PRIu64 " (the last %d are kept)",
                   number,
                   STATE_TXNS_KEPT);
    admin_set_text(&reply->error, text);
}

/* ---- wishes: answered when they were applied, by admin_applied() ---- */

static void expect(struct proposal *p, const struct peer *peer, uint64_t question, uint16_t slot)
{
    if (p != NULL) {
        p->peer = peer->id;
        p->asked = true;
        p->question = question;
        p->slot = slot;
    }
}

/* What an operator wants of a node, and who wants it. */
struct wish {
    enum desire desire;
    uint32_t weight; /* 0 = as it is */
    uint64_t number; /* random; 0 = an older client's */
    uint64_t seen;   /* what he knew of */
    char *by;
    char *reason;
};

static struct proposal *propose_desire(struct coordinator *c, const struct state_node *node,
                                       const struct wish *wish)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandDesire body = RH__COMMAND_DESIRE__INIT;

    body.name = proto_text(node->name);
    body.leaving = wish->desire;
    body.weight = wish->weight;
    body.wish = wish->number;
    body.seen = wish->seen;
    command.body_case = RH__COMMAND__BODY_DESIRE;
    command.desire = &body;
    command.by = wish->by;
    command.reason = wish->reason;
    return coordinator_propose(c, PROPOSAL_DESIRE, &command);
}

static struct proposal *propose_removal(struct coordinator *c, const struct state_node *node,
                                        const Rh__AdminRemove *in)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandDeregister body = RH__COMMAND_DEREGISTER__INIT;

    body.slot = node->slot;
    body.incarnation = node->incarnation;
    command.body_case = RH__COMMAND__BODY_DEREGISTER;
    command.deregister = &body;
    command.by = in->by;
    command.reason = in->reason;
    return coordinator_propose(c, PROPOSAL_DEREGISTER, &command);
}

/* Why a node that isn't live can't be removed, into `text`; empty: it can. */
static void removal_fault(struct coordinator *c, const struct state_node *node, char *text,
                          size_t size)
{
    const size_t owned = ring_owned_count(&c->state->view.ring, node->slot);

    text[0] = '\0';
    if (owned > 0 && node->barred) {
        (void)snprintf(text,
                       size,
                       "node '%s' is fenced and owns %zu vnodes: others get them in %" PRIu64
                       " ms, try again then",
                       node->name,
                       owned,
                       fence_lease_left_us(c, node) / 1000 + 1);
    } else if (owned > 0) {
        (void)snprintf(text,
                       size,
                       "node '%s' is not live and owns %zu vnodes, and no other node could take "
                       "them yet: start it again with its data folder, or another, and wait",
                       node->name,
                       owned);
    } else if (!peers_gone(c, node)) {
        (void)snprintf(text,
                       size,
                       "node '%s' was heard of less than %" PRIu32 " ms ago: try again then",
                       node->name,
                       c->config.suspect_ms);
    }
}

/* The node by that name, or NULL and an error in `reply`. */
static const struct state_node *wanted_node(const struct coordinator *c, Rh__AdminReply *reply,
                                            const char *name)
{
    const struct state_node *node = state_node_named(c->state, name);
    char text[TEXT_SIZE];

    if (node == NULL) {
        (void)snprintf(text, sizeof text, "unknown node '%.64s'", name);
        admin_set_text(&reply->error, text);
    }
    return node;
}

/* True: the answer comes when the command was applied. */
static bool ask_desire(struct coordinator *c, const struct peer *peer, Rh__AdminReply *reply,
                       const struct state_node *node, const struct wish *wish)
{
    struct proposal *p = propose_desire(c, node, wish);

    expect(p, peer, reply->tag, node->slot);
    if (p == NULL) {
        admin_set_text(&reply->error, "the coordinators are not ready: try again");
    }
    return p != NULL;
}

static bool on_drain(struct coordinator *c, const struct peer *peer, Rh__AdminReply *reply,
                     const Rh__AdminDrain *in)
{
    const struct state_node *node = wanted_node(c, reply, in->name);
    const struct wish wish = {.desire = in->cancel ? DESIRE_STAY : DESIRE_DRAIN,
                              .number = in->wish,
                              .seen = in->seen,
                              .by = in->by,
                              .reason = proto_text("")};

    return node != NULL && ask_desire(c, peer, reply, node, &wish);
}

static bool on_remove(struct coordinator *c, const struct peer *peer, Rh__AdminReply *reply,
                      const Rh__AdminRemove *in)
{
    const struct state_node *node = wanted_node(c, reply, in->name);
    const bool live = node != NULL && peers_live(c, node);
    const struct wish wish = {.desire = DESIRE_STOP,
                              .number = in->wish,
                              .seen = in->seen,
                              .by = in->by,
                              .reason = in->reason};
    char fault[TEXT_SIZE] = "";
    struct proposal *p;

    if (node == NULL) {
        return false;
    }
    if (!live) {
        removal_fault(c, node, fault, sizeof fault);
    }
    if (fault[0] != '\0') {
        admin_set_text(&reply->error, fault);
        return false;
    }
    p = live ? propose_desire(c, node, &wish) : propose_removal(c, node, in);
    expect(p, peer, reply->tag, node->slot);
    if (p == NULL) {
        admin_set_text(&reply->error, "the coordinators are not ready: try again");
    }
    return p != NULL;
}

static bool on_weight(struct coordinator *c, const struct peer *peer, Rh__AdminReply *reply,
                      const Rh__AdminWeight *in)
{
    const struct state_node *node = wanted_node(c, reply, in->name);
    const struct wish wish = {.desire = DESIRE_KEEP,
                              .weight = in->weight,
                              .number = in->wish,
                              .seen = in->seen,
                              .by = in->by,
                              .reason = proto_text("")};

    if (node == NULL) {
        return false;
    }
    if (in->weight < 1 || in->weight > VIEW_WEIGHT_MAX) {
        admin_set_text(&reply->error, "a weight is 1 to 1000");
        return false;
    }
    return ask_desire(c, peer, reply, node, &wish);
}

static bool on_daemons(struct coordinator *c, const struct peer *peer, Rh__AdminReply *reply,
                       const Rh__AdminDaemons *in)
{
    struct proposal *p = admin_daemons(c, reply, in);

    expect(p, peer, reply->tag, 0);
    return p != NULL;
}

static bool on_quarantine(struct coordinator *c, const struct peer *peer, Rh__AdminReply *reply,
                          const Rh__AdminQuarantine *in)
{
    struct proposal *p = admin_quarantine(c, reply, in);

    expect(p, peer, reply->tag, 0);
    return p != NULL;
}

static bool on_upgrade(struct coordinator *c, const struct peer *peer, Rh__AdminReply *reply,
                       const Rh__AdminUpgrade *in)
{
    struct proposal *p = upgrade_on_question(c, reply, in);

    expect(p, peer, reply->tag, 0);
    return p != NULL;
}

void admin_applied(struct coordinator *c, const struct proposal *p,
                   const struct state_result *result)
{
    const struct state_node *node = state_node(c->state, (uint16_t)p->slot);
    Rh__AdminReply *reply;
    char text[TEXT_SIZE] = "removed";

    if (!p->asked || peers_find(c, p->peer) == NULL) {
        return;
    }
    reply = admin_reply_new(c, p->question);
    if (!result->accepted) {
        admin_set_text(&reply->error, result->why);
    } else if (p->kind == PROPOSAL_DAEMONS || p->kind == PROPOSAL_QUARANTINE) {
        (void)snprintf(text, sizeof text, "changed");
    } else if (p->kind == PROPOSAL_FORMAT) {
        (void)snprintf(
            text, sizeof text, "the fleet's format is %" PRIu32 " now", c->state->format);
        upgrade_tell(c, reply);
    } else if (p->kind == PROPOSAL_DESIRE && node != NULL) {
        (void)snprintf(text,
                       sizeof text,
                       node->leaving ? "%s drains: %zu vnodes to move" : "%s stays with %zu vnodes",
                       node->name,
                       ring_owned_count(&c->state->view.ring, node->slot));
    }
    admin_set_text(&reply->text, result->accepted ? text : "");
    admin_send_reply(c, p->peer, reply);
}

/* ---- questions ---- */

/* True: it is answered later. */
static bool fill(struct coordinator *c, const struct peer *peer, Rh__AdminReply *reply,
                 const Rh__Admin *in)
{
    switch (in->what_case) {
    case RH__ADMIN__WHAT_STATUS:
        admin_add_nodes(c, reply);
        admin_gateways(c, reply);
        add_voters(c, reply);
        admin_add_roles(c, reply);
        admin_add_quarantine(c, reply);
        upgrade_tell(c, reply);
        return false;
    case RH__ADMIN__WHAT_UPGRADE:
        return on_upgrade(c, peer, reply, in->upgrade);
    case RH__ADMIN__WHAT_RING:
        add_vnodes(c, reply);
        return false;
    case RH__ADMIN__WHAT_WHERE:
        on_where(c, reply, in->where);
        return false;
    case RH__ADMIN__WHAT_NODES:
        admin_add_nodes(c, reply);
        return false;
    case RH__ADMIN__WHAT_DRAIN:
        return on_drain(c, peer, reply, in->drain);
    case RH__ADMIN__WHAT_DAEMONS:
        return on_daemons(c, peer, reply, in->daemons);
    case RH__ADMIN__WHAT_QUARANTINE:
        return on_quarantine(c, peer, reply, in->quarantine);
    case RH__ADMIN__WHAT_REMOVE:
        return on_remove(c, peer, reply, in->remove);
    case RH__ADMIN__WHAT_WEIGHT:
        return on_weight(c, peer, reply, in->weight);
    case RH__ADMIN__WHAT_ERRAND:
        return errand_ask(c, peer, reply, in->errand);
    case RH__ADMIN__WHAT_PREVIEW:
        admin_preview(c, reply, in->preview);
        return false;
    case RH__ADMIN__WHAT_TXNS:
        on_txns(c, reply, in->txns->limit);
        return false;
    case RH__ADMIN__WHAT_TXN:
        on_txn(c, reply, in->txn->txn);
        return false;
    case RH__ADMIN__WHAT_INSPECT: // answered by every coordinator: inspect_ask()
        break;
    case RH__ADMIN__WHAT_MEND:
        return inspect_mend(c, peer, reply, in->mend);
    case RH__ADMIN__WHAT_RESOLVE:
        return resolve_on_question(c, peer, reply, in->resolve);
    case RH__ADMIN__WHAT_EVENTS:       // the shell's, which has the table
    case RH__ADMIN__WHAT_COORDINATORS: // likewise: it has the links
    case RH__ADMIN__WHAT__NOT_SET:
    case _RH__ADMIN__WHAT__CASE_IS_INT_SIZE:
        break;
    }
    admin_set_text(&reply->error, "this coordinator does not know that question");
    return false;
}

void admin_on_question(struct coordinator *c, struct peer *peer, const Rh__Admin *in)
{
    Rh__AdminReply *reply = admin_reply_new(c, in->tag);

    if (fill(c, peer, reply, in)) {
        proto_free(&reply->base);
    } else {
        admin_send_reply(c, peer->id, reply);
    }
}
