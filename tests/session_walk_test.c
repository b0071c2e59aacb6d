/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions at random: two gateways, an actor that pushes, moves and breaks, and players that lose
 * their lines, come back by either gateway, send again what has no answer, and log in over one
 * another, or beside. A room on another node broadcasts to many, the actor among them, and sends to
 * it too. The cores are the real ones, of gateways (clients, router) and of the actor's scene;
 * links, and the node's order of requests, are played here.
 *
 *     session_walk_test               so many seeds
 *     SEED=n session_walk_test        one
 *     session_walk_test --mutants     each bug planted in the rules must be found
 */
#include "base/mutant.h"
#include "base/prng.h"
#include "gateway/packet.h"
#include "node/calls.h"
#include "node/scene.h"
#include "tests/client_rig.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GATEWAYS = 2,
    PLAYERS = 3,
    SEATS = 64,
    STEPS = 600,
    QUIET_STEPS = 2000,
    STEP_US = 20000,
    REQUESTS = 512,
    QUEUE = 2048,
    ORDERS = 512,
    LIVES = 64,
    KEPT_ANSWERS = 64,
    KEEP_MS = 30000,
    MISSED_US = 5000000,
    ROOM_ID = 99,      /* incarnation of its node */
    ROOM_MEMBERS = 12, /* at most, in one broadcast */
    SEEDS = 60,
    MUTANT_SEEDS = 200,
};

/* ---- the node's side of order: what tests/order_test.c has at length */

struct saved {
    uint64_t seq;
    uint8_t code;
    uint8_t size;
    uint8_t body[64];
};

struct line_order {
    uint64_t session;
    uint64_t last;
    uint64_t base;
    uint32_t epoch;
    struct saved saved[KEPT_ANSWERS];
};

/* ---- a link: what is on its way, first in, first out */

struct queue {
    struct buffer item[QUEUE];
    bool push[QUEUE]; /* a push record; else an answer, or a request */
    size_t first;
    size_t count;
};

struct gateway {
    struct client_rig r;
    struct queue up;
    struct queue down;
    uint64_t id;
    uint64_t gone_us; /* the one before died; it is missed then */
    uint64_t gone_id;
};

/* What the room says is numbered, and so marked where a client's own pushes count. */
#define ROOM_MARK (UINT64_C(1) << 63)

/* What a session is pushed alone says in front of its number whose it is. */
enum { TAG_AT = 40, TAG_MASK = 0x7fffff };

/* ---- a session, as the actor knows it */

struct seat {
    enum { NOBODY, THERE, AWAY } client;
    uint64_t session;
    uint64_t counted; /* pushes to this client */
    uint64_t lost_us; /* AWAY */
};

/* ---- the room: an actor of another node */

struct room {
    struct prng prng;
    struct rig rig; /* for the view */
    struct calls *calls;
    struct queue up;
    struct queue down;
    uint64_t peer;  /* its link */
    uint64_t said;  /* to the actor: the last number, … */
    uint64_t heard; /* … and the last that came */
    uint64_t casts;
};

/* ---- a player */

struct player {
    unsigned number;
    struct client *client; /* NULL = no line */
    size_t gateway;
    struct buffer heard;
    bool asked;  /* bind or resume is under way */
    bool seated; /* … and was taken */
    bool keeps;  /* it has a session to come back to */
    bool fair;   /* nobody else has touched that: it must not be gone */
    uint64_t lost_us;
    struct session_packet session;
    uint64_t seen;   /* sequence of the last push */
    uint64_t tag;    /* of its session, once it was pushed to alone */
    uint32_t named;  /* the last request */
    uint32_t before; /* those to this one are of before `begun` */
    uint32_t life;   /* of the session of requests: counts its binds */
    bool open[REQUESTS];
    bool resumes; /* what it asked for is a resume */
    bool again;   /* what has no answer is to be sent again */
    bool over;    /* its line is of no use */
};

struct world {
    struct prng prng;
    struct scene *scene;
    struct rh_actor *actor;
    struct rh_actor_ops ops;
    struct gateway gateway[GATEWAYS];
    struct player player[PLAYERS];
    struct room room;
    struct line_order order[ORDERS];
    size_t order_count;
    uint64_t now_us;
    uint64_t gateways_drawn;
    bool poked;
    bool quiet; /* no more faults */
    /* The actor's own. */
    struct seat seat[SEATS];
    size_t seats_max; /* so many at a time */
    uint64_t fence;
    struct buffer answer; /* of what ran last */
    struct buffer bond;   /* as exported last */
    unsigned breaks_pm;
    uint64_t broken;
    /* What ran: by player, life and name. */
    uint8_t ran[PLAYERS][LIVES][REQUESTS];
    uint32_t ran_last[PLAYERS][LIVES];
    uint64_t returned;
    uint64_t replaced;
    uint64_t begun;
    uint64_t moved;
};

static struct world *w; /* of the seed that runs */
static uint64_t seed_now;

static bool chance(unsigned per_mille)
{
    return prng_between(&w->prng, 1, 1000) <= per_mille;
}

