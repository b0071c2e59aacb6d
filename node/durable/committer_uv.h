/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread of a node's store. While it does one transaction, what comes waits and goes in the
 * next: so a store that is slow has larger transactions, and not more of them (group commit).
 *
 *     workers --committer_put()--> waits --one transaction--> store --on_done()--> each its worker
 *
 * Tasks are done in the order in which they came. That is what makes a claim see the commits of the
 * same actor's life before, which nobody waits for any more.
 */
#ifndef NODE_DURABLE_COMMITTER_UV_H
#define NODE_DURABLE_COMMITTER_UV_H

#include "base/metrics.h"
#include "storage/actors/store.h"

enum {
    COMMITTER_TASKS_MAX = STORE_TASKS_MAX, /* of one transaction */
    COMMITTER_SIZE_MAX = 16 * 1024 * 1024, /* bytes of its changes; one task alone may have more */
};

/* For metrics. */
struct committer_stats {
    uint64_t waiting;           /* tasks that are not done, now */
    uint64_t transactions;      /* of the store */
    uint64_t commits;           /* of actors that were done … */
    uint64_t claims;            /* … and claims, … */
    uint64_t scans;             /* … and pages of alarms that are due */
    uint64_t fenced;            /* tasks that another owner's fence refused, … */
    uint64_t unavailable;       /* … that the store could not do, … */
    uint64_t unknown;           /* … and commits of which nobody knows */
    struct metrics_times times; /* that transactions took */
    struct metrics_times sizes; /* tasks of a transaction, by metrics_count() */
    struct store_counts store;
};

struct committer;

/* Start the thread. Takes the store, and closes it in the end. `on_done` takes each task when it is
 * done, on the thread. NULL: no thread is to be had; the store is closed. */
struct committer *committer_new(struct actor_store *store,
                                void (*on_done)(struct store_task *task));
/* Have it do a task, which it takes. `committer`: a struct committer. From any thread. */
void committer_put(void *committer, struct store_task *task);
/* From any thread. */
void committer_stats(struct committer *c, struct committer_stats *out);
/* Do what waits, and end. NULL is fine. */
void committer_free(struct committer *c);

#endif
