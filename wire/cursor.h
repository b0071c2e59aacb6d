/* SPDX-License-Identifier: Apache-2.0
 *
 * Read and write fixed little-endian fields in a byte buffer.
 *
 * The error is sticky: after the first overrun every later get returns 0 and
 * every later put does nothing, so a codec is a straight list of fields with
 * one check at its end. Inline: each field becomes one load or store.
 *
 *     struct reader r = {.at = buf, .left = len};
 *     msg->term = get_u64(&r);
 *     msg->from = get_u32(&r);
 *     return r.bad ? ERR_CORRUPT : ERR_OK;
 */
#ifndef WIRE_CURSOR_H
#define WIRE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
    const uint8_t *at; /* next byte, borrowed from the caller's buffer */
    size_t left;       /* bytes not read yet */
    bool bad;          /* a get ran past the end */
};

struct writer {
    uint8_t *at; /* next free byte, borrowed from the caller's buffer */
    size_t left; /* bytes still free */
    bool bad;    /* a put did not fit */
};

/* A value in the order of bytes of the wire, and back: little-endian. */
static inline uint16_t wire_u16(uint16_t value)
{
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap16(value) : value;
}

static inline uint32_t wire_u32(uint32_t value)
{
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap32(value) : value;
}

static inline uint64_t wire_u64(uint64_t value)
{
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(value) : value;
}

/* Fields of a header whose bytes are there, or whose room is: one load or store each. By bytes gcc
 * makes forty instructions of two stores beside each other: it wants to store them as one. */
static inline uint16_t load_u16(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof value);
    return wire_u16(value);
}

static inline uint32_t load_u32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof value);
    return wire_u32(value);
}

static inline uint64_t load_u64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof value);
    return wire_u64(value);
}

/* Store a value. These functions return the place behind it. */
static inline uint8_t *store_u8(uint8_t *at, uint8_t value)
{
    at[0] = value;
    return at + 1;
}

static inline uint8_t *store_u16(uint8_t *at, uint16_t value)
{
    value = wire_u16(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static inline uint8_t *store_u32(uint8_t *at, uint32_t value)
{
    value = wire_u32(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static inline uint8_t *store_u64(uint8_t *at, uint64_t value)
{
    value = wire_u64(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

/* Borrow `size` bytes of the input; NULL (and bad) if they are not there. */
static inline const uint8_t *get_bytes(struct reader *r, size_t size)
{
    const uint8_t *at = r->at;

    if (r->bad || r->left < size) {
        r->bad = true;
        return NULL;
    }
    r->at += size;
    r->left -= size;
    return at;
}

static inline uint8_t get_u8(struct reader *r)
{
    const uint8_t *at = get_bytes(r, 1);

    return at == NULL ? 0 : at[0];
}

static inline uint16_t get_u16(struct reader *r)
{
    const uint8_t *at = get_bytes(r, 2);

    return at == NULL ? 0 : load_u16(at);
}

static inline uint32_t get_u32(struct reader *r)
{
    const uint8_t *at = get_bytes(r, 4);

    return at == NULL ? 0 : load_u32(at);
}

static inline uint64_t get_u64(struct reader *r)
{
    const uint8_t *at = get_bytes(r, 8);

    return at == NULL ? 0 : load_u64(at);
}

/* Return the place for `size` bytes, already counted as written; NULL (and bad) if they do not
 * fit. */
static inline uint8_t *put_space(struct writer *w, size_t size)
{
    uint8_t *at = w->at;

    if (w->bad || w->left < size) {
        w->bad = true;
        return NULL;
    }
    w->at += size;
    w->left -= size;
    return at;
}

static inline void put_u8(struct writer *w, uint8_t value)
{
    uint8_t *at = put_space(w, 1);

    if (at != NULL) {
        at[0] = value;
    }
}

static inline void put_u16(struct writer *w, uint16_t value)
{
    uint8_t *at = put_space(w, 2);

    if (at != NULL) {
        (void)store_u16(at, value);
    }
}

static inline void put_u32(struct writer *w, uint32_t value)
{
    uint8_t *at = put_space(w, 4);

    if (at != NULL) {
        (void)store_u32(at, value);
    }
}

static inline void put_u64(struct writer *w, uint64_t value)
{
    uint8_t *at = put_space(w, 8);

    if (at != NULL) {
        (void)store_u64(at, value);
    }
}

static inline void put_bytes(struct writer *w, const void *data, size_t size)
{
    uint8_t *at = put_space(w, size);

    if (at != NULL && size > 0) {
        memcpy(at, data, size);
    }
}

#endif
