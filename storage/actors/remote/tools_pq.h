/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole store in PostgreSQL (whole.h).
 */
#ifndef STORAGE_ACTORS_REMOTE_TOOLS_PQ_H
#define STORAGE_ACTORS_REMOTE_TOOLS_PQ_H

#include "storage/actors/whole.h"

/* Open it, as whole_open() does. */
MUST_CHECK enum err tools_postgres_open(const char *where, enum whole_use use,
                                        struct whole_store **out, char why[STORE_TOOLS_WHY_SIZE]);

#endif
