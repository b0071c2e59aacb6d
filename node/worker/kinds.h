/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kinds of actor does this node host? Bundled ones by name, others from
 * shared objects, others given by the game server that embeds the library.
 */
#ifndef NODE_WORKER_KINDS_H
#define NODE_WORKER_KINDS_H

#include "base/err.h"
#include "node/host/host.h"

#include <ringhold.h>
#include <stdbool.h>
#include <stdint.h>

enum { KINDS_MAX = 64 };

struct kind {
    uint16_t number;
    struct rh_actor_ops ops; /* a copy: what an older one lacks is NULL */
    void *shared;            /* made by ops.start */
    char *argument;          /* owned */
    void *object;            /* of dlopen(); NULL = linked in */
    bool started;
};

/* All zero is a valid empty set. It must not move once a kind was started. */
struct kinds {
    struct kind kind[KINDS_MAX];
    struct host_kind hosted[KINDS_MAX]; /* of each, for host_config */
    /* The kind that "host=WORDS" names, whose code is in another process; NULL = there are none. */
    const struct rh_actor_ops *(*host_kind)(const char *words);
    size_t count;
};

/* The functions that return an error have printed one line about it on stderr. */

/* Add a kind by its callbacks, borrowed until kinds_fini(); `argument` may be NULL. ERR_CONFLICT:
 * the number is taken; ERR_FOREIGN: built for another ABI; ERR_INVALID: a callback is missing;
 * ERR_TOO_BIG: too many kinds. */
MUST_CHECK enum err kinds_add(struct kinds *k, const struct rh_kind *kind);

/* Add kind `number` by its name: "kv", "echo", one whose NAME.so is installed beside this program
 * ("ledger"), or a shared object's path, which has a slash in it: "./game.so", or "./game.so:orc",
 * which names a kind in it; then optionally "=ARGUMENT"; or "host=WORDS". ERR_NOT_FOUND: no such
 * actor or file, or the file has no such kind; else as kinds_add(). */
MUST_CHECK enum err kinds_add_named(struct kinds *k, uint16_t number, const char *name);

/* Add kinds, one line for each: "NUMBER[@together][@remember]:NAME", "NUMBER@singleton:NAME" or
 * "NUMBER@daemons=COUNT:NAME", NAME as above. NULL: none. False: one is wrong. */
MUST_CHECK bool kinds_add_lines(struct kinds *k, const char *lines);

/* Call every start callback. ERR_REFUSED: one said no. */
MUST_CHECK enum err kinds_start(struct kinds *k, const char *node);

/* NULL = not hosted here. */
const struct kind *kinds_find(const struct kinds *k, uint16_t number);

/* Find the name of a kind that is durable; NULL = none is. */
const char *kinds_durable(const struct kinds *k);

/* Stop what was started, close what was loaded. No actor may be left. */
void kinds_fini(struct kinds *k);

#endif
