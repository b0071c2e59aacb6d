/* SPDX-License-Identifier: Apache-2.0
 *
 * A Lua state of one thread: made, refreshed when the script changed, and freed.
 */
#include "lua/vm.h"

#include "base/actor_name.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "lua/actor.h"
#include "lua/api.h"

#include <lua5.4/lauxlib.h>
#include <lua5.4/lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOOK_EACH = 10000, /* instructions between two looks at the budget */
    LOOK_EACH_MS = 1000,
    FAULTS_A_SECOND = 20,
};

/* A node after another in one process must not take the first one's VMs. */
static _Thread_local struct {
    const struct game *game;
    struct lua_vm *lua_vm;
    uint64_t serial;
} here;

static atomic_uint_fast64_t set_ms; // 0 = the clocks are the machine's

void game_set_clock(uint64_t clock_ms)
{
    atomic_store_explicit(&set_ms, clock_ms, memory_order_relaxed);
}

uint64_t lua_vm_now_ms(void)
{
    const uint64_t ms = atomic_load_explicit(&set_ms, memory_order_relaxed);

    return ms != 0 ? ms : clock_boottime_us() / 1000;
}

uint64_t lua_vm_wall_us(void)
{
    const uint64_t ms = atomic_load_explicit(&set_ms, memory_order_relaxed);

    return ms != 0 ? ms * 1000 : clock_wall_us();
}

struct lua_vm *lua_vm_of(lua_State *L)
{
    return *(struct lua_vm **)lua_getextraspace(L);
}

/* ---- limits ---- */

static void *on_alloc(void *context, void *old, size_t old_size, size_t size)
{
    struct lua_vm *r = context;
    const size_t had = old == NULL ? 0 : old_size; // Of a new object it is a type.

    if (size == 0) {
        r->memory -= had;
        free(old);
        return NULL;
    }
    if (size > had && size - had > r->game->options.memory_max - r->memory) {
        return NULL; // Lua collects garbage and asks again, then raises "not enough memory".
    }
    void *fresh = realloc(old, size);
    if (fresh != NULL) {
        r->memory += size - had;
    }
    return fresh;
}

static int on_panic(lua_State *L)
{
    (void)fprintf(stderr,
                  "ringhold node: a Lua error that nothing caught: %s\n",
                  lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "?");
    return 0;
}

static void on_count(lua_State *L, lua_Debug *at)
{
    struct lua_vm *r = lua_vm_of(L);

    r->budget -= HOOK_EACH;
    if (r->budget > 0) {
        return;
    }
    // From now on at each instruction: a pcall() in a loop must not go on with the loop.
    lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
    (void)lua_getinfo(L, "Sl", at);
    (void)luaL_error(L,
                     "%s:%d: it ran %I instructions without a wait, the limit",
                     at->short_src,
                     at->currentline,
                     (LUAI_UACINT)r->game->options.instructions_max);
}

void lua_vm_wind(struct lua_vm *r, lua_State *L)
{
    const uint64_t max = r->game->options.instructions_max;

    r->budget = (int64_t)max;
    if (max == 0) {
        lua_sethook(L, NULL, 0, 0);
    } else {
        lua_sethook(L, on_count, LUA_MASKCOUNT, max < HOOK_EACH ? (int)max : HOOK_EACH);
    }
}

/* ---- errors end here ---- */

struct attempt {
    lua_vm_job job;
    void *argument;
};

static int on_attempt(lua_State *L)
{
    const struct attempt *a = lua_touserdata(L, 1);

    lua_settop(L, 0);
    a->job(L, a->argument);
    return 0;
}

bool lua_vm_try(struct lua_vm *r, lua_vm_job job, void *argument, char error[LUA_VM_ERROR_SIZE])
{
    struct attempt a = {job, argument};
    const int top = lua_gettop(r->L);

    // Neither push takes memory; the call itself is protected.
    lua_pushcfunction(r->L, on_attempt);
    lua_pushlightuserdata(r->L, &a);
    const bool done = lua_pcall(r->L, 1, 0, 0) == LUA_OK;
    if (!done) {
        (void)snprintf(error,
                       LUA_VM_ERROR_SIZE,
                       "%s",
                       lua_type(r->L, -1) == LUA_TSTRING ? lua_tostring(r->L, -1)
                                                         : "(an error without a text)");
    }
    lua_settop(r->L, top);
    return done;
}

