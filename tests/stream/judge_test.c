/* SPDX-License-Identifier: Apache-2.0
 *
 * The judge of streams: gateways that ask, nodes that serve and forward, a ring that moves, links
 * that break at any byte, nodes that crash, and what must never happen.
 *
 * Each seed is a fleet in memory, driven by chance: the two machines of stream/ are shipped code,
 * the rest is as small as it can be. A request is its number. It must run at most once, in the
 * order of its lane, where the ring has its entity, and never when its client was told REJECTED;
 * UNKNOWN is for what may have been lost alone. Half of the entities are durable: what they did
 * stands when their node dies, unless they were still at it, and what is asked again is answered by
 * its name; that is never UNKNOWN. In the end, when nothing fails any more, each is answered and
 * nothing is kept.
 *
 *     judge_test --mutants     each bug planted in the rules must be found
 */
#include "tests/planted.h"
#include "tests/test.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/prng.h"
#include "stream/asker.h"
#include "stream/forward.h"
#include "stream/servers.h"

#include <signal.h>
#include <stdlib.h>

enum {
    SEEDS = 5000,
    RARE = 12, /* times as many show the rarest planted bug */
    STEPS = 1500,
    GATEWAYS = 2,
    SESSIONS = 2,
    ENTITIES = 4,
    VNODES = 2,
    NODES = 8, /* incarnations, one after the other */
    LIVE = 3,  /* of them at a time */
    CLIENTS = GATEWAYS + NODES,
    CONNS = 256,
    VERSIONS = 128,
    VERSIONS_KEPT = 32, /* for what must happen in the end */
    REQUESTS = 4096,
    UNDER_WAY = 24,
    CALM_ROUNDS = 400,
    ID_OF_NODE = 100,
    ID_OF_GATEWAY = 1000,
};

enum told { TOLD_NOTHING, TOLD_OK, TOLD_UNKNOWN, TOLD_TIMEOUT, TOLD_REJECTED, TOLD_REFUSED };

struct request {
    unsigned lane;
    uint64_t rid;
    unsigned gateway;
    enum told told;
    size_t before; /* that ran last of its lane when it did */
    bool ran;
    bool doubted; /* it was UNKNOWN before */
    bool late;    /* its time was over at a node, so by now it is over for its client, too */
};

/* A request that a node has taken and not ended. */
struct taken {
    struct list_link link;
    struct stream_served *by;
    uint64_t ack;
    unsigned entity;
    struct buffer bytes; /* its record */
};

struct conn {
    uint64_t id;
    unsigned client;
    unsigned node;
    unsigned speed; /* it does something in so many of 1,000 steps */
    bool at_client; /* that end has not noticed its end */
    bool at_node;
    struct buffer there[2]; /* on the way to the node, and arrived there */
    struct buffer back[2];
};

/* Who asks: a gateway, or a node for what it forwards. */
struct client {
    bool up;
    unsigned adopts; /* a new ring, in so many of 1,000 steps that it might */
    uint64_t version;
    struct stream_asker asker;
    struct stream_client *stream[NODES];
    bool buried[NODES];
};

struct node {
    bool up;
    bool leaves;
    bool over; /* by the database: from `over_at` on */
    uint64_t over_at;
    bool hold[VNODES];
    struct stream_servers served;
    struct list queue[ENTITIES];
    struct taken *running[ENTITIES];
};

/* What may happen in a seed, of 1,000 steps. */
struct faults {
    unsigned breaks;
    unsigned crashes;
    unsigned busy; /* of 100 requests */
    unsigned expires;
    unsigned gives_up;
    unsigned moves;
    uint64_t gone_ms; /* T_gone */
    unsigned slow;    /* of 100 runs */
    unsigned adopts;
    unsigned leaves;
};

struct world {
    struct prng prng;
    struct faults faults;
    bool calm;
    uint64_t now_ms;
    uint64_t version;
    unsigned owner[VERSIONS][VNODES];
    struct {
        bool pends;
        bool drained;
        unsigned to;
    } move[VNODES];
    struct client client[CLIENTS];
    struct node node[NODES];
    unsigned nodes; /* that ever were */
    struct conn *conn[CONNS];
    uint64_t conn_id;
    struct request request[REQUESTS];
    size_t requests;
    size_t open;                                 /* not told */
    size_t last[GATEWAYS * SESSIONS * ENTITIES]; /* of a lane: number of the one that ran last */
    size_t losses;                               /* crashes and streams that were forgotten */
    uint64_t runs, unknowns, known, forwards, refusals, breaks, lefts, full, crowded;
};

static struct world w;

/* Two of them share a fence. */
static const uint64_t position_of[ENTITIES] = {5, 5 + STREAM_FENCES, 6, 7};

/* A planted bug is to be found by a promise that it breaks, not by a number that does not fit. */
static bool planted(void)
{
#ifdef RINGHOLD_MUTANTS
    return mutant_planted != M_NONE;
#else
    return false;
#endif
}

static unsigned vnode_of(unsigned entity)
{
    return entity % VNODES;
}

static bool is_durable(unsigned entity)
{
    return entity == 1 || entity == 2;
}

static bool chance(unsigned of_1000)
{
    return prng_u64(&w.prng) % 1000 < of_1000;
}

static unsigned any(unsigned count)
{
    return (unsigned)(prng_u64(&w.prng) % count);
}

