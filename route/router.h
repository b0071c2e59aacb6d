/* SPDX-License-Identifier: Apache-2.0
 *
 * The router: takes requests of sessions, sends each to the node that owns its
 * entity, and sees it through moves until it is answered or its deadline ends.
 * Specification §6.
 *
 *     state    event                                action                        next
 *     (new)    window free, owner known and linked  number it, send               SENT
 *     (new)    otherwise                            wait                          WAITING
 *     WAITING  ring or link changed                 try again                     SENT
 *     WAITING  its node answers nothing, as one     stay, for an answer, or for   WAITING
 *              that stands still: see silent_ms     another owner; some are sent
 *     SENT     OK, APP_ERROR                        reply                         done
 *     SENT     MOVED(v)                             fetch >= v, send again        WAITING
 *     SENT     BUSY(ms)                             wait ms, send again           WAITING
 *     SENT     COLD(c), one copy or idempotent      first = my version, send      SENT
 *     SENT     COLD(c), another copy may have run   reply UNKNOWN                 done
 *     SENT     COLD(c), a second time for the same  reply UNKNOWN: it may have    done
 *              idempotent request                   killed both owners
 *     SENT     COLD(c), its session is its client's  VOUCH; once it is, first is  WAITING
 *                                                    that version; send again
 *     SENT     OVERLOAD(ms), for less than 1 s      wait ms, send again           WAITING
 *     SENT     OVERLOAD(ms), longer, one copy       reply OVERLOADED, if it       done
 *                                                   needs not be taken
 *     SENT     LOST                                 reply UNKNOWN                 done
 *     SENT     EXPIRED, one copy                    reply REJECTED                done
 *     SENT     no answer for T_retry * 2^k, and     one copy more                 WAITING
 *              later ones were answered or none
 *     SENT     link to that node lost, or the node  one copy more, to the owner   WAITING
 *              is another incarnation now, or its
 *              arc was taken over
 *     SENT     the same, but the node left cleanly  await the new owner's answer  SENT
 *     SENT     its predecessor was given up         send again with a new base    WAITING
 *     SENT     OK, APP_ERROR of a fenced owner      reply UNKNOWN; send again if  done
 *              (hole 63)                            it is idempotent, or the next
 *                                                   owner may know
 *     WAITING  its owner does not host its kind,    wait for a ring by which it   WAITING
 *              and others of its role do            does, or another owns it
 *     WAITING  a client's, nobody's: no node has    reply NO_KIND with the role   done
 *              its role, ROUTER_BARE_MS after the
 *              first ring, and it never ran
 *     any      deadline                             never run: REJECTED, or       done
 *                                                   NO_KIND if its owner lacks
 *                                                   the kind; else TIMEOUT
 *
 * WAITING with a copy that may have run: an answer of that copy ends it too.
 *
 * Of a request that goes by a stream stream/asker.h has the states, and R14 takes the place of
 * copies.
 *
 * Pure. Order: requests of one (session, entity) carry seq, prev and base.
 *
 * A session is numbered here, or by a client that owns it and outlives its
 * gateway (hole 44): that gives each request seq, base, epoch and first. After
 * its gateway is lost it sends what is unanswered through another one, in order
 * of seq, with a greater epoch: each is answered with what was saved, or runs
 * once; copies of the older epoch that are still on their way are fenced where
 * the session is known. After a cold take-over it is not, and a gateway that was
 * left does not know what another one was asked: only the client may stamp its
 * requests (`first`). What meets a cold vnode is UNKNOWN if it may have run; else
 * it waits until its client, asked anew, has answered: then it had not left when
 * that ring was known, and no other gateway had it run before
 * (docs/decisions/050-what-players-keep.md). An idempotent one is sent again all
 * the same: until the deadline at the gateway that was left it may run once more after its answer.
 *
 * A request that a link would not take is to be given back as a ROUTER_ANSWER
 * of its session, seq and copy with code BUSY: it surely did not run.
 */
