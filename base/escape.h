/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as they are written in a text: hexadecimal digits, and the letters
 * behind a backslash.
 */
#ifndef BASE_ESCAPE_H
#define BASE_ESCAPE_H

#include <stdint.h>

/* The value of a hexadecimal digit; -1: it is none. */
static inline int hex_of(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that a letter behind a backslash stands for; any other letter stands for itself. */
static inline uint8_t escape_of(uint8_t c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'b':
        return '\b';
    case 'a':
        return '\a';
    default:
        return c;
    }
}

#endif