static unsigned entity_of(uint64_t position)
{
    for (unsigned i = 0; i < ENTITIES; i++) {
        if (position_of[i] == position) {
            return i;
        }
    }
    fail();
    return 0;
}

static bool over_by(unsigned node, uint64_t version)
{
    return w.node[node].over && w.node[node].over_at <= version;
}

/* ---- clients ---- */

static struct stream_client *owner(void *context, const struct stream_entity *entity)
{
    struct client *c = context;
    const unsigned n = w.owner[c->version][vnode_of(entity_of(entity->position))];

    return over_by(n, c->version) ? NULL : c->stream[n];
}

static void tell(size_t number, enum told told)
{
    assert_true(w.request[number].told == TOLD_NOTHING); // once
    w.request[number].told = told;
    w.open--;
}

static uint32_t on_reply(void *context, const struct stream_reply *reply)
{
    (void)context;
    if (reply->forward) {
        (void)forward_ended(reply);
        return 0;
    }
    struct request *r = &w.request[reply->ticket];

    switch (reply->answer->code) {
    case ANSWER_OK:
        assert_true(r->ran);
        assert_int_equal(reply->answer->body.size, sizeof(uint64_t));
        assert_int_equal(load_u64(reply->answer->body.data), reply->ticket);
        tell(reply->ticket, TOLD_OK);
        break;
    case STREAM_CODE_UNKNOWN:
    case ANSWER_LOST:
        assert_true(w.losses > 0 || planted());
        if (r->late) {
            tell(reply->ticket, TOLD_TIMEOUT);
            return 0;
        }
        if (reply->answer->code == STREAM_CODE_UNKNOWN &&
            (is_durable(r->lane % ENTITIES) || !r->doubted)) {
            r->doubted = true;
            return 1;
        }
        assert_false(is_durable(r->lane % ENTITIES));
        w.unknowns++;
        tell(reply->ticket, TOLD_UNKNOWN);
        break;
    case ANSWER_EXPIRED:
        assert_true(reply->maybe || !r->ran);
        tell(reply->ticket, reply->maybe ? TOLD_TIMEOUT : TOLD_REFUSED);
        break;
    default:
        fail();
    }
    return 0;
}

static void client_start(unsigned client, uint64_t id)
{
    struct client *c = &w.client[client];
    struct stream_asker_config config = asker_config_default();

    config.id = id;
    config.window = 6;
    config.chunks_spare = 2;
    config.context = c;
    config.owner = owner;
    config.reply = on_reply;
    *c = (struct client){.up = true, .version = w.version, .adopts = 10 + any(w.faults.adopts)};
    asker_init(&c->asker, &config);
    asker_ring(&c->asker, w.version);
}

/* The nodes of its ring have streams, those that are over by it have none. */
static void client_adopt(unsigned client)
{
    struct client *c = &w.client[client];

    c->version = w.version;
    for (unsigned n = 0; n < w.nodes; n++) {
        if (over_by(n, c->version) && !c->buried[n]) {
            c->buried[n] = true;
            if (c->stream[n] != NULL) {
                asker_dead(&c->asker, c->stream[n]);
            }
        } else if (!over_by(n, c->version) && c->stream[n] == NULL && client != GATEWAYS + n) {
            c->stream[n] = asker_add(&c->asker, ID_OF_NODE + n);
        }
    }
    asker_ring(&c->asker, c->version);
    for (unsigned n = 0; n < w.nodes; n++) {
        if (c->buried[n] && c->stream[n] != NULL) {
            asker_remove(&c->asker, c->stream[n]);
            c->stream[n] = NULL;
        }
    }
}

static void ask(void)
{
    const unsigned gateway = any(GATEWAYS);
    const unsigned session = gateway * SESSIONS + any(SESSIONS);
    const unsigned entity = any(ENTITIES);
    struct client *c = &w.client[gateway];
    struct request *r = &w.request[w.requests];
    uint8_t body[8];
    struct stream_request q = {.session = session + 1,
                               .ttl_ms = 1000,
                               .id = bytes_of(&"abcd"[entity], 1),
                               .body = bytes_of(body, sizeof body)};

    if (w.requests == REQUESTS || w.open >= UNDER_WAY) {
        return;
    }
    (void)store_u64(body, w.requests);
    *r = (struct request){.lane = session * ENTITIES + entity, .gateway = gateway};
    w.open++;
    const struct stream_entity of = {.position = position_of[entity]};
    r->rid = asker_ask(&c->asker, owner(c, &of), &q, of.position, w.requests++);
}

static void give_up(void)
{
    for (size_t tries = 0; tries < UNDER_WAY && w.requests > 0; tries++) {
        const size_t i = w.requests - 1 - any(w.requests < 64 ? (unsigned)w.requests : 64);
        struct request *r = &w.request[i];

        if (r->told == TOLD_NOTHING) {
            const bool maybe = asker_give_up(&w.client[r->gateway].asker, r->rid);

            assert_true(maybe || !r->ran);
            tell(i, maybe ? TOLD_TIMEOUT : TOLD_REJECTED);
            return;
        }
    }
}

/* ---- nodes ---- */

static void taken_free(struct taken *t)
{
    if (list_linked(&t->link)) {
        list_remove(&t->link);
    }
    buffer_fini(&t->bytes);
    mem_free(t);
}

