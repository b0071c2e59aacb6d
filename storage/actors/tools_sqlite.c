/* SPDX-License-Identifier: Apache-2.0
 *
 * The tools of a store that is a SQLite file.
 */
#include "storage/actors/tools_sqlite.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/mem.h"
#include "storage/actors/store_sqlite.h"
#include "storage/log/readonly_sqlite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4200 };

struct whole_sqlite {
    struct whole_store whole;
    struct readonly_db beside; /* BESIDE */
    sqlite3 *db;               /* whatever it is open for */
    uint16_t kind;             /* of the actor that was listed last, … */
    uint8_t id_size;           /* … 0 = none was */
    uint8_t id[STORE_ID_MAX];
};

static enum err fail(char why[STORE_TOOLS_WHY_SIZE], enum err error, const char *text)
{
    (void)snprintf(why, STORE_TOOLS_WHY_SIZE, "%s", text);
    return error;
}

/* The first number that the statement tells; false: it fails, or tells none. */
static bool number_of(sqlite3 *db, const char *sql, uint64_t *out)
{
    sqlite3_stmt *stmt = NULL;
    const bool told = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK &&
                      sqlite3_step(stmt) == SQLITE_ROW;

    *out = told ? (uint64_t)sqlite3_column_int64(stmt, 0) : 0;
    (void)sqlite3_finalize(stmt);
    return told;
}

/* Read what is committed now, until store_close(): one transaction. */
static enum err open_reading(struct readonly_db *p, const char *path,
                             char why[STORE_TOOLS_WHY_SIZE])
{
    const enum err error = readonly_open(p, path, true);
    uint64_t version;

    if (error != ERR_OK) {
        return fail(why, error, p->why);
    }
    if (sqlite3_exec(p->sql, "BEGIN", NULL, NULL, NULL) != SQLITE_OK ||
        !number_of(p->sql, "SELECT version FROM store", &version)) {
        (void)snprintf(why,
                       STORE_TOOLS_WHY_SIZE,
                       "it is no store of durable actors, or can't be read: %s",
                       sqlite3_errmsg(p->sql));
        return ERR_CORRUPT;
    }
    const char *fault = store_version_fault(version);
    return fault == NULL ? ERR_OK : fail(why, ERR_CORRUPT, fault);
}

/* ---- check ---- */

struct rule {
    const char *what; /* is wrong with each row that is found … */
    const char *sql;  /* … kind, id, key or NULL, and perhaps a number */
};

/* The rules of one table whose rows are found by kind, id and key. */
#define RULES_OF(table, key, bytes)                                                          \
    {"a row of " table " has no actor",                                                      \
     "SELECT kind, id, " key " FROM " table " t WHERE NOT EXISTS"                            \
     " (SELECT 1 FROM actor a WHERE a.kind = t.kind AND a.id = t.id)"},                      \
        {"the key of a row of " table " is not 1 to 255 bytes",                              \
         "SELECT kind, id, " key ", length(" key ") FROM " table " WHERE typeof(" key        \
         ") <> 'blob'"                                                                       \
         " OR length(" key ") NOT BETWEEN 1 AND 255"},                                       \
    {                                                                                        \
        "a row of " table " is not at most 1048576 bytes",                                   \
            "SELECT kind, id, " key ", length(" bytes ") FROM " table " WHERE typeof(" bytes \
            ") <> 'blob' OR length(" bytes ") > 1048576"                                     \
    }

static const struct rule rules[] = {
    {"its kind is not 0 to 65535, or its id not 1 to 255 bytes",
     "SELECT kind, id, NULL FROM actor WHERE typeof(kind) <> 'integer' OR kind NOT BETWEEN 0 AND"
     " 65535 OR typeof(id) <> 'blob' OR length(id) NOT BETWEEN 1 AND 255"},
    {"its fence or the number of its commits is no number",
     "SELECT kind, id, NULL FROM actor WHERE typeof(fence) <> 'integer' OR typeof(number) <>"
     " 'integer' OR fence < 0 OR number < 0"},
    {"it has more than 65536 values",
     "SELECT kind, id, NULL, count(*) FROM value GROUP BY kind, id HAVING count(*) > 65536"},
    {"its values are more than 67108864 bytes",
     "SELECT kind, id, NULL, sum(length(key) + length(value)) FROM value GROUP BY kind, id"
     " HAVING sum(length(key) + length(value)) > 67108864"},
    RULES_OF("value", "key", "value"),
    RULES_OF("answer", "name", "answer"),
    RULES_OF("alarm", "name", "payload"),
    RULES_OF("send", "number", "message"),
    RULES_OF("taken", "sender", "last"),
    {"its alarm has no time",
     "SELECT kind, id, name FROM alarm WHERE typeof(due) <> 'integer' OR typeof(every) <>"
     " 'integer' OR due < 0 OR every < 0"},
    // Its number is that of the commit and its place in there (node/durable/outbox.c).
    {"its send is newer than its last commit",
     "SELECT kind, id, s.number FROM send s JOIN actor a USING (kind, id)"
     " WHERE hex(substr(s.number, 1, 6)) > printf('%012X', a.number)"},
};

