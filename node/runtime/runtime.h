/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime: where the game's code runs. It turns submissions (node/bridge/operation.h) into
 * calls of an actor's callbacks, and what these come to into completions. The public functions of
 * ringhold.h are implemented here.
 *
 * One runtime belongs to one worker: all of it is called on that thread. Only what
 * finishes a deferred callback (rh_done, rh_reply_later) comes from any thread;
 * it is noted, `on_later` is called, and runtime_tick() finishes it.
 *
 * No I/O and no clock of its own: time comes in with runtime_tick(). `on_completion` is
 * called from within the functions below; it must only note the completion, never call
 * the runtime.
 *
 *     ABSENT -activate-> LIVE <-run, turn-> busy (one of them at a time, perhaps deferred)
 *     LIVE -export-> FROZEN -unfreeze-> LIVE      LIVE -retire-> gone      any -discard-> gone
 *
 * A durable actor's values are in a store (durable.h): it comes to life when they are loaded, and
 * says nothing of what it has changed before that is saved.
 *
 * Files: runtime.c life; durable.c, durable_alarms.c, withheld.c, state.c durable actors; perform.c
 * submissions;
 * activation.c records; extras.c what few need; message.c messages; move.c leaving for another
 * node; later.c what finishes later; reply.c answers; timer.c timers; call.c calls of other actors;
 * traced.c traces.
 */
#ifndef NODE_RUNTIME_RUNTIME_H
#define NODE_RUNTIME_RUNTIME_H

#include "base/bytes.h"
#include "base/err.h"
#include "node/bridge/operation.h"
#include "node/calls/call.h"
#include "wire/session.h"

#include <ringhold.h>
#include <stdbool.h>

struct runtime;
struct store_task; /* storage/actors/store.h */

enum {
    RUNTIME_STATE_DEFAULT = 1024 * 1024,  /* rh_actor_ops.state_max of 0 */
    RUNTIME_STATE_MAX = 64 * 1024 * 1024, /* more is not granted */
    RUNTIME_CALLS_MAX = 1024,             /* open calls of one actor */
    RUNTIME_TIMERS_MAX = 1024,            /* of one actor */
};

/* Of alarms of durable actors, for metrics. From any thread. */
struct alarm_counts {
    _Atomic uint64_t set;
    _Atomic uint64_t cancelled;
    _Atomic uint64_t fired;
    _Atomic uint64_t late;   /* of these: a second or more after their time */
    _Atomic uint64_t failed; /* … and whose callback failed */
};

/* What the durable actors that live keep, for metrics. */
enum durable_figure {
    FIGURE_ANSWERS, /* saved ones … */
    FIGURE_ANSWER_BYTES,
    FIGURE_SENDS, /* that are not taken yet … */
    FIGURE_SEND_BYTES,
    FIGURE_ALARMS, /* that are set */
    FIGURE_DUE,    /* 1 for each actor that has an alarm which is due, and has not ended */
};
enum { DURABLE_FIGURES = FIGURE_DUE + 1 };
/* From any thread. */
struct durable_figures {
    _Atomic uint64_t of[DURABLE_FIGURES];
};

struct runtime_config {
    void (*on_completion)(void *context, const struct completion *c);
    /* Called before runtime_tick(), runtime_answer() or runtime_save() enters the code of this
     * actor, and with NULL when it leaves it; behind runtime_answer() it is the caller that leaves,
     * as more of them may follow. The other functions here enter no code but that of
     * their own actor. May be NULL. */
    void (*on_enter)(void *context, void *actor);
    /* From any thread: runtime_tick() has something to do. May be NULL. */
    void (*on_later)(void *context);
    /* The RUN that is done at once: its completion goes there, not to on_completion(). Set to NULL
     * then, and by the caller when something else is told before, which it stands behind. May be
     * NULL. */
    struct at_once **at_once;
    void *context;
    size_t state_size_max;         /* of one hand-over; 0 = RUNTIME_STATE_MAX */
    uint32_t worker;               /* for struct call */
    const struct tracing *tracing; /* borrowed: where spans of commits go; NULL = nowhere */
    uint64_t span_seed;            /* random */
    struct broadcasting
        *broadcasting; /* of all runtimes of the node; NULL = broadcasts are not bounded */
    struct numbering *numbering;       /* likewise; NULL = the node has no other runtime */
    struct alarm_counts *alarm_counts; /* likewise; NULL = they are not counted */
    struct durable_figures *figures;   /* likewise */
    /* Have the store do a task, which comes back by runtime_stored(), from whatever thread, or is
     * freed. NULL: no kind here is durable. */
    void (*on_store)(void *store, struct store_task *task);
    void *store;
};

struct runtime *runtime_new(const struct runtime_config *config);

/* Only keep the time, for timers to be set. */
void runtime_set_now(struct runtime *s, uint64_t now_us);
/* Keep the time, and that of the wall clock, both read at the same moment: without it no alarm of a
 * durable actor goes off. It may be set to any other time meanwhile. */
