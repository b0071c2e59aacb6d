/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs Lua values into bytes and reads them back, with limits on depth and
 * size.
 */
#include "lua/pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum tag {
    TAG_NIL = 0,
    TAG_FALSE = 1,
    TAG_TRUE = 2,
    TAG_INTEGER = 3,
    TAG_FLOAT = 4,
    TAG_STRING = 5,
    TAG_TABLE = 6,
    TAG_END = 7,
};

enum {
    VARINT_SIZE_MAX = 10,
    STACK_EACH = 6,     /* slots that one table takes */
    TABLE_GUESS = 1024, /* slots that are made before their values were seen */
};

/* ---- writing ---- */

/* Where in the value we are: a key of each table that is open. */
struct pack_step {
    const void *table;
    const char *text; /* NULL = an index; borrowed from the key on the Lua stack */
    lua_Integer index;
};

struct packer {
    lua_State *L;
    struct buffer *out;
    struct pack_limit *limit;
    struct pack_step path[PACK_DEPTH_MAX];
    int depth;
};

static enum err put_value(struct packer *p, int index);

static enum err refuse(struct packer *p, enum err error, const char *what)
{
    char *to = p->limit->error;
    size_t used = (size_t)snprintf(to, PACK_ERROR_SIZE, "%.40s", p->limit->name);

    for (int i = 0; i < p->depth && used < PACK_ERROR_SIZE; i++) {
        const struct pack_step *s = &p->path[i];

        if (s->text != NULL) {
            used += (size_t)snprintf(to + used, PACK_ERROR_SIZE - used, ".%.40s", s->text);
        } else {
            used += (size_t)snprintf(
                to + used, PACK_ERROR_SIZE - used, "[%" PRIi64 "]", (int64_t)s->index);
        }
    }
    if (used < PACK_ERROR_SIZE) {
        (void)snprintf(to + used, PACK_ERROR_SIZE - used, " %s", what);
    }
    return error;
}

static enum err put(struct packer *p, const void *data, size_t size)
{
    if (size > p->limit->size_max || p->out->size > p->limit->size_max - size) {
        p->depth = 0; // The whole is to blame, not the field that it happened to end at.
        return refuse(p, ERR_TOO_BIG, "is too big");
    }
    buffer_put(p->out, data, size);
    return ERR_OK;
}

static enum err put_tag(struct packer *p, enum tag tag)
{
    const uint8_t byte = (uint8_t)tag;

    return put(p, &byte, 1);
}

static enum err put_varint(struct packer *p, uint64_t n)
{
    uint8_t bytes[VARINT_SIZE_MAX];
    size_t size = 0;

    while (n >= 0x80) {
        bytes[size++] = (uint8_t)(n | 0x80);
        n >>= 7;
    }
    bytes[size++] = (uint8_t)n;
    return put(p, bytes, size);
}

static enum err put_number(struct packer *p, int index)
{
    uint64_t bits = 0;
    uint8_t bytes[8];
    enum err error;

    if (lua_isinteger(p->L, index)) {
        const uint64_t n = (uint64_t)lua_tointeger(p->L, index);

        error = put_tag(p, TAG_INTEGER);
        return error != ERR_OK ? error : put_varint(p, (n << 1) ^ (0 - (n >> 63)));
    }
    const double number = (double)lua_tonumber(p->L, index);
    memcpy(&bits, &number, sizeof bits);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(bits >> (8 * i));
    }
    error = put_tag(p, TAG_FLOAT);
    return error != ERR_OK ? error : put(p, bytes, sizeof bytes);
}

static enum err put_string(struct packer *p, int index)
{
    size_t size = 0;
    const char *text = lua_tolstring(p->L, index, &size);
    enum err error = put_tag(p, TAG_STRING);

    if (error == ERR_OK) {
        error = put_varint(p, size);
    }
    return error != ERR_OK ? error : put(p, text, size);
}

/* The key on top of the stack, for the text of an error. */
static void note_key(struct packer *p, int index)
{
    struct pack_step *s = &p->path[p->depth - 1];

    s->text = NULL;
    s->index = 0;
    switch (lua_type(p->L, index)) {
    case LUA_TSTRING:
        s->text = lua_tostring(p->L, index);
        break;
    case LUA_TNUMBER:
        s->index = lua_tointegerx(p->L, index, NULL);
        break;
    case LUA_TBOOLEAN:
        s->text = lua_toboolean(p->L, index) ? "true" : "false";
        break;
    default:
        s->text = "(key)";
    }
}

