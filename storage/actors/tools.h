/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators do with a whole store of durable actors (`ringhold store`): is it sound, how much
 * is in it, make it small, copy it.
 *
 *     check, stats, backup   beside nodes that run: they read what is committed
 *     vacuum                 alone: nobody else has the file open
 *
 * Each function that fails puts one line into `why`.
 */
#ifndef STORAGE_ACTORS_TOOLS_H
#define STORAGE_ACTORS_TOOLS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { STORE_TOOLS_WHY_SIZE = 256, STORE_TOOLS_LINE_SIZE = 2048 };

/* One line of what is wrong in a store. Borrowed. */
typedef void store_on_finding(void *context, const char *line);

/* Tell each thing that is wrong: what the database itself finds damaged, rows over the limits, and
 * rows of actors that there are not. */
MUST_CHECK enum err store_tools_check(const char *path, store_on_finding *on_finding, void *context,
                                      char why[STORE_TOOLS_WHY_SIZE]);

struct store_figures {
    uint64_t actors;
    uint64_t values;
    uint64_t value_bytes; /* of keys and values */
    uint64_t answers;
    uint64_t answer_bytes;
    uint64_t alarms;
    uint64_t alarm_bytes;
    uint64_t next_due_ms; /* of the first alarm, in ms since 1970; 0 = there is none */
    uint64_t sends;       /* that are not taken yet */
    uint64_t send_bytes;
    uint64_t taken;      /* senders of whom something was taken */
    uint64_t file_bytes; /* without its log */
    uint64_t free_bytes; /* of these: what vacuum would give back, about */
    uint64_t read_back;  /* commits in doubt that were read back, ever */
};
MUST_CHECK enum err store_tools_stats(const char *path, struct store_figures *out,
                                      char why[STORE_TOOLS_WHY_SIZE]);

/* ERR_LOCKED: somebody else has it open, or it is no store. */
MUST_CHECK enum err store_tools_vacuum(const char *path, char why[STORE_TOOLS_WHY_SIZE]);

/* Copy the store, as it is at one moment, into a new file, which has its name when all of it is on
 * the disk. ERR_CONFLICT: there is one already, and not `replace`; or it is in use, or no store. */
MUST_CHECK enum err store_tools_backup(const char *path, const char *target, bool replace,
                                       char why[STORE_TOOLS_WHY_SIZE]);

#endif
