/* SPDX-License-Identifier: Apache-2.0
 *
 * One message or timer of a Lua actor from its start to its answer, also when it
 * waits in between.
 */
#include "base/assert.h"
#include "base/log.h"
#include "lua/actor.h"
#include "lua/image.h"
#include "lua/pack.h"

#include <lua5.4/lauxlib.h>
#include <stdio.h>
#include <string.h>

enum { RUNS_MAX = 256 }; /* of one settle: what forks for ever must not keep the thread */

const char lua_actor_busy[1] = "";
const char lua_actor_cold[1] = "";

void lua_actor_log(struct lua_actor *p, const char *where, const char *error)
{
    const struct fault f = {
        .kind = p->kind->kind_decl.name, .id = rh_id(p->actor), .where = where, .text = error};

    lua_vm_log(p->lua_vm, &f);
}

struct task *lua_actor_task(const struct lua_actor *p, uint64_t number)
{
    for (struct list_link *at = list_front(&p->tasks); at != NULL; at = list_next(&p->tasks, at)) {
        struct task *t = CONTAINER_OF(at, struct task, in_lua_actor);

        if (t->number == number) {
            return t;
        }
    }
    return NULL;
}

/* ---- turns ---- */

void turn_begin(struct lua_actor *p, enum turn_type type)
{
    ASSERT(p->turn == 0);
    p->type = type;
    p->turn = ++p->lua_vm->number;
    p->limit_ms = lua_vm_now_ms() + p->kind->kind_decl.limit_ms;
    p->deferred = p->over = p->answered = p->packed = false;
    p->result = RH_OK;
    p->after_ms = 0;
    p->from.size = 0;
}

void turn_end(struct lua_actor *p, int result)
{
    for (struct list_link *at = list_front(&p->tasks); at != NULL; at = list_next(&p->tasks, at)) {
        struct task *t = CONTAINER_OF(at, struct task, in_lua_actor);

        t->turn = 0; // What it forked, or does after its answer, goes on between turns.
        t->main = false;
    }
    p->turn = 0;
    p->after_ms = 0; // They ended with it.
    p->result = result;
    p->over = true;
}

void turn_fail(struct lua_actor *p, const char *where, const char *error)
{
    char text[LUA_VM_ERROR_SIZE + 16];

    lua_actor_log(p, where, error);
    if (p->type == TURN_MESSAGE) {
        (void)snprintf(text, sizeof text, "ERR lua: %s", error);
        answer_text(p, RH_ERROR, text, strlen(text));
    }
    turn_end(p, RH_FAILED);
}

/* ---- what became of a task ---- */

static bool is_false(lua_State *co, int count)
{
    return count > 0 && lua_isboolean(co, -count) && !lua_toboolean(co, -count);
}

/* on_handoff: nil or ringhold.COLD = nothing, ringhold.BUSY = not now, anything else is the state.
 */
static int take_state(struct lua_actor *p, lua_State *co, int count)
{
    const uint32_t max =
        p->kind->kind_decl.state_max == 0 ? 1U << 20 : p->kind->kind_decl.state_max;
    struct pack_limit limit = {.name = "state", .size_max = max - LUA_IMAGE_HEAD};
    struct buffer *state = &p->lua_vm->scratch;

    if (count == 0 || lua_isnil(co, -count)) {
        return RH_COLD;
    }
    if (lua_islightuserdata(co, -count)) {
        return lua_touserdata(co, -count) == (const void *)lua_actor_busy ? RH_BUSY : RH_COLD;
    }
    buffer_clear(state);
    if (pack_put(co, -count, state, &limit) != ERR_OK) {
        lua_actor_log(p, "on_handoff", limit.error);
        return RH_COLD;
    }
    lua_image_put(p->out, LUA_IMAGE_VALUE, buffer_bytes(state));
    return RH_OK;
}

static void on_returned(struct lua_actor *p, struct task *t)
{
    lua_State *co = t->thread.co;
    const int count = lua_gettop(co);
    char error[LUA_VM_ERROR_SIZE];

    switch (p->type) {
    case TURN_MESSAGE:
        if (!answer_values(p, co, 1, count, error)) {
            turn_fail(p, t->name, error);
        } else {
            turn_end(p, RH_OK);
        }
        return;
    case TURN_HANDOFF:
        turn_end(p, take_state(p, co, count));
        return;
    case TURN_ACTIVATE:
    case TURN_FLUSH:
    case TURN_SESSION:
    case TURN_ALARM:
        turn_end(p, is_false(co, count) ? RH_FAILED : RH_OK);
        return;
    case TURN_DEACTIVATE:
        turn_end(p, RH_OK);
        return;
    case TURN_NONE:
        break;
    }
    UNREACHABLE();
}

