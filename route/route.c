/* SPDX-License-Identifier: Apache-2.0
 *
 * A request's way through the router: sent, waiting, finished.
 */
#include "route/router_inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <stdio.h>

/* ---- replies and the end of a request ---- */

void route_count_reply(struct router *r, enum reply_code code)
{
    if (code > REPLY_APP_ERROR) {
        r->stats.unknown += code == REPLY_UNKNOWN;
        r->stats.timeout += code == REPLY_TIMEOUT;
        r->stats.rejected += code == REPLY_REJECTED;
        r->stats.overloaded += code == REPLY_OVERLOADED;
    }
    r->stats.replied++;
}

void route_put_reply(struct router *r, const struct reply *reply, struct bytes body)
{
    route_count_reply(r, reply->code);
    if (operator_request_owns(r, reply->session)) {
        operator_request_on_reply(r, reply, body);
        return;
    }
    struct router_effect *e = effects_add(r->out, ROUTER_REPLY);

    e->session = reply->session;
    e->ticket = reply->ticket;
    e->code = reply->code;
    e->flags = reply->flags;
    if (r->lends) {
        e->lent = body.data;
        e->size = body.size;
    } else {
        buffer_put(&r->out->bytes, body.data, body.size);
        effects_end(r->out, e);
    }
}

void route_disconnect(struct router *r, struct peer *peer)
{
    by_stream_over(r, peer);
    if (peer->wanted) {
        effects_add(r->out, ROUTER_DISCONNECT)->slot = peer->slot;
    }
    list_splice_back(&r->stalled, &peer->stalled);
    peer_free(&r->peers, peer);
}

/* A removed node's link stays while an answer may come over it. */
void route_disconnect_if_idle(struct router *r, struct peer *peer)
{
    if (peer->removed && (!peer->up || !peer_is_awaited(peer))) {
        ASSERT(list_empty(&peer->in_flight));
        route_disconnect(r, peer);
    }
}

void route_settle_peer(struct router *r, struct peer *peer)
{
    if (peer->told_awaits && peer->up && !peer_is_awaited(peer)) {
        fleet_tell_adopted(r, peer); // it may want to leave
    }
    route_disconnect_if_idle(r, peer);
}

/* There may be room at the peer. */
static void note_room(struct router *r, struct peer *peer)
{
    if (!list_empty(&peer->stalled) && !list_linked(&peer->fed)) {
        list_push_back(&r->fed, &peer->fed);
    }
}

__attribute__((always_inline)) static inline void leave_peer(struct router *r, struct pending *p)
{
    if (list_linked(&p->in_retry)) {
        list_remove(&p->in_retry);
    }
    struct peer *peer = p->slot == RING_NODE_NONE ? NULL : peer_find(&r->peers, p->slot);

    p->slot = RING_NODE_NONE;
    if (peer != NULL) {
        list_remove(&p->in_flight);
        ASSERT(peer->size >= p->charged);
        peer->size -= p->charged;
        note_room(r, peer);
        if (peer->told_awaits || peer->removed) {
            route_settle_peer(r, peer);
        }
    }
}

/* SENT, and nothing says that it will be answered: send it again when its turn comes. */
void route_to_waiting(struct router *r, struct pending *p)
{
    ASSERT(p->state == PENDING_SENT);
    leave_peer(r, p);
    p->state = machine_enter(&pending_machine, p->state, PENDING_WAITING);
    p->lane->sent--;
    p->lane->waiting++;
    r->stats.waiting++;
}

/* Take `p` out of everything and free it. */
__attribute__((always_inline)) static inline void forget(struct router *r, struct pending *p)
{
    if (p->state == PENDING_WAITING) {
        p->lane->waiting--;
        r->stats.waiting--;
    } else {
        p->lane->sent--;
        leave_peer(r, p);
    }
    table_remove(&r->pendings, &p->link);
    list_remove(&p->deadline.in);
    const size_t size = p->size;

    if (p->origin != 0) {
        share_sub(&r->by_entity, p->lane->position, size);
        share_sub(&r->by_origin, p->origin, size);
    }
    r->size -= size;
    r->must -= p->must;
    r->stats.in_flight--;
    struct lane *lane = lane_remove(&r->lanes, p);

    if (lane != NULL) {
        route_push(r, lane);
    }
    p->session->told -= (p->flags & REQUEST_NO_REPLY) != 0;
    session_done(&r->sessions, p->session);
    pending_free(&r->spares, p);
}

