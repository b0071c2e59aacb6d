/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that go by streams: taken, answered, given up; and the streams of peers.
 */
#include "route/by_stream.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "route/router_inside.h"
#include "stream/steady.h"

enum {
    FRAME_ANSWERS = 64,   /* of a frame at once: then their replies go out of the cache */
    INQUIRY_MEMORY = 192, /* of a request, beside its record */
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

static struct inquiry *inquiry_of(uint64_t ticket)
{
    return (struct inquiry *)(uintptr_t)ticket; // NOLINT: the asker's word for it
}

/* What a request under way is for. */
static struct stream_entity entity_of(const struct router *r, const struct inquiry *q)
{
    const struct stream_asker *a = &r->by_stream.asker;

    return asker_entity(a, asker_rid(a, q->slot));
}

/* ---- requests under way ---- */

/* Its first line is to be filled in. */
__attribute__((always_inline)) static inline struct inquiry *inquiry_new(struct by_stream *b)
{
    struct inquiry *q = b->spare;

    if (__builtin_expect(q == NULL, false)) {
        q = mem_lines(sizeof *q);
        *q = (struct inquiry){0};
    } else {
        b->spare = q->next;
        b->spare_count--;
        if (b->spare != NULL) {
            __builtin_prefetch(b->spare, 1);
        }
    }
    return q;
}

static void inquiry_free(struct by_stream *b, struct inquiry *q)
{
#ifdef MEM_IS_CHECKED
    mem_free(q);
    (void)b;
#else
    if (b->spare_count >= INQUIRY_SPARE_MAX) {
        mem_free(q);
        return;
    }
    q->next = b->spare;
    b->spare = q;
    b->spare_count++;
#endif
}

__attribute__((always_inline)) static inline void hold(struct router *r, const struct inquiry *q,
                                                       uint64_t position)
{
    r->size += q->size;
    r->must += q->must;
    r->stats.in_flight++;
    r->by_stream.count++;
    q->session->unfinished++;
    q->session->told += (q->flags & REQUEST_NO_REPLY) != 0;
    if (q->origin != 0) {
        share_add(&r->by_entity, position, q->size);
        share_add(&r->by_origin, q->origin, q->size);
    }
}

/* It is nobody's any more, but for its memory. */
__attribute__((always_inline)) static inline void let_go(struct router *r, struct inquiry *q,
                                                         uint64_t position)
{
    r->size -= q->size;
    r->must -= q->must;
    r->stats.in_flight--;
    r->by_stream.count--;
    q->session->told -= (q->flags & REQUEST_NO_REPLY) != 0;
    if (q->origin != 0) {
        share_sub(&r->by_entity, position, q->size);
        share_sub(&r->by_origin, q->origin, q->size);
    }
    list_remove(&q->deadline.in);
}

__attribute__((always_inline)) static inline void forget(struct router *r, struct inquiry *q,
                                                         uint64_t position)
{
    struct session *session = q->session;

    let_go(r, q, position);
    session_done(&r->sessions, session);
    inquiry_free(&r->by_stream, q);
}

/* Returns what the asker wants to hear: it is over. */
static uint32_t finish(struct router *r, struct inquiry *q, uint64_t position, enum reply_code code,
                       struct bytes body)
{
    struct session *session = q->session;

    route_count_latency(r, q->stamp, code);
    if (__builtin_expect(session->closed, false)) {
        route_count_reply(r, code);
    } else {
        const struct reply reply = {session->id, q->ticket, code, q->flags, NULL};

        route_put_reply(r, &reply, body);
    }
    forget(r, q, position);
    return 0;
}

/* ---- what the asker asks ---- */

__attribute__((always_inline)) static inline struct stream_client *
stream_of(const struct router *r, const struct stream_entity *e)
{
    const struct peer *peer = route_peer_of(r, e->position, e->kind, e->id);

    return peer == NULL || peer_lacks(peer, e->kind) ? NULL : peer->stream;
}

static struct stream_client *on_owner(void *context, const struct stream_entity *e)
{
    const struct router *r = context;

