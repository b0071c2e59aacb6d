/* SPDX-License-Identifier: Apache-2.0
 *
 * The router's step: requests and events in, deadlines, and the check of its
 * invariants.
 */
#include "route/router.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "route/router_inside.h"

struct router_config router_config_default(void)
{
    return (struct router_config){
        .threads = 1,
        .deadline_ms = 10000,
        .retry_ms = 1000,
        .silent_ms = 250,
        .overload_ms = 1000,
        .window = 32,
        .in_flight_max = 100000,
        .refresh_ms = 500,
        .peer_size_max = (size_t)16 * 1024 * 1024,
        .waiting_size_max = (size_t)256 * 1024 * 1024,
    };
}

/* ---- requests and sessions ---- */

static void refuse(struct router *r, const struct router_event *event, enum reply_code code)
{
    const uint64_t ticket = route_ticket(r, event->flags, event->ticket, code, 0);
    const struct reply reply = {event->session, ticket, code, event->flags, NULL};

    route_count_latency(r, route_stamp(r, event->kind), code);
    route_put_reply(r, &reply, route_nothing);
}

/* Hole 44: the request of a client that owns its session. True: nothing more is to be done. */
static bool on_resumed(struct router *r, struct session *session, const struct router_event *event)
{
    struct pending *p = route_find(r, session->id, event->seq);

    session->closed = false;
    session->epoch = event->epoch;
    session->base = event->base > session->base ? event->base : session->base;
    if (p == NULL) {
        return false;
    }
    p->epoch = event->epoch;
    route_retarget(r, p, event); // the connection that asked before is gone
    p->doubtful |= event->again; // meanwhile another gateway may have sent it
    r->stats.replied++;
    return true;
}

/* Its bytes; borrowed until the next call. */
static struct bytes body_of(struct router *r, const struct router_event *event)
{
    if (event->command == NULL) {
        return event->body;
    }
    buffer_clear(&r->body);
    args_command_store(buffer_reserve(&r->body, event->body.size), event->command);
    return bytes_of(r->body.data, event->body.size);
}

__attribute__((always_inline)) static inline struct pending *make(struct router *r,
                                                                  const struct router_event *event)
{
    return pending_new(&r->spares,
                       &(struct question){.kind = event->kind,
                                          .id = event->id,
                                          .from = event->from,
                                          .chain = event->chain,
                                          .chain_count = event->chain_count,
                                          .body = body_of(r, event),
                                          .common = event->common});
}

__attribute__((always_inline)) static inline void
take(struct router *r, const struct router_event *event, struct session *session, struct pending *p)
{
    session->unfinished++;
    session->told += (event->flags & REQUEST_NO_REPLY) != 0;
    p->session = session;
    p->epoch = event->epoch;
    p->seq = event->seq != 0 ? event->seq : ++session->seq;
    p->first = event->seq != 0 && event->first == 0 ? 1 : event->first; // 1: older than any ring
    p->doubtful = event->again;
    p->must = event->must;
    p->ticket = event->ticket;
    p->flags = (uint8_t)(event->flags | (event->from != NULL ? REQUEST_CALL : 0));
    p->stamp = route_stamp(r, event->kind);
    table_put(&r->pendings, &p->link, route_hash(session->id, p->seq));
    deadlines_put(&r->deadlines, &p->deadline, r->now_us, route_timeout_ms(r, event->timeout_ms));
    r->size += p->size;
    r->must += p->must;
    r->stats.in_flight++;
    r->stats.waiting++;
}

/* A client has it from the room of all. */
static void hold_share(struct router *r, uint64_t origin, struct pending *p)
{
    p->origin = origin;
    if (origin != 0) {
        const size_t size = p->size;

        share_add(&r->by_entity, p->lane->position, size);
        share_add(&r->by_origin, origin, size);
    }
}

void route_take_back(struct router *r, const struct router_event *event, uint64_t position,
                     uint64_t died)
{
    struct session *session = session_get(&r->sessions, event->session);
    struct pending *p = make(r, event);

    take(r, event, session, p);
    p->died = died;
    p->cold = died != 0 ? r->cold : 0;
    struct lane *lane = lane_add(&r->lanes, session->id, position, p);
    hold_share(r, event->origin, p);
    lane->waiting++;
    if (!lane_is_blocked(lane)) {
        list_push_back(&r->stalled, &lane->stalled);
    }
}

