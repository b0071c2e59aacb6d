/* SPDX-License-Identifier: Apache-2.0
 *
 * Is a structure taken that a program has filled in, which may have been built with another header?
 *
 * Such a structure tells its size, and grows at its end alone. What an older one lacks is 0. A
 * newer one is taken as long as all that nobody here knows of it is 0.
 */
#ifndef BASE_GIVEN_H
#define BASE_GIVEN_H

#include <stdbool.h>
#include <stddef.h>

enum {
    GIVEN_TEXT = 160,
    GIVEN_MAX = 65536, /* a size that is greater was never set */
};

struct given {
    const void *data;
    size_t size;  /* as it tells */
    size_t least; /* of the first that had this ABI */
};

/* Copy it to `to`, of `size` bytes. False: it is not taken, and `text` says why, with both sizes
 * and this library's version; `to` is unchanged. */
bool given_take(const struct given *given, void *to, size_t size, char text[GIVEN_TEXT]);

#endif
