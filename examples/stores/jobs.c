/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that each keep a connection to the database and take jobs from one
 * queue.
 */
#include "jobs.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BACKOFF_FIRST_MS = 100, BACKOFF_LAST_MS = 2000 };

struct jobs {
    const struct jobs_ops *ops;
    void *context;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t changed;
    struct job *first;
    struct job *last;
    size_t waiting;
    bool stopping;
    int64_t away_since_ms; /* 0 = it is there, as far as is known */
    int64_t retry_at_ms;
    int64_t backoff_ms;
    unsigned threads;
    pthread_t thread[JOBS_THREADS_MAX];
};

int64_t jobs_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Under the lock, until something changes or then. */
static void wait_until(struct jobs *j, int64_t then_ms)
{
    const struct timespec then = {.tv_sec = then_ms / 1000, .tv_nsec = then_ms % 1000 * 1000000};

    (void)pthread_cond_timedwait(&j->changed, &j->lock, &then);
}

/* ---- connections */

/* One line when the database goes, one when it is back; not one for each try. */
static void note_opened(struct jobs *j, const char *why)
{
    const int64_t now_ms = jobs_now_ms();

    (void)pthread_mutex_lock(&j->lock);
    if (why == NULL) {
        if (j->away_since_ms != 0) {
            (void)fprintf(stderr,
                          "%s: the server is back after %" PRId64 " ms\n",
                          j->ops->name,
                          now_ms - j->away_since_ms);
        }
        j->away_since_ms = j->backoff_ms = j->retry_at_ms = 0;
        (void)pthread_cond_broadcast(&j->changed);
    } else {
        if (j->away_since_ms == 0) {
            (void)fprintf(stderr, "%s: the server is away, trying again: %s\n", j->ops->name, why);
            j->away_since_ms = now_ms;
        }
        // Threads that fail together are one failure.
        if (now_ms >= j->retry_at_ms) {
            const int64_t doubled = 2 * j->backoff_ms;

            j->backoff_ms = doubled < BACKOFF_FIRST_MS  ? BACKOFF_FIRST_MS
                            : doubled > BACKOFF_LAST_MS ? BACKOFF_LAST_MS
                                                        : doubled;
            j->retry_at_ms = now_ms + j->backoff_ms;
        }
    }
    (void)pthread_mutex_unlock(&j->lock);
}

/* Wait for the next try; false when none is left. Who stops does not wait for a server that is
 * away.
 */
static bool may_try(struct jobs *j, int64_t until_ms)
{
    (void)pthread_mutex_lock(&j->lock);
    while (!j->stopping && jobs_now_ms() < j->retry_at_ms && jobs_now_ms() < until_ms) {
        wait_until(j, j->retry_at_ms < until_ms ? j->retry_at_ms : until_ms);
    }
    const bool hopeless = j->stopping && j->away_since_ms != 0;
    (void)pthread_mutex_unlock(&j->lock);
    return !hopeless && jobs_now_ms() < until_ms;
}

static void *open_in_time(struct jobs *j, int64_t until_ms)
{
    while (may_try(j, until_ms)) {
        char why[JOBS_WHY_SIZE] = "";
        void *connection = j->ops->open(j->context, until_ms, why);

        note_opened(j, connection == NULL ? why : NULL);
        if (connection != NULL) {
            return connection;
        }
    }
    return NULL;
}

/* ---- the threads */

static struct job *take(struct jobs *j)
{
    (void)pthread_mutex_lock(&j->lock);
    while (j->first == NULL && !j->stopping) {
        (void)pthread_cond_wait(&j->changed, &j->lock);
    }
    struct job *job = j->first;
    if (job != NULL) {
        j->first = job->next;
        j->waiting--;
    }
    (void)pthread_mutex_unlock(&j->lock);
    return job;
}

static void *run(void *argument)
{
    struct jobs *j = argument;
    void *connection = NULL;
    struct job *job;

    while ((job = take(j)) != NULL) {
        // One that waited too long is told so even if the database is there: it is too slow.
        const bool late = jobs_now_ms() >= job->until_ms;

        if (connection == NULL) {
            connection = open_in_time(j, job->until_ms);
        }
        if (!j->ops->work(j->context, late ? NULL : connection, job) && connection != NULL) {
            j->ops->close(connection);
            connection = NULL;
        }
    }
    if (connection != NULL) {
        j->ops->close(connection);
    }
    return NULL;
}

static void init(struct jobs *j)
{
    pthread_condattr_t monotonic;

    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&j->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    (void)pthread_mutex_init(&j->lock, NULL);
}

struct jobs *jobs_start(const struct jobs_ops *what, void *context, unsigned threads)
{
    struct jobs *j = calloc(1, sizeof *j);

    if (j == NULL) {
        return NULL;
    }
    j->ops = what;
    j->context = context;
    init(j);
    while (j->threads < threads && j->threads < JOBS_THREADS_MAX) {
        if (pthread_create(&j->thread[j->threads], NULL, run, j) != 0) {
            jobs_stop(j);
            return NULL;
        }
        j->threads++;
    }
    return j;
}

bool jobs_put(struct jobs *j, struct job *job)
{
    (void)pthread_mutex_lock(&j->lock);
    const bool fits = j->waiting < JOBS_WAITING_MAX && !j->stopping;
    if (fits) {
        job->next = NULL;
        job->until_ms = jobs_now_ms() + JOB_MS;
        if (j->first == NULL) {
            j->first = job;
        } else {
            j->last->next = job;
        }
        j->last = job;
        j->waiting++;
        (void)pthread_cond_broadcast(&j->changed);
    }
    (void)pthread_mutex_unlock(&j->lock);
    return fits;
}

void jobs_stop(struct jobs *j)
{
    (void)pthread_mutex_lock(&j->lock);
    j->stopping = true;
    (void)pthread_cond_broadcast(&j->changed);
    (void)pthread_mutex_unlock(&j->lock);
    for (unsigned i = 0; i < j->threads; i++) {
        (void)pthread_join(j->thread[i], NULL);
    }
    (void)pthread_cond_destroy(&j->changed);
    (void)pthread_mutex_destroy(&j->lock);
    free(j);
}
