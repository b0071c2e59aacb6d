/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps state.db up to date with what was applied, in one transaction for each
 * batch.
 */
#include "storage/state/db_sqlite.h"

#include "base/directory.h"
#include "base/log.h"
#include "base/mem.h"
#include "storage/state/event_sqlite.h"
#include "storage/state/load_sqlite.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static const char schema[] =
    "PRAGMA user_version=1;" // the fleet's format; put_format()
    "CREATE TABLE cluster(name TEXT, cluster_id INTEGER, key0 INTEGER, key1 INTEGER,"
    " vnodes_per_weight INTEGER, number INTEGER, era INTEGER, grid INTEGER, version INTEGER,"
    " digest TEXT, applied INTEGER, ring BLOB, settling INTEGER DEFAULT 0,"
    " lease_us INTEGER DEFAULT 0, fleet_high INTEGER DEFAULT 0);" // cluster_id is its low half
    "CREATE TABLE node(slot INTEGER PRIMARY KEY, name TEXT, address TEXT, zone TEXT,"
    " incarnation INTEGER, nonce INTEGER, boot_id BLOB, data_uuid BLOB, weight INTEGER,"
    " leaving INTEGER, stopping INTEGER, barred INTEGER, clean INTEGER, role TEXT DEFAULT '',"
    " wish INTEGER DEFAULT 0, wished INTEGER DEFAULT 0, kinds TEXT DEFAULT '',"
    " removed INTEGER DEFAULT 0);"
    "CREATE TABLE vnode(id INTEGER PRIMARY KEY, from_cell INTEGER, to_cell INTEGER, owner INTEGER,"
    " generation INTEGER, cold INTEGER, txn INTEGER);"
    "CREATE TABLE txn(number INTEGER PRIMARY KEY, state TEXT, base INTEGER, version INTEGER,"
    " superseded_by INTEGER, created_us INTEGER, decided_us INTEGER, why TEXT, outcome_why TEXT);"
    "CREATE TABLE txn_move(txn INTEGER, seq INTEGER, kind INTEGER, vnode INTEGER, other INTEGER,"
    " at INTEGER, from_node INTEGER, to_node INTEGER, PRIMARY KEY(txn, seq)) WITHOUT ROWID;"
    "CREATE TABLE txn_vote(txn INTEGER, node INTEGER, incarnation INTEGER, gives INTEGER,"
    " takes INTEGER, voted INTEGER, PRIMARY KEY(txn, node)) WITHOUT ROWID;" STATE_ROLE_TABLES
        STATE_SUSPECT_TABLE STATE_PIN_TABLE STATE_REMEMBERED_TABLE
    "CREATE TABLE voter(id INTEGER PRIMARY KEY, identity INTEGER, address TEXT);" EVENT_TABLE
    "INSERT INTO cluster(applied) VALUES(0);";

enum err state_db_open(struct state_db **out, const char *path)
{
    struct state_db *db = mem_new(1, sizeof *db);
    char side[4300];

    *out = NULL;
    if (path != NULL) {
        (void)snprintf(side, sizeof side, "%s-wal", path);
        (void)unlink(side);
        (void)snprintf(side, sizeof side, "%s-shm", path);
        (void)unlink(side);
    }
    const int made = path == NULL ? -1 : directory_new_file(path); // else for all to read
    if (made >= 0) {
        (void)close(made);
    }
    path = path == NULL ? ":memory:" : path;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(path, &db->db, flags, NULL) != SQLITE_OK ||
        sqlite3_exec(db->db,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA busy_timeout=1000",
                     NULL,
                     NULL,
                     NULL) != SQLITE_OK ||
        sqlite3_exec(db->db, schema, NULL, NULL, NULL) != SQLITE_OK) {
        log_error("storage",
                  "cannot_open",
                  "file=%s reason=\"%s\" remedy=\"move the file away: it is a "
                  "copy that every start makes anew; give this user access to the folder, and free "
                  "space on the disk\"",
                  path,
                  sqlite3_errmsg(db->db));
        state_db_close(db);
        return ERR_IO;
    }
    *out = db;
    return ERR_OK;
}

