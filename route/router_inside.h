/* SPDX-License-Identifier: Apache-2.0
 *
 * What the router's files share. Nobody else includes this, but by steady.h. Above each group of
 * fields of struct router stand the files that write them (tools/parts); the first group is
 * router.c's.
 *
 *     router.c   the machine: events in, requests, deadlines
 *     answer.c   what an answer makes of its request
 *     route.c    a request's way: sent, waiting, finished
 *     prefetch.c answers of a frame: their memory is fetched, then they are taken
 *     by_stream.c   requests that go by streams; steady.h: the short way of most of them, inline
 *     fleet.c    nodes that come and go, the configuration
 *     latencies.c   how long requests took
 *     inspect.c  `ringhold check` and `ringhold fix`
 *     operator_request.c   `ringhold trace`, `kick` and `actor`
 */
#ifndef ROUTE_ROUTER_INSIDE_H
#define ROUTE_ROUTER_INSIDE_H

#include "base/list.h"
#include "base/table.h"
#include "ring/unanswered.h"
#include "route/by_stream.h"
#include "route/deadlines.h"
#include "route/effects.h"
#include "route/fetch.h"
#include "route/lane.h"
#include "route/peer.h"
#include "route/pending.h"
#include "route/router.h"
#include "route/session.h"
#include "route/share.h"
#include "route/timer_wheel.h"

enum {
    ROUTER_RETRIES = 6, /* doublings of T_retry, and one */
    ROUTER_KEYS = 16,   /* kinds whose keys are kept */
    OPERATOR_REQUESTS_MAX = 16,
    SHARE_COUNT = 32,         /* requests that anybody may have under way … */
    SHARE_SIZE = 1024 * 1024, /* … and bytes of them */
    SHARE_KNOWN = 128,        /* requests of one who is known, by all its connections */
};

/* Keys by which positions are hashed, kept because making a kind's key costs more than using it. */
struct router_keys {
    struct ring_key master; /* the cluster's; until it is known, one of my own */
    struct {
        bool known;
        uint16_t kind;
        struct ring_key key;
    } of[ROUTER_KEYS]; /* by kind, modulo */
};

/* Something that an operator had sent, and that is not answered yet. */
struct operator_request {
    bool used;
    int coordinator;
    uint64_t tag; /* these two are the asker's */
    uint64_t route;
    uint64_t begun_us;
};

struct router {
    struct router_config config;
    uint64_t now_us;            /* of this step */
    struct router_effects *out; /* of this step */
    bool lends;                 /* replies borrow what the answers of this step say */
    uint64_t timed_us;          /* until when everything that waits for a time was seen to */
    bool started;
    uint64_t operator_requests_session; /* of no client: theirs are counted from 1 */
    uint64_t asked;                     /* position of the last */
    struct buffer body;                 /* of a command that becomes a record */

    /* Requests: router.c, route.c, answer.c. */
    struct table pendings;      /* struct pending, by session and seq */
    struct deadlines deadlines; /* struct pending */
    struct sessions sessions;
    struct lanes lanes;
    struct pending_spares spares;
    struct router_stats stats; /* counted wherever it happens */
    size_t size;               /* bytes of unfinished requests */
    size_t must;               /* of these requests, those that must be answered */
    struct share by_entity;    /* of clients' unfinished requests: by position */
    struct share by_origin;
    struct list
        retry[ROUTER_RETRIES]; /* struct pending, in_retry: each of one delay, so in order */
    struct list stalled;       /* struct lane: until the ring or a link changes */
    struct timer_wheel timer_wheel;
    struct list fed;    /* struct peer: lanes stalled there may go on */
    struct list silent; /* struct peer: lanes stalled there wait for an answer, or a time */

    /* Where an entity is: route.c. */
    struct router_keys keys;

    /* The fleet: fleet.c. */
    const struct view *view; /* `own`, or one that is told by ROUTER_VIEW */
    struct view own;
    bool configured;     /* a whole configuration was loaded, and with it the key of the hash */
    uint64_t cold;       /* greatest of the ring: when it grows, arcs were taken over */
    uint64_t elder_cold; /* what that was when the last era ended by a restore; 0 = none did */
    uint64_t era;        /* of the ring that was adopted last */
    bool bare[RING_SEGMENTS_MAX + 1]; /* by segment, behind the default one: no node has its role */
    uint64_t bare_us; /* until then clients wait for a node of such a role; 0 = no ring yet */
    bool tells_bare;  /* that time is over */
    struct peers peers;
    struct fetch fetch;
    struct unanswered unanswered; /* of nodes whose links were lost */

