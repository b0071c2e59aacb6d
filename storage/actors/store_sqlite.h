/* SPDX-License-Identifier: Apache-2.0
 *
 * Durable actors in a SQLite file. All nodes of one machine may share it: SQLite's own locks put
 * their transactions in a row. It may not lie on a network's file system, whose locks do not hold.
 *
 *     actor  kind, id, fence, number: whose it is, and how many commits it has had
 *     value  kind, id, key, value
 *     answer kind, id, name, answer
 *     alarm  kind, id, name, payload, due, every; an index by kind and due
 *     store  version of this schema; how many times a commit in doubt was read back
 *
 * A game reads the tables by SQL of its own while nodes run. It does not write them: an owner has
 * the values in memory and would not notice.
 *
 * A COMMIT that SQLite refuses is in doubt: its pages may be in the log of the file, where the next
 * start would find them. So it is read back by a transaction that writes, too. That one takes their
 * place in the log, and what it has read is therefore certain. A disk that is full is no doubt: it
 * fails before the last page is in the log, which alone makes the others count.
 */
#ifndef STORAGE_ACTORS_STORE_SQLITE_H
#define STORAGE_ACTORS_STORE_SQLITE_H

#include "storage/actors/store.h"

#include <stdbool.h>

/* Open the file, or make it, and look whether it is sound. NULL: one line on stderr says why not.
 */
struct actor_store *store_sqlite_open(const char *path);

/* ---- for operators, with the nodes stopped */

enum { STORE_SQLITE_WHY_SIZE = 320 };

/* Open a file that is there, so that nobody else has it open, or will before it is closed: not even
 * a node that does nothing now. NULL: `why`. */
struct actor_store *store_sqlite_open_alone(const char *path, char why[STORE_SQLITE_WHY_SIZE]);
/* Likewise; it is made if it is missing, and may be the unfinished copy of another store. */
struct actor_store *store_sqlite_open_target(const char *path, char why[STORE_SQLITE_WHY_SIZE]);
/* Borrow the connection of a store. */
struct sqlite3 *store_sqlite_db(struct actor_store *store);
/* Take the fence of the task's actor as its own. False: there is no such actor. */
bool store_sqlite_fence(struct actor_store *store, struct store_task *t);
/* Write the file anew, without what is free in it. False: `why`. */
bool store_sqlite_vacuum(struct actor_store *store, char why[STORE_SQLITE_WHY_SIZE]);

#endif