// NOLINTNEXTLINE(misc-no-recursion): PACK_DEPTH_MAX bounds it
static enum err put_list(struct packer *p, int index, lua_Unsigned count)
{
    enum err error = put_varint(p, count);

    for (lua_Unsigned i = 1; error == ERR_OK && i <= count; i++) {
        p->path[p->depth - 1].text = NULL;
        p->path[p->depth - 1].index = (lua_Integer)i;
        (void)lua_rawgeti(p->L, index, (lua_Integer)i);
        error = put_value(p, lua_gettop(p->L));
        lua_pop(p->L, 1);
    }
    return error;
}

static bool is_listed(lua_State *L, int index, lua_Unsigned count)
{
    return lua_isinteger(L, index) && lua_tointeger(L, index) >= 1 &&
           (lua_Unsigned)lua_tointeger(L, index) <= count;
}

// NOLINTNEXTLINE(misc-no-recursion): PACK_DEPTH_MAX bounds it
static enum err put_pairs(struct packer *p, int index, lua_Unsigned count)
{
    const int top = lua_gettop(p->L);
    enum err error = ERR_OK;

    lua_pushnil(p->L);
    while (error == ERR_OK && lua_next(p->L, index) != 0) {
        if (!is_listed(p->L, top + 1, count)) {
            note_key(p, top + 1);
            error = lua_type(p->L, top + 1) == LUA_TTABLE
                        ? refuse(p, ERR_INVALID, "is a table as a key")
                        : put_value(p, top + 1);
            if (error == ERR_OK) {
                error = put_value(p, top + 2);
            }
        }
        lua_settop(p->L, top + 1);
    }
    lua_settop(p->L, top);
    return error != ERR_OK ? error : put_tag(p, TAG_END);
}

// NOLINTNEXTLINE(misc-no-recursion): PACK_DEPTH_MAX bounds it
static enum err put_table(struct packer *p, int index)
{
    const void *table = lua_topointer(p->L, index);

    for (int i = 0; i < p->depth; i++) {
        if (p->path[i].table == table) {
            return refuse(p, ERR_INVALID, "is a table that contains itself");
        }
    }
    if (p->depth == PACK_DEPTH_MAX || !lua_checkstack(p->L, STACK_EACH)) {
        return refuse(p, ERR_TOO_BIG, "is too deep");
    }
    enum err error = put_tag(p, TAG_TABLE);
    if (error != ERR_OK) {
        return error;
    }
    const lua_Unsigned count = lua_rawlen(p->L, index);
    p->path[p->depth++] = (struct pack_step){.table = table};
    error = put_list(p, index, count);
    if (error == ERR_OK) {
        error = put_pairs(p, index, count);
    }
    if (error == ERR_OK) {
        p->depth--;
    }
    return error;
}

// NOLINTNEXTLINE(misc-no-recursion): PACK_DEPTH_MAX bounds it
static enum err put_value(struct packer *p, int index)
{
    char text[64];

    switch (lua_type(p->L, index)) {
    case LUA_TNIL:
        return put_tag(p, TAG_NIL);
    case LUA_TBOOLEAN:
        return put_tag(p, lua_toboolean(p->L, index) ? TAG_TRUE : TAG_FALSE);
    case LUA_TNUMBER:
        return put_number(p, index);
    case LUA_TSTRING:
        return put_string(p, index);
    case LUA_TTABLE:
        return put_table(p, index);
    default:
        (void)snprintf(text, sizeof text, "is a %s", lua_typename(p->L, lua_type(p->L, index)));
        return refuse(p, ERR_INVALID, text);
    }
}

enum err pack_put(lua_State *L, int index, struct buffer *out, struct pack_limit *limit)
{
    struct packer p = {.L = L, .out = out, .limit = limit};
    const int top = lua_gettop(L);

    index = lua_absindex(L, index);
    if (!lua_checkstack(L, STACK_EACH)) {
        return refuse(&p, ERR_TOO_BIG, "is too deep");
    }
    const enum err error = put_value(&p, index);
    lua_settop(L, top);
    return error;
}

/* ---- reading ---- */

static bool get_value(lua_State *L, struct bytes *in, int depth);

