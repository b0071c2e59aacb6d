/* SPDX-License-Identifier: Apache-2.0
 *
 * A number as decimal text. printf() takes some hundred instructions more, which is much of what a
 * request takes in all.
 */
#ifndef BASE_DECIMAL_H
#define BASE_DECIMAL_H

#include <stdint.h>

enum { DECIMAL_MAX = 20 }; /* bytes that a number has at most, with its sign */

/* Write the number before `end`, without a NUL; return where it begins. */
static inline char *decimal_before(char *end, int64_t number)
{
    // Not -number: the least one has no positive twin.
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

    do {
        *--end = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (number < 0) {
        *--end = '-';
    }
    return end;
}

#endif
