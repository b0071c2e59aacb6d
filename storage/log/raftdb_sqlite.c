/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes raft.db: its schema, and a transaction for each request.
 */
#include "storage/log/raftdb_sqlite.h"

#include "storage/log/raftdb_rows_sqlite.h"

#include "base/assert.h"
#include "base/directory.h"
#include "base/files.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "wire/versions.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_WRITE_FAILED = 74 }; /* sysexits' EX_IOERR */

static const char schema[] =
    "CREATE TABLE self (one INTEGER PRIMARY KEY CHECK (one = 1), cluster TEXT NOT NULL,"
    " voter INTEGER NOT NULL, voters TEXT NOT NULL, identity INTEGER NOT NULL,"
    " admitted INTEGER NOT NULL, crc INTEGER NOT NULL);"
    "CREATE TABLE vote (one INTEGER PRIMARY KEY CHECK (one = 1), term INTEGER NOT NULL,"
    " vote INTEGER NOT NULL, last INTEGER NOT NULL, writes INTEGER NOT NULL,"
    " crc INTEGER NOT NULL);"
    "CREATE TABLE peer (voter INTEGER PRIMARY KEY, identity INTEGER NOT NULL,"
    " founder INTEGER NOT NULL, crc INTEGER NOT NULL);"
    "CREATE TABLE log (idx INTEGER PRIMARY KEY, term INTEGER NOT NULL, type INTEGER NOT NULL,"
    " data BLOB NOT NULL, crc INTEGER NOT NULL);"
    "CREATE TABLE snapshot (one INTEGER PRIMARY KEY CHECK (one = 1), idx INTEGER NOT NULL,"
    " term INTEGER NOT NULL, conf_idx INTEGER NOT NULL, conf BLOB NOT NULL, data BLOB NOT NULL,"
    " crc INTEGER NOT NULL);";

// The only answer to a write that failed: nobody may act on what we then believe.
_Noreturn static void die(const struct raftdb *db, const char *file, const char *what)
{
    log_error("raft",
              "write_failed",
              "file=%s error=\"%s\" remedy=\"free space or repair the disk, then start again\"",
              file,
              what != NULL ? what : sqlite3_errmsg(db->sql));
    _exit(EXIT_WRITE_FAILED);
}

static void run(struct raftdb *db, const char *sql)
{
    if (sqlite3_exec(db->sql, sql, NULL, NULL, NULL) != SQLITE_OK) {
        die(db, db->path, NULL);
    }
}

/* Run one statement with the row's integers, byte runs (text or blob) and checksum bound in the
 * order of `sql`'s parameters: ?1..?5 integers, ?6 ?7 byte runs, ?8 checksum. */
static void run_row(struct raftdb *db, const char *sql, const struct raftdb_row *row)
{
    sqlite3_stmt *s = statements_get(&db->statements, db->sql, sql);

    if (s == NULL) {
        die(db, db->path, NULL);
    }
    for (size_t i = 0; i < row->number_count; i++) {
        (void)sqlite3_bind_int64(s, 1 + (int)i, (sqlite3_int64)row->number[i]);
    }
    (void)sqlite3_bind_blob64(
        s, 6, row->a.size > 0 ? (const void *)row->a.data : "", row->a.size, SQLITE_STATIC);
    (void)sqlite3_bind_blob64(
        s, 7, row->b.size > 0 ? (const void *)row->b.data : "", row->b.size, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 8, (sqlite3_int64)raftdb_row_crc(row));
    if (sqlite3_step(s) != SQLITE_DONE || sqlite3_reset(s) != SQLITE_OK) {
        die(db, db->path, NULL);
    }
    (void)sqlite3_clear_bindings(s); // they are not ours beyond this
}

/* One that changes no row of ours and has no parameters. */
static void run_kept(struct raftdb *db, const char *sql)
{
    sqlite3_stmt *s = statements_get(&db->statements, db->sql, sql);

    if (s == NULL || sqlite3_step(s) != SQLITE_DONE || sqlite3_reset(s) != SQLITE_OK) {
        die(db, db->path, NULL);
    }
}

static void begin(struct raftdb *db)
{
    run_kept(db, "BEGIN IMMEDIATE");
}

static void put_write_counter(struct raftdb *db)
{
    if (db->write_counter.file >= 0 &&
        write_counter_put(&db->write_counter, db->writes) != ERR_OK) {
        die(db, db->write_counter_path, strerror(errno));
    }
}