void route_request(struct router *r, const struct router_event *event)
{
    ASSERT(event->id.size >= 1 && event->id.size <= RECORD_ID_MAX);
    ASSERT(event->body.size <= RECORD_BODY_MAX + TRACE_CONTEXT_SIZE);
    ASSERT(event->timeout_ms <= REQUEST_TTL_MAX_MS);
    r->stats.requests++;
    r->asked = 0;
    if (event->chain_count > RECORD_CHAIN_MAX) {
        refuse(r, event, REPLY_REJECTED);
        return;
    }
    if (router_full(r) && !event->must) {
        // What was sent before may have run, whatever happens here.
        refuse(r, event, event->again ? REPLY_UNKNOWN : REPLY_OVERLOADED);
        return;
    }
    struct session *session = session_get(&r->sessions, event->session);

    if (event->seq != 0 && event->epoch < session->epoch) {
        (void)route_ticket(r, event->flags, event->ticket, REPLY_UNKNOWN, 0);
        route_count_reply(r, REPLY_UNKNOWN); // its connection is gone, or told to go
        return;
    }
    if (event->seq != 0 && on_resumed(r, session, event)) {
        return;
    }
    const uint64_t position = route_position(r, event->kind, event->id);

    r->asked = position;
    if (r->config.streams && by_stream_ask(r, event, session, position)) {
        return;
    }
    // What it needs last is asked for first.
    lanes_fetch(&r->lanes, session->id, position);
    __builtin_prefetch(&r->view->ring.cell[ring_point_cell(position)]);
    struct pending *p = make(r, event);
    take(r, event, session, p);
    struct lane *lane = lane_add(&r->lanes, session->id, position, p);
    hold_share(r, event->origin, p);

    lane->waiting++;
    route_push_new(r, lane, p);
}

static inline void on_request(struct router *r, const struct router_event *event)
{
    if (__builtin_expect(event->trace != NULL, false)) {
        route_request_traced(r, event);
    } else {
        route_request(r, event);
    }
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

/* Its client was here when that version was known: what it asked before is tried again now. */
static void on_wanted(struct router *r, const struct router_event *event)
{
    struct peer *peer = peer_find(&r->peers, event->slot);

    if (peer != NULL) {
        fleet_want_link(r, peer);
    }
}

static void on_vouched(struct router *r, const struct router_event *event)
{
    struct session *session = session_find(&r->sessions, event->session);

    if (session != NULL && event->first > session->vouched && event->first <= session->asked) {
        session->vouched = event->first;
    }
}

/* ---- time ---- */

static void expire(struct router *r)
{
    struct deadline *d = NULL;

    while ((d = deadlines_expired(&r->deadlines, r->now_us)) != NULL) {
        struct pending *p = CONTAINER_OF(d, struct pending, deadline);
        const struct peer *owner = route_owner(r, p->lane);
        const bool lacks = owner != NULL && peer_lacks(owner, p->kind);
        const enum reply_code never = lacks ? REPLY_NO_KIND : REPLY_REJECTED;

        const bool unsent = mutant(M_GAVEUP) && p->state == PENDING_WAITING;

        route_finish(r, p, pending_never_ran(p) || unsent ? never : REPLY_TIMEOUT, route_nothing);
    }
}

/* ---- the machine ---- */

struct router *router_new(const struct router_config *config)
{
    ASSERT(config->window > 0 && config->in_flight_max > 0);
    // No copy outlives its request's record at the owner (hole 37).
    ASSERT(config->deadline_ms <= REQUEST_TTL_MAX_MS && config->retry_ms > 0);
    struct router *r = mem_new(1, sizeof *r);

    r->config = *config;
    fleet_set_up(r);
    deadlines_init(&r->deadlines);
    for (size_t i = 0; i < ROUTER_RETRIES; i++) {
        list_init(&r->retry[i]);
    }
    list_init(&r->stalled);
    list_init(&r->fed);
    list_init(&r->silent);
    sessions_init(&r->sessions, config->seed != 0 ? config->seed : config->gateway);
    r->operator_requests_session = sessions_number(&r->sessions, 0);
    by_stream_init(r);
    spans_init(&r->spans, config->tracing, table_mix(r->sessions.seed));
    route_begin_counting(r);
    return r;
}

/* Free a request and nothing but it: everything goes. */
static void drop(struct router *r, struct pending *p)
{
    if (p->slot != RING_NODE_NONE) {
        list_remove(&p->in_flight);
    }
    if (list_linked(&p->in_retry)) {
        list_remove(&p->in_retry);
    }
    p->lane->waiting -= p->state == PENDING_WAITING;
    p->lane->sent -= p->state == PENDING_SENT;
    lane_remove(&r->lanes, p);
    pending_free(&r->spares, p);
}

void router_configure(struct router *r, const struct router_config *config)
{
    by_stream_end_run(&r->by_stream);
    r->config.deadline_ms = config->deadline_ms;
    r->config.in_flight_max = config->in_flight_max;
}

void router_free(struct router *r)
{
    if (r == NULL) {
        return;
    }
    for (size_t i = 0; i < DEADLINE_LISTS; i++) {
        struct list_link *l = NULL;

        while ((l = list_pop_front(&r->deadlines.list[i])) != NULL) {
            drop(r, CONTAINER_OF(l, struct pending, deadline.in));
        }
    }
    by_stream_fini(r);
    peers_fini(&r->peers);
    unanswered_fini(&r->unanswered);
    lanes_fini(&r->lanes);
    pending_spares_fini(&r->spares);
    sessions_fini(&r->sessions);
    table_fini(&r->pendings);
    view_fini(&r->own);
    buffer_fini(&r->body);
    spans_fini(&r->spans);
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
        route_on_answer(r,
                        event->slot,
                        event->answer,
                        route_find(r, event->answer->session, event->answer->seq));
        break;
    case ROUTER_NODE_UP:
        fleet_on_node_up(r, event);
        break;
    case ROUTER_NODE_DOWN:
        fleet_on_node_down(r, event);
        break;
    case ROUTER_COORDINATOR_UP:
        fetch_on_up(&r->fetch, event->coordinator);
        break;
    case ROUTER_COORDINATOR_DOWN:
        fetch_on_down(&r->fetch, event->coordinator);
        break;
    case ROUTER_CONTROL:
        fleet_on_control(r, event);
        break;
    case ROUTER_VIEW:
        fleet_on_view(r, event);
        break;
    case ROUTER_VOUCHED:
        on_vouched(r, event);
        break;
    case ROUTER_WANTED:
        on_wanted(r, event);
        break;
    }
}

