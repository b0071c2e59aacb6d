/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/cursor.h"

#include <string.h>

static uint64_t get_le(struct reader *r, size_t size)
{
    uint64_t value = 0;

    if (r->bad || r->left < size) {
        r->bad = true;
        return 0;
    }
    for (size_t i = 0; i < size; i++) {
        value |= (uint64_t)r->at[i] << (8 * i);
    }
    r->at += size;
    r->left -= size;
    return value;
}

static void put_le(struct writer *w, uint64_t value, size_t size)
{
    if (w->bad || w->left < size) {
        w->bad = true;
        return;
    }
    for (size_t i = 0; i < size; i++) {
        w->at[i] = (uint8_t)(value >> (8 * i));
    }
    w->at += size;
    w->left -= size;
}

uint8_t get_u8(struct reader *r)
{
    return (uint8_t)get_le(r, 1);
}

uint16_t get_u16(struct reader *r)
{
    return (uint16_t)get_le(r, 2);
}

uint32_t get_u32(struct reader *r)
{
    return (uint32_t)get_le(r, 4);
}

uint64_t get_u64(struct reader *r)
{
    return get_le(r, 8);
}

const uint8_t *get_bytes(struct reader *r, size_t size)
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

void put_u8(struct writer *w, uint8_t value)
{
    put_le(w, value, 1);
}

void put_u16(struct writer *w, uint16_t value)
{
    put_le(w, value, 2);
}

void put_u32(struct writer *w, uint32_t value)
{
    put_le(w, value, 4);
}

void put_u64(struct writer *w, uint64_t value)
{
    put_le(w, value, 8);
}

void put_bytes(struct writer *w, const void *data, size_t size)
{
    if (w->bad || w->left < size) {
        w->bad = true;
        return;
    }
    if (size > 0) {
        memcpy(w->at, data, size);
    }
    w->at += size;
    w->left -= size;
}