void runtime_set_wall(struct runtime *s, uint64_t now_us, uint64_t wall_us);
/* Run what is due, finish what was finished, and keep the time for timers to be set. */
void runtime_tick(struct runtime *s, uint64_t now_us);
/* A task that was given to on_store() is done: from any thread. Takes it, and calls `on_later`. */
void runtime_stored(struct store_task *task);
/* When the next timer is due; UINT64_MAX = none. */
uint64_t runtime_next_us(const struct runtime *s);

/* ---- activations: from any thread

 * The record of an actor, made before it comes on the runtime. It is the caller's: it stays when
 the
 * actor is gone, until it is freed. Its name never changes. */
struct named {
    uint16_t kind;
    struct bytes id; /* in the activation */
};
struct rh_actor *activation_new(struct runtime *s, uint16_t kind, struct bytes id, void *owner);
/* Free an activation of which nothing is on the runtime, or to come. */
void activation_free(struct rh_actor *a);
/* The caller's own pointer. */
void *activation_owner(const struct rh_actor *a);
void activation_set_owner(struct rh_actor *a, void *owner);
struct named activation_name(const struct rh_actor *a);
/* Hint that the activation runs next: fetches the first 128 bytes of its instance. */
void activation_fetch(const struct rh_actor *a);
/* Return a hash of the actor's name. */
uint64_t activation_hash(const struct rh_actor *a);

/* ---- on the runtime's thread */

/* True if the actor is on the runtime. */
bool activation_is_live(const struct rh_actor *a);
/* True if the actor has ended itself, or is broken. Then it sees no further message: a RUN is
 * completed with ERR_BUSY. The host may give it one, because an actor may reply first and end
 * itself then, and the host hears of both in that order. */
bool activation_has_ended(const struct rh_actor *a);

/* How an actor comes on the runtime. `ops` has message, activate and deactivate (kinds.h checks
 * that).
 */
struct runtime_entry {
    const struct rh_actor_ops *ops;
    void *shared; /* of the kind */
    struct rh_actor
        *activation;    /* NULL = one is made, named by the next three, and freed in the end */
    void *actor;        /* what it is called in events; of an activation: the activation */
    struct bytes id;    /* copied */
    struct bytes state; /* borrowed */
    bool has_state;     /* false: start afresh */
    uint32_t state_version;
    struct bytes bond; /* of the client that was bound to it, or empty */
    uint16_t kind;     /* of no activation */
    uint64_t fence;
};

/* The actor is NULL if its activate said no at once; VERB_ACTIVATE with an error always means
 * that what was returned is gone. */
struct rh_actor *runtime_activate(struct runtime *s, const struct runtime_entry *entry);

/* Do what was submitted: one of the functions below, by its verb. A DISCARD tells when nothing is
 * left of the activation, even if there was nothing before. */
void runtime_perform(struct runtime *rt, const struct submission *s, struct bytes all);

/* The next five: on an actor that is live and not busy, or, of unfreeze, frozen. */
void runtime_run(struct rh_actor *actor, const struct runtime_message *message);
/* Timers, answers of calls, a flush: what it does between messages. */
void runtime_turn(struct rh_actor *actor, uint64_t ticket);
/* Flush it, freeze it, and take its state. */
void runtime_export(struct rh_actor *actor);
/* Take its state, as it is; it goes on. Of a kind that may (rh_actor_ops.ahead). */
void runtime_copy(struct rh_actor *actor);
void runtime_unfreeze(struct rh_actor *actor);
/* Flush it, and end it by deactivate(IDLE). */
void runtime_retire(struct rh_actor *actor);
/* Discard the actor in any state, and free it. A message that still runs is never answered. */
void runtime_discard(struct rh_actor *actor, enum rh_why why);
/* Flush it, by its fence, then deactivate it: RH_STOP; VERB_DISCARD is told then, which may be
 * later. What is amidst a task, or has nothing to save, is discarded as `otherwise`. */
void runtime_part(struct rh_actor *actor, enum rh_why otherwise);
/* Forget the clients of that gateway: none of them is there any more. */
void runtime_gateway_gone(struct runtime *s, uint64_t gateway);
/* What an answer's caller is told: none that isn't OK is without a text. */
struct bytes runtime_told(const struct call_answer *answer);
/* A call has ended. */
void runtime_answer(struct runtime *s, const struct call_answer *answer);

/* Flush what has not been since this was called first, for the node stops. Returns how many are not
 * through: call it again after runtime_tick(). `flushed`: how many are. Nothing else is begun any
 * more. */
size_t runtime_save(struct runtime *s, size_t *flushed);
/* Discard every actor that is left. Only activations are still read, and freed. */
void runtime_end(struct runtime *s, enum rh_why why);
/* Free what has ended, activations included. */
void runtime_free(struct runtime *s);
/* Discard every actor that is left, and free the runtime: runtime_end(), then runtime_free(). */
void runtime_close(struct runtime *s, enum rh_why why);

#endif
