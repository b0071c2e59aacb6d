/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: what the actors of this node ask of others, wherever those live.
 *
 * Pure. It is the gateway's router (route/router.h) inside the node: the same
 * retries, identities of copies, order per session and entity, and the same
 * honest answers, over the links that the node has with others. It routes by
 * the host's view; its `gateway` is the node's incarnation, so whoever hosts
 * the called actor knows the link that the answer takes. To actors of the node
 * itself there is a link without a wire, CALLS_LINK: for the host a gateway
 * like any other, so that what is asked there passes the same admission.
 *
 *     host   after each of its steps: calls_look()
 *     links  calls_up(), calls_down(); answers to its incarnation -> calls_answer()
 *     runtime  calls_ask(), calls_close()
 *
 * Effects are taken one by one with calls_take(); feeding it meanwhile is fine.
 * A request that can't leave now, because the link takes no more or the gate of
 * the lease is closed (I8), goes back by calls_give_back(): it comes again.
 *
 * Of calls in the midst of a message it knows who waits for whom (node/books/waits.h): where that
 * is a circle, one of them is refused.
 *
 * A broadcast asks many actors for the same (node/calls/broadcasts.h): its members go to the router
 * as it has room, never more than half of it, and between them everybody else has a turn.
 */
#ifndef NODE_CALLS_CALLS_H
#define NODE_CALLS_CALLS_H

#include "node/books/neighbour.h"
#include "node/books/waits.h"
#include "node/calls/broadcasts.h"
#include "node/calls/call.h"
#include "route/router.h"
#include "wire/frame.h"

struct calls;

enum calls_effect_type {
    CALLS_UP,         /* incarnation: for the host, HOST_PEER_UP of CALLS_LINK as a gateway */
    CALLS_SEND,       /* peer, frame_type; bytes: one request record, or a packed Control */
    CALLS_HERE,       /* bytes: one request record, for the host: HOST_REQUEST of CALLS_LINK */
    CALLS_TELL,       /* awaits, version: for the host, as Adopted in a HOST_PEER_CONTROL */
    CALLS_ANSWER,     /* answer: for the runtime */
    CALLS_PROBE,      /* probe: what the host says of it (host_blocked()) is for calls_chase() */
    CALLS_REFUSE,     /* probe, run: for the host, as HOST_DEADLOCK */
    CALLS_CONNECT,    /* keep a link to node `slot` at `address` */
    CALLS_DISCONNECT, /* slot */
    CALLS_REPORT,     /* coordinator; bytes: a packed Control, which answers an operator */
};

struct calls_effect {
    enum calls_effect_type type;
    uint64_t peer;
    int frame_type;   /* enum frame_type */
    uint64_t made_us; /* HERE: from when its time counts, whatever came between */
    uint16_t slot;
    int coordinator;
    const char *address; /* borrowed, like the bytes, until the next calls_take() */
    struct bytes bytes;
    struct bytes common;    /* of a request that has it: the body that `bytes` is without, as
                               request_put_same() has it; else `data` is NULL */
    uint64_t common_number; /* tells this body from all others; not 0 */
    struct call_answer answer;
    struct probe probe; /* borrowed, like the bytes */
    uint64_t run;
    uint64_t incarnation;
    uint64_t version;
    bool awaits;
};

/* `limits`: of the router, with a random seed and the node's name; gateway is not looked at. */
struct calls *calls_new(const struct router_config *limits);
void calls_free(struct calls *c);
/* Name the counter to which makers of broadcasts add their bytes: it goes down as these leave.
 * Borrowed until calls_free(). */
void calls_count_down(struct calls *c, _Atomic size_t *waiting);

/* Follow the host's view, which is borrowed until calls_free(), and its incarnation (0 = not
 * registered); call it after each step of the host, before its effects are done. What was asked
 * under another incarnation is given up without a word: nothing of it may leave any more, and those
 * who asked are gone. */
void calls_look(struct calls *c, const struct view *view, uint64_t incarnation, uint64_t now_us);
/* Note that a link to or from a node is up, whose protocol has streams or not; never CALLS_LINK. */
void calls_up(struct calls *c, uint64_t peer, const char *name, uint64_t incarnation, bool streams,
              uint64_t now_us);
