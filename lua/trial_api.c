/* SPDX-License-Identifier: Apache-2.0
 *
 * The module `ringhold_test`: a world with the actors of one game, which a test asks, and lets time
 * pass in.
 */
#include "lua/trial.h"

#include "base/actor_name.h"

#include <ctype.h>
#include <lua5.4/lauxlib.h>
#include <ringhold_test.h>
#include <string.h>

enum {
    INSTRUCTIONS_MAX = 100000000, /* as `ringhold node` has it */
    MEMORY_MAX_SHIFT = 30,
    SEED = 1,
    ADVANCE_MAX_S = 366 * 86400,
};

#define WORLD "ringhold_test.world"

struct trial_world {
    struct game *game;    /* owned, as is … */
    struct rh_test *test; /* … this; NULL = it is closed */
};

void trial_close_world(struct trial *t)
{
    struct trial_world *w = t->open;

    if (w != NULL) {
        t->open = NULL;
        rh_test_free(w->test);
        game_close(w->game);
        game_set_clock(0);
        *w = (struct trial_world){0};
    }
}

static struct trial_world *check_world(lua_State *L)
{
    struct trial_world *w = luaL_checkudata(L, 1, WORLD);

    luaL_argcheck(L, w->test != NULL, 1, "this world is closed");
    return w;
}

/* ---- new(script) ---- */

/* Push the path of a script that is named beside the test, with "=ARGUMENT" if it has one. */
static const char *push_path(lua_State *L, const char *script)
{
    const char *file = trial_of(L)->file;
    const char *slash = strrchr(file, '/');

    if (script[0] == '/' || slash == NULL) {
        return lua_pushstring(L, script);
    }
    (void)lua_pushlstring(L, file, (size_t)(slash - file + 1));
    return lua_pushfstring(L, "%s%s", lua_tostring(L, -1), script);
}

static void on_time(void *context, uint64_t clock_ms)
{
    (void)context;
    game_set_clock(clock_ms);
}

static bool host_all(const struct trial_world *w)
{
    size_t count = 0;
    const struct rh_kind *kind = game_kinds(w->game, &count);
    bool good = true;

    for (size_t i = 0; i < count && good; i++) {
        good = rh_test_host(w->test, kind[i].number, kind[i].ops, NULL) == RH_OK;
    }
    return good;
}

static int api_new(lua_State *L)
{
    struct trial *t = trial_of(L);
    const struct game_options options = {.script = push_path(L, luaL_checkstring(L, 1)),
                                         .instructions_max = INSTRUCTIONS_MAX,
                                         .memory_max = (size_t)1 << MEMORY_MAX_SHIFT,
                                         .seed = SEED,
                                         .who = "ringhold test"};

    if (t->open != NULL) {
        return luaL_error(L, "there is a world already: close() it first");
    }
    struct trial_world *w = lua_newuserdatauv(L, sizeof *w, 0);
    *w = (struct trial_world){0};
    luaL_setmetatable(L, WORLD);
    w->test = rh_test_new();
    t->open = w;
    rh_test_on_time(w->test, on_time, NULL);
    w->game = game_open(&options);
    if (w->game == NULL || !host_all(w)) {
        trial_close_world(t);
        return luaL_error(L, "the game does not load");
    }
    return 1;
}

static int world_close(lua_State *L)
{
    const struct trial_world *w = luaL_checkudata(L, 1, WORLD);

    if (w->test != NULL) { // it is the one that is open
        trial_close_world(trial_of(L));
    }
    return 0;
}

/* ---- names and payloads ---- */

/* The number of a kind of the game. -1: it has none like that. */
static int kind_of(const struct game *g, const struct actor_name *name)
{
    size_t count = 0;
    const struct rh_kind *kind = game_kinds(g, &count);

    for (size_t i = 0; i < count; i++) {
        const bool same = name->kind_name.size == 0
                              ? kind[i].number == name->kind
                              : bytes_equal(name->kind_name,
                                            bytes_of(kind[i].ops->name, strlen(kind[i].ops->name)));

        if (same) {
            return kind[i].number;
        }
    }
    return -1;
}

struct trial_actor {
    uint16_t kind;
    char id[RH_ID_MAX + 1];
};

