/* SPDX-License-Identifier: Apache-2.0
 *
 * Links of the leader: whose each is, who was heard when, and sending.
 */
#include "txn/leader/inside.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"

#include "wire/hello.h"

#include <stdio.h>
#include <string.h>

struct leader_peer *peers_find(struct coordinator *c, uint64_t id)
{
    struct table_link *l = table_first(&c->peers.by_id, table_mix(id));

    // table_mix() is a bijection: equal hashes are equal ids.
    return l == NULL ? NULL : CONTAINER_OF(l, struct leader_peer, by_id);
}

void peers_up(struct coordinator *c, const struct coordinator_event *event)
{
    struct leader_peer *peer;

    if (peers_find(c, event->peer) != NULL) {
        return;
    }
    c->peers.item = mem_resize(c->peers.item, (c->peers.count + 1) * sizeof(struct leader_peer *));
    peer = c->peers.item[c->peers.count++] = mem_new(1, sizeof *peer);
    *peer = (struct leader_peer){
        .id = event->peer,
        .role = (enum link_role)event->role,
        .incarnation = event->incarnation,
        .identity = event->identity,
        .protocol = event->protocol,
        .fleet = event->fleet,
        .format = event->format.newest == 0
                      ? (struct versions){FLEET_FORMAT_OLDEST, FLEET_FORMAT_OLDEST}
                      : event->format,
        .heard_us = c->now_us,
    };
    (void)snprintf(
        peer->address, sizeof peer->address, "%s", event->address == NULL ? "" : event->address);
    (void)snprintf(
        peer->product, sizeof peer->product, "%s", event->product == NULL ? "" : event->product);
    (void)snprintf(peer->name, sizeof peer->name, "%s", event->name == NULL ? "" : event->name);
    table_put(&c->peers.by_id, &peer->by_id, table_mix(peer->id));
    c->peers.fellow_count += peer->role == ROLE_COORDINATOR;
    c->peers.changed = true;
    gateways_look(c, peer);
}

void peers_down(struct coordinator *c, uint64_t id)
{
    struct leader_peer *peer = peers_find(c, id);
    size_t at = 0;

    if (peer == NULL) {
        return;
    }
    while (c->peers.item[at] != peer) {
        at++;
    }
    c->peers.count--;
    memmove(&c->peers.item[at],
            &c->peers.item[at + 1],
            (c->peers.count - at) * sizeof(struct leader_peer *));
    table_remove(&c->peers.by_id, &peer->by_id);
    c->peers.fellow_count -= peer->role == ROLE_COORDINATOR;
    c->peers.changed = true;
    unanswered_fini(&peer->unanswered);
    mem_free(peer);
}

void peers_part(struct coordinator *c)
{
    for (size_t i = c->peers.count; i-- > 0;) {
        const struct leader_peer *peer = c->peers.item[i];

        if (fleet_id_differs(peer->fleet, c->state->view.fleet)) {
            log_warn("coordinator",
                     "another_fleets",
                     "peer=%s role=%s: the process was started before this fleet was founded",
                     peer->name,
                     link_role_name(peer->role));
            peers_down(c, peer->id);
        }
    }
}

void peers_reincarnate(struct coordinator *c, struct leader_peer *peer, uint64_t incarnation)
{
    c->peers.changed = c->peers.changed || peer->incarnation != incarnation;
    peer->incarnation = incarnation;
}

void peers_look_again(struct coordinator *c)
{
    c->peers.changed = true;
}

void peers_on_message(struct coordinator *c, struct leader_peer *peer, uint64_t incarnation)
{
    peer->heard_us = c->now_us;
    if (peer->role == ROLE_NODE && incarnation != 0) {
        peers_reincarnate(c, peer, incarnation);
    }
}

void peers_told(struct coordinator *c, struct leader_peer *peer, const Rh__GetConfig *in)
{
    unanswered_told(c, peer, in->unanswered, in->n_unanswered);
    peer->told = *in;
    peer->told.base = (ProtobufCMessage){0};
    peer->told.n_unanswered = 0;
    peer->told.unanswered = NULL;
}

void peers_free(struct coordinator *c)
{
    for (size_t i = 0; i < c->peers.count; i++) {
        unanswered_fini(&c->peers.item[i]->unanswered);
        mem_free(c->peers.item[i]);
    }
    table_fini(&c->peers.by_id);
    mem_free(c->peers.item);
    mem_free(c->peers.seen);
}

/* The node with this link's name, whatever its incarnation. */
static const struct state_node *named_like(const struct coordinator *c, struct leader_peer *peer)
{
    const struct state_node *node = state_node(c->state, peer->slot);

    if (node == NULL || strcmp(node->name, peer->name) != 0) {
        node = state_node_named(c->state, peer->name);
        peer->slot = node == NULL ? RING_NODE_NONE : node->slot;
    }
    return node;
}

static bool is_link_of(const struct leader_peer *p, const struct state_node *node)
{
    return p->role == ROLE_NODE && p->incarnation == node->incarnation &&
           strcmp(p->name, node->name) == 0;
}

/* Later links replace earlier ones. */
static void index_links(struct coordinator *c)
{
    memset(c->peers.of_slot, 0, sizeof c->peers.of_slot);
    for (size_t i = 0; i < c->peers.count; i++) {
        const struct state_node *node =
            c->peers.item[i]->role == ROLE_NODE ? named_like(c, c->peers.item[i]) : NULL;

        if (node != NULL && node->incarnation == c->peers.item[i]->incarnation) {
            c->peers.of_slot[node->slot] = c->peers.item[i];
        }
    }
    c->peers.changed = false;
}

