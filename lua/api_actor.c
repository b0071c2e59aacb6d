/* SPDX-License-Identifier: Apache-2.0
 *
 * What a script may ask for the actor whose code runs.
 */
#include "lua/api.h"

#include "base/assert.h"
#include "lua/puppet.h"
#include "lua/realm.h"

#include <lua5.4/lauxlib.h>
#include <stdio.h>
#include <string.h>

static struct task *current(lua_State *L)
{
    struct task *t = realm_of(L)->running;

    if (t == NULL) {
        (void)luaL_error(L, "no actor runs here: this is for methods and callbacks");
        UNREACHABLE();
    }
    return t;
}

static uint32_t check_ms(lua_State *L, int index)
{
    const lua_Integer ms = luaL_checkinteger(L, index);

    luaL_argcheck(L, ms >= 0 && ms <= INT32_MAX, index, "milliseconds, 0 to 2147483647");
    return (uint32_t)ms;
}

static int done(lua_State *L, int result)
{
    return result == RH_OK ? 0 : luaL_error(L, "not now");
}

/* ---- calls ---- */

static uint16_t check_kind(lua_State *L, int index, uint32_t *call_ms)
{
    const struct realm *r = realm_of(L);

    if (lua_type(L, index) == LUA_TNUMBER) {
        const lua_Integer number = luaL_checkinteger(L, index);

        luaL_argcheck(L, number >= 0 && number <= UINT16_MAX, index, "a kind's number");
        *call_ms = current(L)->puppet->kind->draft.call_ms;
        return (uint16_t)number;
    }
    const struct game_kind *k = game_kind_named(r->game, luaL_checkstring(L, index));
    if (k == NULL) {
        return (uint16_t)luaL_error(
            L,
            "no kind '%s' in this script; others are called by their number",
            lua_tostring(L, index));
    }
    *call_ms = k->draft.call_ms;
    return k->draft.number;
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
    struct buffer *payload = &realm_of(L)->scratch;
    char error[REALM_ERROR_SIZE];
    struct request q = {0};

    (void)current(L);
    q.kind = check_kind(L, first, &q.call_ms);
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
        return luaL_error(L, "UNKNOWN outcome: its answer does not decode");
    }
    if (!lua_toboolean(L, first)) {
        lua_settop(L, first + 1);
        return lua_error(L); // The text as it is: its first word is a code.
    }
    return lua_gettop(L) - first;
}

static int ask(lua_State *L, const struct request *q, uint32_t flags)
{
    struct task *t = current(L);
    // A number differs from all earlier ones; a pointer might not.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    void *number = (void *)(uintptr_t)t->number;

    task_check_wait(L, t);
    const int asked = rh_call(
        t->puppet->actor, q->kind, q->id, q->payload, q->call_ms, flags, turn_on_answer, number);
    if (asked != RH_OK) {
        (void)lua_pushstring(L, turn_call_text(asked));
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

    q.call_ms = check_ms(L, 1);
    luaL_argcheck(L, q.call_ms >= 1 && q.call_ms <= 60000, 1, "milliseconds, 1 to 60000");
    return ask(L, &q, 0);
}

/* ringhold.read(kind, id, method, ...): may be run again after a crash */
static int api_read(lua_State *L)
{
    const struct request q = check_request(L, 1, false);

    return ask(L, &q, RH_IDEMPOTENT);
}

static int tell(lua_State *L, const struct request *q)
{
    const int sent = rh_send(current(L)->puppet->actor, q->kind, q->id, q->payload);

    if (sent != RH_OK) {
        (void)lua_pushstring(L, turn_call_text(sent));
        return lua_error(L);
    }
    return 0;
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

/* ---- coroutines ---- */

/* ringhold.sleep(ms) */
static int api_sleep(lua_State *L)
{
    struct task *t = current(L);
    const uint32_t ms = check_ms(L, 1);

    t->wake_ms = realm_now_ms() + ms;
    return task_wait(L, t, TASK_SLEEPING, NULL);
}

/* ringhold.wait(): until somebody says ringhold.wakeup(number) */
static int api_wait(lua_State *L)
{
    return task_wait(L, current(L), TASK_WAITING, NULL);
}

static int api_running(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)current(L)->number);
    return 1;
}

