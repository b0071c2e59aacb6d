/* SPDX-License-Identifier: Apache-2.0
 *
 * Found a coordinators' group anew from a backup: a new era, new identities,
 * the same numbers going on. What the old group still does can't mix with it:
 * each side refuses the other's identities, and whoever has seen the new era
 * refuses the old one.
 */
#ifndef STORAGE_STATE_BOOTSTRAP_H
#define STORAGE_STATE_BOOTSTRAP_H

#include "storage/log/atomic_replace.h"
#include "storage/state/backup.h"
#include "storage/state/recover.h"

enum { BOOTSTRAP_VOTERS_MAX = BACKUP_VOTERS_MAX, BOOTSTRAP_WHY_MAX = 320 };

/* Make a backup of what the folder knows. ERR_CORRUPT: it is damaged, or the cluster never began.
 * bootstrap_remains() takes it also when its guards (raft.tail, witness) say that it is an old
 * copy, or are gone: it is as good as a backup of that age, for a founding. */
MUST_CHECK enum err bootstrap_backup(struct backup *out, struct recover_folder *f, uint64_t time_us,
                                     char why[BOOTSTRAP_WHY_MAX]);
MUST_CHECK enum err bootstrap_remains(struct backup *out, struct recover_folder *f,
                                      uint64_t time_us, char why[BOOTSTRAP_WHY_MAX]);

struct bootstrap_plan {
    uint64_t voter[BOOTSTRAP_VOTERS_MAX]; /* ascending */
    size_t voter_count;
    uint64_t era;
    uint64_t lease_us; /* the longest that a node may hold, if the copy does not know it */
    uint64_t time_us;
};
/* Turn a copy into a founding: raise the era, draw identities. ERR_CORRUPT: its state is damaged;
 * ERR_INVALID: the era would not grow. */
MUST_CHECK enum err bootstrap_seal(struct backup *b, const struct bootstrap_plan *plan,
                                   char why[BOOTSTRAP_WHY_MAX]);

/* The least era that a new group may have (specification §3.7), from the backup's, the highest one
 * that was met anywhere, and the wall clock. */
uint64_t bootstrap_era(uint64_t backup_era, uint64_t seen_era, uint64_t time_us);

/* Install the founding in `folder` as `voter`'s. `configuration` is libraft's encoding of the
 * group. What was there goes to `replaced` inside it. ERR_LOCKED: a process holds it; ERR_CONFLICT:
 * this founding is there already; ERR_CORRUPT; ERR_IO. */
MUST_CHECK enum err bootstrap_install(const struct backup *b, const char *folder, uint64_t voter,
                                      struct bytes configuration,
                                      char replaced[ATOMIC_REPLACE_NAME_MAX],
                                      char why[BOOTSTRAP_WHY_MAX]);

/* Put back what an installation replaced: `replaced` is the name of that folder inside `folder`.
 * What is there now is kept in `now_replaced`. */
MUST_CHECK enum err bootstrap_undo(const char *folder, const char *replaced,
                                   char now_replaced[ATOMIC_REPLACE_NAME_MAX],
                                   char why[BOOTSTRAP_WHY_MAX]);

#endif
