/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a test of a game: its cases one after the other, and says where one failed.
 */
#include "lua/trial.h"

#include <lua5.4/lauxlib.h>
#include <lua5.4/lualib.h>
#include <stdio.h>
#include <string.h>

struct trial *trial_of(lua_State *L)
{
    return *(struct trial **)lua_getextraspace(L);
}

/* The innermost line of the test itself. False: none runs. */
static bool where(lua_State *L, lua_Debug *at)
{
    for (int level = 1; lua_getstack(L, level, at) != 0; level++) {
        (void)lua_getinfo(L, "Sl", at);
        if (at->source[0] == '@' && strcmp(at->source + 1, trial_of(L)->file) == 0) {
            return true;
        }
    }
    return false;
}

/* An error gets a line of the test in front, if it has none. */
static int on_error(lua_State *L)
{
    const char *text = luaL_tolstring(L, 1, NULL);
    lua_Debug at;

    if (where(L, &at) && strncmp(text, at.short_src, strlen(at.short_src)) != 0) {
        (void)lua_pushfstring(L, "%s:%d: %s", at.short_src, at.currentline, text);
    }
    return 1;
}

static void print_comment(const char *text)
{
    (void)fputs("# ", stdout);
    for (; *text != '\0'; text++) {
        (void)fputs(*text == '\n' ? "\n# " : (char[]){*text, '\0'}, stdout);
    }
    (void)fputs("\n", stdout);
}

/* case(name, fn) */
static int test_case(lua_State *L)
{
    struct trial *t = trial_of(L);
    const char *name = luaL_checkstring(L, 1);

    luaL_checktype(L, 2, LUA_TFUNCTION);
    luaL_argcheck(L, strpbrk(name, "\n#") == NULL, 1, "a name is one line, without '#'");
    if (t->in_case) {
        return luaL_error(L, "a case in a case");
    }
    t->found++;
    if (strstr(name, t->only) == NULL) {
        return 0;
    }
    trial_close_world(t); // one that the script itself has opened
    lua_settop(L, 2);
    lua_pushcfunction(L, on_error);
    lua_insert(L, 2);
    t->in_case = true;
    const bool good = lua_pcall(L, 0, 0, 2) == LUA_OK;
    trial_close_world(t);
    t->in_case = false;
    t->count->cases++;
    t->count->failed += good ? 0 : 1;
    (void)printf("%s %u - %s\n", good ? "ok" : "not ok", t->count->cases, name);
    if (!good) {
        print_comment(lua_tostring(L, -1));
    }
    (void)fflush(stdout);
    return 0;
}

static int open_module(lua_State *L)
{
    return trial_open_module(L, test_case);
}

/* What the test requires is looked for beside it first. */
static void look_beside(lua_State *L, const char *file)
{
    const char *slash = strrchr(file, '/');

    (void)lua_getglobal(L, "package");
    (void)lua_getfield(L, -1, "path");
    (void)lua_pushlstring(L, file, slash == NULL ? 0 : (size_t)(slash - file));
    (void)lua_pushfstring(
        L, "%s/?.lua;%s", slash == NULL ? "." : lua_tostring(L, -1), lua_tostring(L, -2));
    lua_setfield(L, -4, "path");
    lua_settop(L, 0);
}

/* run(trial) */
static int run(lua_State *L)
{
    struct trial *t = lua_touserdata(L, 1);

    luaL_openlibs(L);
    look_beside(L, t->file);
    (void)luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, open_module);
    lua_setfield(L, -2, TRIAL_MODULE);
    if (luaL_loadfile(L, t->file) != LUA_OK) {
        return lua_error(L);
    }
    lua_call(L, 0, 0);
    return 0;
}

bool trial_run(const char *file, const char *only, struct trial_count *count)
{
    struct trial t = {.file = file, .only = only, .count = count};
    lua_State *L = luaL_newstate();

    if (L == NULL) {
        (void)fprintf(stderr, "ringhold test: %s: not enough memory\n", file);
        return false;
    }
    *(struct trial **)lua_getextraspace(L) = &t; // New coroutines copy it.
    lua_pushcfunction(L, on_error);
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, &t);
    bool good = lua_pcall(L, 1, 0, 1) == LUA_OK;
    if (!good) {
        (void)fprintf(stderr, "ringhold test: %s\n", lua_tostring(L, -1));
    } else if (t.found == 0) {
        (void)fprintf(stderr, "ringhold test: %s: it has no case\n", file);
        good = false;
    }
    trial_close_world(&t);
    lua_close(L);
    return good;
}
