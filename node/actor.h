/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor as the host sees it: a record with a queue. What the game's code
 * does with it happens in the shell.
 *
 *     state       what                                         instance in the shell
 *     ABSENT      only a record; maybe state handed over       no
 *     ACTIVATING  ACTIVATE was given, its answer is to come    maybe
 *     IDLE        nothing to do                                yes
 *     RUNNING     RUN was given, RAN is to come                yes
 *     EXPORTING   EXPORT was given, EXPORTED is to come        yes
 *     FROZEN      its arc is held and its image is made        if `live`
 */
#ifndef NODE_ACTOR_H
#define NODE_ACTOR_H

#include "base/list.h"
#include "base/table.h"
#include "node/image.h"
#include "node/waiting.h"

struct hold;

enum actor_state {
    ACTOR_ABSENT,
    ACTOR_ACTIVATING,
    ACTOR_IDLE,
    ACTOR_RUNNING,
    ACTOR_EXPORTING,
    ACTOR_FROZEN,
};
const char *actor_state_name(enum actor_state state);

/* What the answer of the running request needs. */
struct running {
    uint64_t ticket;
    uint64_t gateway;
    uint64_t session;
    uint64_t seq;
    uint64_t peer;
    struct order *order; /* where its answer will be saved */
    uint32_t epoch;
    uint8_t copy; /* the last that came: it is answered */
    bool read;
};

struct actor {
    struct table_link link; /* by position */
    struct list_link cell;  /* in the list of its cell; of the dead, when discarded */
    struct list orders;     /* its struct order */
    struct queue queue;     /* admitted, in order of arrival */
    uint64_t position;
    void *instance;      /* the shell's */
    struct image *image; /* owned; ABSENT, ACTIVATING: handed over; FROZEN: exported; or NULL */
    struct hold *hold;   /* its arc is held and it has to freeze or is frozen; NULL = free */
    uint64_t since_us;   /* ACTIVATING, RUNNING or EXPORTING since */
    uint64_t token;      /* fence that its instance was given */
    struct running running;
    size_t early_count; /* requests in the early queues of its orders */
    uint16_t kind;
    enum actor_state state;
    bool live; /* the shell has an instance */
    uint8_t id_size;
    uint8_t id[];
};

/* All actors of a node, by id and by cell. */
struct actors {
    struct table table;
    struct list *cell; /* owned */
    uint32_t cell_count;
    uint8_t grid;
    struct list dead; /* discarded; freed at the next step, when the shell is done with them */
};

void actors_init(struct actors *a);
/* Empty and with the cells of a ring of that grid, segments included; there are no actors. */
void actors_set_grid(struct actors *a, uint8_t grid, uint32_t cell_count);
/* The ring got more cells: room for `cell_count`. Every actor stays in its own. */
void actors_grow(struct actors *a, uint32_t cell_count);
void actors_fini(struct actors *a); /* there are no actors; frees the dead */

/* NULL = none. */
struct actor *actor_find(const struct actors *a, struct image_name name);
/* Any RUNNING actor at this position, or NULL. */
struct actor *actor_running_at(const struct actors *a, uint64_t position);
/* A new record, ABSENT; there is none of that name. */
struct actor *actor_new(struct actors *a, struct image_name name);
/* Out of all lists, to be freed by actors_bury(). Queue and orders are empty. */
void actor_discard(struct actors *a, struct actor *actor);
void actors_bury(struct actors *a);

static inline struct image_name actor_name(const struct actor *a)
{
    return (struct image_name){.position = a->position, .kind = a->kind, .id = {a->id, a->id_size}};
}

/* First actor of a cell, and the one after it; NULL = no more. */
struct actor *cell_first(const struct actors *a, uint32_t cell);
struct actor *cell_next(const struct actors *a, uint32_t cell, const struct actor *actor);

#endif
