/* SPDX-License-Identifier: Apache-2.0
 *
 * Work: what do this node's actors do now, and which of them come, go and fail? Specification §5.2,
 * §5.3.
 *
 * run.c activates actors and runs one request or turn at a time; serve.c does so at once with what
 * is brief and steady; life.c holds, freezes and thaws actors, lets them come and go; retire.c ends
 * those that nobody uses; fail.c lets those that fail wait for their next start.
 */
#ifndef NODE_HOST_WORK_H
#define NODE_HOST_WORK_H

#include "base/ration.h"
#include "node/books/actor.h"
#include "node/books/order.h"
#include "node/host/host.h"

struct admission;
struct kind_state;
struct some_taken;

struct work {
    uint64_t run_ticket;
    size_t running;         /* requests */
    size_t tasks;           /* actors with something under way */
    size_t live;            /* actors with an instance, or one to be */
    size_t activating;      /* of these */
    size_t retiring;        /* of these */
    struct delays delays;   /* of struct actor_work */
    struct list to_export;  /* struct actor_work: EXPORTING, not asked for their state yet */
    uint32_t exports_asked; /* since the last tick, and not answered */
    size_t image_size;      /* of the last that was made: the next will be like it */
    uint64_t executed;
    uint64_t turns;
    uint64_t retired_total;
    uint64_t failed_total;
    uint64_t deposed_total;
    struct ration complaints;
};

/* ---- run.c ---- */

void work_init(struct work *w);
/* Drop all requests that run; returns how many. */
size_t work_drop_running(struct work *w);
/* An actor of the request's name takes it: run now, queue, or refuse. `a` NULL = no record yet. */
void actor_offer(struct host *h, struct actor *a, struct image_name name, struct admission *in);
/* See that the actor moves on, whatever its state: what waits runs, or it freezes, retires, rests.
 * Its record may be gone afterwards. */
void actor_proceed(struct host *h, struct actor *a);
/* Start the actor, which must be ABSENT. */
void actor_activate(struct host *h, struct actor *a);
/* Begin a task of the actor, whose completion has the ticket in `running`; and end it. */
struct actor_work *actor_begin(struct host *h, struct actor *a, enum actor_state state);
void actor_end(struct host *h, struct actor *a, enum actor_state state);
void run_on_poke(struct host *h, struct actor *a);
void run_on_activated(struct host *h, struct actor *a, enum err error);
void run_on_ran(struct host *h, struct actor *a, const struct completion *c);
/* The actor's operation was not begun, and its time is over: answer so. */
void run_expire(struct host *h, struct actor *a);
/* The activation, request or turn that was kept for the lease is not begun: its actor is in
 * quarantine by now. */
void run_refuse(struct host *h, struct actor *a);
/* The instance ends: if it runs a request, which will not be answered, count that as finished. */
void run_abandon(struct host *h, const struct actor *a);

/* The record of the request's session, which is in use; it is made if `order` is NULL. */
struct order *run_order(struct host *h, struct actor *a, struct order *order,
                        const struct request_record *r);
/* I7: what ran never runs again, except a read of which nothing is kept. */
bool run_may(const struct order *order, const struct request_record *r);
/* The name of the request that runs. */
static inline struct request_name running_name(const struct running *r)
{
    return (struct request_name){r->order == NULL ? r->gateway : r->session, r->seq};
}
/* The actor has begun to run it. */
struct actor_work *run_begin(struct host *h, struct actor *a, struct order *found,
                             const struct admission *in);
/* Submit it to the actor, which is idle. */
void run_submit(struct host *h, struct actor *a, struct order *found, const struct admission *in);
/* Return the answer that a run came to, with the name of its request to be filled in. */
struct answer_record run_answer(const struct host *h, const struct actor *a, enum answer_code code,
                                struct bytes body);

/* ---- serve.c: called by host.c and streams.c alone ---- */

