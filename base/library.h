/* SPDX-License-Identifier: Apache-2.0
 *
 * A library of the system that is loaded when somebody needs it, so that others need not have it.
 */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A function of the library, and where its pointer goes. */
struct library_function {
    const char *name;
    size_t at; /* in the table of pointers */
};

/* Fill a table with pointers to all of its functions; the library stays loaded. NULL, or what is
 * wrong, valid until the next call. */
const char *library_load(const char *file, const struct library_function *function, size_t count,
                         void *table);

#endif
