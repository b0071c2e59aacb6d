/* SPDX-License-Identifier: Apache-2.0
 *
 * What this node sends on as a client of other nodes, and their answers.
 */
#include "node/host/forwards.h"

#include "base/mem.h"
#include "base/mutant.h"
#include "node/host/inside.h"
#include "stream/forward.h"
#include "wire/trace.h"

enum { MS = 1000, JOIN_AGAIN_US = 1000 * MS };

/* ---- the asker ---- */

static struct stream_client *stream_to(const struct host *h, uint64_t incarnation)
{
    const struct stream_asker *a = &h->forwards.asker;

    for (size_t i = 0; i < a->stream_cap; i++) {
        if (a->stream[i] != NULL && a->stream[i]->log.said.to == incarnation) {
            return a->stream[i];
        }
    }
    return NULL;
}

/* For what waits in a lane, which nothing does: a forward never waits. */
static struct stream_client *on_owner(void *context, const struct stream_entity *e)
{
    const struct host *h = context;
    const struct view *v = &h->topology.view;
    const ring_hit hit = v->ring.cell[ring_point_cell(e->position)];
    const struct view_member *owner = view_member(v, ring_hit_node(hit));

    return owner == NULL ? NULL : stream_to(h, owner->incarnation);
}

/* What it did went with its owner, of whose end this node knows (hole 63): who asks hears of it in
 * a frame of my version, by which it could not tell. */
static bool is_stale(const struct host *h, const struct stream_reply *reply)
{
    const struct ring_vnode *v = host_vnode(h, reply->position);

    return reply->answer->code <= ANSWER_APP_ERROR && v != NULL && reply->version < v->cold &&
           reply->answer->token < v->cold;
}

static uint32_t on_reply(void *context, const struct stream_reply *reply)
{
    static const struct stream_answer unknown = {.code = STREAM_CODE_UNKNOWN};
    struct host *h = context;
    struct stream_reply said = *reply;

    said.answer = is_stale(h, reply) ? &unknown : reply->answer;
    streams_relayed(h, forward_ended(&said));
    return 0;
}

static void open(struct host *h, uint64_t incarnation)
{
    struct stream_asker_config config = asker_config_default();

    config.id = incarnation;
    config.context = h;
    config.owner = on_owner;
    config.reply = on_reply;
    asker_init(&h->forwards.asker, &config);
    asker_ring(&h->forwards.asker, h->topology.view.ring.version);
    asker_turn(&h->forwards.asker, h->now_us / MS);
}

void forwards_init(struct host *h)
{
    open(h, 0);
}

void forwards_fini(struct host *h)
{
    struct stream_asker *a = &h->forwards.asker;

    for (size_t i = 0; i < a->stream_cap; i++) {
        if (a->stream[i] != NULL) {
            asker_dead(a, a->stream[i]); // its forwards are freed by what ends them
        }
    }
    asker_fini(a);
}

void forwards_begin(struct host *h, uint64_t incarnation)
{
    forwards_fini(h);
    open(h, incarnation);
}

/* ---- streams ---- */

struct stream_client *forwards_by(const struct host *h, uint64_t link)
{
    const struct stream_asker *a = &h->forwards.asker;

    for (size_t i = 0; i < a->stream_cap; i++) {
        if (a->stream[i] != NULL && a->stream[i]->connection == link) {
            return a->stream[i];
        }
    }
    return NULL;
}

static void connect(struct host *h, struct stream_client *c, uint64_t link)
{
    const struct stream_connect what = asker_connect(&h->forwards.asker, c, link);
    struct host_effect *e = host_emit(h, HOST_SEND_PEER);
    uint8_t bytes[STREAM_HEADER_SIZE];

    h->forwards.again_us = h->now_us + JOIN_AGAIN_US;
    stream_head_store(bytes, what.type, &what.head);
    e->peer = link;
    e->frame_type = (int)what.type;
    host_emit_bytes(h, e, bytes_of(bytes + FRAME_HEADER_SIZE, sizeof bytes - FRAME_HEADER_SIZE));
}

static void join(struct host *h, const struct neighbour *n)
{
    struct stream_client *c = stream_to(h, n->incarnation);

    if (c == NULL) {
        c = asker_add(&h->forwards.asker, n->incarnation);
    }
    if (c->connection == 0) {
        connect(h, c, n->link);
    }
}

void forwards_join(struct host *h)
{
    const struct list *all = &h->links.neighbours.all;

    for (struct list_link *l = list_front(all); l != NULL && h->membership.incarnation != 0;
         l = list_next(all, l)) {
        const struct neighbour *n = CONTAINER_OF(l, struct neighbour, all);

        if (n->role == ROLE_NODE && n->dialled && n->streams && n->standing == STANDING_KNOWN &&
            !streams_is_over(h, n->incarnation)) {
            join(h, n);
        }
    }
}

void forwards_on_down(struct host *h, uint64_t link)
{
    struct stream_client *c = forwards_by(h, link);

    if (c != NULL) {
        asker_lost(&h->forwards.asker, c, link);
        forwards_join(h); // there may be another link
    }
}

void forwards_adopt(struct host *h)
{
    struct stream_asker *a = &h->forwards.asker;

    for (size_t i = 0; i < a->stream_cap; i++) {
        if (a->stream[i] != NULL && streams_is_over(h, a->stream[i]->log.said.to)) {
            asker_dead(a, a->stream[i]);
            asker_remove(a, a->stream[i]);
        }
    }
    asker_ring(a, h->topology.view.ring.version);
}

/* ---- requests ---- */

void forwards_expect(struct host *h, uint16_t slot)
{
    if (!list_empty(&h->streams.servers.all)) { // else nobody asks by streams
        host_dial_own(h, slot);
    }
}