static struct bytes blob_at(sqlite3_stmt *row, int column)
{
    const void *data = sqlite3_column_blob(row, column); // first: it sets the size

    return bytes_of(data, (size_t)sqlite3_column_bytes(row, column));
}

static void tell_row(sqlite3_stmt *row, const struct rule *rule, store_on_finding *on_finding,
                     void *context)
{
    const bool has_number = sqlite3_column_count(row) > 3;
    const struct store_finding f = {
        .kind = sqlite3_column_int64(row, 0),
        .id = blob_at(row, 1),
        .has_key = sqlite3_column_type(row, 2) != SQLITE_NULL,
        .key = blob_at(row, 2),
        .what = rule->what,
        .has_number = has_number,
        .number = has_number ? sqlite3_column_int64(row, 3) : 0,
    };

    store_tools_tell(&f, on_finding, context);
}

static bool check_rule(sqlite3 *db, const struct rule *rule, store_on_finding *on_finding,
                       void *context)
{
    sqlite3_stmt *row = NULL;
    int code = sqlite3_prepare_v2(db, rule->sql, -1, &row, NULL);

    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(row);
        if (code == SQLITE_ROW) {
            tell_row(row, rule, on_finding, context);
        }
    }
    (void)sqlite3_finalize(row);
    return code == SQLITE_DONE;
}

/* SQLite's own: many lines, or "ok". */
static void check_file(sqlite3 *db, store_on_finding *on_finding, void *context)
{
    sqlite3_stmt *row = NULL;
    int code = sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &row, NULL);

    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(row);
        const char *text = code == SQLITE_ROW ? (const char *)sqlite3_column_text(row, 0) : NULL;

        if (text != NULL && strcmp(text, "ok") != 0) {
            on_finding(context, text);
        }
    }
    if (code != SQLITE_DONE) {
        on_finding(context, sqlite3_errmsg(db));
    }
    (void)sqlite3_finalize(row);
}

static bool check(struct whole_store *w, store_on_finding *on_finding, void *context)
{
    sqlite3 *db = ((struct whole_sqlite *)w)->db;

    check_file(db, on_finding, context);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (!check_rule(db, &rules[i], on_finding, context)) {
            on_finding(context, sqlite3_errmsg(db));
        }
    }
    return true;
}

/* ---- stats ---- */

static bool read_figures(sqlite3 *db, struct store_figures *out)
{
    uint64_t pages = 0;
    uint64_t spare = 0;
    uint64_t size = 0;
    char due[80];

    (void)snprintf(due,
                   sizeof due,
                   "SELECT count(*) FROM alarm WHERE due <= %" PRIu64,
                   clock_wall_us() / 1000);
    const bool read =
        number_of(db, "SELECT count(*) FROM actor", &out->actors) &&
        number_of(db, "SELECT count(*) FROM value", &out->values) &&
        number_of(db, "SELECT sum(length(key) + length(value)) FROM value", &out->value_bytes) &&
        number_of(db, "SELECT count(*) FROM answer", &out->answers) &&
        number_of(
            db, "SELECT sum(length(name) + length(answer)) FROM answer", &out->answer_bytes) &&
        number_of(db, "SELECT count(*) FROM alarm", &out->alarms) &&
        number_of(db, "SELECT sum(length(name) + length(payload)) FROM alarm", &out->alarm_bytes) &&
        number_of(db, due, &out->alarms_due) &&
        number_of(db, "SELECT min(due) FROM alarm", &out->next_due_ms) &&
        number_of(db, "SELECT count(*) FROM send", &out->sends) &&
        number_of(db, "SELECT sum(length(number) + length(message)) FROM send", &out->send_bytes) &&
        number_of(db, "SELECT count(*) FROM taken", &out->taken) &&
        number_of(db, "SELECT read_back FROM store", &out->read_back) &&
        number_of(db, "PRAGMA page_count", &pages) &&
        number_of(db, "PRAGMA freelist_count", &spare) && number_of(db, "PRAGMA page_size", &size);

    out->file_bytes = pages * size;
    out->free_bytes = spare * size;
    return read;
}

static bool figures(struct whole_store *w, struct store_figures *out)
{
    sqlite3 *db = ((struct whole_sqlite *)w)->db;

    return read_figures(db, out) || fail(w->why, ERR_IO, sqlite3_errmsg(db)) == ERR_OK;
}