__attribute__((always_inline)) static inline void check_counts(const struct router *r)
{
    ASSERT(r->stats.in_flight == r->pendings.count + r->by_stream.count);
    ASSERT(r->stats.waiting <= r->stats.in_flight);
    ASSERT(r->stats.requests == r->stats.replied + r->stats.in_flight); // I12
    ASSERT(r->lanes.table.count <= r->pendings.count);
    ASSERT(IMPLIES(r->stats.in_flight == 0, r->size == 0 && r->must == 0));
}

static void pass_time(struct router *r)
{
    route_end_counting(r);
    r->timed_us = r->now_us;
    route_begin_counting(r);
    if (__builtin_expect(!r->tells_bare, false) && r->bare_us != 0 && r->now_us >= r->bare_us) {
        fleet_tell_bare(r);
    }
    expire(r);
    route_wake_rested(r);
    route_retry(r);
    route_probe_silent(r);
    by_stream_pass_time(r);
}

/* Time goes on: what was due until then is done first. Returns true if it has. */
bool route_begin(struct router *r, uint64_t now_us, struct router_effects *out)
{
    if (!r->started) {
        timer_wheel_init(&r->timer_wheel, now_us);
        r->started = true;
    }
    ASSERT(now_us >= r->now_us);
    r->now_us = now_us;
    r->out = out;
    by_stream_end_run(&r->by_stream);
    route_follow_key(r);
    if (r->now_us == r->timed_us) {
        return false; // nothing more is due: each of them waits for some time
    }
    pass_time(r);
    return true;
}

void route_end(struct router *r)
{
    if (by_stream_wants_end(&r->by_stream)) {
        by_stream_end(r);
    }
    if (!list_empty(&r->fed)) {
        route_feed(r);
    }
    if (fetch_is_due(&r->fetch, r->now_us, r->view->ring.version)) {
        fleet_ask_config(r);
    }
    route_end_counting(r);
    check_counts(r);
    r->out = NULL;
}

void router_step(struct router *r, const struct router_event *event, struct router_effects *out)
{
    (void)route_begin(r, event->now_us, out);
    dispatch(r, event);
    route_end(r);
}

