/* SPDX-License-Identifier: Apache-2.0
 *
 * The other files of this installation: programs and shared objects that `ringhold` finds by its
 * own place.
 */
#ifndef BASE_BESIDE_H
#define BASE_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

/* Find the file `name` in the folder of the running program, in ../libexec/ringhold of it (where
 * `make install` and the packages put what bin/ringhold starts), or in ../../bin (the way back),
 * and write its path. False if it is in none of them: `path` is then the running program's own. */
bool beside_find(const char *name, char *path, size_t size);

#endif
