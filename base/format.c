/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints where the buffer ends; a text that has no room there is printed once more.
 */
#include "base/format.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>

enum { ROOM = 128 /* most texts are shorter */ };

void buffer_put_format(struct buffer *b, const char *format, ...)
{
    size_t room = ROOM;
    va_list list;
    int size;

    for (;; room = (size_t)size + 1) {
        va_start(list, format);
        size = vsnprintf((char *)buffer_reserve(b, room), room, format, list);
        va_end(list);
        ASSERT(size >= 0);
        if ((size_t)size < room) {
            b->size += (size_t)size;
            return;
        }
    }
}
