/* SPDX-License-Identifier: Apache-2.0
 *
 * The scene: where the game's code runs. It turns the host's effects (activate,
 * run, turn, export, unfreeze, retire, discard) into calls of an actor's
 * callbacks, and what these come to into events. The public functions of
 * ringhold.h are implemented here.
 *
 * One scene belongs to one worker: all of it is called on that thread. Only what
 * finishes a deferred callback (rh_done, rh_reply_later) comes from any thread;
 * it is noted, `on_later` is called, and scene_tick() finishes it.
 *
 * No I/O and no clock of its own: time comes in with scene_tick(). `on_event` is
 * called from within the functions below; it must only note the event, never call
 * the scene.
 *
 *     ABSENT -activate-> LIVE <-run, turn-> busy (one of them at a time, perhaps deferred)
 *     LIVE -export-> FROZEN -unfreeze-> LIVE      LIVE -retire-> gone      any -discard-> gone
 *
 * Files: scene.c life; scene_seat.c records; scene_extras.c what few need; scene_message.c
 * messages; scene_move.c leaving for another node; scene_later.c what finishes later; scene_reply.c
 * answers; scene_timer.c timers; scene_call.c calls of other actors.
 */
#ifndef NODE_RUNTIME_RUNTIME_H
#define NODE_RUNTIME_RUNTIME_H

#include "base/bytes.h"
#include "base/err.h"
#include "node/calls/call.h"
#include "wire/session.h"

#include <ringhold.h>
#include <stdbool.h>

struct scene;

enum {
    SCENE_STATE_DEFAULT = 1024 * 1024,  /* rh_actor_ops.state_max of 0 */
    SCENE_STATE_MAX = 64 * 1024 * 1024, /* more is not granted */
    SCENE_CALLS_MAX = 1024,             /* open calls of one actor */
    SCENE_TIMERS_MAX = 1024,            /* of one actor */
};

enum scene_event_type {
    SCENE_ACTIVATED, /* error: ERR_OK, or its activate said no and it is gone */
    SCENE_RAN,       /* ticket, code, bytes: the answer; of a turn without bytes */
    SCENE_EXPORTED,  /* error: ERR_OK or ERR_BUSY, has_state, bytes; session: of its calls, 0 = none
                      */
    SCENE_PARTED,    /* it is gone: scene_part() */
    SCENE_RETIRED,   /* error: ERR_OK: it is gone, or its flush failed and it stays */
    SCENE_POKE,      /* it wants a turn */
    SCENE_PASSIVATE, /* it wants to be retired */
    SCENE_FAILED,    /* it is broken; comes before the RAN of what it ran */
    SCENE_CALL,      /* call */
    SCENE_PUSH,      /* push: for the client that is bound to it */
    SCENE_BOUND,     /* session: a gateway's id: a client of it is bound here */
    SCENE_GONE,      /* session: it made calls, and is gone: nobody waits for their answers */
    SCENE_DEFERRED,  /* the callback that ran finishes later … */
    SCENE_FINISHED,  /* … and now it has */
};

/* `actor` is what scene_activate() was given, a seat or a name, `bytes` and `call` are borrowed. */
struct scene_event {
    enum scene_event_type type;
    void *actor;
    uint64_t ticket;
    enum err error;
    enum answer_code code;
    bool has_state;
    struct bytes bytes;
    const struct call *call;
    const struct push_record *push;
    struct bytes bond; /* EXPORTED: of its client, or empty */
    uint64_t session;
    void **kept; /* DEFERRED, FINISHED: room for a pointer of the caller's, the same for both */
};

struct scene_config {
    void (*on_event)(void *context, const struct scene_event *event);
    /* scene_tick(), scene_answer() or scene_save() enters the code of this actor, NULL = leaves it.
     * The others of these functions enter no code but their actor's. May be NULL. */
    void (*on_enter)(void *context, void *actor);
    /* From any thread: scene_tick() has something to do. May be NULL. */
    void (*on_later)(void *context);
    void *context;
    size_t state_size_max;   /* of one hand-over; 0 = SCENE_STATE_MAX */
    uint32_t worker;         /* for struct call */
    struct casting *casting; /* of all scenes of the node; NULL = broadcasts are not bounded */
};

