/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks into raft.db and state.db, and compares the two.
 */
#include "storage/log/raftdb_rows_sqlite.h"
#include "storage/log/readonly_sqlite.h"
#include "storage/state/recover_inside.h"

#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4300, READ_AGAIN = 5 };

static const char raft_remedy[] =
    "if the other coordinators are sound: docs/recovery.md#one-folder (copy one, --adopt); "
    "otherwise ringhold recover restore BACKUP on all";
static const char cache_remedy[] = "nothing to do: the next start makes it anew from raft.db";

/* ---- raft.db ---- */

/* Deep: the checksum of each row of the log, so that one bad row is not all that is told. */
static void count_bad_rows(struct recover_folder *f, struct raftdb *db, struct replay_watch watch)
{
    const int64_t total = raftdb_ask(db, "SELECT count(*) FROM log");
    uint64_t done = 0;
    sqlite3_stmt *s = NULL;

    if (sqlite3_prepare_v2(db->sql, "SELECT idx, term, type, data, crc FROM log", -1, &s, NULL) !=
        SQLITE_OK) {
        return;
    }
    while (sqlite3_step(s) == SQLITE_ROW) {
        const struct raftdb_row row = {
            .kind = 'l',
            .number = {raftdb_column_u64(s, 0), raftdb_column_u64(s, 1), raftdb_column_u64(s, 2)},
            .number_count = 3,
            .a = raftdb_column_bytes(s, 3),
        };
        f->log_bad += raftdb_column_u64(s, 4) != raftdb_row_crc(&row);
        done++;
        if (watch.progress != NULL && done % 1024 == 0) {
            watch.progress(watch.context, done, (uint64_t)(total < 0 ? 0 : total));
        }
    }
    (void)sqlite3_finalize(s);
}

/* One moment of the file, also while a coordinator writes to it. */
static enum err load(struct recover_folder *f, struct raftdb *db, bool deep,
                     struct replay_watch watch)
{
    if (sqlite3_exec(db->sql, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        return raftdb_refuse(db, ERR_CORRUPT, sqlite3_errmsg(db->sql));
    }
    enum err error = raftdb_check_format(db);
    if (error == ERR_OK) {
        memcpy(f->cluster, db->cluster, sizeof f->cluster);
        memcpy(f->voters, db->voters, sizeof f->voters);
        f->voter = db->voter;
        f->writes = db->writes;
        error = raftdb_load_image(db, &f->image, (struct bytes){0});
        if (deep) {
            count_bad_rows(f, db, watch);
        }
    }
    return error;
}

static void look_raft(struct recover_folder *f, struct recover_file *file, bool deep,
                      struct replay_watch watch)
{
    char path[PATH_SIZE];
    char what[RECOVER_TEXT_MAX];
    struct readonly_db readonly;

    recover_path(f, "raft.db", path, sizeof path);
    enum err error = readonly_open(&readonly, path, f->in_use);
    if (error != ERR_OK) {
        recover_blame(file, RECOVER_DAMAGED, readonly.why, raft_remedy);
        readonly_close(&readonly);
        return;
    }
    struct raftdb *db = raftdb_over(readonly.sql, f->path);
    readonly.sql = NULL;
    error = load(f, db, deep, watch);
    f->has_log = error == ERR_OK;
    if (error != ERR_OK) {
        (void)snprintf(what, sizeof what, "%s", db->reason);
        if (f->log_bad > 0) {
            (void)snprintf(
                what, sizeof what, "%s; damaged rows of the log: %" PRIu64, db->reason, f->log_bad);
        }
        recover_blame(file, RECOVER_DAMAGED, what, raft_remedy);
    }
    raftdb_close(db);
    readonly_close(&readonly);
}

/* ---- raft.tail ---- */

static void look_write_counter(struct recover_folder *f, struct recover_file *raft)
{
    char path[PATH_SIZE];
    char what[RECOVER_TEXT_MAX];
    uint64_t identity = 0;
    struct recover_file *file = recover_add(f, "raft.tail");

    if (file->health == RECOVER_DAMAGED) {
        return;
    }
    recover_path(f, "raft.tail", path, sizeof path);
    enum err error = write_counter_read(path, &identity, &f->confirmed_writes);
    for (int i = 0; f->in_use && error == ERR_CORRUPT && i < READ_AGAIN; i++) {
        error = write_counter_read(
            path, &identity, &f->confirmed_writes); // It may just be being written.
    }
    if (error == ERR_NOT_FOUND && f->has_log && f->writes == 1) {
        return; // created, and stopped before it was written
    }
    if (error == ERR_NOT_FOUND) {
        recover_blame(file, RECOVER_MISSING, "the file is missing", raft_remedy);
    } else if (error != ERR_OK) {
        recover_blame(file, RECOVER_DAMAGED, "the file can't be read", raft_remedy);
    } else if (f->has_log && identity != f->image.identity) {
        recover_blame(file, RECOVER_DAMAGED, "the file belongs to another folder", raft_remedy);
    } else if (f->has_log && f->confirmed_writes > f->writes && !f->in_use) {
        f->has_write_counter = true;
        (void)snprintf(what,
                       sizeof what,
                       "confirmed writes are missing (an old copy, or torn): it knows of %" PRIu64
                       ", its write counter raft.tail of %" PRIu64,
                       f->writes,
                       f->confirmed_writes);
        recover_blame(raft, RECOVER_DAMAGED, what, raft_remedy);
    } else {
        f->has_write_counter = true;
    }
}

/* ---- the state ---- */

static void look_state(struct recover_folder *f, struct recover_file *raft,
                       struct replay_watch watch)
{
    enum err error = replay_open(&f->replay, &f->image.snapshot);

