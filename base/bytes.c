/* SPDX-License-Identifier: Apache-2.0
 *
 * The growable buffer: its memory doubles, and what is read leaves at the front.
 */
#include "base/bytes.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

enum { BUFFER_START = 256 };

void buffer_grow(struct buffer *b, size_t more)
{
    size_t cap = b->cap == 0 ? BUFFER_START : b->cap;

    while (cap - b->size < more) {
        cap *= 2;
    }
    b->data = mem_resize(b->data, cap);
    b->cap = cap;
}

void buffer_consume(struct buffer *b, size_t count)
{
    ASSERT(count <= b->size);
    b->size -= count;
    if (b->size > 0 && count > 0) {
        memmove(b->data, b->data + count, b->size);
    }
}

void buffer_clear(struct buffer *b)
{
    b->size = 0;
}

void buffer_fini(struct buffer *b)
{
    mem_free(b->data);
    *b = (struct buffer){0};
}

bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
