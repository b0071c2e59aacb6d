/* SPDX-License-Identifier: Apache-2.0
 *
 * A queue of spans, and the thread that exports them.
 */
#include "daemon/traces.h"

#include "base/clock.h"
#include "base/exemplar.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/collector_curl.h"
#include "daemon/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
    QUEUE_MAX = 4096,
    BATCH_MAX = 512,
    GATHER_MS = 200, /* so long a batch may wait for more */
    POST_MS = 5000,
    LAST_POST_MS = 2000,
    RETRY_FIRST_MS = 1000,
    TRIES = 4,
    CLOSE_US = 1000, /* clocks that are read within it are read at once */
    CLOSE_TRIES = 16,
    FILE_MODE = 0640,
};

struct traces {
    struct tracing tracing;
    struct otlp_resource who;
    struct trace_collector *collector; /* owned; NULL = a file */
    int fd;                            /* of the file */
    const char *where;                 /* for the log */
    pthread_t thread;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t rung;
    bool ending;
    struct trace_span *queue; /* owned; QUEUE_MAX */
    size_t first;
    size_t count;
    uint64_t exported;
    uint64_t dropped[SPAN_DROPS];
    struct exemplars *noted; /* owned; of requests, and of actors' calls */
};

/* How far the wall clock is ahead of the one that spans have. A thread that is preempted between
 * the two would shift all spans of a document, so it reads both clocks again. */
static uint64_t wall_ahead_us(void)
{
    uint64_t closest_us = UINT64_MAX;
    uint64_t ahead_us = 0;

    for (unsigned i = 0; i < CLOSE_TRIES && closest_us >= CLOSE_US; i++) {
        const uint64_t before_us = clock_boottime_us();
        const uint64_t wall_us = clock_wall_us();
        const uint64_t took_us = clock_boottime_us() - before_us;

        if (took_us < closest_us) {
            closest_us = took_us;
            ahead_us = wall_us - before_us;
        }
    }
    return ahead_us;
}

/* ---- what comes, from any thread */

static void put(void *context, const struct trace_span *span)
{
    struct traces *t = context;

    (void)pthread_mutex_lock(&t->lock);
    if (t->count == QUEUE_MAX) {
        t->dropped[SPAN_DROP_FULL]++;
    } else {
        t->queue[(t->first + t->count++) % QUEUE_MAX] = *span;
        exemplars_note(&t->noted[span->what == SPAN_CALL || span->what == SPAN_SEND], span);
        if (t->count == 1 || t->count == BATCH_MAX) {
            (void)pthread_cond_signal(&t->rung);
        }
    }
    (void)pthread_mutex_unlock(&t->lock);
}

static void count_drops(struct traces *t, enum span_drop why, size_t count)
{
    (void)pthread_mutex_lock(&t->lock);
    t->dropped[why] += count;
    (void)pthread_mutex_unlock(&t->lock);
}

static void drop(void *context, enum span_drop why)
{
    count_drops(context, why, 1);
}

/* ---- what goes */

/* Wait so long, or until it is to end. Under the lock. */
static void wait_ms(struct traces *t, unsigned ms, size_t enough)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (!t->ending && t->count < enough &&
           pthread_cond_timedwait(&t->rung, &t->lock, &until) != ETIMEDOUT) {
    }
}

static void count_sent(struct traces *t, size_t count)
{
    (void)pthread_mutex_lock(&t->lock);
    t->exported += count;
    (void)pthread_mutex_unlock(&t->lock);
}

static bool is_ending(struct traces *t)
{
    (void)pthread_mutex_lock(&t->lock);
    const bool ending = t->ending;
    (void)pthread_mutex_unlock(&t->lock);
    return ending;
}

static bool write_all(int fd, struct bytes all)
{
    size_t at = 0;

    while (at < all.size) {
        const ssize_t wrote = write(fd, all.data + at, all.size - at);

        if (wrote < 0 && errno != EINTR) {
            return false;
        }
        at += wrote < 0 ? 0 : (size_t)wrote;
    }
    return true;
}

static void append(struct traces *t, struct buffer *document, size_t count)
{
    buffer_put(document, "\n", 1);
    if (write_all(t->fd, buffer_bytes(document))) {
        count_sent(t, count);
    } else {
        count_drops(t, SPAN_DROP_UNSENT, count);
        log_warn("traces", "not_written", "to=%s spans=%zu", t->where, count);
    }
}

static void post(struct traces *t, struct bytes document, size_t count)
{
    char why[COLLECTOR_WHY_SIZE];
    enum collector_result result = COLLECTOR_LATER;

    for (unsigned i = 0; i < TRIES && result == COLLECTOR_LATER; i++) {
        if (i > 0) {
            (void)pthread_mutex_lock(&t->lock);
            wait_ms(t, (unsigned)RETRY_FIRST_MS << (i - 1), SIZE_MAX);
            (void)pthread_mutex_unlock(&t->lock);
        }
        const bool last = is_ending(t);

        result = trace_collector_post(t->collector, document, last ? LAST_POST_MS : POST_MS, why);
        if (last) {
            break;
        }
    }
    if (result == COLLECTOR_TOOK) {
        count_sent(t, count);
        return;
    }
    const bool later = result == COLLECTOR_LATER;

    (void)pthread_mutex_lock(&t->lock);
    if (later && t->ending) { // each document of the rest would keep the process for as long
        count += t->count;
        t->count = 0;
    }
    t->dropped[later ? SPAN_DROP_UNSENT : SPAN_DROP_REJECTED] += count;
    (void)pthread_mutex_unlock(&t->lock);
    log_warn("traces", "not_taken", "to=%s spans=%zu why=\"%s\"", t->where, count, why);
}

