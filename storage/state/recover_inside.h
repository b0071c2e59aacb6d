/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the files of recover.h: recover.c has folders, nodes and small
 * files; recover_sqlite.c has a coordinator's databases.
 */
#ifndef STORAGE_STATE_RECOVER_INSIDE_H
#define STORAGE_STATE_RECOVER_INSIDE_H

#include "storage/state/recover.h"

/* Add the row of one file: its size, and ABSENT if it is not there. */
struct recover_file *recover_add(struct recover_folder *f, const char *name);
/* Say what is wrong with it and what to do. */
void recover_blame(struct recover_file *file, enum recover_health health, const char *what,
                   const char *remedy);
void recover_path(const struct recover_folder *f, const char *name, char *out, size_t size);

/* Look at raft.db with its write-ahead log and watermark, the state in it, and state.db. */
void recover_look_databases(struct recover_folder *f, bool deep, struct replay_watch watch);

#endif
