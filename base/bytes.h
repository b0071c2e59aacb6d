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

/* True if so many bytes are the same. Those of most ids, 8 to 16, are compared as two words. */
static inline bool bytes_match(const uint8_t *a, const uint8_t *b, size_t size)
{
    uint64_t first[2];
    uint64_t last[2];

    if (size < sizeof *first || size > 2 * sizeof *first) {
        return size == 0 || memcmp(a, b, size) == 0;
    }
    memcpy(&first[0], a, sizeof *first);
    memcpy(&first[1], b, sizeof *first);
    memcpy(&last[0], a + size - sizeof *last, sizeof *last);
    memcpy(&last[1], b + size - sizeof *last, sizeof *last);
    return first[0] == first[1] && last[0] == last[1];
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

/* memcpy() that takes size 0 of nowhere, and calls nothing for up to 32 bytes: most ids and words
 * have no more. They don't overlap. */
__attribute__((always_inline)) static inline void bytes_copy(void *to, const void *from,
                                                             size_t size)
{
    uint8_t *t = (uint8_t *)to;
    const uint8_t *f = (const uint8_t *)from;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    // Of what follows gcc sees ways there that no size takes, and warns of them.
    if (size > 0) {
        memcpy(t, f, size);
    }
    return;
#endif
    if (size - 16 <= 16) {
        uint64_t word[4];

        memcpy(word, f, 16);
        // cppcheck-suppress pointerOutOfBoundsCond; there are `size` bytes, the last 16 begin here
        memcpy(word + 2, f + size - 16, 16);
        memcpy(t, word, 16);
        memcpy(t + size - 16, word + 2, 16);
    } else if (size - 8 < 8) {
        uint64_t first;
        uint64_t last;

        memcpy(&first, f, 8);
        memcpy(&last, f + size - 8, 8);
        memcpy(t, &first, 8);
        memcpy(t + size - 8, &last, 8);
    } else if (size - 4 < 4) {
        uint32_t first;
        uint32_t last;

        memcpy(&first, f, 4);
        memcpy(&last, f + size - 4, 4);
        memcpy(t, &first, 4);
        memcpy(t + size - 4, &last, 4);
    } else if (size > 32) {
        memcpy(t, f, size);
    } else if (size > 0) {
        t[0] = f[0];
        t[size / 2] = f[size / 2];
        t[size - 1] = f[size - 1];
    }
}

/* bytes_copy() of what often has 33 to 64 bytes: of those it calls nothing either. */
__attribute__((always_inline)) static inline void bytes_copy_value(void *to, const void *from,
                                                                   size_t size)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    if (size - 33 < 32) {
        uint8_t *t = (uint8_t *)to;
        const uint8_t *f = (const uint8_t *)from;
        uint64_t word[4][2]; // by 16 bytes, which gcc keeps in registers

        memcpy(word[0], f, 16);
        memcpy(word[1], f + 16, 16);
        // cppcheck-suppress pointerOutOfBoundsCond; there are `size` bytes, the last 32 begin here
        memcpy(word[2], f + size - 32, 16);
        memcpy(word[3], f + size - 16, 16);
        memcpy(t, word[0], 16);
        memcpy(t + 16, word[1], 16);
        memcpy(t + size - 32, word[2], 16);
        memcpy(t + size - 16, word[3], 16);
        return;
    }
#endif
    bytes_copy(to, from, size);
}

/* Append a copy of `size` bytes. */
static inline void buffer_put(struct buffer *b, const void *data, size_t size)
{
    if (size > 0) {
        bytes_copy(buffer_reserve(b, size), data, size);
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