static bool vacuum(struct whole_store *w)
{
    return store_sqlite_vacuum(w->store, w->why);
}

/* ---- alone ---- */

/* True if it was done; else `why`. */
static bool does(struct whole_store *w, const char *sql)
{
    sqlite3 *db = ((struct whole_sqlite *)w)->db;
    const bool done = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;

    if (!done) {
        (void)fail(w->why, ERR_IO, sqlite3_errmsg(db));
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL); // of what has begun, if anything
    }
    return done;
}

/* NULL: `why`. */
static sqlite3_stmt *prepare(struct whole_store *w, const char *sql)
{
    sqlite3 *db = ((struct whole_sqlite *)w)->db;
    sqlite3_stmt *stmt = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        (void)fail(w->why, ERR_IO, sqlite3_errmsg(db));
    }
    return stmt;
}

static bool fence(struct whole_store *w, struct store_task *t)
{
    w->why[0] = '\0';
    return store_sqlite_fence(w->store, t);
}

static bool list(struct whole_store *w, size_t max, struct store_task **task, size_t *count)
{
    struct whole_sqlite *s = (struct whole_sqlite *)w;
    sqlite3_stmt *q = prepare(w,
                              "SELECT kind, id, fence FROM actor WHERE (kind, id) > (?, ?)"
                              " ORDER BY kind, id LIMIT ?");

    *count = 0;
    if (q == NULL) {
        return false;
    }
    (void)sqlite3_bind_int(q, 1, s->kind);
    (void)sqlite3_bind_blob(
        q, 2, s->id_size == 0 ? (const void *)"" : s->id, s->id_size, SQLITE_STATIC);
    (void)sqlite3_bind_int(q, 3, (int)(max < WHOLE_PAGE_MAX ? max : WHOLE_PAGE_MAX));
    bool good = true;
    int code;
    while ((code = sqlite3_step(q)) == SQLITE_ROW && good) {
        task[*count] = whole_claim((uint64_t)sqlite3_column_int64(q, 0),
                                   blob_at(q, 1),
                                   (uint64_t)sqlite3_column_int64(q, 2),
                                   w->why);
        good = task[*count] != NULL;
        *count += good ? 1 : 0;
    }
    (void)sqlite3_finalize(q);
    if (!good) {
        return false;
    }
    if (*count > 0) {
        const struct store_task *last = task[*count - 1];

        s->kind = last->kind;
        s->id_size = last->id_size;
        memcpy(s->id, last->id, sizeof s->id);
    }
    return code == SQLITE_DONE || fail(w->why, ERR_IO, sqlite3_errmsg(s->db)) == ERR_OK;
}

static bool adopt(struct whole_store *w, struct store_task *const *commit, size_t count)
{
    struct whole_sqlite *s = (struct whole_sqlite *)w;
    sqlite3_stmt *q = prepare(w,
                              "INSERT INTO entry (kind, id, part, key, fence, number)"
                              " VALUES (?, ?, 0, x'', ?, ?)");
    bool good = q != NULL && does(w, "BEGIN IMMEDIATE");

    for (size_t i = 0; i < count && good; i++) {
        (void)sqlite3_bind_int(q, 1, commit[i]->kind);
        (void)sqlite3_bind_blob(q, 2, commit[i]->id, commit[i]->id_size, SQLITE_STATIC);
        (void)sqlite3_bind_int64(q, 3, (sqlite3_int64)commit[i]->fence);
        (void)sqlite3_bind_int64(q, 4, (sqlite3_int64)commit[i]->number - 1);
        good =
            sqlite3_step(q) == SQLITE_DONE || fail(w->why, ERR_IO, sqlite3_errmsg(s->db)) == ERR_OK;
        (void)sqlite3_reset(q);
    }
    (void)sqlite3_finalize(q);
    return good && does(w, "COMMIT");
}

static bool set_version(struct whole_store *w, uint64_t version)
{
    char sql[64];

    (void)snprintf(sql, sizeof sql, "UPDATE store SET version = %" PRIu64, version);
    return does(w, sql);
}

static bool clear(struct whole_store *w)
{
    return does(w, "DELETE FROM entry");
}

/* ---- opening ---- */

static void close_whole(struct whole_store *w)
{
    struct whole_sqlite *s = (struct whole_sqlite *)w;

    if (w->store != NULL) {
        w->store->close(w->store);
    } else {
        readonly_close(&s->beside);
    }
    mem_free(s);
}