/* Argument 2: "room/hall", or by the kind's number, as everywhere. */
static struct trial_actor check_actor(lua_State *L, const struct trial_world *w)
{
    struct trial_actor out = {0};
    struct actor_name name = {0};
    size_t size = 0;
    const char *text = luaL_checklstring(L, 2, &size);
    const enum actor_spelling spelling = actor_name_parse(bytes_of(text, size), &name);

    if (spelling != ACTOR_SPELLING_NAME && spelling != ACTOR_SPELLING_NUMBER) {
        (void)luaL_argerror(L, 2, "an actor is KIND/ID");
    }
    const int kind = kind_of(w->game, &name);
    if (kind < 0) {
        (void)luaL_argerror(
            L, 2, lua_pushfstring(L, "the game has no kind like that of '%s'", text));
    }
    luaL_argcheck(L, memchr(name.id, 0, name.id_size) == NULL, 2, "an id with a zero byte");
    out.kind = (uint16_t)kind;
    memcpy(out.id, name.id, name.id_size);
    return out;
}

static bool is_plain(const char *word, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)word[i];

        if (isalnum(c) == 0 && strchr("-_.:/@+", c) == NULL) {
            return false;
        }
    }
    return size > 0 && memchr(word, 0, size) == NULL;
}

/* As redis-cli reads it. */
static void add_word(luaL_Buffer *b, const char *word, size_t size)
{
    static const char digits[] = "0123456789abcdef";

    if (is_plain(word, size)) {
        luaL_addlstring(b, word, size);
        return;
    }
    luaL_addchar(b, '"');
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)word[i];

        if (c == '"' || c == '\\') {
            luaL_addchar(b, '\\');
            luaL_addchar(b, (char)c);
        } else if (c < ' ' || c >= 0x7f) {
            luaL_addstring(b, "\\x");
            luaL_addchar(b, digits[c >> 4]);
            luaL_addchar(b, digits[c & 15]);
        } else {
            luaL_addchar(b, (char)c);
        }
    }
    luaL_addchar(b, '"');
}

/* Argument 3 as it is, and what follows it as words. Leaves them on the stack. */
static const char *check_payload(lua_State *L)
{
    const int count = lua_gettop(L);
    size_t size = 0;
    const char *text = luaL_checklstring(L, 3, &size);
    luaL_Buffer b;

    luaL_argcheck(L, memchr(text, 0, size) == NULL, 3, "a payload with a zero byte");
    for (int i = 4; i <= count; i++) {
        (void)luaL_checkstring(L, i); // before there is a buffer
    }
    luaL_buffinit(L, &b);
    luaL_addlstring(&b, text, size);
    for (int i = 4; i <= count; i++) {
        const char *word = lua_tolstring(L, i, &size);

        luaL_addchar(&b, ' ');
        add_word(&b, word, size);
    }
    luaL_pushresult(&b);
    return lua_tostring(L, -1);
}

static void push_bytes(lua_State *L, const struct trial_world *w)
{
    const struct rh_bytes bytes = rh_test_bytes(w->test);

    (void)lua_pushlstring(L, bytes.data, bytes.size);
}

/* ---- what a test does ---- */

/* t:call(actor, payload, …) -> answer, or nil and the error */
static int world_call(lua_State *L)
{
    const struct trial_world *w = check_world(L);
    const struct trial_actor actor = check_actor(L, w);

    (void)rh_test_call(w->test, actor.kind, actor.id, check_payload(L));
    if (rh_test_status(w->test) == RH_OK) {
        push_bytes(L, w);
        return 1;
    }
    lua_pushnil(L);
    push_bytes(L, w);
    return 2;
}

static int world_send(lua_State *L)
{
    const struct trial_world *w = check_world(L);
    const struct trial_actor actor = check_actor(L, w);

    rh_test_send(w->test, actor.kind, actor.id, check_payload(L));
    return 0;
}

static int world_advance(lua_State *L)
{
    const struct trial_world *w = check_world(L);
    const lua_Integer ms = luaL_checkinteger(L, 2);
    lua_Integer left = ms;

    luaL_argcheck(L, ms >= 0 && ms / 1000 <= ADVANCE_MAX_S, 2, "milliseconds, of a year at most");
    while (left > 0) {
        const uint32_t part = left < INT32_MAX ? (uint32_t)left : INT32_MAX;

        rh_test_advance(w->test, part);
        left -= part;
    }
    return 0;
}

