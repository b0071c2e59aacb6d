/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_DIRECTORY_H
#define BASE_DIRECTORY_H

#include <stdbool.h>

/* Make the directory `path` and those that it is in, mode 0700; what is there already stays as it
 * is. False, and errno says why, when `path` can't be made (or is too long: ENAMETOOLONG). That
 * it is no directory but a file shows when it is used. */
bool directory_make(const char *path);

/* The first of `names`, which end with NULL, that is in the directory `path`; NULL = none is. */
const char *directory_find(const char *path, const char *const *names);

/* Make a new, empty file for this user alone, open for writing; -1, and errno says why. What had
 * that name goes: no link is followed, and nobody has it open. */
int directory_new_file(const char *path);

/* Make durable what was created, renamed or removed in the directory `path`. */
bool directory_sync(const char *path);
/* Like directory_sync(), for the directory in which `file` lies. */
bool directory_sync_of(const char *file);

#endif
