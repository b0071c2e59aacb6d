/* SPDX-License-Identifier: Apache-2.0
 *
 * One Lua state: all actors of a script that run on one thread live in it. It
 * is made when the first of them is activated there, and holds the script's
 * methods, its limits, and a few coroutines to use again.
 *
 * Lua raises errors by longjmp(). Whatever may raise one runs within
 * realm_try() or a coroutine, so none leaves this folder. What C owns while Lua
 * code runs is kept where an error can't lose it: in the realm or an actor.
 *
 * Thread: its own.
 */
#ifndef LUA_REALM_H
#define LUA_REALM_H

#include "base/ration.h"
#include "lua/game.h"

#include <lua5.4/lua.h>

enum { REALM_IDLE_MAX = 64, REALM_ERROR_SIZE = 512 };

struct task;

/* A kind's tables in the registry; LUA_NOREF = none yet. */
struct realm_kind {
    int methods;    /* what ringhold.kind() returned */
    int meta;       /* metatable of every self: __index = methods */
    int remembered; /* list or function */
};

/* A kind that the script that is being loaded has declared. */
struct realm_draft {
    struct draft draft;
    int methods;
    int remembered;
};

/* A coroutine that waits to be used. */
struct realm_thread {
    lua_State *co;
    int reference;
};

struct realm {
    struct game *game; /* borrowed */
    lua_State *L;
    struct list_link in_game;
    size_t memory;   /* bytes that L has */
    int64_t budget;  /* instructions that are left until the next wait */
    uint64_t number; /* the last given to a task or turn */

    struct task *running;  /* the one whose coroutine runs; NULL = none */
    struct buffer scratch; /* of an API function, while it calls no Lua code */

    struct realm_kind kind[DRAFTS_MAX]; /* as game->kind */
    struct realm_thread idle[REALM_IDLE_MAX];
    size_t idle_count;

    bool loading;
    struct realm_draft draft[DRAFTS_MAX]; /* while loading */
    size_t draft_count;
    int start;            /* of ringhold.start(); LUA_NOREF = none */
    uint64_t version;     /* of the source that it runs */
    uint64_t looked_ms;   /* for a newer file */
    struct ration faults; /* log lines of errors */
};

/* Make a realm and load the game's source in it. NULL: it did not load; `error` says why. */
struct realm *realm_new(struct game *g, char error[REALM_ERROR_SIZE]);
void realm_free(struct realm *r);

/* This thread's realm of the game, made if there is none. NULL as of realm_new(). */
struct realm *realm_here(struct game *g, char error[REALM_ERROR_SIZE]);

/* The realm of a state or of any of its coroutines. */
struct realm *realm_of(lua_State *L);

/* Load a source: run it, check what it declares, and adopt its methods. Nothing but globals changes
 * when it fails. */
bool realm_load(struct realm *r, struct bytes source, char error[REALM_ERROR_SIZE]);

/* In development: load what is new, at most once a second. A file that does not load is logged, and
 * the old code goes on. */
void realm_refresh(struct realm *r);

/* Call job(L, argument) so that a Lua error ends here. False: it raised one, and `error` has its
 * text. The stack is as before. */
typedef void (*realm_job)(lua_State *L, void *argument);
bool realm_try(struct realm *r, realm_job job, void *argument, char error[REALM_ERROR_SIZE]);

/* A coroutine with an empty stack, anchored. May raise a Lua error, in `L`, the one that runs. */
struct realm_thread realm_thread_take(struct realm *r, lua_State *L);
/* Give it back, in whatever state it is. */
void realm_thread_drop(struct realm *r, struct realm_thread thread);

/* Before Lua code runs: it may take as many instructions as the game allows. `L` is the coroutine.
 */
void realm_wind(struct realm *r, lua_State *L);

/* Milliseconds of CLOCK_BOOTTIME. */
uint64_t realm_now_ms(void);

/* One log line about a script's error: kind, id, where and what. At most 20 a second. */
struct fault {
    const char *kind;
    struct rh_bytes id;
    const char *where; /* method or callback */
    const char *text;
};
void realm_log(struct realm *r, const struct fault *f);
/* The same where there is no realm. */
void realm_complain(const char *kind, struct rh_bytes id, const char *text);

#endif
