/* SPDX-License-Identifier: Apache-2.0
 *
 * What a method returns as an answer for a client, or for another actor's
 * script.
 */
#include "base/mem.h"
#include "lua/actor.h"
#include "lua/pack.h"

#include <lua5.4/lauxlib.h>
#include <stdio.h>
#include <string.h>

enum { MARK_SIZE = 4, PAYLOAD_MAX = (1 << 20) - 1 };

/* In front of what answer_pack() packed. No text begins so. */
static const uint8_t mark[MARK_SIZE] = {0x1B, 'R', 'L', 1};

void answer_text(struct lua_actor *p, enum rh_value_type type, const char *text, size_t size)
{
    if (p->answered) {
        return;
    }
    p->answered = true;
    p->answer = (struct rh_value){.type = type};
    buffer_put(&p->answer_bytes, text, size);
}

bool answer_pack(lua_State *L, int first, int count, struct buffer *out,
                 char error[LUA_VM_ERROR_SIZE])
{
    struct pack_limit limit = {.size_max = PAYLOAD_MAX};
    char name[24];

    buffer_put(out, mark, sizeof mark);
    for (int i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "value %d", i + 1);
        limit.name = name;
        if (pack_put(L, first + i, out, &limit) != ERR_OK) {
            (void)snprintf(error, LUA_VM_ERROR_SIZE, "%s", limit.error);
            return false;
        }
    }
    return true;
}

bool answer_is_packed(struct bytes *payload)
{
    if (payload->size < sizeof mark || memcmp(payload->data, mark, sizeof mark) != 0) {
        return false;
    }
    *payload = bytes_of(payload->data + sizeof mark, payload->size - sizeof mark);
    return true;
}

int answer_unpack(lua_State *L, struct bytes payload)
{
    int count = 0;

    while (payload.size > 0) {
        if (++count > LUA_MINSTACK * 10) {
            (void)luaL_error(L, "too many values");
        }
        luaL_checkstack(L, 1, NULL);
        if (pack_get(L, &payload) != ERR_OK) {
            (void)luaL_error(L, "the values can't be decoded");
        }
    }
    return count;
}

static bool answer_packed(struct lua_actor *p, lua_State *L, int first, int count,
                          char error[LUA_VM_ERROR_SIZE])
{
    struct buffer out = {0};
    const bool fits = answer_pack(L, first, count, &out, error);

    if (fits) {
        answer_text(p, RH_BYTES, (const char *)out.data, out.size);
    }
    buffer_fini(&out);
    return fits;
}

/* A client takes one value: text, a number, nothing. */
static bool answer_plain(struct lua_actor *p, lua_State *L, int index,
                         char error[LUA_VM_ERROR_SIZE])
{
    size_t size = 0;
    char text[48];

    switch (lua_type(L, index)) {
    case LUA_TSTRING: {
        const char *bytes = lua_tolstring(L, index, &size);

        answer_text(p, RH_BYTES, bytes, size);
        return true;
    }
    case LUA_TNUMBER:
        if (lua_isinteger(L, index)) {
            answer_text(p, RH_INTEGER, "", 0);
            p->answer.integer = lua_tointeger(L, index);
        } else {
            (void)snprintf(text, sizeof text, "%.14g", (double)lua_tonumber(L, index));
            answer_text(p, RH_BYTES, text, strlen(text));
        }
        return true;
    case LUA_TBOOLEAN:
        answer_text(p, RH_INTEGER, "", 0);
        p->answer.integer = lua_toboolean(L, index) ? 1 : 0;
        return true;
    case LUA_TNIL:
    case LUA_TNONE:
        answer_text(p, RH_NIL, "", 0);
        return true;
    default:
        (void)snprintf(error,
                       LUA_VM_ERROR_SIZE,
                       "it returned a %s: a client takes a string, a number, a boolean or nil",
                       lua_typename(L, lua_type(L, index)));
        return false;
    }
}

bool answer_values(struct lua_actor *p, lua_State *L, int first, int count,
                   char error[LUA_VM_ERROR_SIZE])
{
    if (p->answered) {
        return true;
    }
    return p->packed ? answer_packed(p, L, first, count, error)
                     : answer_plain(p, L, count == 0 ? lua_gettop(L) + 1 : first, error);
}