#ifndef ROUTE_ROUTER_H
#define ROUTE_ROUTER_H

#include "base/latency.h"
#include "base/shared.h"
#include "base/span.h"
#include "ring/view.h"
#include "wire/control.pb-c.h"
#include "wire/record.h"
#include "wire/stream.h"

struct router;
struct sendlog;
struct unanswered;

struct router_config {
    uint64_t gateway; /* random id (wire/gateway_id.h); of a node: its incarnation */
    uint64_t seed;    /* random: session ids grow from it; 0 = gateway is random enough */
    char name[VIEW_NAME_MAX + 1];
    uint32_t threads;     /* of the gateway's process, each a router; what it tells others; 1 */
    uint32_t deadline_ms; /* of a request, at most REQUEST_TTL_MAX_MS; 10000 */
    uint32_t retry_ms;    /* T_retry: without an answer for so long, send it again; 1000 */
    uint32_t
        silent_ms; /* a node that answers nothing for so long is sent next to nothing; 0 = off */
    uint32_t overload_ms;    /* that a node may be without room before it is told; 1000 */
    uint32_t window;         /* unfinished requests of one (session, entity) on their way; 32 */
    uint32_t in_flight_max;  /* requests in all; above it router_full() is true; 100000 */
    uint32_t refresh_ms;     /* GetConfig at least so often; 500 */
    bool on_demand;          /* CONNECT only to nodes that something is to be sent to */
    bool of_node;            /* operators ask it for values; a gateway's, for anything else */
    bool streams;            /* requests go by streams to nodes whose links speak them */
    size_t peer_size_max;    /* bytes on their way to one node, with their replies; 16 MiB */
    size_t waiting_size_max; /* bytes of unfinished requests in all; 256 MiB */
    const struct tracing *tracing; /* borrowed: where spans of traced requests go; NULL = nowhere */
};
struct router_config router_config_default(void);
/* So long after the first ring, and after the first of a restored fleet, clients wait for the first
 * node of a role: fleets start with nodes of several roles at once. Then they are told at once that
 * there is none. */
enum { ROUTER_BARE_MS = 3000 };

enum router_event_type {
    ROUTER_TICK,           /* every 10..50 ms; see router_rests_until_us() */
    ROUTER_REQUEST,        /* session, ticket, kind, id, body, flags; an actor's: from, chain */
    ROUTER_SESSION_CLOSED, /* session: what it asked for still runs, nothing is replied */
    ROUTER_ANSWER,         /* slot, answer */
    ROUTER_NODE_UP,        /* slot, name, incarnation (0 = it did not say), speaks_streams */
    ROUTER_NODE_DOWN,      /* slot */
    ROUTER_COORDINATOR_UP, /* coordinator: index */
    ROUTER_COORDINATOR_DOWN,
    ROUTER_CONTROL, /* coordinator, message */
    ROUTER_VIEW,    /* view: in a process that has one already and keeps it; it has changed */
    ROUTER_VOUCHED, /* session, first: its client has answered ROUTER_VOUCH */
    ROUTER_WANTED,  /* slot: a link to it is needed for something else than requests */
};