/* ---- coroutines ---- */

struct lua_vm_thread lua_vm_thread_take(struct lua_vm *r, lua_State *L)
{
    struct lua_vm_thread t;

    if (r->idle_count > 0) {
        return r->idle[--r->idle_count];
    }
    luaL_checkstack(L, 4, NULL);
    t.co = lua_newthread(L);
    t.reference = luaL_ref(L, LUA_REGISTRYINDEX);
    return t;
}

void lua_vm_thread_drop(struct lua_vm *r, struct lua_vm_thread thread)
{
    // One that ended well is as new. What it left half done is closed first: __close may run code.
    const bool fresh = lua_status(thread.co) == LUA_OK && lua_gettop(thread.co) == 0;

    if (!fresh) {
        const int64_t left = r->budget; // of the one that cancelled it

        lua_vm_wind(r, thread.co);
        (void)lua_resetthread(thread.co);
        lua_settop(thread.co, 0);
        r->budget = left;
    }
    if (fresh && r->idle_count < LUA_VM_IDLE_MAX) {
        r->idle[r->idle_count++] = thread;
    } else {
        luaL_unref(r->L, LUA_REGISTRYINDEX, thread.reference);
    }
}

/* ---- loading ---- */

static int on_new_global(lua_State *L)
{
    return luaL_error(L,
                      "assignment to the new global '%s': all actors of a thread would share it; "
                      "make it local, or a field of self",
                      lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "?");
}

