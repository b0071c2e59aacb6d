/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker: a thread with a runtime, on which the actors of its share live.
 *
 * The protocol thread submits what an actor has to do, in batches; what it comes to
 * is completed at once, and the other side woken for it once in a batch, unless
 * something in it takes long. One lock a batch is all.
 *
 *     protocol thread                                worker
 *     worker_submit, worker_submit …, worker_send -> begins each one that is in time
 *     worker_take                                 <- completes; on_completed, once until all
 *                                                    is taken
 *
 * The lease (hole 30). A task stands in the queue while time passes, so the worker
 * reads the clock, and the limits of the host's last step, right before it begins.
 * What came too late it completes as returned. What stands behind a slow one is taken
 * back from the other side by worker_recall(): each task is begun or recalled,
 * never both.
 *
 *     QUEUED -worker-> STARTED        QUEUED -protocol thread-> RECALLED
 *
 * A wake-up costs more than what is brief. While the worker sleeps the protocol thread may do its
 * work on its runtime, inline: worker_run_inline(). They are never in there together
 * (node/worker/inline_uv.c).
 *
 * In embedded mode there is no thread: worker_poll() does its work.
 */
#ifndef NODE_WORKER_WORKER_UV_H
#define NODE_WORKER_WORKER_UV_H

#include "node/host/host.h"
#include "node/worker/batch_uv.h"
#include "node/worker/crash_record.h"
#include "node/worker/kinds.h"
#include "node/worker/profile.h"
#include "node/worker/watchdog_uv.h"

struct call_answer;
struct worker;

/* Until when something may be begun, as of the last step of the host: written by the protocol
 * thread, read by all workers. */
struct limits {
    _Atomic uint64_t start_us; /* ACTIVATE, RUN, TURN, RETIRE */
    _Atomic uint64_t gate_us;  /* EXPORT, UNFREEZE */
    _Atomic uint64_t hard_end_us;
};

/* Result of the worker's last flush, in actors. */
struct worker_saved {
    size_t flushed;
    size_t left; /* their flush failed, or they were busy until the end */
};

struct worker_config {
    uint32_t index;
    bool embedded;
    size_t state_size_max;                  /* of one hand-over */
    const struct limits *limits;            /* borrowed */
    struct watchdog *watchdog;              /* borrowed */
    struct crash_record_slot *crash_record; /* borrowed */
    const struct tracing *tracing;          /* borrowed: runtime_config.tracing */
    struct broadcasting *broadcasting;      /* borrowed: runtime_config.broadcasting */
    struct numbering *numbering;            /* likewise */
    struct alarm_counts *alarm_counts;      /* likewise */
    struct durable_figures *figures;        /* likewise */
    void (*on_store)(void *store, struct store_task *task); /* runtime_config.on_store */
    void *store;
    void (*on_completed)(void *context); /* from the worker: worker_take() has something */
    /* From the protocol thread, of a VERB_CALL that is made while it is on the runtime and nothing
     * waits for worker_take(): else, and if it is NULL, that is where the call is to be had. */
    void (*on_call)(void *context, const struct completion *c);
    void *context;
};

/* NULL = no thread is to be had. */
struct worker *worker_new(const struct worker_config *config);

/* ---- the protocol thread */

/* Return the runtime in which the worker's actors live. Only the worker's thread may use its
 * activations. */
struct runtime *worker_runtime(const struct worker *w);

/* Add to the batch that is being made; the bytes are copied. */
void worker_submit(struct worker *w, const struct submission *s, struct bytes bytes);
/* Hand the batch over, if there is one. */
void worker_send(struct worker *w);
/* Do the batch that is being made right here, if all of it is brief, it is `max` submissions at
 * most, and the worker sleeps. How many; 0 = there is none, or it waits for worker_send(). */
size_t worker_run_inline(struct worker *w, size_t max);
/* The protocol thread is on the runtime of the worker, who sleeps and has nothing to do, from here
 * … False: it is not. */
bool worker_enter_inline(struct worker *w);
/* … has it do a RUN, … */
enum host_ran worker_run_one(struct worker *w, struct at_once *run);
/* … or hear the answer of a call that an actor of a brief kind made, … False: not now, it is to be
 * submitted. */
bool worker_answer_one(struct worker *w, const struct call_answer *answer);
/* … to here, at `now_us`. True: something else was completed by the way. */
bool worker_leave_inline(struct worker *w, uint64_t *now_us);
/* True if one of the worker's last tasks took long. */
bool worker_is_wary(const struct worker *w);
/* The next completion, or NULL: that was all. Borrowed until the next call. */
const struct completion *worker_take(struct worker *w);
/* The actor that completes something `ahead` calls later, as far as that is known; or NULL. */
const struct rh_actor *worker_peek(const struct worker *w, size_t ahead);
/* Take back what was not begun and no longer may be; worker_take() returns it. */
void worker_recall(struct worker *w, uint64_t now_us);
/* For how long its actors ran since it began, in microseconds. From any thread. */
uint64_t worker_busy_us(const struct worker *w);
/* How long actors' code ran each time that it was entered, by kind; series 0. Borrowed; any thread
 * may read it. */
const struct latencies *worker_handlers(const struct worker *w);
/* The actors that took most of the worker's time lately; as profile_top(). */
size_t worker_profile(struct worker *w, uint64_t now_us, struct profile_counter *out, size_t max);
/* Begin nothing more but discards; `save_until_us`: flush what is left until then, 0 = don't. Then
 * deactivate it, and end. Nothing is completed any more. The flush is by the actors' fences, so it
 * may be past the end of the lease: who was barred has discarded them before. */
void worker_stop(struct worker *w, uint64_t save_until_us);
/* Wait until it has ended, at most until then. False: its thread is stuck in an actor, and all that
 * it may touch has to stay. */
bool worker_join(struct worker *w, uint64_t until_us);
/* Return what the worker leaves behind, after worker_join(). */
struct worker_saved worker_saved(const struct worker *w);
/* Free the worker after worker_join(), or when the worker is embedded and worker_poll() said that
 * it has ended. */
void worker_free(struct worker *w);

/* ---- embedded: the caller's thread */

/* Readable when worker_poll() has work; -1 = it has a thread. */
int worker_fd(const struct worker *w);
/* From any thread: have worker_poll() return. */
void worker_rouse(struct worker *w);
/* Do what is there, or wait for some, at most so long. False = it has ended. */
bool worker_poll(struct worker *w, uint64_t wait_us);

#endif