struct router_event {
    enum router_event_type type;
    uint64_t now_us;
    uint64_t session;
    uint64_t
        origin; /* of a client's request: a hash of where it is; 0 = no client's, not counted */
    uint64_t ticket; /* caller's name of the request; comes back in REPLY */
    uint16_t kind;
    uint8_t flags;     /* enum request_flags */
    uint64_t seq;      /* 0 = numbered here; else the client's number, and the next four too */
    uint64_t base;     /* it has the answers of all its requests below */
    uint64_t first;    /* a ring version not newer than when it was first given to any gateway */
    uint32_t epoch;    /* of the session; a smaller one than before is replied to with UNKNOWN */
    bool again;        /* it was given to this gateway or another before */
    bool must;         /* it is taken however full the router is, and its node asked until it
                          answers: few, and small. At its deadline it is asked anew, with
                          REQUEST_TTL_MAX_MS, unless half of in_flight_max are such */
    struct bytes id;   /* borrowed */
    struct bytes body; /* borrowed */
    const struct args_command
        *command; /* borrowed; what `body` then has the size of and no bytes, or NULL */
    struct shared
        *common;         /* instead, of several requests: the body, `from` and all; they hold it */
    uint32_t timeout_ms; /* of this request; 0 = deadline_ms */
    const struct caller *from; /* borrowed; the actor that asks, NULL = a client */
    const uint64_t *chain;     /* borrowed; positions of the actors whose calls led here, … */
    size_t chain_count;        /* … it is REJECTED when they are more than RECORD_CHAIN_MAX */
    const struct trace_context *trace; /* borrowed; sampled: it is traced, below that span; NULL =
                                          it is not. Of one without SESSION and `common` */
    uint16_t slot;
    const char *name; /* borrowed; as its hello says, and its certificate proves */
    uint64_t incarnation;
    bool speaks_streams;                /* the link's protocol is LINK_PROTOCOL_STREAMS or later */
    const struct answer_record *answer; /* borrowed */
    int coordinator;
    const Rh__Control *message; /* borrowed */
    const struct view *view;    /* borrowed until the next ROUTER_VIEW, or the router's end */
};

enum reply_code {
    REPLY_OK,
    REPLY_APP_ERROR,   /* body = text */
    REPLY_UNKNOWN,     /* may have run, at most once */
    REPLY_TIMEOUT,     /* deadline; may have run, at most once */
    REPLY_REJECTED,    /* nobody could run it in time; did not run and never will */
    REPLY_NO_KIND,     /* nobody hosts it; did not run. body = text, if no node has its role */
    REPLY_OVERLOADED,  /* its node or this router has no room; did not run and never will */
    REPLY_QUARANTINED, /* its actor killed processes; did not run and never will */
    REPLY_DEADLOCK,    /* of a call: its actor waits for the caller; did not run and never will */
};
enum { REPLY_CODES = REPLY_DEADLOCK + 1 };

enum router_effect_type {
    ROUTER_SEND_NODE,   /* slot; bytes: one request record */
    ROUTER_SEND_STREAM, /* slot, frame; bytes: its body. It has to be the first of its stream on
                           that link: what router_log() has comes behind it */
    ROUTER_TELL_NODE,   /* slot; bytes: packed Control (Adopted) */
    ROUTER_SEND_COORDINATOR, /* coordinator; bytes: packed Control */
    ROUTER_REPLY,            /* session, ticket, code, flags; bytes; NO_REPLY requests too */
    ROUTER_CONNECT,          /* keep a link to node slot; bytes: its address, with a 0 behind */
    ROUTER_DISCONNECT,       /* slot */
    ROUTER_VOUCH, /* session, version: is its client still here? It has to be asked anew; its answer
                     is ROUTER_VOUCHED with that version, none is as good as no */
};

struct router_effect {
    enum router_effect_type type;
    uint16_t slot;
    int coordinator;
    uint64_t session;
    uint64_t ticket;
    uint64_t version;
    enum reply_code code;
    uint8_t flags; /* of the request */
    uint8_t frame; /* enum stream_frame */
    size_t at;     /* in effects.bytes */
    size_t size;
    uint64_t made_us; /* for whoever keeps effects beyond a step; the router doesn't set it */
    const uint8_t
        *lent; /* REPLY of router_answer(): its bytes, borrowed from the answer; or NULL */
    struct shared
        *common; /* SEND_NODE: held; the record is without it, as request_put_same() has it
                  */
};

/* Done in order. Grows as needed; the caller clears it between steps. */
struct router_effects {
    struct router_effect *item; /* owned */
    size_t count;
    size_t cap;
    struct buffer bytes;
    size_t common_count; /* of the items that hold something */
};
/* Bytes of an effect. */
static inline struct bytes router_effect_bytes(const struct router_effects *e,
                                               const struct router_effect *item)
{
    return bytes_of(item->lent != NULL ? item->lent : e->bytes.data + item->at, item->size);
}
/* Copy what is lent to the effects from `from` on: the answers go. */
void router_effects_keep(struct router_effects *e, size_t from);
/* So many from `from` on, which is a ROUTER_SEND_NODE, are requests to one node whose records stand
 * one behind the other, in `size_max` bytes at most: 1 or more. */
