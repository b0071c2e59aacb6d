/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims and commits of durable actors as transactions of SQLite.
 */
#include "storage/actors/store_sqlite.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "storage/actors/changes.h"
#include "storage/actors/due.h"
#include "storage/actors/verdict.h"
#include "storage/log/statement_sqlite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    // A millisecond each, in all less than requests wait: another node's transaction takes a few.
    BUSY_TRIES = 3000,
    PATH_SIZE = 4096,
};

struct store_sqlite {
    struct actor_store store;
    sqlite3 *db;
    struct statements statements;
    char path[PATH_SIZE];
    bool alone; /* nobody else has it open */
    bool made;  /* it is made if it is missing, and may be unfinished */
    bool doubt; /* a commit was in doubt, and the file could not be written since */
};

/* All rows of an actor are neighbours in one tree, so that a commit changes one page or two and a
 * claim reads them at one go. Part 0 is the actor itself, the others are changes of this kind, in
 * their order. */
#define TREE                                                                            \
    "CREATE TABLE IF NOT EXISTS store (one INTEGER PRIMARY KEY CHECK (one = 1),"        \
    " version INTEGER NOT NULL, read_back INTEGER NOT NULL);"                           \
    "INSERT OR IGNORE INTO store VALUES (1, 2, 0);"                                     \
    "CREATE TABLE IF NOT EXISTS entry (kind INTEGER NOT NULL, id BLOB NOT NULL,"        \
    " part INTEGER NOT NULL, key BLOB NOT NULL DEFAULT x'', bytes BLOB, fence INTEGER," \
    " number INTEGER, due INTEGER, every INTEGER, PRIMARY KEY (kind, id, part, key))"   \
    " WITHOUT ROWID;"                                                                   \
    "CREATE INDEX IF NOT EXISTS alarm_due ON entry (kind, due, id, key) WHERE part = 3;"

/* A view that can be read and written as the table that it is in PostgreSQL: `names` of its columns
 * behind kind and id, the columns of `entry` that they are, and the same of a new row; `key` is the
 * name of the first of them, if that is the key. */
#define VIEW(view, part, names, columns, values, key)                                        \
    "CREATE VIEW IF NOT EXISTS " view " (kind, id, " names ") AS SELECT kind, id, " columns  \
    " FROM entry WHERE part = " part ";"                                                     \
    "CREATE TRIGGER IF NOT EXISTS " view "_insert INSTEAD OF INSERT ON " view                \
    " BEGIN INSERT INTO entry (kind, id, part, " columns ") VALUES (NEW.kind, NEW.id, " part \
    ", " values "); END;"                                                                    \
    "CREATE TRIGGER IF NOT EXISTS " view "_update INSTEAD OF UPDATE ON " view                \
    " BEGIN UPDATE entry SET (kind, id, " columns ") = (NEW.kind, NEW.id, " values ")"       \
    " WHERE kind = OLD.kind AND id = OLD.id AND part = " part " AND key = " key "; END;"     \
    "CREATE TRIGGER IF NOT EXISTS " view "_delete INSTEAD OF DELETE ON " view                \
    " BEGIN DELETE FROM entry WHERE kind = OLD.kind AND id = OLD.id AND part = " part        \
    " AND key = " key "; END;"
#define PAIRS(view, part, key, bytes) \
    VIEW(view, part, key ", " bytes, "key, bytes", "NEW." key ", NEW." bytes, "OLD." key)

static const char *const schema[] = {
    TREE,
    VIEW("actor", "0", "fence, number", "fence, number", "NEW.fence, NEW.number", "x''"),
    PAIRS("value", "1", "key", "value"),
    PAIRS("answer", "2", "name", "answer"),
    VIEW("alarm", "3", "name, payload, due, every", "key, bytes, due, every",
         "NEW.name, NEW.payload, NEW.due, NEW.every", "OLD.name"),
    PAIRS("send", "4", "number", "message"),
    PAIRS("taken", "5", "sender", "last"),
};