    struct by_stream by_stream; /* by_stream.c */

    /* What operators ask: operator_request.c. */
    struct operator_request operator_request[OPERATOR_REQUESTS_MAX];

    /* How long requests took: latencies.c; counted wherever one ends, by route_count_latency(). */
    struct latencies latencies; /* series: enum reply_code */
    struct {
        uint32_t kind;  /* that came last in this turn; beyond 16 bits: none */
        uint32_t stamp; /* of it */
        uint32_t began; /* the stamp of those that ended last in this turn, … */
        uint32_t code;  /* … and how they did; REPLY_CODES = none did */
        uint32_t count; /* of them, that are not in `latencies` yet */
    } timing;

    struct spans spans; /* of traced requests: traced.c; by the tickets that they have meanwhile */
    uint64_t traced;    /* of them, so far */
};

/* ---- traced.c */

/* Take a ROUTER_REQUEST that has a trace. */
void route_request_traced(struct router *r, const struct router_event *event);
/* A traced request has ended so: its span has, too. Returns the caller's ticket of it. */
uint64_t route_end_span(struct router *r, uint64_t ticket, enum reply_code code, uint32_t attempts);
/* The caller's ticket of a request that has ended. */
static inline uint64_t route_ticket(struct router *r, uint8_t flags, uint64_t ticket,
                                    enum reply_code code, uint32_t attempts)
{
    return __builtin_expect((flags & REQUEST_TRACED) == 0, true)
               ? ticket
               : route_end_span(r, ticket, code, attempts);
}
/* A request is asked for again, by the event's ticket: its answer goes there. */
void route_retarget(struct router *r, struct pending *p, const struct router_event *event);

static const struct bytes route_nothing = {NULL, 0};

/* ---- route.c ---- */

struct reply {
    uint64_t session;
    uint64_t ticket;
    enum reply_code code;
    uint8_t flags;
    const struct pending *pending; /* borrowed; NULL = it was not taken */
};

/* Hash a request so that those of one session follow each other: they share the table's lines of
 * the cache. */
static inline uint64_t route_hash(uint64_t session, uint64_t seq)
{
    return table_mix(session) + seq;
}
/* `at`: table_front() of its hash. */
static inline struct pending *route_find_at(struct table_link *at, uint64_t session, uint64_t seq)
{
    for (struct table_link *l = at; l != NULL; l = l->next) {
        struct pending *p = CONTAINER_OF(l, struct pending, link);

        if (p->seq == seq && p->session->id == session) {
            return p;
        }
    }
    return NULL;
}
static inline struct pending *route_find(const struct router *r, uint64_t session, uint64_t seq)
{
    return route_find_at(table_front(&r->pendings, route_hash(session, seq)), session, seq);
}

/* One that nobody hears. */
void route_count_reply(struct router *r, enum reply_code code);
void route_put_reply(struct router *r, const struct reply *reply, struct bytes body);

/* The request is over: reply, free it, and send what waited behind it. */
void route_finish(struct router *r, struct pending *p, enum reply_code code, struct bytes body);

/* True if a request whose time is over is asked anew, since it must be answered. Where very many
 * are such, it is not: what a fleet that is away leaves behind must not fill this process. */
bool route_asks_anew(const struct router *r, bool must);

/* SENT, and nothing says that it will be answered: to be sent again when its turn comes. */
void route_to_waiting(struct router *r, struct pending *p);

/* Send these requests again, to the owner: they were on their way to a node and may have run. */
void route_lose(struct router *r, struct list *in_flight);
/* Like route_lose(), for requests that went to nodes whose arcs were taken over since version
 * `cold`. */
void route_lose_taken_over(struct router *r, uint64_t cold);
/* Send requests again that waited too long for an answer. */
void route_retry(struct router *r);