static size_t take(struct traces *t, struct trace_span *batch)
{
    size_t count = 0;

    while (count < BATCH_MAX && t->count > 0) {
        batch[count++] = t->queue[t->first];
        t->first = (t->first + 1) % QUEUE_MAX;
        t->count--;
    }
    return count;
}

static void *run(void *context)
{
    struct traces *t = context;
    struct trace_span *batch = mem_new(BATCH_MAX, sizeof *batch);
    struct buffer document = {0};
    size_t count = 0;

    do {
        (void)pthread_mutex_lock(&t->lock);
        while (t->count == 0 && !t->ending) {
            (void)pthread_cond_wait(&t->rung, &t->lock);
        }
        wait_ms(t, GATHER_MS, BATCH_MAX);
        count = take(t, batch);
        (void)pthread_mutex_unlock(&t->lock);
        if (count > 0) {
            buffer_clear(&document);
            otlp_put(&document, &t->who, batch, count, wall_ahead_us());
            if (t->collector != NULL) {
                post(t, buffer_bytes(&document), count);
            } else {
                append(t, &document, count);
            }
        }
    } while (count > 0 || !is_ending(t));
    buffer_fini(&document);
    mem_free(batch);
    return NULL;
}

/* For /metrics. */
static void figures(void *context, struct metrics *m)
{
    static const struct metric exported = {
        "ringhold_trace_spans_total", "Spans that the collector took.", METRIC_COUNTER};
    static const struct metric dropped = {"ringhold_trace_spans_dropped_total",
                                          "Spans, or traces before they began, that were dropped.",
                                          METRIC_COUNTER};
    static const char *const words[SPAN_DROPS] = {
        [SPAN_DROP_RATE] = "rate",
        [SPAN_DROP_OPEN] = "open",
        [SPAN_DROP_FULL] = "full",
        [SPAN_DROP_UNSENT] = "unsent",
        [SPAN_DROP_REJECTED] = "rejected",
    };
    struct traces *t = context;
    uint64_t counts[SPAN_DROPS + 1];

    (void)pthread_mutex_lock(&t->lock);
    memcpy(counts, t->dropped, sizeof t->dropped);
    counts[SPAN_DROPS] = t->exported;
    (void)pthread_mutex_unlock(&t->lock);
    metrics_put(m, &exported, counts[SPAN_DROPS]);
    for (size_t i = 0; i < SPAN_DROPS; i++) {
        metrics_put_labelled(m, &dropped, "reason", words[i], counts[i]);
    }
}

static void exemplars(void *context, bool of_calls, struct exemplars *out)
{
    struct traces *t = context;

    (void)pthread_mutex_lock(&t->lock);
    *out = t->noted[of_calls];
    (void)pthread_mutex_unlock(&t->lock);
    out->wall_us = wall_ahead_us();
}

/* ---- its life */

struct option traces_option(char *where)
{
    return option_text("traces",
                       "URL|file:PATH",
                       where,
                       TRACES_WHERE_SIZE,
                       "send the spans of traced requests to this OTLP collector, such as "
                       "http://127.0.0.1:4318, or append them to a file (none)");
}

static bool open_target(struct traces *t, const char *where)
{
    char why[COLLECTOR_WHY_SIZE] = "";

    if (strncmp(where, "file:", 5) == 0) {
        t->fd = open(where + 5, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, FILE_MODE);
        if (t->fd < 0) {
            fault_print(t->who.service + sizeof "ringhold-" - 1,
                        "--traces: can't append to '%s': %s",
                        where + 5,
                        strerror(errno));
        }
        return t->fd >= 0;
    }
    t->collector = trace_collector_new(where, why);
    if (t->collector == NULL) {
        fault_print(
            t->who.service + sizeof "ringhold-" - 1, "--traces: can't use '%s': %s", where, why);
    }
    return t->collector != NULL;
}

static void free_all(struct traces *t)
{
    trace_collector_free(t->collector);
    if (t->fd >= 0) {
        (void)close(t->fd);
    }
    mem_free(t->queue);
    mem_free(t->noted);
    mem_free(t);
}

bool traces_open(const char *where, const struct otlp_resource *who, struct traces **out)
{
    pthread_condattr_t monotonic;

    *out = NULL;
    if (where[0] == '\0') {
        return true;
    }
    struct traces *t = mem_new(1, sizeof *t);

    t->tracing = (struct tracing){
        .put = put, .drop = drop, .figures = figures, .exemplars = exemplars, .context = t};
    t->who = *who;
    t->where = where;
    t->fd = -1;
    t->queue = mem_new(QUEUE_MAX, sizeof *t->queue);
    t->noted = mem_new(2, sizeof *t->noted);
    if (!open_target(t, where)) {
        free_all(t);
        return false;
    }
    (void)pthread_mutex_init(&t->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&t->rung, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    if (pthread_create(&t->thread, NULL, run, t) != 0) {
        fault_print(who->service + sizeof "ringhold-" - 1, "--traces: no thread is to be had");
        free_all(t);
        return false;
    }
    *out = t;
    return true;
}

void traces_close(struct traces *t)
{
    if (t == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&t->lock);
    t->ending = true;
    (void)pthread_cond_signal(&t->rung);
    (void)pthread_mutex_unlock(&t->lock);
    (void)pthread_join(t->thread, NULL);
    (void)pthread_cond_destroy(&t->rung);
    (void)pthread_mutex_destroy(&t->lock);
    free_all(t);
}

const struct tracing *traces_tracing(struct traces *t)
{
    return t == NULL ? NULL : &t->tracing;
}
