/* SPDX-License-Identifier: Apache-2.0
 *
 * A script's state as it moves: what it is, and the packed value.
 *
 *     u8 1 | u8 'S' the fields of self, or 'V' what on_handoff returned | value (lua/pack.h)
 */
#ifndef LUA_IMAGE_H
#define LUA_IMAGE_H

#include "base/bytes.h"

#include <lua5.4/lua.h>
#include <ringhold.h>

enum { LUA_IMAGE_HEAD = 2, LUA_IMAGE_SELF = 'S', LUA_IMAGE_VALUE = 'V' };

void lua_image_put(struct rh_out *out, char how, struct bytes packed);
/* Push the value and return SELF or VALUE; of SELF it is a table. Raises a Lua error: it is
 * none. */
char lua_image_get(lua_State *L, struct bytes state);

#endif