void router_ask(struct router *r, const struct router_event *event, struct router_effects *out)
{
    const bool later = route_begin(r, event->now_us, out);

    on_request(r, event);
    // Most often it is one of many, and has changed nothing that the last step saw to.
    if (later || by_stream_wants_end(&r->by_stream) || !list_empty(&r->fed)) {
        route_end(r);
    }
    r->out = NULL;
}

void route_request_plain(struct router *r, const struct router_plain *q)
{
    const struct router_event event = {.type = ROUTER_REQUEST,
                                       .now_us = q->now_us,
                                       .session = q->session,
                                       .origin = q->origin,
                                       .ticket = q->ticket,
                                       .timeout_ms = q->timeout_ms,
                                       .kind = q->kind,
                                       .flags = q->flags,
                                       .must = q->must,
                                       .id = q->id,
                                       .body = q->body,
                                       .command = q->command};

    route_request(r, &event);
}

void router_answer(struct router *r, const struct router_answers *a, struct router_effects *out)
{
    (void)route_begin(r, a->now_us, out);
    r->lends = true;
    route_on_answers(r, a);
    r->lends = false;
    route_end(r);
}

enum err router_frame(struct router *r, struct router_frame *f, struct router_effects *out)
{
    (void)route_begin(r, f->now_us, out);
    r->lends = true;
    const enum err e = by_stream_frame(r, f);
    r->stats.bad_streams += e != ERR_OK;
    r->lends = false;
    route_end(r);
    return e;
}

struct sendlog *router_unsent(struct router *r, uint16_t *slot)
{
    return by_stream_unsent(r, slot);
}

struct sendlog *router_log(struct router *r, uint16_t slot)
{
    const struct peer *peer = peer_find(&r->peers, slot);
    const bool joined = peer != NULL && peer->stream != NULL && peer->stream->joined;

    return joined ? &peer->stream->log : NULL;
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
        ASSERT(list_linked(&p->in_retry) == (p->state == PENDING_SENT) || mutant(M_NORETRY));
        seq = p->seq;
        sent += p->state == PENDING_SENT;
        waiting += p->state == PENDING_WAITING;
    }
    ASSERT(sent + waiting > 0);
    ASSERT(lane->sent == sent && lane->waiting == waiting);
    ASSERT(sent <= r->config.window);
    if (r->view->ring.version != 0) {
        const struct bytes id = pending_id(lane_front(lane));

        ASSERT(view_at(r->view, lane->kind, lane->position, id) ==
               view_lookup(r->view, lane->kind, id));
    }
    // Whoever waits is woken by something.
    ASSERT(IMPLIES(waiting > 0, lane_is_blocked(lane) || sent == r->config.window));
}

static void check_peer(const struct peer *peer, const struct router *r)
{
    size_t size = 0;

    for (struct list_link *l = list_front(&peer->in_flight); l != NULL;
         l = list_next(&peer->in_flight, l)) {
        const struct pending *p = CONTAINER_OF(l, struct pending, in_flight);

        ASSERT(p->slot == peer->slot && p->state == PENDING_SENT);
        size += p->charged;
    }
    ASSERT(size == peer->size);
    ASSERT(IMPLIES(!list_empty(&peer->stalled),
                   size >= r->config.peer_size_max || list_linked(&peer->silent)));
}

/* What is counted for clients is what they have under way. */
static void check_share(const struct share *s, uint64_t all)
{
    uint64_t low = 0;
    uint64_t high = 0;

    for (size_t i = 0; i < SHARE_CELLS; i++) {
        low += s->low[i];
        high += s->high[i];
    }
    ASSERT((low == all && high == all) || mutant(M_UNCOUNTED));
}

static void check_shares(const struct router *r)
{
    uint64_t all = 0;
    struct table_walk at = {0};

    for (struct table_link *l = table_walk(&r->pendings, &at); l != NULL;
         l = table_walk(&r->pendings, &at)) {
        const struct pending *p = CONTAINER_OF(l, struct pending, link);

        all += p->origin == 0 ? 0 : share_one(p->size);
    }
    all += by_stream_check(r);
    check_share(&r->by_entity, all);
    check_share(&r->by_origin, all);
}

void router_check(const struct router *r)
{
    struct table_walk at = {0};

    check_counts(r);
    for (uint16_t slot = 1; slot <= r->peers.top; slot++) {
        if (r->peers.at[slot] != NULL) {
            check_peer(r->peers.at[slot], r);
        }
    }
    for (struct table_link *l = table_walk(&r->lanes.table, &at); l != NULL;
         l = table_walk(&r->lanes.table, &at)) {
        check_lane(CONTAINER_OF(l, struct lane, link), r);
    }
    ASSERT(deadlines_check(&r->deadlines) == r->pendings.count);
    check_shares(r);
}

