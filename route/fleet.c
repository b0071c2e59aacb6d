/* SPDX-License-Identifier: Apache-2.0
 *
 * The fleet as the router sees it: nodes that come and go, and the
 * configuration that says who owns what.
 */
#include "route/router_inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/stamp.h"
#include "wire/control.h"

#include <string.h>

enum { UNANSWERED_LOOKS = 4096 };

/* ---- nodes ---- */

void fleet_set_up(struct router *r)
{
    view_init(&r->own, RING_GRID_MIN);
    r->view = &r->own;
    fetch_init(&r->fetch, r->config.refresh_ms);
}

/* Whatever is on its way to the peer is lost: it may have run. It is sent again, to the owner. */
static void lose_in_flight(struct router *r, struct peer *peer)
{
    struct list lost;

    list_init(&lost);
    list_splice_back(&lost, &peer->in_flight);
    peer->size = 0;
    route_lose(r, &lost);
}

/* The peer left after it had handed over everything: it waited until I routed by a ring without
 * it, so it passed on all that I ever sent, and the new owners answer. */
static void entrust_in_flight(struct peer *peer)
{
    peer->size = 0;
    for (struct list_link *l = list_pop_front(&peer->in_flight); l != NULL;
         l = list_pop_front(&peer->in_flight)) {
        CONTAINER_OF(l, struct pending, in_flight)->slot = RING_NODE_NONE;
    }
}

static bool has_left(const struct router *r, uint16_t slot)
{
    const struct view_member *member = view_member(r->view, slot);

    return member == NULL || (member->leaving && ring_owned_count(&r->view->ring, slot) == 0);
}

void fleet_send(struct router *r, struct router_effect *e, Rh__Control *control)
{
    control->era = r->view->era;
    control->source_incarnation = r->config.gateway;
    control->version = r->view->ring.version;
    control_put(&r->out->bytes, control);
    effects_end(r->out, e);
}

void fleet_tell_adopted(struct router *r, struct peer *peer)
{
    Rh__Adopted adopted = RH__ADOPTED__INIT;
    Rh__Control control = RH__CONTROL__INIT;
    struct router_effect *e = effects_add(r->out, ROUTER_TELL_NODE);

    peer->told_awaits = peer_is_awaited(peer);
    adopted.awaits = peer->told_awaits;
    adopted.version = r->view->ring.version;
    control.body_case = RH__CONTROL__BODY_ADOPTED;
    control.adopted = &adopted;
    e->slot = peer->slot;
    fleet_send(r, e, &control);
}

/* Whom a dead node may have died of: who was asked first ran, or was next. */
static void note_unanswered(struct router *r, const struct peer *peer)
{
    struct unanswered_node *n = NULL;
    size_t left = UNANSWERED_LOOKS;

    for (struct list_link *l = list_front(&peer->in_flight); l != NULL && left > 0;
         l = list_next(&peer->in_flight, l), left--) {
        const struct pending *p = CONTAINER_OF(l, struct pending, in_flight);

        n = n != NULL ? n : unanswered_begin(&r->unanswered, peer_asked(peer));
        if (p->asked == n->incarnation) {
            (void)unanswered_put(n, p->kind, pending_id(p), p->died);
        }
    }
    if (peer->stream != NULL && peer->stream->count > 0) {
        n = n != NULL ? n : unanswered_begin(&r->unanswered, peer_asked(peer));
        by_stream_note(r, peer, n);
    }
}

static void lose_link(struct router *r, struct peer *peer)
{
    if (!has_left(r, peer->slot)) {
        note_unanswered(r, peer);
    }
    peer->up = false;
    by_stream_down(r, peer);
    list_splice_back(&r->stalled, &peer->stalled);
    if (has_left(r, peer->slot)) {
        entrust_in_flight(peer);
    } else {
        lose_in_flight(r, peer);
    }
}

bool router_expects(const struct router *r, uint16_t slot, const char *name)
{
    const struct peer *peer = peer_find(&r->peers, slot);

    return peer != NULL && (strcmp(peer->name, name) == 0 || mutant(M_NAME));
}

void fleet_on_node_up(struct router *r, const struct router_event *event)
{
    struct peer *peer = peer_find(&r->peers, event->slot);

    if (!router_expects(r, event->slot, event->name)) {
        return; // it may have just been removed, or its address is another's now
    }
    if (peer->up) {
        lose_link(r, peer); // the end of the link before was not told
    }
    peer->up = true;
    peer->incarnation = event->incarnation;
    peer->speaks_streams = event->speaks_streams && r->config.streams;
    peer->knows_again = event->speaks_streams;
    unanswered_drop(&r->unanswered, peer_asked(peer));
    fleet_tell_adopted(r, peer);
    by_stream_up(r, peer);
    route_wake_stalled(r);
}

