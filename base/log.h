/* SPDX-License-Identifier: Apache-2.0
 *
 * Log lines: `time level module event key=value …`, one per fact, stable keys.
 *
 *     log_info("txn", "prepare", "txn=%" PRIu64 " node=%s", txn, name);
 *
 * Levels: error = page someone, warn, info = state change, debug = trace.
 * The text goes to a sink (stderr unless the simulator or a test set another).
 * The last lines are kept in memory and printed when an ASSERT fails.
 * Never log an entity id at info or above, a secret, or the ring's hash key. But
 * a complaint about an actor that misbehaves (warn, error) names its kind and id,
 * for people have to find the code; a ration (ration.h) keeps these few.
 * Thread: any; one lock inside.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdio.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* A sink gets whole lines without newline; `context` is what was set. */
typedef void (*log_sink)(void *context, enum log_level level, const char *line);

/* Lines above `level` are dropped. Default LOG_INFO. */
void log_set_level(enum log_level level);

/* NULL puts stderr back. */
void log_set_sink(log_sink sink, void *context);

/* "error|warn|info|debug" -> level; false if it is none of them. */
bool log_level_parse(const char *text, enum log_level *level);

/* True when a line of this level would be written: for costly arguments. */
bool log_enabled(enum log_level level);

void log_write(enum log_level level, const char *module, const char *event, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Print the last lines, oldest first. */
void log_dump_recent(FILE *out);

#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...)                         \
    do {                                       \
        if (log_enabled(LOG_DEBUG)) {          \
            log_write(LOG_DEBUG, __VA_ARGS__); \
        }                                      \
    } while (0)

#endif
