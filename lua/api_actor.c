/* SPDX-License-Identifier: Apache-2.0
 *
 * What a script may ask for the actor whose code runs.
 */
#include "lua/api_inside.h"

#include "base/assert.h"
#include "lua/vm.h"

#include <lua5.4/lauxlib.h>

struct task *api_current(lua_State *L)
{
    struct task *t = lua_vm_of(L)->running;

    if (t == NULL) {
        (void)luaL_error(L, "no actor runs here: this function is for methods and callbacks");
        UNREACHABLE();
    }
    return t;
}

uint32_t api_check_ms(lua_State *L, int index)
{
    const lua_Integer ms = luaL_checkinteger(L, index);

    luaL_argcheck(L, ms >= 0 && ms <= INT32_MAX, index, "milliseconds, 0 to 2147483647");
    return (uint32_t)ms;
}

static int done(lua_State *L, int result)
{
    return result == RH_OK ? 0 : luaL_error(L, "not now");
}

/* ---- coroutines ---- */

/* ringhold.sleep(ms) */
static int api_sleep(lua_State *L)
{
    struct task *t = api_current(L);
    const uint32_t ms = api_check_ms(L, 1);

    t->wake_ms = lua_vm_now_ms() + ms;
    return task_wait(L, t, TASK_SLEEPING, NULL);
}

/* ringhold.wait(): until somebody says ringhold.wakeup(number) */
static int api_wait(lua_State *L)
{
    return task_wait(L, api_current(L), TASK_WAITING, NULL);
}

static int api_running(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)api_current(L)->number);
    return 1;
}

static int api_wakeup(lua_State *L)
{
    struct task *t = lua_actor_task(api_current(L)->lua_actor, (uint64_t)luaL_checkinteger(L, 1));
    const bool waits = t != NULL && (t->state == TASK_WAITING || t->state == TASK_SLEEPING);

    if (waits) {
        t->state = TASK_READY;
    }
    lua_pushboolean(L, waits);
    return 1;
}

/* ringhold.fork(fn, ...) -> its number: beside this one, when this one waits or ends */
static int api_fork(lua_State *L)
{
    const struct task *t = api_current(L);

    luaL_checktype(L, 1, LUA_TFUNCTION);
    struct task *fork = task_new(L, t->lua_actor, lua_gettop(L) - 1, "fork");
    fork->turn = t->turn;
    lua_pushinteger(L, (lua_Integer)fork->number);
    return 1;
}

/* ringhold.timeout(ms, fn, ...) -> its number: between messages */
static int api_timeout(lua_State *L)
{
    const struct task *t = api_current(L);
    const uint32_t ms = api_check_ms(L, 1);

    luaL_checktype(L, 2, LUA_TFUNCTION);
    struct task *later = task_new(L, t->lua_actor, lua_gettop(L) - 2, "timeout");
    later->state = TASK_SLEEPING;
    later->wake_ms = lua_vm_now_ms() + ms;
    lua_pushinteger(L, (lua_Integer)later->number);
    return 1;
}

/* ringhold.timer(name, ms [, every_ms]): on_timer(self, name) */
static int api_timer(lua_State *L)
{
    size_t size = 0;
    const char *name = luaL_checklstring(L, 1, &size);
    const uint32_t ms = api_check_ms(L, 2);
    const uint32_t every_ms = lua_isnoneornil(L, 3) ? 0 : api_check_ms(L, 3);

    luaL_argcheck(L, size > 0 && size < TASK_NAME_SIZE, 1, "a name of 1 to 39 bytes");
    return done(L, clock_set(api_current(L)->lua_actor, name, ms, every_ms) ? RH_OK : RH_INVALID);
}

