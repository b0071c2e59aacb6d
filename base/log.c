/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats log lines, writes them out, and keeps the last ones for a failed
 * ASSERT.
 */
#include "base/log.h"

#include "base/plain.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LINE_MAX_SIZE = 1024, RECENT_COUNT = 256 };

static const char *const level_names[] = {
    [LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"};

static struct {
    pthread_mutex_t lock;
    atomic_int level; /* enum log_level */
    log_sink sink;
    void *context;
    char recent[RECENT_COUNT][LINE_MAX_SIZE];
    size_t written; /* lines ever; the next goes to written % RECENT_COUNT */
} logger = {.lock = PTHREAD_MUTEX_INITIALIZER, .level = LOG_INFO};

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&logger.level, (int)level, memory_order_relaxed);
}

void log_set_sink(log_sink sink, void *context)
{
    (void)pthread_mutex_lock(&logger.lock);
    logger.sink = sink;
    logger.context = context;
    (void)pthread_mutex_unlock(&logger.lock);
}

bool log_level_parse(const char *text, enum log_level *level)
{
    for (size_t i = 0; i < sizeof level_names / sizeof level_names[0]; i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

bool log_enabled(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&logger.level, memory_order_relaxed);
}

static size_t put_time(char *line, size_t size)
{
    struct timespec now = {0};
    struct tm utc = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(line, size, "%Y-%m-%dT%H:%M:%S", &utc);
    used += (size_t)snprintf(line + used, size - used, ".%03ldZ ", now.tv_nsec / 1000000);
    return used;
}

void log_write(enum log_level level, const char *module, const char *event, const char *format, ...)
{
    char line[LINE_MAX_SIZE];
    va_list args;

    if (!log_enabled(level)) {
        return;
    }
    size_t used = put_time(line, sizeof line);
    used += (size_t)snprintf(
        line + used, sizeof line - used, "%s %s %s ", level_names[level], module, event);
    if (used < sizeof line) {
        va_start(args, format);
        (void)vsnprintf(line + used, sizeof line - used, format, args);
        va_end(args);
    }
    plain_make(line);
    (void)pthread_mutex_lock(&logger.lock);
    memcpy(logger.recent[logger.written++ % RECENT_COUNT], line, sizeof line);
    if (logger.sink != NULL) {
        logger.sink(logger.context, level, line);
    } else {
        (void)fprintf(stderr, "%s\n", line);
    }
    (void)pthread_mutex_unlock(&logger.lock);
}

void log_dump_recent(FILE *out)
{
    const size_t first = logger.written > RECENT_COUNT ? logger.written - RECENT_COUNT : 0;

    for (size_t i = first; i < logger.written; i++) {
        (void)fprintf(out, "  %s\n", logger.recent[i % RECENT_COUNT]);
    }
}