static void commit(struct raftdb *db)
{
    db->writes++;
    const struct raftdb_row row = {
        .kind = 'v',
        .number = {db->term, db->vote, db->last, db->writes},
        .number_count = 4,
    };
    run_row(db, "REPLACE INTO vote VALUES (1, ?1, ?2, ?3, ?4, ?8)", &row);
    if (mutant(M_TAILFIRST)) {
        put_write_counter(db);
    }
    run_kept(db, "COMMIT");
    put_write_counter(db);
}

static void put_self(struct raftdb *db)
{
    const struct raftdb_row row = {
        .kind = 's',
        .number = {db->voter, db->identity, db->admitted},
        .number_count = 3,
        .a = bytes_of(db->cluster, strlen(db->cluster)),
        .b = bytes_of(db->voters, strlen(db->voters)),
    };
    run_row(db,
            "REPLACE INTO self VALUES (1, CAST(?6 AS TEXT), ?1, CAST(?7 AS TEXT), ?2, ?3, ?8)",
            &row);
}

static void put_peer(struct raftdb *db, const struct log_peer *peer)
{
    const struct raftdb_row row = {
        .kind = 'p',
        .number = {peer->voter, peer->identity, peer->founder},
        .number_count = 3,
    };
    run_row(db, "REPLACE INTO peer VALUES (?1, ?2, ?3, ?8)", &row);
}

static void delete_peer(struct raftdb *db, uint64_t voter)
{
    const struct raftdb_row row = {.kind = 'p', .number = {voter}, .number_count = 1};

    run_row(db, "DELETE FROM peer WHERE voter = ?1", &row);
}

static void put_entry(struct raftdb *db, uint64_t index, const struct log_entry *entry)
{
    const struct raftdb_row row = {
        .kind = 'l',
        .number = {index, entry->term, entry->type},
        .number_count = 3,
        .a = entry->data,
    };
    // A gap or a second entry at one index would be a bug of ours; no log beats a wrong log.
    ASSERT(index == db->last + 1);
    run_row(db, "INSERT INTO log VALUES (?1, ?2, ?3, ?6, ?8)", &row);
    db->last = index;
}

static void truncate_log(struct raftdb *db, uint64_t index)
{
    const struct raftdb_row row = {.kind = 'l', .number = {index}, .number_count = 1};

    run_row(db, "DELETE FROM log WHERE idx >= ?1", &row);
    db->last = index - 1 < db->last ? index - 1 : db->last;
}

static void put_snapshot(struct raftdb *db, const struct log_request *request)
{
    const struct log_snapshot *snapshot = &request->snapshot;
    const struct raftdb_row row = {
        .kind = 'n',
        .number = {snapshot->index, snapshot->term, snapshot->configuration_index},
        .number_count = 3,
        .a = snapshot->configuration,
        .b = snapshot->data,
    };
    run_row(db, "REPLACE INTO snapshot VALUES (1, ?1, ?2, ?3, ?6, ?7, ?8)", &row);
    if (request->keep_from == UINT64_MAX) {
        run(db, "DELETE FROM log");
        db->last = snapshot->index;
        return;
    }
    const struct raftdb_row before = {
        .kind = 'l', .number = {request->keep_from}, .number_count = 1};
    run_row(db, "DELETE FROM log WHERE idx < ?1", &before);
}

static void put_voters(char *text, size_t size, const uint64_t *voters, size_t count)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++) {
        used +=
            (size_t)snprintf(text + used, size - used, "%s%" PRIu64, i > 0 ? "," : "", voters[i]);
    }
}

static void put_version(struct raftdb *db)
{
    char sql[64];

    (void)snprintf(sql,
                   sizeof sql,
                   "PRAGMA user_version = %d",
                   (db->changed ? RAFTDB_FORMAT_CHANGED : RAFTDB_FORMAT) +
                       (int)((db->fleet_format - 1) << RAFTDB_FLEET_BITS));
    run(db, sql);
}

/* An older program knows of no generations, and shall not start on one: hence the format. */
static void put_generation(struct raftdb *db, struct bytes generation)
{
    const struct raftdb_row row = {.kind = 'g', .a = generation};

    run(db,
        "CREATE TABLE IF NOT EXISTS generation (one INTEGER PRIMARY KEY CHECK (one = 1),"
        " data BLOB NOT NULL, crc INTEGER NOT NULL);");
    run_row(db, "REPLACE INTO generation VALUES (1, ?6, ?8)", &row);
    db->changed = true;
    put_version(db);
}

static void found(struct raftdb *db, const struct log_request *request)
{
    const struct log_founding *founding = &request->founding;

    put_generation(db, founding->generation);
    put_snapshot(db, request);
    run(db, "DELETE FROM peer");
    for (size_t i = 0; i < founding->peer_count; i++) {
        put_peer(db, &founding->peer[i]);
    }
    put_voters(db->voters, sizeof db->voters, founding->voters, founding->voter_count);
    db->admitted = founding->admitted;
    put_self(db);
    db->term = founding->term;
    db->vote = 0;
}

