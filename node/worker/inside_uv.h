/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of a worker share (worker_uv.c, worker_*_uv.c).
 */
#ifndef NODE_WORKER_INSIDE_UV_H
#define NODE_WORKER_INSIDE_UV_H

#include "base/clock.h"
#include "base/latency.h"
#include "node/worker/worker_uv.h"

#include <pthread.h>

enum {
    WORKER_RING_US = 50,    /* what was completed waits no longer for the end of its batch */
    WORKER_WARY_TASKS = 64, /* so long is not forgotten that one took longer */
    WORKER_PROFILE_US = 50, /* less time than that is not noted in a counter */
};

struct worker {
    struct worker_config config;
    pthread_t thread;
    int fd; /* embedded: of its bell; else -1 */

    /* The worker's own. */
    struct runtime *runtime;
    struct batch *doing;
    struct rh_actor *entered; /* it is in this one's code, or was last */
    struct latency *handler;  /* in `handlers`, of the kind that was entered last; NULL = not to be
                                 counted */
    uint32_t handler_kind;    /* that kind; beyond 16 bits: none */
    uint64_t now_us;          /* read last */
    uint64_t unsaid_us;       /* since then the other side was not woken for what is complete … */
    size_t unsaid;            /* … so much */
    unsigned wary;            /* so many tasks ago one took long: wake it before each */
    uint64_t unnoted_us;      /* time of tasks that no counter in `profile` has */
    _Atomic uint64_t busy_us; /* time of all others; read by any thread */
    uint64_t tick_us;
    bool closed;                /* embedded: it has ended */
    bool saving;                /* what it enters is for the last flush, which no lease bounds */
    bool runs_inline;           /* the protocol thread does its work, inline */
    bool untold;                /* worker_run_one(): something was completed and not taken yet */
    bool looked;                /* the clock was read just now, and nobody has run since */
    struct at_once *at_once;    /* what worker_run_one() does, unless something else was said; or
                                   NULL */
    struct buffer late_answers; /* late_answers_put() */

    /* The protocol thread's own. */
    struct batch *making; /* NULL = none */
    struct batches spare; /* empty ones */
    struct batch *first_sent;
    struct batch *last_sent;
    struct completion_queue recalled; /* both sides are its */

    atomic_bool stopping; /* begin nothing any more */
    atomic_bool
        announced; /* on_completed() was called, and worker_take() has not said NULL since */
    atomic_bool muted;
    struct completion_queue completed;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t bell;  /* for the worker, and for who waits for its end */
    struct batches waiting;
    struct batches done;
    bool rung; /* runtime_tick() has something to do */
    bool sleeping;
    bool inlined;          /* the protocol thread is on the runtime: only while it sleeps */
    bool waits_for_inline; /* it would not sleep, but for that */
    bool ended;
    uint64_t sleeps_until_us; /* CLOCK_BOOTTIME */
    uint64_t save_until_us;
    struct worker_saved saved;

    pthread_mutex_t profile_lock; /* the next */
    struct profile profile;

    pthread_mutex_t announce_lock; /* on_completed() is called under it, unless muted */

    struct latencies handlers; /* the worker's own, read by any thread. One series: how long it was
                                  in an actor's code at a time */
};

/* ---- complete_uv.c: what the runtime completes, on its way to the other side */

void worker_on_completion(void *context, const struct completion *c);
void worker_on_enter(void *context, void *actor);
void worker_complete(struct worker *w, const struct completion *c);
/* The other side hears of what was completed. */
void worker_ring(struct worker *w);
/* Like worker_ring(), if the completion should not wait for the end of the batch: the next
 * operation may take long. */
void worker_ring_if_due(struct worker *w);
/* Give the actor whose code was entered last the time that was not noted. `us`: its part. */
void worker_note_busy(struct worker *w, uint64_t us);
/* Find `handler` for that kind. */
void worker_find_handler(struct worker *w, uint16_t kind);
/* What was entered last runs nothing this time. */
static inline void worker_skip_handler(struct worker *w)
{
    w->handler = NULL;
    w->handler_kind = UINT32_MAX;
}
/* Read the clock. Up to now is the time of the actor that was entered last. Short tasks are not
 * noted one by one: whoever is at work when WORKER_PROFILE_US have come together gets them all,
 * which is right on the average, as what takes less than a microsecond is when the clock moves on
 * during it. So he has done as many tasks like this as fit into them. */
static inline void worker_look_at_clock(struct worker *w)
{
    if (w->looked) {
        w->looked = false;
        return;
    }
    const uint64_t now_us = clock_boottime_us();
    const uint64_t us = now_us - w->now_us;

    w->now_us = now_us;
    if (w->entered == NULL) {
        return;
    }
    if (us == 0) { // as most often
        w->wary -= w->wary > 0 ? 1 : 0;
        if (w->handler != NULL) {
            latency_raise(&w->handler->bucket[0], 1);
        }
        return;
    }
    if (w->handler != NULL) {
        latency_add(w->handler, us, 1);
    }
    w->wary = us >= WORKER_RING_US ? WORKER_WARY_TASKS : w->wary - (w->wary > 0 ? 1 : 0);
    w->unnoted_us += us;
    if (w->unnoted_us >= WORKER_PROFILE_US) {
        worker_note_busy(w, us);
    }
}
/* The watchdog sees whose code runs from here, or since the one before it … The clock is read while
 * it can see an actor here: this one, or the one before it, which has not been left. So what begins
 * too late after all is not overlooked (hole 30). */
__attribute__((always_inline)) static inline void
worker_enter_named(struct worker *w, struct rh_actor *r, struct named name, bool saving)
{
    if (w->entered == NULL && !saving) {
        watchdog_enter(w->config.watchdog, w->config.index, r, w->now_us);
    }
    worker_look_at_clock(w);
    if (w->handler_kind != name.kind) {
        worker_find_handler(w, name.kind);
    }
    if (w->entered != r) { // else its name stands there
        w->entered = r;
        crash_record_enter(w->config.crash_record, name.kind, name.id);
    }
    if (!saving) {
        watchdog_go_on(w->config.watchdog, w->config.index, r, w->now_us);
    }
}
void worker_enter(struct worker *w, struct rh_actor *r);
/* … to here. Both read the clock. */
void worker_leave(struct worker *w);

/* ---- perform_uv.c: one submission after the other */

void worker_do_batch(struct worker *w, struct batch *b);
/* Enter the actor, if the lease still lets it begin that. */
bool worker_begins_in_time(struct worker *w, enum verb verb, struct rh_actor *a);
/* Let the runtime do what is due. */
void worker_tick(struct worker *w);
/* Return until when a submission of that verb may begin, as far as is known. */
uint64_t worker_limit_us(const struct worker *w, enum verb verb);
/* True if it is past the lease's hard end, when nothing of an actor may run. */
bool worker_is_past_the_end(const struct worker *w);

/* ---- inline_uv.c: the protocol thread does the worker's work */

/* Wait, in the worker and under the lock, until the protocol thread has left. */
void worker_wait_for_inline(struct worker *w);

/* ---- thread_uv.c: sleeping, working, ending */

/* True if there is something to do; under the lock. */
bool worker_has_work(const struct worker *w);
/* Wake the worker, for there is work; under the lock. */
void worker_wake(struct worker *w);
/* From any thread: the runtime has something to do. */
void worker_on_later(void *context);
/* The thread's body; `argument`: the worker. */
void *worker_run(void *argument);

#endif
