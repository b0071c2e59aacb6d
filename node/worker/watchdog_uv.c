/* SPDX-License-Identifier: Apache-2.0
 *
 * The watchdog's thread: it names slow callbacks and ends the process when one
 * outlives the lease.
 */
#include "node/worker/watchdog_uv.h"

#include "base/actor_name.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sysexits.h>
#include <unistd.h>

#ifndef CLOCK_BOOTTIME
#define CLOCK_BOOTTIME 7
#endif

/* Of one worker, on a line of the cache of its own. */
struct watchdog_slot {
    _Atomic(const struct rh_actor *) actor; /* whose code it is in; NULL = none's */
    _Atomic uint64_t since_us;
    uint8_t apart[48];
};

struct watchdog {
    pthread_t thread;
    int timer;
    enum rh_on_lease_overrun on_overrun;
    size_t slot_count;
    struct watchdog_slot *slot; /* owned */
    uint64_t armed_us;          /* the protocol thread's copy of `end_us` */
    pthread_mutex_t lock;       /* all below */
    uint64_t end_us;            /* UINT64_MAX = none */
    struct list deferred;       /* struct watched, oldest first */
    size_t deferred_count;
    bool told; /* about this end */
    bool stopping;
};

/* ---- the message */

/* One write: a thread may be stuck with any lock in its hands. */
static void complain(const struct watchdog *w, const struct rh_actor *actor, const char *how,
                     uint64_t since_us)
{
    char line[2048];
    char text[ACTOR_NAME_SIZE];
    const char *then =
        w->on_overrun == RH_OVERRUN_ABORT ? "the process ends now" : "its output is held back";

    const struct named name = activation_name(actor);
    const int size = snprintf(line,
                              sizeof line,
                              "ringhold node: the lease has ended and actor %s %s, since %" PRIu64
                              " ms: %s (--on-lease-overrun)\n",
                              actor_name_print(name.kind, name.id, text),
                              how,
                              (clock_boottime_us() - since_us) / 1000,
                              then);
    (void)!write(STDERR_FILENO, line, (size_t)size);
}

/* ---- the thread */

/* Under the lock. How many still run. */
static size_t name_all(struct watchdog *w)
{
    size_t count = 0;

    for (size_t i = 0; i < w->slot_count; i++) {
        const struct watched_at at = watchdog_at(w, i);

        if (at.actor != NULL) {
            complain(w, at.actor, "still runs", at.since_us);
            count++;
        }
    }
    if (w->deferred_count > 0) {
        const struct watched *oldest = watchdog_deferred(w);
        char how[64];

        (void)snprintf(
            how, sizeof how, "and %zu others still defer messages", w->deferred_count - 1);
        complain(w,
                 oldest->actor,
                 w->deferred_count == 1 ? "still defers messages" : how,
                 oldest->deferred_us);
    }
    return count + w->deferred_count;
}

/* Under the lock. */
static void look(struct watchdog *w)
{
    if (w->stopping || w->told || clock_boottime_us() < w->end_us || name_all(w) == 0) {
        return;
    }
    w->told = true;
    if (w->on_overrun == RH_OVERRUN_ABORT) {
        abort();
    }
}

static void *watch(void *argument)
{
    struct watchdog *w = argument;
    bool stopping = false;

    while (!stopping) {
        uint64_t fired = 0;

        if (read(w->timer, &fired, sizeof fired) < 0) {
            continue; // interrupted
        }
        (void)pthread_mutex_lock(&w->lock);
        look(w);
        stopping = w->stopping;
        (void)pthread_mutex_unlock(&w->lock);
    }
    return NULL;
}

static void arm(const struct watchdog *w, uint64_t at_us)
{
    struct itimerspec when = {0}; // off

    if (at_us != UINT64_MAX) {
        when.it_value.tv_sec = (time_t)(at_us / 1000000);
        when.it_value.tv_nsec = (long)(at_us % 1000000) * 1000;
    }
    if (timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &when, NULL) != 0) {
        // Nobody would see what runs past the lease.
        (void)fprintf(stderr,
                      "ringhold node: can't set the timer of the lease's watchdog: %s\n",
                      strerror(errno));
        _exit(EX_OSERR);
    }
}