static enum err open_alone(struct whole_sqlite *s, const char *path, enum whole_use use,
                           char why[STORE_TOOLS_WHY_SIZE])
{
    char fault[STORE_SQLITE_WHY_SIZE] = "";

    s->whole.store = use == WHOLE_TARGET ? store_sqlite_open_target(path, fault)
                                         : store_sqlite_open_alone(path, fault);
    if (s->whole.store == NULL) {
        return fail(why, ERR_LOCKED, fault);
    }
    s->db = store_sqlite_db(s->whole.store);
    return ERR_OK;
}

enum err tools_sqlite_open(const char *path, enum whole_use use, struct whole_store **out,
                           char why[STORE_TOOLS_WHY_SIZE])
{
    struct whole_sqlite *s = mem_new(1, sizeof *s);
    enum err error;

    s->whole = (struct whole_store){
        .check = check,
        .figures = figures,
        .vacuum = vacuum,
        .fence = fence,
        .list = list,
        .adopt = adopt,
        .set_version = set_version,
        .clear = clear,
        .close = close_whole,
    };
    if (use == WHOLE_BESIDE) {
        error = open_reading(&s->beside, path, why);
        s->db = s->beside.sql;
    } else {
        error = open_alone(s, path, use, why);
    }
    if (error != ERR_OK) {
        if (use == WHOLE_BESIDE) {
            readonly_close(&s->beside);
        }
        mem_free(s);
        return error;
    }
    (void)number_of(s->db, "SELECT version FROM store", &s->whole.version);
    *out = &s->whole;
    return ERR_OK;
}

/* ---- backup ---- */

static enum err copy_to(sqlite3 *from, const char *temporary, char why[STORE_TOOLS_WHY_SIZE])
{
    sqlite3 *to = NULL;
    enum err error = ERR_OK;

    if (sqlite3_open_v2(temporary, &to, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        error = fail(why, ERR_IO, sqlite3_errmsg(to));
    } else {
        sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
        const int code = backup == NULL ? SQLITE_ERROR : sqlite3_backup_step(backup, -1);

        if ((backup != NULL && sqlite3_backup_finish(backup) != SQLITE_OK) || code != SQLITE_DONE) {
            error = fail(why, ERR_IO, sqlite3_errmsg(to));
        }
    }
    if (sqlite3_close(to) != SQLITE_OK && error == ERR_OK) {
        error = fail(why, ERR_IO, "the copy can't be closed");
    }
    return error;
}

static enum err give_name(const char *temporary, const char *target, char why[STORE_TOOLS_WHY_SIZE])
{
    FILE *file = fopen(temporary, "r+e");
    const bool kept = file != NULL && fsync(fileno(file)) == 0;
    const int failure = errno;

    if (file != NULL) {
        (void)fclose(file);
    }
    if (!kept) {
        return fail(why, ERR_IO, strerror(failure));
    }
    if (rename(temporary, target) != 0 || !directory_sync_of(target)) {
        return fail(why, ERR_IO, strerror(errno));
    }
    return ERR_OK;
}

/* Only a store that nobody has open is replaced, and by its close its log is gone: it would be
 * taken for that of the copy. */
static enum err make_way(const char *target, bool replace, char why[STORE_TOOLS_WHY_SIZE])
{
    char fault[STORE_SQLITE_WHY_SIZE];
    char log[PATH_SIZE];
    struct stat status;

    if (lstat(target, &status) != 0) {
        (void)snprintf(log, sizeof log, "%s-wal", target);
        return lstat(log, &status) != 0
                   ? ERR_OK
                   : fail(why, ERR_CONFLICT, "a log of another file lies beside the target");
    }
    if (!replace) {
        return fail(why, ERR_CONFLICT, "the target exists already: give --force to replace it");
    }
    struct actor_store *old = store_sqlite_open_alone(target, fault);
    if (old == NULL) {
        (void)snprintf(why, STORE_TOOLS_WHY_SIZE, "the target can't be replaced: %.200s", fault);
        return ERR_CONFLICT;
    }
    old->close(old);
    return ERR_OK;
}

enum err tools_sqlite_backup(const char *path, const char *target, bool replace,
                             char why[STORE_TOOLS_WHY_SIZE])
{
    struct readonly_db p;
    char temporary[PATH_SIZE];

    (void)snprintf(temporary, sizeof temporary, "%s.new", target);
    enum err error = open_reading(&p, path, why);
    error = error == ERR_OK ? make_way(target, replace, why) : error;
    const int fd = error == ERR_OK ? directory_new_file(temporary) : -1;
    if (error == ERR_OK && fd < 0) {
        error = fail(why, ERR_IO, strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
        error = copy_to(p.sql, temporary, why);
        error = error == ERR_OK ? give_name(temporary, target, why) : error;
        (void)unlink(temporary); // it has gone if all went well
    }
    readonly_close(&p);
    return error;
}