#define CHECK(c, what)                                                                    \
    do {                                                                                  \
        if (!(c)) {                                                                       \
            (void)fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed_now, what); \
            (void)fflush(stderr);                                                         \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

/* ---- links */

static void queue_put(struct queue *q, struct bytes bytes, bool push)
{
    CHECK(q->count < QUEUE, "a link of this test is too short");
    const size_t at = (q->first + q->count++) % QUEUE;

    buffer_clear(&q->item[at]);
    buffer_put(&q->item[at], bytes.data, bytes.size);
    q->push[at] = push;
}

static struct buffer *queue_take(struct queue *q, bool *push)
{
    struct buffer *b = &q->item[q->first];

    *push = q->push[q->first];
    q->first = (q->first + 1) % QUEUE;
    q->count--;
    return b;
}

static void queue_fini(struct queue *q)
{
    for (size_t i = 0; i < QUEUE; i++) {
        buffer_fini(&q->item[i]);
    }
}

static void do_effects(struct gateway *g, struct router_effects *effects)
{
    for (size_t i = 0; i < effects->count; i++) {
        const struct router_effect *e = &effects->item[i];
        const struct bytes bytes = {effects->bytes.data + e->at, e->size};
        struct client *c = e->type == ROUTER_REPLY ? clients_find(g->r.all, e->session) : NULL;

        if (e->type == ROUTER_SEND_NODE) {
            queue_put(&g->up, bytes, false);
        } else if (c != NULL) {
            client_on_reply(c, e, bytes, w->now_us);
        }
    }
}

static void own_effects(struct gateway *g)
{
    do_effects(g, &g->r.effects);
    router_effects_clear(&g->r.effects);
}

static void event(struct gateway *g, struct router_event e)
{
    g->r.rig.now_us = w->now_us;
    rig_step(&g->r.rig, e);
    do_effects(g, &g->r.rig.effects);
}

static void gateway_open(struct gateway *g)
{
    const struct clients_config clients = clients_config_default();
    struct router_config router = router_config_default();

    g->id = ++w->gateways_drawn << 20;
    router.gateway = g->id;
    router.seed = prng_u64(&w->prng);
    g->r = (struct client_rig){0};
    rig_init(&g->r.rig, &router);
    g->r.rig.now_us = w->now_us;
    g->r.all = clients_new(&clients, g->r.rig.router, w->now_us);
    client_rig_ring(&g->r);
}

static void gateway_close(struct gateway *g)
{
    clients_free(g->r.all);
    router_effects_fini(&g->r.effects);
    rig_fini(&g->r.rig);
}

static void link_breaks(struct gateway *g)
{
    g->up.count = 0;
    g->down.count = 0;
    event(g, (struct router_event){.type = ROUTER_NODE_DOWN, .slot = 1});
    event(g, (struct router_event){.type = ROUTER_NODE_UP, .slot = 1, .incarnation = 10});
    clients_on_node_up(g->r.all, 1, w->now_us);
}

/* ---- the actor */

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    (void)actor;
    (void)state;
    (void)fence;
    *instance = w;
    return RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)instance;
    (void)why;
}

static size_t count_seats(bool away)
{
    size_t count = 0;

    for (size_t i = 0; i < SEATS; i++) {
        count += w->seat[i].client == THERE || (away && w->seat[i].client == AWAY);
    }
    return count;
}

/* There is room for all: nobody has to give way. */
static bool is_roomy(void)
{
    return w->seats_max == RH_SESSIONS_MAX;
}

static struct seat *seat_of(uint64_t session)
{
    for (size_t i = 0; i < SEATS; i++) {
        if (w->seat[i].client != NOBODY && w->seat[i].session == session) {
            return &w->seat[i];
        }
    }
    return NULL;
}

static struct seat *seat_take(uint64_t session)
{
    struct seat *s = &w->seat[0];

    while (s->client != NOBODY) {
        s++;
        CHECK(s < w->seat + SEATS, "too many seats for this test");
    }
    *s = (struct seat){.session = session};
    return s;
}

/* The actor isn't told when the time of one that is away is over, nor when it gave its place. */
static bool may_be_over(const struct seat *s)
{
    return s->client == AWAY && (w->now_us - s->lost_us >= (uint64_t)KEEP_MS * 1000 ||
                                 (w->seats_max > 1 && !is_roomy()));
}

/* Its count goes along: it is to be the sequence that the client sees. */
static void push_to(struct rh_actor *actor, struct seat *s)
{
    const uint64_t number = (s->counted + 1) | (s->session & TAG_MASK) << TAG_AT;
    const int result = rh_push_one(actor, s->session, (struct rh_bytes){&number, sizeof number});

    CHECK(result == RH_OK || may_be_over(s), "it may push to a client that is bound");
    s->counted++;
    s->client = result == RH_OK ? s->client : NOBODY;
}

static void push_each(struct rh_actor *actor)
{
    CHECK(rh_push_one(actor, 1, (struct rh_bytes){"", 0}) == RH_NO_SESSION, "nobody's session");
    for (size_t i = 0; i < SEATS; i++) {
        if (w->seat[i].client != NOBODY) {
            push_to(actor, &w->seat[i]);
        }
    }
}

/* Of the room: each once, in order, and none is lost. */
static void room_is_heard(uint64_t number)
{
    CHECK(number == (ROOM_MARK | (w->room.heard + 1)),
          "what the room says is lost, doubled or out of order");
    w->room.heard++;
    for (size_t i = 0; i < SEATS; i++) {
        w->seat[i].counted++;
    }
}

