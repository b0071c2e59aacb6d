/* SPDX-License-Identifier: Apache-2.0
 *
 * Has a script turn a state of another version into one that it knows.
 */
#include "lua/actor.h"
#include "lua/image.h"
#include "lua/pack.h"

#include <lua5.4/lauxlib.h>

struct lua_upgrade {
    struct lua_vm *lua_vm;
    const struct game_kind *kind;
    const struct rh_bytes *state;
    uint32_t version;
    struct rh_out *out;
};

/* on_upgrade(state, version) returns the state. */
static void upgrade(lua_State *L, void *argument)
{
    const struct lua_upgrade *u = argument;
    const uint32_t max =
        u->kind->kind_decl.state_max == 0 ? 1U << 20 : u->kind->kind_decl.state_max;
    struct pack_limit limit = {.name = "state", .size_max = max - LUA_IMAGE_HEAD};
    struct buffer *packed = &u->lua_vm->scratch;

    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, u->lua_vm->kind[u->kind->index].methods);
    (void)lua_getfield(L, -1, "on_upgrade");
    const char how = lua_image_get(L, bytes_of(u->state->data, u->state->size));
    lua_pushinteger(L, u->version);
    lua_call(L, 2, 1);
    if (how == LUA_IMAGE_SELF && !lua_istable(L, -1)) {
        (void)luaL_error(L, "on_upgrade must return a table: the fields of self");
    }
    buffer_clear(packed);
    if (pack_put(L, -1, packed, &limit) != ERR_OK) {
        (void)luaL_error(L, "%s", limit.error);
    }
    lua_image_put(u->out, how, buffer_bytes(packed));
}

int lua_actor_upgrade(struct rh_actor *actor, uint32_t version, const struct rh_bytes *state,
                      struct rh_out *out)
{
    const struct game_kind *kind = rh_shared(actor);
    char error[LUA_VM_ERROR_SIZE];
    struct lua_vm *r = lua_vm_here(kind->game, error);

    if (r == NULL) {
        lua_vm_complain(kind->kind_decl.name, rh_id(actor), error);
        return RH_FAILED;
    }
    lua_vm_refresh(r);
    struct lua_upgrade u = {
        .lua_vm = r, .kind = kind, .state = state, .version = version, .out = out};
    lua_vm_wind(r, r->L);
    if (lua_vm_try(r, upgrade, &u, error)) {
        return RH_OK;
    }
    const struct fault f = {
        .kind = kind->kind_decl.name, .id = rh_id(actor), .where = "on_upgrade", .text = error};
    lua_vm_log(r, &f);
    return RH_FAILED;
}