/* Up to 64 MiB of log before its pages go to where they belong: most have changed again by then.
 * The cache is for those that do, 32 MiB. */
static const char settings[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                               "PRAGMA wal_autocheckpoint = 16384; PRAGMA cache_size = -32768;";

enum { PART_OF_CHANGE = 1 }; /* more than its enum change_of */

_Static_assert((int)CHANGE_ALARM + (int)PART_OF_CHANGE == 3 && (int)CHANGE_COUNT == 5,
               "what the schema says");
_Static_assert((int)STORE_VERSION == 2, "what the schema says");

/* ---- statements ---- */

/* A statement and whether all went well with it: its errors are no end of the process. */
struct prepared {
    sqlite3_stmt *stmt;
    int code; /* of SQLite; ROW and DONE are fine */
    int next; /* column to bind */
};

static struct prepared step_of(struct store_sqlite *s, const char *sql)
{
    sqlite3_stmt *stmt = statements_get(&s->statements, s->db, sql);

    return (struct prepared){.stmt = stmt, .code = stmt == NULL ? SQLITE_ERROR : SQLITE_OK};
}

static void put_number(struct prepared *q, uint64_t value)
{
    if (q->code == SQLITE_OK) {
        q->code = sqlite3_bind_int64(q->stmt, ++q->next, (sqlite3_int64)value);
    }
}

/* Borrowed until step_end(). */
static void put_blob(struct prepared *q, struct bytes bytes)
{
    if (q->code == SQLITE_OK) {
        // An empty blob is not NULL.
        const void *data = bytes.size > 0 ? (const void *)bytes.data : "";

        q->code = sqlite3_bind_blob64(q->stmt, ++q->next, data, bytes.size, SQLITE_STATIC);
    }
}

static void put_name(struct prepared *q, const struct store_task *t)
{
    put_number(q, t->kind);
    put_blob(q, bytes_of(t->id, t->id_size));
}

/* True if there is a row. */
static bool step_next(struct prepared *q)
{
    if (q->code == SQLITE_OK || q->code == SQLITE_ROW) {
        q->code = sqlite3_step(q->stmt);
    }
    return q->code == SQLITE_ROW;
}

/* True if all went well. */
static bool step_end(struct prepared *q)
{
    if (q->stmt != NULL) {
        (void)sqlite3_reset(q->stmt);
        (void)sqlite3_clear_bindings(q->stmt);
    }
    return q->code == SQLITE_DONE || q->code == SQLITE_ROW;
}

static bool run(struct store_sqlite *s, const char *sql)
{
    struct prepared q = step_of(s, sql);

    (void)step_next(&q);
    return step_end(&q);
}

/* ---- claims ---- */

static struct bytes blob_of(sqlite3_stmt *row, int column)
{
    return bytes_of(sqlite3_column_blob(row, column), (size_t)sqlite3_column_bytes(row, column));
}

/* Of columns part, key, bytes, due, every. */
static struct store_change row_of(sqlite3_stmt *row)
{
    return (struct store_change){
        .of = (enum change_of)(sqlite3_column_int(row, 0) - PART_OF_CHANGE),
        .key = blob_of(row, 1),
        .bytes = blob_of(row, 2),
        .due_ms = (uint64_t)sqlite3_column_int64(row, 3),
        .every_ms = (uint64_t)sqlite3_column_int64(row, 4),
    };
}

static bool load(struct store_sqlite *s, struct store_task *t)
{
    struct prepared q =
        step_of(s,
                "SELECT part, key, bytes, due, every FROM entry"
                " WHERE kind = ? AND id = ? AND part BETWEEN 1 AND 5 ORDER BY part, key");

    buffer_clear(&t->bytes);
    put_name(&q, t);
    while (step_next(&q)) {
        const struct store_change c = row_of(q.stmt);

        if (!change_is_good(&c)) {
            log_error("store",
                      "bad_value",
                      "file=%s kind=%u remedy=\"it is over its limits, so somebody else wrote it: "
                      "delete it\"",
                      s->path,
                      t->kind);
            t->result = STORE_UNAVAILABLE; // of this actor alone
            (void)step_end(&q);
            return true;
        }
        changes_put(&t->bytes, &c);
    }
    return step_end(&q) && q.code == SQLITE_DONE;
}

/* False: the store can't be read. */
static bool find_row(struct store_sqlite *s, const struct store_task *t, struct store_row *row)
{
    struct prepared q = step_of(s, "SELECT fence, number FROM actor WHERE kind = ? AND id = ?");

    *row = (struct store_row){0};
    put_name(&q, t);
    if (step_next(&q)) {
        row->fence = (uint64_t)sqlite3_column_int64(q.stmt, 0);
        row->number = (uint64_t)sqlite3_column_int64(q.stmt, 1);
    }
    return step_end(&q);
}

/* The fence of a row that is there stays if it is greater. */
static bool claim(struct store_sqlite *s, struct store_task *t)
{
    struct store_row row;
    struct prepared q =
        step_of(s,
                "INSERT INTO entry (kind, id, part, key, fence, number) VALUES (?, ?, 0, x'', ?, 0)"
                " ON CONFLICT (kind, id, part, key) DO UPDATE SET fence = excluded.fence"
                " WHERE fence < excluded.fence");
    put_name(&q, t);
    put_number(&q, t->fence);
    (void)step_next(&q);
    if (!step_end(&q)) {
        return false;
    }
    if (!find_row(s, t, &row)) {
        return false;
    }
    const bool mine = row.fence == t->fence;
    t->number = row.number;
    t->result = mine ? STORE_DONE : STORE_FENCED;
    return !mine || load(s, t);
}

/* ---- commits ---- */

static bool put_change(struct store_sqlite *s, const struct store_task *t,
                       const struct store_change *c)
{
    struct prepared q =
        step_of(s,
                c->gone ? "DELETE FROM entry WHERE kind = ? AND id = ? AND part = ? AND key = ?"
                        : "REPLACE INTO entry VALUES (?, ?, ?, ?, ?, NULL, NULL, ?, ?)");

    put_name(&q, t);
    put_number(&q, (uint64_t)c->of + PART_OF_CHANGE);
    put_blob(&q, c->key);
    if (!c->gone) {
        put_blob(&q, c->bytes);
    }
    if (!c->gone && c->of == CHANGE_ALARM) {
        put_number(&q, c->due_ms);
        put_number(&q, c->every_ms);
    }
    (void)step_next(&q);
    return step_end(&q);
}

/* Its row is not what it is for. */
static bool refuse(struct store_sqlite *s, struct store_task *t)
{
    const struct store_row mine = verdict_row_of(t);
    struct store_row found;

    t->result = STORE_FENCED;
    if (!find_row(s, t, &found)) {
        return false;
    }
    if (verdict_went_back(&mine, &found)) {
        verdict_stop(&s->store, t->kind, &mine, &found);
        t->result = STORE_UNAVAILABLE;
    }
    return true;
}

static bool commit(struct store_sqlite *s, struct store_task *t)
{
    struct bytes all = buffer_bytes(&t->bytes);
    struct store_change c;
    struct prepared q = step_of(s,
                                "UPDATE entry SET number = ?1 WHERE kind = ?2 AND id = ?3"
                                " AND part = 0 AND key = x''"
                                " AND number = ?1 - 1 AND (fence = ?4 OR ?5)");

    put_number(&q, t->number);
    put_name(&q, t);
    put_number(&q, t->fence);
    put_number(&q, mutant(M_NOFENCESTORE) ? 1 : 0);
    (void)step_next(&q);
    if (!step_end(&q)) {
        return false;
    }
    if (sqlite3_changes(s->db) != 1) {
        return refuse(s, t);
    }
    t->result = STORE_DONE;
    while (changes_next(&all, &c)) {
        if (!put_change(s, t, &c)) {
            return false;
        }
    }
    return true;
}

/* ---- alarms that are due ---- */

static bool due(struct store_sqlite *s, struct store_task *t)
{
    struct bytes given = buffer_bytes(&t->bytes);
    struct due_alarm after = {0};
    struct buffer page = {0};
    struct prepared q = step_of(s,
                                "SELECT due, id, key FROM entry WHERE part = 3 AND kind = ?1"
                                " AND due <= ?2 AND (due, id, key) > (?3, ?4, ?5)"
                                " AND typeof(due) = 'integer'"
                                " AND typeof(id) = 'blob' AND length(id) BETWEEN 1 AND 255"
                                " AND typeof(key) = 'blob' AND length(key) BETWEEN 1 AND 255"
                                " ORDER BY due, id, key LIMIT ?6");

    (void)due_next(&given, &after);
    put_number(&q, t->kind);
    put_number(&q, t->number);
    put_number(&q, after.due_ms);
    put_blob(&q, after.id);
    put_blob(&q, after.name);
    put_number(&q, STORE_DUE_MAX);
    while (step_next(&q)) {
        const struct due_alarm found = {.due_ms = (uint64_t)sqlite3_column_int64(q.stmt, 0),
                                        .id = blob_of(q.stmt, 1),
                                        .name = blob_of(q.stmt, 2)};

        due_put(&page, &found);
    }
    const bool read = step_end(&q) && q.code == SQLITE_DONE;
    buffer_fini(&t->bytes);
    t->bytes = page;
    t->result = STORE_DONE;
    return read;
}

/* ---- in doubt ---- */

/* What came of it: see store_sqlite.h. False: the store can't be read. */
static bool read_back(struct store_sqlite *s, struct store_task *t)
{
    const struct store_row mine = verdict_row_of(t);
    struct store_row found;

    if (!find_row(s, t, &found)) {
        return false;
    }
    const enum store_result result = verdict_of_doubt(&mine, &found);
    // The others may be asked at any time.
    t->result = (uint8_t)(t->verb == STORE_COMMIT ? result : STORE_UNAVAILABLE);
    return true;
}

static void resolve(struct store_sqlite *s, struct store_task *const *task, size_t count)
{
    bool read = run(s, "BEGIN IMMEDIATE") && run(s, "UPDATE store SET read_back = read_back + 1");

    for (size_t i = 0; i < count && read; i++) {
        // Those that were refused are so still: what refused them only grows.
        read = task[i]->result != STORE_DONE || read_back(s, task[i]);
    }
    if (read && run(s, "COMMIT")) {
        return;
    }
    (void)run(s, "ROLLBACK");
    s->doubt = true;
    for (size_t i = 0; i < count; i++) {
        task[i]->result = task[i]->verb == STORE_COMMIT ? STORE_UNKNOWN : STORE_UNAVAILABLE;
    }
}

/* Nothing is done before what was in doubt is settled: its pages may be in the log until somebody
 * else's take their place, and its actor's next life would not see them (docs/model: M_DOUBTLEFT).
 */
static bool settle(struct store_sqlite *s)
{
    if (s->doubt && run(s, "BEGIN IMMEDIATE") &&
        run(s, "UPDATE store SET read_back = read_back + 1") && run(s, "COMMIT")) {
        s->doubt = false;
    }
    if (s->doubt) {
        (void)run(s, "ROLLBACK");
    }
    return !s->doubt;
}

/* ---- the store ---- */

static void complain(const struct store_sqlite *s, const char *event)
{
    log_warn("store",
             event,
             "file=%s code=%d reason=\"%s\"",
             s->path,
             sqlite3_extended_errcode(s->db),
             sqlite3_errmsg(s->db));
}

static void refuse_all(struct store_task *const *task, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        task[i]->result = STORE_UNAVAILABLE;
    }
}

