/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that come by streams: admitted, ended, and the streams of peers.
 */
#include "node/host/streams.h"

#include "base/mem.h"
#include "base/mutant.h"
#include "node/host/inside.h"

#include <string.h>

enum { MS = 1000 };

static void on_lost(void *context, uint64_t connection, enum err why);

/* ---- requests ---- */

/* Most of a frame are of one kind. It is found again when they are taken, some at a time. */
static inline const struct kind_state *kind_of(struct host *h, const struct stream_request *r)
{
    if (h->streams.kind == NULL || h->streams.kind->kind != r->kind) {
        h->streams.kind = host_kind_find(h, r->kind);
    }
    return h->streams.kind;
}

/* Its asker says where its id is, which holds if an actor of that id stands there: its record was
 * put there by its own hash. Where there are segments, an id may have been elsewhere before. */
static inline bool may_be_told(const struct host *h)
{
    return h->topology.view.ring.segment_count == 0;
}
static inline bool is_told(const struct host *h, const struct stream_request *r)
{
    return r->hash != 0 && may_be_told(h);
}

static uint64_t position_of(struct host *h, const struct stream_request *r)
{
    const struct kind_state *kind = kind_of(h, r);

    return kind == NULL
               ? host_position(h, r->kind, r->id)
               : ring_point_at(
                     &h->topology.view.ring, r->kind, ring_position(kind->key, r->id), r->id);
}

static inline void locate(struct host *h, struct some_taken *t)
{
    const struct stream_request *r = t->some->request;
    const size_t count = t->some->count;
    const struct ring *ring = &h->topology.view.ring;
    const bool told = may_be_told(h);

    for (size_t i = 0; i < count; i++) {
        t->position[i] = __builtin_expect(told && r[i].hash != 0, true)
                             ? ring_point_at(ring, r[i].kind, r[i].hash, r[i].id)
                             : position_of(h, &r[i]);
    }
}

/* The same as a record: its name stands where no stream needs a record's. What else no stream needs
 * is 0. */
static struct request_record record_of(const struct stream_taken *t)
{
    const struct stream_request *r = t->request;
    const struct request_name name = server_name(&t->by->stream, r);
    struct request_record record = {.gateway = t->by->stream.log.said.to,
                                    .session = r->session,
                                    .seq = name.number,
                                    .first = name.asker,
                                    .again = r->again,
                                    .version = t->version,
                                    .ttl_ms = r->ttl_ms,
                                    .kind = r->kind,
                                    .hops = r->hops,
                                    .flags = r->flags,
                                    .chain_count = (uint8_t)(r->chain.size / sizeof(uint64_t)),
                                    .id = r->id,
                                    .body = r->body};

    for (size_t i = 0; i < record.chain_count; i++) {
        record.chain[i] = load_u64(r->chain.data + i * sizeof(uint64_t));
    }
    return record;
}

struct admission streams_admission(const struct host *h, const struct stream_taken *t,
                                   struct request_record *record)
{
    const uint32_t given_ms =
        t->request->ttl_ms < ROOM_TTL_MAX_MS ? t->request->ttl_ms : ROOM_TTL_MAX_MS;
    const uint64_t ttl_ms = given_ms > t->waited_ms ? given_ms - t->waited_ms : 0;

    *record = record_of(t);
    record->ttl_ms = (uint32_t)ttl_ms;
    return (struct admission){.r = record,
                              .peer = t->by->stream.connection,
                              .deadline_us = h->now_us + ttl_ms * MS,
                              .mark = {.by = t->by, .rid = t->request->rid, .ack = t->ack},
                              .position = t->position};
}

/* R18: its asker reads too little. True: it has been refused. */
static bool has_no_room(struct host *h, struct admission *in)
{
    const bool full = servers_is_full(&h->streams.servers, in->mark.by);

    if (full) {
        requests_drop(&h->requests, DROPPED_OVERFLOW);
        admit_refuse(h, in, ANSWER_OVERLOAD, BUSY_RETRY_MS);
    }
    return full;
}