static int world_clock(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)rh_test_clock(check_world(L)->test));
    return 1;
}

/* true, or nil and why it stays */
static int world_move(lua_State *L)
{
    const struct trial_world *w = check_world(L);
    const struct trial_actor actor = check_actor(L, w);
    const int result = rh_test_move(w->test, actor.kind, actor.id);

    if (result == RH_OK) {
        lua_pushboolean(L, 1);
        return 1;
    }
    lua_pushnil(L);
    (void)lua_pushstring(L, result == RH_GONE ? "GONE it does not live" : "BUSY it can't move now");
    return 2;
}

static int world_crash(lua_State *L)
{
    rh_test_crash(check_world(L)->test);
    return 0;
}

static int world_lives(lua_State *L)
{
    const struct trial_world *w = check_world(L);
    const struct trial_actor actor = check_actor(L, w);

    lua_pushboolean(L, rh_test_lives(w->test, actor.kind, actor.id));
    return 1;
}

/* t:commits(how [, count]) */
static int world_commits(lua_State *L)
{
    static const char *const names[] = {"good", "refused", "unknown", "before", "behind", NULL};
    const struct trial_world *w = check_world(L);
    const int how = luaL_checkoption(L, 2, NULL, names);
    const lua_Integer count = luaL_optinteger(L, 3, 1);

    luaL_argcheck(L, count >= 0 && count <= UINT32_MAX, 3, "how many commits?");
    rh_test_commits(w->test, (enum rh_test_commits)how, (uint32_t)count);
    return 0;
}

static int world_bind(lua_State *L)
{
    const struct trial_world *w = check_world(L);
    const struct trial_actor actor = check_actor(L, w);

    lua_pushboolean(L, rh_test_bind(w->test, actor.kind, actor.id) == RH_OK);
    return 1;
}

static int world_leave(lua_State *L)
{
    const struct trial_world *w = check_world(L);
    const struct trial_actor actor = check_actor(L, w);

    rh_test_leave(w->test, actor.kind, actor.id);
    return 0;
}

static int world_pushed(lua_State *L)
{
    const struct trial_world *w = check_world(L);
    const struct trial_actor actor = check_actor(L, w);

    if (rh_test_pushed(w->test, actor.kind, actor.id) == NULL) {
        lua_pushnil(L);
    } else {
        push_bytes(L, w);
    }
    return 1;
}

/* ---- the module ---- */

/* A string in quotes, so that "1" is seen to be no 1. */
static const char *push_shown(lua_State *L, int at)
{
    const char *text = luaL_tolstring(L, at, NULL);

    return lua_type(L, at) == LUA_TSTRING ? lua_pushfstring(L, "\"%s\"", text) : text;
}

/* equal(is, wanted [, what]) */
static int api_equal(lua_State *L)
{
    luaL_checkany(L, 2);
    const char *what = luaL_optstring(L, 3, NULL);

    if (lua_rawequal(L, 1, 2) != 0) {
        return 0;
    }
    const char *is = push_shown(L, 1);
    const char *wanted = push_shown(L, 2);
    return luaL_error(
        L, "%s%s%s instead of %s", what == NULL ? "" : what, what == NULL ? "" : ": ", is, wanted);
}

static const luaL_Reg methods[] = {
    {"advance", world_advance},
    {"bind", world_bind},
    {"call", world_call},
    {"clock", world_clock},
    {"close", world_close},
    {"commits", world_commits},
    {"crash", world_crash},
    {"leave", world_leave},
    {"lives", world_lives},
    {"move", world_move},
    {"pushed", world_pushed},
    {"send", world_send},
    {"__close", world_close},
    {"__gc", world_close},
    {NULL, NULL},
};

int trial_open_module(lua_State *L, lua_CFunction test_case)
{
    (void)luaL_newmetatable(L, WORLD);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_newtable(L);
    lua_pushcfunction(L, api_new);
    lua_setfield(L, -2, "new");
    lua_pushcfunction(L, api_equal);
    lua_setfield(L, -2, "equal");
    lua_pushcfunction(L, test_case);
    lua_setfield(L, -2, "case");
    return 1;
}