/* Modules that the script required are read again. */
static void forget_modules(lua_State *L)
{
    (void)lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    (void)lua_getfield(L, LUA_REGISTRYINDEX, "ringhold.modules");
    lua_pushnil(L);
    while (lua_next(L, -3) != 0) {
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -3) == LUA_TNIL) {
            lua_pushvalue(L, -2);
            lua_pushnil(L);
            lua_rawset(L, -6); // To clear a field while traversing is allowed.
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

static struct lua_vm_kind_decl *kind_decl_named(struct lua_vm *r, const char *name)
{
    for (size_t i = 0; i < r->kind_decl_count; i++) {
        if (strcmp(r->kind_decl[i].kind_decl.name, name) == 0) {
            return &r->kind_decl[i];
        }
    }
    return NULL;
}

static void run_source(lua_State *L, struct lua_vm *r, struct bytes source)
{
    char name[512];

    (void)snprintf(name, sizeof name, "@%.500s", r->game->path);
    if (luaL_loadbufferx(L, (const char *)source.data, source.size, name, "t") != LUA_OK) {
        (void)lua_error(L);
    }
    // Globals of its own: a reload starts with none, and they are closed when it has run.
    lua_newtable(L);
    lua_newtable(L);
    lua_pushglobaltable(L);
    lua_setfield(L, -2, "__index");
    lua_pushvalue(L, -1);
    lua_insert(L, 1);
    (void)lua_setmetatable(L, -2);
    (void)lua_setupvalue(L, -2, 1);
    lua_call(L, 0, 0);
    if (r->start != LUA_NOREF) {
        (void)lua_rawgeti(L, LUA_REGISTRYINDEX, r->start);
        lua_call(L, 0, 0);
    }
    lua_pushcfunction(L, on_new_global);
    lua_setfield(L, 1, "__newindex");
}

/* From now on every self of kind `i` finds these methods. */
static void adopt(lua_State *L, struct lua_vm_kind *k, struct lua_vm_kind_decl *d)
{
    if (k->meta == LUA_NOREF) {
        lua_newtable(L);
        (void)lua_pushstring(L, d->kind_decl.name);
        lua_setfield(L, -2, "__name");
        k->meta = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, k->meta);
    (void)lua_rawgeti(L, LUA_REGISTRYINDEX, d->methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_unref(L, LUA_REGISTRYINDEX, k->methods);
    luaL_unref(L, LUA_REGISTRYINDEX, k->remembered);
    k->methods = d->methods;
    k->remembered = d->remembered;
    d->methods = d->remembered = LUA_NOREF;
}

struct script_load {
    struct lua_vm *lua_vm;
    struct bytes source;
};

static void load_all(lua_State *L, void *argument)
{
    const struct script_load *l = argument;
    struct lua_vm *r = l->lua_vm;

    forget_modules(L);
    run_source(L, r, l->source);
    if (r->kind_decl_count == 0) {
        (void)luaL_error(
            L, "%s: the script declares no kind: ringhold.kind(\"room\")", r->game->path);
    }
    for (size_t i = 0; i < r->kind_decl_count; i++) {
        (void)lua_rawgeti(L, LUA_REGISTRYINDEX, r->kind_decl[i].methods);
        kind_decl_learn(L, &r->kind_decl[i].kind_decl);
        lua_pop(L, 1);
    }
    for (size_t i = 0; i < r->game->kind_count; i++) {
        const struct kind_decl *was = &r->game->kind[i].kind_decl;
        const struct lua_vm_kind_decl *d = kind_decl_named(r, was->name);
        const char *what = d == NULL ? "is gone" : kind_decl_change(was, &d->kind_decl);

        if (what != NULL) {
            (void)luaL_error(L,
                             "%s: kind '%s' %s; this needs a restart of the node",
                             r->game->path,
                             was->name,
                             what);
        }
    }
    if (r->game->kind_count > 0 && r->kind_decl_count > r->game->kind_count) {
        (void)luaL_error(L, "%s: a new kind needs a restart of the node", r->game->path);
    }
}

static void adopt_all(lua_State *L, void *argument)
{
    struct lua_vm *r = argument;

    for (size_t i = 0; i < r->game->kind_count; i++) {
        adopt(L, &r->kind[i], kind_decl_named(r, r->game->kind[i].kind_decl.name));
    }
}

static bool lua_vm_adopt(struct lua_vm *r, char error[LUA_VM_ERROR_SIZE])
{
    return lua_vm_try(r, adopt_all, r, error);
}

bool lua_vm_load(struct lua_vm *r, struct bytes source, char error[LUA_VM_ERROR_SIZE])
{
    struct script_load l = {r, source};

    for (size_t i = 0; i < r->kind_decl_count;
         i++) { // of a load that failed, or of kinds that are new
        luaL_unref(r->L, LUA_REGISTRYINDEX, r->kind_decl[i].methods);
        luaL_unref(r->L, LUA_REGISTRYINDEX, r->kind_decl[i].remembered);
    }
    luaL_unref(r->L, LUA_REGISTRYINDEX, r->start);
    r->kind_decl_count = 0;
    r->start = LUA_NOREF;
    r->loading = true;
    lua_vm_wind(r, r->L);
    const bool done = lua_vm_try(r, load_all, &l, error);
    r->loading = false;
    return done && lua_vm_adopt(r, error);
}

/* ---- a state ---- */

static void open_libraries(lua_State *L, void *argument)
{
    struct lua_vm *r = argument;
    const char *slash = strrchr(r->game->path, '/');

    luaL_openlibs(L);
    api_open(L);
    // What the script requires is looked for beside it first.
    (void)lua_getglobal(L, "package");
    (void)lua_getfield(L, -1, "path");
    const char *path = lua_tostring(L, -1);
    if (slash == NULL) {
        (void)lua_pushfstring(L, "./?.lua;%s", path);
    } else {
        (void)lua_pushlstring(L, r->game->path, (size_t)(slash - r->game->path));
        (void)lua_pushfstring(L, "%s/?.lua;%s", lua_tostring(L, -1), path);
    }
    lua_setfield(L, 1, "path");
    if (r->game->options.seed != 0) {
        (void)lua_getglobal(L, "math");
        (void)lua_getfield(L, -1, "randomseed");
        lua_pushinteger(L, (lua_Integer)r->game->options.seed);
        lua_call(L, 1, 0);
    }
    // These stay loaded for ever.
    lua_settop(L, 0);
    (void)lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_newtable(L);
    lua_pushnil(L);
    while (lua_next(L, 1) != 0) {
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        lua_pushboolean(L, 1);
        lua_rawset(L, 2);
    }
    lua_setfield(L, LUA_REGISTRYINDEX, "ringhold.modules");
}

static bool open_state(struct lua_vm *r, char error[LUA_VM_ERROR_SIZE])
{
    r->L = lua_newstate(on_alloc, r);
    if (r->L == NULL) {
        (void)snprintf(error, LUA_VM_ERROR_SIZE, "not enough memory for a Lua state");
        return false;
    }
    (void)lua_atpanic(r->L, on_panic);
    *(struct lua_vm **)lua_getextraspace(r->L) = r; // New coroutines copy it.
    return lua_vm_try(r, open_libraries, r, error);
}

struct lua_vm *lua_vm_new(struct game *g, char error[LUA_VM_ERROR_SIZE])
{
    struct lua_vm *r = mem_new(1, sizeof *r);
    struct buffer source = {0};

    r->game = g;
    r->start = LUA_NOREF;
    for (size_t i = 0; i < KIND_DECLS_MAX; i++) {
        r->kind[i] = (struct lua_vm_kind){LUA_NOREF, LUA_NOREF, LUA_NOREF};
    }
    (void)pthread_mutex_lock(&g->lock);
    list_push_back(&g->lua_vms, &r->in_game);
    buffer_put(&source, g->source.data, g->source.size);
    r->version = atomic_load(&g->version);
    (void)pthread_mutex_unlock(&g->lock);
    const bool done = open_state(r, error) && lua_vm_load(r, buffer_bytes(&source), error);
    buffer_fini(&source);
    if (!done) {
        lua_vm_free(r);
        return NULL;
    }
    return r;
}

void lua_vm_free(struct lua_vm *r)
{
    ASSERT(r->running == NULL);
    (void)pthread_mutex_lock(&r->game->lock);
    list_remove(&r->in_game);
    (void)pthread_mutex_unlock(&r->game->lock);
    if (r->L != NULL) {
        lua_close(r->L);
    }
    buffer_fini(&r->scratch);
    mem_free(r);
}

struct lua_vm *lua_vm_here(struct game *g, char error[LUA_VM_ERROR_SIZE])
{
    if (here.game != g || here.serial != g->serial) {
        here.lua_vm = lua_vm_new(g, error);
        here.game = here.lua_vm == NULL ? NULL : g;
        here.serial = g->serial;
    }
    return here.lua_vm;
}

/* ---- reload ---- */

static void take_source(struct lua_vm *r, struct bytes source, uint64_t version)
{
    char error[LUA_VM_ERROR_SIZE];

    r->version = version;
    if (!lua_vm_load(r, source, error)) {
        log_error("lua", "reload_failed", "error=\"%s\"", error);
    }
}

void lua_vm_refresh(struct lua_vm *r)
{
    const uint64_t now_ms = lua_vm_now_ms();
    struct game *g = r->game;
    char error[LUA_VM_ERROR_SIZE];
    struct buffer source = {0};

    if (!g->options.reload || now_ms - r->looked_ms < LOOK_EACH_MS) {
        return;
    }
    r->looked_ms = now_ms;
    if (game_changed(g, &source)) {
        if (lua_vm_load(r, buffer_bytes(&source), error)) {
            game_publish(g, &source);
            r->version = atomic_load(&g->version);
            log_info("lua", "reloaded", "script=%s", g->path);
            return;
        }
        log_error("lua", "reload_failed", "error=\"%s\" goes_on=\"with the old code\"", error);
    } else if (atomic_load(&g->version) != r->version) {
        (void)pthread_mutex_lock(&g->lock);
        buffer_put(&source, g->source.data, g->source.size);
        const uint64_t version = atomic_load(&g->version);
        (void)pthread_mutex_unlock(&g->lock);
        take_source(r, buffer_bytes(&source), version);
    }
    buffer_fini(&source);
}

/* ---- log ---- */

static void write_fault(const struct fault *f)
{
    char id[ACTOR_NAME_ID_SIZE];
    char text[LUA_VM_ERROR_SIZE];

    (void)snprintf(text, sizeof text, "%s", f->text);
    text[strcspn(text, "\r\n")] = '\0';
    log_warn("lua",
             "script_error",
             "actor=%s/%s in=%s error=\"%s\"",
             f->kind,
             actor_name_print_id(bytes_of(f->id.data, f->id.size), id),
             f->where,
             text);
}

void lua_vm_log(struct lua_vm *r, const struct fault *f)
{
    uint32_t hidden = 0;

    if (!ration_take(&r->faults, lua_vm_now_ms() * 1000, FAULTS_A_SECOND, &hidden)) {
        return;
    }
    if (hidden > 0) {
        log_warn("lua", "script_errors_not_shown", "count=%u", hidden);
    }
    write_fault(f);
}

void lua_vm_complain(const char *kind, struct rh_bytes id, const char *text)
{
    const struct fault f = {.kind = kind, .id = id, .where = "script", .text = text};

    write_fault(&f);
}
