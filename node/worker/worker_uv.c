/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a worker, posts to it, takes what it told, and stops it.
 */
#include "node/worker/inside_uv.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/random.h"

#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* ---- making */

static bool start(struct worker *w)
{
    if (w->config.embedded) {
        w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        return w->fd >= 0;
    }
    return pthread_create(&w->thread, NULL, worker_run, w) == 0;
}

struct worker *worker_new(const struct worker_config *config)
{
    struct worker *w = mem_new(1, sizeof *w);
    const struct runtime_config runtime = {
        .on_completion = worker_on_completion,
        .on_enter = worker_on_enter,
        .on_later = worker_on_later,
        .at_once = &w->at_once,
        .context = w,
        .state_size_max = config->state_size_max,
        .broadcasting = config->broadcasting,
        .numbering = config->numbering,
        .alarm_counts = config->alarm_counts,
        .figures = config->figures,
        .worker = config->index,
        .tracing = config->tracing,
        .span_seed = random_u64(),
        .on_store = config->on_store,
        .store = config->store,
    };
    pthread_condattr_t monotonic;

    w->config = *config;
    w->fd = -1;
    w->handler_kind = UINT32_MAX;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_mutex_init(&w->announce_lock, NULL);
    (void)pthread_mutex_init(&w->profile_lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->bell, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    completion_queue_init(&w->completed);
    completion_queue_init(&w->recalled);
    w->runtime = runtime_new(&runtime);
    if (!start(w)) {
        runtime_end(w->runtime, RH_STOP);
        worker_free(w);
        return NULL;
    }
    return w;
}

struct worker_saved worker_saved(const struct worker *w)
{
    return w->saved;
}

void worker_free(struct worker *w)
{
    struct batch *b;

    while ((b = batches_take(&w->waiting)) != NULL || (b = batches_take(&w->done)) != NULL ||
           (b = batches_take(&w->spare)) != NULL) {
        batch_free(b);
    }
    batch_free(w->making);
    completion_queue_fini(&w->recalled);
    completion_queue_fini(&w->completed);
    buffer_fini(&w->late_answers);
    (void)pthread_cond_destroy(&w->bell);
    (void)pthread_mutex_destroy(&w->lock);
    (void)pthread_mutex_destroy(&w->announce_lock);
    (void)pthread_mutex_destroy(&w->profile_lock);
    if (w->fd >= 0) {
        (void)close(w->fd);
    }
    runtime_free(w->runtime);
    mem_free(w);
}

/* ---- the protocol thread */

struct runtime *worker_runtime(const struct worker *w)
{
    return w->runtime;
}

void worker_submit(struct worker *w, const struct submission *s, struct bytes bytes)
{
    if (w->making == NULL) {
        w->making = batches_take(&w->spare);
    }
    if (w->making == NULL) {
        w->making = mem_new(1, sizeof *w->making);
    }
    batch_put(w->making, s, bytes);
}

/* What is done comes back in the order in which it was sent. */
static void recycle(struct worker *w, struct batch *done)
{
    while (done != NULL) {
        struct batch *next = done->next;

        ASSERT(done == w->first_sent);
        w->first_sent = done->next_sent;
        batch_clear(done);
        batches_put(&w->spare, done);
        done = next;
    }
}

void worker_send(struct worker *w)
{
    struct batch *b = w->making;

    if (b == NULL) {
        return;
    }
    w->making = NULL;
    if (w->first_sent == NULL) {
        w->first_sent = b;
    } else {
        w->last_sent->next_sent = b;
    }
    w->last_sent = b;
    (void)pthread_mutex_lock(&w->lock);
    const bool ring = w->waiting.first == NULL;
    const bool signal = ring && w->fd < 0 && w->sleeping;
    struct batch *done = w->done.first;
    w->done.first = NULL;
    batches_put(&w->waiting, b);
    if (ring && !signal) {
        worker_wake(w);
    }
    (void)pthread_mutex_unlock(&w->lock);
    if (signal) {
        // Under the lock it would wake up to wait for that. It is this thread that frees the bell.
        (void)pthread_cond_signal(&w->bell);
    }
    recycle(w, done);
}

const struct completion *worker_take(struct worker *w)
{
    const struct completion *c = completion_queue_take(&w->recalled);

    if (c == NULL) {
        c = completion_queue_take(&w->completed);
    }
    if (c == NULL) {
        // Exchanged, not stored: who found it set before has put what is seen from here on.
        (void)atomic_exchange(&w->announced, false);
        c = completion_queue_take(&w->completed);
    }
    return c;
}

const struct rh_actor *worker_peek(const struct worker *w, size_t ahead)
{
    const struct completion *c = completion_queue_peek(&w->completed, ahead);

    return c == NULL ? NULL : c->actor;
}

void worker_recall(struct worker *w, uint64_t now_us)
{
    for (struct batch *b = w->first_sent; b != NULL; b = b->next_sent) {
        for (size_t i = 0; i < b->count; i++) {
            struct queued *q = &b->item[i];
            int queued = QUEUED;

            if (now_us >= worker_limit_us(w, q->submission.verb) &&
                atomic_compare_exchange_strong(&q->state, &queued, RECALLED)) {
                const struct completion returned =
                    submission_returned(&q->submission, batch_bytes(b, q));

                completion_queue_put(&w->recalled, &returned);
            }
        }
    }
}

uint64_t worker_busy_us(const struct worker *w)
{
    return atomic_load_explicit(&w->busy_us, memory_order_relaxed);
}

const struct latencies *worker_handlers(const struct worker *w)
{
    return &w->handlers;
}

size_t worker_profile(struct worker *w, uint64_t now_us, struct profile_counter *out, size_t max)
{
    (void)pthread_mutex_lock(&w->profile_lock);
    const size_t count = profile_top(&w->profile, now_us, out, max);
    (void)pthread_mutex_unlock(&w->profile_lock);
    return count;
}

void worker_stop(struct worker *w, uint64_t save_until_us)
{
    worker_send(w);
    (void)pthread_mutex_lock(&w->announce_lock);
    atomic_store(&w->muted, true);
    (void)pthread_mutex_unlock(&w->announce_lock);
    (void)pthread_mutex_lock(&w->lock);
    w->save_until_us = save_until_us;
    atomic_store(&w->stopping, true);
    worker_wake(w);
    (void)pthread_mutex_unlock(&w->lock);
}