void fleet_on_node_down(struct router *r, const struct router_event *event)
{
    struct peer *peer = peer_find(&r->peers, event->slot);

    if (peer != NULL && peer->up) {
        lose_link(r, peer);
        route_disconnect_if_idle(r, peer);
    }
}

/* ---- configuration ---- */

void fleet_want_link(struct router *r, struct peer *peer)
{
    if (peer->wanted) {
        return;
    }
    struct router_effect *e = effects_add(r->out, ROUTER_CONNECT);

    peer->wanted = true;
    e->slot = peer->slot;
    buffer_put(&r->out->bytes, peer->address, strlen(peer->address) + 1);
    effects_end(r->out, e);
}

static void connect(struct router *r, const struct view_member *member)
{
    struct peer *peer = peer_new(&r->peers, member);

    if (!r->config.on_demand) {
        fleet_want_link(r, peer);
    }
}

static void update_peer(struct router *r, struct peer *peer, const struct view_member *member)
{
    if (peer->removed) {
        entrust_in_flight(peer); // its slot has a new node
    }
    if (!peer_is(peer, member)) {
        if (peer->up) {
            peer->up = false;
            by_stream_down(r, peer);
            lose_in_flight(r, peer);
        }
        route_disconnect(r, peer);
        connect(r, member);
        return;
    }
    peer->removed = false;
    if (peer->member_incarnation != member->incarnation) {
        by_stream_over(r, peer);
    }
    peer->member_incarnation = member->incarnation;
    if (peer->up && !peer_takes_requests(peer)) {
        lose_in_flight(r, peer); // they went to an incarnation that is over
    }
}

/* All kinds of one role. */
struct role_kinds {
    const struct view_member *first; /* of that role */
    struct ring_kinds kinds;
};

static struct role_kinds *find_role(struct role_kinds *roles, const char *role)
{
    while (roles->first != NULL && strcmp(roles->first->role, role) != 0) {
        roles++;
    }
    return roles;
}

/* What other nodes of its role host, and this one does not. Nearly always all host the same. And
 * the roles that no node has. */
static void find_lacks(struct router *r)
{
    const struct view *v = r->view;
    struct role_kinds *roles = mem_new(v->member_count + 1, sizeof *roles);

    for (size_t i = 0; i < v->member_count; i++) {
        const struct view_member *m = &v->member[i];
        struct role_kinds *role = find_role(roles, m->role);

        role->first = role->first == NULL ? m : role->first;
        for (size_t k = 0; k < m->kinds.count; k++) {
            (void)ring_kinds_add(&role->kinds,
                                 m->kinds.kind[k]); // those of the dead may be too many
        }
    }
    for (const struct role_kinds *role = roles; role->first != NULL; role++) {
        route_find_rows(r, &role->kinds);
    }
    for (size_t i = 0; i < v->member_count; i++) {
        const struct view_member *m = &v->member[i];
        const struct role_kinds *role = find_role(roles, m->role);
        struct peer *peer = peer_find(&r->peers, m->slot);

        peer->lacks.count = 0;
        for (size_t k = 0; k < role->kinds.count; k++) {
            if (!ring_kinds_have(&m->kinds, role->kinds.kind[k])) {
                (void)ring_kinds_add(&peer->lacks, role->kinds.kind[k]);
            }
        }
    }
    for (size_t i = 0; i <= v->ring.segment_count; i++) {
        r->bare[i] = find_role(roles, i == 0 ? "" : v->ring.segment[i - 1].role)->first == NULL;
    }
    mem_free(roles);
}

static void sync_peers(struct router *r)
{
    for (uint16_t slot = 1; slot <= r->peers.top; slot++) {
        struct peer *peer = r->peers.at[slot];

        if (peer != NULL && view_member(r->view, slot) == NULL) {
            peer->removed = true;
            if (!peer->up) {
                entrust_in_flight(peer);
            }
            route_disconnect_if_idle(r, peer);
        }
    }
    for (size_t i = 0; i < r->view->member_count; i++) {
        const struct view_member *member = &r->view->member[i];
        struct peer *peer = peer_find(&r->peers, member->slot);

        if (peer == NULL) {
            connect(r, member);
        } else {
            update_peer(r, peer, member);
        }
    }
    find_lacks(r);
}

/* Arcs that changed hands without a drain: their old owner is fenced, and will not answer (or not
 * so that it counts) what it still has. Its link may be up for long: it may just stand still. */