/* Its time is over, but somebody has to be told, and nobody says it again: once more, as a request
 * of its own, for no copy may outlive what guards against copies (hole 37). */
__attribute__((noinline, cold)) static void ask_anew(struct router *r, const struct pending *p)
{
    const struct router_event event = {.session = p->session->id,
                                       .origin = p->origin,
                                       .ticket = p->ticket,
                                       .kind = p->kind,
                                       .flags = p->flags,
                                       .must = true,
                                       .id = pending_id(p),
                                       .body = pending_body(p),
                                       .timeout_ms = REQUEST_TTL_MAX_MS};

    route_request(r, &event);
}

bool route_asks_anew(const struct router *r, bool must)
{
    return must && r->must <= r->config.in_flight_max / 2;
}

/* The request is over. What follows it in its lane names it as predecessor; if its owner can't
 * know that it ran, that one must be told that there is nothing to wait for (hole 41). */
void route_finish(struct router *r, struct pending *p, enum reply_code code, struct bytes body)
{
    const bool anew = __builtin_expect(p->must, false) &&
                      (code == REPLY_TIMEOUT || code == REPLY_REJECTED) &&
                      route_asks_anew(r, p->must);

    if (anew) {
        ask_anew(r, p);
    } else {
        route_count_latency(r, p->stamp, code);
    }
    struct pending *next = lane_next(p->lane, p);
    const bool ran = code == REPLY_OK || code == REPLY_APP_ERROR;

    if (!ran && !mutant(M_NOBASE) && next != NULL && next->state == PENDING_SENT &&
        next->prev == p->seq && next->deadline.at_us > r->now_us) {
        route_to_waiting(r, next);
    }
    if (!ran && r->config.streams && !pending_never_ran(p)) {
        by_stream_keep(r, p->session->id, p->lane->position);
    }
    // A connection that came after it is owed only what it has asked, too.
    if (!anew && !p->session->closed && (p->epoch == p->session->epoch || mutant(M_OLDLINE))) {
        const uint64_t ticket = route_ticket(r, p->flags, p->ticket, code, p->attempts);
        const struct reply reply = {p->session->id, ticket, code, p->flags, p};

        route_put_reply(r, &reply, body);
    } else {
        if (!anew) {
            (void)route_ticket(r, p->flags, p->ticket, code, p->attempts);
        }
        route_count_reply(r, code);
    }
    forget(r, p);
}

/* ---- sending ---- */

/* Lowest unfinished number of the lane. A client that numbers its requests itself may ask again for
 * what is finished only here. */
static uint64_t base_of(const struct pending *p)
{
    const uint64_t lowest = lane_front(p->lane)->seq;
    const uint64_t told = p->session->base;

    if (mutant(M_NOBASE)) {
        return p->prev != 0 ? p->prev : p->seq; // as it was when first sent
    }
    return told != 0 && told < lowest ? told : lowest;
}

__attribute__((always_inline)) static inline void await_answer(struct router *r, struct pending *p)
{
    const unsigned doublings = p->retries < ROUTER_RETRIES ? p->retries : ROUTER_RETRIES - 1;

    if (mutant(M_NORETRY)) {
        return;
    }
    p->retry_us = r->now_us + ((uint64_t)r->config.retry_ms * 1000 << doublings);
    list_push_back(&r->retry[doublings], &p->in_retry);
}

/* Its time is up, but its node works off what came before: a fleet under load must not be asked
 * everything twice. */
