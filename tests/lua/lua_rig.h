/* SPDX-License-Identifier: Apache-2.0
 *
 * A script, and an actor of it on a runtime: for tests of games.
 */
#ifndef TESTS_LUA_LUA_RIG_H
#define TESTS_LUA_LUA_RIG_H

#include "base/clock.h"
#include "lua/game.h"
#include "tests/folder.h"
#include "tests/node/runtime_rig.h"

#include <time.h>
#include <utime.h>

/* A game in a file of its own, with one actor of its first kind on the runtime. */
struct rig {
    char folder[256];
    char path[300];
    struct game *game;
    const struct rh_kind *kind;
    void *shared;
    struct runtime_rig t;
};

static inline void write_script(struct rig *r, const char *text)
{
    FILE *file = fopen(r->path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline void rig_make(struct rig *r, const char *script, bool reload)
{
    const struct game_options options = {.script = r->path,
                                         .reload = reload,
                                         .instructions_max = 1000000,
                                         .memory_max = (size_t)16 << 20};
    const struct rh_kind_info info = {.size = sizeof info, .node = "n1", .argument = ""};
    size_t count = 0;

    folder_make(r->folder, sizeof r->folder);
    (void)snprintf(r->path, sizeof r->path, "%s/game.lua", r->folder);
    write_script(r, script);
    r->game = game_open(&options);
    assert_non_null(r->game);
    r->kind = game_kinds(r->game, &count);
    assert_true(count > 0);
    assert_int_equal(r->kind[0].ops->start(&info, &r->shared), RH_OK);
    runtime_rig_build(&r->t);
}

static inline void rig_enter(struct rig *r)
{
    const struct runtime_entry entry = {
        .ops = r->kind[0].ops, .shared = r->shared, .fence = 7, .kind = 0};

    runtime_tick(r->t.runtime, clock_boottime_us());
    runtime_rig_enter(&r->t, &entry);
}

static inline void rig_free(struct rig *r)
{
    runtime_rig_close(&r->t);
    r->kind[0].ops->stop(r->shared);
    game_close(r->game);
    folder_remove(r->folder);
}

/* Let time pass until something more was told than `before`. */
static inline void pass_from(struct rig *r, enum verb verb, size_t before)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    while (r->t.told[verb] == before) {
        runtime_tick(r->t.runtime, clock_boottime_us());
        (void)nanosleep(&pause, NULL);
    }
}

/* Let time pass until something more was told. */
static inline void pass(struct rig *r, enum verb verb)
{
    pass_from(r, verb, r->t.told[verb]);
}

/* The answer to a payload, however long it takes. */
static inline const char *call(struct rig *r, const char *payload)
{
    const size_t before = r->t.answers;

    runtime_tick(r->t.runtime, clock_boottime_us());
    (void)runtime_rig_call(&r->t, payload);
    if (r->t.answers == before) {
        pass(r, VERB_RUN);
    }
    return r->t.text;
}

/* A file's time may be too coarse to tell two writes apart. */
static inline void rewrite(struct rig *r, const char *text, time_t when)
{
    const struct utimbuf times = {when, when};

    write_script(r, text);
    assert_int_equal(utime(r->path, &times), 0);
}

/* The answer that is expected comes at last: a look at the file takes place each second. */
static inline void expect_soon(struct rig *r, const char *payload, const char *expected)
{
    const struct timespec pause = {.tv_nsec = 10000000};

    while (strcmp(call(r, payload), expected) != 0) {
        (void)nanosleep(&pause, NULL);
    }
}

#endif