/* "player life name": each runs once, and in order. A number of the room is pushed on. */
static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    uint32_t word[3];

    (void)instance;
    if (message->payload.size == 0) {
        push_each(actor);
        return;
    }
    if (message->payload.size == sizeof(uint64_t)) {
        uint64_t number = 0;

        memcpy(&number, message->payload.data, sizeof number);
        room_is_heard(number);
        const bool pushed = rh_push(actor, message->payload) == RH_OK;

        CHECK(pushed ? count_seats(true) > 0 : count_seats(false) == 0,
              "it may push when a client is bound");
        return;
    }
    memcpy(word, message->payload.data, sizeof word);
    CHECK(++w->ran[word[0]][word[1]][word[2]] == 1, "a request ran twice");
    CHECK(word[2] > w->ran_last[word[0]][word[1]], "a request ran behind a later one");
    w->ran_last[word[0]][word[1]] = word[2];
    if (count_seats(true) > 0 && chance(500)) {
        push_each(actor);
    }
    (void)rh_reply(actor, rh_bytes_value(&word[2], sizeof word[2]));
}

static void is_bound(uint64_t session)
{
    CHECK(count_seats(false) < w->seats_max, "more are bound than may be");
    CHECK(seat_of(session) == NULL, "a session is named as another one");
    if (w->seats_max == 1) {
        memset(w->seat, 0, sizeof w->seat); // who was away has lost its place
    }
    seat_take(session)->client = THERE;
}

static void is_replaced(uint64_t session, uint64_t former)
{
    struct seat *s = seat_of(former);

    CHECK(s != NULL && s->client == THERE, "nobody was there to be replaced");
    // When it broke, both may come again: then the newer one stays, whoever is first.
    CHECK(w->ops.sessions != RH_SESSIONS_REJECT_NEW || w->broken > 0, "the older one was to stay");
    CHECK(!is_roomy() || session == former || w->broken > 0, "there was room for both");
    *s = (struct seat){.client = NOBODY};
    is_bound(session);
    w->replaced++;
}

static void is_resumed(uint64_t session, bool back)
{
    struct seat *s = seat_of(session);

    CHECK(!back || s != NULL, "nobody was there to be resumed");
    w->returned += back;
    if (back) {
        s->client = THERE;
        return;
    }
    CHECK(s == NULL || may_be_over(s), "who was there is taken for another");
    if (s != NULL) {
        *s = (struct seat){.client = NOBODY};
    }
    is_bound(session);
}

static int on_session(struct rh_actor *actor, void *instance, const struct rh_session *e)
{
    struct seat *s = seat_of(e->session);

    (void)instance;
    CHECK(e->session != 0 && e->session <= INT64_MAX, "a session has no number");
    switch ((enum rh_session_type)e->type) {
    case RH_SESSION_BOUND:
        is_bound(e->session);
        break;
    case RH_SESSION_REPLACED:
        is_replaced(e->session, e->former);
        break;
    case RH_SESSION_RESUMED:
        is_resumed(e->session, e->why == RH_RESUMED_CLIENT);
        break;
    case RH_SESSION_LOST:
        CHECK(s != NULL && s->client == THERE, "nobody was there to be lost");
        // What is told doesn't say whether it may return: whether it can be pushed to does.
        s->client = AWAY;
        s->lost_us = w->now_us - (uint64_t)KEEP_MS * 1000;
        push_to(actor, s);
        s->lost_us = w->now_us;
        return RH_OK;
    }
    push_to(actor, seat_of(e->session));
    return RH_OK;
}

static void on_scene(void *context, const struct scene_event *e)
{
    (void)context;
    if (e->type == SCENE_RAN) {
        buffer_clear(&w->answer);
        buffer_put(&w->answer, e->bytes.data, e->bytes.size);
    } else if (e->type == SCENE_EXPORTED) {
        buffer_clear(&w->bond);
        buffer_put(&w->bond, e->bond.data, e->bond.size);
    } else if (e->type == SCENE_POKE) {
        w->poked = true;
    } else if (e->type == SCENE_PUSH) {
        struct buffer record = {0};

        push_put(&record, e->push);
        for (size_t i = 0; i < GATEWAYS; i++) {
            if (w->gateway[i].id == e->push->gateway) {
                queue_put(&w->gateway[i].down, buffer_bytes(&record), true);
            }
        }
        buffer_fini(&record);
    }
}

static void actor_enters(bool moved)
{
    const struct scene_entry entry = {.ops = &w->ops,
                                      .actor = w,
                                      .id = bytes_of("a", 1),
                                      .bond = moved ? buffer_bytes(&w->bond) : (struct bytes){0},
                                      .has_state = moved,
                                      .kind = 0,
                                      .fence = ++w->fence};

    w->poked = false;
    w->actor = scene_activate(w->scene, &entry);
}

static void actor_moves(void)
{
    w->moved++;
    scene_export(w->actor);
    scene_discard(w->actor, RH_MOVED);
    actor_enters(true);
}

/* It knows nothing of its client any more, and who was away has lost it. */
static void actor_breaks(void)
{
    scene_discard(w->actor, RH_BROKEN);
    memset(w->seat, 0, sizeof w->seat);
    w->broken++;
    for (size_t i = 0; i < PLAYERS; i++) {
        w->player[i].fair = false;
    }
    actor_enters(false);
}