static int api_wakeup(lua_State *L)
{
    struct task *t = puppet_task(current(L)->puppet, (uint64_t)luaL_checkinteger(L, 1));
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
    const struct task *t = current(L);

    luaL_checktype(L, 1, LUA_TFUNCTION);
    struct task *fork = task_new(L, t->puppet, lua_gettop(L) - 1, "fork");
    fork->turn = t->turn;
    lua_pushinteger(L, (lua_Integer)fork->number);
    return 1;
}

/* ringhold.timeout(ms, fn, ...) -> its number: between messages */
static int api_timeout(lua_State *L)
{
    const struct task *t = current(L);
    const uint32_t ms = check_ms(L, 1);

    luaL_checktype(L, 2, LUA_TFUNCTION);
    struct task *later = task_new(L, t->puppet, lua_gettop(L) - 2, "timeout");
    later->state = TASK_SLEEPING;
    later->wake_ms = realm_now_ms() + ms;
    lua_pushinteger(L, (lua_Integer)later->number);
    return 1;
}

/* ringhold.timer(name, ms [, every_ms]): on_timer(self, name) */
static int api_timer(lua_State *L)
{
    size_t size = 0;
    const char *name = luaL_checklstring(L, 1, &size);
    const uint32_t ms = check_ms(L, 2);
    const uint32_t every_ms = lua_isnoneornil(L, 3) ? 0 : check_ms(L, 3);

    luaL_argcheck(L, size > 0 && size < TASK_NAME_SIZE, 1, "a name of 1 to 39 bytes");
    return done(L, clock_set(current(L)->puppet, name, ms, every_ms) ? RH_OK : RH_INVALID);
}

/* ringhold.cancel(number or name) -> true if there was one */
static int api_cancel(lua_State *L)
{
    const struct task *t = current(L);
    bool was = false;

    if (lua_type(L, 1) == LUA_TSTRING) {
        was = clock_stop(t->puppet, lua_tostring(L, 1));
    } else {
        struct task *other = puppet_task(t->puppet, (uint64_t)luaL_checkinteger(L, 1));

        was = other != NULL && other->state != TASK_RUNNING && !other->main;
        if (was) {
            task_cancel(other);
        }
    }
    lua_pushboolean(L, was);
    return 1;
}

/* ---- the client that is bound to the actor ---- */

/* true; nil and a text if nobody is bound; what can't be is raised. */
static int told(lua_State *L, int result, const char *too_big)
{
    switch (result) {
    case RH_OK:
        lua_pushboolean(L, true);
        return 1;
    case RH_NO_SESSION:
        lua_pushnil(L);
        (void)lua_pushstring(L, "NOSESSION no client is bound to the actor");
        return 2;
    case RH_TOO_BIG:
        return luaL_error(L, "%s", too_big);
    default:
        return luaL_error(L, "not now");
    }
}

/* The session that a function is about: its first argument. */
static uint64_t check_session(lua_State *L)
{
    const lua_Integer session = luaL_checkinteger(L, 1);

    luaL_argcheck(L, session > 0, 1, "a session as on_session was told it");
    return (uint64_t)session;
}

static const char push_limit[] = "a push is at most 256 KiB";

/* ringhold.push(bytes) -> true; nil and a text if nobody is bound */
static int api_push(lua_State *L)
{
    struct rh_bytes payload = {0};

    payload.data = luaL_checklstring(L, 1, &payload.size);
    return told(L, rh_push(current(L)->puppet->actor, payload), push_limit);
}

