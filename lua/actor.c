/* SPDX-License-Identifier: Apache-2.0
 *
 * The actor callbacks of every Lua kind: each begins a coroutine or ends one.
 */
#include "lua/actor.h"

#include "base/assert.h"
#include "base/mem.h"
#include "lua/image.h"
#include "lua/pack.h"

#include <lua5.4/lauxlib.h>
#include <stdio.h>
#include <string.h>

bool lua_actor_push_function(lua_State *L, const struct lua_actor *p, const char *name)
{
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, p->lua_vm->kind[p->kind->index].methods);
    const bool has = lua_getfield(L, -1, name) == LUA_TFUNCTION;
    lua_remove(L, -2);
    lua_pop(L, has ? 0 : 1);
    return has;
}

void lua_actor_push_self(lua_State *L, const struct lua_actor *p)
{
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, p->self);
}

/* A callback with self and the `count` values on top of the stack becomes the main task of the
 * turn. Without such a callback there is none. */
static void begin_callback(lua_State *L, struct lua_actor *p, const char *name, int count)
{
    if (!lua_actor_push_function(L, p, name)) {
        lua_pop(L, count);
        return;
    }
    lua_actor_push_self(L, p);
    lua_rotate(L, -(count + 2), 2);
    struct task *t = task_new(L, p, count + 1, name);
    t->turn = p->turn;
    t->main = p->turn != 0;
}

/* Nothing to wait for: the turn has no main task, so it is over. */
static void end_if_idle(struct lua_actor *p)
{
    struct list_link *at = list_front(&p->tasks);

    while (at != NULL && !CONTAINER_OF(at, struct task, in_lua_actor)->main) {
        at = list_next(&p->tasks, at);
    }
    if (at == NULL && p->turn != 0) {
        turn_end(p, p->result);
    }
}

/* ---- activate ---- */

struct birth {
    struct lua_actor *lua_actor;
    const struct rh_bytes *state;
};

/* Push the table that becomes self, and the state that on_activate is given. */
static void push_state(lua_State *L, const struct birth *b)
{
    const char how = lua_image_get(L, bytes_of(b->state->data, b->state->size));

    if (how == LUA_IMAGE_SELF) {
        lua_pushvalue(L, -1);
    } else {
        lua_newtable(L);
        lua_insert(L, -2);
    }
}

static void begin_life(lua_State *L, void *argument)
{
    const struct birth *b = argument;
    struct lua_actor *p = b->lua_actor;

    if (b->state != NULL) {
        push_state(L, b);
    } else {
        lua_newtable(L);
        lua_pushnil(L);
    }
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, p->lua_vm->kind[p->kind->index].meta);
    (void)lua_setmetatable(L, 1);
    lua_pushvalue(L, 1);
    p->self = luaL_ref(L, LUA_REGISTRYINDEX);
    begin_callback(L, p, "on_activate", 1);
}

static struct lua_actor *lua_actor_new(struct rh_actor *actor, struct lua_vm *r)
{
    struct lua_actor *p = mem_new(1, sizeof *p);

    p->actor = actor;
    p->lua_vm = r;
    p->kind = rh_shared(actor);
    p->self = LUA_NOREF;
    list_init(&p->tasks);
    list_init(&p->clocks);
    return p;
}

void lua_actor_free(struct lua_actor *p)
{
    struct list_link *at;

    while ((at = list_front(&p->tasks)) != NULL) {
        task_free(CONTAINER_OF(at, struct task, in_lua_actor));
    }
    clock_drop_all(p);
    luaL_unref(p->lua_vm->L, LUA_REGISTRYINDEX, p->self);
    p->self = LUA_NOREF;
    buffer_fini(&p->from);
    buffer_fini(&p->answer_bytes);
    mem_free(p);
}