/* ---- the node's order */

static struct line_order *order_at(uint64_t session)
{
    for (size_t i = 0; i < w->order_count; i++) {
        if (w->order[i].session == session) {
            return &w->order[i];
        }
    }
    CHECK(w->order_count < ORDERS, "too many sessions for this test");
    struct line_order *o = &w->order[w->order_count++];

    *o = (struct line_order){.session = session};
    return o;
}

static void answer(struct queue *down, const struct request_record *q, uint8_t code,
                   struct bytes body)
{
    struct buffer record = {0};

    answer_put(&record,
               &(struct answer_record){.gateway = q->gateway,
                                       .session = q->session,
                                       .seq = q->seq,
                                       .token = q->version,
                                       .version = q->version,
                                       .copy = q->copy,
                                       .code = code,
                                       .body = body});
    queue_put(down, buffer_bytes(&record), false);
    buffer_fini(&record);
}

static void turn(void)
{
    while (w->poked) {
        w->poked = false;
        scene_turn(w->actor, 1);
    }
}

/* The scene pushes it by itself. */
static void look_for_broadcast(const struct request_record *q)
{
    struct bytes body = q->body;
    struct caller from;
    struct note note;
    uint64_t number = 0;

    if ((q->flags & REQUEST_CALL) == 0 || (q->flags & REQUEST_SESSION) == 0) {
        return;
    }
    CHECK(caller_get(&body, &from) == ERR_OK && note_get(body, &note) == ERR_OK, "no note");
    CHECK(note.type == NOTE_PUSH && note.payload.size == sizeof number, "no push");
    memcpy(&number, note.payload.data, sizeof number);
    room_is_heard(number);
}

static void run(struct queue *down, const struct request_record *q, struct line_order *o)
{
    const struct scene_message m = {.ticket = 1, .flags = q->flags, .body = q->body};
    struct saved *s = &o->saved[q->seq % KEPT_ANSWERS];

    o->last = q->seq;
    look_for_broadcast(q);
    scene_run(w->actor, &m);
    CHECK(w->answer.size <= sizeof s->body, "an answer too large for this test");
    *s = (struct saved){.seq = q->seq, .size = (uint8_t)w->answer.size};
    memcpy(s->body, w->answer.data == NULL ? (const void *)"" : w->answer.data, w->answer.size);
    answer(down, q, ANSWER_OK, bytes_of(s->body, s->size));
    turn();
}

static void on_request(struct queue *down, struct bytes bytes)
{
    struct reader in = {.at = bytes.data, .left = bytes.size};
    struct request_record q;

    CHECK(request_get(&in, &q) == ERR_OK, "no request");
    if (!bytes_equal(q.id, bytes_of("a", 1))) {
        answer(down, &q, ANSWER_NO_KIND, (struct bytes){0}); // It sleeps.
        return;
    }
    struct line_order *o = order_at(q.session);
    const struct saved *s = &o->saved[q.seq % KEPT_ANSWERS];

    if (q.session_epoch < o->epoch) {
        return; // fenced
    }
    o->epoch = q.session_epoch;
    o->base = q.base > o->base ? q.base : o->base;
    if (q.seq <= o->last) {
        const bool kept = s->seq == q.seq;

        answer(down, &q, kept ? ANSWER_OK : ANSWER_LOST, bytes_of(s->body, kept ? s->size : 0));
    } else if (q.seq >= o->base && !(q.prev != 0 && q.prev >= o->base && o->last < q.prev)) {
        run(down, &q, o);
    }
}

static void on_down(struct gateway *g, struct bytes bytes, bool push)
{
    struct reader in = {.at = bytes.data, .left = bytes.size};
    struct answer_record a;
    struct push_record p;

    if (push) {
        CHECK(push_get(&in, &p) == ERR_OK, "no push");
        (void)clients_on_push(g->r.all, &p, w->now_us);
        return;
    }
    CHECK(answer_get(&in, &a) == ERR_OK, "no answer");
    event(g, (struct router_event){.type = ROUTER_ANSWER, .slot = 1, .answer = &a});
}

/* ---- players */

static void say(struct player *p, struct buffer *said)
{
    struct gateway *g = &w->gateway[p->gateway];

    client_on_bytes(p->client, buffer_bytes(said), w->now_us, &g->r.effects);
    own_effects(g);
    buffer_fini(said);
}

static void ask(struct player *p, enum packet_type type, const struct request_packet *r)
{
    struct buffer said = {0};

    packet_put_request(&said, type, r);
    say(p, &said);
}

static uint32_t lowest_open(const struct player *p)
{
    for (uint32_t i = 1; i <= p->named; i++) {
        if (p->open[i]) {
            return i;
        }
    }
    return p->named + 1;
}

static void hang_up(struct player *p)
{
    struct gateway *g = &w->gateway[p->gateway];

    client_free(p->client, w->now_us, &g->r.effects);
    own_effects(g);
    p->client = NULL;
    buffer_clear(&p->heard);
    p->seated = false;
    p->asked = false;
    p->lost_us = w->now_us;
}