/* ringhold.push_one(session, bytes) -> the same, of that one */
static int api_push_one(lua_State *L)
{
    const uint64_t session = check_session(L);
    struct rh_bytes payload = {0};

    payload.data = luaL_checklstring(L, 2, &payload.size);
    return told(L, rh_push_one(current(L)->puppet->actor, session, payload), push_limit);
}

/* The id of a pair of the table: its key, or at a number its value. False: it names nobody. */
static bool pair_id(lua_State *L, struct rh_bytes *out)
{
    const int at = lua_type(L, -2) == LUA_TSTRING ? -2 : -1;

    if (!lua_toboolean(L, -1) || lua_type(L, at) != LUA_TSTRING) {
        return false;
    }
    out->data = lua_tolstring(L, at, &out->size);
    return true;
}

/* Those of the table, in the scratch buffer; they stay as long as the table has them. */
static size_t collect_ids(lua_State *L, int table, struct buffer *out)
{
    size_t count = 0;

    buffer_clear(out);
    lua_pushnil(L);
    while (lua_next(L, table) != 0) {
        struct rh_bytes id = {0};

        if (pair_id(L, &id)) {
            luaL_argcheck(L, id.size >= 1 && id.size <= RH_ID_MAX, table, "ids of 1 to 255 bytes");
            luaL_argcheck(L, count < RH_GROUP_MAX, table, "at most 65536 ids");
            buffer_put(out, &id, sizeof id);
            count++;
        }
        lua_pop(L, 1);
    }
    return count;
}

/* ringhold.broadcast(kind, ids, bytes) -> how many; nil and a text if too much waits already */
static int api_broadcast(lua_State *L)
{
    struct buffer *ids = &realm_of(L)->scratch;
    struct rh_actor *actor = current(L)->puppet->actor;
    struct rh_bytes payload = {0};
    uint32_t call_ms = 0;
    const uint16_t kind = check_kind(L, 1, &call_ms);

    luaL_checktype(L, 2, LUA_TTABLE);
    payload.data = luaL_checklstring(L, 3, &payload.size);
    const size_t count = collect_ids(L, 2, ids);
    const int sent =
        count == 0 ? RH_OK
                   : rh_push_ids(actor, kind, (const struct rh_bytes *)ids->data, count, payload);
    if (sent == RH_OVERLOADED) {
        lua_pushnil(L);
        (void)lua_pushstring(L, "OVERLOADED too many broadcasts wait already");
        return 2;
    }
    if (sent != RH_OK) {
        return told(L, sent, push_limit);
    }
    lua_pushinteger(L, (lua_Integer)count);
    return 1;
}

/* [code,] [text], from argument `at` on. */
struct farewell {
    uint32_t code;
    const char *text;
};

static struct farewell check_farewell(lua_State *L, int at)
{
    const bool coded = lua_type(L, at) == LUA_TNUMBER;
    const lua_Integer code = coded ? luaL_checkinteger(L, at) : RH_KICK_GAME;
    const int text_at = coded ? at + 1 : at;
    size_t size = 0;
    const char *text = luaL_optlstring(L, text_at, "", &size);

    luaL_argcheck(L, code >= RH_KICK_GAME && code <= UINT32_MAX, at, "a code of 1000 and up");
    luaL_argcheck(L, strlen(text) == size, text_at, "a text without NUL");
    return (struct farewell){.code = (uint32_t)code, .text = text};
}

static const char kick_limit[] = "a kick's text is at most 255 bytes";

/* ringhold.kick([code,] [text]) -> the same */
static int api_kick(lua_State *L)
{
    const struct farewell said = check_farewell(L, 1);

    return told(L, rh_kick(current(L)->puppet->actor, said.code, said.text), kick_limit);
}

/* ringhold.kick_one(session, [code,] [text]) -> the same, of that one */
static int api_kick_one(lua_State *L)
{
    const uint64_t session = check_session(L);
    const struct farewell said = check_farewell(L, 2);

    return told(
        L, rh_kick_one(current(L)->puppet->actor, session, said.code, said.text), kick_limit);
}

