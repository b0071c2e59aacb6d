/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole store that is a SQLite file (whole.h), and copies of the file.
 */
#ifndef STORAGE_ACTORS_TOOLS_SQLITE_H
#define STORAGE_ACTORS_TOOLS_SQLITE_H

#include "storage/actors/whole.h"

/* Open it, as whole_open() does. */
MUST_CHECK enum err tools_sqlite_open(const char *path, enum whole_use use,
                                      struct whole_store **out, char why[STORE_TOOLS_WHY_SIZE]);
/* Copy it, as store_tools_backup() does. */
MUST_CHECK enum err tools_sqlite_backup(const char *path, const char *target, bool replace,
                                        char why[STORE_TOOLS_WHY_SIZE]);

#endif
