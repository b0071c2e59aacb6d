/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `ringhold` that scripts use. docs/lua.md is its reference.
 */
#ifndef LUA_API_H
#define LUA_API_H

#include <lua5.4/lauxlib.h>

/* Set the global `ringhold`. Raises a Lua error when out of memory. */
void api_open(lua_State *L);

/* Functions that only an actor's code may call, NULL-terminated: those of api_actor.c, api_call.c,
 * api_session.c, api_state.c. */
extern const luaL_Reg api_actor_functions[];
extern const luaL_Reg api_call_functions[];
extern const luaL_Reg api_session_functions[];
extern const luaL_Reg api_state_functions[];

/* Implements ringhold.refuse("NOITEM you have none"): raises what the caller gets as an error, word
 * by word. */
int api_refuse(lua_State *L);

/* Implements ringhold.store(path [, table]), in store_sqlite.c. */
int store_open(lua_State *L);

#endif
