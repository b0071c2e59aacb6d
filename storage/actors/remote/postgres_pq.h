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

enum { STORE_POSTGRES_VERSION = 1 };

/* Returns owned; it is not open yet. `where`: a connection string or URI of libpq. NULL: there is
 * no libpq, and one line on stderr says so. */
struct store_line *postgres_line(const char *where);

#endif
