/* SPDX-License-Identifier: Apache-2.0
 *
 * A borrowed run of bytes, and a growable one.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Borrowed, read-only. */
struct bytes {
    const uint8_t *data;
    size_t size;
};

static inline struct bytes bytes_of(const void *data, size_t size)
{
    return (struct bytes){(const uint8_t *)data, size};
}

/* Owned and growable. All zero is a valid empty buffer. */
struct buffer {
    uint8_t *data; /* owned; NULL while cap is 0 */
    size_t size;   /* bytes in use */
    size_t cap;    /* bytes reserved */
};

/* Slow path of buffer_reserve(): at least doubles `cap`. */
void buffer_grow(struct buffer *b, size_t more);

/* Make room for `more` bytes after `size`; returns where they go. `size` does
 * not change. The pointer is good until the next call on this buffer. */
static inline uint8_t *buffer_reserve(struct buffer *b, size_t more)
{
    if (b->cap - b->size < more) {
        buffer_grow(b, more);
    }
    return b->data + b->size;
}

/* Append a copy of `size` bytes. */
static inline void buffer_put(struct buffer *b, const void *data, size_t size)
{
    if (size > 0) {
        memcpy(buffer_reserve(b, size), data, size);
        b->size += size;
    }
}

/* Forget the first `count` bytes (count <= size) and move the rest down. */
void buffer_consume(struct buffer *b, size_t count);

/* Empty it, keep the memory. */
void buffer_clear(struct buffer *b);

/* Free the memory; the buffer is empty and may be used again. */
void buffer_fini(struct buffer *b);

static inline struct bytes buffer_bytes(const struct buffer *b)
{
    return (struct bytes){b->data, b->size};
}

bool bytes_equal(struct bytes a, struct bytes b);

#endif
