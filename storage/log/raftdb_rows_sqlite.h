/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of raftdb: the handle, the rows' checksums, the refusal. Shared by
 * raftdb_sqlite.c (create, write) and raftdb_load_sqlite.c (verify, load).
 */
#ifndef STORAGE_LOG_RAFTDB_ROWS_SQLITE_H
#define STORAGE_LOG_RAFTDB_ROWS_SQLITE_H

#include "storage/log/raftdb_sqlite.h"
#include "storage/log/statement_sqlite.h"
#include "storage/log/write_counter.h"

#include <sqlite3.h>

enum {
    RAFTDB_PATH_MAX = 4200,
    RAFTDB_APPLICATION = 0x52687266, /* "Rhrf": raft.db of Ringhold */
    /* user_version: in its lower bits one of these two, above them the fleet's format, less 1 */
    RAFTDB_FORMAT = 1,         /* a group as it was founded */
    RAFTDB_FORMAT_CHANGED = 2, /* ... whose voters were changed: there is a generation */
    RAFTDB_FLEET_BITS = 8
};

struct raftdb {
    sqlite3 *sql;
    struct statements statements; /* of the writers */
    struct write_counter write_counter;
    char path[RAFTDB_PATH_MAX];
    char write_counter_path[RAFTDB_PATH_MAX];
    /* Copies of the rows `self` and `vote`. */
    char cluster[64];
    char voters[128]; /* "1,2,3" */
    uint64_t voter;
    uint64_t identity;
    bool admitted;
    bool changed; /* there is a generation */
    uint64_t term;
    uint64_t vote;
    uint64_t last; /* index of the last entry, or of the snapshot when no entry follows it */
    uint64_t writes;
    uint32_t fleet_format; /* in force, as far as is on this disk */
    bool quiet;            /* somebody only looks: keep the reason of a refusal, don't log it */
    char reason[160];      /* of the last refusal */
};

/* Columns of a row, in order: integers first, then up to two byte runs. */
struct raftdb_row {
    char kind; /* so that a row of one table is no row of another: s v p l n g */
    uint64_t number[5];
    size_t number_count;
    struct bytes a;
    struct bytes b;
};
uint32_t raftdb_row_crc(const struct raftdb_row *row);

/* Say in one line why the folder is not opened. Returns `e`. */
enum err raftdb_refuse(struct raftdb *db, enum err e, const char *reason);

struct bytes raftdb_column_bytes(sqlite3_stmt *s, int column);
uint64_t raftdb_column_u64(sqlite3_stmt *s, int column);

/* Make a quiet handle over a connection that somebody else opened: raftdb_close() closes both. */
struct raftdb *raftdb_over(sqlite3 *sql, const char *directory);
/* The one integer that `sql` asks for; -1 = there is none. */
int64_t raftdb_ask(struct raftdb *db, const char *sql);
/* Check that the database is ours, of this version, and that its pages are sound; then call
 * raftdb_load_self(). */
MUST_CHECK enum err raftdb_check_format(struct raftdb *db);
/* Read and verify `self` and `vote` into the handle. */
MUST_CHECK enum err raftdb_load_self(struct raftdb *db);
/* Read and verify everything else. `configuration`: no bytes = any will do. */
MUST_CHECK enum err raftdb_load_image(struct raftdb *db, struct log_image *image,
                                      struct bytes configuration);
/* The last snapshot; index 0 = none. Bytes go into one owned block at `*memory`. */
MUST_CHECK enum err raftdb_load_snapshot(struct raftdb *db, struct log_snapshot *snapshot,
                                         void **memory);

#endif