    if (error == ERR_OK) {
        error = replay_run(&f->replay, &f->image, recover_last_index(f), watch);
    }
    if (error != ERR_OK) {
        recover_blame(raft, RECOVER_DAMAGED, f->replay.why, raft_remedy);
        replay_fini(&f->replay);
        return;
    }
    f->has_state = true;
}

/* ---- state.db ---- */

static bool read_cache(struct recover_folder *f, sqlite3 *sql)
{
    sqlite3_stmt *s = NULL;
    struct recover_cache *c = &f->cache;

    if (sqlite3_prepare_v2(
            sql, "SELECT applied, number, era, version, digest FROM cluster", -1, &s, NULL) ==
            SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW) {
        const char *digest = (const char *)sqlite3_column_text(s, 4);

        c->readable = true;
        c->applied = raftdb_column_u64(s, 0);
        c->number = raftdb_column_u64(s, 1);
        c->era = raftdb_column_u64(s, 2);
        c->version = raftdb_column_u64(s, 3);
        (void)snprintf(c->digest, sizeof c->digest, "%s", digest == NULL ? "" : digest);
    }
    (void)sqlite3_finalize(s);
    return c->readable;
}

/* Replay again, up to where state.db stopped: the log may have gone on after that. */
static void compare_cache(struct recover_folder *f, struct recover_file *file, sqlite3 *sql)
{
    char what[RECOVER_TEXT_MAX];
    struct replay replay;
    const struct replay_watch nobody = {0};

    if (f->cache.applied < f->image.snapshot.index || f->cache.applied > recover_last_index(f)) {
        (void)snprintf(what,
                       sizeof what,
                       "it is of index %" PRIu64 ", the log has %" PRIu64 " to %" PRIu64,
                       f->cache.applied,
                       f->image.snapshot.index,
                       recover_last_index(f));
        recover_blame(file, RECOVER_DAMAGED, what, cache_remedy);
        return;
    }
    enum err error = replay_open(&replay, &f->image.snapshot);
    if (error == ERR_OK) {
        error = replay_run(&replay, &f->image, f->cache.applied, nobody);
    }
    if (error != ERR_OK || !replay_matches(&replay, sql)) {
        recover_blame(file, RECOVER_DAMAGED, replay.why, cache_remedy);
    } else {
        (void)snprintf(file->what,
                       sizeof file->what,
                       "the same as the log says, up to index %" PRIu64,
                       f->cache.applied);
    }
    replay_fini(&replay);
}

static void look_cache(struct recover_folder *f, bool deep)
{
    char path[PATH_SIZE];
    struct readonly_db readonly;
    struct recover_file *file = recover_add(f, "state.db");

    if (file->health == RECOVER_ABSENT) {
        (void)snprintf(file->what, sizeof file->what, "the next start creates it");
    }
    if (file->health != RECOVER_SOUND) {
        return;
    }
    recover_path(f, "state.db", path, sizeof path);
    const enum err error = readonly_open(&readonly, path, f->in_use);
    if (error != ERR_OK) {
        recover_blame(file, RECOVER_DAMAGED, readonly.why, cache_remedy);
    } else if (!statement_check(readonly.sql) || !read_cache(f, readonly.sql)) {
        recover_blame(file, RECOVER_DAMAGED, "the database is damaged", cache_remedy);
    } else if (deep && f->has_state && !f->in_use) {
        compare_cache(f, file, readonly.sql);
    }
    readonly_close(&readonly);
}

void recover_look_databases(struct recover_folder *f, bool deep, struct replay_watch watch)
{
    struct recover_file *raft = recover_add(f, "raft.db");

    if (raft->health == RECOVER_ABSENT) {
        recover_blame(raft, RECOVER_MISSING, "the file is missing", raft_remedy);
    } else if (raft->health == RECOVER_SOUND) {
        look_raft(f, raft, deep, watch);
    }
    struct recover_file *wal = recover_add(f, "raft.db-wal");
    if (wal->health == RECOVER_ABSENT) {
        f->file_count--;
    } else if (wal->health == RECOVER_SOUND && wal->size > 0) {
        (void)snprintf(wal->what, sizeof wal->what, "the last writes, read with raft.db");
    }
    look_write_counter(f, raft);
    if (f->has_log) { // Also an old copy has a state.
        look_state(f, raft, watch);
    }
    look_cache(f, deep);
}
