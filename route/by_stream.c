/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that go by streams: taken, answered, given up; and the streams of peers.
 */
#include "route/by_stream.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "route/steady.h"

#include <string.h>

enum {
    FRAME_ANSWERS = 64,   /* of a frame at once: then their replies go out of the cache */
    OWNER_LACKS_MS = 64,  /* a node hosts no such kind, and it should */
    LOOK_US = 10000,      /* how often silent nodes are looked for */
    JOIN_US = 1000000,    /* after that JOIN is said again, then after twice that, … */
    TRY_FIRST_US = 25000, /* one is tried again after that, and then after twice as much, … */
    TRY_DOUBLINGS = 4,    /* … so often */
    NOTED_MAX = 4096,     /* requests that are looked through for a note */
};

/* A lane that keeps to records. */
struct kept_lane {
    struct table_link link;
    struct list_link in;
    uint64_t session;
    uint64_t position;
    uint64_t until_us;
};

/* What a request under way is for. */
static struct stream_entity entity_of(const struct router *r, uint32_t slot)
{
    const struct stream_asker *a = &r->by_stream.asker;

    return asker_entity(a, asker_rid(a, slot));
}

/* ---- deadlines ---- */

/* Milliseconds of a clock that goes round in seven weeks; never 0. */
static inline uint32_t due_at(uint64_t at_us)
{
    const uint32_t ms = (uint32_t)((at_us + 999) / 1000);

    return ms == 0 ? 1 : ms;
}

static inline bool is_due(uint32_t due_ms, uint32_t now_ms)
{
    return (int32_t)(due_ms - now_ms) <= 0;
}

static void note_due(struct by_stream *b, uint32_t due_ms)
{
    if (b->count == 0 || is_due(due_ms, b->next_due_ms)) {
        b->next_due_ms = due_ms;
    }
}

/* ---- requests under way ---- */

void by_stream_grow(struct by_stream *b)
{
    asker_grow(&b->asker);
    const size_t cap = b->asker.slot_cap;
    struct inquiry *more = mem_lines(cap * sizeof *more);

    if (b->cap > 0) {
        memcpy(more, b->inquiry, b->cap * sizeof *more);
    }
    memset(more + b->cap, 0, (cap - b->cap) * sizeof *more);
    mem_free(b->inquiry);
    b->inquiry = more;
    b->due_ms = mem_resize(b->due_ms, cap * sizeof *b->due_ms);
    memset(b->due_ms + b->cap, 0, (cap - b->cap) * sizeof *b->due_ms);
    b->cap = cap;
}

/* It is nobody's any more. */
static void let_go(struct router *r, uint32_t slot, uint64_t position)
{
    struct by_stream *b = &r->by_stream;
    struct inquiry *q = &b->inquiry[slot];
    struct session *session = q->session;

    r->size -= q->size;
    r->must -= q->must;
    r->stats.in_flight--;
    b->count--;
    session->told -= (q->flags & REQUEST_NO_REPLY) != 0;
    if (q->origin != 0) {
        share_sub(&r->by_entity, position, q->size);
        share_sub(&r->by_origin, q->origin, q->size);
    }
    b->due_ms[slot] = 0;
    q->session = NULL;
    session_done(&r->sessions, session);
}

/* Returns what the asker wants to hear: it is over. */
static uint32_t finish(struct router *r, const struct stream_reply *what, enum reply_code code,
                       struct bytes body)
{
    struct inquiry *q = &r->by_stream.inquiry[what->slot];
    struct session *session = q->session;
    const uint64_t ticket = route_ticket(r, q->flags, what->ticket, code, q->lost ? 2 : 1);

    route_count_latency(r, q->stamp, code);
    if (__builtin_expect(session->closed, false)) {
        route_count_reply(r, code);
    } else {
        const struct reply reply = {session->id, ticket, code, q->flags, NULL};

        route_put_reply(r, &reply, body);
    }
    let_go(r, what->slot, what->position);
    return 0;
}

/* ---- what the asker asks ---- */

static struct stream_client *on_owner(void *context, const struct stream_entity *e)
{
    const struct router *r = context;

    return steady_stream(r, e->position, e->kind, e->id);
}

static uint32_t on_left(void *context, uint32_t slot)
{
    const struct router *r = context;
    const uint32_t due_ms = r->by_stream.due_ms[slot];
    const uint32_t now_ms = (uint32_t)(r->now_us / 1000);

    return is_due(due_ms, now_ms) ? 0 : due_ms - now_ms;
}

