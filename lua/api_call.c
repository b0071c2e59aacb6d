/* SPDX-License-Identifier: Apache-2.0
 *
 * ringhold.call() and ringhold.send(): what actors ask of others.
 */
#include "lua/api_inside.h"

#include <lua5.4/lauxlib.h>

uint16_t api_check_kind(lua_State *L, int index, uint32_t *call_ms)
{
    const struct lua_vm *r = lua_vm_of(L);

    if (lua_type(L, index) == LUA_TNUMBER) {
        const lua_Integer number = luaL_checkinteger(L, index);

        luaL_argcheck(L, number >= 0 && number <= UINT16_MAX, index, "a kind's number");
        *call_ms = api_current(L)->lua_actor->kind->kind_decl.call_ms;
        return (uint16_t)number;
    }
    const struct game_kind *k = game_kind_named(r->game, luaL_checkstring(L, index));
    if (k == NULL) {
        return (uint16_t)luaL_error(
            L,
            "no kind '%s' in this script; call kinds of other scripts by their number",
            lua_tostring(L, index));
    }
    *call_ms = k->kind_decl.call_ms;
    return k->kind_decl.number;
}

/* Whom to ask, and what: the arguments of call and send from `first` on. */
struct request {
    uint16_t kind;
    struct rh_bytes id;
    struct rh_bytes payload;
    uint32_t call_ms;
};

static struct request check_request(lua_State *L, int first, bool raw)
{
    struct buffer *payload = &lua_vm_of(L)->scratch;
    char error[LUA_VM_ERROR_SIZE];
    struct request q = {0};

    (void)api_current(L);
    q.kind = api_check_kind(L, first, &q.call_ms);
    q.id.data = luaL_checklstring(L, first + 1, &q.id.size);
    if (raw) {
        q.payload.data = luaL_checklstring(L, first + 2, &q.payload.size);
        return q;
    }
    (void)luaL_checkstring(L, first + 2);
    buffer_clear(payload);
    if (!answer_pack(L, first + 2, lua_gettop(L) - first - 1, payload, error)) {
        (void)luaL_error(L, "%s", error);
    }
    q.payload = (struct rh_bytes){payload->data, payload->size};
    return q;
}

/* On the stack now: true and the results, or false and a text, or nothing. */
static int after_call(lua_State *L, int status, lua_KContext base)
{
    const int first = (int)base + 1;

    (void)status;
    if (lua_gettop(L) < first) {
        return luaL_error(L, "UNKNOWN outcome: the answer can't be decoded");
    }
    if (!lua_toboolean(L, first)) {
        lua_settop(L, first + 1);
        return lua_error(L); // The text as it is: its first word is a code.
    }
    return lua_gettop(L) - first;
}

static int ask(lua_State *L, const struct request *q, uint32_t flags)
{
    struct task *t = api_current(L);
    // A number differs from all earlier ones; a pointer might not.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    void *number = (void *)(uintptr_t)t->number;

    task_check_wait(L, t);
    const int asked = rh_call(
        t->lua_actor->actor, q->kind, q->id, q->payload, q->call_ms, flags, turn_on_answer, number);
    if (asked != RH_OK) {
        (void)lua_pushstring(L, turn_refusal(asked));
        return lua_error(L);
    }
    return task_wait(L, t, TASK_CALLING, after_call);
}

/* ringhold.call(kind, id, method, ...) -> its results */
static int api_call(lua_State *L)
{
    const struct request q = check_request(L, 1, false);

    return ask(L, &q, 0);
}

/* ringhold.rawcall(kind, id, payload) -> its answer, for actors that are no scripts */
static int api_rawcall(lua_State *L)
{
    const struct request q = check_request(L, 1, true);

    return ask(L, &q, 0);
}

/* ringhold.call_within(ms, kind, id, method, ...) */
static int api_call_within(lua_State *L)
{
    struct request q = check_request(L, 2, false);

    q.call_ms = api_check_ms(L, 1);
    luaL_argcheck(L, q.call_ms >= 1 && q.call_ms <= 60000, 1, "milliseconds, 1 to 60000");
    return ask(L, &q, 0);
}

/* ringhold.read(kind, id, method, ...): may be run again after a crash */
static int api_read(lua_State *L)
{
    const struct request q = check_request(L, 1, false);

    return ask(L, &q, RH_IDEMPOTENT);
}

static int told(lua_State *L, int sent)
{
    if (sent != RH_OK) {
        (void)lua_pushstring(L, turn_refusal(sent));
        return lua_error(L);
    }
    return 0;
}

static int tell(lua_State *L, const struct request *q)
{
    return told(L, rh_send(api_current(L)->lua_actor->actor, q->kind, q->id, q->payload));
}

/* ringhold.send_once(kind, id, method, ...): of a durable kind; arrives, and once */
static int api_send_once(lua_State *L)
{
    const struct request q = check_request(L, 1, false);

    return told(L, rh_send_once(api_current(L)->lua_actor->actor, q.kind, q.id, q.payload));
}

/* ringhold.send(kind, id, method, ...) */
static int api_send(lua_State *L)
{
    const struct request q = check_request(L, 1, false);

    return tell(L, &q);
}

static int api_rawsend(lua_State *L)
{
    const struct request q = check_request(L, 1, true);

    return tell(L, &q);
}

const luaL_Reg api_call_functions[] = {
    {"call", api_call},
    {"call_within", api_call_within},
    {"rawcall", api_rawcall},
    {"rawsend", api_rawsend},
    {"read", api_read},
    {"send", api_send},
    {"send_once", api_send_once},
    {NULL, NULL},
};
