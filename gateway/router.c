/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/router.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "gateway/effects.h"
#include "gateway/fetch.h"
#include "gateway/lane.h"
#include "gateway/peer.h"
#include "gateway/pending.h"
#include "gateway/rest.h"
#include "gateway/session.h"
#include "wire/control.h"

#include <inttypes.h>
#include <string.h>

enum {
    MOVED_REST_MIN_MS = 2, /* a node says MOVED, the ring says that it is the owner: give it time */
    MOVED_REST_MAX_MS = 64,
    BUSY_REST_MIN_MS = 1,
};

struct router {
    struct router_config config;
    struct view view;
    struct table pendings; /* struct pending, by session and seq */
    struct list age;       /* struct pending, in_age: all have one deadline, so this is its order */
    struct sessions sessions;
    struct lanes lanes;
    struct list stalled; /* struct lane: until the ring or a link changes */
    struct rest rest;
    struct peers peers;
    struct fetch fetch;
    struct router_figures figures;
    size_t size; /* bytes of unfinished requests */
    bool started;
    bool configured; /* a whole configuration was loaded, and with it the key of the hash */
    uint64_t now_us; /* of this step */
    struct router_effects *out; /* of this step */
};

struct router_config router_config_default(void)
{
    return (struct router_config){
        .deadline_ms = 10000,
        .window = 32,
        .in_flight_max = 100000,
        .refresh_ms = 500,
        .waiting_size_max = (size_t)256 * 1024 * 1024,
    };
}

/* ---- replies and the end of a request ---- */

static uint64_t pending_hash(uint64_t session, uint64_t seq)
{
    return table_mix(session + seq * 0x9e3779b97f4a7c15u);
}

static struct pending *find_pending(const struct router *r, uint64_t session, uint64_t seq)
{
    const uint64_t hash = pending_hash(session, seq);

    for (struct table_link *l = table_first(&r->pendings, hash); l != NULL; l = table_same(l)) {
        struct pending *p = CONTAINER_OF(l, struct pending, link);

        if (p->session->id == session && p->seq == seq) {
            return p;
        }
    }
    return NULL;
}

static void count_reply(struct router *r, enum reply_code code)
{
    r->figures.unknown += code == REPLY_UNKNOWN;
    r->figures.timeout += code == REPLY_TIMEOUT;
    r->figures.rejected += code == REPLY_REJECTED;
}

struct reply {
    uint64_t session;
    uint64_t ticket;
    enum reply_code code;
    uint8_t flags;
};

static void put_reply(struct router *r, const struct reply *reply, struct bytes body)
{
    struct router_effect *e = effects_add(r->out, ROUTER_REPLY);

    e->session = reply->session;
    e->ticket = reply->ticket;
    e->code = reply->code;
    e->flags = reply->flags;
    buffer_put(&r->out->bytes, body.data, body.size);
    effects_end(r->out, e);
    count_reply(r, reply->code);
}

static void disconnect(struct router *r, struct peer *peer)
{
    effects_add(r->out, ROUTER_DISCONNECT)->slot = peer->slot;
    peer_free(&r->peers, peer);
}

/* A removed node's link stays while an answer may come over it. */
static void disconnect_if_idle(struct router *r, struct peer *peer)
{
    if (peer->removed && (!peer->up || list_empty(&peer->in_flight))) {
        ASSERT(list_empty(&peer->in_flight));
        disconnect(r, peer);
    }
}

static void leave_peer(struct router *r, struct pending *p)
{
    struct peer *peer = p->slot == RING_NODE_NONE ? NULL : peer_find(&r->peers, p->slot);

    p->slot = RING_NODE_NONE;
    if (peer != NULL) {
        list_remove(&p->in_flight);
        disconnect_if_idle(r, peer);
    }
}

/* SENT, and nothing says that it will be answered: send it again when its turn comes. */
static void to_waiting(struct router *r, struct pending *p)
{
    ASSERT(p->state == PENDING_SENT);
    leave_peer(r, p);
    p->state = PENDING_WAITING;
    p->lane->sent--;
    p->lane->waiting++;
    r->figures.waiting++;
}

static void push_lane(struct router *r, struct lane *lane);

