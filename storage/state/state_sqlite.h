/* SPDX-License-Identifier: Apache-2.0
 *
 * state.db: the replicated state as tables that people may look into with the
 * sqlite3 shell while the coordinator runs, and as the snapshot that Raft keeps
 * and sends. A mirror and a cache: decisions are made on `struct state` in
 * memory, and the file is made anew at each start.
 *
 * The changed rows and the entry's index become visible together. Whoever
 * replicates commits after each entry or after some: the coordinator does after
 * STATE_MS, so that nobody waits for SQLite who waits for an answer. Thread: one. Any SQLite error
 * ends the process (exit 74): a coordinator that can't write its folder must not go on.
 *
 *     snapshot:  "RHSTATE1" | raft index u64 | size u64 | CRC-32C of the image u32 | zeros to 64
 *                then `size` bytes of a SQLite database image
 */
#ifndef STORAGE_STATE_STATE_SQLITE_H
#define STORAGE_STATE_STATE_SQLITE_H

#include "txn/state/state.h"

struct state_db;

/* Delete what is at `path` and make it anew, empty. NULL: in memory. ERR_IO: says why in the log.
 */
MUST_CHECK enum err state_db_open(struct state_db **out, const char *path);
void state_db_close(struct state_db *db); /* takes NULL */

/* Mirror what `command` changed in `s`, which is the state after it. Visible after the commit,
 * until when `s` is borrowed: some tables are written then, from what it is by then. */
void state_db_apply(struct state_db *db, const struct state *s, const Rh__Command *command,
                    const struct state_result *result);
/* End the transaction that began with the first entry since the last commit; `index` is the newest
 * one. Nothing happens if nothing did. */
void state_db_commit(struct state_db *db, uint64_t index);
/* Index of the last committed entry. */
uint64_t state_db_index(const struct state_db *db);
/* Return the database's handle, for storage/state/recover, which asks more than the functions
 * above. Borrowed. */
struct sqlite3 *state_db_handle(const struct state_db *db);

/* True if that note stands in the audit history. */
bool state_db_has_note(struct state_db *db, const char *subject, const char *what);
/* True if it is the newest with that subject there. */
bool state_db_ends_with_note(struct state_db *db, const char *subject, const char *what);
/* Append the newest commands of the audit history to `reply->events`, newest first. */
void state_db_events(struct state_db *db, uint32_t limit, Rh__AdminReply *reply);

/* Append a snapshot of `s`, which is what the database mirrors: all is committed. */
void state_db_snapshot(struct state_db *db, const struct state *s, struct buffer *out);
/* Replace the database's content and `s` by a snapshot. False, and nothing changed: it is not one,
 * or it is damaged. */
bool state_db_restore(struct state_db *db, struct bytes snapshot, struct state *s);

#endif