/* It was taken, so it gets its entry, whatever it is (R6). True: it has it. */
static bool is_turned_away(struct host *h, const struct stream_taken *t, struct admission *in)
{
    const struct neighbour *n = neighbour_by_link(&h->links.neighbours, t->by->stream.connection);

    if (n == NULL || n->standing != STANDING_KNOWN) { // its link is about to end
        admit_refuse(h, in, ANSWER_BUSY, BUSY_RETRY_MS);
        return true;
    }
    // The sessions that clients own have a record of order, and are asked for by records.
    if (t->request->owned.seq != 0 || !identity_takes_note(h, n, in->r) ||
        !identity_takes_name(h, n, t->request)) {
        admit_refuse(h, in, ANSWER_NO_KIND, NO_KIND_UNKNOWN);
        return true;
    }
    return has_no_room(h, in);
}

/* A frame may take as long as a lease's last part: then nothing more of it begins at once. */
__attribute__((noinline)) static void look_at_clock(struct host *h)
{
    const struct host_server *server = h->streams.server;
    const uint64_t now_us = server->now_us(server->context);

    h->streams.unlooked = 0;
    host_served(h, now_us);
    if (now_us >= host_verb_limit_us(h, VERB_RUN) || now_us >= host_gate_us(h)) {
        h->streams.server = NULL;
    }
}

__attribute__((noinline)) static void admit_taken(struct host *h, struct some_taken *some, size_t i)
{
    const struct stream_taken t = servers_taken(some->some, i, some->position[i]);
    struct request_record record;
    struct admission in = streams_admission(h, &t, &record);

    memset(some->found, 0, sizeof some->found);         // what it leads to may end one of them
    if (is_told(h, t.request) && !mutant(M_TOLDHASH)) { // no actor of it stands there, or not idle
        in.position = host_position(h, t.request->kind, t.request->id);
        if (server_is_behind(&t.by->stream, t.request->rid, in.position, t.ack)) {
            return; // its place got it past that
        }
    }
    requests_accept(&h->requests);
    if (!is_turned_away(h, &t, &in)) {
        admit_again(h, &in);
    }
}

static inline void fetch(const struct host *h, struct some_taken *t)
{
    const struct host_server *server = h->streams.server;

    if (h->membership.life == LIFE_SERVING) {
        prefetch_taken(
            h, t->position, t->some->count, server == NULL ? NULL : server->fetch, t->found);
    } else {
        memset(t->found, 0, sizeof t->found);
    }
}

static void on_take(void *context, const struct stream_some *some)
{
    enum { A_LOOK = 32 }; // requests
    struct host *h = context;
    struct some_taken t;

    t.some = some;
    t.run.message.chain_count = 0;
    locate(h, &t);
    fetch(h, &t);
    h->streams.unlooked += (unsigned)some->count;
    if (h->streams.server != NULL && h->streams.unlooked >= A_LOOK) {
        look_at_clock(h);
    }
    for (size_t i = 0; i < some->count; i++) {
        if (servers_take(some, i, t.position[i]) &&
            (h->streams.server == NULL || !serve_taken(h, &t, i, kind_of(h, &some->request[i])))) {
            admit_taken(h, &t, i);
        }
    }
}

bool streams_may_go_on(struct host *h, struct admission *in, uint64_t position, bool mine)
{
    struct stream_server *s = &in->mark.by->stream;

    in->follows = false;
    switch (server_judge(s, in->mark.rid, position, in->mark.ack)) {
    case SERVER_RUN:
        return true;
    case SERVER_DROP:
        requests_drop(&h->requests, DROPPED_ABANDONED);
        admit_refuse(h, in, ANSWER_BUSY, 0); // which nobody hears
        return false;
    case SERVER_BEHIND:
        servers_feed(&h->streams.servers, in->mark.by);
        admit_done(h, in);
        return false;
    case SERVER_FOLLOWS: // it goes the same way, or nowhere
        in->follows = true;
        if (mine) {
            admit_refuse(h, in, ANSWER_MOVED, h->topology.view.ring.version);
        }
        return !mine;
    case SERVER_AGAIN:
        break;
    }
    UNREACHABLE();
}

bool streams_may_run(struct host *h, struct admission *in, uint64_t position)
{
    // What waited for its actor was let in when there was room for its answer.
    return streams_may_go_on(h, in, position, true) && !has_no_room(h, in);
}

/* Requests that began when there was room may all be answered when there is none, as many as there
 * are actors. So what nobody reads ends here, unless a forward of it may run yet (R15). */
