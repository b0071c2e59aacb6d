/* SPDX-License-Identifier: Apache-2.0
 *
 * A test of a game, written in Lua: the module `ringhold_test`, which docs/testing.md documents,
 * and what runs a script that requires it.
 *
 *     the test's Lua state --trial_api.c--> ringhold_test.h --> the game's kinds, in theirs
 *
 * The game's clocks are those of its world, and math.random draws the same in each run.
 *
 * Thread: one.
 */
#ifndef LUA_TRIAL_H
#define LUA_TRIAL_H

#include "lua/game.h"

#include <lua5.4/lua.h>

struct rh_test;

/* What is counted of one file or of several. */
struct trial_count {
    unsigned cases; /* of all files; the next has one more than that as its number */
    unsigned failed;
};

struct trial_world;

/* A file that runs. */
struct trial {
    const char *file;          /* borrowed */
    const char *only;          /* cases with this in their names; "" = all */
    struct trial_count *count; /* borrowed */
    unsigned found;            /* cases of this file, run or not */
    bool in_case;
    struct trial_world *open; /* at most one; the collector's */
};

/* Run a file, and print a line for each case on stdout, as TAP has it: what failed with file and
 * line. False: it could not be run to its end, or has no case; a line on stderr says so. */
bool trial_run(const char *file, const char *only, struct trial_count *count);

/* ---- trial_api.c ---- */

/* What the module is called. */
#define TRIAL_MODULE "ringhold_test"

/* The trial of a state or of any of its coroutines. */
struct trial *trial_of(lua_State *L);
/* Push the module: it is what require() returns. `test_case` is its function case(). */
int trial_open_module(lua_State *L, lua_CFunction test_case);
/* End the actors of the world that is open, and forget it; or nothing. */
void trial_close_world(struct trial *t);

#endif
