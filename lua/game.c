/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a game: loads its script once to learn its kinds, and again on each
 * thread and on each change.
 */
#include "lua/game.h"

#include "base/assert.h"
#include "base/mem.h"
#include "lua/actor.h"
#include "lua/vm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ops.start has no context of its own, so it looks here. */
static struct game *current;

static atomic_uint_fast64_t last_serial;

/* ---- the file ---- */

static bool is_newer(const struct game *g, const struct stat *s)
{
    return s->st_size != g->seen_size || s->st_mtim.tv_sec != g->seen_mtime.tv_sec ||
           s->st_mtim.tv_nsec != g->seen_mtime.tv_nsec;
}

/* Everything in the file, and when it was written. False: errno says why. */
static bool read_script(const char *path, struct buffer *out, struct stat *s)
{
    FILE *file = fopen(path, "rbe");
    size_t got = 0;

    if (file == NULL) {
        return false;
    }
    bool good = fstat(fileno(file), s) == 0;
    while (good && out->size <= GAME_SCRIPT_SIZE_MAX) {
        got = fread(buffer_reserve(out, 4096), 1, 4096, file);
        if (got == 0) {
            break;
        }
        out->size += got;
    }
    good = good && ferror(file) == 0;
    const int why = out->size > GAME_SCRIPT_SIZE_MAX ? EFBIG : errno;
    (void)fclose(file);
    errno = why;
    if (out->size > 1 && out->data[0] == '#') {
        out->data[0] = out->data[1] = '-'; // "#!": a comment for Lua, and lines keep their numbers.
    }
    return good && out->size <= GAME_SCRIPT_SIZE_MAX;
}

bool game_changed(struct game *g, struct buffer *source)
{
    struct stat s;
    bool changed = false;

    (void)pthread_mutex_lock(&g->lock);
    if (stat(g->path, &s) == 0 && is_newer(g, &s) && read_script(g->path, source, &s)) {
        g->seen_mtime = s.st_mtim;
        g->seen_size = s.st_size;
        changed = true;
    }
    (void)pthread_mutex_unlock(&g->lock);
    return changed;
}

void game_publish(struct game *g, struct buffer *source)
{
    (void)pthread_mutex_lock(&g->lock);
    buffer_fini(&g->source);
    g->source = *source;
    (void)atomic_fetch_add(&g->version, 1);
    (void)pthread_mutex_unlock(&g->lock);
    *source = (struct buffer){0};
}

/* ---- kinds ---- */

static int on_start(const struct rh_kind_info *info, void **shared)
{
    struct game *g = current;

    for (size_t i = 0; i < g->kind_count; i++) {
        if (g->kind[i].kind_decl.number == info->kind) {
            mem_free(g->node);
            g->node = mem_string(info->node);
            g->started++;
            *shared = &g->kind[i];
            return RH_OK;
        }
    }
    return RH_FAILED;
}

static void close_lua_vms(struct game *g)
{
    struct list_link *at;

    while ((at = list_front(&g->lua_vms)) != NULL) {
        lua_vm_free(CONTAINER_OF(at, struct lua_vm, in_game));
    }
}

/* No actor is left on any thread. */
static void on_stop(void *shared)
{
    struct game *g = ((struct game_kind *)shared)->game;

    if (--g->started == 0) {
        close_lua_vms(g);
        g->serial = atomic_fetch_add(&last_serial, 1) + 1; // What threads remember is void.
    }
}

static void fill(struct game *g, const struct kind_decl *d)
{
    struct game_kind *k = &g->kind[g->kind_count];

    k->game = g;
    k->index = g->kind_count;
    k->kind_decl = *d;
    k->ops = (struct rh_actor_ops){
        .abi = RH_ABI,
        .size = sizeof k->ops,
        .name = k->kind_decl.name,
        .start = on_start,
        .stop = on_stop,
        .activate = lua_actor_activate,
        .message = lua_actor_message,
        .handoff = lua_actor_handoff,
        .resume = lua_actor_resume,
        .deactivate = lua_actor_deactivate,
        .timer = lua_actor_timer,
        .flush = d->durable ? NULL : lua_actor_flush,
        .list = d->remembers ? lua_actor_list : NULL,
        .remember = d->remember ? 1 : 0,
        .mailbox = d->mailbox,
        .memory = d->memory,
        .idle_ms = d->idle_ms,
        .flush_ms = d->flush_ms,
        .state_max = d->state_max,
        .state_version = d->state_version,
        .state_version_least = d->state_version_least,
        .state_version_most = d->state_version_most,
        .upgrade = d->upgrades ? lua_actor_upgrade : NULL,
        .session = d->sessions ? lua_actor_session : NULL,
        .sessions = d->policy,
        .sessions_max = d->sessions_max,
        .durable = d->durable ? 1 : 0,
        .alarm = d->alarms ? lua_actor_alarm : NULL,
    };
    g->shown[g->kind_count++] = (struct rh_kind){
        .number = d->number, .ops = &k->ops, .placement = d->placement, .daemons = d->daemons};
    if (d->placement == RH_PLACE_HOSTS) {
        g->shown[g->kind_count - 1].part = d->part;
    }
}