/* False: the store fails. */
static bool perform_one(struct store_sqlite *s, struct store_task *t)
{
    switch ((enum store_verb)t->verb) {
    case STORE_CLAIM:
        return claim(s, t);
    case STORE_COMMIT:
        return commit(s, t);
    case STORE_DUE:
        break;
    }
    return due(s, t);
}

/* True if the error is that of one task's rows, and not of the file or the machine. */
static bool is_of_one(const struct store_sqlite *s)
{
    const int code = sqlite3_errcode(s->db);

    return code == SQLITE_CONSTRAINT || code == SQLITE_TOOBIG;
}

/* False: nothing was changed, for one of the tasks spoils it for the others. */
static bool transact(struct store_sqlite *s, struct store_task *const *task, size_t count)
{
    bool good = run(s, "BEGIN IMMEDIATE");

    for (size_t i = 0; i < count && good; i++) {
        good = perform_one(s, task[i]);
    }
    const bool of_one = !good && count > 1 && is_of_one(s);
    const bool done = good && run(s, "COMMIT");
    if (!good || (!done && sqlite3_errcode(s->db) == SQLITE_FULL)) {
        complain(s, "not_written");
        (void)run(s, "ROLLBACK");
        refuse_all(task, count);
    } else if (!done) {
        complain(s, "commit_in_doubt");
        (void)run(s, "ROLLBACK");
        resolve(s, task, count);
    }
    return !of_one;
}