size_t router_effects_run(const struct router_effects *e, size_t from, size_t size_max);
void router_effects_clear(struct router_effects *e);
void router_effects_fini(struct router_effects *e);

/* Borrows nothing. `gateway` must be random: the order of its tables hangs on it. */
struct router *router_new(const struct router_config *config);
/* From now on its deadline_ms and in_flight_max hold. */
void router_configure(struct router *r, const struct router_config *config);
void router_free(struct router *r);
/* Take one event; append to `out` what the caller must now do, in order. Time never goes back. An
 * id is 1..RECORD_ID_MAX bytes, a body at most RECORD_BODY_MAX. A request while router_full()  *
 * replied to at once, unless it must be taken: OVERLOADED. */
void router_step(struct router *r, const struct router_event *event, struct router_effects *out);
/* Take a ROUTER_REQUEST, as router_step() does. */
void router_ask(struct router *r, const struct router_event *event, struct router_effects *out);
/* A ROUTER_REQUEST of a client that has no more than this, of a session of router_session(). All is
 * as in struct router_event. */
struct router_plain {
    uint64_t now_us;
    uint64_t session;
    uint64_t origin;
    uint64_t ticket;
    uint32_t timeout_ms;
    uint16_t kind;
    uint8_t flags;
    bool must;
    bool known; /* as in struct router_asker */
    struct bytes id;
    struct bytes body;
    const struct args_command *command;
};
/* Take it as router_ask() does, for less. Returns true if so little is under way that nobody can
 * have more than its share: router_share() needs not be asked. */
bool router_ask_plain(struct router *r, const struct router_plain *q, struct router_effects *out);
/* Take each of these as a ROUTER_ANSWER of the node in `slot`, for less: the memory of
 * their requests is fetched together. `count` is ROUTER_PREFETCH_MAX at most. */
enum { ROUTER_PREFETCH_MAX = 16 };
struct router_answers {
    uint64_t now_us;
    const struct answer_record *answer; /* borrowed */
    size_t count;
    uint16_t slot;
};
/* Replies borrow from the answers: router_effects_keep(). */
void router_answer(struct router *r, const struct router_answers *a, struct router_effects *out);
/* A frame of a stream (wire/stream.h) that came by the link of a slot. */
struct router_frame {
    uint64_t now_us;
    const struct frame *frame; /* borrowed */
    size_t left;               /* its answers that are not taken yet, behind the first call */
    struct reader records;     /* the router's, as is the rest */
    struct stream_head head;
    uint16_t slot;
    bool begun;
};
/* Take some of its answers; to be called again while `left` is not 0. Replies borrow from them, as
 * those of router_answer(). ERR_CORRUPT: it can't be; let go of the link. */
MUST_CHECK enum err router_frame(struct router *r, struct router_frame *f,
                                 struct router_effects *out);
/* Return the log of a node's stream for its link, which takes from it by sendlog_unsent(), or
 * borrows it until this function returns another; NULL = there is no stream, or none any more, or
 * it is not joined: what lies in it then was for a connection before. */
struct sendlog *router_log(struct router *r, uint16_t slot);
/* The next stream that has something for its link since this was asked, or an `ack` to say; NULL =
 * none. To be asked at the end of a turn. */
struct sendlog *router_unsent(struct router *r, uint16_t *slot);
/* Abort unless every invariant holds. O(requests): for tests; a step checks what is cheap. */
void router_check(const struct router *r);

/* Draw a fresh session id, unique over gateways and restarts. */
uint64_t router_session(struct router *r);
/* The session id of a number that the caller counts itself, from 1; not to be mixed with the above.
 */
