/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit history in state.db: every command of the log as it was applied,
 * who asked for it and why. For people; nothing depends on it.
 */
#ifndef STORAGE_STATE_EVENT_SQLITE_H
#define STORAGE_STATE_EVENT_SQLITE_H

#include "storage/log/statement_sqlite.h"
#include "txn/state/state.h"

#define EVENT_TABLE                                                                     \
    "CREATE TABLE event(id INTEGER PRIMARY KEY, time_us INTEGER, proposer INTEGER, "    \
    "command TEXT, accepted INTEGER, stamp INTEGER, why TEXT, subject TEXT DEFAULT ''," \
    " asked_by TEXT DEFAULT '', reason TEXT DEFAULT '');"

/* Add one command; forget the oldest. */
void event_put(struct statements *statements, sqlite3 *db, const Rh__Command *command,
               const struct state_result *result);
/* Give a table of an older snapshot the columns it lacks. */
void event_upgrade(sqlite3 *db);
/* True if there is such a note. */
bool event_has_note(sqlite3 *db, const char *subject, const char *what);
/* True if the newest note with that subject says that. */
bool event_ends_with_note(sqlite3 *db, const char *subject, const char *what);
/* Append the newest to `reply->events`, newest first. */
void event_list(sqlite3 *db, uint32_t limit, Rh__AdminReply *reply);

#endif
