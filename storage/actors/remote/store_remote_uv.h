/* SPDX-License-Identifier: Apache-2.0
 *
 * Durable actors in a database elsewhere: a line to it, and the machine that says what to do with
 * the line (remote.h).
 */
#ifndef STORAGE_ACTORS_REMOTE_STORE_REMOTE_UV_H
#define STORAGE_ACTORS_REMOTE_STORE_REMOTE_UV_H

#include "storage/actors/remote/line.h"
#include "storage/actors/whole.h"

/* Open a store by its line, which it takes. NULL: it can't be opened, `why`. */
struct actor_store *store_remote_open(struct store_line *line, char why[LINE_WHY_SIZE]);

/* Open a line as whole_open() does: BESIDE by itself, else as a store, which takes it. NULL is no
 * line. False: `why`, and the line is freed. */
bool line_open_whole(struct store_line *line, enum whole_use use, struct actor_store **store,
                     char why[LINE_WHY_SIZE]);

#endif