/* Serve the steady ones of requests that came over the event's link: see host_serve(). */
size_t serve_steady(struct host *h, const struct host_event *event, const struct request_record *r,
                    const uint64_t *position, size_t count, const struct host_server *server);
/* True if requests may run at once in this step, but for full links. */
bool serve_may(const struct host *h);
/* The i-th of these, taken just now of a peer that is known, runs at once if it is steady. `kind`:
 * its own, NULL = it is not here. False: nothing was done. */
bool serve_taken(struct host *h, struct some_taken *t, size_t i, const struct kind_state *kind);

/* ---- life.c ---- */

/* The actor's arc is held: freeze it now, or when it stops. */
void actor_hold(struct host *h, struct actor *a, struct hold *hold);
/* Freeze an actor for which nothing waits and whose arc is held: make its image, or have it
 * made. */
void actor_freeze(struct host *h, struct actor *a);
/* Ask more of those that are to move for their state. `tick`: those asked before don't count. */
void export_go_on(struct host *h, bool tick);
/* Remove the actor from the export queue; call when it leaves ACTOR_EXPORTING. */
void export_ends(struct host *h, const struct actor *a);
/* A chain's request reached it when it was frozen already. */
void actor_thaw(struct host *h, struct actor *a);
/* The hold ended and it stays. */
void actor_release(struct host *h, struct actor *a);
void run_on_exported(struct host *h, struct actor *a, const struct completion *c);
/* Have its image go ahead of the hold that is to come, if it can be had now; it goes on. True: it
 * was asked for its state, and answers. */
bool actor_copy(struct host *h, struct actor *a);
void run_on_copied(struct host *h, struct actor *a, const struct completion *c);
/* Release the image that the actor has, if any. */
void actor_drop_image(struct actor *a);
/* Remove the actor: DISCARD its instance, forget its record. All its requests were taken out
 * before. */
void actor_remove(struct host *h, struct actor *a, enum discard_why why);
/* DISCARD the actor's instance; the record stays. */
void actor_dismiss(struct host *h, struct actor *a, enum discard_why why);
/* Give back what an actor without work doesn't need, in the end the record itself. */
void actor_rest(struct host *h, struct actor *a);
/* Move everything that waits for it to the end of `to`. */
void actor_empty(struct host *h, struct actor *a, struct queue *to);
/* An image handed over becomes a record, ABSENT, with its orders. */
struct actor *actor_from_image(struct host *h, struct image *image);

/* ---- retire.c ---- */

void retire(struct host *h, struct actor *a, enum retire_why why);
/* Retire the actor, which is IDLE, if it shall and may. */
void retire_wished(struct host *h, struct actor *a);
/* A request of the actor came or ended. */
static inline void retire_used(struct actor *a, uint32_t now_ms)
{
    a->used_ms = now_ms;
    if (a->wish != WISH_ASKED) {
        a->wish = WISH_NONE;
    }
}
/* The actor is alive: put it into the wheel of its kind. */
void retire_watch(struct host *h, struct actor *a);
/* Over actors_max: the least recently used go. */
void retire_for_room(struct host *h);
void retire_tick(struct host *h);
void retire_on_passivate(struct host *h, struct actor *a);
void retire_on_retired(struct host *h, struct actor *a, const struct completion *c);

/* ---- fail.c ---- */

/* A log line that names it and its kind, unless there are many. */
void fail_complain(struct host *h, const struct actor *a, const char *event, enum err error);
/* ABSENT after a failure: its next start waits. */
void fail_again(struct host *h, struct actor *a);
/* IDLE and broken: its instance ends. */
void fail_broken(struct host *h, struct actor *a);
/* The actor has failed, as it says itself; the completion says whether another owner has its id. */
void fail_on_failed(struct host *h, struct actor *a, const struct completion *c);
/* Go on with actors whose wait is over: back-offs, and hand-overs that were "not now". */
void fail_tick(struct host *h);
/* Actors that wait for their next start. Looks at each that has a back-off. */
size_t fail_waiting(const struct host *h);

#endif
