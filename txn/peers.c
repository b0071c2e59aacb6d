/* SPDX-License-Identifier: Apache-2.0 */
#include "txn/inside.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

struct peer *peers_find(struct coordinator *c, uint64_t id)
{
    for (size_t i = 0; i < c->peer_count; i++) {
        if (c->peer[i].id == id) {
            return &c->peer[i];
        }
    }
    return NULL;
}

void peers_up(struct coordinator *c, const struct coordinator_event *event)
{
    struct peer *peer;

    if (peers_find(c, event->peer) != NULL) {
        return;
    }
    c->peer = mem_resize(c->peer, (c->peer_count + 1) * sizeof *c->peer);
    peer = &c->peer[c->peer_count++];
    *peer = (struct peer){
        .id = event->peer,
        .role = (enum link_role)event->role,
        .incarnation = event->incarnation,
        .identity = event->identity,
        .heard_us = c->now_us,
    };
    (void)snprintf(
        peer->address, sizeof peer->address, "%s", event->address == NULL ? "" : event->address);
    (void)snprintf(peer->name, sizeof peer->name, "%s", event->name == NULL ? "" : event->name);
}

void peers_down(struct coordinator *c, uint64_t id)
{
    const struct peer *peer = peers_find(c, id);

    if (peer != NULL) {
        const size_t at = (size_t)(peer - c->peer);

        c->peer_count--;
        memmove(&c->peer[at], &c->peer[at + 1], (c->peer_count - at) * sizeof *c->peer);
    }
}

struct peer *peers_of_node(struct coordinator *c, const struct state_node *node)
{
    for (size_t i = c->peer_count; i-- > 0;) {
        struct peer *p = &c->peer[i];

        if (p->role == ROLE_NODE && p->incarnation == node->incarnation &&
            strcmp(p->name, node->name) == 0) {
            return p;
        }
    }
    return NULL;
}

const struct state_node *peers_node(const struct coordinator *c, const struct peer *peer,
                                    uint64_t incarnation)
{
    const struct state_node *node =
        peer->role == ROLE_NODE ? state_node_named(c->state, peer->name) : NULL;

    return node != NULL && node->incarnation == incarnation && !node->barred ? node : NULL;
}

/* ---- who is live ---- */

static struct seen *find_seen(const struct coordinator *c, uint16_t slot)
{
    for (size_t i = 0; i < c->seen_count; i++) {
        if (c->seen[i].slot == slot) {
            return &c->seen[i];
        }
    }
    return NULL;
}

const struct seen *peers_seen(const struct coordinator *c, const struct state_node *node)
{
    const struct seen *seen = find_seen(c, node->slot);

    return seen != NULL && seen->incarnation == node->incarnation ? seen : NULL;
}

struct seen *peers_heard(struct coordinator *c, const struct state_node *node)
{
    struct seen *seen = find_seen(c, node->slot);

    if (seen == NULL) {
        c->seen = mem_resize(c->seen, (c->seen_count + 1) * sizeof *c->seen);
        seen = &c->seen[c->seen_count++];
        *seen = (struct seen){.slot = node->slot};
    }
    if (seen->incarnation != node->incarnation) {
        *seen = (struct seen){.slot = node->slot, .incarnation = node->incarnation};
    }
    seen->heard_us = c->now_us;
    return seen;
}

static bool heard_lately(const struct coordinator *c, const struct state_node *node)
{
    const struct seen *seen = peers_seen(c, node);

    return seen != NULL && c->now_us - seen->heard_us <= (uint64_t)c->config.suspect_ms * 1000;
}

bool peers_live(struct coordinator *c, const struct state_node *node)
{
    return !node->barred && heard_lately(c, node) && peers_of_node(c, node) != NULL;
}

bool peers_gone(struct coordinator *c, const struct state_node *node)
{
    uint64_t since_us;

    if (node->barred) {
        return true;
    }
    // I could have heard of it only since then.
    since_us = c->lead_us > c->awake_us ? c->lead_us : c->awake_us;
    return !heard_lately(c, node) && c->now_us - since_us > (uint64_t)c->config.suspect_ms * 1000;
}

/* ---- sending ---- */

void peers_send(struct coordinator *c, uint64_t peer, Rh__Control *message)
{
    message->era = c->state->view.era;
    message->version = c->state->view.ring.version;
    coordinator_put_send(c, peer, message);
}

void peers_broadcast(struct coordinator *c, Rh__Control *message)
{
    for (size_t i = 0; i < c->peer_count; i++) {
        const struct peer *p = &c->peer[i];

        if (p->role == ROLE_GATEWAY || peers_node(c, p, p->incarnation) != NULL) {
            peers_send(c, p->id, message);
        }
    }
}

void peers_tell_leader(struct coordinator *c, const struct peer *only)
{
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Leader body = RH__LEADER__INIT;

    body.leading = c->leading;
    body.term = c->term;
    body.id = (uint32_t)c->leader;
    out.body_case = RH__CONTROL__BODY_LEADER;
    out.leader = &body;
    for (size_t i = 0; i < c->peer_count; i++) {
        if (c->peer[i].role != ROLE_COORDINATOR && (only == NULL || only == &c->peer[i])) {
            peers_send(c, c->peer[i].id, &out);
        }
    }
}