static struct stream_request taken_request(const struct taken *t)
{
    struct reader in = {.at = t->bytes.data, .left = t->bytes.size};
    struct stream_request r;

    assert_int_equal(stream_request_get(&in, &r), ERR_OK);
    return r;
}

/* The actor does it, and here the promises are. */
static void run(unsigned node, const struct taken *t, const struct stream_request *r)
{
    const size_t number = load_u64(r->body.data);
    const unsigned vnode = vnode_of(t->entity);
    struct request *q = &w.request[number];

    assert_int_equal(w.owner[w.version][vnode], node); // one owner
    assert_false(w.move[vnode].drained);
    assert_false(q->ran);                      // once
    assert_true(w.last[q->lane] < number + 1); // in order
    assert_true(q->told != TOLD_REJECTED && q->told != TOLD_REFUSED);
    q->before = w.last[q->lane];
    w.last[q->lane] = number + 1;
    q->ran = true;
    w.runs++;
}

static void end_run(unsigned node, unsigned entity)
{
    struct taken *t = w.node[node].running[entity];
    const struct stream_request r = taken_request(t);
    const struct stream_answer a = {.rid = r.rid, .body = r.body};

    w.node[node].running[entity] = NULL;
    server_answer(&t->by->stream, &a);
    taken_free(t);
}

/* What it did is not in the store: its node dies amidst it. */
static void undo(const struct taken *t)
{
    const struct stream_request r = taken_request(t);
    struct request *q = &w.request[load_u64(r.body.data)];

    if (is_durable(t->entity)) {
        q->ran = false;
        w.last[q->lane] = q->before;
    }
}

/* Its answer is in the store, under its name. */
static bool is_saved(const struct taken *t, const struct stream_request *r)
{
    const struct request *q = &w.request[load_u64(r->body.data)];
    const struct request_name name = server_name(&t->by->stream, r);

    return q->ran && name.asker == ID_OF_GATEWAY + q->gateway && name.number == q->rid;
}

/* It is asked again. True: it is not to run. */
static bool is_known(struct taken *t, const struct stream_request *r)
{
    const bool durable = is_durable(t->entity);
    const struct stream_answer a = {.rid = r->rid,
                                    .code = durable ? ANSWER_OK : ANSWER_LOST,
                                    .body = durable ? r->body : (struct bytes){0}};

    if (durable && !is_saved(t, r)) {
        return false;
    }
    w.known += durable ? 1 : 0;
    server_answer(&t->by->stream, &a);
    taken_free(t);
    return true;
}

/* Someone else owns it by my ring, or an earlier one that I passed on is unanswered. */
static void pass_on(unsigned node, struct taken *t, const struct stream_request *r,
                    enum server_verdict verdict)
{
    struct client *me = &w.client[GATEWAYS + node];
    const uint64_t position = position_of[t->entity];
    const unsigned to = w.owner[me->version][vnode_of(t->entity)];

    if (to == node || over_by(to, me->version) || (!w.calm && chance(50)) ||
        !forward_pass(&me->asker, me->stream[to], &t->by->stream, verdict, r, position)) {
        server_refuse(&t->by->stream, r->rid, position, ANSWER_MOVED, me->version);
        w.refusals++;
    } else {
        w.forwards++;
    }
    taken_free(t);
}

static void pump(unsigned node, unsigned entity)
{
    struct node *n = &w.node[node];
    struct list_link *l = NULL;

    while (!n->hold[vnode_of(entity)] && n->running[entity] == NULL &&
           (l = list_front(&n->queue[entity])) != NULL) {
        struct taken *t = CONTAINER_OF(l, struct taken, link);
        const struct stream_request r = taken_request(t);
        const enum server_verdict v =
            server_judge(&t->by->stream, r.rid, position_of[entity], t->ack);

        if (v == SERVER_BEHIND) {
            taken_free(t);
        } else if (v == SERVER_DROP) {
            server_answer(&t->by->stream, &(struct stream_answer){.rid = r.rid});
            taken_free(t);
        } else if (v == SERVER_FOLLOWS ||
                   w.owner[w.client[GATEWAYS + node].version][vnode_of(entity)] != node) {
            pass_on(node, t, &r, v);
        } else if (!r.again || !is_known(t, &r)) {
            run(node, t, &r);
            list_remove(&t->link);
            n->running[entity] = t;
            if (any(100) >= w.faults.slow) {
                end_run(node, entity);
            }
        }
    }
}

static void pump_all(unsigned node)
{
    for (unsigned e = 0; e < ENTITIES; e++) {
        pump(node, e);
    }
}

static void expire(unsigned node)
{
    const unsigned e = any(ENTITIES);
    struct list_link *l = list_front(&w.node[node].queue[e]);

    if (l != NULL && !w.calm) {
        struct taken *t = CONTAINER_OF(l, struct taken, link);
        const struct stream_request r = taken_request(t);
        const bool late = chance(500);

        // Its client does not ask again: that takes a lease, and a node reckons longer than who
        // asked.
        w.request[load_u64(r.body.data)].late |= late;
        server_refuse(
            &t->by->stream, r.rid, position_of[e], late ? ANSWER_EXPIRED : ANSWER_BUSY, 0);
        taken_free(t);
    }
}

