/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests by streams: which ones go so, and what becomes of them here.
 *
 *     request -> by_stream_ask()    true: it is taken; false: it goes by records (pending.h)
 *     frame   -> router_frame()     answers; JOINED, GONE
 *     link    -> by_stream_up(), by_stream_down()
 *     ring    -> by_stream_over() of each incarnation that is over by it, then by_stream_ring()
 *     tick    -> by_stream_pass_time()
 *     step    -> by_stream_end()
 *
 * stream/asker.h sees a request through; what it needs besides, a deadline and who asked, stands
 * beside the asker's slot of it. A request goes by its owner's stream
 * if it is of a session that is numbered here and no operator's, its owner's link speaks streams,
 * and nothing of its lane is on its way as a record. So a lane goes over to streams when nothing of
 * it is unfinished, and no copy that was given up can still come anywhere (BY_STREAM_KEEP_MS). It
 * goes back when its owner speaks no streams: the asker gives back what waits, once nothing of it
 * is SENT.
 */
#ifndef ROUTE_BY_STREAM_H
#define ROUTE_BY_STREAM_H

#include "ring/hash.h"
#include "ring/ring.h"
#include "route/peer.h"
#include "route/pending.h"
#include "route/router.h"
#include "route/session.h"
#include "stream/asker.h"

enum {
    /* After that no copy of a record runs anywhere: HOST_KEEP_MIN_MS (node/host/host.h). */
    BY_STREAM_KEEP_MS = REQUEST_TTL_MAX_MS + 41000,
};

/* A request under way, by its slot of the asker: a line of the cache. */
struct inquiry {
    struct session *session; /* NULL = none is, or it was given up */
    uint64_t origin;         /* of the client that asks; 0 = no client does */
    uint32_t stamp;          /* latency_stamp() of when it came */
    uint32_t size;           /* bytes that it counts with */
    uint8_t flags;           /* enum request_flags */
    bool must;               /* its node is asked until it answers, however full it is */
    bool lost;               /* it was asked in vain once, and may have run then: of `died` */
    bool overloaded;         /* its owner had no room for it: since `overload_us` */
    uint64_t died;           /* an incarnation; 0 = who had it is not dead */
    uint64_t overload_us;
    uint64_t apart[2];
};
_Static_assert(sizeof(struct inquiry) == PENDING_LINE, "a line");

/* Requests of one session that come one behind the other at one time: what they have in common is
 * looked at once. Whatever else the router is told ends it. */
struct steady_run {
    uint32_t left; /* so many may come yet; 0 = there is none */
    uint16_t kind; /* of all of them */
    bool known;    /* as in struct router_plain */
    struct session *session;
    uint64_t session_id;
    uint64_t now_us;
    uint32_t due_ms;      /* their deadline, the usual one */
    size_t size_max;      /* r->size when it is over */
    struct siphash hash;  /* begun under the key of that kind */
    const ring_hit *cell; /* where an id is, by its position above `shift`; NULL = by its segment */
    uint8_t shift;
    uint32_t stamp;
};

struct by_stream {
    struct steady_run run;
    struct stream_asker asker;
    struct inquiry *inquiry; /* owned; by slot */
    uint32_t *due_ms;     /* owned; their deadlines, on the clock of due_at(); 0 = none is there */
    size_t cap;           /* of both */
    size_t count;         /* of inquiries: each is replied to once */
    uint32_t next_due_ms; /* none is due before that; while there are any */
    uint64_t connections; /* made so far */
    uint64_t dying;       /* whose stream ends in this step; 0 = nobody's */
    uint64_t looked_us;   /* when silent nodes were looked for */
    size_t silent;        /* peers that are */
    bool took_back;       /* records wait to be sent */
    struct table kept;    /* struct kept_lane: lanes that keep to records for a time, … */
    struct list kept_until; /* … in its order */
};

struct router;
struct unanswered_node;

void by_stream_init(struct router *r);
void by_stream_fini(struct router *r);

/* Make free slots, and inquiries beside them. */
void by_stream_grow(struct by_stream *b);
/* Something comes that is no request of the run. */
static inline void by_stream_end_run(struct by_stream *b)
{
    b->run.left = 0;
}
/* Take a request, if it is to go by a stream. */
bool by_stream_ask(struct router *r, const struct router_event *event, struct session *session,
                   uint64_t position);
/* Time went on: deadlines, lanes that rest, nodes that are silent. */
void by_stream_pass_time(struct router *r);
/* A step ends: what may go goes. */
void by_stream_end(struct router *r);
static inline bool by_stream_wants_end(const struct by_stream *b)
{
    return asker_wants_turn(&b->asker) || b->took_back;
}

/* router_frame(), router_unsent() */
MUST_CHECK enum err by_stream_frame(struct router *r, struct router_frame *f);
struct sendlog *by_stream_unsent(struct router *r, uint16_t *slot);

/* A link is up, or the ring names the incarnation at its end: join its stream. */
void by_stream_up(struct router *r, struct peer *peer);
/* A link is gone. */
void by_stream_down(struct router *r, struct peer *peer);
/* The incarnation that the peer's stream goes to is over by the ring adopted, or left: what was
 * sent there and is not answered is UNKNOWN, or is asked again. */
void by_stream_over(struct router *r, struct peer *peer);
/* A ring was adopted. */
void by_stream_ring(struct router *r);
/* A request of that lane ended whose copies may still be on their way. */
void by_stream_keep(struct router *r, uint64_t session, uint64_t position);
/* Note the actors that a lost node was asked for by its stream, those asked first. `note` is begun
 * if there is one. */
void by_stream_note(struct router *r, const struct peer *peer, struct unanswered_node *note);
/* Requests that wait here. */
size_t by_stream_waiting(const struct router *r);
/* Abort unless the counts are right. Returns what clients hold, as share_one() has it. */
uint64_t by_stream_check(const struct router *r);

#endif