    return stream_of(r, e);
}

static uint32_t on_left(void *context, uint64_t ticket)
{
    const struct router *r = context;
    const uint64_t until_us = inquiry_of(ticket)->deadline.at_us;

    return until_us <= r->now_us ? 0 : (uint32_t)((until_us - r->now_us + 999) / 1000);
}

/* Its time is over. True: it has some anew. */
static bool renew(struct router *r, struct inquiry *q)
{
    if (!route_asks_anew(r, q->must)) {
        return false;
    }
    list_remove(&q->deadline.in);
    deadlines_put(&r->by_stream.deadlines, &q->deadline, r->now_us, REQUEST_TTL_MAX_MS);
    q->stamp = latency_stamp(r->now_us, latency_stamp_row(q->stamp));
    return true;
}

static uint32_t on_expired(struct router *r, struct inquiry *q, const struct stream_reply *reply)
{
    const enum reply_code code = reply->maybe ? REPLY_TIMEOUT : REPLY_REJECTED;

    return renew(r, q) ? 1 : finish(r, q, reply->position, code, route_nothing);
}

/* The node has no room. For a while it is waited for; then the client is told. */
static uint32_t on_overload(struct router *r, struct inquiry *q, const struct stream_reply *reply)
{
    const uint64_t ms = reply->answer->aux > 0 ? reply->answer->aux : 1;

    q->overload_us = q->overloaded ? q->overload_us : r->now_us;
    q->overloaded = true;
    if (!reply->maybe && !q->must &&
        r->now_us - q->overload_us >= (uint64_t)r->config.overload_ms * 1000) {
        return finish(r, q, reply->position, REPLY_OVERLOADED, route_nothing);
    }
    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

/* It did not run this time. Before, if it was asked by a stream that is dead, it may have. */
static uint32_t on_never(struct router *r, struct inquiry *q, const struct stream_reply *reply,
                         enum reply_code code)
{
    return finish(r, q, reply->position, reply->maybe ? REPLY_UNKNOWN : code, route_nothing);
}

/* No node runs it, and why: enum no_kind. */
static uint32_t on_nobody(struct router *r, struct inquiry *q, const struct stream_reply *reply)
{
    const struct stream_entity e = entity_of(r, q);
    const struct peer *owner = route_peer_of(r, e.position, e.kind, e.id);

    if (reply->answer->aux == NO_KIND_QUARANTINED) {
        return on_never(r, q, reply, REPLY_QUARANTINED); // until an operator says so
    }
    if (reply->answer->aux == NO_KIND_DEADLOCK) {
        return on_never(r, q, reply, REPLY_DEADLOCK);
    }
    // Its actor sleeps, so there is nobody to tell, whatever an earlier copy met.
    const bool asleep = (q->flags & REQUEST_AWAKE) != 0 && !mutant(M_SLEEPERASKED);

    if ((reply->maybe && !asleep) || (owner != NULL && peer_lacks(owner, e.kind))) {
        return OWNER_LACKS_MS; // it was sent by an older ring
    }
    return finish(r, q, reply->position, REPLY_NO_KIND, route_nothing);
}

/* It may have run: its next owner is asked whether it did, if that can know. Of two that died with
 * it it may be what killed both: no third is asked. */
static uint32_t on_doubt(struct router *r, struct inquiry *q, const struct stream_reply *reply)
{
    if (q->lost && !mutant(M_THIRDDEATH)) {
        return finish(r, q, reply->position, REPLY_UNKNOWN, route_nothing);
    }
    q->lost = true;
    q->died = r->by_stream.dying;
    return 1;
}

/* What it did is gone: its owner was fenced, and its actor may be an older one (hole 63). */
static bool is_stale(struct router *r, const struct inquiry *q, const struct stream_reply *reply)
{
    if (reply->version >= r->cold) {
        return false; // it knows of every take-over that I know of
    }
    const struct stream_entity e = entity_of(r, q);
    const ring_hit hit = view_at(r->view, e.kind, e.position, e.id);

    return route_is_stale(
        r, ring_find(&r->view->ring, ring_hit_vnode(hit)), reply->answer->token, reply->version);
}

static uint32_t on_ran(struct router *r, struct inquiry *q, const struct stream_reply *reply)
{
    const bool ok = reply->answer->code == ANSWER_OK;

    if (__builtin_expect(is_stale(r, q, reply), false)) {
        r->stats.stale_answers++;
        return 1; // It did run: whatever comes, it is not REJECTED.
    }
    return finish(r, q, reply->position, ok ? REPLY_OK : REPLY_APP_ERROR, reply->answer->body);
}

static uint32_t on_reply(void *context, const struct stream_reply *reply)
{
    struct router *r = context;
    struct inquiry *q = inquiry_of(reply->ticket);

    switch (reply->answer->code) {
    case ANSWER_OK:
    case ANSWER_APP_ERROR:
        return on_ran(r, q, reply);
    case ANSWER_OVERLOAD:
        return on_overload(r, q, reply);
    case ANSWER_EXPIRED:
        return on_expired(r, q, reply);
    case ANSWER_NO_KIND:
        return on_nobody(r, q, reply);
    case ANSWER_LOST:
        return finish(r, q, reply->position, REPLY_UNKNOWN, route_nothing);
    default: // UNKNOWN; COLD is of no stream
        return on_doubt(r, q, reply);
    }
}

/* Its owner's link speaks no streams: it waits as a record. */
static bool on_elsewhere(void *context, const struct stream_reply *reply,
                         const struct stream_request *request)
{
    struct router *r = context;
    struct inquiry *q = inquiry_of(reply->ticket);
    const struct peer *owner = route_peer_of(r, reply->position, request->kind, request->id);

    if (owner == NULL || !peer_takes_requests(owner) || owner->speaks_streams) {
        return false;
    }
    if (reply->maybe && (q->flags & REQUEST_IDEMPOTENT) == 0) { // which it would run
        (void)finish(r, q, reply->position, REPLY_UNKNOWN, route_nothing);
        return true;
    }
    const uint32_t left_ms = on_left(r, reply->ticket);
    const struct router_event event = {.session = q->session->id,
                                       .origin = q->origin,
                                       .ticket = q->ticket,
                                       .kind = request->kind,
                                       .flags = q->flags,
                                       .again = reply->maybe,
                                       .must = q->must,
                                       .id = request->id,
                                       .body = request->body,
                                       .timeout_ms = left_ms > 0 ? left_ms : 1};
    route_take_back(r, &event, reply->position, q->lost ? q->died : 0);
    let_go(r, q, reply->position);
    session_done(&r->sessions, q->session);
    inquiry_free(&r->by_stream, q);
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
    deadlines_init(&b->deadlines);
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

    for (size_t i = 0; i < DEADLINE_LISTS; i++) {
        while ((l = list_pop_front(&b->deadlines.list[i])) != NULL) {
            mem_free(CONTAINER_OF(l, struct inquiry, deadline.in));
        }
    }
    while (b->spare != NULL) {
        struct inquiry *q = b->spare;

        b->spare = q->next;
        mem_free(q);
    }
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
__attribute__((always_inline)) static inline bool
ask(struct router *r, const struct router_plain *p, struct session *session, uint64_t position)
{
    struct by_stream *b = &r->by_stream;
    const struct stream_entity e = {position, p->kind, p->id};
    struct stream_client *to = stream_of(r, &e);
    // What waits in its lane goes first, wherever its owner is.
    const bool taken = to != NULL ? !keeps_to_records(r, session->id, position)
                                  : asker_has_lane(&b->asker, session->id, position);
    if (!taken) {
        return false;
    }
    const uint32_t timeout_ms = route_timeout_ms(r, p->timeout_ms);
    const struct stream_plain request = {.session = session->id,
                                         .ttl_ms = timeout_ms,
                                         .kind = p->kind,
                                         .flags = p->flags,
                                         .id = p->id,
                                         .body = p->body,
                                         .command = p->command};
    struct inquiry *q = inquiry_new(b);
    q->session = session;
    q->ticket = p->ticket;
    q->origin = p->origin;
    q->flags = p->flags;
    q->must = p->must;
    q->lost = q->overloaded = false;
    q->stamp = route_stamp(r, p->kind);
    q->size = (uint32_t)(INQUIRY_MEMORY + stream_plain_size(&request));
    deadlines_put(&b->deadlines, &q->deadline, r->now_us, timeout_ms);
    hold(r, q, position);
    q->slot =
        asker_slot(asker_ask_plain(&b->asker, to, &request, position, (uint64_t)(uintptr_t)q));
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

/* The short way of a client's request. False: nothing was changed, route_request() is to take it.
 */
__attribute__((always_inline)) static inline bool ask_plain(struct router *r,
                                                            const struct router_plain *q)
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

bool router_ask_plain(struct router *r, const struct router_plain *q, struct router_effects *out)
{
    const bool later = !route_has_begun(r, q->now_us) && route_begin(r, q->now_us, out);

    ASSERT(q->timeout_ms <= REQUEST_TTL_MAX_MS);
    route_tell(r, out);
    if (!ask_plain(r, q)) {
        route_request_plain(r, q);
    }
    // Most often it is one of many, and has changed nothing that the last step saw to.
    if (later || by_stream_wants_end(&r->by_stream) || !list_empty(&r->fed)) {
        route_end(r);
    }
    route_tell(r, NULL);
    return route_holds_little(r, q->known);
}

/* ---- time ---- */

static void expire(struct router *r)
{
    struct by_stream *b = &r->by_stream;
    struct deadline *d = NULL;

    while ((d = deadlines_expired(&b->deadlines, r->now_us)) != NULL) {
        struct inquiry *q = CONTAINER_OF(d, struct inquiry, deadline);

        if (renew(r, q)) {
            continue;
        }
        const struct stream_entity e = entity_of(r, q);
        const struct peer *owner = route_peer_of(r, e.position, e.kind, e.id);
        const bool lacks = owner != NULL && peer_takes_requests(owner) && peer_lacks(owner, e.kind);
        const enum reply_code never = lacks ? REPLY_NO_KIND : REPLY_REJECTED;
        const bool maybe = asker_give_up(&b->asker, asker_rid(&b->asker, q->slot));

        (void)finish(r, q, e.position, maybe ? REPLY_TIMEOUT : never, route_nothing);
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
    uint64_t *ticket = asker_sent(&r->by_stream.asker, peer->stream, &count);

    for (size_t i = 0; i < count && i < NOTED_MAX; i++) {
        const struct inquiry *q = inquiry_of(ticket[i]);
        const struct stream_entity e = entity_of(r, q);

        (void)unanswered_put(note, e.kind, e.id, q->lost ? q->died : 0);
    }
    mem_free(ticket);
}

/* ---- frames ---- */

/* As on_reply(), of a request that ran and what it did stands. */
__attribute__((always_inline)) static inline void
end_ran(struct router *r, const struct stream_slot *s, uint8_t ran, struct bytes body)
{
    const enum reply_code code = ran == ANSWER_OK ? REPLY_OK : REPLY_APP_ERROR;
    struct inquiry *q = inquiry_of(s->ticket);
    const struct session *session = q->session;

    route_count_latency(r, q->stamp, code);
    if (__builtin_expect(session->closed, false)) {
        route_count_reply(r, code);
    } else {
        struct router_effect *e = effects_add_reply(r->out);

        r->stats.replied++;
        e->session = session->id;
        e->ticket = q->ticket;
        e->code = code;
        e->flags = q->flags;
        e->lent = body.data; // by a frame, as all answers here
        e->size = body.size;
    }
    forget(r, q, s->position);
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
    }
    for (size_t i = 0; i < count; i++) {
        __builtin_prefetch(inquiry_of(asker_ticket(a, load_u64(record[i].data))), 1);
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t code = stream_answer_code(record[i]);
        struct stream_slot *s = slot_that_ran(a, c, number + i, load_u64(record[i].data), code);

        if (s != NULL && stands) {
            const struct bytes body = stream_answer_body(record[i]);

            end_ran(r, s, code, body);
            slot_ran(a, c, s, number + i, body.size);
        } else if (take_other(r, peer, f, number + i, record[i]) != ERR_OK) {
            return ERR_CORRUPT;
        }
    }
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
    ASSERT(deadlines_check(&b->deadlines) == b->count);
    for (size_t i = 0; i < DEADLINE_LISTS; i++) {
        const struct list *list = &b->deadlines.list[i];

        for (struct list_link *l = list_front(list); l != NULL; l = list_next(list, l)) {
            const struct inquiry *q = CONTAINER_OF(l, struct inquiry, deadline.in);

            all += q->origin == 0 ? 0 : share_one(q->size);
        }
    }
    return all;
}
