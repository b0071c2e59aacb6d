/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads raft.db and refuses what is damaged, torn or another's.
 */
#include "storage/log/raftdb_rows_sqlite.h"

#include "base/crc.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/cursor.h"
#include "wire/versions.h"

#include <stdio.h>
#include <string.h>

static const char *const restore_hint =
    "this voter must not run on it: run ringhold recover inspect, then adopt a copy of an "
    "up-to-date voter's folder (docs/recovery.md#one-folder), or ringhold recover restore a backup";

uint32_t raftdb_row_crc(const struct raftdb_row *row)
{
    uint8_t head[1 + 5 * 8 + 2 * 8];
    struct writer w = {.at = head, .left = sizeof head};

    put_u8(&w, (uint8_t)row->kind);
    for (size_t i = 0; i < row->number_count; i++) {
        put_u64(&w, row->number[i]);
    }
    put_u64(&w, row->a.size);
    put_u64(&w, row->b.size);
    uint32_t crc = crc32c(head, sizeof head - w.left);
    crc = row->a.size > 0 ? crc32c_more(crc, row->a.data, row->a.size) : crc;
    return row->b.size > 0 ? crc32c_more(crc, row->b.data, row->b.size) : crc;
}

static enum err refuse_with(struct raftdb *db, enum err e, const char *reason, const char *remedy)
{
    (void)snprintf(db->reason, sizeof db->reason, "%s", reason);
    if (!db->quiet) {
        log_error("raft",
                  "folder_refused",
                  "file=%s error=%s reason=\"%s\" remedy=\"%s\"",
                  db->path,
                  err_name(e),
                  reason,
                  remedy);
    }
    return e;
}

enum err raftdb_refuse(struct raftdb *db, enum err e, const char *reason)
{
    return refuse_with(db,
                       e,
                       reason,
                       e == ERR_CORRUPT ? restore_hint
                       : e == ERR_FOREIGN
                           ? "point --data at this voter's own folder, or use an empty one"
                           : "check the folder's owner, mode and free space");
}

struct bytes raftdb_column_bytes(sqlite3_stmt *s, int column)
{
    const void *data = sqlite3_column_blob(s, column);

    return bytes_of(data, data == NULL ? 0 : (size_t)sqlite3_column_bytes(s, column));
}

uint64_t raftdb_column_u64(sqlite3_stmt *s, int column)
{
    return (uint64_t)sqlite3_column_int64(s, column);
}

/* Prepare a query; NULL if the schema is not what we made. */
static sqlite3_stmt *query(struct raftdb *db, const char *sql)
{
    sqlite3_stmt *s = NULL;

    (void)sqlite3_prepare_v2(db->sql, sql, -1, &s, NULL);
    return s;
}

/* One step: SQLITE_ROW, SQLITE_DONE or an error, also for a statement that did not compile. */
static int step(sqlite3_stmt *s)
{
    return s == NULL ? SQLITE_CORRUPT : sqlite3_step(s);
}

static bool crc_matches(sqlite3_stmt *s, int column, const struct raftdb_row *row)
{
    return raftdb_column_u64(s, column) == raftdb_row_crc(row);
}