/* The first VM tells what there is; it is not kept, since the threads that run actors are
 * others.
 */
static bool learn_kinds(struct game *g, char error[LUA_VM_ERROR_SIZE])
{
    struct lua_vm *r = lua_vm_new(g, error);

    if (r == NULL) {
        return false;
    }
    for (size_t i = 0; i < r->kind_decl_count; i++) {
        fill(g, &r->kind_decl[i].kind_decl);
    }
    lua_vm_free(r);
    return true;
}

const struct game_kind *game_kind_named(const struct game *g, const char *name)
{
    for (size_t i = 0; i < g->kind_count; i++) {
        if (strcmp(g->kind[i].kind_decl.name, name) == 0) {
            return &g->kind[i];
        }
    }
    return NULL;
}

/* ---- opening ---- */

static void take_words(struct game *g, const char *script)
{
    const char *equals = strchr(script, '=');

    g->path = mem_string(script);
    g->argument = mem_string(equals == NULL ? "" : equals + 1);
    g->node = mem_string("");
    if (equals != NULL) {
        g->path[equals - script] = '\0';
    }
}

static const char *who(const struct game_options *options)
{
    return options->who == NULL ? "ringhold node: --lua" : options->who;
}

struct game *game_open(const struct game_options *options)
{
    struct game *g = mem_new(1, sizeof *g);
    char error[LUA_VM_ERROR_SIZE] = "";
    struct stat s;

    g->options = *options;
    g->serial = atomic_fetch_add(&last_serial, 1) + 1;
    list_init(&g->lua_vms);
    (void)pthread_mutex_init(&g->lock, NULL);
    take_words(g, options->script);
    if (!read_script(g->path, &g->source, &s)) {
        (void)fprintf(stderr, "%s: %s: %s\n", who(options), g->path, strerror(errno));
        game_close(g);
        return NULL;
    }
    g->seen_mtime = s.st_mtim;
    g->seen_size = s.st_size;
    if (!learn_kinds(g, error)) {
        error[strcspn(error, "\n")] = '\0';
        (void)fprintf(stderr, "%s: %s\n", who(options), error);
        game_close(g);
        return NULL;
    }
    ASSERT(current == NULL);
    current = g;
    return g;
}

const struct rh_kind *game_kinds(const struct game *g, size_t *count)
{
    *count = g->kind_count;
    return g->shown;
}

void game_close(struct game *g)
{
    if (g == NULL) {
        return;
    }
    current = current == g ? NULL : current;
    close_lua_vms(g);
    buffer_fini(&g->source);
    (void)pthread_mutex_destroy(&g->lock);
    mem_free(g->path);
    mem_free(g->argument);
    mem_free(g->node);
    mem_free(g);
}

int game_check(const struct game_options *options)
{
    static const char *const places[] = {[RH_PLACE_HASH] = "hash",
                                         [RH_PLACE_SINGLETON] = "singleton",
                                         [RH_PLACE_DAEMONS] = "daemons",
                                         [RH_PLACE_TOGETHER] = "together",
                                         [RH_PLACE_HOSTS] = "hosts"};
    struct game *g = game_open(options);

    if (g == NULL) {
        return 1;
    }
    for (size_t i = 0; i < g->kind_count; i++) {
        const struct kind_decl *d = &g->kind[i].kind_decl;

        (void)printf("kind %s number=%u placement=%s%s\n",
                     d->name,
                     d->number,
                     places[d->placement],
                     d->remembers || d->remember ? " remembered" : "");
    }
    (void)printf("%s: ok\n", g->path);
    game_close(g);
    return 0;
}