int lua_actor_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    const struct game_kind *kind = rh_shared(actor);
    char error[LUA_VM_ERROR_SIZE];
    struct lua_vm *r = lua_vm_here(kind->game, error);

    (void)fence; // ringhold.fence()
    if (r == NULL) {
        lua_vm_complain(kind->kind_decl.name, rh_id(actor), error);
        return RH_FAILED;
    }
    lua_vm_refresh(r);
    struct lua_actor *p = lua_actor_new(actor, r);
    struct birth b = {p, state};
    turn_begin(p, TURN_ACTIVATE);
    if (!lua_vm_try(r, begin_life, &b, error)) {
        turn_fail(p, "on_activate", error);
    } else {
        end_if_idle(p);
    }
    *instance = p;
    const int result = turn_settle(p);
    if (result != RH_OK && result != RH_PENDING) {
        lua_actor_free(p);
    }
    return result;
}

/* ---- the other callbacks ---- */

/* A callback with a word as its argument, or with what is told of a session or an alarm. */
struct lua_call {
    struct lua_actor *lua_actor;
    const char *name;
    const char *word;             /* NULL = none */
    const struct rh_session *of;  /* NULL = of none */
    const char *why;              /* with it; or NULL */
    const struct rh_alarm *alarm; /* NULL = none */
};

/* Its `why` may be nil. */
static int push_session(lua_State *L, const struct rh_session *e, const char *why)
{
    (void)lua_pushstring(L, why);
    lua_pushinteger(L, (lua_Integer)e->session);
    if (e->former == 0) {
        return 2;
    }
    lua_pushinteger(L, (lua_Integer)e->former);
    return 3;
}

static void push_bytes(lua_State *L, struct rh_bytes bytes)
{
    (void)lua_pushlstring(L, bytes.size == 0 ? "" : bytes.data, bytes.size);
}

static void begin_call(lua_State *L, void *argument)
{
    const struct lua_call *c = argument;
    int count = 0;

    if (c->word != NULL) {
        (void)lua_pushstring(L, c->word);
        count++;
    }
    if (c->of != NULL) {
        count += push_session(L, c->of, c->why);
    }
    if (c->alarm != NULL) {
        push_bytes(L, c->alarm->name);
        push_bytes(L, c->alarm->payload);
        count += 2;
    }
    begin_callback(L, c->lua_actor, c->name, count);
}

static void begin_words(struct lua_call *c)
{
    struct lua_actor *p = c->lua_actor;
    char error[LUA_VM_ERROR_SIZE];

    if (lua_vm_try(p->lua_vm, begin_call, c, error)) {
        end_if_idle(p);
    } else if (p->turn != 0) {
        turn_fail(p, c->name, error);
    } else {
        lua_actor_log(p, c->name, error);
    }
}

static void begin(struct lua_actor *p, const char *name, const char *word)
{
    struct lua_call c = {.lua_actor = p, .name = name, .word = word};

    begin_words(&c);
}

static const char *why_word(enum rh_why why)
{
    switch (why) {
    case RH_MOVED:
        return "moved";
    case RH_STOP:
        return "stop";
    case RH_FENCED:
        return "fenced";
    case RH_IDLE:
        return "idle";
    case RH_BROKEN:
        return "broken";
    case RH_PERIODIC:
        return "periodic";
    }
    return "?";
}

/* Without on_handoff the fields of self move. */
static int hand_self_over(struct lua_actor *p)
{
    const uint32_t max =
        p->kind->kind_decl.state_max == 0 ? 1U << 20 : p->kind->kind_decl.state_max;
    struct pack_limit limit = {.name = "self", .size_max = max - LUA_IMAGE_HEAD};
    struct buffer *state = &p->lua_vm->scratch;
    lua_State *L = p->lua_vm->L;

    buffer_clear(state);
    lua_actor_push_self(L, p);
    const enum err error = pack_put(L, -1, state, &limit);
    lua_pop(L, 1);
    if (error != ERR_OK) {
        lua_actor_log(p, "handoff", limit.error);
        return RH_COLD;
    }
    lua_image_put(p->out, LUA_IMAGE_SELF, buffer_bytes(state));
    return RH_OK;
}