static void has_grown(struct host *h, struct stream_served *s)
{
    const uint64_t connection = s->stream.connection;

    if (s->stream.dead) {
        return;
    }
    if (s->stream.passed_count > 0 || !servers_is_beyond(&h->streams.servers, s, 3)) {
        servers_feed(&h->streams.servers, s);
        return;
    }
    servers_dead(&h->streams.servers, s->stream.log.said.to);
    h->streams.dropped[STREAM_DROP_FORGOTTEN]++;
    if (connection != 0) {
        on_lost(h, connection, ERR_TOO_BIG);
    }
}

void streams_relayed(struct host *h, struct stream_server *s)
{
    has_grown(h, CONTAINER_OF(s, struct stream_served, stream));
}

void streams_ran(struct host *h, const struct stream_mark *mark, const struct answer_record *a)
{
    streams_end(h, mark, a);
    has_grown(h, mark->by);
}

void streams_end(struct host *h, const struct stream_mark *mark, const struct answer_record *a)
{
    const struct stream_answer answer = {
        .rid = mark->rid, .token = a->fence, .aux = a->aux, .code = a->code, .body = a->body};

    server_answer(&mark->by->stream, &answer);
    if (!mark->by->stream.dead) {
        servers_feed(&h->streams.servers, mark->by);
    }
}

void streams_unknown(struct host *h, const struct stream_mark *mark, uint64_t position)
{
    server_unknown(&mark->by->stream, mark->rid, position);
    if (!mark->by->stream.dead) {
        servers_feed(&h->streams.servers, mark->by);
    }
}

void streams_refuse(struct host *h, const struct stream_mark *mark, uint64_t position,
                    enum answer_code code, uint64_t aux)
{
    server_refuse(&mark->by->stream, mark->rid, position, (uint8_t)code, aux);
    if (!mark->by->stream.dead) {
        servers_feed(&h->streams.servers, mark->by);
    }
}

/* ---- streams ---- */

static void begin(struct host *h, uint64_t incarnation)
{
    struct stream_servers_config config = servers_config_default();

    config.incarnation = incarnation;
    config.context = h;
    config.take = on_take;
    config.lost = on_lost;
    config.log_max = h->config.stream_log_max;
    config.size_max = h->config.streams_size_max;
    servers_init(&h->streams.servers, &config);
    servers_ring(&h->streams.servers, h->topology.view.ring.version);
}

void streams_init(struct host *h)
{
    begin(h, 0);
}

void streams_fini(struct host *h)
{
    servers_fini(&h->streams.servers);
    mem_free(h->streams.over);
}

void streams_begin(struct host *h)
{
    servers_fini(&h->streams.servers);
    begin(h, h->membership.incarnation);
}

void streams_drop_all(struct host *h)
{
    servers_fini(&h->streams.servers);
    h->streams.over_count = 0;
    begin(h, 0);
}

/* ---- who is over ---- */

static bool has_member(const struct host *h, uint64_t incarnation)
{
    const struct view *v = &h->topology.view;
    size_t i = 0;

    while (i < v->member_count && v->member[i].incarnation != incarnation) {
        i++;
    }
    return i < v->member_count;
}

static bool was_taken_over(const struct host *h, uint64_t incarnation)
{
    size_t i = 0;

    while (i < h->streams.over_count && h->streams.over[i] != incarnation) {
        i++;
    }
    return i < h->streams.over_count;
}

bool streams_is_over(const struct host *h, uint64_t incarnation)
{
    return was_taken_over(h, incarnation) || !has_member(h, incarnation);
}

static void note_over(struct host *h, const struct view_member *m)
{
    struct streams *s = &h->streams;

    if (m != NULL && m->incarnation != h->membership.incarnation &&
        !was_taken_over(h, m->incarnation)) {
        s->over = mem_resize(s->over, (s->over_count + 1) * sizeof *s->over);
        s->over[s->over_count++] = m->incarnation;
    }
}

/* Arcs are taken over only of an incarnation that never serves again. */
void streams_note_taken_over(struct host *h, const Rh__Delta *delta)
{
    for (size_t i = 0; delta->cold && i < delta->n_ops; i++) {
        note_over(h, view_member(&h->topology.view, (uint16_t)delta->ops[i]->from));
    }
}

/* Who was not to give away what it had, and of whom something was taken over, is over: as the
 * router has it (route/fleet.c). */