static void dial(struct player *p)
{
    struct gateway *g = NULL;
    struct buffer said = {0};

    p->gateway = prng_between(&w->prng, 0, GATEWAYS - 1);
    g = &w->gateway[p->gateway];
    p->client = client_new(g->r.all, CLIENT_PACKETS, "x", w->now_us);
    packet_put_hello(&said, &(struct hello_packet){.version_min = 1, .version_max = 1});
    say(p, &said);
    p->asked = true;
}

static void forget(struct player *p)
{
    p->keeps = false;
    memset(p->open, 0, sizeof p->open);
}

/* As a new client would. */
static void log_in(struct player *p)
{
    forget(p);
    dial(p);
    p->resumes = false;
    p->fair = true; // until another one logs in, or the actor breaks
    p->life++;
    CHECK(p->life < LIVES, "too many lives for this test");
    p->named = 0;
    ask(p,
        PACKET_BIND,
        &(struct request_packet){.request = 1, .flags = PACKET_KEEP, .id = bytes_of("a", 1)});
}

static void come_back(struct player *p)
{
    uint8_t payload[PACKET_SESSION_SIZE];

    dial(p);
    p->resumes = true;
    packet_put_return(
        payload,
        &(struct return_packet){.name = p->session.name, .has = {p->seen, lowest_open(p)}});
    ask(p,
        PACKET_RESUME,
        &(struct request_packet){
            .request = 1, .id = bytes_of("a", 1), .payload = bytes_of(payload, sizeof payload)});
}

static void request(struct player *p, uint32_t name, uint8_t flags)
{
    const uint32_t word[3] = {p->number, p->life, name};

    ask(p,
        PACKET_REQUEST,
        &(struct request_packet){.request = name,
                                 .flags = flags,
                                 .id = bytes_of("a", 1),
                                 .payload = bytes_of((const uint8_t *)word, sizeof word)});
}

/* Those of before `begun` are UNKNOWN to it, and so are all when the session is over. */
static void send_again(struct player *p)
{
    for (uint32_t i = 1; i <= p->named && p->client != NULL; i++) {
        if (i <= p->before && p->open[i]) {
            p->open[i] = false;
        } else if (p->open[i]) {
            request(p, i, PACKET_AGAIN);
        }
    }
}

static void is_seated(struct player *p, struct bytes payload)
{
    struct session_packet session;

    CHECK(packet_get_session(payload, &session) == ERR_OK, "the answer names no session");
    CHECK(!p->resumes || session.next == p->seen + 1, "pushes are missing for a resume");
    p->session = session;
    p->asked = false;
    p->seated = true;
    if (p->resumes) {
        p->again = true;
        return;
    }
    p->seen = 0;
    p->tag = 0;
    p->before = 0;
    p->keeps = true;
}

/* A bind or a resume was not taken. */
static void is_refused(struct player *p, uint8_t status)
{
    p->asked = false;
    p->over = true;
    if (status == STATUS_REJECTED && p->resumes) {
        CHECK(!p->fair || w->now_us - p->lost_us > (uint64_t)(KEEP_MS - 100) * 1000,
              "a session is gone that was to be kept");
        p->keeps = false;
    }
}

static void on_response(struct player *p, struct bytes body)
{
    struct response_packet r;
    uint32_t name = 0;

    CHECK(packet_get_response(body, &r) == ERR_OK, "no response");
    if (p->asked) {
        if (r.status == STATUS_OK) {
            is_seated(p, r.payload);
        } else {
            is_refused(p, r.status);
        }
        return;
    }
    CHECK(r.request <= p->named && p->open[r.request], "an answer that nobody waits for");
    p->open[r.request] = false;
    if (r.status == STATUS_OK) {
        memcpy(&name, r.payload.data, sizeof name);
        CHECK(r.payload.size == sizeof name && name == r.request, "the answer of another request");
        CHECK(w->ran[p->number][p->life][name] == 1, "answered, and did not run");
    } else {
        CHECK(r.status != STATUS_BAD_REQUEST, "a good request is refused");
    }
}

static void on_push(struct player *p, struct bytes body)
{
    struct push_packet push;
    uint64_t number = 0;

    CHECK(packet_get_push(body, &push) == ERR_OK && push.payload.size == 8, "no push");
    memcpy(&number, push.payload.data, sizeof number);
    CHECK(push.sequence == p->seen + 1, "a push is lost, doubled or out of order");
    p->seen = push.sequence;
    if ((number & ROOM_MARK) == 0) {
        p->tag = p->tag == 0 ? number >> TAG_AT : p->tag;
        CHECK(number == (p->seen | p->tag << TAG_AT), "a push of another session");
    }
}

static void on_begun(struct player *p, struct bytes body)
{
    CHECK(packet_get_session(body, &p->session) == ERR_OK && p->session.next == 1, "no begun");
    p->seen = 0;
    p->tag = 0;
    p->before = p->named;
    w->begun++;
}

/* Another one took its place; or it hung, and its session goes on with its next line, which is this
 * player's own: then it knows. */
static void on_kick(struct player *p, struct bytes body)
{
    struct notice_packet n;

    CHECK(packet_get_notice(body, &n) == ERR_OK, "no kick");
    CHECK(n.number == KICK_REPLACED, "a kick for no reason");
    CHECK(!is_roomy() || !p->fair, "a kick where there is room for all");
    forget(p);
    p->over = true;
}