static void follow_take_over(struct router *r)
{
    const struct ring *ring = &r->view->ring;
    const uint64_t before = r->cold;

    if (r->era != r->view->era) {
        r->elder_cold = r->cold;
        r->era = r->view->era;
    }
    for (size_t i = 0; i < ring->vnode_count; i++) {
        r->cold = ring->vnode[i].cold > r->cold ? ring->vnode[i].cold : r->cold;
    }
    if (r->cold > before) {
        route_lose_taken_over(r, before);
    }
}

/* Does it wait for my word before it goes? Only who is to be empty does: to tell each of a thousand
 * nodes of each change would take a hundred gateways a hundred thousand messages for one. */
static bool may_be_leaving(const struct router *r, uint16_t slot)
{
    const struct view_member *member = view_member(r->view, slot);

    return member == NULL || member->leaving;
}

void fleet_tell_bare(struct router *r)
{
    struct list_link *next = NULL;

    r->tells_bare = true;
    for (size_t i = 0; i < DEADLINE_LISTS; i++) {
        const struct list *all = &r->deadlines.list[i];

        for (struct list_link *l = list_front(all); l != NULL; l = next) {
            struct pending *p = CONTAINER_OF(l, struct pending, deadline.in);

            next = list_next(all, l);
            if (p->state == PENDING_WAITING && route_is_bare(r, p)) {
                route_finish_bare(r, p);
            }
        }
    }
}

/* The view changed: everything that hangs on it follows. `moved`: vnodes changed hands, by a drain,
 * and nothing else did. */
static void adopt(struct router *r, bool moved)
{
    fetch_on_version(&r->fetch, r->view->ring.version);
    route_follow_key(r);
    if (!moved) {
        sync_peers(r);
    }
    by_stream_ring(r);
    // A restored fleet starts, too.
    if (r->view->ring.version > 0 && (r->bare_us == 0 || r->era != r->view->era)) {
        r->bare_us = r->now_us + (uint64_t)ROUTER_BARE_MS * 1000;
        r->tells_bare = false;
    }
    // What was sent before went over the same links, so a node that reads this has read all that
    // was routed by an older ring.
    for (uint16_t slot = 1; slot <= r->peers.top; slot++) {
        if (r->peers.at[slot] != NULL && r->peers.at[slot]->up && may_be_leaving(r, slot)) {
            fleet_tell_adopted(r, r->peers.at[slot]);
        }
        if (r->peers.at[slot] != NULL) {
            list_splice_back(&r->stalled, &r->peers.at[slot]->stalled);
        }
    }
    route_wake_stalled(r);
    if (!moved) {
        unanswered_follow(&r->unanswered, r->view);
        follow_take_over(r);
    }
}

static bool is_moves_only(const Rh__Delta *delta)
{
    return delta->n_ops > 0 && !delta->cold && delta->created_vnodes == 0 && delta->renewed == 0 &&
           delta->n_changed == 0 && delta->n_removed == 0 && delta->n_segments == 0;
}

void fleet_on_view(struct router *r, const struct router_event *event)
{
    r->view = event->view;
    r->configured = true;
    adopt(r, false);
}

/* Arcs are taken over only of an incarnation that never serves again. */
static void end_streams(struct router *r, const Rh__Delta *delta)
{
    for (size_t i = 0; delta->cold && i < delta->n_ops; i++) {
        struct peer *peer = peer_find(&r->peers, (uint16_t)delta->ops[i]->from);

        if (peer != NULL) {
            by_stream_over(r, peer);
        }
    }
}

/* Apply one change; true if the view is another one now. */
static bool apply(struct router *r, const Rh__Delta *delta)
{
    if (!r->configured) {
        fetch_want(&r->fetch, delta->version);
        return false; // a delta has no key: with it alone every id would hash to the wrong place
    }
    switch (view_apply(&r->own, delta)) {
    case VIEW_APPLIED:
        end_streams(r, delta);
        return true;
    case VIEW_OLD:
        return false;
    case VIEW_GAP:
        fetch_want(&r->fetch, delta->version);
        return false;
    case VIEW_DIFFERS:
        log_warn("gateway", "ring_differs", "version=%s", STAMP(r->view->ring.version));
        fetch_whole(&r->fetch);
        return false;
    }
    UNREACHABLE();
}

/* A whole configuration does not tell what became of those that own nothing any more. Who was not
 * to give it away, and of whom something was taken over, is dead. (If that happened to a vnode that
 * it had given away already, and it gave away the rest as well: it is taken for dead, too.) */
