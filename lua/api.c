/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the table `ringhold`, and those that need no actor.
 */
#include "lua/api.h"

#include "base/clock.h"
#include "base/log.h"
#include "lua/actor.h"
#include "lua/vm.h"

#include <lua5.4/lauxlib.h>
#include <stdio.h>
#include <string.h>

static struct lua_vm *loading_lua_vm(lua_State *L, const char *name)
{
    struct lua_vm *r = lua_vm_of(L);

    if (!r->loading) {
        (void)luaL_error(L, "ringhold.%s() is only for while the script loads", name);
    }
    return r;
}

/* ringhold.kind(name [, options]) -> the table for its methods */
static int api_kind(lua_State *L)
{
    struct lua_vm *r = loading_lua_vm(L, "kind");
    struct lua_vm_kind_decl *d = &r->kind_decl[r->kind_decl_count];

    lua_settop(L, 2);
    if (r->kind_decl_count == KIND_DECLS_MAX) {
        return luaL_error(L, "more than %d kinds in one script", KIND_DECLS_MAX);
    }
    d->methods = d->remembered = LUA_NOREF;
    kind_decl_read(L, (uint16_t)r->kind_decl_count, &d->kind_decl);
    for (size_t i = 0; i < r->kind_decl_count; i++) {
        if (strcmp(r->kind_decl[i].kind_decl.name, d->kind_decl.name) == 0) {
            return luaL_error(L, "kind '%s' is declared twice", d->kind_decl.name);
        }
        if (r->kind_decl[i].kind_decl.number == d->kind_decl.number) {
            return luaL_error(L,
                              "kinds '%s' and '%s' have the same number, %d",
                              r->kind_decl[i].kind_decl.name,
                              d->kind_decl.name,
                              (int)d->kind_decl.number);
        }
    }
    r->kind_decl_count++; // From here on the next load frees what it refers to.
    if (d->kind_decl.remembers) {
        (void)lua_getfield(L, 2, "remembered");
        d->remembered = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    lua_newtable(L);
    lua_pushvalue(L, -1);
    d->methods = luaL_ref(L, LUA_REGISTRYINDEX);
    return 1;
}

/* ringhold.start(fn): called when the script has loaded */
static int api_start(lua_State *L)
{
    struct lua_vm *r = loading_lua_vm(L, "start");

    luaL_checktype(L, 1, LUA_TFUNCTION);
    if (r->start != LUA_NOREF) {
        return luaL_error(L, "ringhold.start() was called before");
    }
    lua_settop(L, 1);
    r->start = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

/* Like print(): all arguments as text, with spaces between. */
static const char *joined(lua_State *L)
{
    const int count = lua_gettop(L);
    luaL_Buffer b;

    luaL_buffinit(L, &b);
    for (int i = 1; i <= count; i++) {
        if (i > 1) {
            luaL_addchar(&b, ' ');
        }
        (void)luaL_tolstring(L, i, NULL);
        luaL_addvalue(&b);
    }
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

/* Who says it. */
static void say(lua_State *L, enum log_level level)
{
    const struct lua_vm *r = lua_vm_of(L);
    char text[800];

    (void)snprintf(text, sizeof text, "%s", joined(L));
    for (char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ') {
            *c = ' '; // One line.
        }
    }
    log_write(level,
              "lua",
              "script",
              "kind=%s text=\"%s\"",
              r->running == NULL ? "-" : r->running->lua_actor->kind->kind_decl.name,
              text);
}

static int api_error(lua_State *L)
{
    say(L, LOG_WARN);
    return 0;
}

static int api_log(lua_State *L)
{
    say(L, LOG_INFO);
    return 0;
}

static int refusal_text(lua_State *L)
{
    (void)lua_rawgetp(L, 1, task_refusal);
    return 1;
}

int api_refuse(lua_State *L)
{
    (void)luaL_checkstring(L, 1);
    lua_settop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, 1);
    lua_rawsetp(L, -2, task_refusal);
    (void)lua_getfield(L, LUA_REGISTRYINDEX, "ringhold.refusal");
    (void)lua_setmetatable(L, -2);
    return lua_error(L);
}

static int api_now(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)lua_vm_now_ms());
    return 1;
}

static int api_time(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)clock_wall_us() / 1e6);
    return 1;
}

static int api_node(lua_State *L)
{
    (void)lua_pushstring(L, lua_vm_of(L)->game->node);
    return 1;
}

static const luaL_Reg functions[] = {
    {"error", api_error},
    {"kind", api_kind},
    {"log", api_log},
    {"node", api_node},
    {"now", api_now},
    {"refuse", api_refuse},
    {"start", api_start},
    {"store", store_open},
    {"time", api_time},
    {NULL, NULL},
};

/* Only its address counts: nobody writes there. */
static void push_mark(lua_State *L, const char *mark)
{
    void *address = NULL;

    memcpy(&address, &mark, sizeof address);
    lua_pushlightuserdata(L, address);
}

void api_open(lua_State *L)
{
    lua_newtable(L);
    luaL_setfuncs(L, functions, 0);
    luaL_setfuncs(L, api_actor_functions, 0);
    luaL_setfuncs(L, api_call_functions, 0);
    luaL_setfuncs(L, api_session_functions, 0);
    luaL_setfuncs(L, api_state_functions, 0);
    (void)lua_pushstring(L, lua_vm_of(L)->game->argument);
    lua_setfield(L, -2, "argument");
    (void)lua_pushstring(L, rh_version());
    lua_setfield(L, -2, "version");
    push_mark(L, lua_actor_busy);
    lua_setfield(L, -2, "BUSY");
    push_mark(L, lua_actor_cold);
    lua_setfield(L, -2, "COLD");
    // require "ringhold" works as well.
    (void)lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "ringhold");
    lua_pop(L, 1);
    lua_setglobal(L, "ringhold");
    lua_newtable(L);
    lua_pushcfunction(L, refusal_text);
    lua_setfield(L, -2, "__tostring");
    lua_setfield(L, LUA_REGISTRYINDEX, "ringhold.refusal");
}
