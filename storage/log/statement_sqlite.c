/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepared statements, bound and read from left to right.
 */
#include "storage/log/statement_sqlite.h"

#include "base/assert.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_DISK = 74 };

static void must(sqlite3 *db, int code)
{
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW) {
        log_error("storage",
                  "sqlite_failed",
                  "file=%s code=%d reason=\"%s\" remedy=\"free space or repair the disk, then "
                  "start again: this file is a copy that every start makes anew\"",
                  sqlite3_db_filename(db, "main"),
                  code,
                  sqlite3_errmsg(db));
        exit(EXIT_DISK);
    }
}

struct statement statement_open(sqlite3 *db, const char *sql)
{
    struct statement q = {.db = db};

    must(db, sqlite3_prepare_v2(db, sql, -1, &q.stmt, NULL));
    return q;
}

sqlite3_stmt *statements_get(struct statements *all, sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;

    for (size_t i = 0; i < all->count; i++) {
        if (all->kept[i].sql == sql) {
            return all->kept[i].stmt;
        }
    }
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) != SQLITE_OK) {
        return NULL;
    }
    ASSERT(all->count < STATEMENTS_MAX);
    all->kept[all->count].sql = sql;
    all->kept[all->count++].stmt = stmt;
    return stmt;
}

struct statement statement_kept(struct statements *all, sqlite3 *db, const char *sql)
{
    struct statement q = {.db = db, .stmt = statements_get(all, db, sql), .kept = true};

    must(db, q.stmt == NULL ? sqlite3_errcode(db) : SQLITE_OK);
    return q;
}

void statements_fini(struct statements *all)
{
    for (size_t i = 0; i < all->count; i++) {
        (void)sqlite3_finalize(all->kept[i].stmt);
    }
    *all = (struct statements){0};
}

void statement_close(struct statement *q)
{
    if (q->kept) {
        (void)sqlite3_reset(q->stmt);
        (void)sqlite3_clear_bindings(q->stmt);
    } else {
        (void)sqlite3_finalize(q->stmt);
    }
    *q = (struct statement){0};
}

void statement_number(struct statement *q, uint64_t value)
{
    must(q->db, sqlite3_bind_int64(q->stmt, ++q->next, (sqlite3_int64)value));
}

void statement_text(struct statement *q, const char *text)
{
    must(q->db, sqlite3_bind_text(q->stmt, ++q->next, text, -1, SQLITE_TRANSIENT));
}

void statement_blob(struct statement *q, struct bytes bytes)
{
    must(q->db, sqlite3_bind_blob64(q->stmt, ++q->next, bytes.data, bytes.size, SQLITE_TRANSIENT));
}

void statement_run(struct statement *q)
{
    int code = SQLITE_ROW;

    while (code == SQLITE_ROW) {
        code = sqlite3_step(q->stmt);
    }
    must(q->db, code);
    (void)sqlite3_reset(q->stmt);
    q->next = 0;
}

bool statement_row(struct statement *q)
{
    q->next = 0;
    return sqlite3_step(q->stmt) == SQLITE_ROW;
}

uint64_t statement_get_number(struct statement *q)
{
    return (uint64_t)sqlite3_column_int64(q->stmt, q->next++);
}

bool statement_get_text(struct statement *q, char *out, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(q->stmt, q->next++);

    memset(out, 0, size);
    return snprintf(out, size, "%s", text == NULL ? "" : text) < (int)size;
}

struct bytes statement_get_blob(struct statement *q)
{
    const void *data = sqlite3_column_blob(q->stmt, q->next);

    return bytes_of(data, (size_t)sqlite3_column_bytes(q->stmt, q->next++));
}

void statement_script(sqlite3 *db, const char *sql)
{
    must(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

bool statement_check(sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    bool sound = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &s, NULL) == SQLITE_OK &&
                 sqlite3_step(s) == SQLITE_ROW;

    if (sound) {
        const char *verdict = (const char *)sqlite3_column_text(s, 0);

        sound = verdict != NULL && strcmp(verdict, "ok") == 0;
    }
    (void)sqlite3_finalize(s);
    return sound;
}
