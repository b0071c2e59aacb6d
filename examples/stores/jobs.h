/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs: a few threads that talk to a database, so that no actor waits for
 * another one's. Each thread keeps a connection of its own. While the database
 * is away they try again with a back-off that doubles from 100 ms to 2 s, and
 * each job still ends within its time.
 *
 * It knows neither actors nor databases: copy it as it is.
 */
#ifndef EXAMPLES_STORES_JOBS_H
#define EXAMPLES_STORES_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JOB_MS = 3000, JOBS_WAITING_MAX = 10000, JOBS_THREADS_MAX = 16, JOBS_WHY_SIZE = 512 };

/* The head of a job. The rest is the caller's, who frees it in `work`. */
struct job {
    struct job *next;
    int64_t until_ms; /* jobs_put() sets it: a connection that comes later is too late */
};

/* Callbacks that the pool's threads run. They may block, for a bounded time. */
struct jobs_ops {
    const char *name; /* for log lines */
    /* A connection, by `until_ms`; NULL: there is none, `why` says so in one line. */
    void *(*open)(void *context, int64_t until_ms, char why[JOBS_WHY_SIZE]);
    void (*close)(void *connection);
    /* Do it; exactly one call a job. `connection` NULL: the database was away all the job's time,
     * and nothing was sent. False: the connection is broken. */
    bool (*work)(void *context, void *connection, struct job *job);
};

struct jobs;

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t jobs_now_ms(void);
/* Start `threads` of them; `what` and `context` are borrowed. NULL: the system has no thread
 * left. */
struct jobs *jobs_start(const struct jobs_ops *what, void *context, unsigned threads);
/* From any thread. False: too many wait already, and this one is still yours. */
bool jobs_put(struct jobs *jobs, struct job *job);
/* Do what waits, without a connection if there is none now; then end. */
void jobs_stop(struct jobs *jobs);

#endif
