/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators' questions. Answers are built on the heap, as protobuf-c
 * frees them.
 */
#include "txn/admin/inside.h"

#include "base/mem.h"
#include "base/mutant.h"
#include "base/stamp.h"

#include <stdio.h>

enum { TXNS_DEFAULT = 20 };

bool admin_waits(const Rh__Admin *in)
{
    // What tells how the group is must be told when the group is not well. A wish about which
    // nothing is to be read first is judged where it is applied: its own entry is all the barrier
    // it needs. Who lives at a node the log does not tell, and a list of all has many pages.
    return in->what_case != RH__ADMIN__WHAT_STATUS && in->what_case != RH__ADMIN__WHAT_NODES &&
           in->what_case != RH__ADMIN__WHAT_ACTORS && in->what_case != RH__ADMIN__WHAT_QUARANTINE;
}

Rh__AdminReply *admin_reply_new(const struct coordinator *c, uint64_t tag)
{
    const struct view *view = &c->state->view;
    Rh__AdminReply *reply = mem_new(1, sizeof *reply);
    char fleet[FLEET_ID_TEXT_SIZE];

    *reply = (Rh__AdminReply)RH__ADMIN_REPLY__INIT;
    reply->tag = tag;
    fleet_id_print(view->fleet, fleet);
    reply->fleet = mem_string(fleet);
    reply->cluster = mem_string(c->state->begun ? c->state->cluster : c->config.cluster);
    reply->leader = (uint32_t)c->leader;
    reply->leading = c->leading;
    reply->term = c->term;
    reply->version = view->ring.version;
    reply->digest0 = view->ring.digest[0];
    reply->digest1 = view->ring.digest[1];
    reply->number = c->state->number;
    reply->era = view->era;
    reply->applied_index = c->applied.index;
    reply->pending = (uint32_t)state_pending_count(c->state);
    reply->planned = (uint32_t)rebalance_planned(c);
    reply->planning = rebalance_planning(c);
    reply->lease_us = c->leading ? c->config.lease_us : 0;
    reply->lease_longest_us = lease_longest_us(c);
    reply->lease_wait_us = lease_wait_us(c);
    return reply;
}

void admin_send_reply(struct coordinator *c, uint64_t peer, Rh__AdminReply *reply)
{
    Rh__Control out = RH__CONTROL__INIT;

    out.body_case = RH__CONTROL__BODY_ADMIN_REPLY;
    out.admin_reply = reply;
    peers_send(c, peer, &out);
    proto_free(&reply->base);
}