/* A full gate, here or there, may lose BEGIN, JOIN or the answer although the link is well. */
static void join_again(struct host *h)
{
    struct stream_asker *a = &h->forwards.asker;
    const bool due = h->now_us >= h->forwards.again_us;

    for (size_t i = 0; due && i < a->stream_cap; i++) {
        struct stream_client *c = a->stream[i];

        if (c != NULL && c->connection != 0 && !c->joined) {
            const uint64_t link = c->connection;

            asker_lost(a, c, link);
            connect(h, c, link);
        }
    }
}

/* A link is kept as long as answers are to come by it. */
void forwards_tick(struct host *h)
{
    struct stream_asker *a = &h->forwards.asker;

    for (size_t i = 0; i < h->topology.view.member_count && a->under_way > 0; i++) {
        const struct view_member *m = &h->topology.view.member[i];
        const struct stream_client *c = stream_to(h, m->incarnation);

        if (c != NULL && c->count > 0) {
            host_dial_own(h, m->slot);
        }
    }
    join_again(h);
    asker_look(a);
    asker_turn(a, h->now_us / MS);
    if (!mutant(M_PASSEDLATE)) {
        forward_expire(a, h->now_us / MS);
    }
}

bool forwards_pass(struct host *h, struct admission *in, uint64_t position,
                   const struct view_member *owner)
{
    const struct request_record *r = in->r;
    struct stream_client *to = stream_to(h, owner->incarnation);
    const uint64_t left_ms = (in->deadline_us - h->now_us) / MS;
    uint8_t chain[RECORD_CHAIN_MAX * sizeof(uint64_t)];
    uint8_t *at = chain;

    if (to == NULL || !to->joined) {
        forwards_expect(h, owner->slot); // for those to come
    }
    if (h->membership.life == LIFE_PARTING) {
        return false; // it will not be here when the answer comes
    }
    for (size_t i = 0; i < r->chain_count; i++) {
        at = store_u64(at, r->chain[i]);
    }
    const struct stream_request next = {.rid = in->mark.rid,
                                        .session = r->session,
                                        .ttl_ms = mutant(M_PASSEDLATE) ? r->ttl_ms
                                                  : left_ms == 0       ? 1
                                                                       : (uint32_t)left_ms,
                                        .kind = r->kind,
                                        .hops = r->hops,
                                        .again = r->again,
                                        .name = {r->first, r->seq},
                                        .flags = (uint8_t)(r->flags & ~REQUEST_HELD),
                                        .chain = bytes_of(chain, (size_t)(at - chain)),
                                        .id = r->id,
                                        .body = trace_is(r) ? trace_stamp(h, in, TRACE_FORWARD)
                                                            : r->body};

    return forward_pass(&h->forwards.asker,
                        to,
                        &in->mark.by->stream,
                        in->follows ? SERVER_FOLLOWS : SERVER_RUN,
                        &next,
                        position);
}

/* ---- frames ---- */

static enum err on_joined(struct host *h, struct stream_client *c, enum stream_frame type,
                          const struct stream_head *head)
{
    const uint64_t link = c->connection;
    const enum err e = asker_joined(&h->forwards.asker, c, link, type, head);

    if (e == ERR_OK && type == STREAM_GONE && !c->begun && head->first == c->epoch) {
        connect(h, c, link); // it has forgotten the stream: another one begins
    }
    return e;
}

static enum err on_answers(struct host *h, struct stream_client *c, const struct frame *frame,
                           const struct stream_head *head, struct reader *records)
{
    struct stream_asker *a = &h->forwards.asker;
    const enum err e = asker_open(c, c->connection, head);

    for (size_t i = 0; e == ERR_OK && i < frame->count; i++) {
        struct stream_answer answer;

        if (stream_answer_get(records, &answer) != ERR_OK ||
            asker_answer(a, c, head->first + i, head->version, &answer) != ERR_OK) {
            return ERR_CORRUPT;
        }
        if (answer.code == ANSWER_MOVED) {
            host_want_version(h, answer.aux);
        }
    }
    if (e == ERR_NOT_FOUND) {
        streams_stray(h); // it is not joined
    }
    return e == ERR_NOT_FOUND || records->left == 0 ? ERR_OK : ERR_CORRUPT;
}

void forwards_on_frame(struct host *h, const struct host_event *event,
                       const struct stream_head *head, struct reader *records)
{
    const enum stream_frame type = (enum stream_frame)event->frame->type;
    struct stream_client *c = forwards_by(h, event->peer);
    enum err e = ERR_OK;

    if (c == NULL) {
        streams_stray(h); // it is over, or another link has it
        return;
    }
    if (type == STREAM_JOINED || type == STREAM_GONE) {
        e = on_joined(h, c, type, head);
    } else if (type == STREAM_ANSWER) {
        e = on_answers(h, c, event->frame, head, records);
    } else if (type != STREAM_ACK) {
        e = ERR_CORRUPT;
    }
    if (e != ERR_OK) {
        identity_drop(h, event->peer, "its frame cannot be");
    }
}

/* ---- what the logs have ---- */

struct sendlog *forwards_unsent(struct host *h, uint64_t *link)
{
    struct stream_client *c = NULL;

    while ((c = asker_unsent(&h->forwards.asker)) != NULL) {
        if (c->joined) {
            *link = c->connection;
            return &c->log;
        }
    }
    return NULL;
}

void forwards_feed(struct host *h, uint64_t link)
{
    struct stream_client *c = forwards_by(h, link);

    if (c != NULL) {
        asker_feed(&h->forwards.asker, c);
    }
}

void forwards_check(const struct host *h)
{
    asker_check(&h->forwards.asker);
}