static bool take(struct bytes *in, size_t size, const uint8_t **out)
{
    if (in->size < size) {
        return false;
    }
    *out = in->data;
    in->data += size;
    in->size -= size;
    return true;
}

static bool get_varint(struct bytes *in, uint64_t *out)
{
    uint64_t n = 0;
    const uint8_t *byte;

    for (unsigned i = 0; i < VARINT_SIZE_MAX; i++) {
        if (!take(in, 1, &byte) || (i == VARINT_SIZE_MAX - 1 && *byte > 1)) {
            return false;
        }
        n |= (uint64_t)(*byte & 0x7F) << (7 * i);
        if (*byte < 0x80) {
            *out = n;
            return *byte != 0 || i == 0; // A last byte of zero has a shorter form.
        }
    }
    return false;
}

static bool get_integer(lua_State *L, struct bytes *in)
{
    uint64_t n;

    if (!get_varint(in, &n)) {
        return false;
    }
    lua_pushinteger(L, (lua_Integer)((n >> 1) ^ (0 - (n & 1))));
    return true;
}

static bool get_float(lua_State *L, struct bytes *in)
{
    const uint8_t *bytes;
    uint64_t bits = 0;
    double number;

    if (!take(in, 8, &bytes)) {
        return false;
    }
    for (unsigned i = 0; i < 8; i++) {
        bits |= (uint64_t)bytes[i] << (8 * i);
    }
    memcpy(&number, &bits, sizeof number);
    lua_pushnumber(L, (lua_Number)number);
    return true;
}

static bool get_string(lua_State *L, struct bytes *in)
{
    const uint8_t *text;
    uint64_t size;

    if (!get_varint(in, &size) || size > in->size || !take(in, (size_t)size, &text)) {
        return false;
    }
    (void)lua_pushlstring(L, (const char *)text, (size_t)size);
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): PACK_DEPTH_MAX bounds it
static bool get_list(lua_State *L, struct bytes *in, int depth)
{
    uint64_t count;

    // A value has at least one byte, so a count beyond the bytes is a lie.
    if (!get_varint(in, &count) || count > in->size) {
        return false;
    }
    lua_createtable(L, count < TABLE_GUESS ? (int)count : TABLE_GUESS, 0);
    for (uint64_t i = 1; i <= count; i++) {
        if (!get_value(L, in, depth)) {
            return false;
        }
        lua_rawseti(L, -2, (lua_Integer)i);
    }
    return true;
}

static bool is_key(lua_State *L, int index)
{
    switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
    case LUA_TSTRING:
        return true;
    case LUA_TNUMBER: // but not a number: NaN
        return lua_rawequal(L, index, index) != 0;
    default:
        return false;
    }
}

// NOLINTNEXTLINE(misc-no-recursion): PACK_DEPTH_MAX bounds it
static bool get_table(lua_State *L, struct bytes *in, int depth)
{
    const uint8_t *byte;

    if (depth == PACK_DEPTH_MAX || !lua_checkstack(L, STACK_EACH) || !get_list(L, in, depth + 1)) {
        return false;
    }
    while (in->size > 0 && in->data[0] != TAG_END) {
        if (!get_value(L, in, depth + 1) || !is_key(L, -1) || !get_value(L, in, depth + 1)) {
            return false;
        }
        lua_rawset(L, -3);
    }
    return take(in, 1, &byte);
}

// NOLINTNEXTLINE(misc-no-recursion): PACK_DEPTH_MAX bounds it
static bool get_value(lua_State *L, struct bytes *in, int depth)
{
    const uint8_t *tag;

    if (!take(in, 1, &tag)) {
        return false;
    }
    switch (*tag) {
    case TAG_NIL:
        lua_pushnil(L);
        return true;
    case TAG_FALSE:
    case TAG_TRUE:
        lua_pushboolean(L, *tag == TAG_TRUE);
        return true;
    case TAG_INTEGER:
        return get_integer(L, in);
    case TAG_FLOAT:
        return get_float(L, in);
    case TAG_STRING:
        return get_string(L, in);
    case TAG_TABLE:
        return get_table(L, in, depth);
    default:
        return false;
    }
}

enum err pack_get(lua_State *L, struct bytes *in)
{
    const int top = lua_gettop(L);

    if (!lua_checkstack(L, STACK_EACH) || !get_value(L, in, 0)) {
        lua_settop(L, top);
        return ERR_CORRUPT;
    }
    return ERR_OK;
}
