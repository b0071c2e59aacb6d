/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators do with a whole store of durable actors (`ringhold store`): is it sound, how much
 * is in it, make it small, copy it.
 *
 *     check, stats, backup   beside nodes that run: they read what is committed
 *     vacuum                 a file alone: nobody else has it open; PostgreSQL beside nodes
 *
 * A store is named as `ringhold node --store` names it, or by the path of its file. Each function
 * that fails puts one line into `why`.
 */
#ifndef STORAGE_ACTORS_TOOLS_H
#define STORAGE_ACTORS_TOOLS_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { STORE_TOOLS_WHY_SIZE = 320, STORE_TOOLS_LINE_SIZE = 2048 };

/* One line of what is wrong in a store. Borrowed. */
typedef void store_on_finding(void *context, const char *line);

/* Return how a store is called for people: in a name of PostgreSQL there may be a password. */
const char *store_tools_shown(const char *name);

/* A row that is wrong. */
struct store_finding {
    int64_t kind;
    struct bytes id;
    bool has_key;
    struct bytes key;
    const char *what; /* is wrong with it */
    bool has_number;
    int64_t number; /* that says how much */
};
/* Tell it as a line: "actor 0/boss-7, key gold: a row of value has no actor". */
void store_tools_tell(const struct store_finding *f, store_on_finding *on_finding, void *context);

/* Tell each thing that is wrong: what the database itself finds damaged, rows over the limits, rows
 * of actors that there are not, and sends that are newer than their actor. */
MUST_CHECK enum err store_tools_check(const char *name, store_on_finding *on_finding, void *context,
                                      char why[STORE_TOOLS_WHY_SIZE]);

struct store_figures {
    uint64_t actors;
    uint64_t values;
    uint64_t value_bytes; /* of keys and values */
    uint64_t answers;
    uint64_t answer_bytes;
    uint64_t alarms;
    uint64_t alarm_bytes;
    uint64_t alarms_due;  /* of these: their time has come */
    uint64_t next_due_ms; /* of the first alarm, in ms since 1970; 0 = there is none */
    uint64_t sends;       /* that are not taken yet */
    uint64_t send_bytes;
    uint64_t taken;      /* senders of whom something was taken */
    uint64_t file_bytes; /* SQLite: without its log. PostgreSQL: its tables and indexes. Redis: the
                            append-only file of the whole server */
    uint64_t free_bytes; /* of these: what vacuum would give back, about. Redis: BGREWRITEAOF */
    uint64_t read_back;  /* commits in doubt that were read back, ever */
};
MUST_CHECK enum err store_tools_stats(const char *name, struct store_figures *out,
                                      char why[STORE_TOOLS_WHY_SIZE]);

/* ERR_LOCKED: a file that somebody else has open, or that is no store. ERR_IO: Redis, which has
 * nothing of the kind. */
MUST_CHECK enum err store_tools_vacuum(const char *name, char why[STORE_TOOLS_WHY_SIZE]);

/* Copy the store, as it is at one moment, into a new file, which has its name when all of it is on
 * the disk. ERR_CONFLICT: there is one already, and not `replace`; or it is in use, or no store.
 * ERR_REFUSED: it is no file; `why` says how its database is copied. */
MUST_CHECK enum err store_tools_backup(const char *name, const char *target, bool replace,
                                       char why[STORE_TOOLS_WHY_SIZE]);

#endif