/* ---- watchdog_uv.h */

struct watchdog *watchdog_new(enum rh_on_lease_overrun on_overrun, size_t worker_count)
{
    struct watchdog *w = mem_new(1, sizeof *w);
    // The least of these goes before all threads that are none of them.
    const struct sched_param realtime = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};

    w->on_overrun = on_overrun;
    w->end_us = w->armed_us = UINT64_MAX;
    w->slot = mem_new(worker_count, sizeof *w->slot);
    w->slot_count = worker_count;
    list_init(&w->deferred);
    w->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    (void)pthread_mutex_init(&w->lock, NULL);
    if (w->timer < 0 || pthread_create(&w->thread, NULL, watch, w) != 0) {
        (void)fprintf(stderr, "ringhold node: can't start the watchdog of the lease\n");
        if (w->timer >= 0) {
            (void)close(w->timer);
        }
        mem_free(w->slot);
        mem_free(w);
        return NULL;
    }
    // Where that is allowed (RLIMIT_RTPRIO); elsewhere it wakes like any other.
    (void)pthread_setschedparam(w->thread, SCHED_FIFO, &realtime);
    return w;
}

void watchdog_free(struct watchdog *w)
{
    if (w == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&w->lock);
    w->stopping = true;
    arm(w, clock_boottime_us()); // so that the thread looks
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    (void)pthread_mutex_destroy(&w->lock);
    (void)close(w->timer);
    mem_free(w->slot);
    mem_free(w);
}

void watchdog_set(struct watchdog *w, uint64_t end_us)
{
    if (w->armed_us == end_us) {
        return;
    }
    w->armed_us = end_us;
    (void)pthread_mutex_lock(&w->lock);
    w->end_us = end_us;
    w->told = false;
    arm(w, end_us);
    (void)pthread_mutex_unlock(&w->lock);
}

void watchdog_enter(struct watchdog *w, size_t index, const struct rh_actor *actor, uint64_t now_us)
{
    struct watchdog_slot *slot = &w->slot[index];

    atomic_store_explicit(&slot->since_us, now_us, memory_order_relaxed);
    // Before the worker looks at the clock: whoever begins after the end is seen here.
    atomic_store(&slot->actor, actor);
}

void watchdog_go_on(struct watchdog *w, size_t index, const struct rh_actor *actor, uint64_t now_us)
{
    struct watchdog_slot *slot = &w->slot[index];

    // There is one all the time: whoever looks sees that something runs.
    atomic_store_explicit(&slot->since_us, now_us, memory_order_relaxed);
    atomic_store_explicit(&slot->actor, actor, memory_order_release);
}

void watchdog_leave(struct watchdog *w, size_t index)
{
    atomic_store_explicit(&w->slot[index].actor, NULL, memory_order_release);
}

void watchdog_defer(struct watchdog *w, struct watched *watched, const struct rh_actor *actor,
                    uint64_t now_us)
{
    (void)pthread_mutex_lock(&w->lock);
    watched->actor = actor;
    watched->deferred_us = now_us;
    list_push_back(&w->deferred, &watched->deferred);
    w->deferred_count++;
    (void)pthread_mutex_unlock(&w->lock);
}

void watchdog_finish(struct watchdog *w, struct watched *watched)
{
    (void)pthread_mutex_lock(&w->lock);
    list_remove(&watched->deferred);
    w->deferred_count--;
    (void)pthread_mutex_unlock(&w->lock);
}

struct watched_at watchdog_at(struct watchdog *w, size_t index)
{
    struct watchdog_slot *slot = &w->slot[index];

    return (struct watched_at){atomic_load(&slot->actor), atomic_load(&slot->since_us)};
}

const struct watched *watchdog_deferred(const struct watchdog *w)
{
    struct list_link *oldest = list_front(&w->deferred);

    return oldest == NULL ? NULL : CONTAINER_OF(oldest, struct watched, deferred);
}

size_t watchdog_deferred_count(const struct watchdog *w)
{
    return w->deferred_count;
}

void watchdog_hold(struct watchdog *w)
{
    (void)pthread_mutex_lock(&w->lock);
}

void watchdog_release(struct watchdog *w)
{
    (void)pthread_mutex_unlock(&w->lock);
}