/* Take `p` out of everything and free it. */
static void forget(struct router *r, struct pending *p)
{
    if (p->state == PENDING_WAITING) {
        p->lane->waiting--;
        r->figures.waiting--;
    } else {
        p->lane->sent--;
        leave_peer(r, p);
    }
    table_remove(&r->pendings, &p->link);
    list_remove(&p->in_age);
    r->size -= pending_size(p);
    r->figures.in_flight--;
    struct lane *lane = lane_remove(&r->lanes, p);

    if (lane != NULL) {
        push_lane(r, lane);
    }
    session_done(&r->sessions, p->session);
    mem_free(p);
}

/* The request is over. What follows it in its lane names it as predecessor; if its owner can't
 * know that it ran, that one must be told that there is nothing to wait for (hole 41). */
static void finish(struct router *r, struct pending *p, enum reply_code code, struct bytes body)
{
    struct pending *next = lane_next(p->lane, p);
    const bool ran = code == REPLY_OK || code == REPLY_APP_ERROR;

    if (!ran && next != NULL && next->state == PENDING_SENT && next->prev == p->seq &&
        next->deadline_us > r->now_us) {
        to_waiting(r, next);
    }
    if (!p->session->closed) {
        const struct reply reply = {p->session->id, p->ticket, code, p->flags};

        put_reply(r, &reply, body);
    } else {
        count_reply(r, code);
    }
    forget(r, p);
}

static const struct bytes nothing = {NULL, 0};

/* ---- sending ---- */

static void send(struct router *r, struct pending *p, struct peer *peer)
{
    struct lane *lane = p->lane;

    if (p->first == 0) {
        p->first = r->view.ring.version;
    }
    r->figures.resent += p->attempts > 0;
    p->prev = lane_prev_seq(lane, p);
    const uint64_t left_us = p->deadline_us > r->now_us ? p->deadline_us - r->now_us : 0;
    const struct request_record record = {
        .gateway = r->config.gateway,
        .session = p->session->id,
        .seq = p->seq,
        .prev = p->prev,
        .base = lane_front(lane)->seq,
        .first = p->first,
        .version = r->view.ring.version,
        .ttl_ms = (uint32_t)((left_us + 999) / 1000),
        .kind = p->kind,
        .copy = pending_attempt(p),
        .flags = p->flags,
        .id = pending_id(p),
        .body = pending_body(p),
    };
    struct router_effect *e = effects_add(r->out, ROUTER_SEND_NODE);

    e->slot = peer->slot;
    request_put(&r->out->bytes, &record);
    effects_end(r->out, e);
    p->slot = peer->slot;
    p->state = PENDING_SENT;
    list_push_back(&peer->in_flight, &p->in_flight);
    lane->sent++;
    lane->waiting--;
    r->figures.waiting--;
}

/* The node that owns the lane's entity, if requests can go there now. */
static struct peer *find_owner(const struct router *r, const struct lane *lane)
{
    if (r->view.ring.version == 0) {
        return NULL;
    }
    const ring_hit hit = view_lookup(&r->view, lane->kind, pending_id(lane_front(lane)));
    struct peer *peer = peer_find(&r->peers, ring_hit_node(hit));

    return peer != NULL && peer_takes_requests(peer) ? peer : NULL;
}

/* Send what waits in the lane, lowest first, as far as the window goes. Lowest first: a later one
 * that took the window's last place would wait at the owner for the one left behind. */
static void push_lane(struct router *r, struct lane *lane)
{
    if (lane->waiting == 0 || lane->sent >= r->config.window || lane_is_blocked(lane)) {
        return;
    }
    struct peer *owner = find_owner(r, lane);

    if (owner == NULL) {
        list_push_back(&r->stalled, &lane->stalled);
        return;
    }
    for (struct pending *p = lane_front(lane); p != NULL && lane->waiting > 0;
         p = lane_next(lane, p)) {
        if (p->state != PENDING_WAITING) {
            continue;
        }
        if (lane->sent >= r->config.window) {
            break;
        }
        send(r, p, owner);
    }
}

/* ---- requests and sessions ---- */