/* ringhold.cancel(number or name) -> true if there was one */
static int api_cancel(lua_State *L)
{
    const struct task *t = api_current(L);
    bool was = false;

    if (lua_type(L, 1) == LUA_TSTRING) {
        was = clock_stop(t->lua_actor, lua_tostring(L, 1));
    } else {
        struct task *other = lua_actor_task(t->lua_actor, (uint64_t)luaL_checkinteger(L, 1));

        was = other != NULL && other->state != TASK_RUNNING && !other->main;
        if (was) {
            task_cancel(other);
        }
    }
    lua_pushboolean(L, was);
    return 1;
}

/* ---- the message, the actor ---- */

/* ringhold.ret(...): answer now, go on after it */
static int api_ret(lua_State *L)
{
    struct task *t = api_current(L);
    struct lua_actor *p = t->lua_actor;
    char error[LUA_VM_ERROR_SIZE];

    if (p->type != TURN_MESSAGE || p->turn == 0 || t->turn != p->turn) {
        return luaL_error(L, "there is no request to answer");
    }
    if (!answer_values(p, L, 1, lua_gettop(L), error)) {
        return luaL_error(L, "%s", error);
    }
    turn_end(p, RH_OK);
    return 0;
}

/* ringhold.from() -> kind, id of the actor that sent the message; nothing = a client */
static int api_from(lua_State *L)
{
    const struct lua_actor *p = api_current(L)->lua_actor;

    if (p->from.size == 0) {
        return 0;
    }
    for (size_t i = 0; i < p->lua_vm->game->kind_count; i++) {
        const struct kind_decl *d = &p->lua_vm->game->kind[i].kind_decl;

        if (d->number == p->from_kind) {
            (void)lua_pushstring(L, d->name);
            (void)lua_pushlstring(L, (const char *)p->from.data, p->from.size);
            return 2;
        }
    }
    lua_pushinteger(L, p->from_kind);
    (void)lua_pushlstring(L, (const char *)p->from.data, p->from.size);
    return 2;
}

/* ringhold.self() -> id, kind */
static int api_self(lua_State *L)
{
    const struct lua_actor *p = api_current(L)->lua_actor;
    const struct rh_bytes id = rh_id(p->actor);

    (void)lua_pushlstring(L, id.data, id.size);
    (void)lua_pushstring(L, p->kind->kind_decl.name);
    return 2;
}

static int api_fence(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)rh_fence(api_current(L)->lua_actor->actor));
    return 1;
}

/* ringhold.incarnation() -> text: this life's, no other's */
static int api_incarnation(lua_State *L)
{
    char text[RH_INCARNATION_TEXT];

    rh_incarnation_text(rh_incarnation(api_current(L)->lua_actor->actor), text);
    (void)lua_pushstring(L, text);
    return 1;
}

/* ringhold.exit(): when the message is answered: flush, deactivate */
static int api_exit(lua_State *L)
{
    return done(L, rh_passivate(api_current(L)->lua_actor->actor));
}

static int api_flush(lua_State *L)
{
    return done(L, rh_flush_soon(api_current(L)->lua_actor->actor));
}

/* ringhold.fail(text): it is broken, start it afresh */
static int api_fail(lua_State *L)
{
    struct lua_actor *p = api_current(L)->lua_actor;
    size_t size = 0;
    const char *text = luaL_checklstring(L, 1, &size);

    if (p->type == TURN_MESSAGE && p->turn != 0) {
        answer_text(p, RH_ERROR, text, size);
    }
    return rh_fail(p->actor, text) == RH_OK ? api_refuse(L) : luaL_error(L, "not now");
}

const luaL_Reg api_actor_functions[] = {
    {"cancel", api_cancel},
    {"exit", api_exit},
    {"fail", api_fail},
    {"fence", api_fence},
    {"incarnation", api_incarnation},
    {"flush", api_flush},
    {"fork", api_fork},
    {"from", api_from},
    {"ret", api_ret},
    {"running", api_running},
    {"self", api_self},
    {"sleep", api_sleep},
    {"timeout", api_timeout},
    {"timer", api_timer},
    {"wait", api_wait},
    {"wakeup", api_wakeup},
    {NULL, NULL},
};
