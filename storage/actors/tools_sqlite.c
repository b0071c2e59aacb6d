/* SPDX-License-Identifier: Apache-2.0
 *
 * The tools of a store that is a SQLite file.
 */
#include "storage/actors/tools.h"

#include "base/actor_name.h"
#include "base/directory.h"
#include "base/history.h"
#include "storage/actors/store_sqlite.h"
#include "storage/log/readonly_sqlite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4200 };

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
    return version == STORE_SQLITE_VERSION
               ? ERR_OK
               : fail(why, ERR_CORRUPT, "it is no store of this version of Ringhold");
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
     " 'integer'"},
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
     " 'integer'"},
};

static struct bytes blob_at(sqlite3_stmt *row, int column)
{
    const void *data = sqlite3_column_blob(row, column); // first: it sets the size

    return bytes_of(data, (size_t)sqlite3_column_bytes(row, column));
}

/* "actor 0/boss-7, key gold: a row of value has no actor (12)" */
static void tell_row(sqlite3_stmt *row, const struct rule *rule, store_on_finding *on_finding,
                     void *context)
{
    char line[STORE_TOOLS_LINE_SIZE];
    char id[ACTOR_NAME_ID_SIZE];
    char key[HISTORY_WORD_SIZE];
    char number[32] = "";
    const bool has_key = sqlite3_column_type(row, 2) != SQLITE_NULL;

    if (sqlite3_column_count(row) > 3) {
        (void)snprintf(number, sizeof number, " (%lld)", sqlite3_column_int64(row, 3));
    }
    (void)snprintf(line,
                   sizeof line,
                   "actor %lld/%s%s%s: %s%s",
                   sqlite3_column_int64(row, 0),
                   actor_name_print_id(blob_at(row, 1), id),
                   has_key ? ", key " : "",
                   has_key ? history_word(blob_at(row, 2), key) : "",
                   rule->what,
                   number);
    on_finding(context, line);
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

enum err store_tools_check(const char *path, store_on_finding *on_finding, void *context,
                           char why[STORE_TOOLS_WHY_SIZE])
{
    struct readonly_db p;
    const enum err error = open_reading(&p, path, why);

    if (error == ERR_OK) {
        check_file(p.sql, on_finding, context);
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
            if (!check_rule(p.sql, &rules[i], on_finding, context)) {
                on_finding(context, sqlite3_errmsg(p.sql));
            }
        }
    }
    readonly_close(&p);
    return error;
}

/* ---- stats ---- */

static bool read_figures(sqlite3 *db, struct store_figures *out)
{
    uint64_t pages = 0;
    uint64_t spare = 0;
    uint64_t size = 0;
    const bool read =
        number_of(db, "SELECT count(*) FROM actor", &out->actors) &&
        number_of(db, "SELECT count(*) FROM value", &out->values) &&
        number_of(db, "SELECT sum(length(key) + length(value)) FROM value", &out->value_bytes) &&
        number_of(db, "SELECT count(*) FROM answer", &out->answers) &&
        number_of(
            db, "SELECT sum(length(name) + length(answer)) FROM answer", &out->answer_bytes) &&
        number_of(db, "SELECT count(*) FROM alarm", &out->alarms) &&
        number_of(db, "SELECT sum(length(name) + length(payload)) FROM alarm", &out->alarm_bytes) &&
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

enum err store_tools_stats(const char *path, struct store_figures *out,
                           char why[STORE_TOOLS_WHY_SIZE])
{
    struct readonly_db p;
    enum err error = open_reading(&p, path, why);

    *out = (struct store_figures){0};
    if (error == ERR_OK && !read_figures(p.sql, out)) {
        error = fail(why, ERR_IO, sqlite3_errmsg(p.sql));
    }
    readonly_close(&p);
    return error;
}

/* ---- vacuum ---- */

enum err store_tools_vacuum(const char *path, char why[STORE_TOOLS_WHY_SIZE])
{
    struct actor_store *store = store_sqlite_open_alone(path, why);

    if (store == NULL) {
        return ERR_LOCKED;
    }
    const bool done = store_sqlite_vacuum(store, why);
    store->close(store);
    return done ? ERR_OK : ERR_IO;
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

enum err store_tools_backup(const char *path, const char *target, bool replace,
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
