/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies a log to a state again and compares the result with state.db.
 */
#include "storage/state/replay.h"

#include "base/mutant.h"
#include "storage/log/entry.h"
#include "storage/log/statement_sqlite.h"
#include "wire/control.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { PROGRESS_EVERY = 256 };

static enum err fail(struct replay *r, const char *format, uint64_t index)
{
    // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): this file's own formats, one number each
    (void)snprintf(r->why, sizeof r->why, "%s, index %" PRIu64, format, index);
    return ERR_CORRUPT;
}

static enum err open_empty(struct replay *r)
{
    *r = (struct replay){0};
    state_init(&r->state);
    return state_db_open(&r->db, NULL);
}

enum err replay_open_state(struct replay *r, struct bytes state, uint64_t index)
{
    const enum err error = open_empty(r);

    if (error != ERR_OK) {
        return error;
    }
    if (!state_db_restore(r->db, state, &r->state)) {
        return fail(r, "the state in the snapshot can't be loaded", index);
    }
    r->index = index;
    return ERR_OK;
}

enum err replay_open(struct replay *r, const struct log_snapshot *snapshot)
{
    struct bytes state = {0};
    uint64_t index = 0;

    if (snapshot->index == 0) {
        return open_empty(r);
    }
    if (!entry_open_snapshot(snapshot->data, &index, &state) || index != snapshot->index) {
        *r = (struct replay){0};
        state_init(&r->state);
        return fail(r, "the snapshot can't be decoded", snapshot->index);
    }
    return replay_open_state(r, state, index);
}

static enum err apply_entry(struct replay *r, uint64_t index, struct bytes entry)
{
    struct entry_reader reader;
    struct bytes packed;

    entry_open(&reader, entry);
    while (entry_next(&reader, &packed)) {
        struct state_result result = {0};
        Rh__Command *command;

        if (entry_is_seal(packed)) {
            break; // nothing follows it that counts, but barriers
        }
        command = command_get(packed);
        if (command == NULL) {
            return fail(r, "a command is of a newer version, or damaged", index);
        }
        state_apply(&r->state, command, &result);
        state_db_apply(r->db, &r->state, command, &result);
        state_result_fini(&result);
        command_free(command);
    }
    return entry_bad(&reader) ? fail(r, "an entry can't be decoded", index) : ERR_OK;
}

enum err replay_run(struct replay *r, const struct log_image *image, uint64_t until,
                    struct replay_watch watch)
{
    const uint64_t start = r->index;

    if (image->first > r->index + 1 && image->entry_count > 0) {
        return fail(r, "the log begins after", r->index);
    }
    while (r->index < until) {
        const uint64_t index = r->index + 1;
        const size_t at = (size_t)(index - image->first);

        if (at >= image->entry_count) {
            return fail(r, "the log ends before", index);
        }
        if (image->entry[at].type == ENTRY_COMMANDS) {
            const enum err error = apply_entry(r, index, image->entry[at].data);

            if (error != ERR_OK) {
                return error;
            }
        }
        state_db_commit(r->db, index);
        r->index = index;
        if (watch.progress != NULL && (index % PROGRESS_EVERY == 0 || index == until)) {
            watch.progress(watch.context, index - start, until - start);
        }
    }
    return ERR_OK;
}

/* ---- comparing ---- */

/* The ring's blob is written at snapshots only; its digest is compared. */
static const struct {
    const char *name;
    const char *rows;
} tables[] = {
    {"cluster",
     "SELECT name, cluster_id, key0, key1, vnodes_per_weight, number, era, grid, version, digest,"
     " applied, settling FROM cluster"},
    // What an older version did not write is not compared: role.
    {"node",
     "SELECT slot, name, address, zone, incarnation, nonce, boot_id, data_uuid, weight, leaving,"
     " stopping, barred, clean FROM node ORDER BY 1"},
    {"vnode", "SELECT * FROM vnode ORDER BY 1"},
    {"txn", "SELECT * FROM txn ORDER BY 1"},
    {"txn_move", "SELECT * FROM txn_move ORDER BY 1, 2"},
    {"txn_vote", "SELECT * FROM txn_vote ORDER BY 1, 2"},
    {"voter", "SELECT * FROM voter ORDER BY 1"},
    {"event", "SELECT * FROM event ORDER BY 1"},
    {"kind", "SELECT number, name, role, placement FROM kind ORDER BY 1"},
    {"segment", "SELECT number, role, policy, from_cell, to_cell, open FROM segment ORDER BY 1"},
    {"suspect",
     "SELECT kind, id, quarantined, strikes, struck_us, since_us, node FROM suspect"
     " ORDER BY 1, 2"},
};

