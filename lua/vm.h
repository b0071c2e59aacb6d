/* SPDX-License-Identifier: Apache-2.0
 *
 * One Lua state: all actors of a script that run on one thread live in it. It
 * is made when the first of them is activated there, and holds the script's
 * methods, its limits, and a few coroutines to use again.
 *
 * Lua raises errors by longjmp(). Whatever may raise one runs within
 * lua_vm_try() or a coroutine, so none leaves this folder. What C owns while Lua
 * code runs is kept where an error can't lose it: in the VM or an actor.
 *
 * Thread: its own.
 */
#ifndef LUA_VM_H
#define LUA_VM_H

#include "base/ration.h"
#include "lua/game.h"

#include <lua5.4/lua.h>

enum { LUA_VM_IDLE_MAX = 64, LUA_VM_ERROR_SIZE = 512 };

struct task;

/* A kind's tables in the registry; LUA_NOREF = none yet. */
struct lua_vm_kind {
    int methods;    /* what ringhold.kind() returned */
    int meta;       /* metatable of every self: __index = methods */
    int remembered; /* list or function */
};

/* A kind that the script that is being loaded has declared. */
struct lua_vm_kind_decl {
    struct kind_decl kind_decl;
    int methods;
    int remembered;
};

/* A coroutine that waits to be used. */
struct lua_vm_thread {
    lua_State *co;
    int reference;
};

struct lua_vm {
    struct game *game; /* borrowed */
    lua_State *L;
    struct list_link in_game;
    size_t memory;   /* bytes that L has */
    int64_t budget;  /* instructions that are left until the next wait */
    uint64_t number; /* the last given to a task or turn */

    struct task *running;  /* the one whose coroutine runs; NULL = none */
    struct buffer scratch; /* of an API function, while it calls no Lua code */

    struct lua_vm_kind kind[KIND_DECLS_MAX]; /* as game->kind */
    struct lua_vm_thread idle[LUA_VM_IDLE_MAX];
    size_t idle_count;

    bool loading;
    struct lua_vm_kind_decl kind_decl[KIND_DECLS_MAX]; /* while loading */
    size_t kind_decl_count;
    int start;            /* of ringhold.start(); LUA_NOREF = none */
    uint64_t version;     /* of the source that it runs */
    uint64_t looked_ms;   /* for a newer file */
    struct ration faults; /* log lines of errors */
};

/* Make a VM and load the game's source in it. NULL: it did not load; `error` says why. */
struct lua_vm *lua_vm_new(struct game *g, char error[LUA_VM_ERROR_SIZE]);
void lua_vm_free(struct lua_vm *r);

/* Return this thread's VM of the game, made if there is none. NULL as for lua_vm_new(). */
struct lua_vm *lua_vm_here(struct game *g, char error[LUA_VM_ERROR_SIZE]);

/* The VM of a state or of any of its coroutines. */
struct lua_vm *lua_vm_of(lua_State *L);

/* Load a source: run it, check what it declares, and adopt its methods. Nothing but globals changes
 * when it fails. */
bool lua_vm_load(struct lua_vm *r, struct bytes source, char error[LUA_VM_ERROR_SIZE]);

/* Load the script again if it has changed, at most once a second; for development. A file that does
 * not load is logged, and the old code goes on. */
void lua_vm_refresh(struct lua_vm *r);

/* Call job(L, argument) so that a Lua error ends here. False: it raised one, and `error` has its
 * text. The stack is as before. */
typedef void (*lua_vm_job)(lua_State *L, void *argument);
bool lua_vm_try(struct lua_vm *r, lua_vm_job job, void *argument, char error[LUA_VM_ERROR_SIZE]);

/* Return a coroutine with an empty stack, anchored. May raise a Lua error, in `L`, the one that
 * runs. */
struct lua_vm_thread lua_vm_thread_take(struct lua_vm *r, lua_State *L);
/* Give it back, in whatever state it is. */
void lua_vm_thread_drop(struct lua_vm *r, struct lua_vm_thread thread);

/* Allow the Lua code that runs next as many instructions as the game allows. `L` is the
 * coroutine. */
void lua_vm_wind(struct lua_vm *r, lua_State *L);

/* Milliseconds of CLOCK_BOOTTIME, unless the clocks were set (game_set_clock()). */
uint64_t lua_vm_now_ms(void);
/* Microseconds since 1970, likewise. */
uint64_t lua_vm_wall_us(void);

/* One log line about a script's error: kind, id, where and what. At most 20 a second. */
struct fault {
    const char *kind;
    struct rh_bytes id;
    const char *where; /* method or callback */
    const char *text;
};
void lua_vm_log(struct lua_vm *r, const struct fault *f);
/* Log a complaint as the VM does, where there is no VM. */
void lua_vm_complain(const char *kind, struct rh_bytes id, const char *text);

#endif
