/* SPDX-License-Identifier: Apache-2.0
 *
 * The named values of an actor of a durable kind: ringhold.put() and the like.
 */
#include "lua/api_inside.h"

#include "lua/vm.h"

#include <lua5.4/lauxlib.h>

static struct rh_actor *actor_of(lua_State *L)
{
    return api_current(L)->lua_actor->actor;
}

static struct rh_bytes check_key(lua_State *L, int index)
{
    struct rh_bytes key = {NULL, 0};

    key.data = luaL_checklstring(L, index, &key.size);
    luaL_argcheck(
        L, key.size > 0 && key.size <= RH_STATE_KEY_MAX, index, "a key of 1 to 255 bytes");
    return key;
}

/* 0 results, or a Lua error. */
static int done(lua_State *L, int result)
{
    switch (result) {
    case RH_OK:
    case RH_GONE:
        return 0;
    case RH_TOO_BIG:
        return luaL_error(L, "the value is over 1 MiB");
    case RH_FULL:
        return luaL_error(L, "the actor has too many values, or too large ones");
    case RH_OVERLOADED:
        return luaL_error(L, "the store is too slow for that");
    default:
        return luaL_error(L, "not now, or its kind is not durable");
    }
}

static void push(lua_State *L, struct rh_bytes bytes)
{
    (void)lua_pushlstring(L, bytes.size == 0 ? "" : bytes.data, bytes.size);
}

/* ringhold.get(key) -> its value, a string; nil = there is none */
static int api_get(lua_State *L)
{
    struct rh_bytes value = {NULL, 0};
    const int result = rh_state_get(actor_of(L), check_key(L, 1), &value);

    if (result == RH_OK) {
        push(L, value);
        return 1;
    }
    (void)done(L, result);
    lua_pushnil(L);
    return 1;
}

/* ringhold.put(key, value): a string or a number; nil deletes it */
static int api_put(lua_State *L)
{
    const struct rh_bytes key = check_key(L, 1);
    struct rh_bytes value = {NULL, 0};

    if (lua_isnoneornil(L, 2)) {
        return done(L, rh_state_delete(actor_of(L), key));
    }
    value.data = luaL_checklstring(L, 2, &value.size);
    return done(L, rh_state_put(actor_of(L), key, value));
}

/* ringhold.next([key]) -> the next key and its value; nil = that was the last */
static int api_next(lua_State *L)
{
    struct rh_bytes after = {"", 0};
    struct rh_bytes key = {NULL, 0};
    struct rh_bytes value = {NULL, 0};

    if (!lua_isnoneornil(L, 1)) {
        after.data = luaL_checklstring(L, 1, &after.size);
    }
    const int result = rh_state_next(actor_of(L), after, &key, &value);
    if (result == RH_OK) {
        push(L, key);
        push(L, value);
        return 2;
    }
    (void)done(L, result);
    lua_pushnil(L);
    return 1;
}

const luaL_Reg api_state_functions[] = {
    {"get", api_get},
    {"next", api_next},
    {"put", api_put},
    {NULL, NULL},
};