/* Make the key by which ids of that kind are hashed, and keep it. */
const struct ring_key *route_learn_key(struct router *r, uint16_t kind);
static inline const struct ring_key *route_kind_key(struct router *r, uint16_t kind)
{
    const size_t i = kind % ROUTER_KEYS;
    const bool known = r->keys.of[i].known && r->keys.of[i].kind == kind;

    return known ? &r->keys.of[i].key : route_learn_key(r, kind);
}
__attribute__((always_inline)) static inline uint64_t route_position(struct router *r,
                                                                     uint16_t kind, struct bytes id)
{
    return ring_position(*route_kind_key(r, kind), id);
}
/* Find the stamp, for another kind or time than the last. (latencies.c, as those below) */
uint32_t route_stamp_anew(struct router *r, uint16_t kind);
/* Return the stamp of a request of that kind that comes now. Most of a turn are of one kind. */
__attribute__((always_inline)) static inline uint32_t route_stamp(struct router *r, uint16_t kind)
{
    return __builtin_expect(r->timing.kind == kind, true) ? r->timing.stamp
                                                          : route_stamp_anew(r, kind);
}
/* Likewise, for another stamp or outcome than the last. */
void route_count_anew(struct router *r, uint32_t stamp, enum reply_code code);
/* Count how long a request took that ends so. Those that came together mostly end together: they
 * are counted as one. */
__attribute__((always_inline)) static inline void
route_count_latency(struct router *r, uint32_t stamp, enum reply_code code)
{
    if (__builtin_expect(r->timing.began == stamp && r->timing.code == (uint32_t)code, true)) {
        r->timing.count++;
    } else {
        route_count_anew(r, stamp, code);
    }
}
/* Likewise, of so many more that ended as the last that was counted. */
static inline void route_count_alike(struct router *r, uint32_t count)
{
    r->timing.count += count;
}
/* What was counted as one is to be read. */
void route_put_counted(struct router *r);
/* At the end of a step, and before time goes on. */
static inline void route_end_counting(struct router *r)
{
    if (r->timing.count > 0) {
        route_put_counted(r);
    }
}
/* Time goes on: what comes is of another time. */
void route_begin_counting(struct router *r);
/* Give rows to kinds. */
void route_find_rows(struct router *r, const struct ring_kinds *kinds);
/* The view may have another key now: what is found by positions moves. */
void route_move_key(struct router *r, struct ring_key now);
static inline struct ring_key route_key(const struct router *r)
{
    const struct ring_key own = {r->sessions.seed, ~r->sessions.seed};

    return r->view->ring.version == 0 ? own : r->view->key;
}
static inline bool route_key_moved(const struct router *r)
{
    const struct ring_key now = route_key(r);

    return ((now.k0 ^ r->keys.master.k0) | (now.k1 ^ r->keys.master.k1)) != 0;
}
static inline void route_follow_key(struct router *r)
{
    if (route_key_moved(r)) {
        route_move_key(r, route_key(r));
    }
}

/* The vnode that the request's id is in, by the configuration here; NULL = none yet. */
const struct ring_vnode *route_vnode(const struct router *r, const struct pending *p);

/* The node that owns an entity by the configuration here; or NULL. */
static inline struct peer *route_peer_of(const struct router *r, uint64_t position, uint16_t kind,
                                         struct bytes id)
{
    return r->view->ring.version == 0
               ? NULL
               : peer_find(&r->peers, ring_hit_node(view_at(r->view, kind, position, id)));
}

/* The node that owns the lane's entity, if requests can go there now; or NULL. */
struct peer *route_owner(const struct router *r, const struct lane *lane);

/* True: a client asks what is nobody's, in a role that no node has, and it never ran. It is to be
 * told so: the request is over. */
bool route_is_bare(const struct router *r, const struct pending *p);
void route_finish_bare(struct router *r, struct pending *p);

/* Send what waits in the lane, unless the lane itself has to wait. */
void route_push(struct router *r, struct lane *lane);
/* Push a lane to which `p` was added just now. */
void route_push_new(struct router *r, struct lane *lane, struct pending *p);

/* The ring or a link changed. */
void route_wake_stalled(struct router *r);
/* Peers have got room. Ends each step. */
void route_feed(struct router *r);
/* Time went on. */
void route_wake_rested(struct router *r);
/* Lanes of nodes that stand still: one of each may try, when its time comes. */
void route_probe_silent(struct router *r);
/* Note that the node does not stand still; its lanes that waited for it may go on. */
void route_feed_peer(struct router *r, struct peer *peer);
static inline void route_heard(struct router *r, struct peer *peer)
{
    peer_on_heard(peer);
    if (list_linked(&peer->silent)) {
        route_feed_peer(r, peer);
    }
}

/* Tell the shell that the link is no longer needed, and free the peer. */
void route_disconnect(struct router *r, struct peer *peer);
/* An answer came, or nothing more is to: tell it if it waits for that, and let go of one that was
 * removed. */