static void read_snapshot(struct raftdb *db, struct log_request *request)
{
    if (raftdb_load_snapshot(db, &request->snapshot, &request->read_memory) != ERR_OK) {
        _exit(EXIT_WRITE_FAILED); // It said why, and what to do.
    }
}

static void do_request(struct raftdb *db, struct log_request *request)
{
    switch (request->kind) {
    case LOG_APPEND:
        for (size_t i = 0; i < request->entry_count; i++) {
            put_entry(db, request->index + i, &request->entry[i]);
        }
        break;
    case LOG_TRUNCATE:
        truncate_log(db, request->index);
        break;
    case LOG_SNAPSHOT:
        put_snapshot(db, request);
        break;
    case LOG_READ_SNAPSHOT:
        read_snapshot(db, request);
        break;
    case LOG_FOUND:
        found(db, request);
        break;
    }
}

void raftdb_write(struct raftdb *db, struct list *requests)
{
    begin(db);
    for (struct list_link *l = list_front(requests); l != NULL; l = list_next(requests, l)) {
        do_request(db, CONTAINER_OF(l, struct log_request, link));
    }
    commit(db);
}

void raftdb_set_vote(struct raftdb *db, uint64_t term, uint64_t vote)
{
    begin(db);
    db->term = term;
    db->vote = vote;
    commit(db);
}

void raftdb_set_peer(struct raftdb *db, const struct log_peer *peer)
{
    begin(db);
    put_peer(db, peer);
    commit(db);
}

void raftdb_set_admitted(struct raftdb *db)
{
    begin(db);
    db->admitted = true;
    put_self(db);
    commit(db);
}

void raftdb_set_format(struct raftdb *db, uint32_t fleet_format)
{
    if (fleet_format <= db->fleet_format) {
        return; // a log that is applied anew begins with what was in force then
    }
    db->fleet_format = fleet_format;
    begin(db);
    put_version(db);
    commit(db);
}

static const char joining[] = "joining";

/* Whose folder it is to be, as `self` has it. */
static void put_group(char *text, size_t size, const struct log_sqlite_config *config)
{
    if (config->joining) {
        (void)snprintf(text, size, "%s", joining);
    } else {
        put_voters(text, size, config->voters, config->voter_count);
    }
}

static void create(struct raftdb *db, const struct log_sqlite_config *config)
{
    const struct log_entry first = {.term = 1, .type = 3, .data = config->configuration};

    begin(db);
    run(db, schema);
    (void)snprintf(db->cluster, sizeof db->cluster, "%s", config->cluster);
    put_group(db->voters, sizeof db->voters, config);
    db->voter = config->voter;
    db->identity = config->identity;
    // Alone there is nobody to meet; in a group the meetings decide.
    db->admitted = config->voter_count == 1 && !config->joining;
    db->term = 1;
    put_self(db);
    put_entry(db, 1, &first);
    run(db, "PRAGMA application_id = 1382576742"); // RAFTDB_APPLICATION
    db->fleet_format = FLEET_FORMAT_OLDEST;
    put_version(db);
    commit(db);
}

static enum err check_owner(struct raftdb *db, const struct log_sqlite_config *config)
{
    char voters[sizeof db->voters];
    char reason[512];

    put_group(voters, sizeof voters, config);
    if (strcmp(db->cluster, config->cluster) != 0) {
        (void)snprintf(reason,
                       sizeof reason,
                       "it belongs to cluster %s, not %s",
                       db->cluster,
                       config->cluster);
    } else if (db->voter != config->voter) {
        (void)snprintf(reason,
                       sizeof reason,
                       "it belongs to voter %" PRIu64 ", not %" PRIu64,
                       db->voter,
                       config->voter);
    } else if (!db->changed && strcmp(db->voters, voters) != 0) {
        (void)snprintf(
            reason, sizeof reason, "it belongs to the group %s, not %s", db->voters, voters);
    } else {
        return ERR_OK;
    }
    return raftdb_refuse(db, ERR_FOREIGN, reason);
}

/* The voters that the log must be of; no bytes: those of a later generation, which is ours to tell.
 */
static struct bytes expected(const struct raftdb *db, const struct log_sqlite_config *config)
{
    const struct bytes any = {0};

    return db->changed ? any : config->configuration;
}

