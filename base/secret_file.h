/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that opens doors: one that others could have read or written is
 * refused.
 */
#ifndef BASE_SECRET_FILE_H
#define BASE_SECRET_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Read all of it, at most `max` bytes. NULL, or why not (static text, or strerror()'s): it must be
 * a regular file, mine or root's, not writable by its group, and nothing at all to others. */
const char *secret_file_read(const char *path, uint8_t *out, size_t max, size_t *size);
/* Like secret_file_read() for a file that is not secret but lies beside one: it only has to be a
 * regular file. */
const char *public_file_read(const char *path, uint8_t *out, size_t max, size_t *size);

#endif