/* Those of which nothing is left, and of which nothing was heard for long. */
static void tick(unsigned node)
{
    struct stream_servers *v = &w.node[node].served;

    for (struct list_link *l = list_front(&v->all); l != NULL && !planted();
         l = list_next(&v->all, l)) {
        server_check(&CONTAINER_OF(l, struct stream_served, in)->stream);
    }
    w.losses += servers_tick(v, w.now_ms);
}

static void node_adopt(unsigned node)
{
    struct node *n = &w.node[node];
    struct client *me = &w.client[GATEWAYS + node];

    // Who is over is buried before anything sent with that version is taken, or a hold ends.
    for (unsigned i = 0; i < w.nodes; i++) {
        if (over_by(i, w.version)) {
            servers_dead(&n->served, ID_OF_NODE + i);
        }
    }
    me->version = w.version;
    client_adopt(GATEWAYS + node);
    servers_ring(&n->served, w.version);
    for (unsigned v = 0; v < VNODES; v++) {
        n->hold[v] = n->hold[v] && w.move[v].pends && w.owner[w.version][v] == node;
    }
    servers_go_on(&n->served);
    pump_all(node);
    tick(node);
}

static void take(void *context, const struct stream_some *some);
static void on_lost(void *context, uint64_t connection, enum err why);

static void node_start(void)
{
    const unsigned node = w.nodes++;
    struct node *n = &w.node[node];

    assert_true(node < NODES);
    *n = (struct node){.up = true};
    struct stream_servers_config config = servers_config_default();
    config.incarnation = ID_OF_NODE + node;
    config.gone_ms = w.faults.gone_ms;
    config.chunks_spare = 2;
    config.context = n;
    config.take = take;
    config.lost = on_lost;
    // One of them has little room: two streams that have something are too much for it.
    config.size_max = node % LIVE == 2 ? (size_t)2 * STREAM_CHUNK_SIZE : config.size_max;
    servers_init(&n->served, &config);
    servers_ring(&n->served, w.version);
    for (unsigned e = 0; e < ENTITIES; e++) {
        list_init(&n->queue[e]);
    }
    client_start(GATEWAYS + node, ID_OF_NODE + node);
}

static void node_free(unsigned node)
{
    struct node *n = &w.node[node];
    struct list_link *l = NULL;

    // Forwards are freed by what ends them.
    for (unsigned i = 0; i < w.nodes; i++) {
        struct client *me = &w.client[GATEWAYS + node];

        if (me->stream[i] != NULL) {
            asker_dead(&me->asker, me->stream[i]);
        }
    }
    for (unsigned e = 0; e < ENTITIES; e++) {
        while ((l = list_front(&n->queue[e])) != NULL) {
            taken_free(CONTAINER_OF(l, struct taken, link));
        }
        if (n->running[e] != NULL) {
            undo(n->running[e]);
            taken_free(n->running[e]);
            n->running[e] = NULL;
        }
    }
    servers_fini(&n->served);
    asker_fini(&w.client[GATEWAYS + node].asker);
    w.client[GATEWAYS + node].up = false;
    n->up = false;
}

/* ---- connections ---- */

static void conn_free(struct conn *c)
{
    for (size_t i = 0; i < 2; i++) {
        buffer_fini(&c->there[i]);
        buffer_fini(&c->back[i]);
    }
    mem_free(c);
}

static void say(struct buffer *out, enum stream_frame type, const struct stream_head *head)
{
    stream_head_store(buffer_reserve(out, STREAM_HEADER_SIZE), type, head);
    out->size += STREAM_HEADER_SIZE;
}

static struct conn *conn_of(unsigned client, unsigned node)
{
    for (size_t i = 0; i < CONNS; i++) {
        struct conn *c = w.conn[i];

        if (c != NULL && c->client == client && c->node == node && c->at_client) {
            return c;
        }
    }
    return NULL;
}

static void greet(struct conn *c)
{
    struct client *client = &w.client[c->client];
    const struct stream_connect s = asker_connect(&client->asker, client->stream[c->node], c->id);

    say(&c->there[0], s.type, &s.head);
}

static void connect_one(unsigned client, unsigned node)
{
    struct client *a = &w.client[client];

    if (!a->up || !w.node[node].up || client == GATEWAYS + node || a->stream[node] == NULL ||
        conn_of(client, node) != NULL) {
        return;
    }
    for (size_t i = 0; i < CONNS; i++) {
        if (w.conn[i] == NULL) {
            struct conn *c = w.conn[i] = mem_new(1, sizeof *c);

            *c = (struct conn){.id = ++w.conn_id,
                               .client = client,
                               .node = node,
                               .speed = 20 + any(600),
                               .at_client = true,
                               .at_node = true};
            greet(c);
            return;
        }
    }
}

static void client_end(struct conn *c)
{
    struct client *a = &w.client[c->client];

    if (c->at_client) {
        c->at_client = false;
        if (a->up && a->stream[c->node] != NULL) {
            asker_lost(&a->asker, a->stream[c->node], c->id);
        }
    }
}

static uint64_t client_id(unsigned client)
{
    return client < GATEWAYS ? ID_OF_GATEWAY + client : ID_OF_NODE + client - GATEWAYS;
}

static void node_end(struct conn *c)
{
    if (c->at_node) {
        c->at_node = false;
        if (w.node[c->node].up) {
            servers_lost(&w.node[c->node].served, client_id(c->client), c->id);
        }
    }
}