static bool is_in_its_turn(const struct router *r, const struct pending *p)
{
    const struct peer *peer = p->slot == RING_NODE_NONE ? NULL : peer_find(&r->peers, p->slot);
    const uint64_t retry_us = (uint64_t)r->config.retry_ms * 1000;

    return peer != NULL && peer == route_owner(r, p->lane) && r->now_us >= retry_us &&
           peer_is_just_slow(peer, p->sent_us, r->now_us - retry_us / 2);
}

static uint64_t silent_us(const struct router *r)
{
    return (uint64_t)r->config.silent_ms * 1000;
}

/* But for its chain. */
__attribute__((always_inline)) static inline struct request_record
record_of(const struct router *r, const struct pending *p, uint8_t copy)
{
    const uint64_t left_us = p->deadline.at_us > r->now_us ? p->deadline.at_us - r->now_us : 0;

    return (struct request_record){
        .gateway = r->config.gateway,
        .session = p->session->id,
        .session_epoch = p->session->epoch,
        .seq = p->seq,
        .prev = mutant(M_NOPREV) ? 0 : p->prev,
        .base = base_of(p),
        .first = p->first,
        .version = r->view->ring.version,
        .ttl_ms = (uint32_t)((left_us + 999) / 1000),
        .kind = p->kind,
        .copy = copy,
        .again = pending_is_again(p),
        .flags = p->flags,
        .id = pending_id(p),
    };
}

/* One of several with the same body. */
static void put_common_record(struct router *r, const struct pending *p, uint8_t copy,
                              struct router_effect *e)
{
    struct request_record record = record_of(r, p, copy);

    record.chain_count = p->chain_count;
    pending_chain(p, record.chain);
    record.body = pending_body(p);
    e->common = shared_hold(p->common);
    r->out->common_count++;
    request_put_same(&r->out->bytes, &record);
}

/* Of an actor's call: its chain and id change places. Not inlined: clients' requests have no chain.
 */
__attribute__((noinline)) static void put_chained(struct router *r, const struct pending *p,
                                                  uint8_t copy)
{
    struct buffer *out = &r->out->bytes;
    const size_t rest = p->size - sizeof *p;
    const size_t body_size = pending_body_size(p);
    uint8_t *at = buffer_reserve(out, REQUEST_HEADER_SIZE + rest);
    struct request_record record = record_of(r, p, copy);
    uint64_t chain[RECORD_CHAIN_MAX];

    ASSERT(record.prev < record.seq && record.copy >= 1); // the rest was looked at when it came
    record.body.size = body_size;
    record.chain_count = p->chain_count;
    at = request_store(at, &record);
    pending_chain(p, chain);
    for (size_t i = 0; i < p->chain_count; i++) {
        at = store_u64(at, chain[i]);
    }
    bytes_copy(at, p->data, p->id_size);
    bytes_copy(at + p->id_size, pending_body(p).data, body_size);
    out->size += REQUEST_HEADER_SIZE + rest;
}

/* One that is traced: a node of an older version knows no context. */
__attribute__((noinline)) static void put_traced(struct router *r, const struct pending *p,
                                                 uint8_t copy, const struct peer *peer)
{
    struct request_record record = record_of(r, p, copy);

    record.chain_count = p->chain_count;
    pending_chain(p, record.chain);
    record.body = pending_body(p);
    if (!peer->knows_again) {
        record.flags &= (uint8_t)~REQUEST_TRACED;
        record.body.size -= TRACE_CONTEXT_SIZE;
    }
    request_put(&r->out->bytes, &record);
}

__attribute__((always_inline)) static inline void put_record(struct router *r,
                                                             const struct pending *p, uint8_t copy)
{
    struct buffer *out = &r->out->bytes;
    const size_t rest = p->size - sizeof *p; // id and body, one behind the other
    uint8_t *at = buffer_reserve(out, REQUEST_HEADER_SIZE + rest);
    struct request_record record = record_of(r, p, copy);

    ASSERT(record.prev < record.seq && record.copy >= 1); // the rest was looked at when it came
    record.body.size = rest - p->id_size;
    bytes_copy(request_store(at, &record), p->data, rest);
    out->size += REQUEST_HEADER_SIZE + rest;
}

