/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts what a test's program allocates, by standing in for malloc() and its
 * kin. For one file of a program to include. A sanitizer has its own: then
 * nothing is counted.
 */
#ifndef TESTS_ALLOCATIONS_H
#define TESTS_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOCATIONS_COUNTED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ALLOCATIONS_COUNTED 0
#endif
#endif
#ifndef ALLOCATIONS_COUNTED
#define ALLOCATIONS_COUNTED 1
#endif

static size_t allocations;       /* so far, while counting */
static bool allocations_counted; /* from now */

#if ALLOCATIONS_COUNTED
extern void *__libc_malloc(size_t size);                // NOLINT: glibc's own names of them
extern void *__libc_calloc(size_t count, size_t size);  // NOLINT
extern void *__libc_realloc(void *memory, size_t size); // NOLINT

void *malloc(size_t size) // NOLINT: glibc's names of arguments are not ours
{
    allocations += allocations_counted ? 1 : 0;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) // NOLINT
{
    allocations += allocations_counted ? 1 : 0;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) // NOLINT
{
    allocations += allocations_counted ? 1 : 0;
    return __libc_realloc(memory, size);
}
#endif

#endif
