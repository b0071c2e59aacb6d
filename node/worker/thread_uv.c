/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's thread: it works, sleeps until there is more, and ends.
 */
#include "node/worker/inside_uv.h"

#include "base/clock.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

enum {
    SLEEP_US = 1000000, /* then the clock is looked at again: the machine may have slept */
    IDLE_US = 60000000, /* nothing waits for a time */
    GATED_US = 20000,   /* past the lease: how often to look whether it is back */
    SAVE_US = 20000,    /* between two looks at what is still to be flushed */
};

/* ---- the bell */

/* Under the lock. */
void worker_wake(struct worker *w)
{
    if (w->fd >= 0) {
        const uint64_t one = 1;

        (void)!write(w->fd, &one, sizeof one);
    } else if (w->sleeping) {
        (void)pthread_cond_signal(&w->bell);
    }
}

/* From any thread: of the runtime. */
void worker_on_later(void *context)
{
    struct worker *w = context;

    (void)pthread_mutex_lock(&w->lock);
    if (!w->rung) {
        w->rung = true;
        worker_wake(w);
    }
    (void)pthread_mutex_unlock(&w->lock);
}

/* ---- waiting */

/* How long it may sleep. */
static uint64_t idle_us(struct worker *w)
{
    const uint64_t next_us = runtime_next_us(w->runtime);

    w->now_us = clock_boottime_us();
    if (worker_is_past_the_end(w)) {
        return GATED_US;
    }
    if (next_us <= w->now_us || w->late_answers.size > 0) {
        return 0;
    }
    if (next_us == UINT64_MAX) {
        return IDLE_US;
    }
    return next_us - w->now_us < SLEEP_US ? next_us - w->now_us : SLEEP_US;
}

/* Under the lock. */
bool worker_has_work(const struct worker *w)
{
    return w->waiting.first != NULL || w->rung || atomic_load(&w->stopping);
}

static struct timespec monotonic_in(uint64_t us)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += (long)(us % 1000000) * 1000;
    at.tv_sec += (time_t)(us / 1000000) + at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static void sleep_until_rung(struct worker *w, uint64_t us)
{
    const struct timespec at = monotonic_in(us);

    (void)pthread_mutex_lock(&w->lock);
    w->sleeping = true;
    w->sleeps_until_us = w->now_us + us;
    while (!worker_has_work(w) && pthread_cond_timedwait(&w->bell, &w->lock, &at) == 0) {
    }
    worker_wait_for_inline(w);
    w->sleeping = false;
    (void)pthread_mutex_unlock(&w->lock);
}

/* Embedded: the descriptor is readable as long as there is work. */
static void poll_until_rung(const struct worker *w, uint64_t us)
{
    struct pollfd fd = {.fd = w->fd, .events = POLLIN};

    (void)poll(&fd, 1, (int)((us + 999) / 1000));
}

static void stop_ringing(const struct worker *w)
{
    uint64_t rung = 0;

    if (w->fd >= 0) {
        (void)!read(w->fd, &rung, sizeof rung);
    }
}

/* ---- working */

/* Do what is there. False = it has to end. */
static bool work(struct worker *w)
{
    struct batch *b = NULL;

    stop_ringing(w);
    (void)pthread_mutex_lock(&w->lock);
    w->rung = false;
    b = batches_take(&w->waiting);
    (void)pthread_mutex_unlock(&w->lock);
    while (b != NULL) {
        worker_do_batch(w, b);
        (void)pthread_mutex_lock(&w->lock);
        batches_put(&w->done, b);
        b = batches_take(&w->waiting);
        (void)pthread_mutex_unlock(&w->lock);
    }
    w->now_us = clock_boottime_us();
    worker_tick(w);
    worker_ring(w);
    return !atomic_load(&w->stopping);
}

/* Flush what can be: by the fence, which the store compares, whether the lease lasts or not. */
static struct worker_saved save_all(struct worker *w, uint64_t until_us)
{
    struct worker_saved saved = {0};
    size_t before = 0;

    w->saving = true;
    do {
        const struct timespec pause = {.tv_nsec = SAVE_US * 1000L};

        before = saved.left;
        w->now_us = clock_boottime_us();
        worker_tick(w);
        saved.left = runtime_save(w->runtime, &saved.flushed);
        if (saved.left == before && saved.left > 0) {
            (void)nanosleep(&pause, NULL);
        }
    } while (saved.left > 0 && w->now_us < until_us);
    w->saving = false;
    return saved;
}

static void end(struct worker *w)
{
    (void)pthread_mutex_lock(&w->lock);
    const uint64_t save_until_us = w->save_until_us;
    (void)pthread_mutex_unlock(&w->lock);
    (void)work(w); // discards that came last
    const struct worker_saved saved =
        save_until_us > 0 ? save_all(w, save_until_us) : (struct worker_saved){0};
    runtime_end(w->runtime, RH_STOP);
    (void)pthread_mutex_lock(&w->lock);
    w->saved = saved;
    w->ended = true;
    (void)pthread_cond_broadcast(&w->bell);
    (void)pthread_mutex_unlock(&w->lock);
}

void *worker_run(void *argument)
{
    struct worker *w = argument;

    while (work(w)) {
        const uint64_t us = idle_us(w);

        if (us > 0) {
            sleep_until_rung(w, us);
        }
    }
    end(w);
    return NULL;
}

/* ---- its end */

bool worker_join(struct worker *w, uint64_t until_us)
{
    const uint64_t now_us = clock_boottime_us();
    const struct timespec at = monotonic_in(until_us > now_us ? until_us - now_us : 0);

    (void)pthread_mutex_lock(&w->lock);
    while (!w->ended && pthread_cond_timedwait(&w->bell, &w->lock, &at) == 0) {
    }
    const bool ended = w->ended;
    (void)pthread_mutex_unlock(&w->lock);
    if (ended && !w->config.embedded) {
        (void)pthread_join(w->thread, NULL);
    }
    return ended;
}

/* ---- embedded */

int worker_fd(const struct worker *w)
{
    return w->fd;
}

void worker_rouse(struct worker *w)
{
    worker_on_later(w);
}

bool worker_poll(struct worker *w, uint64_t wait_us)
{
    if (w->closed) {
        return false;
    }
    const uint64_t us = idle_us(w);

    poll_until_rung(w, us < wait_us ? us : wait_us);
    if (!work(w)) {
        w->closed = true;
        end(w); // It may be freed from here on.
        return false;
    }
    return true;
}