static void on_failed(struct lua_actor *p, struct task *t, bool is_main)
{
    char error[LUA_VM_ERROR_SIZE];
    const bool refused = task_error(t, error);

    if (!p->answered) {                // else what it has answered stays true
        (void)rh_state_undo(p->actor); // of a durable kind: an error leaves nothing half done
    }

    if (!is_main) {
        lua_actor_log(p, t->name, error);
    } else if (refused && p->type == TURN_MESSAGE) {
        answer_text(p, RH_ERROR, error, strlen(error));
        turn_end(p, RH_OK);
    } else {
        turn_fail(p, t->name, error);
    }
}

static void run(struct lua_actor *p, struct task *t)
{
    const enum task_end end = task_run(t);
    const bool is_main = t->main; // Now: an early answer may have ended the turn.

    if (end == TASK_WAITS) {
        return;
    }
    if (end == TASK_FAILED) {
        on_failed(p, t, is_main);
    } else if (is_main) {
        on_returned(p, t);
    }
    lua_settop(t->thread.co, end == TASK_RETURNED ? 0 : lua_gettop(t->thread.co));
    task_free(t);
}

/* ---- who is next ---- */

static bool may_run(const struct lua_actor *p, const struct task *t)
{
    return p->turn == 0 || t->turn == p->turn;
}

static struct task *next_ready(const struct lua_actor *p)
{
    for (struct list_link *at = list_front(&p->tasks); at != NULL; at = list_next(&p->tasks, at)) {
        struct task *t = CONTAINER_OF(at, struct task, in_lua_actor);

        if (t->state == TASK_READY && may_run(p, t)) {
            return t;
        }
    }
    return NULL;
}

void turn_wake(struct lua_actor *p)
{
    const uint64_t now_ms = lua_vm_now_ms();

    for (struct list_link *at = list_front(&p->tasks); at != NULL; at = list_next(&p->tasks, at)) {
        struct task *t = CONTAINER_OF(at, struct task, in_lua_actor);

        if (t->state == TASK_SLEEPING && t->wake_ms <= now_ms) {
            t->state = TASK_READY;
        }
    }
}

/* The main task of a turn that took too long. */
static void end_late(struct lua_actor *p)
{
    struct list_link *at = list_front(&p->tasks);
    char error[80];

    while (at != NULL && !CONTAINER_OF(at, struct task, in_lua_actor)->main) {
        at = list_next(&p->tasks, at);
    }
    ASSERT(at != NULL); // A turn without its main task has ended.
    struct task *t = CONTAINER_OF(at, struct task, in_lua_actor);
    (void)snprintf(error,
                   sizeof error,
                   "the method waited longer than its limit of %u ms",
                   p->kind->kind_decl.limit_ms);
    turn_fail(p, t->name, error);
    task_free(t);
}

/* When something has to be done if nothing else happens; UINT64_MAX = never. */
static uint64_t next_ms(const struct lua_actor *p)
{
    uint64_t at_ms = p->turn == 0 ? UINT64_MAX : p->limit_ms;

    for (struct list_link *at = list_front(&p->tasks); at != NULL; at = list_next(&p->tasks, at)) {
        const struct task *t = CONTAINER_OF(at, struct task, in_lua_actor);
        const uint64_t its_ms = t->state == TASK_READY      ? 0
                                : t->state == TASK_SLEEPING ? t->wake_ms
                                                            : UINT64_MAX;

        if (may_run(p, t) && its_ms < at_ms) {
            at_ms = its_ms;
        }
    }
    return at_ms;
}

static void on_wake(struct rh_actor *actor, void *instance, void *argument)
{
    struct lua_actor *p = instance;

    (void)actor;
    (void)argument;
    p->after_ms = 0;
    turn_wake(p);
    if (p->turn != 0 && lua_vm_now_ms() >= p->limit_ms) {
        end_late(p);
    }
    (void)turn_settle(p);
}