static void on_request(struct router *r, const struct router_event *event)
{
    ASSERT(event->id.size >= 1 && event->id.size <= RECORD_ID_MAX);
    ASSERT(event->body.size <= RECORD_BODY_MAX);
    r->figures.requests++;
    if (router_full(r)) {
        const struct reply reply = {event->session, event->ticket, REPLY_REJECTED, event->flags};

        put_reply(r, &reply, nothing);
        return;
    }
    struct session *session = session_get(&r->sessions, event->session);
    struct pending *p = pending_new(event->kind, event->id, event->body);

    session->unfinished++;
    p->session = session;
    p->seq = ++session->seq;
    p->ticket = event->ticket;
    p->flags = event->flags;
    p->deadline_us = r->now_us + (uint64_t)r->config.deadline_ms * 1000;
    table_put(&r->pendings, &p->link, pending_hash(session->id, p->seq));
    list_push_back(&r->age, &p->in_age);
    r->size += pending_size(p);
    r->figures.in_flight++;
    r->figures.waiting++;
    struct lane *lane = lane_add(&r->lanes, session->id, p);

    lane->waiting++;
    push_lane(r, lane);
}

/* Requests that were taken go on, as those of a Redis client that hung up do: later ones of their
 * lane may already have been sent and wait for them at the owner. Only the replies are dropped. */
static void on_session_closed(struct router *r, const struct router_event *event)
{
    struct session *session = session_find(&r->sessions, event->session);

    if (session != NULL) {
        session_close(&r->sessions, session);
    }
}

/* ---- answers ---- */

/* Not run: wait, then send it again. `ms` 0 = at once. */
static void again(struct router *r, struct pending *p, uint64_t ms)
{
    struct lane *lane = p->lane;

    if (p->state == PENDING_SENT) {
        to_waiting(r, p);
    }
    if (p->refusals < UINT8_MAX) {
        p->refusals++;
    }
    if (ms > 0 && !list_linked(&lane->resting)) {
        rest_put(&r->rest, lane, r->now_us, ms);
    }
    push_lane(r, lane);
}

/* As again(), but a newer ring ends the wait. */
static void again_with_news(struct router *r, struct pending *p, uint64_t ms)
{
    struct lane *lane = p->lane;

    if (!list_linked(&lane->stalled)) {
        list_push_back(&r->stalled, &lane->stalled);
    }
    again(r, p, ms);
}

static uint64_t backoff_ms(const struct pending *p)
{
    const unsigned doublings = p->refusals < 5 ? p->refusals : 5;
    const uint64_t ms = (uint64_t)MOVED_REST_MIN_MS << doublings;

    return ms < MOVED_REST_MAX_MS ? ms : MOVED_REST_MAX_MS;
}

static void on_moved(struct router *r, struct pending *p, const struct router_event *event)
{
    r->figures.moved++;
    if (event->answer->aux > r->view.ring.version) {
        fetch_want(&r->fetch, event->answer->aux);
        again_with_news(r, p, MOVED_REST_MAX_MS);
        return;
    }
    const struct peer *owner = find_owner(r, p->lane);
    const bool news = owner != NULL && owner->slot != event->slot;

    // The view names another owner already: it was learnt while the answer was on its way.
    if (news && p->refusals == 0) {
        again(r, p, 0);
    } else {
        again_with_news(r, p, backoff_ms(p));
    }
}

static void on_busy(struct router *r, struct pending *p, uint64_t ms)
{
    again(r, p, ms < BUSY_REST_MIN_MS ? BUSY_REST_MIN_MS : ms);
}

/* The owner has lost its memory since `first`: an earlier copy may have run before that. */
static void on_cold(struct router *r, struct pending *p, uint64_t cold)
{
    if (!pending_never_ran(p) && (p->flags & REQUEST_IDEMPOTENT) == 0) {
        finish(r, p, REPLY_UNKNOWN, nothing);
        return;
    }
    p->first = 0;
    if (cold > r->view.ring.version) {
        fetch_want(&r->fetch, cold);
        again_with_news(r, p, MOVED_REST_MAX_MS);
    } else {
        // A first stamp that is still below the mark comes back cold: don't spin.
        again(r, p, p->refusals == 0 ? 0 : backoff_ms(p));
    }
}

static void on_expired(struct router *r, struct pending *p)
{
    if (pending_never_ran(p)) {
        finish(r, p, REPLY_REJECTED, nothing);
    }
}

