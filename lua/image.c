/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes and reads the head of a script's state.
 */
#include "lua/image.h"

#include "lua/pack.h"

#include <lua5.4/lauxlib.h>

enum { IMAGE_VERSION = 1 };

void lua_image_put(struct rh_out *out, char how, struct bytes packed)
{
    const char head[LUA_IMAGE_HEAD] = {IMAGE_VERSION, how};

    rh_out_put(out, head, sizeof head);
    rh_out_put(out, packed.data, packed.size);
}

char lua_image_get(lua_State *L, struct bytes state)
{
    const uint8_t *head = state.data;
    struct bytes in = state;
    const bool known = in.size > LUA_IMAGE_HEAD && head[0] == IMAGE_VERSION &&
                       (head[1] == LUA_IMAGE_SELF || head[1] == LUA_IMAGE_VALUE);

    if (known) {
        in = bytes_of(in.data + LUA_IMAGE_HEAD, in.size - LUA_IMAGE_HEAD);
    }
    if (!known || pack_get(L, &in) != ERR_OK || in.size > 0 ||
        (head[1] == LUA_IMAGE_SELF && !lua_istable(L, -1))) {
        (void)luaL_error(L, "the received state can't be decoded");
    }
    return (char)head[1];
}