int64_t raftdb_ask(struct raftdb *db, const char *sql)
{
    sqlite3_stmt *s = NULL;
    int64_t value = -1;

    if (sqlite3_prepare_v2(db->sql, sql, -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW) {
        value = sqlite3_column_int64(s, 0);
    }
    (void)sqlite3_finalize(s);
    return value;
}

static enum err refuse_fleet_format(struct raftdb *db, int64_t version)
{
    char reason[160];

    (void)snprintf(
        reason,
        sizeof reason,
        "the fleet's format is %d there, and this version reads %d..%d: a newer version wrote it",
        (int)(version >> RAFTDB_FLEET_BITS) + 1,
        FLEET_FORMAT_OLDEST,
        FLEET_FORMAT);
    return refuse_with(db,
                       ERR_FOREIGN,
                       reason,
                       "start that version, or a later one: after ringhold upgrade --finish there "
                       "is no way back to an older one (docs/upgrade.md#ringhold)");
}

enum err raftdb_check_format(struct raftdb *db)
{
    if (raftdb_ask(db, "PRAGMA application_id") != RAFTDB_APPLICATION) {
        return raftdb_refuse(db, ERR_FOREIGN, "not a Raft log of Ringhold");
    }
    const int64_t version = raftdb_ask(db, "PRAGMA user_version");
    if (version >> RAFTDB_FLEET_BITS >= FLEET_FORMAT) {
        return refuse_fleet_format(db, version);
    }
    const int64_t format = version % (1 << RAFTDB_FLEET_BITS);
    if (format != RAFTDB_FORMAT && format != RAFTDB_FORMAT_CHANGED) {
        return raftdb_refuse(db, ERR_FOREIGN, "written by another version");
    }
    db->changed = format == RAFTDB_FORMAT_CHANGED;
    db->fleet_format = (uint32_t)(version >> RAFTDB_FLEET_BITS) + 1;
    return statement_check(db->sql) ? raftdb_load_self(db)
                                    : raftdb_refuse(db, ERR_CORRUPT, "the database is damaged");
}

static enum err read_self(struct raftdb *db, sqlite3_stmt *s)
{
    if (step(s) != SQLITE_ROW) {
        return raftdb_refuse(db, ERR_CORRUPT, "the row that names its owner is missing");
    }
    const struct raftdb_row row = {
        .kind = 's',
        .number = {raftdb_column_u64(s, 1), raftdb_column_u64(s, 3), raftdb_column_u64(s, 4)},
        .number_count = 3,
        .a = raftdb_column_bytes(s, 0),
        .b = raftdb_column_bytes(s, 2),
    };
    if (!crc_matches(s, 5, &row) || row.a.data == NULL || row.b.data == NULL ||
        row.a.size >= sizeof db->cluster || row.b.size >= sizeof db->voters) {
        return raftdb_refuse(db, ERR_CORRUPT, "the row that names its owner is damaged");
    }
    memset(db->cluster, 0, sizeof db->cluster);
    memset(db->voters, 0, sizeof db->voters);
    memcpy(db->cluster, row.a.data, row.a.size);
    memcpy(db->voters, row.b.data, row.b.size);
    db->voter = row.number[0];
    db->identity = row.number[1];
    db->admitted = row.number[2] != 0;
    return ERR_OK;
}

static enum err read_vote(struct raftdb *db, sqlite3_stmt *s)
{
    if (step(s) != SQLITE_ROW) {
        return raftdb_refuse(db, ERR_CORRUPT, "term and vote are missing");
    }
    const struct raftdb_row row = {
        .kind = 'v',
        .number = {raftdb_column_u64(s, 0),
                   raftdb_column_u64(s, 1),
                   raftdb_column_u64(s, 2),
                   raftdb_column_u64(s, 3)},
        .number_count = 4,
    };
    if (!crc_matches(s, 4, &row)) {
        return raftdb_refuse(db, ERR_CORRUPT, "term and vote are damaged");
    }
    db->term = row.number[0];
    db->vote = row.number[1];
    db->last = row.number[2];
    db->writes = row.number[3];
    return ERR_OK;
}

enum err raftdb_load_self(struct raftdb *db)
{
    sqlite3_stmt *s = query(db, "SELECT cluster, voter, voters, identity, admitted, crc FROM self");
    enum err e = read_self(db, s);

    (void)sqlite3_finalize(s);
    if (e == ERR_OK) {
        s = query(db, "SELECT term, vote, last, writes, crc FROM vote");
        e = read_vote(db, s);
        (void)sqlite3_finalize(s);
    }
    return e;
}

static enum err read_peers(struct raftdb *db, struct log_image *image)
{
    sqlite3_stmt *s = query(db, "SELECT voter, identity, founder, crc FROM peer ORDER BY voter");
    enum err e = ERR_OK;
    int rc = 0;

    while (e == ERR_OK && (rc = step(s)) == SQLITE_ROW) {
        const struct raftdb_row row = {
            .kind = 'p',
            .number = {raftdb_column_u64(s, 0), raftdb_column_u64(s, 1), raftdb_column_u64(s, 2)},
            .number_count = 3,
        };
        if (!crc_matches(s, 3, &row) || image->peer_count == LOG_VOTERS_MAX) {
            e = raftdb_refuse(db, ERR_CORRUPT, "the record of a peer is damaged");
            break;
        }
        image->peer[image->peer_count++] = (struct log_peer){
            .voter = row.number[0], .identity = row.number[1], .founder = row.number[2] != 0};
    }
    if (e == ERR_OK && rc != SQLITE_DONE) {
        e = raftdb_refuse(db, ERR_CORRUPT, sqlite3_errmsg(db->sql));
    }
    (void)sqlite3_finalize(s);
    return e;
}

static enum err read_snapshot(struct raftdb *db, sqlite3_stmt *s, struct log_snapshot *snapshot,
                              void **memory)
{
    *memory = NULL;
    *snapshot = (struct log_snapshot){0};
    const int rc = step(s);
    if (rc == SQLITE_DONE) {
        return ERR_OK;
    }
    if (rc != SQLITE_ROW) {
        return raftdb_refuse(db, ERR_CORRUPT, sqlite3_errmsg(db->sql));
    }
    const struct raftdb_row row = {
        .kind = 'n',
        .number = {raftdb_column_u64(s, 0), raftdb_column_u64(s, 1), raftdb_column_u64(s, 2)},
        .number_count = 3,
        .a = raftdb_column_bytes(s, 3),
        .b = raftdb_column_bytes(s, 4),
    };
    if (!crc_matches(s, 5, &row) || row.number[0] == 0 || row.a.size == 0) {
        return raftdb_refuse(db, ERR_CORRUPT, "the snapshot is damaged");
    }
    uint8_t *bytes = mem_new(1, row.a.size + row.b.size);
    memcpy(bytes, row.a.data, row.a.size);
    if (row.b.size > 0) {
        memcpy(bytes + row.a.size, row.b.data, row.b.size);
    }
    *memory = bytes;
    *snapshot = (struct log_snapshot){.index = row.number[0],
                                      .term = row.number[1],
                                      .configuration_index = row.number[2],
                                      .configuration = bytes_of(bytes, row.a.size),
                                      .data = bytes_of(bytes + row.a.size, row.b.size)};
    return ERR_OK;
}

enum err raftdb_load_snapshot(struct raftdb *db, struct log_snapshot *snapshot, void **memory)
{
    sqlite3_stmt *s = query(db, "SELECT idx, term, conf_idx, conf, data, crc FROM snapshot");
    const enum err e = read_snapshot(db, s, snapshot, memory);

    (void)sqlite3_finalize(s);
    return e;
}

static enum err load_snapshot_into_image(struct raftdb *db, struct log_image *image)
{
    void *memory = NULL;
    const enum err e = raftdb_load_snapshot(db, &image->snapshot, &memory);
    const size_t head = image->snapshot.configuration.size;

    if (memory != NULL) {
        const size_t size = head + image->snapshot.data.size;
        uint8_t *copy = log_image_memory(image, size);
        memcpy(copy, memory, size);
        image->snapshot.configuration.data = copy;
        image->snapshot.data.data = copy + head;
        mem_free(memory);
    }
    return e;
}

static void add_entry(struct log_image *image, const struct raftdb_row *row)
{
    const size_t n = image->entry_count;

    if ((n & (n - 1)) == 0) { // grow at powers of two
        image->entry = mem_resize(image->entry, (n == 0 ? 1 : 2 * n) * sizeof *image->entry);
    }
    uint8_t *copy = log_image_memory(image, row->a.size);
    if (row->a.size > 0) {
        memcpy(copy, row->a.data, row->a.size);
    }
    image->entry[image->entry_count++] = (struct log_entry){.term = row->number[1],
                                                            .type = (uint16_t)row->number[2],
                                                            .data = bytes_of(copy, row->a.size)};
}

static enum err read_entries(struct raftdb *db, sqlite3_stmt *s, struct log_image *image)
{
    uint64_t before = 0; // term of the entry before
    int rc = 0;

    while ((rc = step(s)) == SQLITE_ROW) {
        const struct raftdb_row row = {
            .kind = 'l',
            .number = {raftdb_column_u64(s, 0), raftdb_column_u64(s, 1), raftdb_column_u64(s, 2)},
            .number_count = 3,
            .a = raftdb_column_bytes(s, 3),
        };
        if (!crc_matches(s, 4, &row)) {
            return raftdb_refuse(db, ERR_CORRUPT, "an entry of the log is damaged");
        }
        if (image->entry_count == 0) {
            image->first = row.number[0];
        }
        if (row.number[0] != image->first + image->entry_count) {
            return raftdb_refuse(db, ERR_CORRUPT, "an entry of the log is missing");
        }
        if (row.number[1] < before || row.number[1] > db->term || row.a.size == 0 ||
            row.a.size % 8 != 0 || row.number[2] < 1 || row.number[2] > 3) {
            return raftdb_refuse(db, ERR_CORRUPT, "an entry of the log is not valid");
        }
        before = row.number[1];
        add_entry(image, &row);
    }
    return rc == SQLITE_DONE ? ERR_OK : raftdb_refuse(db, ERR_CORRUPT, sqlite3_errmsg(db->sql));
}

/* Snapshot and log must join, and end where the last write left them. */
static enum err check_extent(struct raftdb *db, struct log_image *image, struct bytes configuration)
{
    const struct log_snapshot *snapshot = &image->snapshot;

    if (image->entry_count == 0) {
        image->first = snapshot->index + 1;
    }
    const uint64_t last = image->first + image->entry_count - 1;
    if (last != db->last || last == 0) {
        return raftdb_refuse(db, ERR_CORRUPT, "the end of the log is missing");
    }
    if (image->first > snapshot->index + 1 || last < snapshot->index) {
        return raftdb_refuse(db, ERR_CORRUPT, "the log does not join the snapshot");
    }
    const struct bytes stored =
        snapshot->index > 0 ? snapshot->configuration : image->entry[0].data;
    if (configuration.size > 0 && !bytes_equal(stored, configuration)) {
        return raftdb_refuse(db, ERR_FOREIGN, "the log belongs to another set of voters");
    }
    return ERR_OK;
}

static enum err read_generation(struct raftdb *db, sqlite3_stmt *s, struct log_image *image)
{
    if (step(s) != SQLITE_ROW) {
        return raftdb_refuse(db, ERR_CORRUPT, "the row that names its generation is missing");
    }
    const struct raftdb_row row = {.kind = 'g', .a = raftdb_column_bytes(s, 0)};
    if (!crc_matches(s, 1, &row) || row.a.size == 0) {
        return raftdb_refuse(db, ERR_CORRUPT, "the row that names its generation is damaged");
    }
    image->generation =
        bytes_of(memcpy(log_image_memory(image, row.a.size), row.a.data, row.a.size), row.a.size);
    return ERR_OK;
}

static enum err load_generation(struct raftdb *db, struct log_image *image)
{
    sqlite3_stmt *s = query(db, "SELECT data, crc FROM generation");
    const enum err e = read_generation(db, s, image);

    (void)sqlite3_finalize(s);
    return e;
}

struct raftdb *raftdb_over(sqlite3 *sql, const char *directory)
{
    struct raftdb *db = mem_new(1, sizeof *db);

    db->sql = sql;
    db->write_counter.file = -1;
    db->quiet = true;
    (void)snprintf(db->path, sizeof db->path, "%s/raft.db", directory);
    (void)snprintf(
        db->write_counter_path, sizeof db->write_counter_path, "%s/raft.tail", directory);
    return db;
}

enum err raftdb_load_image(struct raftdb *db, struct log_image *image, struct bytes configuration)
{
    image->term = db->term;
    image->vote = db->vote;
    image->identity = db->identity;
    image->admitted = db->admitted;
    image->joining = strcmp(db->voters, "joining") == 0;
    enum err e = read_peers(db, image);
    if (e == ERR_OK && db->changed) {
        e = load_generation(db, image);
    }
    if (e == ERR_OK) {
        e = load_snapshot_into_image(db, image);
    }
    if (e == ERR_OK) {
        sqlite3_stmt *s = query(db, "SELECT idx, term, type, data, crc FROM log ORDER BY idx");
        e = read_entries(db, s, image);
        (void)sqlite3_finalize(s);
    }
    return e == ERR_OK ? check_extent(db, image, configuration) : e;
}
