/* SPDX-License-Identifier: Apache-2.0
 *
 * The world of a walk: its parts, and its links.
 */
#ifndef TESTS_NODE_SESSION_WALK_H
#define TESTS_NODE_SESSION_WALK_H

#include "base/mutant.h"
#include "base/prng.h"
#include "gateway/protocol/packet.h"
#include "node/calls/calls.h"
#include "node/runtime/runtime.h"
#include "tests/gateway/client_rig.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
#ifdef RINGHOLD_MUTANTS
    SEEDS = 200,
#else
    SEEDS = 60,
#endif
};

/* ---- the node's side of order: what tests/node/order_test.c has at length */

struct walk_saved {
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
    struct walk_saved saved[KEPT_ANSWERS];
};

/* ---- a link: what is on its way, first in, first out */

struct walk_queue {
    struct buffer item[QUEUE];
    bool push[QUEUE]; /* a push record; else an answer, or a request */
    size_t first;
    size_t count;
};

struct walk_gateway {
    struct client_rig r;
    struct walk_queue up;
    struct walk_queue down;
    uint64_t id;
    uint64_t slow_us; /* nothing of its own arrives until then */
    uint64_t gone_us; /* the one before died; it is missed then */
    uint64_t gone_id;
};

/* Mark of pushes to the whole room: they are numbered apart from a client's own pushes. */
#define ROOM_MARK (UINT64_C(1) << 63)

/* Layout of a push to one session: whose it is, then its number. */
enum { TAG_AT = 40, TAG_MASK = 0x7fffff };

/* ---- a session, as the actor knows it */

struct seat {
    enum { NOBODY, THERE, AWAY } client;
    uint64_t session;
    uint64_t counted; /* pushes to this client */
    uint64_t lost_us; /* AWAY */
};

/* ---- the room: an actor of another node */

struct walk_room {
    struct prng prng;
    struct rig rig; /* for the view */
    struct calls *calls;
    struct walk_queue up;
    struct walk_queue down;
    uint64_t peer;  /* its link */
    uint64_t said;  /* to the actor: the last number, … */
    uint64_t heard; /* … and the last that came */
    uint64_t broadcasts;
};

/* ---- a player */

struct walk_player {
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
    uint64_t seen;    /* sequence of the last push */
    uint64_t tag;     /* of its session, once it was pushed to alone */
    uint32_t named;   /* the last request */
    uint32_t before;  /* those to this one are of before `begun` */
    uint32_t life;    /* of the session of requests: counts its binds */
    uint16_t attempt; /* counts its resumes */
    bool open[REQUESTS];
    bool resumes; /* what it asked for is a resume */
    bool again;   /* what has no answer is to be sent again */
    bool over;    /* its line is of no use */
};

struct walk_world {
    struct prng prng;
    struct runtime *runtime;
    struct rh_actor *actor;
    struct rh_actor_ops ops;
    struct walk_gateway gateway[GATEWAYS];
    struct walk_player player[PLAYERS];
    struct walk_room room;
    struct line_order order[ORDERS];
    size_t order_count;
    uint64_t now_us;
    uint64_t gateways_drawn;
    bool poked;
    bool quiet; /* no more faults */
    bool late;  /* a line was lost with a bind: that may be run at any time */
    /* The actor's own. */
    struct seat seat[SEATS];
    size_t seats_max; /* so many at a time */
    uint64_t fence;
    struct buffer answer; /* of what ran last */
    struct buffer bond;   /* as exported last */
    unsigned breaks_pm;
    uint64_t broken;
    bool comes_again; /* who is bound by what runs now */
    /* Requests that ran: by player, life and name. */
    uint8_t ran[PLAYERS][LIVES][REQUESTS];
    uint32_t ran_last[PLAYERS][LIVES];
    uint64_t returned;
    uint64_t replaced;
    uint64_t begun;
    uint64_t moved;
};

static struct walk_world *w; /* of the seed that runs */
static uint64_t seed_now;

static inline bool chance(unsigned per_mille)
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

static inline void queue_put(struct walk_queue *q, struct bytes bytes, bool push)
{
    CHECK(q->count < QUEUE, "a link of this test is too short");
    const size_t at = (q->first + q->count++) % QUEUE;

    buffer_clear(&q->item[at]);
    buffer_put(&q->item[at], bytes.data, bytes.size);
    q->push[at] = push;
}

static inline struct buffer *queue_take(struct walk_queue *q, bool *push)
{
    struct buffer *b = &q->item[q->first];

    *push = q->push[q->first];
    q->first = (q->first + 1) % QUEUE;
    q->count--;
    return b;
}

static inline void queue_fini(struct walk_queue *q)
{
    for (size_t i = 0; i < QUEUE; i++) {
        buffer_fini(&q->item[i]);
    }
}

static inline void do_effects(struct walk_gateway *g, struct router_effects *effects)
{
    for (size_t i = 0; i < effects->count; i++) {
        const struct router_effect *e = &effects->item[i];
        const struct bytes bytes = {effects->bytes.data + e->at, e->size};
        const bool is_heard = e->type == ROUTER_REPLY || e->type == ROUTER_VOUCH;
        struct client *c = is_heard ? clients_find(g->r.all, e->session) : NULL;

        if (e->type == ROUTER_SEND_NODE) {
            queue_put(&g->up, bytes, false);
        } else if (c != NULL && e->type == ROUTER_VOUCH) {
            client_vouch(c, e->version, w->now_us);
        } else if (c != NULL) {
            client_on_reply(c, e, bytes, w->now_us);
        }
    }
}

static inline void own_effects(struct walk_gateway *g)
{
    do_effects(g, &g->r.effects);
    router_effects_clear(&g->r.effects);
}

static inline void event(struct walk_gateway *g, struct router_event e)
{
    g->r.rig.now_us = w->now_us;
    rig_step(&g->r.rig, e);
    do_effects(g, &g->r.rig.effects);
}

static inline void gateway_open(struct walk_gateway *g)
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

static inline void gateway_close(struct walk_gateway *g)
{
    clients_free(g->r.all);
    router_effects_fini(&g->r.effects);
    rig_fini(&g->r.rig);
}

static inline void link_breaks(struct walk_gateway *g)
{
    g->up.count = 0;
    g->down.count = 0;
    event(g, (struct router_event){.type = ROUTER_NODE_DOWN, .slot = 1});
    event(g, (struct router_event){.type = ROUTER_NODE_UP, .slot = 1, .incarnation = 10});
    clients_on_node_up(g->r.all, 1, w->now_us);
}

#endif