static void hear(struct player *p, const struct packet *packet)
{
    switch (packet->type) {
    case PACKET_RESPONSE:
        on_response(p, packet->body);
        break;
    case PACKET_PUSH:
        on_push(p, packet->body);
        break;
    case PACKET_BEGUN:
        on_begun(p, packet->body);
        break;
    case PACKET_KICK:
        on_kick(p, packet->body);
        break;
    default:
        CHECK(packet->type == PACKET_HELLO_ACK || packet->type == PACKET_PING, "what is that?");
    }
}

static void listen(struct player *p)
{
    const struct bytes out = client_output(p->client);
    struct packet packet;
    size_t at = 0;

    buffer_put(&p->heard, out.data, out.size);
    client_sent(p->client, out.size, w->now_us);
    while (packet_next(bytes_of(p->heard.data + at, p->heard.size - at),
                       PACKET_BODY_MAX,
                       &packet) == PACKET_WHOLE) {
        at += PACKET_HEADER + packet.body.size;
        hear(p, &packet);
    }
    buffer_consume(&p->heard, at);
    if (p->over || client_is_done(p->client)) {
        p->over = false;
        hang_up(p);
    } else if (p->again) {
        p->again = false;
        send_again(p);
    }
}

static void acknowledge(struct player *p)
{
    struct buffer said = {0};

    packet_put_ack(&said, &(struct ack_packet){p->seen, lowest_open(p)});
    say(p, &said);
}

/* One that logs in takes the place of who is there, or of who is away, unless there is room. */
static void others_are_not_safe(const struct player *p)
{
    for (size_t i = 0; i < PLAYERS; i++) {
        if (&w->player[i] != p && !is_roomy()) {
            w->player[i].fair = false;
        }
    }
}

static void act(struct player *p)
{
    if (p->client == NULL && p->keeps && chance(100)) {
        come_back(p);
    } else if (p->client == NULL && !p->keeps && chance(w->quiet ? 0 : 10) && p->life + 1 < LIVES) {
        others_are_not_safe(p);
        log_in(p);
    } else if (p->client != NULL && p->seated && !w->quiet && p->named + 1 < REQUESTS &&
               chance(300)) {
        p->open[++p->named] = true;
        request(p, p->named, 0);
    }
    if (p->client != NULL && p->seated && chance(100)) {
        acknowledge(p);
    }
    if (p->client != NULL && !w->quiet && chance(15)) {
        hang_up(p);
    }
}

/* ---- the world */

static void gateway_dies(struct gateway *g)
{
    for (size_t i = 0; i < PLAYERS; i++) {
        struct player *p = &w->player[i];

        if (p->client != NULL && &w->gateway[p->gateway] == g) {
            hang_up(p);
        }
    }
    g->gone_id = g->id;
    g->gone_us = w->now_us + MISSED_US;
    g->up.count = 0;
    g->down.count = 0;
    gateway_close(g);
    gateway_open(g);
}

static void deliver(struct gateway *g)
{
    bool push = false;

    while (g->up.count > 0 && (w->quiet || chance(800))) {
        on_request(&g->down, buffer_bytes(queue_take(&g->up, &push)));
    }
    while (g->down.count > 0 && (w->quiet || chance(800))) {
        const struct buffer *b = queue_take(&g->down, &push);

        on_down(g, buffer_bytes(b), push);
    }
}

/* ---- the room */

static void room_effects(void)
{
    struct calls_effect e;

    while (calls_take(w->room.calls, &e)) {
        struct buffer whole = {0};

        if (e.type != CALLS_SEND || e.frame_type != FRAME_REQUEST) {
            continue;
        }
        if (e.common.data == NULL) {
            buffer_put(&whole, e.bytes.data, e.bytes.size);
        } else {
            request_put_whole(&whole, e.bytes, e.common);
        }
        queue_put(&w->room.up, buffer_bytes(&whole), false);
        buffer_fini(&whole);
    }
    calls_check(w->room.calls);
}

static void room_ask(struct call *call, struct bytes payload)
{
    call->session = 1;
    call->from = bytes_of("room", 4);
    call->payload = payload;
    call->flags = RH_NO_REPLY;
    calls_ask(w->room.calls, call, w->now_us);
}

/* The actor is one of many, somewhere among them. */
static void room_casts(struct bytes number)
{
    const uint64_t count = prng_between(&w->room.prng, 1, ROOM_MEMBERS);
    const uint64_t actor = prng_between(&w->room.prng, 1, count);
    const struct note note = {.type = NOTE_PUSH, .payload = number};
    struct buffer body = {0};
    uint8_t ids[2 * ROOM_MEMBERS];

    for (uint64_t i = 0; i < count; i++) {
        ids[2 * i] = 1;
        ids[2 * i + 1] = (uint8_t)(i + 1 == actor ? 'a' : 'b' + i);
    }
    note_put(&body, &note);
    struct call call = {.id = bytes_of(ids, 2 * count), .count = count, .push = true};
    room_ask(&call, buffer_bytes(&body));
    buffer_fini(&body);
    w->room.casts++;
}