/* True if the answer says that this attempt did not run. */
static bool is_refusal(uint8_t code)
{
    return code != ANSWER_OK && code != ANSWER_APP_ERROR;
}

static void on_answer(struct router *r, const struct router_event *event)
{
    const struct answer_record *a = event->answer;
    struct pending *p =
        a->gateway != r->config.gateway ? NULL : find_pending(r, a->session, a->seq);

    if (p == NULL || !pending_is_open(p, a->copy)) {
        return; // answered before, or given up
    }
    // Place for hole 63: an OK whose token is below the `cold` of the entity's vnode comes from an
    // owner that was fenced meanwhile. With leases in force it is UNKNOWN for a volatile kind, and
    // sent again for a durable one. A MERGE takes the greater cold: compare per arc, not per id.
    const bool last = a->copy == pending_last(p);

    if (is_refusal(a->code)) {
        const bool closed = pending_close(p, a->copy);

        ASSERT(closed);
        if (!last || p->state != PENDING_SENT) {
            return; // another copy is on its way or about to be
        }
    }
    switch ((enum answer_code)a->code) {
    case ANSWER_OK:
        finish(r, p, REPLY_OK, a->body);
        break;
    case ANSWER_APP_ERROR:
        finish(r, p, REPLY_APP_ERROR, a->body);
        break;
    case ANSWER_MOVED:
        on_moved(r, p, event);
        break;
    case ANSWER_BUSY:
        on_busy(r, p, a->aux);
        break;
    case ANSWER_COLD:
        on_cold(r, p, a->aux);
        break;
    case ANSWER_EXPIRED:
        on_expired(r, p);
        break;
    case ANSWER_NO_KIND:
        finish(r, p, pending_never_ran(p) ? REPLY_NO_KIND : REPLY_UNKNOWN, nothing);
        break;
    }
}

/* ---- nodes ---- */

static void wake_stalled(struct router *r)
{
    struct list woken;

    list_init(&woken);
    list_splice_back(&woken, &r->stalled);
    for (struct list_link *l = list_front(&woken); l != NULL; l = list_front(&woken)) {
        struct lane *lane = CONTAINER_OF(l, struct lane, stalled);

        lane_unblock(lane);
        push_lane(r, lane);
    }
}

/* Whatever is on its way to the peer is lost: it may have run. */
static void lose_in_flight(struct router *r, struct peer *peer)
{
    struct list lost;

    list_init(&lost);
    // All are marked before the first is answered: one that loses its predecessor is sent again
    // only if it is not lost itself.
    for (struct list_link *l = list_pop_front(&peer->in_flight); l != NULL;
         l = list_pop_front(&peer->in_flight)) {
        struct pending *p = CONTAINER_OF(l, struct pending, in_flight);

        p->state = PENDING_LOST;
        p->slot = RING_NODE_NONE;
        list_push_back(&lost, l);
    }
    for (struct list_link *l = list_pop_front(&lost); l != NULL; l = list_pop_front(&lost)) {
        finish(r, CONTAINER_OF(l, struct pending, in_flight), REPLY_UNKNOWN, nothing);
    }
}

/* The peer left after it had handed over everything: it waited until I routed by a ring without
 * it, so it passed on all that I ever sent, and the new owners answer. */
static void entrust_in_flight(struct peer *peer)
{
    for (struct list_link *l = list_pop_front(&peer->in_flight); l != NULL;
         l = list_pop_front(&peer->in_flight)) {
        CONTAINER_OF(l, struct pending, in_flight)->slot = RING_NODE_NONE;
    }
}

static bool has_left(const struct router *r, uint16_t slot)
{
    const struct view_member *member = view_member(&r->view, slot);

    return member == NULL || (member->leaving && ring_owned_count(&r->view.ring, slot) == 0);
}

static void put_adopted(struct router *r, uint16_t slot)
{
    Rh__Adopted adopted = RH__ADOPTED__INIT;
    Rh__Control control = RH__CONTROL__INIT;
    struct router_effect *e = effects_add(r->out, ROUTER_TELL_NODE);

    adopted.version = r->view.ring.version;
    control.era = r->view.era;
    control.source_incarnation = r->config.gateway;
    control.version = r->view.ring.version;
    control.body_case = RH__CONTROL__BODY_ADOPTED;
    control.adopted = &adopted;
    e->slot = slot;
    control_put(&r->out->bytes, &control);
    effects_end(r->out, e);
}