void streams_note_robbed(struct host *h, const struct view *before)
{
    const struct view *v = &h->topology.view;

    for (size_t i = 0; i < v->ring.vnode_count; i++) {
        const struct ring_vnode *now = &v->ring.vnode[i];
        const struct ring_vnode *was =
            now->cold > before->ring.version ? ring_find(&before->ring, now->id) : NULL;
        const struct view_member *m = was == NULL ? NULL : view_member(v, was->owner);
        const struct view_member *m_was = m == NULL ? NULL : view_member(before, was->owner);

        if (m_was != NULL && m_was->incarnation == m->incarnation && !m->leaving && m->weight > 0 &&
            ring_owned_count(&v->ring, was->owner) == 0) {
            note_over(h, m);
        }
    }
}

/* Those that the ring does not name need no note. */
static void forget_over(struct host *h)
{
    struct streams *s = &h->streams;
    size_t kept = 0;

    for (size_t i = 0; i < s->over_count; i++) {
        if (has_member(h, s->over[i])) {
            s->over[kept++] = s->over[i];
        }
    }
    s->over_count = kept;
}

/* A node asks as a member only. */
static void bury_nodes(struct host *h)
{
    struct list *all = &h->streams.servers.all;

    for (struct list_link *l = list_front(all), *next = NULL; l != NULL; l = next) {
        struct stream_served *s = CONTAINER_OF(l, struct stream_served, in);
        const uint64_t asker = s->stream.log.said.to;

        next = list_next(all, l);
        if (s->of_member && streams_is_over(h, asker)) {
            servers_dead(&h->streams.servers, asker);
        }
    }
}

void streams_adopt(struct host *h)
{
    forget_over(h);
    bury_nodes(h);
    forwards_adopt(h);
    servers_ring(&h->streams.servers, h->topology.view.ring.version);
}

void streams_go_on(struct host *h)
{
    h->streams.server = NULL;
    h->streams.kind = NULL;
    servers_clock(&h->streams.servers, h->now_us / MS);
    servers_go_on(&h->streams.servers);
}

void streams_tick(struct host *h)
{
    h->streams.dropped[STREAM_DROP_FORGOTTEN] += servers_tick(&h->streams.servers, h->now_us / MS);
}

bool streams_rest(const struct host *h)
{
    const struct list *all = &h->streams.servers.all;

    for (struct list_link *l = list_front(all); l != NULL; l = list_next(all, l)) {
        const struct stream_served *s = CONTAINER_OF(l, struct stream_served, in);

        // Without a connection it comes again, or is forgotten (R15). What is of a newer ring may
        // be for this node by that.
        if (s->stream.connection == 0 || !server_idle(&s->stream) || s->parked.size > 0) {
            return false;
        }
    }
    return true;
}

void streams_on_down(struct host *h, uint64_t peer)
{
    const struct neighbour *n = neighbour_by_link(&h->links.neighbours, peer);

    if (n != NULL) {
        servers_lost(&h->streams.servers, n->incarnation, peer);
    }
}

/* ---- frames ---- */

static void say(struct host *h, uint64_t peer, struct bytes whole)
{
    struct host_effect *e = NULL;

    if (whole.size > 0) {
        e = host_emit(h, HOST_SEND_PEER);
        e->peer = peer;
        e->frame_type = whole.data[4];
        host_emit_bytes(
            h, e, bytes_of(whole.data + FRAME_HEADER_SIZE, whole.size - FRAME_HEADER_SIZE));
    }
}

void streams_stray(struct host *h)
{
    h->streams.dropped[STREAM_DROP_UNKNOWN]++;
}

static void let_go(struct host *h, uint64_t peer, enum stream_drop what, const char *why)
{
    struct host_effect *e = host_emit(h, HOST_DROP_PEER);

    h->streams.dropped[what]++;
    e->peer = peer;
    e->why = why;
}

/* The stream has not that link any more, or never had. */
static void on_lost(void *context, uint64_t connection, enum err why)
{
    struct host *h = context;

    if (why == ERR_CORRUPT) {
        identity_drop(h, connection, "its frame cannot be");
    } else if (why == ERR_NOT_FOUND) {
        let_go(h, connection, STREAM_DROP_UNKNOWN, "its stream is not known");
    } else if (why == ERR_STOPPED) {
        let_go(h, connection, STREAM_DROP_CONNECTION, "its stream has another connection");
    } else {
        let_go(h, connection, STREAM_DROP_FULL, "there is no room for its stream");
    }
}

