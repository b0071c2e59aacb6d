/* SPDX-License-Identifier: Apache-2.0
 *
 * A prepared statement that is bound left to right, for one run or many.
 * Errors end the process (exit 74) unless the function says otherwise.
 *
 *     struct statement q = statement_open(db, "INSERT INTO voter VALUES(?,?,?)");
 *     statement_number(&q, id);
 *     statement_text(&q, address);
 *     statement_run(&q);
 *     statement_close(&q);
 *
 * What runs again and again is prepared once and kept: statement_kept(), with
 * one `struct statements` a connection, and nothing else is different.
 */
#ifndef STORAGE_LOG_STATEMENT_SQLITE_H
#define STORAGE_LOG_STATEMENT_SQLITE_H

#include "base/bytes.h"

#include <sqlite3.h>
#include <stdbool.h>

struct statement {
    sqlite3 *db;
    sqlite3_stmt *stmt;
    int next;  /* column to bind or to read */
    bool kept; /* statement_close() leaves it prepared */
};

enum { STATEMENTS_MAX = 48 };

/* The prepared statements of one connection. A statement is known by the address of its text, a
 * literal. */
struct statements {
    size_t count;
    struct {
        const char *sql;
        sqlite3_stmt *stmt;
    } kept[STATEMENTS_MAX];
};

struct statement statement_open(sqlite3 *db, const char *sql);
/* Open a kept statement as statement_open() does. One that is open already may not be opened
 * again. */
struct statement statement_kept(struct statements *all, sqlite3 *db, const char *sql);
/* The bare one, for who has an answer of his own to errors. NULL: it does not compile. */
sqlite3_stmt *statements_get(struct statements *all, sqlite3 *db, const char *sql);
/* Free all statements, before the connection is closed. */
void statements_fini(struct statements *all);
void statement_close(struct statement *q);

/* 64-bit numbers are stored as SQLite's signed ones, bit for bit. */
void statement_number(struct statement *q, uint64_t value);
void statement_text(struct statement *q, const char *text);   /* copied */
void statement_blob(struct statement *q, struct bytes bytes); /* copied */

/* Run to the end; ready to be bound again. */
void statement_run(struct statement *q);
/* Next row; false at the end, and also on an error (a damaged image). */
bool statement_row(struct statement *q);
uint64_t statement_get_number(struct statement *q);
/* Copies the text, cut to `size`; false if it was cut. */
bool statement_get_text(struct statement *q, char *out, size_t size);
/* Borrowed until the next row. */
struct bytes statement_get_blob(struct statement *q);

/* True if SQLite finds its file sound; false for an error, too. */
bool statement_check(sqlite3 *db);

/* Run a text of statements without results. */
void statement_script(sqlite3 *db, const char *sql);

#endif