static void lose_link(struct router *r, struct peer *peer)
{
    peer->up = false;
    if (has_left(r, peer->slot)) {
        entrust_in_flight(peer);
    } else {
        lose_in_flight(r, peer);
    }
}

static void on_node_up(struct router *r, const struct router_event *event)
{
    struct peer *peer = peer_find(&r->peers, event->slot);

    if (peer == NULL) {
        return; // it may have just been removed
    }
    if (peer->up) {
        lose_link(r, peer); // the end of the link before was not told
    }
    peer->up = true;
    peer->incarnation = event->incarnation;
    put_adopted(r, peer->slot);
    wake_stalled(r);
}

static void on_node_down(struct router *r, const struct router_event *event)
{
    struct peer *peer = peer_find(&r->peers, event->slot);

    if (peer != NULL && peer->up) {
        lose_link(r, peer);
        disconnect_if_idle(r, peer);
    }
}

/* ---- configuration ---- */

static void connect(struct router *r, const struct view_member *member)
{
    struct peer *peer = peer_new(&r->peers, member);
    struct router_effect *e = effects_add(r->out, ROUTER_CONNECT);

    e->slot = peer->slot;
    memcpy(e->address, peer->address, sizeof e->address);
}

static void update_peer(struct router *r, struct peer *peer, const struct view_member *member)
{
    if (!peer_is(peer, member)) {
        if (peer->up) {
            peer->up = false;
            lose_in_flight(r, peer);
        }
        disconnect(r, peer);
        connect(r, member);
        return;
    }
    peer->removed = false;
    peer->member_incarnation = member->incarnation;
    if (peer->up && !peer_takes_requests(peer)) {
        lose_in_flight(r, peer); // they went to an incarnation that is over
    }
}

static void sync_peers(struct router *r)
{
    for (uint16_t slot = 1; slot <= r->peers.top; slot++) {
        struct peer *peer = r->peers.at[slot];

        if (peer != NULL && view_member(&r->view, slot) == NULL) {
            peer->removed = true;
            if (!peer->up) {
                entrust_in_flight(peer);
            }
            disconnect_if_idle(r, peer);
        }
    }
    for (size_t i = 0; i < r->view.member_count; i++) {
        const struct view_member *member = &r->view.member[i];
        struct peer *peer = peer_find(&r->peers, member->slot);

        if (peer == NULL) {
            connect(r, member);
        } else {
            update_peer(r, peer, member);
        }
    }
}

/* The view changed: everything that hangs on it follows. */
static void adopt(struct router *r)
{
    fetch_on_version(&r->fetch, r->view.ring.version);
    sync_peers(r);
    // What was sent before went over the same links, so a node that reads this has read all that
    // was routed by an older ring.
    for (uint16_t slot = 1; slot <= r->peers.top; slot++) {
        if (r->peers.at[slot] != NULL && r->peers.at[slot]->up) {
            put_adopted(r, slot);
        }
    }
    wake_stalled(r);
}

/* Apply one change; true if the view is another one now. */
static bool apply(struct router *r, const Rh__Delta *delta)
{
    if (!r->configured) {
        fetch_want(&r->fetch, delta->version);
        return false; // a delta has no key: with it alone every id would hash to the wrong place
    }
    switch (view_apply(&r->view, delta)) {
    case VIEW_APPLIED:
        return true;
    case VIEW_OLD:
        return false;
    case VIEW_GAP:
        fetch_want(&r->fetch, delta->version);
        return false;
    case VIEW_DIFFERS:
        log_warn("gateway", "ring_differs", "version=%" PRIu64, r->view.ring.version);
        fetch_whole(&r->fetch);
        return false;
    }
    UNREACHABLE();
}

static bool load(struct router *r, const Rh__Config *config)
{
    // At the same version a whole configuration comes only to one whose digest was another.
    const bool force = config->version >= r->view.ring.version;

    switch (view_load(&r->view, config, force)) {
    case VIEW_APPLIED:
        r->fetch.whole = false;
        r->configured = true;
        return true;
    case VIEW_OLD:
        return false;
    case VIEW_GAP:
    case VIEW_DIFFERS:
        log_warn("gateway", "config_unreadable", "version=%" PRIu64, config->version);
        return false;
    }
    UNREACHABLE();
}