static void end_streams_of_the_robbed(struct router *r, const struct ring *before)
{
    const struct ring *ring = &r->view->ring;

    for (size_t i = 0; i < ring->vnode_count; i++) {
        const struct ring_vnode *v = &ring->vnode[i];
        const struct ring_vnode *was = v->cold > before->version ? ring_find(before, v->id) : NULL;
        struct peer *peer = was == NULL ? NULL : peer_find(&r->peers, was->owner);
        const struct view_member *m = peer == NULL ? NULL : view_member(r->view, was->owner);

        if (m != NULL && peer->stream != NULL && !m->leaving && m->weight > 0 &&
            ring_owned_count(ring, was->owner) == 0) {
            by_stream_over(r, peer);
        }
    }
}

static bool load(struct router *r, const Rh__Config *config)
{
    struct ring before;
    bool loaded = false;

    ring_copy(&before, &r->view->ring);
    // At the same version a whole configuration comes only to one whose digest was another.
    const bool force = config->version >= r->view->ring.version;

    switch (view_load(&r->own, config, force)) {
    case VIEW_APPLIED:
        r->fetch.whole = false;
        r->configured = true;
        route_follow_key(r);
        end_streams_of_the_robbed(r, &before);
        loaded = true;
        break;
    case VIEW_OLD:
        break;
    case VIEW_GAP:
    case VIEW_DIFFERS:
        log_warn("gateway", "config_unreadable", "version=%s", STAMP(config->version));
        break;
    }
    ring_fini(&before);
    return loaded;
}

static void on_config(struct router *r, const Rh__ConfigAnswer *answer)
{
    bool changed = false;

    fetch_on_answer(&r->fetch, r->now_us, answer->again_us);
    if (answer->config != NULL) {
        changed = load(r, answer->config);
    }
    for (size_t i = 0; i < answer->n_deltas; i++) {
        if (apply(r, answer->deltas[i])) {
            changed = true;
            sync_peers(r); // step by step: one may remove a node, the next give its slot away
        }
    }
    if (changed) {
        adopt(r, false);
    }
}

void fleet_on_control(struct router *r, const struct router_event *event)
{
    const Rh__Control *m = event->message;

    if (m->body_case == RH__CONTROL__BODY_LEADER) {
        fetch_on_leader(&r->fetch, event->coordinator, m->leader->leading, m->leader->term);
    } else if (m->body_case == RH__CONTROL__BODY_NOT_LEADER) {
        fetch_on_not_leader(&r->fetch, event->coordinator, m->not_leader->term);
    } else if (m->body_case == RH__CONTROL__BODY_CONFIG) {
        on_config(r, m->config);
    } else if (m->body_case == RH__CONTROL__BODY_COMMIT && m->commit->delta != NULL) {
        if (apply(r, m->commit->delta)) {
            adopt(r, is_moves_only(m->commit->delta));
        }
    } else if (m->body_case == RH__CONTROL__BODY_INSPECT) {
        inspect_on_question(r, event->coordinator, m->inspect);
    } else if (m->body_case == RH__CONTROL__BODY_REPAIR) {
        inspect_on_repair(r, m->repair);
    } else if (m->body_case == RH__CONTROL__BODY_OPERATOR_REQUEST) {
        operator_request_on_question(r, event->coordinator, m->operator_request);
    }
    // All else is not for gateways.
}

void fleet_ask_config(struct router *r)
{
    const int coordinator = fetch_next(&r->fetch, r->now_us, r->view->ring.version);

    if (coordinator < 0) {
        return;
    }
    Rh__GetConfig get = RH__GET_CONFIG__INIT;
    Rh__Control control = RH__CONTROL__INIT;
    struct router_effect *e = effects_add(r->out, ROUTER_SEND_COORDINATOR);

    get.have_version = r->fetch.whole ? 0 : r->view->ring.version;
    get.digest0 = r->view->ring.digest[0];
    get.digest1 = r->view->ring.digest[1];
    get.requests = r->stats.requests;
    get.in_flight = r->stats.in_flight;
    get.unknown = r->stats.unknown;
    get.stale_answers = r->stats.stale_answers;
    get.threads = r->config.threads > 1 ? r->config.threads : 0;
    get.unanswered = unanswered_wire(&r->unanswered);
    get.n_unanswered = r->unanswered.count;
    control.body_case = RH__CONTROL__BODY_GET_CONFIG;
    control.get_config = &get;
    e->coordinator = coordinator;
    fleet_send(r, e, &control);
    unanswered_wire_free(get.unanswered, get.n_unanswered);
}