/* Its time is over. True: it has some anew. */
static bool renew(struct router *r, struct inquiry *q)
{
    struct by_stream *b = &r->by_stream;

    if (!route_asks_anew(r, q->must)) {
        return false;
    }
    b->due_ms[q - b->inquiry] = due_at(r->now_us + (uint64_t)REQUEST_TTL_MAX_MS * 1000);
    note_due(b, b->due_ms[q - b->inquiry]);
    q->stamp = latency_stamp(r->now_us, latency_stamp_row(q->stamp));
    return true;
}

static uint32_t on_expired(struct router *r, struct inquiry *q, const struct stream_reply *reply)
{
    const enum reply_code code = reply->maybe ? REPLY_TIMEOUT : REPLY_REJECTED;

    return renew(r, q) ? 1 : finish(r, reply, code, route_nothing);
}

/* The node has no room. For a while it is waited for; then the client is told. */
static uint32_t on_overload(struct router *r, struct inquiry *q, const struct stream_reply *reply)
{
    const uint64_t ms = reply->answer->aux > 0 ? reply->answer->aux : 1;

    q->overload_us = q->overloaded ? q->overload_us : r->now_us;
    q->overloaded = true;
    if (!reply->maybe && !q->must &&
        r->now_us - q->overload_us >= (uint64_t)r->config.overload_ms * 1000) {
        return finish(r, reply, REPLY_OVERLOADED, route_nothing);
    }
    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

/* It did not run this time. Before, if it was asked by a stream that is dead, it may have. */
static uint32_t on_never(struct router *r, const struct stream_reply *reply, enum reply_code code)
{
    return finish(r, reply, reply->maybe ? REPLY_UNKNOWN : code, route_nothing);
}

/* No node runs it, and why: enum no_kind. */
static uint32_t on_nobody(struct router *r, struct inquiry *q, const struct stream_reply *reply)
{
    const struct stream_entity e = entity_of(r, reply->slot);
    const struct peer *owner = route_peer_of(r, e.position, e.kind, e.id);

    if (reply->answer->aux == NO_KIND_QUARANTINED) {
        return on_never(r, reply, REPLY_QUARANTINED); // until an operator says so
    }
    if (reply->answer->aux == NO_KIND_DEADLOCK) {
        return on_never(r, reply, REPLY_DEADLOCK);
    }
    // Its actor sleeps, so there is nobody to tell, whatever an earlier copy met.
    const bool asleep = (q->flags & REQUEST_AWAKE) != 0 && !mutant(M_SLEEPERASKED);

    if ((reply->maybe && !asleep) || (owner != NULL && peer_lacks(owner, e.kind))) {
        return OWNER_LACKS_MS; // it was sent by an older ring
    }
    return finish(r, reply, REPLY_NO_KIND, route_nothing);
}

/* It may have run: its next owner is asked whether it did, if that can know. Of two that died with
 * it it may be what killed both: no third is asked. */
static uint32_t on_doubt(struct router *r, struct inquiry *q, const struct stream_reply *reply)
{
    if (q->lost && !mutant(M_THIRDDEATH)) {
        return finish(r, reply, REPLY_UNKNOWN, route_nothing);
    }
    q->lost = true;
    q->died = r->by_stream.dying;
    return 1;
}

/* What it did is gone: its owner was fenced, and its actor may be an older one (hole 63). */
static bool is_stale(struct router *r, const struct stream_reply *reply)
{
    if (reply->version >= r->cold) {
        return false; // it knows of every take-over that I know of
    }
    const struct stream_entity e = entity_of(r, reply->slot);
    const ring_hit hit = view_at(r->view, e.kind, e.position, e.id);

    return route_is_stale(
        r, ring_find(&r->view->ring, ring_hit_vnode(hit)), reply->answer->token, reply->version);
}

static uint32_t on_ran(struct router *r, const struct stream_reply *reply)
{
    const bool ok = reply->answer->code == ANSWER_OK;

    if (__builtin_expect(is_stale(r, reply), false)) {
        r->stats.stale_answers++;
        return 1; // It did run: whatever comes, it is not REJECTED.
    }
    return finish(r, reply, ok ? REPLY_OK : REPLY_APP_ERROR, reply->answer->body);
}

static uint32_t on_reply(void *context, const struct stream_reply *reply)
{
    struct router *r = context;
    struct inquiry *q = &r->by_stream.inquiry[reply->slot];

    switch (reply->answer->code) {
    case ANSWER_OK:
    case ANSWER_APP_ERROR:
        return on_ran(r, reply);
    case ANSWER_OVERLOAD:
        return on_overload(r, q, reply);
    case ANSWER_EXPIRED:
        return on_expired(r, q, reply);
    case ANSWER_NO_KIND:
        return on_nobody(r, q, reply);
    case ANSWER_LOST:
        return finish(r, reply, REPLY_UNKNOWN, route_nothing);
    default: // UNKNOWN; COLD is of no stream
        return on_doubt(r, q, reply);
    }
}

/* Its owner's link speaks no streams: it waits as a record. */
static bool on_elsewhere(void *context, const struct stream_reply *reply,
                         const struct stream_request *request)
{
    struct router *r = context;
    struct inquiry *q = &r->by_stream.inquiry[reply->slot];
    const struct peer *owner = route_peer_of(r, reply->position, request->kind, request->id);

    if (owner == NULL || !peer_takes_requests(owner) || owner->speaks_streams) {
        return false;
    }
    if (reply->maybe && (q->flags & REQUEST_IDEMPOTENT) == 0) { // which it would run
        (void)finish(r, reply, REPLY_UNKNOWN, route_nothing);
        return true;
    }
    struct session *session = q->session;
    const uint32_t left_ms = on_left(r, reply->slot);
    const struct router_event event = {.session = session->id,
                                       .origin = q->origin,
                                       .ticket = reply->ticket,
                                       .kind = request->kind,
                                       .flags = q->flags,
                                       .again = reply->maybe,
                                       .must = q->must,
                                       .id = request->id,
                                       .body = request->body,
                                       .timeout_ms = left_ms > 0 ? left_ms : 1};
    route_take_back(r, &event, reply->position, q->lost ? q->died : 0);
    let_go(r, reply->slot, reply->position);
    r->by_stream.took_back = true;
    return true;
}

void by_stream_init(struct router *r)
{
    struct by_stream *b = &r->by_stream;
    struct stream_asker_config config = asker_config_default();

    config.id = r->config.gateway;
    config.size_max = r->config.peer_size_max;
    config.context = r;
    config.owner = on_owner;
    config.reply = on_reply;
    config.left = on_left;
    config.elsewhere = on_elsewhere;
    asker_init(&b->asker, &config);
    list_init(&b->kept_until);
}

static void kept_free(struct by_stream *b, struct kept_lane *k)
{
    list_remove(&k->in);
    table_remove(&b->kept, &k->link);
    mem_free(k);
}

void by_stream_fini(struct router *r)
{
    struct by_stream *b = &r->by_stream;
    struct list_link *l = NULL;

    mem_free(b->inquiry);
    mem_free(b->due_ms);
    while ((l = list_front(&b->kept_until)) != NULL) {
        kept_free(b, CONTAINER_OF(l, struct kept_lane, in));
    }
    table_fini(&b->kept);
    for (uint16_t slot = 1; slot <= r->peers.top; slot++) {
        if (r->peers.at[slot] != NULL) {
            r->peers.at[slot]->stream = NULL;
        }
    }
    asker_fini(&b->asker);
}

/* ---- lanes that keep to records ---- */

static struct kept_lane *kept_find(const struct by_stream *b, uint64_t session, uint64_t position)
{
    struct table_link *l = table_first(&b->kept, lane_hash(session, position));

    for (; l != NULL; l = table_same(l)) {
        struct kept_lane *k = CONTAINER_OF(l, struct kept_lane, link);

        if (k->session == session && k->position == position) {
            return k;
        }
    }
    return NULL;
}

void by_stream_keep(struct router *r, uint64_t session, uint64_t position)
{
    struct by_stream *b = &r->by_stream;
    struct kept_lane *k = kept_find(b, session, position);

    if (k == NULL) {
        k = mem_new(1, sizeof *k);
        k->session = session;
        k->position = position;
        table_put(&b->kept, &k->link, lane_hash(session, position));
    } else {
        list_remove(&k->in);
    }
    k->until_us = r->now_us + (uint64_t)BY_STREAM_KEEP_MS * 1000;
    list_push_back(&b->kept_until, &k->in);
}

/* Is something of it on its way as a record, or may be? */
static inline bool keeps_to_records(const struct router *r, uint64_t session, uint64_t position)
{
    return (r->lanes.table.count > 0 && lanes_have(&r->lanes, session, position)) ||
           (r->by_stream.kept.count > 0 && kept_find(&r->by_stream, session, position) != NULL);
}

/* ---- asking ---- */

/* False: it is to go by a record. */
static bool ask(struct router *r, const struct router_plain *p, struct session *session,
                uint64_t position)
{
    struct stream_client *to = steady_stream(r, position, p->kind, p->id);
    // What waits in its lane goes first, wherever its owner is.
    const bool taken = to != NULL ? !keeps_to_records(r, session->id, position)
                                  : asker_has_lane(&r->by_stream.asker, session->id, position);
    if (!taken) {
        return false;
    }
    const uint32_t timeout_ms = route_timeout_ms(r, p->timeout_ms);
    struct stream_request request = {.session = session->id,
                                     .hash = position,
                                     .ttl_ms = timeout_ms,
                                     .kind = p->kind,
                                     .flags = p->flags,
                                     .id = p->id,
                                     .body = p->body,
                                     .command = p->command};
    const struct steady_asked in = {.session = session,
                                    .position = position,
                                    .due_ms = due_at(r->now_us + (uint64_t)timeout_ms * 1000),
                                    .stamp = route_stamp(r, p->kind)};

    struct steady_sum sum = {0};

    note_due(&r->by_stream, in.due_ms);
    if (r->by_stream.asker.spare == 0) {
        by_stream_grow(&r->by_stream);
    }
    const uint64_t rid = asker_ask(&r->by_stream.asker, to, &request, position, p->ticket);
    steady_note(r, *p, in, asker_slot(rid), &sum);
    steady_count(r, *p, session, sum);
    return true;
}

bool by_stream_ask(struct router *r, const struct router_event *event, struct session *session,
                   uint64_t position)
{
    // Calls, all else that a node asks, broadcasts, sessions that clients own, and what operators
    // ask keep to records.
    if (r->config.of_node || event->seq != 0 || event->from != NULL || event->chain_count > 0 ||
        event->common != NULL || operator_request_owns(r, session->id)) {
        return false;
    }
    const struct router_plain plain = {.origin = event->origin,
                                       .ticket = event->ticket,
                                       .timeout_ms = event->timeout_ms,
                                       .kind = event->kind,
                                       .flags = event->flags,
                                       .must = event->must,
                                       .id = event->id,
                                       .body = event->body,
                                       .command = event->command};
    return ask(r, &plain, session, position);
}

/* The way of a client's request. False: nothing was changed, route_request() is to take it. */
static bool ask_plain(struct router *r, const struct router_plain *q)
{
    struct session *session = session_find(&r->sessions, q->session);

    if (session == NULL || !r->config.streams || (route_is_full(r) && !q->must)) {
        return false;
    }
    const uint64_t position = route_position(r, q->kind, q->id);

    if (!ask(r, q, session, position)) {
        return false;
    }
    r->stats.requests++;
    route_note_asked(r, position);
    return true;
}

/* One of the session was asked: those that come behind it are likewise, as far as nothing waits for
 * anything, and so little is under way that nobody can have more than its share. */
static void begin_run(struct router *r, const struct router_plain *q)
{
    struct by_stream *b = &r->by_stream;
    struct session *session = session_find(&r->sessions, q->session);
    const bool waits = b->asker.lanes.count > 0 || r->lanes.table.count > 0 || b->kept.count > 0;

    if (session == NULL || waits || q->timeout_ms != 0 || r->view != &r->own ||
        !route_has_begun(r, q->now_us) || !route_holds_little(r, q->known) || route_is_full(r)) {
        return;
    }
    const struct ring *ring = &r->view->ring; // of it nothing changes in a run
    const uint64_t size = r->config.waiting_size_max - 1;
    const uint64_t deadline_us = r->now_us + (uint64_t)r->config.deadline_ms * 1000;

    note_due(b, due_at(deadline_us));
    b->run = (struct steady_run){.left = (uint32_t)(route_little(r, q->known) - r->stats.in_flight),
                                 .kind = q->kind,
                                 .known = q->known,
                                 .session = session,
                                 .session_id = session->id,
                                 .now_us = r->now_us,
                                 .due_ms = due_at(deadline_us),
                                 .size_max = size < SHARE_SIZE ? size : SHARE_SIZE,
                                 .hash = siphash_start(*route_kind_key(r, q->kind)),
                                 .cell = ring->segment_count == 0 ? ring->cell : NULL,
                                 .shift = (uint8_t)(64 - ring->grid),
                                 .stamp = route_stamp(r, q->kind)};
}

bool steady_ask_alone(struct router *r, const struct router_plain *q, struct router_effects *out)
{
    const bool later = !route_has_begun(r, q->now_us) && route_begin(r, q->now_us, out);

    by_stream_end_run(&r->by_stream);
    ASSERT(q->timeout_ms <= REQUEST_TTL_MAX_MS);
    route_tell(r, out);
    const bool asked = ask_plain(r, q);
    if (!asked) {
        route_request_plain(r, q);
    }
    // Most often it is one of many, and has changed nothing that the last step saw to.
    if (later || by_stream_wants_end(&r->by_stream) || !list_empty(&r->fed)) {
        route_end(r);
    }
    route_tell(r, NULL);
    if (asked) {
        begin_run(r, q);
    }
    return route_holds_little(r, q->known);
}

bool router_ask_plain(struct router *r, const struct router_plain *q, struct router_effects *out)
{
    return steady_ask(r, *q, out);
}

/* ---- time ---- */

static void give_up(struct router *r, uint32_t slot)
{
    struct stream_asker *a = &r->by_stream.asker;
    const struct stream_entity e = entity_of(r, slot);
    const struct peer *owner = route_peer_of(r, e.position, e.kind, e.id);
    const bool lacks = owner != NULL && peer_takes_requests(owner) && peer_lacks(owner, e.kind);
    const enum reply_code never = lacks ? REPLY_NO_KIND : REPLY_REJECTED;
    const struct stream_reply over = {
        .ticket = a->slot[slot].ticket, .slot = slot, .position = e.position};
    const bool maybe = asker_give_up(a, asker_rid(a, slot));

    (void)finish(r, &over, maybe ? REPLY_TIMEOUT : never, route_nothing);
}

/* Each time that one is due all are looked at: that is seldom, for mostly all end long before. */
static void expire(struct router *r)
{
    struct by_stream *b = &r->by_stream;
    const uint32_t now_ms = (uint32_t)(r->now_us / 1000);

    if (b->count == 0 || !is_due(b->next_due_ms, now_ms)) {
        return;
    }
    b->next_due_ms = now_ms + REQUEST_TTL_MAX_MS + 1;
    for (uint32_t slot = 0; slot < b->cap; slot++) {
        const uint32_t due_ms = b->due_ms[slot];

        if (due_ms == 0) {
            continue;
        }
        if (!is_due(due_ms, now_ms)) {
            b->next_due_ms = is_due(due_ms, b->next_due_ms) ? due_ms : b->next_due_ms;
        } else if (!renew(r, &b->inquiry[slot])) {
            give_up(r, slot);
        }
    }
}

static void say(struct router *r, const struct peer *peer, const struct stream_connect *what)
{
    struct router_effect *e = effects_add(r->out, ROUTER_SEND_STREAM);
    uint8_t bytes[STREAM_HEADER_SIZE];

    stream_head_store(bytes, what->type, &what->head);
    e->slot = peer->slot;
    e->frame = (uint8_t)what->type;
    buffer_put(&r->out->bytes, bytes + FRAME_HEADER_SIZE, sizeof bytes - FRAME_HEADER_SIZE);
    effects_end(r->out, e);
}

static void connect(struct router *r, struct peer *peer)
{
    const unsigned doublings = peer->joins < TRY_DOUBLINGS ? peer->joins : TRY_DOUBLINGS;

    peer->connection = ++r->by_stream.connections;
    peer->joins++;
    peer->join_us = r->now_us + ((uint64_t)JOIN_US << doublings);
    const struct stream_connect what =
        asker_connect(&r->by_stream.asker, peer->stream, peer->connection);

    say(r, peer, &what);
}

/* A node's answer to BEGIN or JOIN may be lost although the link is well: a full gate of the node
 * drops it (fleet_sim --seed 110002142). */
static void join_again(struct router *r, struct peer *peer)
{
    if (peer->connection != 0 && !peer->stream->joined && r->now_us >= peer->join_us) {
        asker_lost(&r->by_stream.asker, peer->stream, peer->connection);
        connect(r, peer);
    }
}

/* A node from which nothing came for silent_ms, and much is awaited, is given one request now and
 * then: what waits here has not run (decision 052). */
static void look_at(struct router *r, struct peer *peer)
{
    const uint64_t silent_us = (uint64_t)r->config.silent_ms * 1000;
    struct stream_client *c = peer->stream;

    if (c->count < PEER_UNHEARD && peer->tries == 0) {
        peer->quiet_us = r->now_us;
        return;
    }
    if (silent_us == 0 || r->now_us - peer->quiet_us < silent_us) {
        return;
    }
    if (peer->tries > 0 && r->now_us < peer->try_us) {
        return;
    }
    const unsigned doublings = peer->tries < TRY_DOUBLINGS ? peer->tries : TRY_DOUBLINGS;

    asker_limit(&r->by_stream.asker, c, c->count + (peer->tries > 0 ? 1 : 0));
    r->by_stream.silent += peer->tries == 0;
    peer->try_us = r->now_us + ((uint64_t)TRY_FIRST_US << doublings);
    peer->tries++;
}

static void look_for_silent(struct router *r)
{
    r->by_stream.looked_us = r->now_us;
    asker_look(&r->by_stream.asker);
    for (uint16_t slot = 1; slot <= r->peers.top; slot++) {
        struct peer *peer = r->peers.at[slot];

        if (peer != NULL && peer->stream != NULL) {
            join_again(r, peer);
            look_at(r, peer);
        }
    }
}

static void heard(struct router *r, struct peer *peer)
{
    peer->quiet_us = r->now_us;
    if (__builtin_expect(peer->tries > 0, false)) {
        peer->tries = 0;
        r->by_stream.silent--;
        asker_limit(&r->by_stream.asker, peer->stream, r->by_stream.asker.config.window);
    }
}

void by_stream_pass_time(struct router *r)
{
    struct by_stream *b = &r->by_stream;
    struct list_link *l = NULL;

    expire(r);
    while ((l = list_front(&b->kept_until)) != NULL &&
           CONTAINER_OF(l, struct kept_lane, in)->until_us <= r->now_us) {
        kept_free(b, CONTAINER_OF(l, struct kept_lane, in));
    }
    if (r->now_us - b->looked_us >= LOOK_US) {
        look_for_silent(r);
    }
    asker_turn(&b->asker, r->now_us / 1000); // what comes now rests from now on
}

void by_stream_end(struct router *r)
{
    struct by_stream *b = &r->by_stream;

    if (asker_wants_turn(&b->asker)) {
        asker_turn(&b->asker, r->now_us / 1000);
    }
    if (b->took_back) {
        b->took_back = false;
        route_wake_stalled(r);
    }
}

/* ---- streams ---- */

/* Only the incarnation that the ring names is asked: what was sent to the one before it is not over
 * until that ring is adopted. */
static void join(struct router *r, struct peer *peer)
{
    if (!peer->up || !peer->speaks_streams || peer->connection != 0 || peer->incarnation == 0 ||
        peer->incarnation != peer->member_incarnation || peer->incarnation == peer->over) {
        return;
    }
    if (peer->stream == NULL) {
        peer->stream = asker_add(&r->by_stream.asker, peer->incarnation);
        peer->stream->user = peer;
        peer->quiet_us = r->now_us;
    }
    connect(r, peer);
}

void by_stream_up(struct router *r, struct peer *peer)
{
    join(r, peer);
    asker_ring(&r->by_stream.asker, r->by_stream.asker.version); // what waited to know its ways
}

void by_stream_down(struct router *r, struct peer *peer)
{
    if (peer->connection != 0) {
        asker_lost(&r->by_stream.asker, peer->stream, peer->connection);
        peer->connection = 0;
        peer->joins = 0;
    }
}

void by_stream_over(struct router *r, struct peer *peer)
{
    struct by_stream *b = &r->by_stream;
    struct stream_client *c = peer->stream;

    if (c == NULL) {
        return;
    }
    peer->over = c->log.said.to;
    peer->stream = NULL;
    b->silent -= peer->tries > 0;
    peer->tries = 0;
    peer->connection = 0;
    b->dying = peer->over;
    asker_dead(&b->asker, c);
    b->dying = 0;
    asker_remove(&b->asker, c);
}

void by_stream_ring(struct router *r)
{
    for (uint16_t slot = 1; slot <= r->peers.top; slot++) {
        if (r->peers.at[slot] != NULL) {
            join(r, r->peers.at[slot]);
        }
    }
    asker_ring(&r->by_stream.asker, r->view->ring.version);
}

void by_stream_note(struct router *r, const struct peer *peer, struct unanswered_node *note)
{
    size_t count = 0;
    uint32_t *slot = asker_sent(&r->by_stream.asker, peer->stream, &count);

    for (size_t i = 0; i < count && i < NOTED_MAX; i++) {
        const struct inquiry *q = &r->by_stream.inquiry[slot[i]];
        const struct stream_entity e = entity_of(r, slot[i]);

        (void)unanswered_put(note, e.kind, e.id, q->lost ? q->died : 0);
    }
    mem_free(slot);
}

/* ---- frames ---- */

/* Requests of one session that have ended alike, and are counted together: before anything else
 * looks at what is under way. */
struct ended {
    struct stream_client *by;
    struct session *session; /* NULL = there are none, nor of what follows */
    uint64_t origin;
    uint32_t stamp;
    enum reply_code code;
    uint32_t count;
    uint64_t size;              /* bytes that they counted with */
    uint64_t shares;            /* as share_one() has them */
    struct router_effect *next; /* of the step's, which have room for it */
};

/* `number`: of the last answer of them. */
static void count_ended(struct router *r, struct ended *e, uint64_t number)
{
    if (e->count == 0) {
        return;
    }
    client_ran(&r->by_stream.asker, e->by, e->count, number);
    route_count_latency(r, e->stamp, e->code);
    route_count_alike(r, e->count - 1);
    r->out->count += e->count;
    r->size -= e->size;
    r->stats.in_flight -= e->count;
    r->stats.replied += e->count;
    r->by_stream.count -= e->count;
    if (e->origin != 0) {
        share_take(&r->by_origin, e->origin, e->shares);
    }
    ASSERT(e->session->unfinished >= e->count);
    e->session->unfinished -= e->count;
    *e = (struct ended){.by = e->by};
}

__attribute__((always_inline)) static inline bool
ends_alike(const struct ended *e, const struct inquiry *q, enum reply_code code)
{
    return __builtin_expect(q->session == e->session && q->origin == e->origin &&
                                q->stamp == e->stamp && e->code == code,
                            true);
}

/* The next to end does so in another way than those before it, or is another's: they are counted.
 * `number` as in count_ended(). False: its client is gone. */
__attribute__((noinline)) static bool begin_ended(struct router *r, struct ended *e,
                                                  const struct inquiry *q, enum reply_code code,
                                                  uint64_t number)
{
    if (q->session->closed) {
        return false;
    }
    count_ended(r, e, number);
    e->session = q->session;
    e->origin = q->origin;
    e->stamp = q->stamp;
    e->code = code;
    e->next = effects_reserve(r->out, ROUTER_PREFETCH_MAX);
    return true;
}

/* Few have these. Returns the ticket. */
__attribute__((noinline)) static uint64_t end_rare(struct router *r, const struct inquiry *q,
                                                   uint64_t ticket, enum reply_code code)
{
    r->must -= q->must;
    q->session->told -= (q->flags & REQUEST_NO_REPLY) != 0;
    return route_ticket(r, q->flags, ticket, code, q->lost ? 2 : 1);
}

/* As on_reply(), of a request that ran, and what it did stands. */
__attribute__((always_inline)) static inline void end_ran(struct router *r, struct ended *ended,
                                                          const struct stream_slot *s,
                                                          struct inquiry *q, struct bytes body)
{
    struct router_effect *e = ended->next++;

    e->type = ROUTER_REPLY; // which lends its bytes: of the others' fields none is read
    e->common = NULL;
    e->session = ended->session->id;
    e->ticket = s->ticket;
    e->code = ended->code;
    e->flags = q->flags;
    e->lent = body.data; // by a frame, as all answers here
    e->size = body.size;
    if (__builtin_expect(((q->flags & (REQUEST_NO_REPLY | REQUEST_TRACED)) | q->must) != 0,
                         false)) {
        e->ticket = end_rare(r, q, s->ticket, ended->code);
    }
    ended->count++;
    ended->size += q->size;
    if (q->origin != 0) {
        const uint64_t one = share_one(q->size);

        ended->shares += one;
        share_take(&r->by_entity, s->position, one);
    }
    q->session = NULL;
}

/* Any other, of that record. */
__attribute__((noinline)) static enum err take_other(struct router *r, struct peer *peer,
                                                     const struct router_frame *f, uint64_t number,
                                                     struct bytes record)
{
    struct reader in = {.at = record.data, .left = record.size};
    struct stream_answer answer;

    if (stream_answer_get(&in, &answer) != ERR_OK) {
        return ERR_CORRUPT;
    }
    if (answer.code == ANSWER_MOVED) {
        r->stats.moved++;
        if (answer.aux > r->view->ring.version) {
            fetch_want(&r->fetch, answer.aux);
        }
    }
    return asker_answer(&r->by_stream.asker, peer->stream, number, f->head.version, &answer);
}

/* Answers of it, whose memory is asked for together. */
static enum err take_answers(struct router *r, struct peer *peer, struct router_frame *f)
{
    struct stream_asker *a = &r->by_stream.asker;
    struct stream_client *c = peer->stream;
    struct bytes record[ROUTER_PREFETCH_MAX];
    const size_t count = f->left < ROUTER_PREFETCH_MAX ? f->left : ROUTER_PREFETCH_MAX;
    const uint64_t number = f->head.first + (f->frame->count - f->left);
    const bool stands = f->head.version >= r->cold; // it knows each take-over that I know of

    for (size_t i = 0; i < count; i++) {
        if (!stream_answer_skip(&f->records, &record[i])) {
            return ERR_CORRUPT;
        }
        asker_fetch(a, load_u64(record[i].data));
        __builtin_prefetch(&r->by_stream.inquiry[asker_slot(load_u64(record[i].data))], 1);
    }
    struct ended ended = {.by = c};
    const uint32_t place = client_place(c);
    // What was read before the link was lost (R1), and anything while a lane is in trouble, is
    // taken the long way.
    const uint64_t read = number <= c->log.said.ack ? c->log.said.ack - number + 1 : 0;
    size_t steady = stands && a->lanes.count == 0 ? read : count;

    for (size_t i = 0; i < count; i++) {
        const uint64_t rid = load_u64(record[i].data);
        const uint8_t code = stream_answer_code(record[i]);
        const enum reply_code how = code == ANSWER_OK ? REPLY_OK : REPLY_APP_ERROR;
        const struct stream_slot *s = i >= steady ? slot_that_ran(a, place, rid, code) : NULL;
        struct inquiry *q = &r->by_stream.inquiry[asker_slot(rid)];

        if (s != NULL &&
            (ends_alike(&ended, q, how) || begin_ended(r, &ended, q, how, number + i - 1))) {
            const struct bytes body = stream_answer_body(record[i]);

            end_ran(r, &ended, s, q, body);
            r->by_stream.due_ms[asker_slot(rid)] = 0;
            slot_ran(a, c, asker_slot(rid), body.size);
            continue;
        }
        count_ended(r, &ended, number + i - 1);
        if (take_other(r, peer, f, number + i, record[i]) != ERR_OK) {
            return ERR_CORRUPT;
        }
        steady = a->lanes.count == 0 ? steady : count;
    }
    count_ended(r, &ended, number + count - 1);
    f->left -= count;
    return f->left > 0 || f->records.left == 0 ? ERR_OK : ERR_CORRUPT;
}

static enum err take_some(struct router *r, struct peer *peer, struct router_frame *f)
{
    for (size_t i = 0; i < FRAME_ANSWERS && f->left > 0; i += ROUTER_PREFETCH_MAX) {
        if (take_answers(r, peer, f) != ERR_OK) {
            return ERR_CORRUPT;
        }
    }
    if (f->left == 0) {
        route_settle_peer(r, peer);
    }
    return ERR_OK;
}

static enum err on_joined(struct router *r, struct peer *peer, const struct router_frame *f)
{
    const bool gone = (uint8_t)f->frame->type == STREAM_GONE;
    const uint64_t before = peer->connection;
    const enum err e = asker_joined(
        &r->by_stream.asker, peer->stream, before, (enum stream_frame)f->frame->type, &f->head);

    if (e == ERR_OK && gone && !peer->stream->begun) {
        connect(r, peer); // it has forgotten the stream: another one begins
    }
    return e;
}

/* The first part of it. */
static enum err begin(struct router *r, struct peer *peer, struct router_frame *f)
{
    const uint8_t type = (uint8_t)f->frame->type;

    f->begun = true;
    if (stream_head_get(f->frame, &f->head, &f->records) != ERR_OK) {
        return ERR_CORRUPT;
    }
    if (peer == NULL || peer->connection == 0) {
        r->stats.stale_answers += type == STREAM_ANSWER ? f->frame->count : 0;
        return ERR_OK; // of an incarnation that is over
    }
    heard(r, peer);
    if (type == STREAM_JOINED || type == STREAM_GONE) {
        return on_joined(r, peer, f);
    }
    if (type != STREAM_ANSWER) {
        return type == STREAM_ACK ? ERR_OK : ERR_CORRUPT;
    }
    const enum err e = asker_open(peer->stream, peer->connection, &f->head);

    f->left = e == ERR_OK ? f->frame->count : 0;
    if (e == ERR_NOT_FOUND) {
        r->stats.loose_answers += f->frame->count;
        return ERR_OK;
    }
    return e;
}

enum err by_stream_frame(struct router *r, struct router_frame *f)
{
    struct peer *peer = peer_find(&r->peers, f->slot);

    if (!f->begun) {
        const enum err e = begin(r, peer, f);

        if (e != ERR_OK) {
            return e;
        }
    }
    if (f->left == 0) {
        return ERR_OK;
    }
    if (peer == NULL || peer->connection == 0) { // it was let go of between two parts
        r->stats.loose_answers += f->left;
        f->left = 0;
        return ERR_OK;
    }
    return take_some(r, peer, f);
}

struct sendlog *by_stream_unsent(struct router *r, uint16_t *slot)
{
    struct stream_client *c = NULL;

    while ((c = asker_unsent(&r->by_stream.asker)) != NULL) {
        const struct peer *peer = c->user;

        if (c->joined) {
            *slot = peer->slot;
            return &c->log;
        }
    }
    return NULL;
}

/* ---- looking ---- */

size_t by_stream_waiting(const struct router *r)
{
    size_t sent = 0;

    for (uint16_t slot = 1; slot <= r->peers.top; slot++) {
        const struct peer *peer = r->peers.at[slot];

        sent += peer != NULL && peer->stream != NULL ? peer->stream->count : 0;
    }
    return r->by_stream.asker.under_way - sent;
}

uint64_t by_stream_check(const struct router *r)
{
    const struct by_stream *b = &r->by_stream;
    uint64_t all = 0;

    asker_check(&b->asker);
    size_t count = 0;
    for (uint32_t slot = 0; slot < b->cap; slot++) {
        const struct inquiry *q = &b->inquiry[slot];

        ASSERT((q->session != NULL) == (b->due_ms[slot] != 0));
        if (q->session != NULL) {
            ASSERT(is_due(b->next_due_ms, b->due_ms[slot]));
            count++;
            all += q->origin == 0 ? 0 : share_one(q->size);
        }
    }
    ASSERT(count == b->count && b->cap == b->asker.slot_cap);
    return all;
}