/* Nothing of it was looked at but its head. */
static const struct neighbour *sender(struct host *h, const struct host_event *event,
                                      struct stream_head *head, struct reader *records)
{
    if (stream_head_get(event->frame, head, records) != ERR_OK) {
        identity_drop(h, event->peer, "its frame is none of a stream");
        return NULL;
    }
    if (head->to != h->membership.incarnation) {
        let_go(h, event->peer, STREAM_DROP_INCARNATION, "it asks another incarnation");
        return NULL;
    }
    return identity_of_stream(h, event->peer, head->from);
}

static void take(struct host *h, const struct host_event *event, const struct stream_head *head)
{
    struct buffer said = {0};

    h->streams.kind = NULL;
    servers_clock(&h->streams.servers, h->now_us / MS);
    const enum err e = servers_frame(&h->streams.servers, event->peer, event->frame, &said);

    say(h, event->peer, buffer_bytes(&said));
    buffer_fini(&said);
    if (e != ERR_OK) {
        on_lost(h, event->peer, e);
    }
    if (head->version > h->topology.view.ring.version) {
        host_want_version(h, head->version);
    }
}

void streams_on_frame(struct host *h, const struct host_event *event)
{
    struct stream_head head;
    struct reader records;
    const struct neighbour *n = sender(h, event, &head, &records);

    if (n == NULL) {
        return;
    }
    // Who is over may not know yet: what it asks for must not run behind its death. Who is not in
    // the ring yet begins again in a second; and it may have said that it was any incarnation.
    if (n->role == ROLE_NODE && streams_is_over(h, n->incarnation) && !mutant(M_DEADFWD)) {
        h->streams.dropped[STREAM_DROP_OVER]++;
        return;
    }
    if (n->dialled) {
        forwards_on_frame(h, event, &head, &records);
        return;
    }
    // What the lease lets go on goes first, and all effects before what runs at once.
    const bool at_once = n->standing == STANDING_KNOWN && h->out->count == 0 && serve_may(h);
    h->streams.server = at_once ? event->server : NULL;
    take(h, event, &head);
    h->streams.server = NULL;
    struct stream_served *s = servers_find(&h->streams.servers, head.from);
    if (s != NULL) {
        s->of_member = n->role == ROLE_NODE && has_member(h, head.from);
    }
}

/* ---- what the logs have ---- */

static bool may_hand_out(const struct host *h)
{
    return h->lease_policy.gate.count == 0 && h->membership.life != LIFE_OVER;
}

struct sendlog *host_unsent(struct host *h, uint64_t *peer)
{
    if (!may_hand_out(h)) {
        return NULL;
    }
    struct stream_served *s = servers_unsent(&h->streams.servers);
    if (s == NULL) {
        return forwards_unsent(h, peer);
    }
    *peer = s->stream.connection;
    return &s->stream.log;
}

static struct stream_served *stream_by(const struct host *h, uint64_t peer)
{
    const struct neighbour *n = neighbour_by_link(&h->links.neighbours, peer);
    struct stream_served *s = n == NULL ? NULL : servers_find(&h->streams.servers, n->incarnation);

    return s != NULL && s->stream.connection == peer ? s : NULL;
}

void streams_unsaid(struct host *h, const struct host_effect *e)
{
    struct stream_served *s = stream_by(h, e->peer);

    if (!frame_type_is_stream((uint8_t)e->frame_type)) {
        return;
    }
    h->streams.dropped[STREAM_DROP_GATE]++;
    if (s != NULL) {
        servers_lost(&h->streams.servers, s->stream.log.said.to, e->peer);
    }
}

void host_feed(struct host *h, uint64_t peer)
{
    struct stream_served *s = stream_by(h, peer);

    if (s != NULL) {
        servers_feed(&h->streams.servers, s);
    } else {
        forwards_feed(h, peer);
    }
}

struct sendlog *host_log(struct host *h, uint64_t peer)
{
    struct stream_served *s = stream_by(h, peer);
    struct stream_client *c = s == NULL ? forwards_by(h, peer) : NULL;

    return s != NULL ? &s->stream.log : c != NULL && c->joined ? &c->log : NULL;
}