static void on_config(struct router *r, const Rh__ConfigAnswer *answer)
{
    bool changed = false;

    fetch_on_answer(&r->fetch);
    if (answer->config != NULL) {
        changed = load(r, answer->config);
    }
    for (size_t i = 0; i < answer->n_deltas; i++) {
        changed = apply(r, answer->deltas[i]) || changed;
    }
    if (changed) {
        adopt(r);
    }
}

static void on_control(struct router *r, const struct router_event *event)
{
    const Rh__Control *m = event->message;

    if (m->body_case == RH__CONTROL__BODY_LEADER) {
        fetch_on_leader(&r->fetch, event->coordinator, m->leader->leading, m->leader->term);
    } else if (m->body_case == RH__CONTROL__BODY_NOT_LEADER) {
        fetch_on_not_leader(&r->fetch, event->coordinator);
    } else if (m->body_case == RH__CONTROL__BODY_CONFIG) {
        on_config(r, m->config);
    } else if (m->body_case == RH__CONTROL__BODY_COMMIT && m->commit->delta != NULL) {
        if (apply(r, m->commit->delta)) {
            adopt(r);
        }
    }
    // All else is not for gateways.
}

static void ask_config(struct router *r)
{
    const int coordinator = fetch_next(&r->fetch, r->now_us, r->view.ring.version);

    if (coordinator < 0) {
        return;
    }
    Rh__GetConfig get = RH__GET_CONFIG__INIT;
    Rh__Control control = RH__CONTROL__INIT;
    struct router_effect *e = effects_add(r->out, ROUTER_SEND_COORDINATOR);

    get.have_version = r->fetch.whole ? 0 : r->view.ring.version;
    get.digest0 = r->view.ring.digest[0];
    get.digest1 = r->view.ring.digest[1];
    get.requests = r->figures.requests;
    get.in_flight = r->figures.in_flight;
    control.era = r->view.era;
    control.source_incarnation = r->config.gateway;
    control.version = r->view.ring.version;
    control.body_case = RH__CONTROL__BODY_GET_CONFIG;
    control.get_config = &get;
    e->coordinator = coordinator;
    control_put(&r->out->bytes, &control);
    effects_end(r->out, e);
}

/* ---- time ---- */

static void wake_rested(struct router *r)
{
    struct list due;

    list_init(&due);
    rest_advance(&r->rest, r->now_us, &due);
    for (struct list_link *l = list_front(&due); l != NULL; l = list_front(&due)) {
        struct lane *lane = CONTAINER_OF(l, struct lane, resting);

        lane_unblock(lane);
        push_lane(r, lane);
    }
}

static void expire(struct router *r)
{
    for (struct list_link *l = list_front(&r->age); l != NULL; l = list_front(&r->age)) {
        struct pending *p = CONTAINER_OF(l, struct pending, in_age);

        if (p->deadline_us > r->now_us) {
            return;
        }
        finish(r, p, pending_never_ran(p) ? REPLY_REJECTED : REPLY_TIMEOUT, nothing);
    }
}

/* ---- the machine ---- */

struct router *router_new(const struct router_config *config)
{
    ASSERT(config->window > 0 && config->in_flight_max > 0);
    struct router *r = mem_new(1, sizeof *r);

    r->config = *config;
    view_init(&r->view, RING_GRID_MIN);
    list_init(&r->age);
    list_init(&r->stalled);
    sessions_init(&r->sessions, config->gateway);
    lanes_init(&r->lanes, table_mix(config->gateway));
    fetch_init(&r->fetch, config->refresh_ms);
    return r;
}

/* Free a request and nothing but it: everything goes. */
static void drop(struct router *r, struct pending *p)
{
    if (p->slot != RING_NODE_NONE) {
        list_remove(&p->in_flight);
    }
    p->lane->waiting -= p->state == PENDING_WAITING;
    p->lane->sent -= p->state == PENDING_SENT;
    lane_remove(&r->lanes, p);
    mem_free(p);
}

