/* SPDX-License-Identifier: Apache-2.0 */
#include "node/watchdog_uv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "wire/record.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#ifndef CLOCK_BOOTTIME
#define CLOCK_BOOTTIME 7
#endif

struct watchdog {
    pthread_t thread;
    int timer;
    enum rh_on_lease_overrun on_overrun;
    atomic_size_t tasks;
    uint64_t armed_us;    /* the loop's copy of `end_us` */
    pthread_mutex_t lock; /* all below */
    uint64_t end_us;      /* UINT64_MAX = none */
    uint64_t entered_us;  /* the loop is in an actor's code since then; 0 = it is not */
    uint64_t overruns;
    bool told; /* about this end */
    bool stopping;
    uint16_t kind; /* whose code, while entered */
    size_t id_size;
    uint8_t id[RECORD_ID_MAX];
};

/* ---- the message */

/* What people can read of an id, as a C string would be written. */
static void print_id(const struct watchdog *w, char *out, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; i < w->id_size && at + 5 < size; i++) {
        const uint8_t c = w->id[i];
        const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';

        at += (size_t)snprintf(out + at, size - at, plain ? "%c" : "\\x%02x", c);
    }
}

/* One write: the loop may be stuck with any lock in its hands. */
static void complain(const struct watchdog *w, uint64_t now_us)
{
    char line[2048];
    char id[4 * RECORD_ID_MAX + 1] = "";
    const char *then =
        w->on_overrun == RH_OVERRUN_ABORT ? "the process ends now" : "nothing of it leaves";
    int size = 0;

    if (w->entered_us != 0) {
        print_id(w, id, sizeof id);
        size = snprintf(line,
                        sizeof line,
                        "ringhold node: the lease is over and actor \"%s\" of kind %u still runs, "
                        "since %" PRIu64 " ms: %s (--on-lease-overrun)\n",
                        id,
                        w->kind,
                        (now_us - w->entered_us) / 1000,
                        then);
    } else {
        size = snprintf(line,
                        sizeof line,
                        "ringhold node: the lease is over and %zu deferred messages still run: "
                        "%s (--on-lease-overrun)\n",
                        atomic_load(&w->tasks),
                        then);
    }
    (void)!write(STDERR_FILENO, line, (size_t)size);
}

/* ---- the thread */

/* Under the lock. */
static void look(struct watchdog *w)
{
    const uint64_t now_us = clock_boottime_us();

    if (w->stopping || w->told || now_us < w->end_us ||
        (atomic_load(&w->tasks) == 0 && w->entered_us == 0)) {
        return;
    }
    w->told = true;
    w->overruns++;
    complain(w, now_us);
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
        // All zero would turn it off.
        when.it_value.tv_nsec = (long)(at_us % 1000000) * 1000 + (at_us == 0 ? 1 : 0);
    }
    ASSERT(timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &when, NULL) == 0);
}

/* ---- watchdog_uv.h */

struct watchdog *watchdog_new(enum rh_on_lease_overrun on_overrun)
{
    struct watchdog *w = mem_new(1, sizeof *w);
    const struct sched_param top = {.sched_priority = sched_get_priority_max(SCHED_FIFO)};

    w->on_overrun = on_overrun;
    w->end_us = w->armed_us = UINT64_MAX;
    w->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    (void)pthread_mutex_init(&w->lock, NULL);
    if (w->timer < 0 || pthread_create(&w->thread, NULL, watch, w) != 0) {
        (void)fprintf(stderr, "ringhold node: can't start the watchdog of its lease\n");
        if (w->timer >= 0) {
            (void)close(w->timer);
        }
        mem_free(w);
        return NULL;
    }
    // Before all other threads where that is allowed; elsewhere it wakes like any other.
    (void)pthread_setschedparam(w->thread, SCHED_FIFO, &top);
    return w;
}

void watchdog_free(struct watchdog *w)
{
    if (w == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&w->lock);
    w->stopping = true;
    arm(w, 0);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    (void)pthread_mutex_destroy(&w->lock);
    (void)close(w->timer);
    mem_free(w);
}

void watchdog_set(struct watchdog *w, uint64_t end_us, size_t tasks)
{
    atomic_store(&w->tasks, tasks);
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

void watchdog_enter(struct watchdog *w, uint16_t kind, struct bytes id)
{
    const uint64_t now_us = clock_boottime_us();

    (void)pthread_mutex_lock(&w->lock);
    w->entered_us = now_us;
    w->kind = kind;
    w->id_size = id.size < sizeof w->id ? id.size : sizeof w->id;
    memcpy(w->id, id.data, w->id_size);
    (void)pthread_mutex_unlock(&w->lock);
}

void watchdog_leave(struct watchdog *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->entered_us = 0;
    (void)pthread_mutex_unlock(&w->lock);
}

uint64_t watchdog_overruns(struct watchdog *w)
{
    (void)pthread_mutex_lock(&w->lock);
    const uint64_t overruns = w->overruns;
    (void)pthread_mutex_unlock(&w->lock);
    return overruns;
}
