/* SPDX-License-Identifier: Apache-2.0
 *
 * Durable actors in a database elsewhere: a line to it, and the machine that says what to do with
 * the line (remote.h).
 */
#ifndef STORAGE_ACTORS_REMOTE_STORE_REMOTE_UV_H
#define STORAGE_ACTORS_REMOTE_STORE_REMOTE_UV_H

#include "storage/actors/remote/line.h"

/* Open a store by its line, which it takes. NULL: it can't be opened, and one line on stderr says
 * why. `name`: what the line leads to, for people; borrowed until return. */
struct actor_store *store_remote_open(struct store_line *line, const char *name);

#endif