/* The write counter must be of this folder and must not know of more writes. */
static enum err check_write_counter(struct raftdb *db)
{
    uint64_t identity = 0;
    uint64_t writes = 0;
    const enum err e = write_counter_read(db->write_counter_path, &identity, &writes);

    if (e == ERR_NOT_FOUND && db->writes == 1) {
        return ERR_OK; // created, and stopped before the write counter was
    }
    if (e != ERR_OK) {
        return raftdb_refuse(db, ERR_CORRUPT, "its write counter raft.tail is missing or damaged");
    }
    if (identity != db->identity) {
        return raftdb_refuse(
            db, ERR_CORRUPT, "its write counter raft.tail belongs to another folder");
    }
    if (writes > db->writes) {
        return raftdb_refuse(db, ERR_CORRUPT, "confirmed writes are missing: an old copy, or torn");
    }
    return ERR_OK;
}

static struct raftdb *handle_new(const char *directory)
{
    struct raftdb *db = mem_new(1, sizeof *db);

    db->write_counter.file = -1;
    (void)snprintf(db->path, sizeof db->path, "%s/raft.db", directory);
    (void)snprintf(
        db->write_counter_path, sizeof db->write_counter_path, "%s/raft.tail", directory);
    return db;
}

/* Open the file; `*empty`: nothing was ever committed to it. */
static enum err open_file(struct raftdb *db, bool *empty)
{
    uint64_t ignored = 0;
    const bool existed = files->exists(db->path);
    const bool counted =
        write_counter_read(db->write_counter_path, &ignored, &ignored) != ERR_NOT_FOUND;

    if (!existed && counted) {
        return raftdb_refuse(
            db, ERR_CORRUPT, "it is missing, although its write counter raft.tail exists");
    }
    // SQLite would make it for all to read. It gives the files beside it the same mode.
    const int made = existed ? -1 : directory_new_file(db->path);
    if (made >= 0) {
        (void)files->close(made);
    }
    if (sqlite3_open_v2(db->path,
                        &db->sql,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK) {
        return raftdb_refuse(db, ERR_IO, sqlite3_errmsg(db->sql));
    }
    (void)sqlite3_busy_timeout(db->sql, 5000); // somebody may look with sqlite3
    const int64_t pages = raftdb_ask(db, "SELECT count(*) FROM sqlite_schema");
    if (pages < 0) {
        const bool foreign = sqlite3_errcode(db->sql) == SQLITE_NOTADB;
        return raftdb_refuse(db, foreign ? ERR_CORRUPT : ERR_IO, sqlite3_errmsg(db->sql));
    }
    *empty = pages == 0 && raftdb_ask(db, "PRAGMA user_version") == 0;
    if (*empty && counted) {
        // An empty file, or one whose write-ahead log SQLite dropped from its first frame on.
        return raftdb_refuse(
            db, ERR_CORRUPT, "it is empty, although its write counter raft.tail is not");
    }
    const char *safe = mutant(M_LOGSYNC) ? "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                                         : "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";
    if (sqlite3_exec(db->sql, safe, NULL, NULL, NULL) != SQLITE_OK) {
        return raftdb_refuse(db, ERR_IO, sqlite3_errmsg(db->sql));
    }
    return ERR_OK;
}

/* The write-ahead log grows up to the thousand pages of a checkpoint, and is written over from then
 * on. To grow costs each sync another write, of the file's size. So it grows at once, by what is
 * rolled back: no reader looks behind the last commit. Without space for it, it grows as it may. */
static void make_room(struct raftdb *db)
{
    static const char room[] = "PRAGMA cache_size = 16;" // so few, and the rest goes to the file
                               "BEGIN IMMEDIATE; CREATE TABLE room (data BLOB);"
                               "INSERT INTO room VALUES (zeroblob(4096 * 1030)); ROLLBACK;";

    if (sqlite3_exec(db->sql, room, NULL, NULL, NULL) != SQLITE_OK &&
        sqlite3_get_autocommit(db->sql) == 0) {
        run(db, "ROLLBACK");
    }
    run(db, "PRAGMA cache_size = -2000"); // SQLite's own
}

static enum err open_all(struct raftdb *db, struct log_image *image,
                         const struct log_sqlite_config *config)
{
    bool empty = false;
    enum err e = open_file(db, &empty);
    struct bytes wanted = config->configuration;

    if (e == ERR_OK && empty) {
        create(db, config);
        if (!directory_sync(config->directory)) {
            e = raftdb_refuse(db, ERR_IO, strerror(errno));
        }
    } else if (e == ERR_OK) {
        e = raftdb_check_format(db);
        e = e == ERR_OK ? check_owner(db, config) : e;
        e = e == ERR_OK ? check_write_counter(db) : e;
        wanted = expected(db, config);
    }
    if (e == ERR_OK && config->readmit != 0) {
        begin(db);
        delete_peer(db, config->readmit);
        commit(db);
    }
    e = e == ERR_OK ? raftdb_load_image(db, image, wanted) : e;
    if (e == ERR_OK &&
        (write_counter_open(&db->write_counter, db->write_counter_path, db->identity, db->writes) !=
             ERR_OK ||
         !directory_sync(config->directory))) {
        e = raftdb_refuse(db, ERR_IO, strerror(errno));
    }
    if (e == ERR_OK) {
        make_room(db);
    }
    return e;
}

enum err raftdb_open(struct raftdb **out, struct log_image *image,
                     const struct log_sqlite_config *config)
{
    struct raftdb *db = handle_new(config->directory);
    const enum err e = open_all(db, image, config);

    if (e != ERR_OK) {
        raftdb_close(db);
        return e;
    }
    *out = db;
    return ERR_OK;
}

static void change_owner(struct raftdb *db, const struct log_sqlite_config *config)
{
    const struct log_peer source = {.voter = db->voter, .identity = db->identity};

    begin(db);
    put_peer(db, &source);
    delete_peer(db, config->voter);
    db->voter = config->voter;
    db->identity = config->identity;
    db->admitted = true;
    db->vote = 0;
    put_self(db);
    commit(db);
}

static enum err adopt(struct raftdb *db, const struct log_sqlite_config *config)
{
    struct log_sqlite_config as_source = *config;
    bool empty = false;

