/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of `ringhold node` for games in Lua, and the start of a node with
 * one.
 */
#include "cli/lua_options.h"

#include "lua/game.h"

enum {
    INSTRUCTIONS_DEFAULT = 100000000,
    MEMORY_DEFAULT_MB = 1024,
    MEMORY_MAX_MB = 1 << 20,
    MB_SHIFT = 20
};

struct lua_args lua_args_default(void)
{
    return (struct lua_args){.instructions = INSTRUCTIONS_DEFAULT, .memory_mb = MEMORY_DEFAULT_MB};
}

void lua_args_add(struct options *t, struct lua_args *w)
{
    (void)options_add(t,
                      option_veiled(option_text("lua",
                                                "FILE[=ARGUMENT]",
                                                w->script,
                                                sizeof w->script,
                                                "a Lua script that declares the kinds of actors")));
    (void)options_add(t,
                      option_text("lua-check",
                                  "FILE",
                                  w->check,
                                  sizeof w->check,
                                  "only load the script, print its kinds or its errors, and exit"));
    (void)options_add(
        t,
        option_switch("lua-reload",
                      &w->reload,
                      "for development: load the script again when its file changes"));
    (void)options_add(
        t,
        option_number("lua-instructions",
                      &w->instructions,
                      (struct option_range){0, UINT32_MAX},
                      "instructions that a script may run between two waits; 0 = no limit (%)"));
    (void)options_add(t,
                      option_number("lua-memory-mb",
                                    &w->memory_mb,
                                    (struct option_range){1, MEMORY_MAX_MB},
                                    "MiB of memory for the scripts of one thread (%)"));
}

static struct game_options options_of(const struct lua_args *w, const char *script)
{
    return (struct game_options){.script = script,
                                 .reload = w->reload,
                                 .instructions_max = w->instructions,
                                 .memory_max = (size_t)w->memory_mb << MB_SHIFT};
}

int lua_args_check(const struct lua_args *w)
{
    const struct game_options options = options_of(w, w->check);

    return w->check[0] == '\0' ? -1 : game_check(&options);
}

int lua_args_run(const struct lua_args *w, struct node_options *o)
{
    const struct game_options options = options_of(w, w->script);

    if (w->script[0] == '\0') {
        return node_run(o);
    }
    struct game *game = game_open(&options);
    if (game == NULL) {
        return 1;
    }
    o->node.kinds = game_kinds(game, &o->node.kind_count);
    const int code = node_run(o);
    game_close(game);
    return code;
}
