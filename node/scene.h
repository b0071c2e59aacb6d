/* SPDX-License-Identifier: Apache-2.0
 *
 * The scene: where the game's code runs. It turns the host's effects (activate,
 * run, export, unfreeze, discard) into calls of an actor's callbacks, and the
 * replies into `ran`. The public functions of ringhold.h are implemented here.
 *
 * No I/O and no clock of its own: time comes in with scene_tick(). `ran` is
 * called from within scene_run(), scene_tick() or rh_reply_later(); it must
 * only note the answer, never call the scene.
 *
 *     IDLE -run-> RUNNING -reply-> IDLE          RUNNING -defer-> DEFERRED -reply-> IDLE
 *     IDLE -export-> FROZEN -unfreeze-> IDLE
 */
#ifndef NODE_SCENE_H
#define NODE_SCENE_H

#include "base/bytes.h"
#include "base/err.h"
#include "wire/record.h"

#include <ringhold.h>

struct scene;

/* An answer: `actor` is what scene_activate() was given, `body` is borrowed. */
struct scene_answer {
    void *actor;
    uint64_t ticket;
    enum answer_code code;
    struct bytes body;
};

typedef void (*scene_ran)(void *context, const struct scene_answer *answer);

struct scene *scene_new(scene_ran ran, void *context);
/* Run the timers that are due, and keep the time for those to be set. */
void scene_tick(struct scene *s, uint64_t now_us);

/* How an actor comes on the scene. `ops` has message and activate (kinds.h checks that). */
struct scene_entry {
    const struct rh_actor_ops *ops;
    void *shared;       /* of the kind */
    void *actor;        /* the caller's name of it */
    struct bytes id;    /* copied */
    struct bytes state; /* borrowed */
    bool has_state;     /* false: start afresh */
    uint64_t fence;
};

/* ERR_REFUSED: its activate said no; `out` is not set then. */
MUST_CHECK enum err scene_activate(struct scene *s, const struct scene_entry *entry,
                                   struct rh_actor **out);
/* Run one request on an idle actor; `flags`: enum request_flags. */
void scene_run(struct rh_actor *actor, uint64_t ticket, uint8_t flags, struct bytes body);
/* Freeze an idle actor and append its state. */
void scene_export(struct rh_actor *actor, struct buffer *out);
void scene_unfreeze(struct rh_actor *actor);
/* In any state; a message that still runs is never answered. Frees the actor. */
void scene_discard(struct rh_actor *actor, enum rh_why why);
/* Discard every actor that is left, and free the scene. */
void scene_close(struct scene *s, enum rh_why why);

#endif