__attribute__((always_inline)) static inline void send(struct router *r, struct pending *p,
                                                       struct peer *peer)
{
    struct lane *lane = p->lane;

    if (p->first == 0) {
        p->first = r->view->ring.version;
    }
    r->stats.resent += p->attempts > 0;
    if (p->attempts == 0 || !mutant(M_NOBASE)) {
        p->prev = lane_prev_seq(lane, p);
    }
    struct router_effect *e = effects_add(r->out, ROUTER_SEND_NODE);

    const uint8_t copy = pending_attempt(p);

    e->slot = peer->slot;
    if (__builtin_expect((p->flags & REQUEST_TRACED) != 0, false)) {
        put_traced(r, p, copy, peer);
    } else if (p->common != NULL) {
        put_common_record(r, p, copy, e);
    } else if (p->chain_count > 0) {
        put_chained(r, p, copy);
    } else {
        put_record(r, p, copy);
    }
    effects_end(r->out, e);
    p->slot = peer->slot;
    if (p->asked != peer_asked(peer)) {
        p->before = p->asked;
        p->asked = peer_asked(peer);
    }
    p->state = machine_enter(&pending_machine, p->state, PENDING_SENT);
    p->charged = (uint32_t)(p->size + (p->common == NULL ? 0 : p->common->size) + peer->reply_size);
    peer->size += p->charged;
    list_push_back(&peer->in_flight, &p->in_flight);
    p->sent_us = r->now_us;
    peer_on_sent(peer, r->now_us, silent_us(r));
    await_answer(r, p);
    lane->sent++;
    lane->waiting--;
    r->stats.waiting--;
}

const struct ring_key *route_learn_key(struct router *r, uint16_t kind)
{
    struct router_keys *k = &r->keys;
    const size_t i = kind % ROUTER_KEYS;

    k->of[i].known = true;
    k->of[i].kind = kind;
    k->of[i].key = ring_key_of_kind(k->master, kind);
    return &k->of[i].key;
}

/* What is asked of it is counted at its new position. */
static uint64_t move_lane(void *context, const struct lane *lane)
{
    struct router *r = context;
    const uint64_t position = route_position(r, lane->kind, pending_id(lane_front(lane)));

    for (const struct pending *p = lane_front(lane); p != NULL; p = lane_next(lane, p)) {
        if (p->origin != 0) {
            share_sub(&r->by_entity, lane->position, p->size);
            share_add(&r->by_entity, position, p->size);
        }
    }
    return position;
}

void route_move_key(struct router *r, struct ring_key now)
{
    r->keys = (struct router_keys){.master = now};
    lanes_move(&r->lanes, move_lane, r);
}

const struct ring_vnode *route_vnode(const struct router *r, const struct pending *p)
{
    if (r->view->ring.version == 0) {
        return NULL;
    }
    const ring_hit hit = view_at(r->view, p->kind, p->lane->position, pending_id(p));

    return ring_find(&r->view->ring, ring_hit_vnode(hit));
}

__attribute__((always_inline)) static inline struct peer *owner_of(const struct router *r,
                                                                   const struct lane *lane)
{
    return route_peer_of(r, lane->position, lane->kind, pending_id(lane_front(lane)));
}

/* The node that owns the lane's entity, if requests can go there now. */
struct peer *route_owner(const struct router *r, const struct lane *lane)
{
    struct peer *peer = owner_of(r, lane);

    return peer != NULL && peer_takes_requests(peer) ? peer : NULL;
}

/* More than the links hold, both ways, would be thrown away there, and the node with it. */
__attribute__((always_inline)) static inline bool has_room(const struct router *r,
                                                           const struct peer *peer)
{
    return peer->size < r->config.peer_size_max && peer_may_be_sent(peer, r->now_us, silent_us(r));
}

/* Time, too, may let go on what waits there. */
static void note_silent(struct router *r, struct peer *peer)
{
    if (!list_empty(&peer->stalled) && peer->size < r->config.peer_size_max &&
        !list_linked(&peer->silent)) {
        list_push_back(&r->silent, &peer->silent);
    }
}