void calls_down(struct calls *c, uint64_t peer, uint64_t now_us);
/* True: it answers a call of mine. False: it is for the host, to be passed on; or of a peer that
 * the view does not name. */
bool calls_answer(struct calls *c, uint64_t peer, const struct answer_record *a, uint64_t now_us);
/* Likewise, of those at the front of `count`, CALLS_ANSWERS_MAX at most: how many answer calls of
 * mine. What is borrowed by them is only until it returns. */
enum { CALLS_ANSWERS_MAX = ROUTER_PREFETCH_MAX };
size_t calls_answers(struct calls *c, uint64_t peer, const struct answer_record *a, size_t count,
                     uint64_t now_us);
/* True while nothing was asked that has no answer yet. */
bool calls_rest(const struct calls *c);
/* Do what is due; every 10..50 ms. */
void calls_tick(struct calls *c, uint64_t now_us);
/* A probe came, from another node or as CALLS_PROBE, and the host says that of it. */
void calls_chase(struct calls *c, const struct probe *probe, struct blocked blocked);

/* `call` is borrowed until it returns. A call, not a send, gets exactly one CALLS_ANSWER, unless
 * its session is closed first or the incarnation ends. While the node is not registered calls are
 * dropped: they come of actors that are gone. */
void calls_ask(struct calls *c, const struct call *call, uint64_t now_us);
/* Drop a call that will not be made after all, because its caller is gone. */
void calls_drop_call(struct calls *c, const struct call *call);
/* The caller is gone: what it asked for still runs, nothing is answered. */
void calls_close(struct calls *c, uint64_t session, uint64_t now_us);

/* Return the session if something that an actor told others in it may still be under way, else 0.
 * The number travels with the actor; where the actor arrives it goes to calls_former(). */
uint64_t calls_under_way(const struct calls *c, uint64_t session);
/* An actor has come here, of which that session at that incarnation may have something under way.
 * What it tells others here waits for that, so that all of them hear it in order. */
struct call_former {
    uint16_t kind;
    struct bytes id;
    uint64_t incarnation;
    uint64_t session;
};
void calls_former(struct calls *c, const struct call_former *former, uint64_t now_us);
/* Take a message of another node. What is not about these calls is ignored. */
void calls_control(struct calls *c, uint64_t peer, const Rh__Control *message, uint64_t now_us);

/* Ask an actor what an operator wants of its values, wherever it lives; `index` is that of the
 * coordinator, to which the answer is a CALLS_REPORT. Ignored while the node is not registered: the
 * operator hears that there was no answer. */
void calls_operate(struct calls *c, int index, const Rh__Control *message, uint64_t now_us);

/* True: there is no effect to take. False: there may be. */
bool calls_quiet(const struct calls *c);
/* Take the next effect; false = none is left. */
bool calls_take(struct calls *c, struct calls_effect *out);
/* Decode the request of a CALLS_HERE that was just taken, and take and decode those of the same
 * time that come next, `max` at most and at least one. How many; they borrow until the next
 * calls_take(). */
size_t calls_take_here(struct calls *c, const struct calls_effect *e, struct request_record *r,
                       size_t max);
/* A CALLS_SEND or CALLS_HERE with a request could not be done: it surely did not run. */
void calls_give_back(struct calls *c, const struct calls_effect *e, uint64_t now_us);
/* Decode the effect's request. ERR_CORRUPT: the bytes are no request. */
MUST_CHECK enum err calls_request(const struct calls_effect *e, struct request_record *out);

/* Abort unless every invariant holds: for tests. */
void calls_check(const struct calls *c);
/* Tell the counters of the calls: all zero while the node is not registered. */
void calls_stats(const struct calls *c, struct router_stats *out);
/* Return how long calls took, as router_latencies(); NULL = the node is not registered. */
const struct latencies *calls_latencies(const struct calls *c);
/* Tell the counters of broadcasts, all but `refused`. */
void calls_broadcasts(const struct calls *c, struct broadcast_stats *out);

#endif