/* The tag that decides where the id lives, for who is placed together. */
static void set_tag(const struct ring *ring, const Rh__AdminWhere *in, Rh__VnodeRow *row)
{
    const struct ring_segment *s = ring_segment_of_kind(ring, (uint16_t)in->kind);
    const struct bytes tag = ring_tag(bytes_of(in->id.data, in->id.len));

    if (s != NULL && s->policy == RING_TOGETHER) {
        row->tag.data = mem_copy(tag.data, tag.size);
        row->tag.len = tag.size;
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
    reply->vnodes[reply->n_vnodes++] = admin_vnode_row(c, v);
    set_tag(&view->ring, in, reply->vnodes[0]);
    admin_set_last_move(c, v, reply->vnodes[0]);
    if (owner == NULL) {
        admin_set_text(&reply->error,
                       "the id has no owner yet: too few nodes of its role are registered");
        return;
    }
    reply->nodes = mem_new(1, sizeof(Rh__NodeRow *));
    reply->nodes[reply->n_nodes++] = admin_node_row(c, owner);
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
    char text[ADMIN_TEXT_SIZE];

    if (t != NULL) {
        admin_add_txn(c, reply, t);
        return;
    }
    (void)snprintf(text,
                   sizeof text,
                   "transaction %s is unknown or forgotten (the last %d are kept)",
                   STAMP(number),
                   STATE_TXNS_KEPT);
    admin_set_text(&reply->error, text);
}

static void add_status(struct coordinator *c, Rh__AdminReply *reply, const Rh__AdminStatus *in)
{
    admin_add_nodes(c, reply);
    admin_gateways(c, reply);
    admin_add_voters(c, reply);
    admin_add_roles(c, reply);
    admin_add_quarantine(c, reply);
    admin_add_obstacles(c, reply);
    pin_count(c, reply);
    remembered_count(c, reply);
    admin_add_balance(c, reply);
    admin_add_hour(c, reply, in->trend_from);
    upgrade_tell(c, reply);
}

/* True: it is answered later. */
static bool fill(struct coordinator *c, struct leader_peer *peer, Rh__AdminReply *reply,
                 const Rh__Admin *in)
{
    switch (in->what_case) {
    case RH__ADMIN__WHAT_STATUS:
        add_status(c, reply, in->status);
        return false;
    case RH__ADMIN__WHAT_UPGRADE:
        return wish_upgrade(c, peer, reply, in->upgrade);
    case RH__ADMIN__WHAT_MAINTENANCE:
        return maintenance_on_question(c, peer, reply, in->maintenance);
    case RH__ADMIN__WHAT_RING:
        admin_add_vnodes(c, reply);
        return false;
    case RH__ADMIN__WHAT_WHERE:
        on_where(c, reply, in->where);
        return false;
    case RH__ADMIN__WHAT_NODES:
        admin_add_nodes(c, reply);
        admin_add_obstacles(c, reply);
        return false;
    case RH__ADMIN__WHAT_DRAIN:
        return wish_drain(c, peer, reply, in->drain);
    case RH__ADMIN__WHAT_DAEMONS:
        return wish_daemons(c, peer, reply, in->daemons);
    case RH__ADMIN__WHAT_QUARANTINE:
        return wish_quarantine(c, peer, reply, in->quarantine);
    case RH__ADMIN__WHAT_REMOVE:
        return wish_remove(c, peer, reply, in->remove);
    case RH__ADMIN__WHAT_WEIGHT:
        return wish_weight(c, peer, reply, in->weight);
    case RH__ADMIN__WHAT_OPERATOR_REQUEST:
        return operator_request_ask(c, peer, reply, in->operator_request);
    case RH__ADMIN__WHAT_ACTORS:
        return residents_ask(c, peer, reply, in->actors);
    case RH__ADMIN__WHAT_PREVIEW:
        admin_preview(c, reply, in->preview);
        return false;
    case RH__ADMIN__WHAT_MOVE:
        return move_ask(c, peer, reply, in->move);
    case RH__ADMIN__WHAT_PIN:
        return pin_ask(c, peer, reply, in->pin);
    case RH__ADMIN__WHAT_PINS:
        pin_list(c, reply, in->pins);
        return false;
    case RH__ADMIN__WHAT_REMEMBERED:
        remembered_list(c, reply, in->remembered);
        return false;
    case RH__ADMIN__WHAT_FORGET:
        return remembered_forget(c, peer, reply, in->forget);
    case RH__ADMIN__WHAT_TXNS:
        on_txns(c, reply, in->txns->limit);
        admin_add_obstacles(c, reply);
        return false;
    case RH__ADMIN__WHAT_TXN:
        on_txn(c, reply, in->txn->txn);
        return false;
    case RH__ADMIN__WHAT_INSPECT: // answered by every coordinator: inspect_ask()
        break;
    case RH__ADMIN__WHAT_REPAIR:
        return inspect_repair(c, peer, reply, in->repair);
    case RH__ADMIN__WHAT_RESOLVE:
        return resolve_on_question(c, peer, reply, in->resolve);
    case RH__ADMIN__WHAT_EVENTS:       // the shell's, which has the table
    case RH__ADMIN__WHAT_COORDINATORS: // likewise: it has the links
    case RH__ADMIN__WHAT__NOT_SET:
    case _RH__ADMIN__WHAT__CASE_IS_INT_SIZE:
        break;
    }
    admin_set_text(
        &reply->error,
        "this coordinator does not know this question: check whether it is an older version");
    return false;
}

void admin_refuse(struct coordinator *c, const struct leader_peer *peer, const Rh__Admin *in,
                  const char *error)
{
    Rh__AdminReply *reply = admin_reply_new(c, in->tag);

    admin_set_text(&reply->error, error);
    admin_send_reply(c, peer->id, reply);
}

/* Who waits asks again each 100 ms, so a question may come while its answer is on the way: of a
 * wish, that would be a second one, perhaps behind another operator's. */
static bool is_asked_again(const struct coordinator *c, const struct leader_peer *peer,
                           uint64_t question)
{
    if (question == 0 || mutant(M_SECONDWISH)) {
        return false;
    }
    for (size_t i = 0; i < c->proposals.count; i++) {
        const struct proposal *p = &c->proposals.item[i];

        if (p->asked && p->peer == peer->id && p->question == question) {
            return true;
        }
    }
    return question == peer->done;
}

void admin_on_question(struct coordinator *c, struct leader_peer *peer, const Rh__Admin *in)
{
    Rh__AdminReply *reply = NULL;

    if (is_asked_again(c, peer, in->tag)) {
        return;
    }
    reply = admin_reply_new(c, in->tag);
    if (fill(c, peer, reply, in)) {
        proto_free(&reply->base);
    } else {
        admin_send_reply(c, peer->id, reply);
    }
}
