/* SPDX-License-Identifier: Apache-2.0
 *
 * What the functions of actors share. Nobody else includes this.
 */
#ifndef LUA_API_INSIDE_H
#define LUA_API_INSIDE_H

#include "lua/actor.h"
#include "lua/api.h"

/* The task whose code runs; raises a Lua error if none does. */
struct task *api_current(lua_State *L);
/* Check an argument: 0 to 2^31 - 1 milliseconds. */
uint32_t api_check_ms(lua_State *L, int index);
/* Check an argument: a kind's name or number. Named ones have their own time for calls:
 * `call_ms`. */
uint16_t api_check_kind(lua_State *L, int index, uint32_t *call_ms);

#endif