void router_free(struct router *r)
{
    if (r == NULL) {
        return;
    }
    for (struct list_link *l = list_pop_front(&r->age); l != NULL; l = list_pop_front(&r->age)) {
        drop(r, CONTAINER_OF(l, struct pending, in_age));
    }
    peers_fini(&r->peers);
    lanes_fini(&r->lanes);
    sessions_fini(&r->sessions);
    table_fini(&r->pendings);
    view_fini(&r->view);
    mem_free(r);
}

static void dispatch(struct router *r, const struct router_event *event)
{
    switch (event->type) {
    case ROUTER_TICK:
        break; // time passes in every step
    case ROUTER_REQUEST:
        on_request(r, event);
        break;
    case ROUTER_SESSION_CLOSED:
        on_session_closed(r, event);
        break;
    case ROUTER_ANSWER:
        on_answer(r, event);
        break;
    case ROUTER_NODE_UP:
        on_node_up(r, event);
        break;
    case ROUTER_NODE_DOWN:
        on_node_down(r, event);
        break;
    case ROUTER_COORDINATOR_UP:
        fetch_on_up(&r->fetch, event->coordinator);
        break;
    case ROUTER_COORDINATOR_DOWN:
        fetch_on_down(&r->fetch, event->coordinator);
        break;
    case ROUTER_CONTROL:
        on_control(r, event);
        break;
    }
}

static void check_counts(const struct router *r)
{
    ASSERT(r->figures.in_flight == r->pendings.count);
    ASSERT(r->figures.waiting <= r->figures.in_flight);
    ASSERT(r->lanes.table.count <= r->pendings.count);
    ASSERT(IMPLIES(r->pendings.count == 0, r->size == 0));
}

void router_step(struct router *r, const struct router_event *event, struct router_effects *out)
{
    if (!r->started) {
        rest_init(&r->rest, event->now_us);
        r->started = true;
    }
    ASSERT(event->now_us >= r->now_us);
    r->now_us = event->now_us;
    r->out = out;
    expire(r);
    wake_rested(r);
    dispatch(r, event);
    ask_config(r);
    check_counts(r);
    r->out = NULL;
}

static void check_lane(const struct lane *lane, const struct router *r)
{
    uint32_t sent = 0;
    uint32_t waiting = 0;
    uint64_t seq = 0;

    for (const struct pending *p = lane_front(lane); p != NULL; p = lane_next(lane, p)) {
        ASSERT(p->lane == lane && p->seq > seq);
        ASSERT(IMPLIES(p->state == PENDING_WAITING, p->slot == RING_NODE_NONE));
        ASSERT(IMPLIES(p->slot != RING_NODE_NONE, r->peers.at[p->slot] != NULL));
        seq = p->seq;
        sent += p->state == PENDING_SENT;
        waiting += p->state == PENDING_WAITING;
    }
    ASSERT(sent + waiting > 0);
    ASSERT(lane->sent == sent && lane->waiting == waiting);
    ASSERT(sent <= r->config.window);
    // Whoever waits is woken by something.
    ASSERT(IMPLIES(waiting > 0, lane_is_blocked(lane) || sent == r->config.window));
}

void router_check(const struct router *r)
{
    struct table_walk at = {0};
    size_t count = 0;
    uint64_t before_us = 0;

    check_counts(r);
    for (struct table_link *l = table_walk(&r->lanes.table, &at); l != NULL;
         l = table_walk(&r->lanes.table, &at)) {
        check_lane(CONTAINER_OF(l, struct lane, link), r);
    }
    for (struct list_link *l = list_front(&r->age); l != NULL; l = list_next(&r->age, l)) {
        const struct pending *p = CONTAINER_OF(l, struct pending, in_age);

        ASSERT(p->deadline_us >= before_us);
        before_us = p->deadline_us;
        count++;
    }
    ASSERT(count == r->pendings.count);
}

uint64_t router_session(struct router *r)
{
    return sessions_draw(&r->sessions);
}

bool router_full(const struct router *r)
{
    return r->figures.in_flight >= r->config.in_flight_max || r->size >= r->config.waiting_size_max;
}

const struct view *router_view(const struct router *r)
{
    return &r->view;
}

void router_figures(const struct router *r, struct router_figures *out)
{
    *out = r->figures;
    out->version = r->view.ring.version;
    out->digest[0] = r->view.ring.digest[0];
    out->digest[1] = r->view.ring.digest[1];
}
