/* SPDX-License-Identifier: Apache-2.0
 *
 * A line to PostgreSQL: claims and commits as one transaction, which goes out in one piece
 * (pipeline mode of libpq) and costs one round trip. The tables and columns are those of SQLite
 * (store_sqlite.h), with bigint and bytea.
 *
 * libpq is loaded when the first such line is made.
 */
#ifndef STORAGE_ACTORS_REMOTE_POSTGRES_PQ_H
#define STORAGE_ACTORS_REMOTE_POSTGRES_PQ_H

#include "storage/actors/remote/line.h"

/* Returns owned; it is not open yet. `where`: a connection string or URI of libpq. NULL: there is
 * no libpq, `why`. */
struct store_line *postgres_line(const char *where, char why[LINE_WHY_SIZE]);

/* ---- for operators: of a line that is open */

enum { POSTGRES_COLUMNS_MAX = 16 };

/* A row that was asked for: numbers have 8 bytes, the greatest first; NULL has no `data`. Borrowed.
 */
typedef void postgres_on_row(void *context, const struct bytes *column);

/* Ask one statement, and be told its rows. False: the line's `why`; it may be closed. */
bool postgres_ask(struct store_line *l, const char *sql, postgres_on_row *on_row, void *context);
/* The number of a column. */
uint64_t postgres_number(struct bytes column);

#endif