static void lose_some(struct buffer *b)
{
    b->size = b->size == 0 ? 0 : prng_u64(&w.prng) % (b->size + 1);
}

/* One end notices first, and what is on the way to the other may arrive yet, cut at any byte. */
static void break_one(struct conn *c)
{
    w.breaks++;
    lose_some(&c->there[0]);
    lose_some(&c->back[0]);
    if (chance(500)) {
        client_end(c);
    } else {
        node_end(c);
    }
}

static void conn_reap(size_t i)
{
    struct conn *c = w.conn[i];

    // The last to notice does when all that came has been read.
    if (c->at_client && !c->at_node && c->back[0].size == 0 && (w.calm || chance(300))) {
        client_end(c);
    }
    if (c->at_node && !c->at_client && c->there[0].size == 0 && (w.calm || chance(30))) {
        node_end(c);
    }
    if (!c->at_client && !c->at_node) {
        conn_free(c);
        w.conn[i] = NULL;
    }
}

/* The next whole frame of what came. False: there is none. */
static bool frame_next(const struct buffer *in, struct frame *f, size_t *size)
{
    *size = in->size < FRAME_HEADER_SIZE ? 0 : load_u32(in->data);
    if (*size == 0 || in->size < *size) {
        return false;
    }
    *f = (struct frame){.type = (enum frame_type)in->data[4],
                        .count = load_u16(in->data + 6),
                        .body = bytes_of(in->data + FRAME_HEADER_SIZE, *size - FRAME_HEADER_SIZE)};
    return true;
}

static void take_one(struct node *n, const struct stream_taken *t)
{
    const unsigned node = (unsigned)(n - w.node);
    const unsigned e = (unsigned)(t->request->id.data[0] - 'a');

    if (!w.calm && any(100) < w.faults.busy) {
        server_refuse(&t->by->stream, t->request->rid, position_of[e], ANSWER_BUSY, any(4));
        w.refusals++;
        return;
    }
    if (servers_is_full(&n->served, t->by)) {
        server_refuse(&t->by->stream, t->request->rid, position_of[e], ANSWER_BUSY, 1);
        w.full++;
        return;
    }
    struct taken *q = mem_new(1, sizeof *q);
    *q = (struct taken){.by = t->by, .ack = t->ack, .entity = e};
    buffer_put(&q->bytes, t->record.data, t->record.size);
    list_push_back(&n->queue[e], &q->link);
    pump(node, e);
}

static void take(void *context, const struct stream_some *some)
{
    for (size_t i = 0; i < some->count; i++) {
        const uint64_t position = position_of[some->request[i].id.data[0] - 'a'];

        if (servers_take(some, i, position)) {
            const struct stream_taken t = servers_taken(some, i, position);

            take_one(context, &t);
        }
    }
}

static void on_there(struct conn *c, const struct frame *f)
{
    const enum err e = servers_frame(&w.node[c->node].served, c->id, f, &c->back[0]);

    assert_true(e != ERR_CORRUPT || planted());
    w.crowded += e == ERR_TOO_BIG ? 1 : 0;
    if (e != ERR_OK) {
        node_end(c);
    }
}

static void on_lost(void *context, uint64_t connection, enum err why)
{
    (void)context;
    assert_true(why != ERR_CORRUPT || planted());
    w.crowded += why == ERR_TOO_BIG ? 1 : 0;
    for (size_t i = 0; i < CONNS; i++) {
        if (w.conn[i] != NULL && w.conn[i]->id == connection) {
            node_end(w.conn[i]);
        }
    }
}

static void on_back(struct conn *c, const struct frame *f)
{
    struct client *a = &w.client[c->client];
    struct stream_client *s = a->stream[c->node];
    struct stream_head head;
    struct reader in;

    assert_int_equal(stream_head_get(f, &head, &in), ERR_OK);
    if (s == NULL) {
        return;
    }
    if ((enum stream_frame)f->type != STREAM_ANSWER) {
        const enum err joined =
            asker_joined(&a->asker, s, c->id, (enum stream_frame)f->type, &head);

        assert_true(joined == ERR_OK || planted());
        if ((enum stream_frame)f->type == STREAM_GONE && s->connection == c->id) {
            greet(c);
        }
        return;
    }
    const enum err e = asker_open(s, c->id, &head);
    assert_true(e != ERR_CORRUPT || planted());
    if (e == ERR_CORRUPT) {
        client_end(c);
    }
    for (size_t i = 0; e == ERR_OK && i < f->count; i++) {
        struct stream_answer answer;

        assert_int_equal(stream_answer_get(&in, &answer), ERR_OK);
        w.lefts += answer.code == STREAM_CODE_LEFT ? 1 : 0;
        assert_int_equal(asker_answer(&a->asker, s, head.first + i, head.version, &answer), ERR_OK);
    }
}

/* Some bytes of those on the way arrive, and what is whole of them is read. */
static void arrive(struct buffer pipe[2])
{
    const size_t size = w.calm              ? pipe[0].size
                        : pipe[0].size == 0 ? 0
                                            : prng_u64(&w.prng) % (pipe[0].size + 1);

    buffer_put(&pipe[1], pipe[0].data, size);
    buffer_consume(&pipe[0], size);
}