/* Tables before this one every version has written; an older one may lack the rest. */
enum { TABLES_EVER = 8 };

static bool same_value(sqlite3_stmt *a, sqlite3_stmt *b, int column)
{
    const int type = sqlite3_column_type(a, column);

    if (type != sqlite3_column_type(b, column)) {
        return false;
    }
    if (type == SQLITE_INTEGER) {
        return sqlite3_column_int64(a, column) == sqlite3_column_int64(b, column);
    }
    const void *left = sqlite3_column_blob(a, column);
    const void *right = sqlite3_column_blob(b, column);
    const int size = sqlite3_column_bytes(a, column);
    return size == sqlite3_column_bytes(b, column) &&
           (size == 0 || memcmp(left, right, (size_t)size) == 0);
}

static bool same_row(sqlite3_stmt *a, sqlite3_stmt *b)
{
    const int columns = sqlite3_column_count(a);

    for (int i = 0; i < columns; i++) {
        if (!same_value(a, b, i)) {
            return false;
        }
    }
    return true;
}

static bool same_table(struct replay *r, sqlite3 *cache, const char *name, const char *rows)
{
    sqlite3_stmt *mine = NULL;
    sqlite3_stmt *its = NULL;
    bool same = sqlite3_prepare_v2(state_db_handle(r->db), rows, -1, &mine, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(cache, rows, -1, &its, NULL) == SQLITE_OK &&
                sqlite3_column_count(mine) == sqlite3_column_count(its);
    uint64_t row = 0;

    while (same) {
        const int a = sqlite3_step(mine);
        const int b = sqlite3_step(its);

        if (a != SQLITE_ROW && a == b) {
            break;
        }
        row++;
        same = a == b && same_row(mine, its);
    }
    if (!same) {
        (void)snprintf(r->why,
                       sizeof r->why,
                       "table %s differs from what the log says, at row %" PRIu64,
                       name,
                       row);
    }
    (void)sqlite3_finalize(mine);
    (void)sqlite3_finalize(its);
    return same;
}

static bool has_table(sqlite3 *cache, const char *name)
{
    sqlite3_stmt *s = NULL;
    const bool has =
        sqlite3_prepare_v2(
            cache, "SELECT 1 FROM sqlite_master WHERE type='table' AND name=?", -1, &s, NULL) ==
            SQLITE_OK &&
        sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW;

    (void)sqlite3_finalize(s);
    return has;
}

bool replay_matches(struct replay *r, sqlite3 *cache)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (i >= TABLES_EVER && !has_table(cache, tables[i].name)) {
            continue;
        }
        if (!same_table(r, cache, tables[i].name, tables[i].rows)) {
            return false;
        }
    }
    return true;
}

/* ---- a new era ---- */

void replay_raise(struct replay *r, uint64_t era, uint64_t lease_us, uint64_t time_us)
{
    struct state *s = &r->state;
    char why[48];

    state_raise(s, era, lease_us);
    (void)snprintf(why, sizeof why, "era %" PRIu64, era);
    struct statement q =
        statement_open(state_db_handle(r->db),
                       "UPDATE cluster SET era=?, number=?, version=?, settling=?, lease_us=?,"
                       " name=?");
    statement_number(&q, era);
    statement_number(&q, s->number);
    statement_number(&q, s->number);
    statement_number(&q, !mutant(M_ERALOST));
    statement_number(&q, s->lease_us);
    statement_text(&q, s->cluster);
    statement_run(&q);
    statement_close(&q);
    q = statement_open(state_db_handle(r->db),
                       "INSERT INTO event(time_us, proposer, command, accepted, stamp, why)"
                       " VALUES(?,0,'restore',1,?,?)");
    statement_number(&q, time_us);
    statement_number(&q, s->number);
    statement_text(&q, why);
    statement_run(&q);
    statement_close(&q);
    state_check(s);
}

void replay_state(struct replay *r, struct buffer *out)
{
    state_db_snapshot(r->db, &r->state, out);
}

void replay_fini(struct replay *r)
{
    state_db_close(r->db);
    state_fini(&r->state);
    r->db = NULL;
}