int lua_actor_handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    struct lua_actor *p = instance;

    (void)actor;
    p->out = out;
    turn_begin(p, TURN_HANDOFF);
    p->result = RH_PENDING; // There is no on_handoff.
    begin(p, "on_handoff", NULL);
    if (p->over && p->result == RH_PENDING) {
        p->result = hand_self_over(p);
    } else if (p->over && p->result == RH_FAILED) {
        p->result = RH_COLD;
    }
    return turn_settle(p);
}

void lua_actor_resume(struct rh_actor *actor, void *instance)
{
    (void)actor;
    (void)turn_settle(instance);
}

int lua_actor_flush(struct rh_actor *actor, void *instance, enum rh_why why, uint64_t fence)
{
    struct lua_actor *p = instance;

    (void)actor;
    (void)fence; // ringhold.fence()
    turn_begin(p, TURN_FLUSH);
    begin(p, "on_flush", why_word(why));
    return turn_settle(p);
}

/* What on_session is told, and why. */
static const char *session_word(uint32_t type)
{
    switch (type) {
    case RH_SESSION_BOUND:
        return "bound";
    case RH_SESSION_REPLACED:
        return "replaced";
    case RH_SESSION_RESUMED:
        return "resumed";
    case RH_SESSION_LOST:
        return "lost";
    default:
        return "?";
    }
}

static const char *lost_word(uint32_t why)
{
    switch (why) {
    case RH_LOST_CLOSED:
        return "closed";
    case RH_LOST_KICKED:
        return "kicked";
    case RH_LOST_SLOW:
        return "slow";
    case RH_LOST_GATEWAY:
        return "gateway";
    case RH_LOST_REBOUND:
        return "rebound";
    default:
        return "?";
    }
}

static const char *session_why(const struct rh_session *event)
{
    if (event->type == RH_SESSION_LOST) {
        return lost_word(event->why);
    }
    return event->type == RH_SESSION_RESUMED && event->why == RH_RESUMED_CLIENT ? "client" : NULL;
}

int lua_actor_session(struct rh_actor *actor, void *instance, const struct rh_session *event)
{
    struct lua_actor *p = instance;
    struct lua_call c = {.lua_actor = p,
                         .name = "on_session",
                         .word = session_word(event->type),
                         .of = event,
                         .why = session_why(event)};

    (void)actor;
    lua_vm_refresh(p->lua_vm);
    turn_begin(p, TURN_SESSION);
    p->result = RH_FAILED; // The script took its on_session away: nobody is let in.
    begin_words(&c);
    return turn_settle(p);
}

int lua_actor_alarm(struct rh_actor *actor, void *instance, const struct rh_alarm *alarm)
{
    struct lua_actor *p = instance;
    struct lua_call c = {.lua_actor = p, .name = "on_alarm", .alarm = alarm};

    (void)actor;
    lua_vm_refresh(p->lua_vm);
    turn_begin(p, TURN_ALARM);
    p->result = RH_FAILED; // The script took its on_alarm away: the alarm waits for it.
    begin_words(&c);
    return turn_settle(p);
}

void lua_actor_timer(struct rh_actor *actor, void *instance, uint64_t timer, void *argument)
{
    struct lua_actor *p = instance;
    char name[TASK_NAME_SIZE];

    (void)actor;
    if (argument == NULL) {
        p->timer = timer == p->timer ? 0 : p->timer;
        turn_wake(p);
    } else {
        clock_rang(p, argument, name);
        begin(p, "on_timer", name);
    }
    (void)turn_settle(p);
}

void lua_actor_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    struct lua_actor *p = instance;

    (void)actor;
    struct lua_vm *r = p->lua_vm;
    if (p->turn != 0) {
        turn_end(p, RH_FAILED); // It was cut off.
    }
    turn_begin(p, TURN_DEACTIVATE);
    begin(p, "on_deactivate", why_word(why));
    (void)turn_settle(p);
    lua_actor_free(p);
    ASSERT(r->running == NULL);
}
