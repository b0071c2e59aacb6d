/* SPDX-License-Identifier: Apache-2.0
 *
 * One coroutine of an actor, from its function to its end.
 *
 *     READY -> (runs) -> SLEEPING, CALLING or WAITING -> READY
 *                     -> over
 *
 * It belongs to a turn, a callback that is not finished (actor.h), or to none:
 * then it runs between callbacks, and ends with the actor's life here.
 */
#ifndef LUA_TASK_H
#define LUA_TASK_H

#include "base/list.h"
#include "lua/vm.h"

enum { TASKS_MAX = 1024, TASK_NAME_SIZE = 40 };

enum task_state { TASK_READY, TASK_RUNNING, TASK_SLEEPING, TASK_CALLING, TASK_WAITING };

struct lua_actor;

struct task {
    struct list_link in_lua_actor;
    struct lua_actor *lua_actor;
    struct lua_vm_thread thread;
    uint64_t number; /* scripts know it by that */
    uint64_t turn;   /* 0 = none */
    enum task_state state;
    uint64_t wake_ms;          /* while SLEEPING */
    int argument_count;        /* on its stack, for when it runs again */
    bool main;                 /* its turn ends with it */
    const char *why;           /* it FAILED; NULL = the error is on top of its stack */
    char name[TASK_NAME_SIZE]; /* for logs: a method, a callback */
};

/* How a run ended. */
enum task_end {
    TASK_WAITS,
    TASK_RETURNED, /* its results are on the stack of its coroutine */
    TASK_FAILED,   /* task_error() says why */
};

/* Make one of the function and its `argument_count` arguments on top of L's stack, and pop them.
 * May raise a Lua error, also if the actor has too many. `name` is cut to size. */
struct task *task_new(lua_State *L, struct lua_actor *p, int argument_count, const char *name);

/* Run it until it waits or ends. */
enum task_end task_run(struct task *t);

/* The error of one that FAILED, as text: "game.lua:7: …". True: ringhold.refuse() raised it; then
 * it is meant for the caller, and nothing is broken. */
bool task_error(const struct task *t, char error[LUA_VM_ERROR_SIZE]);

/* Free a task in any state but RUNNING. */
void task_free(struct task *t);

/* Key of the text in the table that ringhold.refuse() raises. */
extern const char task_refusal[1];

/* Raise a Lua error unless task_wait() is possible now. */
void task_check_wait(lua_State *L, const struct task *t);

/* End one that does not run, from within another. */
void task_cancel(struct task *t);

/* Give up the CPU from within the task: what an API function returns. The coroutine must be that of
 * the task, or it raises a Lua error. `done` goes on with what was put on the stack; NULL = return
 * all of that. */
int task_wait(lua_State *L, struct task *t, enum task_state state, lua_KFunction done);

#endif
