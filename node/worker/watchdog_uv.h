/* SPDX-License-Identifier: Apache-2.0
 *
 * The watchdog: a thread of its own that sees to it that no task runs past the
 * hard end of the lease (specification §4.1, hole 30), even when the threads that
 * could are blocked by those very tasks.
 *
 * It sleeps on a timer of CLOCK_BOOTTIME, which also counts while the machine
 * is suspended or the process stopped: then this is the first thing it does
 * when it wakes.
 *
 * What counts is what has begun: code of an actor that a worker is in, and what
 * is deferred. A task that only waits behind a slow one begins no more, since
 * its worker looks at the clock before.
 */
#ifndef NODE_WORKER_WATCHDOG_UV_H
#define NODE_WORKER_WATCHDOG_UV_H

#include "base/list.h"
#include "node/runtime/runtime.h"

#include <ringhold.h>
#include <stddef.h>

struct watchdog;

/* An actor of which something is deferred. In the caller's item. */
struct watched {
    const struct rh_actor *actor; /* its activation */
    uint64_t deferred_us;         /* since then; the watchdog's, like the next */
    struct list_link deferred;    /* in the watchdog's list */
};

/* Where a worker is. */
struct watched_at {
    const struct rh_actor *actor; /* its activation; NULL = in none's code */
    uint64_t since_us;
};

/* NULL = no thread or timer to be had; one line about it was printed. */
struct watchdog *watchdog_new(enum rh_on_lease_overrun on_overrun, size_t worker_count);
/* Takes NULL. */
void watchdog_free(struct watchdog *w);
/* Let no task run from `end_us` on (UINT64_MAX = any time). Cheap when nothing changed. On the
 * protocol thread. */
void watchdog_set(struct watchdog *w, uint64_t end_us);

/* Note that worker `index` enters the code of an actor, goes on to the next one's without having
 * left, and leaves it; on its thread, without a lock. */
void watchdog_enter(struct watchdog *w, size_t index, const struct rh_actor *actor,
                    uint64_t now_us);
void watchdog_go_on(struct watchdog *w, size_t index, const struct rh_actor *actor,
                    uint64_t now_us);
void watchdog_leave(struct watchdog *w, size_t index);
/* Note that a callback of this actor, which had none, finishes later; and that it has finished. */
void watchdog_defer(struct watchdog *w, struct watched *watched, const struct rh_actor *actor,
                    uint64_t now_us);
void watchdog_finish(struct watchdog *w, struct watched *watched);

/* Return where the worker is now; any thread. Between watchdog_hold() and watchdog_release() what
 * it names is not freed. */
struct watched_at watchdog_at(struct watchdog *w, size_t index);
/* The actor whose callback is deferred longest, or NULL. */
const struct watched *watchdog_deferred(const struct watchdog *w);
size_t watchdog_deferred_count(const struct watchdog *w);
/* Hold the watchdog, so that what is watched can be freed after this call: nobody looks at it any
 * more. */
void watchdog_hold(struct watchdog *w);
void watchdog_release(struct watchdog *w);

#endif