uint64_t router_session(struct router *r)
{
    return sessions_draw(&r->sessions);
}

uint64_t router_session_of(const struct router *r, uint64_t number)
{
    return sessions_number(&r->sessions, number);
}

uint64_t router_seq(struct router *r, uint64_t session)
{
    const struct session *s = session_find(&r->sessions, session);

    return s == NULL ? 0 : s->seq;
}

uint64_t router_point(struct router *r, uint16_t kind, struct bytes id)
{
    route_follow_key(r);
    return ring_point_at(&r->view->ring, kind, route_position(r, kind, id), id);
}

bool router_tells(struct router *r, uint64_t session)
{
    const struct session *s = session_find(&r->sessions, session);

    return s != NULL && s->told > 0;
}

bool router_has(const struct router *r, size_t part)
{
    return r->stats.in_flight >= r->config.in_flight_max / part ||
           r->size >= r->config.waiting_size_max / part;
}

bool router_rests(const struct router *r)
{
    return r->stats.in_flight == 0;
}

uint64_t router_rests_until_us(const struct router *r)
{
    return router_rests(r) ? fetch_due_us(&r->fetch, r->view->ring.version) : 0;
}

bool router_full(const struct router *r)
{
    return route_is_full(r);
}

size_t router_room(const struct router *r, size_t size)
{
    enum { EACH = 512 }; // what a request counts with beside its bytes, and some more
    const struct router_config *config = &r->config;

    if (route_is_full(r)) {
        return 0;
    }
    const uint64_t count = config->in_flight_max - r->stats.in_flight;
    const uint64_t bytes = config->waiting_size_max - r->size;
    const uint64_t some = bytes > size ? (bytes - size) / EACH : 0;

    return some < 1 ? 1 : some < count ? some : count;
}

uint64_t router_id(const struct router *r)
{
    return r->config.gateway;
}

const struct unanswered *router_unanswered(const struct router *r)
{
    return &r->unanswered;
}

uint64_t router_asked(const struct router *r)
{
    return r->asked;
}

/* Of requests, and of their bytes. */
static bool is_over(const struct router *r, const struct share_held *held,
                    const struct share_rule *count, const struct share_rule *size)
{
    return held->count > share_allowed(count, r->config.in_flight_max, r->stats.in_flight) ||
           held->size > share_allowed(size, r->config.waiting_size_max, r->size);
}

/* Who is known is one player. Of whom many may ask all requests go to one node, of whose room
 * (peer_size_max) it may have half. */
static enum router_share share_of_asker(const struct router *r, const struct router_asker *a)
{
    const uint32_t parts = a->known ? 8 : 1;
    const struct share_rule one = {1, parts, SHARE_COUNT, a->known ? SHARE_KNOWN : 0};
    const struct share_rule one_size = {
        1, parts, SHARE_SIZE, r->config.peer_size_max / (a->known ? 8 : 2)};
    const struct share_rule some = {8, 1, SHARE_COUNT, 0};
    const struct share_rule some_size = {8, 1, SHARE_SIZE, 0};
    const struct share_held entity = share_of(&r->by_entity, a->asked);
    const struct share_held origin = share_of(&r->by_origin, a->origin);

    if (a->asked != 0 && is_over(r, &entity, &one, &one_size)) {
        return ROUTER_SHARE_ENTITY;
    }
    return is_over(r, &origin, &some, &some_size) ? ROUTER_SHARE_ORIGIN : ROUTER_SHARE_FAIR;
}

enum router_share router_share(const struct router *r, const struct router_asker *a)
{
    return route_holds_little(r, a->known) || a->origin == 0 ? ROUTER_SHARE_FAIR
                                                             : share_of_asker(r, a);
}

const struct view *router_view(const struct router *r)
{
    return r->view;
}

void router_stats(const struct router *r, struct router_stats *out)
{
    *out = r->stats;
    out->waiting += by_stream_waiting(r);
    out->late_answers += r->by_stream.asker.late;
    out->version = r->view->ring.version;
    out->digest[0] = r->view->ring.digest[0];
    out->digest[1] = r->view->ring.digest[1];
}
