/* SPDX-License-Identifier: Apache-2.0
 *
 * All of one store of durable actors into another one, whatever databases they are
 * (`ringhold store migrate`).
 *
 *     the source   alone: no node has it open
 *     the target   alone and empty; its version is STORE_UNFINISHED until all of it is there and
 *                  was read back, so that no node takes a part for the whole
 *
 * What was cut off is begun anew, since the source may have gone on meanwhile.
 */
#ifndef STORAGE_ACTORS_MIGRATE_H
#define STORAGE_ACTORS_MIGRATE_H

#include "storage/actors/tools.h"

/* What was done. `of`: how many actors the source has. */
struct store_progress {
    bool reads_back; /* the copy is compared */
    uint64_t actors;
    uint64_t of;
};
typedef void store_on_progress(void *context, const struct store_progress *p);

struct store_migration {
    const char *from;
    const char *to;
    bool again; /* delete what an unfinished copy left in the target */
    store_on_progress *on_progress;
    void *context;
};

/* Copy it. ERR_CONFLICT: the target is not empty, or unfinished and not `again`; nothing was
 * changed. ERR_CORRUPT: the source, or the copy, is not as it should be. Else as the tools. */
MUST_CHECK enum err store_migrate(const struct store_migration *m, struct store_figures *out,
                                  char why[STORE_TOOLS_WHY_SIZE]);

/* Look at the version of a store's schema. There is one, so that there is nothing to migrate to. */
MUST_CHECK enum err store_schema_version(const char *name, uint64_t *version,
                                         char why[STORE_TOOLS_WHY_SIZE]);

#endif