static void stall(struct router *r, struct lane *lane, struct peer *peer)
{
    list_push_back(&peer->stalled, &lane->stalled);
    note_silent(r, peer);
}

/* The owner, if it may be sent something now; else the lane waits, for what is to change. */
__attribute__((always_inline)) static inline struct peer *open_owner(struct router *r,
                                                                     struct lane *lane)
{
    struct peer *owner = owner_of(r, lane);

    if (owner == NULL || !peer_takes_requests(owner)) {
        if (owner != NULL) {
            fleet_want_link(r, owner);
        }
        list_push_back(&r->stalled, &lane->stalled);
        return NULL;
    }
    if (peer_lacks(owner, lane->kind)) {
        list_push_back(&r->stalled, &lane->stalled);
        return NULL;
    }
    if (!has_room(r, owner)) {
        stall(r, lane, owner);
        return NULL;
    }
    return owner;
}

/* ---- a role without nodes ---- */

bool route_is_bare(const struct router *r, const struct pending *p)
{
    const struct ring *ring = &r->view->ring;
    const struct ring_segment *s = ring_segment_of_kind(ring, p->kind);

    if (!r->tells_bare || !r->bare[s == NULL ? 0 : s - ring->segment + 1]) {
        return false;
    }
    // Who owns its session, or calls, tries again after long if it is told so; notes about one who
    // is awake would be taken for the actor's end.
    const bool waits = p->must || p->epoch != 0 ||
                       (p->flags & (REQUEST_CALL | REQUEST_AWAKE)) != 0 ||
                       (!pending_never_ran(p) && !mutant(M_BAREDOUBT));

    return !waits && ring_hit_node(view_at(r->view, p->kind, p->lane->position, pending_id(p))) ==
                         RING_NODE_NONE;
}

void route_finish_bare(struct router *r, struct pending *p)
{
    const struct ring_segment *s = ring_segment_of_kind(&r->view->ring, p->kind);
    const char *role = s == NULL || s->role[0] == '\0' ? "default" : s->role;
    char text[RING_ROLE_MAX + 128];
    const int size = snprintf(text,
                              sizeof text,
                              "no node of the role '%s' is in the fleet: the request did not run; "
                              "ringhold status lists nodes and roles",
                              role);

    route_finish(r, p, REPLY_NO_KIND, bytes_of(text, (size_t)size));
}

void route_push_new(struct router *r, struct lane *lane, struct pending *p)
{
    if (lane->waiting > 1 || lane->sent > 0 || lane_is_blocked(lane)) {
        route_push(r, lane);
        return;
    }
    // The usual case: it is alone.
    struct peer *owner = open_owner(r, lane);

    if (owner != NULL) {
        send(r, p, owner);
    } else if (route_is_bare(r, p)) {
        route_finish_bare(r, p);
    }
}

/* Send what waits in the lane, lowest first, as far as the window goes. Lowest first: a later one
 * that took the window's last place would wait at the owner for the one left behind. */
void route_push(struct router *r, struct lane *lane)
{
    if (lane->waiting == 0 || lane->sent >= r->config.window || lane_is_blocked(lane)) {
        return;
    }
    struct peer *owner = open_owner(r, lane);

    if (owner == NULL) {
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
        if (pending_is_again(p) && !owner->knows_again) {
            // For another owner, or a link to a newer process.
            list_push_back(&r->stalled, &lane->stalled);
            break;
        }
        if (!has_room(r, owner)) {
            stall(r, lane, owner);
            break;
        }
        send(r, p, owner);
    }
}

/* ---- sending again ---- */

