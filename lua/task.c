/* SPDX-License-Identifier: Apache-2.0
 *
 * A coroutine of an actor: it runs, waits, goes on, or is cancelled.
 */
#include "lua/task.h"

#include "base/assert.h"
#include "base/mem.h"
#include "lua/actor.h"

#include <lua5.4/lauxlib.h>
#include <stdio.h>
#include <string.h>

const char task_refusal[1] = "";

struct task *task_new(lua_State *L, struct lua_actor *p, int argument_count, const char *name)
{
    if (p->task_count >= TASKS_MAX) {
        (void)luaL_error(L, "more than %d coroutines of one actor", TASKS_MAX);
    }
    const struct lua_vm_thread thread = lua_vm_thread_take(p->lua_vm, L);
    if (!lua_checkstack(thread.co, argument_count + 1)) {
        lua_vm_thread_drop(p->lua_vm, thread);
        (void)luaL_error(L, "too many arguments");
    }
    lua_xmove(L, thread.co, argument_count + 1);
    struct task *t = mem_new(1, sizeof *t); // Nothing raises an error from here on.
    t->lua_actor = p;
    t->thread = thread;
    t->number = ++p->lua_vm->number;
    t->argument_count = argument_count;
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    list_push_back(&p->tasks, &t->in_lua_actor);
    p->task_count++;
    return t;
}

void task_free(struct task *t)
{
    ASSERT(t->state != TASK_RUNNING);
    t->lua_actor->task_count--;
    list_remove(&t->in_lua_actor);
    lua_vm_thread_drop(t->lua_actor->lua_vm, t->thread);
    mem_free(t);
}

enum task_end task_run(struct task *t)
{
    struct lua_vm *r = t->lua_actor->lua_vm;
    lua_State *co = t->thread.co;
    int count = 0;

    ASSERT(r->running == NULL && t->state == TASK_READY);
    r->running = t;
    t->state = TASK_RUNNING;
    lua_vm_wind(r, co);
    const int status = lua_resume(co, r->L, t->argument_count, &count);
    r->running = NULL;
    t->argument_count = 0;
    if (status == LUA_YIELD && t->state != TASK_RUNNING) {
        lua_pop(co, count);
        return TASK_WAITS;
    }
    t->state = TASK_READY;
    if (status == LUA_OK) {
        return TASK_RETURNED;
    }
    if (status == LUA_YIELD) { // The script's own, and nobody is there to resume it.
        t->why = "coroutine.yield() outside of a coroutine of its own";
    }
    return TASK_FAILED;
}

/* Where it happened, of errors that don't say so themselves: those of C functions. */
static void add_place(lua_State *co, char error[LUA_VM_ERROR_SIZE])
{
    char text[LUA_VM_ERROR_SIZE];
    lua_Debug at;

    for (int level = 0; lua_getstack(co, level, &at) != 0; level++) {
        if (lua_getinfo(co, "Sl", &at) != 0 && at.currentline > 0) {
            (void)snprintf(text, sizeof text, "%s:%d: ", at.short_src, at.currentline);
            const size_t used = strlen(text);
            if (strncmp(error, text, used) != 0) {
                (void)snprintf(text + used, sizeof text - used, "%s", error);
                memcpy(error, text, sizeof text);
            }
            return;
        }
    }
}

/* The text of a refusal: a table with the VM's mark. Nothing here raises an error. */
static bool is_refusal(lua_State *co, char error[LUA_VM_ERROR_SIZE])
{
    if (lua_type(co, -1) != LUA_TTABLE || !lua_checkstack(co, 2)) {
        return false;
    }
    const bool is = lua_rawgetp(co, -1, task_refusal) == LUA_TSTRING;
    if (is) {
        (void)snprintf(error, LUA_VM_ERROR_SIZE, "%s", lua_tostring(co, -1));
    }
    lua_pop(co, 1);
    return is;
}

bool task_error(const struct task *t, char error[LUA_VM_ERROR_SIZE])
{
    lua_State *co = t->thread.co;

    if (t->why != NULL) {
        (void)snprintf(error, LUA_VM_ERROR_SIZE, "%s", t->why);
        return false;
    }
    if (is_refusal(co, error)) {
        return true;
    }
    if (lua_type(co, -1) == LUA_TSTRING) {
        (void)snprintf(error, LUA_VM_ERROR_SIZE, "%s", lua_tostring(co, -1));
    } else {
        (void)snprintf(error, LUA_VM_ERROR_SIZE, "(an error without a text)");
    }
    add_place(co, error);
    return false;
}

void task_cancel(struct task *t)
{
    task_free(t);
}

void task_check_wait(lua_State *L, const struct task *t)
{
    if (t->lua_actor->type == TURN_DEACTIVATE) {
        (void)luaL_error(L, "on_deactivate can't wait");
    }
    if (L != t->thread.co) {
        (void)luaL_error(L, "only the actor's own coroutines can wait: use ringhold.fork()");
    }
    if (!lua_isyieldable(L)) {
        (void)luaL_error(L, "can't wait here: a C function such as table.sort() is in between");
    }
}

int task_wait(lua_State *L, struct task *t, enum task_state state, lua_KFunction done)
{
    task_check_wait(L, t);
    t->state = state;
    return lua_yieldk(L, 0, lua_gettop(L), done);
}
