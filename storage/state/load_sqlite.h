/* SPDX-License-Identifier: Apache-2.0
 *
 * The replicated state out of a database image that may be damaged.
 */
#ifndef STORAGE_STATE_LOAD_SQLITE_H
#define STORAGE_STATE_LOAD_SQLITE_H

#include "txn/state/state.h"

#include <sqlite3.h>

enum { STATE_KINDS_TEXT_SIZE = 6 * RING_SEGMENT_KINDS_MAX + 1 }; /* numbers and commas */

/* The kinds that nodes declared, and for people the ring's segments. */
#define STATE_ROLE_TABLES                                                                       \
    "CREATE TABLE IF NOT EXISTS kind(number INTEGER PRIMARY KEY, name TEXT, role TEXT,"         \
    " placement INTEGER);"                                                                      \
    "CREATE TABLE IF NOT EXISTS segment(number INTEGER PRIMARY KEY, role TEXT, policy INTEGER," \
    " from_cell INTEGER, to_cell INTEGER, open INTEGER);"

/* Actors that ran when their process died. */
#define STATE_SUSPECT_TABLE                                                                    \
    "CREATE TABLE IF NOT EXISTS suspect(kind INTEGER, id BLOB, quarantined INTEGER,"           \
    " strikes INTEGER, struck_us INTEGER, since_us INTEGER, node TEXT, PRIMARY KEY(kind, id))" \
    " WITHOUT ROWID;"                                                                          \
    "CREATE TABLE IF NOT EXISTS lost(seq INTEGER PRIMARY KEY, incarnation INTEGER,"            \
    " from_cell INTEGER, to_cell INTEGER);"                                                    \
    "CREATE TABLE IF NOT EXISTS struck(seq INTEGER PRIMARY KEY, incarnation INTEGER,"          \
    " position INTEGER);"

/* What operators want to be at a node; an empty id is none. */
#define STATE_PIN_TABLE                                                                         \
    "CREATE TABLE IF NOT EXISTS pin(from_cell INTEGER, to_cell INTEGER, kind INTEGER, id BLOB," \
    " node TEXT, waits INTEGER, PRIMARY KEY(from_cell, to_cell, kind, id)) WITHOUT ROWID;"

/* Ids that are to live again when what had them is gone. */
#define STATE_REMEMBERED_TABLE                                                            \
    "CREATE TABLE IF NOT EXISTS remembered(kind INTEGER, id BLOB, PRIMARY KEY(kind, id))" \
    " WITHOUT ROWID;"

/* Fill `s` (uninitialised) from state.db's tables. False, and `s` is not to be used: a table is
 * missing, a value is out of range, or tables contradict each other. */
bool state_load(sqlite3 *db, struct state *s);

#endif
