/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that never fails: out of memory aborts the process, and the group
 * recovers by Raft or by the node's registration. It spares every caller a
 * path that no test would reach.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

/* Memory is checked, use after free included: what is kept for reuse elsewhere is freed then. */
#ifdef __SANITIZE_ADDRESS__
#define MEM_IS_CHECKED 1
#endif
#ifdef __has_feature
#if __has_feature(address_sanitizer) // clang
#define MEM_IS_CHECKED 1
#endif
#endif

/* Returns owned, zeroed memory for `count` items of `size` bytes. Never NULL. */
void *mem_new(size_t count, size_t size);

/* Like realloc(), but never returns NULL; `size` > 0. Takes the old pointer. */
void *mem_resize(void *old, size_t size);

/* Returns an owned copy of `size` bytes at `data` (size 0: a valid pointer). */
void *mem_copy(const void *data, size_t size);

/* Returns an owned copy of the string. */
char *mem_string(const char *text);

/* Returns owned memory that begins with a line of the cache (64 bytes), and is not zeroed. Never
 * NULL. */
void *mem_lines(size_t size);

/* Like free(). `memory` may be NULL. */
void mem_free(void *memory);

#endif