static void perform(struct actor_store *store, struct store_task *const *task, size_t count)
{
    struct store_sqlite *s = (struct store_sqlite *)store;

    if (verdict_is_stopped(store) || !settle(s)) {
        refuse_all(task, count);
    } else if (!transact(s, task, count)) {
        for (size_t i = 0; i < count; i++) {
            if (task[i]->verb != STORE_DUE) { // a page may have taken the place of its question
                (void)transact(s, &task[i], 1);
            }
        }
    }
}

static void close_store(struct actor_store *store)
{
    struct store_sqlite *s = (struct store_sqlite *)store;

    statements_fini(&s->statements);
    (void)sqlite3_close(s->db);
    mem_free(s);
}

/* SQLite's own waits grow, which is unfair to whoever has waited long. */
static int on_busy(void *context, int tries)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    (void)context;
    (void)nanosleep(&pause, NULL);
    return tries < BUSY_TRIES;
}

/* ---- opening ---- */

/* A number that no version has: there is none. */
static uint64_t version_of(struct store_sqlite *s)
{
    sqlite3_stmt *stmt = NULL;
    uint64_t version = UINT64_MAX;

    if (sqlite3_prepare_v2(s->db, "SELECT version FROM store", -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW) {
        version = (uint64_t)sqlite3_column_int64(stmt, 0);
    }
    (void)sqlite3_finalize(stmt);
    return version;
}

/* Another program's file, and a store of another version, stay as they are. */
static bool is_new(struct store_sqlite *s)
{
    sqlite3_stmt *stmt = NULL;
    const bool empty =
        sqlite3_prepare_v2(s->db, "SELECT 1 FROM sqlite_schema", -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_DONE;

    (void)sqlite3_finalize(stmt);
    return empty;
}

static bool make_schema(struct store_sqlite *s)
{
    bool made = true;

    for (size_t i = 0; i < sizeof schema / sizeof schema[0] && made; i++) {
        made = sqlite3_exec(s->db, schema[i], NULL, NULL, NULL) == SQLITE_OK;
    }
    return made;
}

/* Several nodes may begin with one file at the same time. */
static bool found(struct store_sqlite *s)
{
    const bool made = sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK &&
                      (!is_new(s) || make_schema(s)) &&
                      sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;

    if (!made && sqlite3_get_autocommit(s->db) == 0) {
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return made;
}

/* Whoever has the file open, with a write-ahead log, holds a lock on it all the time: the owner of
 * an actor, too, that does nothing. */
static bool lock_out(struct store_sqlite *s)
{
    return mutant(M_NOTALONE) ||
           sqlite3_exec(s->db,
                        "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT;",
                        NULL,
                        NULL,
                        NULL) == SQLITE_OK;
}

/* NULL = it is open. */
static const char *open_file(struct store_sqlite *s)
{
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (s->made ? SQLITE_OPEN_CREATE : 0);

    if (sqlite3_open_v2(s->path, &s->db, flags, NULL) != SQLITE_OK) {
        return sqlite3_errmsg(s->db);
    }
    if (s->alone && !lock_out(s)) {
        return sqlite3_errcode(s->db) == SQLITE_BUSY ? "somebody else has it open: stop the nodes"
                                                     : sqlite3_errmsg(s->db);
    }
    (void)sqlite3_busy_handler(s->db, on_busy, NULL);
    if (sqlite3_exec(s->db, settings, NULL, NULL, NULL) != SQLITE_OK) {
        return sqlite3_errmsg(s->db);
    }
    if (!statement_check(s->db)) {
        return "it is damaged: put a backup of it in its place";
    }
    if (!found(s)) {
        return sqlite3_errmsg(s->db);
    }
    const uint64_t version = version_of(s);
    return s->alone && s->made && version == STORE_UNFINISHED ? NULL : store_version_fault(version);
}

struct actor_store *store_sqlite_open(const char *path)
{
    struct store_sqlite *s = mem_new(1, sizeof *s);

    s->store = (struct actor_store){.perform = perform, .close = close_store};
    s->made = true;
    (void)snprintf(s->path, sizeof s->path, "%s", path);
    const char *why = open_file(s);
    if (why != NULL) {
        (void)fprintf(stderr, "ringhold node: --store: can't use %s: %s\n", path, why);
        close_store(&s->store);
        return NULL;
    }
    return &s->store;
}

static struct actor_store *open_alone(const char *path, bool made, char why[STORE_SQLITE_WHY_SIZE])
{
    struct store_sqlite *s = mem_new(1, sizeof *s);

    s->store = (struct actor_store){.perform = perform, .close = close_store};
    s->alone = true;
    s->made = made;
    (void)snprintf(s->path, sizeof s->path, "%s", path);
    const char *fault = open_file(s);
    if (fault != NULL) {
        (void)snprintf(why, STORE_SQLITE_WHY_SIZE, "%s", fault);
        close_store(&s->store);
        return NULL;
    }
    return &s->store;
}

struct actor_store *store_sqlite_open_alone(const char *path, char why[STORE_SQLITE_WHY_SIZE])
{
    return open_alone(path, false, why);
}

struct actor_store *store_sqlite_open_target(const char *path, char why[STORE_SQLITE_WHY_SIZE])
{
    return open_alone(path, true, why);
}

sqlite3 *store_sqlite_db(struct actor_store *store)
{
    return ((struct store_sqlite *)store)->db;
}

bool store_sqlite_fence(struct actor_store *store, struct store_task *t)
{
    struct store_sqlite *s = (struct store_sqlite *)store;
    struct prepared q = step_of(s, "SELECT fence FROM actor WHERE kind = ? AND id = ?");

    put_name(&q, t);
    const bool found = step_next(&q);
    t->fence = found ? (uint64_t)sqlite3_column_int64(q.stmt, 0) : 0;
    return step_end(&q) && found;
}

bool store_sqlite_vacuum(struct actor_store *store, char why[STORE_SQLITE_WHY_SIZE])
{
    struct store_sqlite *s = (struct store_sqlite *)store;
    const bool done = sqlite3_exec(s->db, "VACUUM", NULL, NULL, NULL) == SQLITE_OK;

    (void)snprintf(why, STORE_SQLITE_WHY_SIZE, "%s", done ? "" : sqlite3_errmsg(s->db));
    return done;
}