static void deliver_there(struct conn *c)
{
    struct frame f;
    size_t size;

    arrive(c->there);
    while (c->at_node && w.node[c->node].up && frame_next(&c->there[1], &f, &size)) {
        on_there(c, &f);
        buffer_consume(&c->there[1], size);
    }
}

static void deliver_back(struct conn *c)
{
    struct frame f;
    size_t size;

    arrive(c->back);
    while (c->at_client && w.client[c->client].up && frame_next(&c->back[1], &f, &size)) {
        on_back(c, &f);
        buffer_consume(&c->back[1], size);
    }
}

static void hand_out(struct sendlog *l, struct buffer *pipe)
{
    struct bytes out = sendlog_unsent(l);

    // An ACK is late now and then.
    while (out.size > 0 && (out.data != l->ack || w.calm || chance(300))) {
        const size_t size = w.calm || chance(700) ? out.size : 1 + prng_u64(&w.prng) % out.size;

        buffer_put(pipe, out.data, size);
        sendlog_sent(l, size);
        if (size < out.size) {
            break;
        }
        out = sendlog_unsent(l);
    }
}

static void flush(struct conn *c)
{
    struct client *a = &w.client[c->client];
    struct stream_client *s = a->up ? a->stream[c->node] : NULL;
    struct stream_served *n =
        w.node[c->node].up ? servers_find(&w.node[c->node].served, client_id(c->client)) : NULL;

    if (c->at_client && s != NULL && s->connection == c->id && s->joined) {
        hand_out(&s->log, &c->there[0]);
    }
    if (c->at_node && n != NULL && n->stream.connection == c->id) {
        hand_out(&n->stream.log, &c->back[0]);
    }
}

/* ---- the ring ---- */

static void ring_next(void)
{
    memcpy(w.owner[w.version + 1], w.owner[w.version], sizeof w.owner[0]);
    w.version++;
}

static void abort_moves(unsigned node)
{
    for (unsigned v = 0; v < VNODES; v++) {
        if (w.move[v].pends && (w.move[v].to == node || w.owner[w.version][v] == node)) {
            w.move[v].pends = w.move[v].drained = false;
        }
    }
}

static void move_step(void)
{
    const unsigned v = any(VNODES);
    const unsigned from = w.owner[w.version][v];
    struct node *n = &w.node[from];

    if (!w.move[v].pends) {
        const unsigned to = any(w.nodes);

        if (!w.calm && n->up && w.client[GATEWAYS + from].version == w.version && !n->hold[v] &&
            to != from && w.node[to].up && !w.node[to].leaves) {
            w.move[v].pends = true;
            w.move[v].to = to;
            n->hold[v] = true;
        }
        return;
    }
    if (!w.move[v].drained) {
        bool runs = false;

        for (unsigned e = 0; e < ENTITIES; e++) {
            runs = runs || (vnode_of(e) == v && n->running[e] != NULL);
        }
        w.move[v].drained = n->up && !runs;
    } else if (chance(150)) {
        w.move[v].pends = w.move[v].drained = false;
    } else if (n->up && w.node[w.move[v].to].up && w.version + VERSIONS_KEPT < VERSIONS) {
        ring_next();
        w.owner[w.version][v] = w.move[v].to;
        w.move[v].pends = w.move[v].drained = false;
    }
}

static void crash(unsigned node)
{
    for (size_t i = 0; i < CONNS; i++) {
        struct conn *c = w.conn[i];

        if (c != NULL && (c->node == node || c->client == GATEWAYS + node)) {
            lose_some(&c->there[0]);
            lose_some(&c->back[0]);
            if (c->node == node) {
                c->at_node = false;
            } else {
                c->at_client = false;
            }
        }
    }
    node_free(node);
    w.losses++;
}

/* It is over by the ring, and others have what it had. */
static void fence(unsigned node)
{
    unsigned heirs[NODES];
    unsigned count = 0;

    for (unsigned i = 0; i < w.nodes; i++) {
        if (w.node[i].up && !w.node[i].leaves) {
            heirs[count++] = i;
        }
    }
    if (count == 0 || w.version + 1 >= VERSIONS) {
        return;
    }
    abort_moves(node);
    ring_next();
    w.node[node].over = true;
    w.node[node].over_at = w.version;
    for (unsigned v = 0; v < VNODES; v++) {
        if (w.owner[w.version][v] == node) {
            w.owner[w.version][v] = heirs[any(count)];
        }
    }
}

/* R16: who owns nothing says LEFT, and goes when all has been heard. */
static void leave(unsigned node)
{
    struct node *n = &w.node[node];
    bool idle = true;

    for (unsigned v = 0; v < VNODES; v++) {
        if (w.owner[w.version][v] == node || (w.move[v].pends && w.move[v].to == node)) {
            return;
        }
    }
    if (w.client[GATEWAYS + node].version != w.version || w.version + 1 >= VERSIONS ||
        w.client[GATEWAYS + node].asker.under_way > 0) {
        return;
    }
    n->leaves = true;
    for (struct list_link *l = list_front(&n->served.all); l != NULL;
         l = list_next(&n->served.all, l)) {
        struct stream_served *s = CONTAINER_OF(l, struct stream_served, in);

        if (s->stream.open == 0 && !s->stream.left) {
            server_leave(&s->stream);
        }
        idle = idle && server_idle(&s->stream);
    }
    if (idle) {
        ring_next();
        n->over = true;
        n->over_at = w.version;
        const size_t losses = w.losses;
        crash(node); // nothing of it is missed
        w.losses = losses;
    }
}

