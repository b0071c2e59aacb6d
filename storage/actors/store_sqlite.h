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

enum { STORE_SQLITE_VERSION = 1 };

/* Open the file, or make it, and look whether it is sound. NULL: one line on stderr says why not.
 */
struct actor_store *store_sqlite_open(const char *path);

#endif