struct scene *scene_new(const struct scene_config *config);

/* Only keep the time, for timers to be set. */
void scene_set_now(struct scene *s, uint64_t now_us);
/* Run what is due, finish what was finished, and keep the time for timers to be set. */
void scene_tick(struct scene *s, uint64_t now_us);
/* When the next timer is due; UINT64_MAX = none. */
uint64_t scene_next_us(const struct scene *s);

/* ---- seats: from any thread

 * The record of an actor, made before it comes on the scene. It is the caller's: it stays when the
 * actor is gone, until it is vacated. Its name never changes. */
struct named {
    uint16_t kind;
    struct bytes id; /* in the seat */
};
struct rh_actor *scene_seat(struct scene *s, uint16_t kind, struct bytes id, void *outer);
/* Nothing of it is on the scene, or to come. */
void scene_vacate(struct rh_actor *a);
/* The caller's own pointer. */
void *scene_outer(const struct rh_actor *a);
void scene_set_outer(struct rh_actor *a, void *outer);
struct named scene_name(const struct rh_actor *a);
/* It will run: its instance's memory is fetched. A hint. */
void scene_fetch(const struct rh_actor *a);
/* A hash of its name. */
uint64_t scene_hash(const struct rh_actor *a);

/* ---- on the scene's thread */

/* Is it on the scene? */
bool scene_has(const struct rh_actor *a);

/* How an actor comes on the scene. `ops` has message, activate and deactivate (kinds.h checks
 * that).
 */
struct scene_entry {
    const struct rh_actor_ops *ops;
    void *shared;          /* of the kind */
    struct rh_actor *seat; /* NULL = one is made, named by the next three, and freed in the end */
    void *actor;           /* what it is called in events; of a seat: the seat */
    struct bytes id;       /* copied */
    struct bytes state;    /* borrowed */
    bool has_state;        /* false: start afresh */
    struct bytes bond;     /* of the client that was bound to it, or empty */
    uint16_t kind;         /* of no seat */
    uint64_t fence;
};

/* The actor is NULL if its activate said no at once; SCENE_ACTIVATED with an error always means
 * that what was returned is gone. */
struct rh_actor *scene_activate(struct scene *s, const struct scene_entry *entry);

/* One request. Borrowed. */
struct scene_message {
    uint64_t ticket;
    uint8_t flags;     /* enum request_flags */
    struct bytes body; /* of REQUEST_CALL: it starts with the caller */
    uint8_t chain_count;
    const uint64_t *chain; /* of positions: whose calls led here */
};

/* The next four: on an actor that is live and not busy, or, of unfreeze, frozen. */
void scene_run(struct rh_actor *actor, const struct scene_message *message);
/* Timers, answers of calls, a flush: what it does between messages. */
void scene_turn(struct rh_actor *actor, uint64_t ticket);
/* Flush it, freeze it, and take its state. */
void scene_export(struct rh_actor *actor);
void scene_unfreeze(struct rh_actor *actor);
/* Flush it, and end it by deactivate(IDLE). */
void scene_retire(struct rh_actor *actor);
/* In any state; a message that still runs is never answered. Frees the actor. */
void scene_discard(struct rh_actor *actor, enum rh_why why);
/* Flush it, by its fence, then deactivate it: RH_STOP; SCENE_PARTED is told then, which may be
 * later. What is amidst a task, or has nothing to save, is discarded as `otherwise`. */
void scene_part(struct rh_actor *actor, enum rh_why otherwise);
/* No client of that gateway is there any more. */
void scene_gateway_gone(struct scene *s, uint64_t gateway);
/* A call has ended. */
void scene_answer(struct scene *s, const struct call_answer *answer);

/* Flush what has not been since this was called first, for the node stops. Returns how many are not
 * through: call it again after scene_tick(). `flushed`: how many are. Nothing else is begun any
 * more. */
size_t scene_save(struct scene *s, size_t *flushed);
/* Discard every actor that is left. Only seats are still read, and vacated. */
void scene_end(struct scene *s, enum rh_why why);
/* Free what has ended, seats included. */
void scene_free(struct scene *s);
/* Both. */
void scene_close(struct scene *s, enum rh_why why);

#endif
