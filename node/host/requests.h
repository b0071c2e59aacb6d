/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests: which ones does the node have, and what becomes of each? Specification §5.3.
 *
 * admit.c admits them, step by step, and sends answers; copy.c answers or drops copies of what must
 * not run any more; deadlock.c refuses a call that waits for itself.
 *
 * Every request that was accepted is in a queue, runs, or is finished: I12.
 */
#ifndef NODE_HOST_REQUESTS_H
#define NODE_HOST_REQUESTS_H

#include "node/books/order.h"
#include "node/books/waiting.h"
#include "node/host/host.h"

enum { BUSY_RETRY_MS = 50 };

struct requests {
    struct room room;
    struct queue waitver; /* they carry a version newer than mine */
    uint64_t accepted;    /* taken in */
    uint64_t finished;    /* answered, passed on or dropped */
    uint64_t forwarded;
    uint64_t dropped[DROPPED_COUNT];
    uint64_t attached;
    uint64_t answered_again;
    uint64_t answers_lost;
    uint64_t refused_cold;
    uint64_t refused_deadlock;
};

static inline void requests_drop(struct requests *r, enum dropped why)
{
    r->dropped[why]++;
}
/* `lost`: nobody knows (any more) what the request was answered. */
static inline void requests_lose(struct requests *r, bool lost)
{
    r->answers_lost += lost ? 1 : 0;
}
static inline void requests_accept(struct requests *r)
{
    r->accepted++;
}
static inline void requests_finish(struct requests *r)
{
    r->finished++;
}

/* A request on its way through admission: just come in (`w` NULL, the record borrowed) or out of
 * a queue (`w` owned, the record its own). Whoever takes it calls exactly one of admit_done()
 * and the functions that park, run or forward it. */
struct admission {
    const struct request_record *r;
    uint64_t peer;
    uint64_t deadline_us;
    struct waiting *w;
    struct stream_mark mark;
    uint64_t position; /* 0 = not known yet */
    bool passes;       /* the hold lets it */
    bool follows;      /* one of its position was forwarded, and is unanswered */
    bool late;         /* it is ASKED_LATE: whatever ends it, nobody may hear that it did not run */
};
struct admission admission_of(struct waiting *w); /* w is in no queue */
/* Return when the request came to this node, which is `now_us` if it has not waited. */
static inline uint64_t admission_came_us(const struct admission *in, uint64_t now_us)
{
    return in->w == NULL ? now_us : in->w->came_us;
}

/* ---- admit.c ---- */

void requests_init(struct requests *r);
/* Drop all requests that wait, and count them, and `running` more, as finished. */
void requests_drop_all(struct requests *r, size_t running, uint64_t now_us);
/* Take the request of a HOST_REQUEST. */
void admit_new(struct host *h, const struct host_event *event);
void admit_again(struct host *h, struct admission *in);
/* True: it was dropped, as its caller's node is over. Actors that this gave away before go on
 * elsewhere, and what they told others is not to run behind what they tell now (hole 74). */
bool admit_drops_orphan(struct host *h, struct admission *in);
/* Admit all of a queue again. */
void admit_all(struct host *h, struct queue *q);
/* Put it at the end of a queue; refused with OVERLOAD when the room is full. False then. */
bool admit_park(struct host *h, struct queue *q, struct admission *in);
void admit_done(struct host *h, struct admission *in);
/* Answer without having run it. */
void admit_refuse(struct host *h, struct admission *in, enum answer_code code, uint64_t aux);
void admit_send_answer(struct host *h, uint64_t peer, const struct answer_record *a);
void admit_relay_answer(struct host *h, const struct answer_record *a);
void admit_tick(struct host *h);

/* ---- copy.c: called by run.c alone ---- */

/* Answer, drop or refuse what must not run (any more). True: it may run or has to wait. `order` is
 * its session's record, NULL = none. */
bool copy_is_wanted(struct host *h, struct order *order, struct admission *in, uint64_t position);
/* What the request is answered is saved with what it does, for its kind is durable (decision 090).
 * One that may run again is not saved. */
bool copy_may_be_saved(const struct host *h, const struct request_record *r);
/* Return whether the request, which is about to be given to its actor, may have run before. `order`
 * as above. */
enum asked copy_asked(const struct order *order, const struct request_record *r);
/* Keep it for copies that come yet. */
void copy_save_answer(struct host *h, struct order *order, const struct answer_record *answer,
                      bool read);

/* Keep the answer of a request that has run just now, as order_ran() does. serve.c calls it. */
void copy_ran(struct host *h, struct order *order, const struct request_record *r,
              const struct answer_record *answer);

/* ---- deadlock.c ---- */

/* The call waits in the mailbox of an actor that runs `run`, if that is still so: it is refused. */
void deadlock_refuse(struct host *h, const struct probe *p, uint64_t run);

#endif
