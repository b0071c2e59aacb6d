/* SPDX-License-Identifier: Apache-2.0
 *
 * Read and write fixed little-endian fields in a byte buffer.
 *
 * The error is sticky: after the first overrun every later get returns 0 and
 * every later put does nothing, so a codec is a straight list of fields with
 * one check at its end.
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

uint8_t get_u8(struct reader *r);
uint16_t get_u16(struct reader *r);
uint32_t get_u32(struct reader *r);
uint64_t get_u64(struct reader *r);

/* Borrow `size` bytes of the input; NULL (and bad) if they are not there. */
const uint8_t *get_bytes(struct reader *r, size_t size);

void put_u8(struct writer *w, uint8_t value);
void put_u16(struct writer *w, uint16_t value);
void put_u32(struct writer *w, uint32_t value);
void put_u64(struct writer *w, uint64_t value);
void put_bytes(struct writer *w, const void *data, size_t size);

#endif
