/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold recover`: the offline tool. Thin: storage/state/recover.h looks,
 * storage/state/bootstrap.h changes.
 *
 *     cmd_recover.c     inspect, verify, backup
 *     show.c            what a folder holds, as text or JSON
 *     group.c           restore, new-cluster
 *     undo.c            undo
 */
#ifndef CLI_RECOVER_RECOVER_H
#define CLI_RECOVER_RECOVER_H

#include "storage/state/recover.h"

void recover_show_text(const struct recover_folder *f, uint64_t wall_us);
void recover_show_json(const struct recover_folder *f, uint64_t wall_us);
/* Show only the files and what is wrong with them. */
void recover_show_files(const struct recover_folder *f);

int cmd_recover_restore(int argc, char **argv);
int cmd_recover_new_cluster(int argc, char **argv);
int cmd_recover_undo(int argc, char **argv);

#endif