uint64_t router_session_of(const struct router *r, uint64_t number);
/* The number that the last request of that session got; 0 = there is none. */
uint64_t router_seq(struct router *r, uint64_t session);
/* True: something that it told is under way, for which no answer is awaited. */
bool router_tells(struct router *r, uint64_t session);
/* True: a `part`-th of the room for requests is taken. */
bool router_has(const struct router *r, size_t part);
/* True: nothing was asked that has no reply yet. */
bool router_rests(const struct router *r);
/* Return when a ROUTER_TICK is due at the latest: to ask for the configuration. Another 250 ms do
 * for all else that goes by time. 0 = soon, as router_rests() is false; UINT64_MAX = no coordinator
 * is up. */
uint64_t router_rests_until_us(const struct router *r);
/* True: no more requests, please; stop reading clients until it is false. */
bool router_full(const struct router *r);
/* Return how many requests, whose ids and bodies have `size` bytes in all, may be asked before
 * router_full() is to be asked again; 0 = none, it is true. */
size_t router_room(const struct router *r, size_t size);
/* Return where the entity that was asked last is on the ring; 0 = that request was not taken. */
uint64_t router_asked(const struct router *r);
/* Whether one holds more of this router's room than its share. One that does is to wait: what it
 * asks is taken all the same, and what it asked runs on. */
enum router_share {
    ROUTER_SHARE_FAIR,
    ROUTER_SHARE_ENTITY, /* too much is asked of the entity */
    ROUTER_SHARE_ORIGIN, /* too much comes from there */
};
struct router_asker {
    uint64_t asked;  /* router_asked() then */
    uint64_t origin; /* as in the event */
    bool known;      /* it has shown that it is the entity: it needs much less than all together */
};
enum router_share router_share(const struct router *r, const struct router_asker *a);
const struct view *router_view(const struct router *r);
/* Requests that nodes had not answered when their links were lost, for the leader. The router sends
 * this list along with its own messages to coordinators; this function is for shells that send
 * those themselves. */
const struct unanswered *router_unanswered(const struct router *r);
/* True if the directory has the node of that name in that slot. */
bool router_expects(const struct router *r, uint16_t slot, const char *name);
/* Where an actor of that kind lives (ring_point()), by the view of the last step. */
uint64_t router_point(struct router *r, uint16_t kind, struct bytes id);
/* The router_config.gateway that the router was given. */
uint64_t router_id(const struct router *r);

#ifdef RINGHOLD_INJECT
/* Plant a fault: it routes by a broken ring. */
void router_spoil(struct router *r);
#endif

struct router_stats {
    uint64_t version;
    uint64_t digest[2];
    uint64_t requests;
    uint64_t in_flight;     /* unfinished */
    uint64_t waiting;       /* of them, at the gateway */
    uint64_t resent;        /* attempts after the first of a request */
    uint64_t retried;       /* of them for want of an answer, or for a lost link */
    uint64_t moved;         /* answers MOVED */
    uint64_t cold;          /* answers COLD */
    uint64_t stale_answers; /* of owners that were fenced: refused (hole 63) */
    uint64_t late_answers;  /* to requests that were answered or given up before */
    uint64_t loose_answers; /* of streams that are not joined: passed over */
    uint64_t bad_streams;   /* frames of streams for which a node's link was let go */
    uint64_t replied;       /* requests; the rest is in flight */
    uint64_t unknown;
    uint64_t timeout;
    uint64_t rejected;
    uint64_t overloaded;
};
void router_stats(const struct router *r, struct router_stats *out);
/* How long requests took from their event to their reply, by kind and, as series, enum reply_code:
 * of those that were answered by a stream or a record, and that were refused here at once. Kinds
 * that nobody hosts share row 0. One that is asked anew at its deadline counts from then. Borrowed;
 * any thread may read it. */
const struct latencies *router_latencies(const struct router *r);
/* The series' words: of enum reply_code, in its order. */
extern const char *const router_reply_words[REPLY_CODES];

#endif