void route_settle_peer(struct router *r, struct peer *peer);
/* Like route_disconnect(), if the node was removed and no answer can come from it any more. */
void route_disconnect_if_idle(struct router *r, struct peer *peer);

/* A step begins, and ends. */
bool route_begin(struct router *r, uint64_t now_us, struct router_effects *out);
void route_end(struct router *r);
/* Where effects go from now on; NULL = nowhere. */
static inline void route_tell(struct router *r, struct router_effects *out)
{
    r->out = out;
}
static inline void route_note_asked(struct router *r, uint64_t position)
{
    r->asked = position;
}
/* True if route_begin() would do nothing at that time. */
static inline bool route_has_begun(const struct router *r, uint64_t now_us)
{
    return r->started && r->timed_us == now_us && r->now_us == now_us && !route_key_moved(r);
}
/* Nobody can hold too much while all together don't: that many requests. */
static inline uint64_t route_little(const struct router *r, bool known)
{
    return known ? SHARE_COUNT : r->config.in_flight_max / 2;
}
static inline bool route_holds_little(const struct router *r, bool known)
{
    return r->stats.in_flight <= route_little(r, known) && r->size <= SHARE_SIZE;
}
/* router_full() */
static inline bool route_is_full(const struct router *r)
{
    return r->stats.in_flight >= r->config.in_flight_max || r->size >= r->config.waiting_size_max;
}
/* Return how long a request may take. (router.c, as are those below) */
static inline uint32_t route_timeout_ms(const struct router *r, uint32_t timeout_ms)
{
    return timeout_ms != 0 ? timeout_ms : r->config.deadline_ms;
}
/* A request that a stream is not to have, for its owner has none: it waits as a record. `died` is
 * the incarnation that had it when it died, or 0. */
void route_take_back(struct router *r, const struct router_event *event, uint64_t position,
                     uint64_t died);
/* A client's request comes: as route_request(). */
void route_request_plain(struct router *r, const struct router_plain *q);
/* A request comes. */
void route_request(struct router *r, const struct router_event *event);

/* ---- answer.c ---- */

/* Hole 63, of an answer whose version is below the last take-over known here: may the actor, which
 * is in that vnode or NULL, have gone back to before it? As in struct answer_record. */
bool route_is_stale(const struct router *r, const struct ring_vnode *vnode, uint64_t fence,
                    uint64_t version);

/* `p` is route_find() of it. */
void route_on_answer(struct router *r, uint16_t slot, const struct answer_record *a,
                     struct pending *p);
void route_on_answers(struct router *r, const struct router_answers *a);

/* ---- fleet.c ---- */

void fleet_set_up(struct router *r);

void fleet_on_node_up(struct router *r, const struct router_event *event);
void fleet_on_node_down(struct router *r, const struct router_event *event);
void fleet_on_control(struct router *r, const struct router_event *event);

/* Tell the node which ring I route by, and whether answers of it, or by way of it, are awaited. */
void fleet_tell_adopted(struct router *r, struct peer *peer);

/* The owner of the configuration has changed it. */
void fleet_on_view(struct router *r, const struct router_event *event);
/* Ask for a link to the peer, to which something is to be sent. */
void fleet_want_link(struct router *r, struct peer *peer);

/* Fill in the head of a message and make it the effect's bytes: the effect is complete then. */
void fleet_send(struct router *r, struct router_effect *e, Rh__Control *control);

/* The fleet has had its time to start: what waits for a node of a role that has none is told. */
void fleet_tell_bare(struct router *r);
/* Ask for the configuration if it is time to. */
void fleet_ask_config(struct router *r);

/* ---- inspect.c ---- */

/* Tell how I am. Changes nothing. */
void inspect_on_question(struct router *r, int coordinator, const Rh__Inspect *question);
/* An operator has me set right. */
void inspect_on_repair(struct router *r, const Rh__Repair *repair);

/* ---- operator_request.c ---- */

void operator_request_on_question(struct router *r, int coordinator, const Rh__OperatorRequest *in);
/* True if the session is the router's own: its replies go to operator_request_on_reply(). */
static inline bool operator_request_owns(const struct router *r, uint64_t session)
{
    return session == r->operator_requests_session;
}
void operator_request_on_reply(struct router *r, const struct reply *reply, struct bytes body);

#endif