void state_db_close(struct state_db *db)
{
    if (db != NULL) {
        statements_fini(&db->statements);
        (void)sqlite3_close(db->db);
        mem_free(db);
    }
}

static void begin(struct state_db *db)
{
    if (!db->open) {
        state_rows_run(db, "BEGIN");
        db->open = true;
    }
}

/* Older versions look there first, and do not load it then. */
static void put_format(struct state_db *db, uint32_t format)
{
    char sql[64];

    (void)snprintf(sql, sizeof sql, "PRAGMA user_version=%" PRIu32, format);
    statement_script(db->db, sql);
}

static unsigned whole_of(const Rh__Command *command, const struct state_result *result)
{
    const Rh__Delta *delta = result->delta;
    const bool registers = command->body_case == RH__COMMAND__BODY_REGISTER_;
    unsigned due = WHOLE_CLUSTER | WHOLE_NODES;

    if (delta != NULL &&
        (delta->created_vnodes > 0 || delta->renewed != 0 || delta->n_segments > 0)) {
        due |= WHOLE_VNODES;
    }
    if (registers || command->body_case == RH__COMMAND__BODY_DAEMONS) {
        due |= WHOLE_ROLES;
    }
    // Without suspects, too: old strikes are forgotten then, and what the dead had.
    if (command->body_case == RH__COMMAND__BODY_QUARANTINE ||
        command->body_case == RH__COMMAND__BODY_REASSIGN ||
        command->body_case == RH__COMMAND__BODY_DEREGISTER || registers) {
        due |= WHOLE_SUSPECTS;
    }
    if (command->body_case == RH__COMMAND__BODY_VOTER) {
        due |= WHOLE_VOTERS;
    }
    return due;
}

void state_db_apply(struct state_db *db, const struct state *s, const Rh__Command *command,
                    const struct state_result *result)
{
    begin(db);
    event_put(&db->statements, db->db, command, result);
    if (!result->accepted) {
        return;
    }
    if (command->body_case == RH__COMMAND__BODY_FORMAT ||
        command->body_case == RH__COMMAND__BODY_INIT) {
        put_format(db, s->format);
    }
    db->state = s;
    db->due |= whole_of(command, result);
    if (result->delta != NULL && (db->due & WHOLE_VNODES) == 0) {
        state_rows_put_vnodes(db, &s->view.ring, result->delta);
    }
    if (command->body_case == RH__COMMAND__BODY_PIN) {
        state_rows_put_pins(db, s, command->pin);
    }
    if (command->body_case == RH__COMMAND__BODY_REMEMBER) {
        state_rows_put_remembered(db, s, command->remember);
    }
    if (result->txn != 0) {
        state_rows_put_txn(db, s, result->txn);
    }
    for (size_t i = 0; i < result->aborted_count; i++) {
        state_rows_put_txn(db, s, result->aborted[i]);
    }
    if (result->txn != 0 || result->aborted_count > 0) {
        state_rows_prune_txns(db, s);
    }
}

void state_db_commit(struct state_db *db, uint64_t index)
{
    if (!db->open && index <= db->index) {
        return;
    }
    begin(db);
    state_rows_put_due(db);
    struct statement q = statement_kept(&db->statements, db->db, "UPDATE cluster SET applied=?");
    statement_number(&q, index);
    statement_run(&q);
    statement_close(&q);
    state_rows_run(db, "COMMIT");
    db->open = false;
    db->index = index;
}

uint64_t state_db_index(const struct state_db *db)
{
    return db->index;
}

struct sqlite3 *state_db_handle(const struct state_db *db)
{
    return db->db;
}

bool state_db_has_note(struct state_db *db, const char *subject, const char *what)
{
    return event_has_note(db->db, subject, what);
}

bool state_db_ends_with_note(struct state_db *db, const char *subject, const char *what)
{
    return event_ends_with_note(db->db, subject, what);
}

void state_db_events(struct state_db *db, uint32_t limit, Rh__AdminReply *reply)
{
    event_list(db->db, limit, reply);
}
