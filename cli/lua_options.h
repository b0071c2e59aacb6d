/* SPDX-License-Identifier: Apache-2.0
 *
 * The flags of `ringhold node` about a game in Lua (lua/game.h).
 */
#ifndef CLI_LUA_OPTIONS_H
#define CLI_LUA_OPTIONS_H

#include "daemon/options.h"
#include "node/node_uv.h"

struct lua_args {
    char script[4096]; /* "" = none */
    char check[4096];
    uint32_t instructions;
    uint32_t memory_mb;
    bool reload;
};

struct lua_args lua_args_default(void);

/* Add the rows to the command's table; `w` is borrowed as long as that is used. */
void lua_args_add(struct options *t, struct lua_args *w);

/* The mode that --lua-check asks for; -1 if it was not given, else the exit code. */
int lua_args_check(const struct lua_args *w);

/* Run a node as node_run() does, with the kinds of the script if there is one, beside those of
 * `o`. */
int lua_args_run(const struct lua_args *w, struct node_options *o);

#endif
