/* SPDX-License-Identifier: Apache-2.0
 *
 * The named values and the alarms of an actor of a durable kind: ringhold.put() and the like.
 */
#include "lua/api_inside.h"

#include "lua/vm.h"

#include <lua5.4/lauxlib.h>
#include <math.h>

enum { SECONDS_MAX = 2000000000 }; /* some 63 years */

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

/* ---- alarms ---- */

/* A number of seconds as milliseconds, not less. */
static uint64_t check_seconds(lua_State *L, int index, const char *what)
{
    const lua_Number seconds = luaL_checknumber(L, index);

    if (!(seconds >= 0 && seconds <= SECONDS_MAX)) {
        (void)luaL_error(L, "%s must be 0 to %d seconds", what, SECONDS_MAX);
    }
    return (uint64_t)ceil(seconds * 1000);
}

/* The option at the top of the stack goes with the caller's values. */
static bool has_option(lua_State *L, const char *name)
{
    return lua_istable(L, 3) && lua_getfield(L, 3, name) != LUA_TNIL;
}

/* ringhold.alarm(name, seconds [, {every = seconds, payload = text}]): on_alarm(self, name,
 * payload) */
static int api_alarm(lua_State *L)
{
    const struct rh_bytes name = check_key(L, 1);
    const uint64_t in_ms = check_seconds(L, 2, "the time of an alarm");
    struct rh_bytes payload = {"", 0};
    uint64_t every_ms = 0;

    if (!lua_isnoneornil(L, 3)) {
        luaL_checktype(L, 3, LUA_TTABLE);
    }
    if (has_option(L, "every")) {
        every_ms = check_seconds(L, -1, "`every`");
        luaL_argcheck(L, every_ms >= RH_ALARM_EVERY_MIN_MS, 3, "`every` must be 0.1 or more");
    }
    if (has_option(L, "payload")) {
        payload.data = luaL_checklstring(L, -1, &payload.size);
    }
    const uint64_t due_ms = (lua_vm_wall_us() + 999) / 1000 + in_ms;
    const int result = rh_alarm_set(actor_of(L), name, due_ms, every_ms, payload);
    switch (result) {
    case RH_TOO_BIG:
        return luaL_error(L, "the payload is over 64 KiB");
    case RH_FULL:
        return luaL_error(L, "the actor has too many alarms");
    case RH_INVALID:
        return luaL_error(L, "not now, or its kind is not durable, or has no on_alarm");
    default:
        return done(L, result);
    }
}

/* ringhold.cancel_alarm(name) -> true if there was one */
static int api_cancel_alarm(lua_State *L)
{
    const int result = rh_alarm_cancel(actor_of(L), check_key(L, 1));

    (void)done(L, result);
    lua_pushboolean(L, result == RH_OK);
    return 1;
}

const luaL_Reg api_state_functions[] = {
    {"alarm", api_alarm},
    {"cancel_alarm", api_cancel_alarm},
    {"get", api_get},
    {"next", api_next},
    {"put", api_put},
    {NULL, NULL},
};