void route_retry(struct router *r)
{
    for (size_t i = 0; i < ROUTER_RETRIES; i++) {
        for (struct list_link *l = list_front(&r->retry[i]); l != NULL;
             l = list_front(&r->retry[i])) {
            struct pending *p = CONTAINER_OF(l, struct pending, in_retry);

            if (p->retry_us > r->now_us) {
                break;
            }
            if (is_in_its_turn(r, p)) {
                list_remove(&p->in_retry);
                await_answer(r, p);
                continue;
            }
            p->retries = p->retries < ROUTER_RETRIES ? (uint8_t)(p->retries + 1) : p->retries;
            r->stats.retried++;
            route_to_waiting(r, p);
            route_push(r, p->lane);
        }
    }
}

void route_lose(struct router *r, struct list *in_flight)
{
    for (struct list_link *l = list_pop_front(in_flight); l != NULL;
         l = list_pop_front(in_flight)) {
        struct pending *p = CONTAINER_OF(l, struct pending, in_flight);

        p->slot = RING_NODE_NONE;
        if (mutant(M_NORETRY)) {
            continue;
        }
        r->stats.retried++;
        route_to_waiting(r, p);
        if (!lane_is_blocked(p->lane)) {
            list_push_back(&r->stalled, &p->lane->stalled);
        }
    }
    // All are marked before the first is sent again: they go in order.
    route_wake_stalled(r);
}

static void lose_taken_over(struct router *r, struct peer *peer, uint64_t cold)
{
    struct list lost;
    struct list_link *next = NULL;

    list_init(&lost);
    for (struct list_link *l = list_front(&peer->in_flight); l != NULL; l = next) {
        struct pending *p = CONTAINER_OF(l, struct pending, in_flight);
        const struct ring_vnode *vnode = route_vnode(r, p);

        next = list_next(&peer->in_flight, l);
        if (vnode != NULL && vnode->owner != peer->slot && vnode->cold > cold) {
            list_remove(l);
            peer->size -= p->charged;
            list_push_back(&lost, l);
        }
    }
    note_room(r, peer);
    route_lose(r, &lost);
}

void route_lose_taken_over(struct router *r, uint64_t cold)
{
    for (uint16_t slot = 1; slot <= r->peers.top; slot++) {
        if (r->peers.at[slot] != NULL) {
            lose_taken_over(r, r->peers.at[slot], cold);
        }
    }
}

/* ---- waking ---- */

void route_wake_stalled(struct router *r)
{
    struct list woken;

    list_init(&woken);
    list_splice_back(&woken, &r->stalled);
    for (struct list_link *l = list_front(&woken); l != NULL; l = list_front(&woken)) {
        struct lane *lane = CONTAINER_OF(l, struct lane, stalled);

        lane_unblock(lane);
        route_push(r, lane);
    }
}

void route_feed(struct router *r)
{
    for (struct list_link *l = list_pop_front(&r->fed); l != NULL; l = list_pop_front(&r->fed)) {
        struct peer *peer = CONTAINER_OF(l, struct peer, fed);

        while (!list_empty(&peer->stalled) && has_room(r, peer)) {
            struct lane *lane = CONTAINER_OF(list_front(&peer->stalled), struct lane, stalled);

            lane_unblock(lane);
            route_push(r, lane);
        }
        note_silent(r, peer);
    }
}

void route_feed_peer(struct router *r, struct peer *peer)
{
    list_remove(&peer->silent);
    if (!list_linked(&peer->fed)) {
        list_push_back(&r->fed, &peer->fed);
    }
}

void route_probe_silent(struct router *r)
{
    struct list_link *next = NULL;

    for (struct list_link *l = list_front(&r->silent); l != NULL; l = next) {
        struct peer *peer = CONTAINER_OF(l, struct peer, silent);

        next = list_next(&r->silent, l);
        if (has_room(r, peer)) {
            route_feed_peer(r, peer);
        }
    }
}

void route_wake_rested(struct router *r)
{
    struct list due;

    list_init(&due);
    timer_wheel_advance(&r->timer_wheel, r->now_us, &due);
    for (struct list_link *l = list_front(&due); l != NULL; l = list_front(&due)) {
        struct lane *lane = CONTAINER_OF(l, struct lane, resting);

        lane_unblock(lane);
        route_push(r, lane);
    }
}
