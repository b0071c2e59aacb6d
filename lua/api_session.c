/* SPDX-License-Identifier: Apache-2.0
 *
 * What actors do with the client that is bound to them.
 */
#include "lua/api_inside.h"

#include <lua5.4/lauxlib.h>
#include <string.h>

/* true; nil and a text if nobody is bound; what can't be is raised. */
static int told(lua_State *L, int result, const char *too_big)
{
    switch (result) {
    case RH_OK:
        lua_pushboolean(L, true);
        return 1;
    case RH_NO_SESSION:
        lua_pushnil(L);
        (void)lua_pushstring(L, "NOSESSION no client is bound to the actor");
        return 2;
    case RH_TOO_BIG:
        return luaL_error(L, "%s", too_big);
    default:
        return luaL_error(L, "not now");
    }
}

/* The session that a function is about: its first argument. */
static uint64_t check_session(lua_State *L)
{
    const lua_Integer session = luaL_checkinteger(L, 1);

    luaL_argcheck(L, session > 0, 1, "a session as passed to on_session");
    return (uint64_t)session;
}

static const char push_limit[] = "a push is at most 256 KiB";

/* ringhold.push(bytes) -> true; nil and a text if nobody is bound */
static int api_push(lua_State *L)
{
    struct rh_bytes payload = {0};

    payload.data = luaL_checklstring(L, 1, &payload.size);
    return told(L, rh_push(api_current(L)->lua_actor->actor, payload), push_limit);
}

/* ringhold.push_one(session, bytes) -> the same, of that one */
static int api_push_one(lua_State *L)
{
    const uint64_t session = check_session(L);
    struct rh_bytes payload = {0};

    payload.data = luaL_checklstring(L, 2, &payload.size);
    return told(L, rh_push_one(api_current(L)->lua_actor->actor, session, payload), push_limit);
}

/* The id of a pair of the table: its key, or at a number its value. False: it names nobody. */
static bool pair_id(lua_State *L, struct rh_bytes *out)
{
    const int at = lua_type(L, -2) == LUA_TSTRING ? -2 : -1;

    if (!lua_toboolean(L, -1) || lua_type(L, at) != LUA_TSTRING) {
        return false;
    }
    out->data = lua_tolstring(L, at, &out->size);
    return true;
}

/* Those of the table, in the scratch buffer; they stay as long as the table has them. */
static size_t collect_ids(lua_State *L, int table, struct buffer *out)
{
    size_t count = 0;

    buffer_clear(out);
    lua_pushnil(L);
    while (lua_next(L, table) != 0) {
        struct rh_bytes id = {0};

        if (pair_id(L, &id)) {
            luaL_argcheck(L, id.size >= 1 && id.size <= RH_ID_MAX, table, "ids of 1 to 255 bytes");
            luaL_argcheck(L, count < RH_GROUP_MAX, table, "at most 65536 ids");
            buffer_put(out, &id, sizeof id);
            count++;
        }
        lua_pop(L, 1);
    }
    return count;
}

/* ringhold.broadcast(kind, ids, bytes) -> how many; nil and a text if too much waits already */
static int api_broadcast(lua_State *L)
{
    struct buffer *ids = &lua_vm_of(L)->scratch;
    struct rh_actor *actor = api_current(L)->lua_actor->actor;
    struct rh_bytes payload = {0};
    uint32_t call_ms = 0;
    const uint16_t kind = api_check_kind(L, 1, &call_ms);

    luaL_checktype(L, 2, LUA_TTABLE);
    payload.data = luaL_checklstring(L, 3, &payload.size);
    const size_t count = collect_ids(L, 2, ids);
    const int sent =
        count == 0 ? RH_OK
                   : rh_push_ids(actor, kind, (const struct rh_bytes *)ids->data, count, payload);
    if (sent == RH_OVERLOADED) {
        lua_pushnil(L);
        (void)lua_pushstring(L, "OVERLOADED too many broadcasts are waiting");
        return 2;
    }
    if (sent != RH_OK) {
        return told(L, sent, push_limit);
    }
    lua_pushinteger(L, (lua_Integer)count);
    return 1;
}

/* [code,] [text], from argument `at` on. */
struct farewell {
    uint32_t code;
    const char *text;
};

static struct farewell check_farewell(lua_State *L, int at)
{
    const bool coded = lua_type(L, at) == LUA_TNUMBER;
    const lua_Integer code = coded ? luaL_checkinteger(L, at) : RH_KICK_GAME;
    const int text_at = coded ? at + 1 : at;
    size_t size = 0;
    const char *text = luaL_optlstring(L, text_at, "", &size);

    luaL_argcheck(L, code >= RH_KICK_GAME && code <= UINT32_MAX, at, "a code of 1000 and up");
    luaL_argcheck(L, strlen(text) == size, text_at, "a text without NUL");
    return (struct farewell){.code = (uint32_t)code, .text = text};
}

static const char kick_limit[] = "a kick's text is at most 255 bytes";

/* ringhold.kick([code,] [text]) -> the same */
static int api_kick(lua_State *L)
{
    const struct farewell said = check_farewell(L, 1);

    return told(L, rh_kick(api_current(L)->lua_actor->actor, said.code, said.text), kick_limit);
}

/* ringhold.kick_one(session, [code,] [text]) -> the same, of that one */
static int api_kick_one(lua_State *L)
{
    const uint64_t session = check_session(L);
    const struct farewell said = check_farewell(L, 2);

    return told(L,
                rh_kick_one(api_current(L)->lua_actor->actor, session, said.code, said.text),
                kick_limit);
}

static struct rh_bytes check_id(lua_State *L, int at)
{
    struct rh_bytes id = {0};

    id.data = luaL_checklstring(L, at, &id.size);
    luaL_argcheck(L, id.size >= 1 && id.size <= RH_ID_MAX, at, "an id of 1 to 255 bytes");
    return id;
}

static const char id_limit[] = "an id is at most 255 bytes";

/* ringhold.rebind(kind, id) -> the same */
static int api_rebind(lua_State *L)
{
    uint32_t call_ms = 0;
    const uint16_t kind = api_check_kind(L, 1, &call_ms);
    const struct rh_bytes id = check_id(L, 2);

    return told(L, rh_rebind(api_current(L)->lua_actor->actor, kind, id), id_limit);
}

/* ringhold.rebind_one(session, kind, id) -> the same, of that one */
static int api_rebind_one(lua_State *L)
{
    const uint64_t session = check_session(L);
    uint32_t call_ms = 0;
    const uint16_t kind = api_check_kind(L, 2, &call_ms);
    const struct rh_bytes id = check_id(L, 3);

    return told(L, rh_rebind_one(api_current(L)->lua_actor->actor, session, kind, id), id_limit);
}

const luaL_Reg api_session_functions[] = {
    {"broadcast", api_broadcast},
    {"kick", api_kick},
    {"kick_one", api_kick_one},
    {"push", api_push},
    {"push_one", api_push_one},
    {"rebind", api_rebind},
    {"rebind_one", api_rebind_one},
    {NULL, NULL},
};
