/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of state.db share; nobody else includes this.
 */
#ifndef STORAGE_STATE_DB_SQLITE_H
#define STORAGE_STATE_DB_SQLITE_H

#include "storage/log/statement_sqlite.h"
#include "storage/state/state_sqlite.h"

/* Tables that are written anew as a whole: once a transaction, however many commands it has. */
enum whole {
    WHOLE_CLUSTER = 1,
    WHOLE_NODES = 2,
    WHOLE_VNODES = 4,
    WHOLE_ROLES = 8,
    WHOLE_SUSPECTS = 16,
    WHOLE_VOTERS = 32,
};

struct state_db {
    sqlite3 *db;
    struct statements statements;
    const struct state *state; /* of the last apply: what `due` is to be written from */
    unsigned due;              /* enum whole, of the open transaction */
    uint64_t index;
    bool open; /* a transaction is */
};

/* ---- rows_sqlite.c */

void state_rows_run(struct state_db *db, const char *sql);
/* Write the tables that are due. */
void state_rows_put_due(struct state_db *db);
/* The vnodes that a delta's ops name: as they are now, or gone (the right side of a MERGE). */
void state_rows_put_vnodes(struct state_db *db, const struct ring *r, const Rh__Delta *delta);
/* The pins that a command added and removed. */
void state_rows_put_pins(struct state_db *db, const struct state *s, const Rh__CommandPin *in);
/* The ids that a command names: as they are now, or gone. */
void state_rows_put_remembered(struct state_db *db, const struct state *s,
                               const Rh__CommandRemember *in);
void state_rows_put_txn(struct state_db *db, const struct state *s, uint64_t number);
/* Forget the decided ones that the state has forgotten. */
void state_rows_prune_txns(struct state_db *db, const struct state *s);

#endif
