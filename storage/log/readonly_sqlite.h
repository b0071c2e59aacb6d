/* SPDX-License-Identifier: Apache-2.0
 *
 * Read a SQLite database and leave no trace: not in the file, not in its
 * write-ahead log, and no new file beside it that the daemon could not write
 * later because root had looked.
 *
 *     a process has the folder     its shared files are there: read among them
 *     stopped, no write-ahead log  read the file alone, as one that never changes
 *     stopped, with one            copy both to a temporary folder and read there
 */
#ifndef STORAGE_LOG_READONLY_SQLITE_H
#define STORAGE_LOG_READONLY_SQLITE_H

#include "base/err.h"

#include <sqlite3.h>
#include <stdbool.h>

struct readonly_db {
    sqlite3 *sql;    /* may be taken: set it to NULL then */
    char copy[4200]; /* the temporary folder, "" = none */
    char why[160];   /* of an error */
};

/* ERR_NOT_FOUND: no such file; else `why` says it. Close it in any case. */
MUST_CHECK enum err readonly_open(struct readonly_db *p, const char *path, bool in_use);
void readonly_close(struct readonly_db *p);

#endif
