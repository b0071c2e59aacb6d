/* SPDX-License-Identifier: Apache-2.0
 *
 * A game written in Lua, as the kinds of actor that a node hosts: what the
 * command line opens for `ringhold node --lua game.lua`.
 *
 * The script runs once to learn the kinds that it declares, and then once in
 * each thread that runs actors (vm.h): an actor's callbacks are those of
 * actor.h. docs/lua.md is for who writes such a script.
 */
#ifndef LUA_GAME_H
#define LUA_GAME_H

#include "base/bytes.h"
#include "base/list.h"
#include "lua/kind_decl.h"

#include <pthread.h>
#include <ringhold.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { GAME_SCRIPT_SIZE_MAX = 16 << 20 };

struct game_options {
    const char *script;        /* FILE or FILE=ARGUMENT */
    bool reload;               /* look for a newer file each second */
    uint64_t instructions_max; /* that one callback may take between two waits; 0 = no limit */
    size_t memory_max;         /* bytes of one thread's Lua state */
    uint64_t seed;             /* of math.random in each of them; 0 = Lua draws one */
    const char *who;           /* begins a line of what is wrong; NULL = "ringhold node: --lua" */
};

struct game;

/* A kind of actor that the script declares. */
struct game_kind {
    struct game *game;
    size_t index; /* in game->kind */
    struct kind_decl kind_decl;
    struct rh_actor_ops ops;
};

struct game {
    struct game_options options; /* without `script` */
    char *path;                  /* owned */
    char *argument;              /* owned; "" if nothing stood after "=" */
    char *node;                  /* owned; the node's name, "" before a kind is started */
    struct game_kind kind[KIND_DECLS_MAX];
    struct rh_kind shown[KIND_DECLS_MAX];
    size_t kind_count;
    uint64_t serial; /* no other game of this process has it */
    size_t started;  /* kinds; at the last stop every VM is closed */

    atomic_uint_fast64_t version; /* of `source`: grows with each reload */
    pthread_mutex_t lock;         /* of what follows */
    struct buffer source;         /* the last that loaded */
    struct timespec seen_mtime;   /* of the file that was read last, loaded or not */
    off_t seen_size;
    struct list lua_vms;
};

/* Load the script and learn its kinds. NULL: one line on stderr says why. One game at a time in a
 * process. */
struct game *game_open(const struct game_options *options);

/* The game's kinds for rh_node_options, borrowed until game_close(). */
const struct rh_kind *game_kinds(const struct game *g, size_t *count);

/* NULL if it has none of that name. */
const struct game_kind *game_kind_named(const struct game *g, const char *name);

/* A script loads only if what runs already is still there. True, and the new source, if the file
 * has changed since it was last read. Any thread. */
bool game_changed(struct game *g, struct buffer *source);
/* `source` loaded: other VMs will take it. Takes it. Any thread. */
void game_publish(struct game *g, struct buffer *source);

/* Have the clocks that scripts read stand at so many milliseconds since 1970, for the test of a
 * game; 0: they are the machine's again, as at first. Any thread. */
void game_set_clock(uint64_t clock_ms);

/* Close the game when no actor is left. Takes NULL. */
void game_close(struct game *g);

/* Load the script and print its kinds: `ringhold node --lua-check`. Returns the exit code. */
int game_check(const struct game_options *options);

#endif
