/* SPDX-License-Identifier: Apache-2.0
 *
 * Command bodies and their values: what a REQUEST_COMMAND carries and what an
 * actor answers to it, so that a gateway can render RESP2 or RESP3 and a node
 * need not know either.
 *
 *     arguments: u8 count, then count × (u32 size, bytes)      count 1..64
 *                arg[0] the command's name in upper case, arg[1] its key, which is the
 *                entity's id again, then the rest as the client sent it
 *     value:     u8 type, then per type:
 *                'i' i64   'b' bulk bytes   's' simple text   'n' nothing   'e' error text
 */
#ifndef WIRE_ARGS_H
#define WIRE_ARGS_H

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "wire/cursor.h"

#include <stdint.h>

enum { ARGS_MAX = 64 };

struct args {
    uint8_t count;
    struct bytes arg[ARGS_MAX]; /* borrowed */
};

/* Append an argument list; `args->count` is 1..ARGS_MAX. */
void args_put(struct buffer *out, const struct args *args);

/* The argument list of a command's name, its key and what follows, which is put together where it
 * is encoded. All is borrowed. */
struct args_command {
    struct bytes name;
    struct bytes id;
    const struct bytes *rest;
    size_t rest_count; /* at most ARGS_MAX - 2 */
    size_t size;       /* of it when encoded: args_command_size(), which its maker has called */
};

/* Bytes that it takes when encoded. */
static inline size_t args_command_size(const struct args_command *c)
{
    size_t size = 1 + 2 * sizeof(uint32_t) + c->name.size + c->id.size;

    for (const struct bytes *arg = c->rest; arg != c->rest + c->rest_count; arg++) {
        size += sizeof(uint32_t) + arg->size;
    }
    return size;
}
/* Encode it where there is room for it, as args_get() reads it. */
void args_command_store(uint8_t *at, const struct args_command *c);
/* Encode one word of it; returns the place behind it. */
__attribute__((always_inline)) static inline uint8_t *args_store(uint8_t *at,
                                                                 const struct bytes *arg)
{
    at = store_u32(at, (uint32_t)arg->size);
    bytes_copy(at, arg->data, arg->size);
    return at + arg->size;
}

/* Likewise, its name: that of most has three letters. */
__attribute__((always_inline)) static inline uint8_t *args_name_store(uint8_t *at,
                                                                      const struct bytes *name)
{
    if (name->size != 3) {
        return args_store(at, name);
    }
    at = store_u32(at, 3);
    at = store_u16(at, load_u16(name->data));
    return store_u8(at, name->data[2]);
}

/* args_command_store(), inline. */
__attribute__((always_inline)) static inline void args_command_put(uint8_t *at,
                                                                   const struct args_command *c)
{
    ASSERT(c->rest_count + 2 <= ARGS_MAX);
    at = store_u8(at, (uint8_t)(c->rest_count + 2));
    at = args_name_store(at, &c->name);
    at = args_store(at, &c->id);
    for (size_t i = 0; i < c->rest_count; i++) {
        at = store_u32(at, (uint32_t)c->rest[i].size);
        bytes_copy_value(at, c->rest[i].data, c->rest[i].size);
        at += c->rest[i].size;
    }
}

/* An argument list that is taken apart without a place for all of it. */
struct args_rest {
    const uint8_t *at; /* the next one, borrowed */
    size_t left;       /* bytes of all that come, without their sizes */
};
/* Begin with it: how many there are, and 0 if it is none. */
static inline size_t args_begin(struct args_rest *rest, struct bytes in)
{
    const size_t count = in.size == 0 ? 0 : in.data[0];
    const size_t sizes = 1 + count * sizeof(uint32_t);

    if (count - 1 >= ARGS_MAX || in.size < sizes) {
        return 0;
    }
    *rest = (struct args_rest){.at = in.data + 1, .left = in.size - sizes};
    return count;
}
/* Take the next one, of as many as there are. False: it does not fit. Behind the last nothing may
 * be left. */
static inline bool args_next(struct args_rest *rest, struct bytes *arg)
{
    const size_t size = load_u32(rest->at); // which was counted in the beginning

    if (rest->left < size) {
        return false;
    }
    *arg = bytes_of(rest->at + sizeof(uint32_t), size);
    rest->at = arg->data + size;
    rest->left -= size;
    return true;
}
/* Decode a whole body; `args` borrows from it. ERR_CORRUPT: not exactly one list, or a count out of
 * range. */
MUST_CHECK enum err args_get(struct bytes in, struct args *args);

enum value_type {
    VALUE_INTEGER = 'i',
    VALUE_BULK = 'b',
    VALUE_SIMPLE = 's',
    VALUE_NIL = 'n',
    VALUE_ERROR = 'e',
};

struct value {
    enum value_type type;
    int64_t integer;
    struct bytes text; /* BULK, SIMPLE, ERROR; borrowed */
};

/* Append a value. A line break within simple or error text becomes a space: in RESP it would end
 * the reply early. */
void value_put(struct buffer *out, const struct value *value);

/* Decode a whole body; `value` borrows from it. ERR_CORRUPT: unknown type, wrong size, or a line
 * break in simple or error text. */
MUST_CHECK enum err value_get(struct bytes in, struct value *value);

#endif
