/* SPDX-License-Identifier: Apache-2.0
 *
 * The workers, from the start to the end.
 */
#include "node/shell_uv.h"

#include "base/clock.h"
#include "base/mem.h"
#include "node/durable/committer_uv.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum {
    SAVE_US = 5 * 1000 * 1000,
    END_US = 10 * 1000 * 1000,
    HERE_CORES = 2, /* with no more, a worker runs when the protocol thread does not */
    HERE_MAX = 32,  /* posts for one worker; to be woken for more is worth it */
};

void dispatcher_ring(void *shell)
{
    const struct shell *s = shell;
    const uint64_t one = 1;

    (void)!write(s->completed_fd, &one, sizeof one);
}

static size_t thread_count(const struct rh_node_options *o)
{
    const uint32_t cores = (uint32_t)uv_available_parallelism();
    const uint32_t wanted = o->threads == 0 ? cores : o->threads;

    if (o->embedded != 0) {
        return 1;
    }
    return wanted < DISPATCHER_WORKERS_MAX ? wanted : DISPATCHER_WORKERS_MAX;
}

/* On the store's thread. The host asks for one page at a time. */
static void on_stored(struct store_task *task)
{
    if (task->verb == STORE_DUE) {
        struct shell *s = task->to;

        atomic_store(&s->dispatcher.due, task);
        dispatcher_ring(s);
    } else {
        runtime_stored(task);
    }
}

/* NULL: the options name none, or it can't be used, and a line on stderr says so. */
static struct committer *open_store(const struct rh_node_options *o)
{
    struct actor_store *store = o->store == NULL ? NULL : actor_store_open(o->store);

    return store == NULL ? NULL : committer_new(store, on_stored);
}

bool dispatcher_open(struct shell *s)
{
    struct dispatcher *d = &s->dispatcher;
    const size_t count = thread_count(&s->options->node);
    struct worker_config config = {
        .embedded = s->options->node.embedded != 0,
        .state_size_max = s->options->limits.staged_size_max,
        .limits = &d->limits,
        .tracing = s->options->tracing,
        .broadcasting = &d->broadcasting,
        .numbering = &d->numbering,
        .alarm_counts = &d->alarm_counts,
        .figures = &d->figures,
        .on_completed = dispatcher_ring,
        .on_call = dispatcher_on_call,
        .context = s,
    };

    d->committer = open_store(&s->options->node);
    if (s->options->node.store != NULL && d->committer == NULL) {
        return false;
    }
    config.on_store = d->committer == NULL ? NULL : committer_put;
    config.store = d->committer;
    d->here_max = uv_available_parallelism() > HERE_CORES ? HERE_MAX : SIZE_MAX;
    s->lister = lister_new(&s->kinds, dispatcher_ring, s);
    s->watchdog = watchdog_new((enum rh_on_lease_overrun)s->options->node.on_lease_overrun, count);
    config.watchdog = s->watchdog;
    while (s->watchdog != NULL && d->worker_count < count) {
        config.index = (uint32_t)d->worker_count;
        config.crash_record = crash_record_slot(&s->crash_record, config.index);
        struct worker *w = worker_new(&config);
        if (w == NULL) {
            (void)fprintf(stderr, "ringhold node: can't start its worker threads\n");
            return false;
        }
        d->worker[d->worker_count++] = w;
    }
    return s->watchdog != NULL;
}

static void name_stuck(struct shell *s, size_t worker)
{
    watchdog_hold(s->watchdog);
    const struct watched_at at = watchdog_at(s->watchdog, worker);
    if (at.actor != NULL) {
        shell_log_actor(LOG_ERROR,
                        "stuck",
                        activation_name(at.actor),
                        "the handler does not return: its thread is abandoned");
    }
    watchdog_release(s->watchdog);
}

void dispatcher_stop(struct shell *s, bool save)
{
    const uint64_t now_us = clock_boottime_us();

    dispatcher_end_departed(s);
    for (size_t i = 0; i < s->dispatcher.worker_count; i++) {
        worker_stop(s->dispatcher.worker[i], save ? now_us + SAVE_US : 0);
    }
}

bool dispatcher_close(struct shell *s)
{
    const uint64_t until_us = clock_boottime_us() + END_US;
    struct worker_saved sum = {0};
    bool all = lister_close(s->lister, until_us);

    for (size_t i = 0; i < s->dispatcher.worker_count; i++) {
        if (!worker_join(s->dispatcher.worker[i], until_us)) {
            name_stuck(s, i);
            all = false;
        } else {
            const struct worker_saved saved = worker_saved(s->dispatcher.worker[i]);

            sum.flushed += saved.flushed;
            sum.left += saved.left;
        }
    }
    if (sum.flushed + sum.left > 0) {
        log_info("node", "flushed", "actors=%zu unsaved=%zu", sum.flushed, sum.left);
    }
    for (size_t i = 0; i < s->dispatcher.worker_count && all; i++) {
        mem_free(s->dispatcher.departed[i].item);
        worker_free(s->dispatcher.worker[i]);
    }
    if (all) { // else a worker that is stuck may still give it something
        committer_free(s->dispatcher.committer);
        store_task_free(atomic_load(&s->dispatcher.due));
    }
    return all;
}
