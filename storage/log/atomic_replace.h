/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchange a folder's files for others, so that a crash at any moment leaves
 * the old ones, or the new ones, or a folder that says it is neither.
 *
 *     staging/        the new files, whole and fsynced
 *     recovery        the journal: phase, names of the two folders; while it is
 *                     there no daemon starts on the folder
 *     replaced-TIME/  the old files
 *
 *     journal "out" | old files -> replaced-TIME/   a crash here: all goes back
 *     journal "in"  | new files -> folder           a crash here: the rest follows
 *     no journal    | staging/ is gone
 *
 * The caller holds the folder's lock.
 */
#ifndef STORAGE_LOG_ATOMIC_REPLACE_H
#define STORAGE_LOG_ATOMIC_REPLACE_H

#include "base/err.h"

#include <stdbool.h>

#define ATOMIC_REPLACE_JOURNAL "recovery"

enum { ATOMIC_REPLACE_NAME_MAX = 64, ATOMIC_REPLACE_WHY_MAX = 256 };

/* Move the files `names` (NULL-terminated; those that are there) of `folder` into a new
 * replaced-TIME/, whose name is put into `replaced`, and all files of `staging`, a folder inside
 * it, into their place. ERR_IO: `why`; atomic_replace_finish() then decides. */
MUST_CHECK enum err atomic_replace(const char *folder, const char *staging,
                                   const char *const *names, char replaced[ATOMIC_REPLACE_NAME_MAX],
                                   char why[ATOMIC_REPLACE_WHY_MAX]);

/* True if an exchange was interrupted here. */
bool atomic_replace_interrupted(const char *folder);
/* Finish one: back to the old files, or on to the new ones; `*forward` says which. ERR_OK also when
 * there was none. ERR_CORRUPT: the journal does not read; ERR_IO. */
MUST_CHECK enum err atomic_replace_finish(const char *folder, bool *forward,
                                          char why[ATOMIC_REPLACE_WHY_MAX]);

/* Remove a folder inside `folder` with the files in it, if it is there. */
MUST_CHECK enum err atomic_replace_discard(const char *folder, const char *name,
                                           char why[ATOMIC_REPLACE_WHY_MAX]);

#endif
