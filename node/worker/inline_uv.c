/* SPDX-License-Identifier: Apache-2.0
 *
 * The protocol thread at a worker's work. To wake the worker and be woken by it
 * takes longer than what is brief, so that is done where it is known.
 *
 * The runtime and all that is the worker's own belong to one of the two at a time.
 * Both sides change hands under the lock, which orders what they do there:
 *
 *     worker                                   protocol thread
 *     nothing to do: `sleeping`            ->  sleeping, nothing to do: `inlined`
 *     rung, or its time has come:              does the batch
 *       waits until `inlined` is not set   <-  `inlined` no more; rings if that is awaited, if
 *     `sleeping` no more                       there is work, or if a timer is due before the
 *                                              worker would look at it
 *
 * No wake-up is lost: whoever rings (worker_wake) does so under the lock, and leaves what it rings
 * for in worker_has_work(), which the protocol thread looks at under the lock as the last thing it
 * does here.
 *
 * The protocol thread does a batch there, or single runs while their requests are admitted
 * (worker_run_one()) and answers as they come (worker_answer_one()): an answer that comes first is
 * given back at once, and a call is made at once (worker_config.on_call). What else an actor says
 * before it answers is queued, and so is what it says then, behind it.
 *
 * What is done keeps its order: a worker that sleeps has done all that was sent. The lease holds as
 * it does there: the clock is read and the limits are looked at before each task, and the watchdog
 * sees whose code runs (hole 30). Answers of calls are done here if the caller's kind is brief
 * (CALL_BRIEF); timers, which may be of others, wait for the worker.
 */
#include "node/worker/inside_uv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mutant.h"

void worker_wait_for_inline(struct worker *w)
{
    while (w->inlined) {
        w->waits_for_inline = true;
        (void)pthread_cond_wait(&w->bell, &w->lock);
    }
    w->waits_for_inline = false;
}

static bool enter(struct worker *w)
{
    (void)pthread_mutex_lock(&w->lock);
    ASSERT(!w->inlined); // whoever enters leaves before anybody else enters
    const bool may = w->sleeping && !worker_has_work(w);
    w->inlined = may;
    (void)pthread_mutex_unlock(&w->lock);
    if (may) {
        w->runs_inline = true; // else it is the worker's to read
    }
    return may;
}

static void leave(struct worker *w)
{
    const uint64_t next_us = runtime_next_us(w->runtime);

    w->runs_inline = false;
    (void)pthread_mutex_lock(&w->lock);
    w->inlined = false;
    w->rung = w->rung || next_us < w->sleeps_until_us || w->late_answers.size > 0;
    const bool signal = w->waits_for_inline || worker_has_work(w);
    (void)pthread_mutex_unlock(&w->lock);
    if (signal) {
        (void)pthread_cond_signal(&w->bell);
    }
}

bool worker_enter_inline(struct worker *w)
{
    const bool idle = w->making == NULL || w->making->count == 0;

    if (w->fd >= 0 || !idle || atomic_load(&w->stopping) || !enter(w)) {
        return false;
    }
    w->untold = !completion_queue_is_empty(&w->completed);
    w->now_us = clock_boottime_us();
    runtime_set_now(w->runtime, w->now_us);
    return true;
}

/* As worker_begins_in_time(), but that timers wait for the worker, and nobody for the bell. */
static bool begins_in_time(struct worker *w, const struct at_once *run)
{
    const _Atomic uint64_t *limit_us = &w->config.limits->start_us;

    if (mutant(M_STARTCHK)) {
        return true;
    }
    if (w->now_us >= atomic_load(limit_us)) {
        return false;
    }
    worker_enter_named(w, run->instance, (struct named){run->kind, run->id}, false);
    return w->now_us < atomic_load(limit_us);
}

enum host_ran worker_run_one(struct worker *w, struct at_once *run)
{
    if (!begins_in_time(w, run)) {
        return HOST_RAN_NOT;
    }
    run->done = false;
    w->at_once = w->untold ? NULL : run;
    runtime_run(run->instance, &run->message);
    w->at_once = NULL;
    return run->done ? HOST_RAN_NOW : HOST_RAN_LATER;
}

bool worker_answer_one(struct worker *w, const struct call_answer *answer)
{
    if (w->making != NULL && w->making->count > 0) {
        return false; // there may be one that came before it
    }
    worker_leave(w); // the clock is read, as answer_in_time() has it
    if (worker_is_past_the_end(w)) {
        return false;
    }
    w->looked = true;
    runtime_answer(w->runtime, answer);
    w->looked = false;
    return true;
}

bool worker_leave_inline(struct worker *w, uint64_t *now_us)
{
    worker_leave(w);
    *now_us = w->now_us;
    worker_ring(w);
    leave(w);
    return !completion_queue_is_empty(&w->completed);
}

bool worker_is_wary(const struct worker *w)
{
    return w->wary > 0;
}

size_t worker_run_inline(struct worker *w, size_t max)
{
    struct batch *b = w->making;

    if (b == NULL || w->fd >= 0 || b->count > max || b->brief_count < b->count || !enter(w)) {
        return 0;
    }
    const size_t count = b->count;
    w->making = NULL;
    worker_do_batch(w, b);
    leave(w);
    batch_clear(b);
    batches_put(&w->spare, b);
    return count;
}