static struct leader_peer *search_link(const struct coordinator *c, const struct state_node *node)
{
    for (size_t i = c->peers.count; i-- > 0;) {
        if (is_link_of(c->peers.item[i], node)) {
            return c->peers.item[i];
        }
    }
    return NULL;
}

struct leader_peer *peers_of_node(struct coordinator *c, const struct state_node *node)
{
    struct leader_peer *peer;

    if (!c->leading) {
        return search_link(c, node); // a snapshot may have changed the state, and none told me
    }
    if (c->peers.changed) {
        index_links(c);
    }
    peer = c->peers.of_slot[node->slot];
    return peer == NULL || is_link_of(peer, node) ? peer : search_link(c, node);
}

const struct state_node *peers_node(const struct coordinator *c, struct leader_peer *peer,
                                    uint64_t incarnation)
{
    const struct state_node *node = peer->role == ROLE_NODE ? named_like(c, peer) : NULL;

    return node != NULL && node->incarnation == incarnation && !node->barred ? node : NULL;
}

/* ---- who is live ---- */

static struct seen *find_seen(const struct coordinator *c, uint16_t slot)
{
    return c->peers.seen_at[slot] == 0 ? NULL : &c->peers.seen[c->peers.seen_at[slot] - 1];
}

void peers_forget(struct coordinator *c)
{
    c->peers.seen_count = 0;
    memset(c->peers.seen_at, 0, sizeof c->peers.seen_at);
    c->peers.changed = true;
}

const struct seen *peers_seen(const struct coordinator *c, const struct state_node *node)
{
    const struct seen *seen = find_seen(c, node->slot);

    return seen != NULL && seen->incarnation == node->incarnation ? seen : NULL;
}

static bool heard_lately(const struct coordinator *c, const struct state_node *node)
{
    const struct seen *seen = peers_seen(c, node);

    return seen != NULL && c->now_us - seen->heard_us <= (uint64_t)c->config.suspect_ms * 1000;
}

struct seen *peers_heard(struct coordinator *c, const struct state_node *node)
{
    struct seen *seen = find_seen(c, node->slot);

    if (!node->barred && !heard_lately(c, node) && !mutant(M_OLDPLAN)) {
        rebalance_touch(c); // the plan that was made without it gives away all that it has
    }
    if (seen == NULL) {
        c->peers.seen =
            mem_resize(c->peers.seen, (c->peers.seen_count + 1) * sizeof *c->peers.seen);
        seen = &c->peers.seen[c->peers.seen_count++];
        *seen = (struct seen){.slot = node->slot};
        c->peers.seen_at[node->slot] = (uint16_t)c->peers.seen_count;
    }
    if (seen->incarnation != node->incarnation) {
        *seen = (struct seen){.slot = node->slot, .incarnation = node->incarnation};
    }
    seen->heard_us = c->now_us;
    return seen;
}

uint64_t peers_silent_us(const struct coordinator *c, const struct state_node *node)
{
    const struct seen *seen = peers_seen(c, node);
    // I could have heard of it only since then.
    uint64_t since_us = c->lead_us > c->awake_us ? c->lead_us : c->awake_us;

    since_us = seen != NULL && seen->heard_us > since_us ? seen->heard_us : since_us;
    return c->now_us - since_us;
}

bool peers_live(struct coordinator *c, const struct state_node *node)
{
    return !node->barred && heard_lately(c, node) && peers_of_node(c, node) != NULL;
}

bool peers_gone(struct coordinator *c, const struct state_node *node)
{
    return node->barred || peers_silent_us(c, node) > (uint64_t)c->config.suspect_ms * 1000;
}

/* ---- sending ---- */

void peers_send(struct coordinator *c, uint64_t peer, Rh__Control *message)
{
    message->era = c->state->view.era;
    message->version = c->state->view.ring.version;
    coordinator_put_send(c, peer, message);
}

/* To those of all that take part in `t`, or to those that do not; `packed`: it is the last effect.
 */
static bool send_all(struct coordinator *c, Rh__Control *message, const struct state_txn *t,
                     bool parts, bool packed)
{
    for (size_t i = 0; i < c->peers.count; i++) {
        struct leader_peer *p = c->peers.item[i];
        const struct state_node *node = peers_node(c, p, p->incarnation);
        const bool part = node != NULL && t != NULL && state_txn_part(t, node->slot) != NULL;

        if ((p->role != ROLE_GATEWAY && node == NULL) || part != parts) {
            continue;
        }
        if (packed) {
            coordinator_put_again(c, p->id);
        } else {
            peers_send(c, p->id, message);
        }
        packed = true;
    }
    return packed;
}

void peers_broadcast(struct coordinator *c, Rh__Control *message, const struct state_txn *t)
{
    const bool packed = t != NULL && send_all(c, message, t, true, false);

    (void)send_all(c, message, t, false, packed);
}

void peers_tell_leader(struct coordinator *c, const struct leader_peer *only)
{
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Leader body = RH__LEADER__INIT;
    char *coordinators[STATE_VOTERS_MAX];

    body.leading = c->leading;
    body.term = c->term;
    body.id = (uint32_t)c->leader;
    for (size_t i = 0; i < c->config.voter_count; i++) {
        coordinators[i] = proto_text(c->config.voter[i].address);
    }
    body.coordinators = coordinators;
    body.n_coordinators = c->config.voter_count;
    out.body_case = RH__CONTROL__BODY_LEADER;
    out.leader = &body;
    for (size_t i = 0; i < c->peers.count; i++) {
        if (c->peers.item[i]->role != ROLE_COORDINATOR &&
            (only == NULL || only == c->peers.item[i])) {
            peers_send(c, c->peers.item[i]->id, &out);
        }
    }
}
