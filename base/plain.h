/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain text: UTF-8 without control characters. What others say may come to a
 * terminal or into a log: there it must neither begin a line nor move a cursor.
 */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

bool plain_is(const char *text);

/* True if these bytes are lines of plain text, which may have tabs. */
bool plain_is_lines(const char *text, size_t size);

/* Put '?' in place of each byte that is no part of a plain character. */
void plain_make(char *text);

#endif