static struct rh_bytes check_id(lua_State *L, int at)
{
    struct rh_bytes id = {0};

    id.data = luaL_checklstring(L, at, &id.size);
    luaL_argcheck(L, id.size >= 1 && id.size <= RH_ID_MAX, at, "an id of 1 to 255 bytes");
    return id;
}

static const char id_limit[] = "an id is at most 255 bytes";

/* ringhold.rebind(kind, id) -> the same */
static int api_rebind(lua_State *L)
{
    uint32_t call_ms = 0;
    const uint16_t kind = check_kind(L, 1, &call_ms);
    const struct rh_bytes id = check_id(L, 2);

    return told(L, rh_rebind(current(L)->puppet->actor, kind, id), id_limit);
}

/* ringhold.rebind_one(session, kind, id) -> the same, of that one */
static int api_rebind_one(lua_State *L)
{
    const uint64_t session = check_session(L);
    uint32_t call_ms = 0;
    const uint16_t kind = check_kind(L, 2, &call_ms);
    const struct rh_bytes id = check_id(L, 3);

    return told(L, rh_rebind_one(current(L)->puppet->actor, session, kind, id), id_limit);
}

/* ---- the message, the actor ---- */

/* ringhold.ret(...): answer now, go on after it */
static int api_ret(lua_State *L)
{
    struct task *t = current(L);
    struct puppet *p = t->puppet;
    char error[REALM_ERROR_SIZE];

    if (p->type != TURN_MESSAGE || p->turn == 0 || t->turn != p->turn) {
        return luaL_error(L, "there is nothing to answer");
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
    const struct puppet *p = current(L)->puppet;

    if (p->from.size == 0) {
        return 0;
    }
    for (size_t i = 0; i < p->realm->game->kind_count; i++) {
        const struct draft *d = &p->realm->game->kind[i].draft;

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
    const struct puppet *p = current(L)->puppet;
    const struct rh_bytes id = rh_id(p->actor);

    (void)lua_pushlstring(L, id.data, id.size);
    (void)lua_pushstring(L, p->kind->draft.name);
    return 2;
}

static int api_fence(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)rh_fence(current(L)->puppet->actor));
    return 1;
}

/* ringhold.exit(): when the message is answered: flush, deactivate */
static int api_exit(lua_State *L)
{
    return done(L, rh_passivate(current(L)->puppet->actor));
}

static int api_flush(lua_State *L)
{
    return done(L, rh_flush_soon(current(L)->puppet->actor));
}

/* ringhold.fail(text): it is broken, start it afresh */
static int api_fail(lua_State *L)
{
    struct puppet *p = current(L)->puppet;
    size_t size = 0;
    const char *text = luaL_checklstring(L, 1, &size);

    if (p->type == TURN_MESSAGE && p->turn != 0) {
        answer_text(p, RH_ERROR, text, size);
    }
    return rh_fail(p->actor, text) == RH_OK ? api_refuse(L) : luaL_error(L, "not now");
}

const luaL_Reg api_actor_functions[] = {
    {"broadcast", api_broadcast},
    {"call", api_call},
    {"call_within", api_call_within},
    {"cancel", api_cancel},
    {"exit", api_exit},
    {"fail", api_fail},
    {"fence", api_fence},
    {"flush", api_flush},
    {"fork", api_fork},
    {"from", api_from},
    {"kick", api_kick},
    {"kick_one", api_kick_one},
    {"push", api_push},
    {"push_one", api_push_one},
    {"rawcall", api_rawcall},
    {"rawsend", api_rawsend},
    {"read", api_read},
    {"rebind", api_rebind},
    {"rebind_one", api_rebind_one},
    {"ret", api_ret},
    {"running", api_running},
    {"self", api_self},
    {"send", api_send},
    {"sleep", api_sleep},
    {"timeout", api_timeout},
    {"timer", api_timer},
    {"wait", api_wait},
    {"wakeup", api_wakeup},
    {NULL, NULL},
};