/* Within a turn its own timers, between turns one of the actor's. */
static void set_alarm(struct lua_actor *p)
{
    const uint64_t now_ms = lua_vm_now_ms();
    const uint64_t at_ms = next_ms(p);
    const uint32_t ms = at_ms <= now_ms ? 0 : (uint32_t)(at_ms - now_ms);

    if (at_ms == UINT64_MAX) {
        return;
    }
    if (p->turn != 0) {
        if (p->after_ms == 0 || at_ms < p->after_ms) {
            p->after_ms = at_ms == 0 ? 1 : at_ms;
            if (rh_after(p->actor, ms, on_wake, NULL) != RH_OK) {
                lua_actor_log(p, "timer", "the node can't set a timer now");
            }
        }
    } else if (p->timer == 0 || at_ms < p->timer_ms) {
        if (p->timer != 0) {
            (void)rh_timer_stop(p->actor, p->timer);
        }
        p->timer_ms = at_ms;
        p->timer = rh_timer_start(p->actor, ms, 0, NULL);
    }
}

/* The turn is over, and so is the actor if it did not come to life. A message is answered only
 * now, and not when its answer was known: what is left of it may set timers and make calls until
 * then. */
static void tell(struct lua_actor *p)
{
    const enum turn_type type = p->type;

    p->type = TURN_NONE;
    p->over = false;
    buffer_fini(&p->from);
    if (type == TURN_MESSAGE) {
        p->answer.bytes = (struct rh_bytes){p->answer_bytes.data, p->answer_bytes.size};
        (void)rh_reply(p->actor, p->answer); // What is too big is answered with an error.
        buffer_fini(&p->answer_bytes);
    } else if (p->deferred) {
        const bool failed = type == TURN_ACTIVATE && p->result != RH_OK;

        p->deferred = false;
        (void)rh_done(p->token, p->result);
        if (failed) {
            lua_actor_free(p); // Nothing is called for it any more.
        }
        return;
    }
    p->deferred = false;
}

/* Once its state is saved or handed over, nothing may change it until that is told. */
static bool runs_now(const struct lua_actor *p)
{
    return p->turn != 0 || p->type == TURN_NONE || p->type == TURN_MESSAGE ||
           p->type == TURN_ACTIVATE || p->type == TURN_SESSION || p->type == TURN_ALARM;
}

int turn_settle(struct lua_actor *p)
{
    struct task *t = NULL;

    for (int i = 0; i < RUNS_MAX && runs_now(p) && (t = next_ready(p)) != NULL; i++) {
        run(p, t);
    }
    if (p->type == TURN_DEACTIVATE) {
        return RH_OK;
    }
    if (p->turn != 0 && !p->deferred) {
        p->token = rh_defer(p->actor);
        p->deferred = true;
    }
    if (p->type != TURN_ACTIVATE || p->result == RH_OK) {
        set_alarm(p);
    }
    const int result = p->turn != 0 || p->deferred ? RH_PENDING : p->result;
    if (p->over) {
        tell(p);
    }
    return result;
}

/* ---- answers ---- */

struct turn_answer {
    struct lua_actor *lua_actor;
    struct task *task;
    const struct rh_answer *answer;
};

const char *turn_refusal(int result)
{
    switch (result) {
    case RH_TOO_BIG:
        return "ERR the call is over the limit of 1 MiB";
    case RH_OVERLOADED:
        return "OVERLOADED the call did not run";
    default:
        return "ERR the actor can't be called now, or called itself";
    }
}

/* What ringhold.call() goes on with: true and the results, or false and a text. */
static void take_answer(lua_State *L, void *argument)
{
    const struct turn_answer *a = argument;
    struct bytes payload = bytes_of(a->answer->payload.data, a->answer->payload.size);
    int count = 2;

    lua_pushboolean(L, a->answer->status == RH_OK);
    if (a->answer->status == RH_OK && answer_is_packed(&payload)) {
        count = 1 + answer_unpack(L, payload);
    } else {
        (void)lua_pushlstring(L, (const char *)payload.data, payload.size);
    }
    if (!lua_checkstack(a->task->thread.co, count)) {
        (void)luaL_error(L, "too many results");
    }
    lua_xmove(L, a->task->thread.co, count);
    a->task->argument_count = count;
}

void turn_on_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                    void *argument)
{
    struct lua_actor *p = instance;
    struct task *t = lua_actor_task(p, (uint64_t)(uintptr_t)argument);
    struct turn_answer a = {p, t, answer};
    char error[LUA_VM_ERROR_SIZE];

    (void)actor;
    if (t == NULL || t->state != TASK_CALLING) {
        return; // It was ended meanwhile.
    }
    if (!lua_vm_try(p->lua_vm, take_answer, &a, error)) {
        lua_actor_log(p, t->name, error);
        t->argument_count = 0; // It is told so by ringhold.call().
    }
    t->state = TASK_READY;
    if (p->lua_vm->running == NULL) {
        (void)turn_settle(p);
    }
}