    if (!files->exists(db->path)) {
        return raftdb_refuse(db, ERR_NOT_FOUND, "nothing to adopt: copy a voter's folder first");
    }
    enum err e = open_file(db, &empty);
    e = e == ERR_OK ? raftdb_check_format(db) : e;
    if (e != ERR_OK) {
        return e;
    }
    if (db->voter == config->voter) {
        return raftdb_refuse(db, ERR_CONFLICT, "it is already this voter's own folder");
    }
    if (strcmp(db->voters, joining) == 0) {
        return raftdb_refuse(db, ERR_NOT_FOUND, "the folder is empty and waits to join a group");
    }
    as_source.voter = db->voter;
    e = check_owner(db, &as_source);
    e = e == ERR_OK ? check_write_counter(db) : e;
    if (e != ERR_OK) {
        return e;
    }
    // All is verified before anything is changed.
    struct log_image image;
    log_image_init(&image);
    e = raftdb_load_image(db, &image, expected(db, config));
    log_image_fini(&image);
    if (e != ERR_OK) {
        return e;
    }
    change_owner(db, config);
    return write_counter_open(
               &db->write_counter, db->write_counter_path, db->identity, db->writes) == ERR_OK
               ? ERR_OK
               : raftdb_refuse(db, ERR_IO, strerror(errno));
}

enum err raftdb_adopt(const struct log_sqlite_config *config)
{
    struct raftdb *db = handle_new(config->directory);
    const enum err e = adopt(db, config);

    raftdb_close(db);
    return e;
}

static enum err inspect(struct raftdb *db, struct log_folder *out)
{
    bool empty = false;
    enum err e = open_file(db, &empty);

    if (e == ERR_OK && empty) {
        return ERR_NOT_FOUND;
    }
    e = e == ERR_OK ? raftdb_check_format(db) : e;
    e = e == ERR_OK ? check_write_counter(db) : e;
    if (e != ERR_OK) {
        return e;
    }
    const int64_t in_log = raftdb_ask(db, "SELECT term FROM log ORDER BY idx DESC LIMIT 1");
    const int64_t in_snapshot = raftdb_ask(db, "SELECT term FROM snapshot");
    *out = (struct log_folder){
        .voter = db->voter,
        .identity = db->identity,
        .term = db->term,
        .last_index = db->last,
        .last_term = (uint64_t)(in_log >= 0 ? in_log : in_snapshot),
    };
    memcpy(out->cluster, db->cluster, sizeof out->cluster);
    memcpy(out->voters, db->voters, sizeof out->voters);
    return ERR_OK;
}

enum err raftdb_inspect(const char *directory, struct log_folder *out)
{
    struct raftdb *db = handle_new(directory);
    const enum err e = inspect(db, out);

    raftdb_close(db);
    return e;
}

void raftdb_close(struct raftdb *db)
{
    if (db != NULL) {
        write_counter_close(&db->write_counter);
        statements_fini(&db->statements);
        (void)sqlite3_close(db->sql);
        mem_free(db);
    }
}