static void room_says(void)
{
    const uint64_t number = ROOM_MARK | ++w->room.said;
    const struct bytes bytes = bytes_of((const uint8_t *)&number, sizeof number);

    if (prng_between(&w->room.prng, 0, 2) > 0) {
        room_casts(bytes);
        return;
    }
    struct call call = {.id = bytes_of("a", 1)};
    room_ask(&call, bytes);
}

static void room_open(void)
{
    struct router_config config = router_config_default();

    w->room.prng.state = seed_now + 1;
    config.gateway = ROOM_ID;
    config.seed = ROOM_ID;
    rig_init(&w->room.rig, &config);
    rig_add_member(&w->room.rig, 1, 10);
    ring_create(&w->room.rig.leader.ring, RIG_VNODES, 1, 5);
    rig_config(&w->room.rig);
    w->room.calls = calls_new(&config);
    calls_look(w->room.calls, router_view(w->room.rig.router), ROOM_ID, w->now_us);
    calls_up(w->room.calls, ++w->room.peer, 10, w->now_us);
    room_effects();
}

static void room_close(void)
{
    calls_free(w->room.calls);
    rig_fini(&w->room.rig);
    queue_fini(&w->room.up);
    queue_fini(&w->room.down);
}

static bool room_chance(unsigned per_mille)
{
    return prng_between(&w->room.prng, 1, 1000) <= per_mille;
}

static void room_link_breaks(void)
{
    w->room.up.count = 0;
    w->room.down.count = 0;
    calls_down(w->room.calls, w->room.peer, w->now_us);
    calls_up(w->room.calls, ++w->room.peer, 10, w->now_us);
}

static void room_turn(void)
{
    struct room *r = &w->room;
    bool push = false;

    calls_tick(r->calls, w->now_us);
    while (!w->quiet && room_chance(300)) {
        room_says();
    }
    room_effects();
    while (r->up.count > 0 && (w->quiet || room_chance(900))) {
        on_request(&r->down, buffer_bytes(queue_take(&r->up, &push)));
    }
    while (r->down.count > 0 && (w->quiet || room_chance(900))) {
        const struct buffer *b = queue_take(&r->down, &push);
        struct reader in = {.at = b->data, .left = b->size};
        struct answer_record a;

        CHECK(answer_get(&in, &a) == ERR_OK, "no answer");
        (void)calls_answer(r->calls, r->peer, &a, w->now_us);
    }
    if (!w->quiet && room_chance(10)) {
        room_link_breaks();
    }
    room_effects();
}

static void gateway_turn(struct gateway *g)
{
    g->r.rig.now_us = w->now_us;
    event(g, (struct router_event){.type = ROUTER_TICK});
    deliver(g);
    while (clients_go_on(g->r.all, w->now_us, &g->r.effects) != NULL) {
    }
    own_effects(g);
    if (g->gone_id != 0 && w->now_us >= g->gone_us) {
        scene_gateway_gone(w->scene, g->gone_id);
        g->gone_id = 0;
        turn();
    }
}

static void fault(void)
{
    struct gateway *g = &w->gateway[prng_between(&w->prng, 0, GATEWAYS - 1)];

    if (chance(10)) {
        link_breaks(g);
    }
    if (chance(3) && g->gone_id == 0) {
        gateway_dies(g);
    }
    if (chance(20)) {
        actor_moves();
    }
    if (chance(w->breaks_pm)) {
        actor_breaks();
    }
}

static void step(void)
{
    w->now_us += STEP_US;
    scene_tick(w->scene, w->now_us);
    turn();
    for (size_t i = 0; i < GATEWAYS; i++) {
        gateway_turn(&w->gateway[i]);
    }
    room_turn();
    for (size_t i = 0; i < PLAYERS; i++) {
        struct player *p = &w->player[i];

        act(p);
        if (p->client != NULL && client_has_input(p->client)) {
            client_resume(p->client, w->now_us, &w->gateway[p->gateway].r.effects);
            own_effects(&w->gateway[p->gateway]);
        }
        if (p->client != NULL) {
            listen(p);
        }
    }
    if (!w->quiet) {
        fault();
        if (chance(100)) {
            const struct scene_message m = {.ticket = 1};

            scene_run(w->actor, &m);
            turn();
        }
    }
}

/* All that its session was pushed. */
static bool has_all(const struct player *p)
{
    for (size_t i = 0; i < SEATS; i++) {
        const struct seat *s = &w->seat[i];

        if (s->client == THERE && (s->session & TAG_MASK) == p->tag) {
            return p->seen == s->counted;
        }
    }
    return false;
}

/* No faults any more: who has a session comes back, is answered, and has all that was pushed. */
static void check_end(void)
{
    size_t there = 0;

    for (size_t i = 0; i < PLAYERS; i++) {
        const struct player *p = &w->player[i];

        CHECK(!p->keeps || p->seated, "a session is not resumed");
        CHECK(!p->seated || lowest_open(p) == p->named + 1, "a request has no answer");
        there += p->seated;
        CHECK(!p->seated || has_all(p), "a push did not come");
    }
    CHECK(there <= w->seats_max, "more are bound in the end than may be");
    CHECK(w->room.heard == w->room.said, "what the room said did not come");
    CHECK(there == count_seats(false), "the actor thinks otherwise");
}

