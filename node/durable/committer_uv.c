/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes what waits for the store, as one transaction, and gives it back done.
 */
#include "node/durable/committer_uv.h"

#include "base/clock.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdbool.h>

struct committer {
    struct actor_store *store; /* owned; the thread's */
    void (*on_done)(struct store_task *task);
    pthread_t thread;
    struct store_task *batch[COMMITTER_TASKS_MAX]; /* the thread's */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t bell;
    struct list waiting; /* struct store_task */
    struct committer_stats stats;
    bool ending;
};

/* Under the lock: what goes into one transaction, in order. */
static size_t take(struct committer *c)
{
    struct list_link *link;
    size_t count = 0;
    size_t size = 0;

    while (count < COMMITTER_TASKS_MAX && size < COMMITTER_SIZE_MAX &&
           (link = list_pop_front(&c->waiting)) != NULL) {
        struct store_task *t = CONTAINER_OF(link, struct store_task, link);

        c->batch[count++] = t;
        size += t->bytes.size;
    }
    return count;
}

static uint64_t *counter_of_verb(struct committer_stats *s, enum store_verb verb)
{
    switch (verb) {
    case STORE_CLAIM:
        return &s->claims;
    case STORE_COMMIT:
        return &s->commits;
    case STORE_DUE:
        break;
    }
    return &s->scans;
}

static uint64_t *counter_of(struct committer_stats *s, const struct store_task *t)
{
    switch ((enum store_result)t->result) {
    case STORE_DONE:
        return counter_of_verb(s, (enum store_verb)t->verb);
    case STORE_FENCED:
        return &s->fenced;
    case STORE_UNAVAILABLE:
        return &s->unavailable;
    case STORE_UNKNOWN:
        break;
    }
    return &s->unknown;
}

static void perform(struct committer *c, size_t count)
{
    const uint64_t begun_us = clock_boottime_us();

    c->store->perform(c->store, c->batch, count);
    const uint64_t took_us = clock_boottime_us() - begun_us;
    (void)pthread_mutex_lock(&c->lock);
    c->stats.transactions++;
    metrics_time(&c->stats.times, took_us);
    metrics_count(&c->stats.sizes, count);
    c->stats.waiting -= count;
    c->stats.store = c->store->counts;
    for (size_t i = 0; i < count; i++) {
        (*counter_of(&c->stats, c->batch[i]))++;
    }
    (void)pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < count; i++) {
        c->on_done(c->batch[i]);
    }
}

static void *run(void *argument)
{
    struct committer *c = argument;
    size_t count = 0;

    do {
        (void)pthread_mutex_lock(&c->lock);
        while (list_empty(&c->waiting) && !c->ending) {
            (void)pthread_cond_wait(&c->bell, &c->lock);
        }
        count = take(c);
        (void)pthread_mutex_unlock(&c->lock);
        if (count > 0) {
            perform(c, count);
        }
    } while (count > 0);
    return NULL;
}

static void release(struct committer *c)
{
    c->store->close(c->store);
    (void)pthread_cond_destroy(&c->bell);
    (void)pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

struct committer *committer_new(struct actor_store *store, void (*on_done)(struct store_task *task))
{
    struct committer *c = mem_new(1, sizeof *c);

    c->store = store;
    c->on_done = on_done;
    list_init(&c->waiting);
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_cond_init(&c->bell, NULL);
    if (pthread_create(&c->thread, NULL, run, c) != 0) {
        release(c);
        return NULL;
    }
    return c;
}

void committer_put(void *committer, struct store_task *task)
{
    struct committer *c = committer;

    (void)pthread_mutex_lock(&c->lock);
    c->stats.waiting++;
    list_push_back(&c->waiting, &task->link);
    (void)pthread_mutex_unlock(&c->lock);
    (void)pthread_cond_signal(&c->bell); // Without the lock, which who wakes wants first.
}

void committer_stats(struct committer *c, struct committer_stats *out)
{
    (void)pthread_mutex_lock(&c->lock);
    *out = c->stats;
    (void)pthread_mutex_unlock(&c->lock);
}

void committer_free(struct committer *c)
{
    if (c == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&c->lock);
    c->ending = true;
    (void)pthread_cond_signal(&c->bell);
    (void)pthread_mutex_unlock(&c->lock);
    (void)pthread_join(c->thread, NULL);
    release(c);
}
