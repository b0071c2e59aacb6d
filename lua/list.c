/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks a script's list() for the ids that must be alive.
 */
#include "lua/actor.h"

#include <lua5.4/lauxlib.h>

struct lua_listing {
    struct lua_vm *lua_vm;
    size_t index;
    struct rh_ids *out;
};

static void list_ids(lua_State *L, void *argument)
{
    const struct lua_listing *l = argument;

    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, l->lua_vm->kind[l->index].remembered);
    if (lua_isfunction(L, -1)) {
        lua_call(L, 0, 1);
    }
    luaL_checktype(L, -1, LUA_TTABLE);
    const lua_Integer count = luaL_len(L, -1);
    for (lua_Integer i = 1; i <= count; i++) {
        size_t size = 0;

        (void)lua_geti(L, -1, i);
        const char *id = luaL_checklstring(L, -1, &size);
        rh_ids_put(l->out, (struct rh_bytes){id, size});
        lua_pop(L, 1);
    }
}

int lua_actor_list(void *shared, struct rh_ids *out)
{
    const struct game_kind *kind = shared;
    char error[LUA_VM_ERROR_SIZE];
    struct lua_vm *r = lua_vm_new(kind->game, error); // This thread may block, and runs no actors.

    if (r == NULL) {
        lua_vm_complain(kind->kind_decl.name, (struct rh_bytes){0}, error);
        return RH_FAILED;
    }
    struct lua_listing l = {r, kind->index, out};
    lua_vm_wind(r, r->L);
    const bool done = lua_vm_try(r, list_ids, &l, error);
    if (!done) {
        lua_vm_complain(kind->kind_decl.name, (struct rh_bytes){0}, error);
    }
    lua_vm_free(r);
    return done ? RH_OK : RH_FAILED;
}
