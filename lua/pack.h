/* SPDX-License-Identifier: Apache-2.0
 *
 * Lua values as bytes: what one script's actors tell each other, hand over and
 * save. nil, booleans, integers, floats, strings, and tables of them without
 * cycles; anything else is refused by the name of its field.
 *
 *     value:  0 nil   1 false   2 true   3 integer, zigzag varint   4 float, 8 bytes
 *             5 string: varint size, bytes
 *             6 table: varint count, as many values for [1], [2], ...; then key, value, ...; 7
 *
 * Little-endian, canonical varints. A table that two fields share becomes two.
 * Thread: any; it owns nothing.
 */
#ifndef LUA_PACK_H
#define LUA_PACK_H

#include "base/bytes.h"
#include "base/err.h"

#include <lua5.4/lua.h>

enum {
    PACK_DEPTH_MAX = 32,   /* tables within tables */
    PACK_ERROR_SIZE = 256, /* of a text about what was refused, with its NUL */
};

/* Limits of what may be written, and what exceeded them. */
struct pack_limit {
    const char *name;            /* how the value is called in errors: "self" */
    size_t size_max;             /* bytes that `out` may hold in the end */
    char error[PACK_ERROR_SIZE]; /* set when something was refused */
};

/* Append the value at `index`. Raises no Lua error and calls no metamethod; takes a few slots of
 * the stack. ERR_INVALID: it holds what can't be packed; ERR_TOO_BIG: it is too deep or too big;
 * then `limit->error` says which field, and `out` holds a part. */
MUST_CHECK enum err pack_put(lua_State *L, int index, struct buffer *out, struct pack_limit *limit);

/* Push the value at the front of `in` and move `in` behind it. Any bytes are safe. ERR_CORRUPT:
 * they are no value; nothing is pushed. May raise a Lua error: out of memory. */
MUST_CHECK enum err pack_get(lua_State *L, struct bytes *in);

#endif