/* Of those with several, some have room for all. */
static void draw_policy(void)
{
    static const uint32_t max[] = {1, 2, 3, RH_SESSIONS_MAX, RH_SESSIONS_MAX};

    w->seats_max = 1;
    w->ops.sessions = (uint32_t)prng_between(&w->prng, 0, RH_SESSIONS_ALLOW);
    if (w->ops.sessions == RH_SESSIONS_ALLOW) {
        w->ops.sessions_max = max[prng_between(&w->prng, 0, sizeof max / sizeof max[0] - 1)];
        w->seats_max = w->ops.sessions_max;
    }
}

static void open_world(void)
{
    const struct scene_config config = {.on_event = on_scene, .context = NULL};

    w = mem_new(1, sizeof *w);
    w->prng.state = seed_now;
    w->now_us = 1000000;
    w->breaks_pm = chance(500) ? 0 : 5;
    w->ops = (struct rh_actor_ops){.abi = RH_ABI,
                                   .size = sizeof w->ops,
                                   .name = "walker",
                                   .activate = on_activate,
                                   .message = on_message,
                                   .deactivate = on_deactivate,
                                   .session = on_session};
    draw_policy();
    w->scene = scene_new(&config);
    actor_enters(false);
    for (size_t i = 0; i < GATEWAYS; i++) {
        gateway_open(&w->gateway[i]);
    }
    room_open();
    for (unsigned i = 0; i < PLAYERS; i++) {
        w->player[i].number = i;
    }
}

static void close_world(void)
{
    for (size_t i = 0; i < PLAYERS; i++) {
        if (w->player[i].client != NULL) {
            hang_up(&w->player[i]);
        }
        buffer_fini(&w->player[i].heard);
    }
    for (size_t i = 0; i < GATEWAYS; i++) {
        gateway_close(&w->gateway[i]);
        queue_fini(&w->gateway[i].up);
        queue_fini(&w->gateway[i].down);
    }
    room_close();
    scene_close(w->scene, RH_STOP);
    buffer_fini(&w->answer);
    buffer_fini(&w->bond);
    mem_free(w);
}

struct totals {
    uint64_t returned;
    uint64_t replaced;
    uint64_t begun;
    uint64_t moved;
    uint64_t casts;
};

static void walk(uint64_t seed, struct totals *sum)
{
    seed_now = seed;
    open_world();
    for (int i = 0; i < STEPS; i++) {
        step();
    }
    w->quiet = true;
    for (int i = 0; i < QUIET_STEPS; i++) {
        step();
    }
    check_end();
    sum->returned += w->returned;
    sum->replaced += w->replaced;
    sum->begun += w->begun;
    sum->moved += w->moved;
    sum->casts += w->room.casts;
    close_world();
}

static void sessions_hold_whatever_happens(void **state)
{
    const char *given = getenv("SEED");
    const char *count = getenv("SEEDS");
    const uint64_t seeds = count != NULL ? strtoull(count, NULL, 10) : SEEDS;
    struct totals sum = {0};

    (void)state;
    if (given != NULL) {
        walk(strtoull(given, NULL, 10), &sum);
        return;
    }
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        walk(seed, &sum);
    }
    (void)printf("%llu seeds: %llu returned, %llu replaced, %llu begun afresh, %llu moves, "
                 "%llu broadcasts\n",
                 (unsigned long long)seeds,
                 (unsigned long long)sum.returned,
                 (unsigned long long)sum.replaced,
                 (unsigned long long)sum.begun,
                 (unsigned long long)sum.moved,
                 (unsigned long long)sum.casts);
    assert_true(sum.returned > 0 && sum.replaced > 0 && sum.begun > 0 && sum.moved > 0 &&
                sum.casts > 0);
}

#ifdef RINGHOLD_MUTANTS

/* In a child: a check that fails aborts. The seed that found it; 0 = none did. */
static uint64_t found_by(enum mutant m)
{
    struct totals sum = {0};

    for (uint64_t seed = 1; seed <= MUTANT_SEEDS; seed++) {
        int status = 0;
        const pid_t child = fork();

        if (child == 0) {
            mutant_planted = m;
            (void)freopen("/dev/null", "w", stderr);
            walk(seed, &sum);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child ||
            !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
            return seed;
        }
    }
    return 0;
}

static int hunt_mutants(void)
{
    static const enum mutant all[] = {
#define X(name, text) name,
        MUTANT_SESSION_LIST(X)
#undef X
    };
    bool all_caught = found_by(M_NONE) == 0; // else nothing below means anything

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const uint64_t seed = found_by(all[i]);

        all_caught = all_caught && seed != 0;
        (void)printf("%s - %-13s %s at seed %llu: %s\n",
                     seed != 0 ? "ok" : "not ok",
                     mutant_name(all[i]),
                     seed != 0 ? "caught" : "SURVIVED",
                     (unsigned long long)seed,
                     mutant_text(all[i]));
        (void)fflush(stdout);
    }
    return all_caught ? 0 : 1;
}

#else

static int hunt_mutants(void)
{
    (void)fprintf(stderr, "no bugs are planted in this build: make MUTANTS=1\n");
    return 2;
}

#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_hold_whatever_happens),
    };

    return argc == 2 && strcmp(argv[1], "--mutants") == 0
               ? hunt_mutants()
               : cmocka_run_group_tests(tests, NULL, NULL);
}
