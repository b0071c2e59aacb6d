/* SPDX-License-Identifier: Apache-2.0
 *
 * Formatted text at the end of a buffer.
 */
#ifndef BASE_FORMAT_H
#define BASE_FORMAT_H

#include "base/bytes.h"

/* Append what printf() would print, of any length, without a zero behind it. */
void buffer_put_format(struct buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