static unsigned nodes_up(void)
{
    unsigned up = 0;

    for (unsigned i = 0; i < w.nodes; i++) {
        up += w.node[i].up && !w.node[i].leaves ? 1 : 0;
    }
    return up;
}

/* ---- a seed ---- */

static void step_nodes(void)
{
    const unsigned node = any(w.nodes);
    struct node *n = &w.node[node];

    if (!n->up) {
        if (!n->over && chance(w.faults.adopts)) {
            fence(node);
        }
        return;
    }
    if (chance(w.client[GATEWAYS + node].adopts) && w.client[GATEWAYS + node].version < w.version) {
        node_adopt(node);
    }
    for (unsigned v = 0; v < VNODES; v++) {
        if (n->hold[v] && !(w.move[v].pends && w.owner[w.version][v] == node)) {
            if (w.client[GATEWAYS + node].version == w.version || chance(w.faults.adopts)) {
                node_adopt(node); // the outcome
            }
        }
    }
    const unsigned e = any(ENTITIES);
    if (n->running[e] != NULL && chance(500)) {
        end_run(node, e);
        pump(node, e);
    }
    if (chance(w.faults.expires)) {
        expire(node);
    }
    tick(node);
    if (n->leaves || (chance(w.faults.leaves) && nodes_up() > 2)) {
        leave(node);
    }
    if (n->up && chance(w.faults.crashes) && nodes_up() > 1) {
        crash(node);
    }
}

static void step(void)
{
    w.now_ms += chance(300) ? 1 : 0;
    if (chance(400)) {
        ask();
    }
    if (chance(w.faults.gives_up)) {
        give_up();
    }
    if (chance(w.faults.moves)) {
        move_step();
    }
    if (w.nodes < NODES && nodes_up() < LIVE && w.version + VERSIONS_KEPT < VERSIONS &&
        chance(20)) {
        ring_next();
        node_start();
    }
    step_nodes();
    const unsigned client = any(GATEWAYS + w.nodes);
    struct client *a = &w.client[client];
    if (a->up && client < GATEWAYS && a->version < w.version && chance(a->adopts)) {
        client_adopt(client);
    }
    if (chance(200)) {
        connect_one(client, any(w.nodes));
    }
    if (a->up && chance(500)) {
        asker_turn(&a->asker, w.now_ms);
        asker_look(&a->asker);
        if (!planted()) {
            asker_check(&a->asker);
        }
    }
    for (size_t i = 0; i < CONNS; i++) {
        if (w.conn[i] == NULL) {
            continue;
        }
        if (chance(w.conn[i]->speed)) {
            flush(w.conn[i]);
        }
        if (chance(w.conn[i]->speed)) {
            deliver_there(w.conn[i]);
        }
        if (chance(w.conn[i]->speed)) {
            deliver_back(w.conn[i]);
        }
        if (chance(w.faults.breaks)) {
            break_one(w.conn[i]);
        }
        conn_reap(i);
    }
}

/* True: it may be asked whether all is over. */
static bool is_quiet(void)
{
    size_t busy = w.open;

    for (unsigned c = 0; c < GATEWAYS + w.nodes; c++) {
        busy += w.client[c].up ? w.client[c].asker.under_way + w.client[c].asker.lanes.count +
                                     w.client[c].asker.chunks.count
                               : 0;
    }
    for (unsigned n = 0; n < w.nodes; n++) {
        busy += w.node[n].up ? w.node[n].served.chunks.count : 0;
    }
    return busy == 0;
}

/* Nothing fails any more, and all hear of everything. */
static void calm_down(void)
{
    w.calm = true;
    for (unsigned i = 0; i < w.nodes; i++) {
        if (!w.node[i].up && !w.node[i].over) {
            fence(i);
        }
    }
    for (unsigned round = 0; round < CALM_ROUNDS && !is_quiet(); round++) {
        w.now_ms += 5;
        for (unsigned v = 0; v < VNODES; v++) {
            w.move[v].pends = w.move[v].drained = false;
        }
        for (unsigned g = 0; g < GATEWAYS; g++) {
            client_adopt(g);
        }
        for (unsigned n = 0; n < w.nodes; n++) {
            if (w.node[n].up) {
                node_adopt(n);
                for (unsigned e = 0; e < ENTITIES; e++) {
                    if (w.node[n].running[e] != NULL) {
                        end_run(n, e);
                    }
                }
                pump_all(n);
                if (w.node[n].leaves) {
                    leave(n);
                }
            }
        }
        for (unsigned c = 0; c < GATEWAYS + w.nodes; c++) {
            for (unsigned n = 0; n < w.nodes; n++) {
                connect_one(c, n);
            }
            if (w.client[c].up) {
                asker_turn(&w.client[c].asker, w.now_ms);
                asker_look(&w.client[c].asker);
            }
        }
        for (size_t i = 0; i < CONNS; i++) {
            if (w.conn[i] != NULL) {
                flush(w.conn[i]);
                deliver_there(w.conn[i]);
                flush(w.conn[i]);
                deliver_back(w.conn[i]);
                flush(w.conn[i]);
                deliver_there(w.conn[i]);
                conn_reap(i);
            }
        }
    }
}

static void nothing_is_left(void)
{
    assert_int_equal(w.open, 0); // each was answered
    for (unsigned c = 0; c < GATEWAYS + w.nodes && !planted(); c++) {
        const struct stream_asker *a = &w.client[c].asker;

        if (w.client[c].up) {
            assert_int_equal(a->under_way, 0);
            assert_int_equal(a->lanes.count, 0);
            assert_int_equal(a->chunks.count, 0);
        }
    }
    for (unsigned n = 0; n < w.nodes && !planted(); n++) {
        if (w.node[n].up) {
            struct stream_servers *v = &w.node[n].served;

            tick(n);
            assert_int_equal(v->chunks.count, 0);
            assert_true(list_empty(&v->dead));
            for (struct list_link *l = list_front(&v->all); l != NULL; l = list_next(&v->all, l)) {
                assert_int_equal(CONTAINER_OF(l, struct stream_served, in)->stream.open, 0);
            }
        }
    }
}

static void seed_begin(uint64_t seed)
{
    memset(&w, 0, sizeof w);
    w.prng.state = seed * 0x9e3779b97f4a7c15u;
    w.version = 1;
    w.faults = (struct faults){.breaks = any(3) == 0 ? 0 : 1 + any(12),
                               .crashes = any(2) == 0 ? 0 : 1 + any(4),
                               .busy = any(2) == 0 ? 0 : any(20),
                               .expires = any(2) == 0 ? 0 : any(40),
                               .gives_up = any(2) == 0 ? 0 : any(60),
                               .moves = any(4) == 0 ? 0 : 20 + any(200),
                               .gone_ms = any(4) != 0 ? UINT64_MAX : 1 + any(60),
                               .slow = any(2) == 0 ? 0 : any(60),
                               .adopts = 20 + any(800),
                               .leaves = any(4) != 0 ? 0 : 20 + any(100)};
    for (unsigned i = 0; i < LIVE; i++) {
        node_start();
    }
    for (unsigned v = 0; v < VNODES; v++) {
        w.owner[0][v] = w.owner[1][v] = any(LIVE);
    }
    for (unsigned g = 0; g < GATEWAYS; g++) {
        client_start(g, ID_OF_GATEWAY + g);
        client_adopt(g);
    }
    for (unsigned n = 0; n < LIVE; n++) {
        client_adopt(GATEWAYS + n);
    }
}

static void seed_end(void)
{
    for (size_t i = 0; i < CONNS; i++) {
        if (w.conn[i] != NULL) {
            conn_free(w.conn[i]);
        }
    }
    for (unsigned n = 0; n < w.nodes; n++) {
        if (w.node[n].up) {
            node_free(n);
        }
    }
    for (unsigned g = 0; g < GATEWAYS; g++) {
        asker_fini(&w.client[g].asker);
    }
}

static char seed_text[32]; /* of the one that is judged */

static uint64_t seeds_from(void)
{
    const char *one = getenv("SEED");

    return one == NULL ? 0 : strtoull(one, NULL, 10);
}

/* Which seed it was, if one failed. */
static int say_seed(void **state)
{
    (void)state;
    (void)!write(STDERR_FILENO, seed_text, strlen(seed_text));
    return 0;
}

static void on_abort(int signal)
{
    (void)signal;
    (void)!write(STDERR_FILENO, seed_text, strlen(seed_text));
}

static void streams_keep_their_promises(void **state)
{
    const uint64_t one = seeds_from();
    const uint64_t seeds = planted() ? (uint64_t)SEEDS * RARE : SEEDS;
    uint64_t runs = 0, unknowns = 0, forwards = 0, refusals = 0, breaks = 0, lefts = 0;
    uint64_t full = 0, crowded = 0, known = 0;

    (void)state;
    for (uint64_t seed = one == 0 ? 1 : one; seed <= (one == 0 ? seeds : one); seed++) {
        (void)snprintf(seed_text, sizeof seed_text, "SEED=%llu\n", (unsigned long long)seed);
        seed_begin(seed);
        for (unsigned i = 0; i < STEPS; i++) {
            step();
        }
        calm_down();
        nothing_is_left();
        runs += w.runs;
        unknowns += w.unknowns;
        known += w.known;
        forwards += w.forwards;
        refusals += w.refusals;
        breaks += w.breaks;
        lefts += w.lefts;
        full += w.full;
        crowded += w.crowded;
        seed_end();
    }
    seed_text[0] = '\0';
    (void)printf("%llu runs, %llu UNKNOWN, %llu answered again, %llu forwards, %llu refusals, %llu "
                 "breaks, %llu LEFT, "
                 "%llu without room, %llu connections\n",
                 (unsigned long long)runs,
                 (unsigned long long)unknowns,
                 (unsigned long long)known,
                 (unsigned long long)forwards,
                 (unsigned long long)refusals,
                 (unsigned long long)breaks,
                 (unsigned long long)lefts,
                 (unsigned long long)full,
                 (unsigned long long)crowded);
    assert_true(one != 0 || (unknowns > 0 && known > 0 && forwards > 0 && refusals > 0 &&
                             lefts > 0 && full > 0));
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(streams_keep_their_promises, say_seed),
    };

    (void)signal(SIGABRT, on_abort);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {
#define X(name, text) name,
        MUTANT_STREAM_LIST(X)
#undef X
    };

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}
