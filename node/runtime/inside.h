/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the runtime share (runtime.c, *.c).
 */
#ifndef NODE_RUNTIME_INSIDE_H
#define NODE_RUNTIME_INSIDE_H

#include "base/list.h"
#include "base/pool.h"
#include "base/ration.h"
#include "base/span.h"
#include "base/table.h"
#include "node/runtime/alarm.h"
#include "node/runtime/runtime.h"
#include "node/runtime/unacked_pushes.h"
#include "wire/args.h"

#include <pthread.h>

/* The callback that runs, or that was deferred. */
enum callback {
    CALLBACK_NONE,
    CALLBACK_ACTIVATE,
    CALLBACK_MESSAGE,
    CALLBACK_FLUSH,
    CALLBACK_HANDOFF,
    CALLBACK_PART, /* of an answer, or posted: it does not finish later */
    CALLBACK_TIMER,
    CALLBACK_RESUME,
    CALLBACK_SESSION,
    CALLBACK_ALARM,
    CALLBACK_END, /* deactivate */
};

/* A deferred callback, or a life that rh_life() named, by the number of its token. Under the lock
 * of its latch. */
struct deferral {
    struct table_link by_number;
    uint64_t number;
    struct rh_actor *actor; /* NULL = gone: kept for `out` alone */
    struct rh_out *out;     /* owned while the actor is gone: whoever finishes it may write to it */
    bool of_message;
    bool of_life;
    bool finished; /* it was answered; the runtime has not seen it yet … */
    bool failed;   /* … and rh_done() said so */
};

/* A result on its way to the runtime. */
struct group_arrival {
    uint64_t number;
    int result;            /* of rh_done() */
    struct rh_value value; /* of rh_reply_later(); its bytes are at `at` */
    size_t at;
    rh_timer post; /* of rh_post(); else NULL */
    void *argument;
};

struct arrivals {
    struct group_arrival *item; /* owned */
    size_t count;
    size_t cap;
    struct buffer bytes;
};

/* Part of a runtime that other threads may touch. It is never freed but used again: a token may
 * outlive its runtime, and no two tokens of a process are the same. */
struct latch {
    pthread_mutex_t lock; /* all below */
    struct table deferrals;
    struct arrivals arrived;
    struct list stored; /* struct store_task, which came back */
    bool open;          /* false: nobody is there */
    void (*on_later)(void *context);
    void *context;
    struct latch *next_free;
};

/* Something for a turn. */
struct due {
    struct list_link link;
    bool is_timer;
    bool is_post;
};

/* What rh_post() posted, while it waits for a turn. */
struct post {
    struct due due;
    rh_timer call;
    void *argument;
};

enum timer_type {
    TIMER_AFTER, /* rh_after(): of the task that runs */
    TIMER_OWN,   /* rh_timer_start() */
    TIMER_FLUSH, /* the periodic flush */
    TIMER_AWAY,  /* of a client that may return: until then */
    TIMER_SENDS, /* of the outbox of a durable actor: the next try */
    TIMER_ALARM, /* of the alarms of a durable actor: the first */
};

struct timer {
    struct alarm alarm;
    struct rh_actor *actor;
    enum timer_type type;      /* of FLUSH and AWAY there is no more than this */
    struct due due;            /* OWN, ALARM: while it waits for a turn */
    struct list_link in_actor; /* AFTER: in `after`; OWN: in `timers` */
    uint64_t number;           /* OWN */
    uint64_t every_us;         /* OWN: 0 = once */
    rh_timer call;             /* AFTER; OWN: NULL = the kind's `timer` */
    void *argument;
    rh_destroy destroy; /* OWN: of the argument; NULL = it is not the timer's, or its call runs */
};

/* A call without an answer, or with one that waits for a turn. */
struct open_call {
    struct due due; /* while its answer waits */
    struct table_link by_number;
    struct list_link in_actor;
    struct rh_actor *actor;
    uint64_t number;
    uint32_t handle;   /* of its memory */
    rh_on_answer then; /* NULL: it is the runtime's, for `send` */
    void *argument;
    rh_destroy destroy; /* of the argument; NULL = it is the caller's */
    uint64_t send;      /* of the actor's outbox; 0 = it is a call */
    int status;
    struct buffer payload; /* of the answer that waits */
};

/* A client of an actor. */
struct client_bond {
    struct list_link in_runtime; /* runtime.bonds */
    struct rh_actor *actor;
    struct client_bond *next;             /* of the same actor; NULL = it is the last */
    struct bond bond;                     /* without its unacked pushes */
    struct unacked_pushes unacked_pushes; /* of one that is kept */
    uint64_t next_number;                 /* of the push that its connection got first */
    struct timer until;                   /* AWAY: while it is */
    uint8_t asked;                        /* enum rh_session_type: of the callback that runs */
    uint8_t due;                          /* the same: told in its next turn; 0 = nothing */
    uint8_t due_why;                      /* enum rh_lost_why: of LOST */
    uint8_t result; /* enum bound_result: what the note that runs comes to if it is taken */
    bool away;      /* kept: it has no connection */
};

struct rh_out {
    struct buffer state;
    size_t size_max;
    bool over;
};

struct runtime {
    struct runtime_config config;
    struct numbering alone;                /* config.numbering, where nobody gave one */
    const struct runtime_message *message; /* of the actor whose code runs, unless that has extras,
                                              which know it then; NULL = none */
    struct rh_message plain; /* what an actor's code is told of a client's request. Between them all
                                is zero but its flags */
    struct rh_bytes argument[ARGS_MAX]; /* of the command that runs */
    struct at_once *nothing_at_once;    /* NULL: config.at_once, where nobody gave one */
    uint64_t now_us;
    uint64_t wall_offset_us;   /* the wall clock is so much ahead of now_us … */
    uint64_t alarms_offset_us; /* … and was when all timers of `alarmed` were set */
    bool has_wall;             /* it is known */
    struct list alarmed;       /* struct durable_alarms */
    uint64_t last_number;      /* of timers */
    struct latch *latch;
    struct arrivals taken; /* being finished */
    struct alarms alarms;
    struct table calls;
    struct pool call_memory;     /* of the same */
    struct buffer body;          /* of the answer being made */
    struct list bonds;           /* struct client_bond */
    pthread_mutex_t activations; /* the next */
    struct pool actors;
    struct pool flushes; /* struct timer */
    struct role *role;   /* owned */
    size_t role_count;
    struct extras *spare; /* owned; lent to nobody, clean */
    size_t spare_count;
    struct rh_out *spare_out; /* owned; of a handoff that is over; NULL = none */
    uint32_t save_at;         /* handle: runtime_save() has come to here */
    struct ration complaints;
    size_t actor_count;
    size_t saved_count;
    size_t flushed_count; /* of these: by a flush, others have none */
    struct spans spans;   /* of commits, by their actors */
};

/* Values that all actors of one kind share. */
struct role {
    const struct rh_actor_ops *ops;
    void *shared;
};

/* State that an actor needs only while it runs something, waits for something, or has timers.
 * extra_of() lends it, extras_calm() gives it back. Rarely used fields belong here. */
enum { YIELDED_MAX = 4 };
struct extras {
    /* Of the task that runs. */
    uint64_t ticket;
    struct deferral *deferral;
    struct deferral *life; /* of rh_life(); NULL = it was not asked for */
    struct rh_out *out;    /* owned; of the handoff */
    struct list after;     /* struct timer */
    void *kept;            /* by the caller, while it is deferred */
    uint8_t flags;         /* of the message */
    uint8_t chain_count;
    uint64_t chain[RECORD_CHAIN_MAX];
    struct trace_context trace; /* with REQUEST_TRACED */

    struct list due;    /* struct due: for its next turn */
    struct list timers; /* struct timer: its own */
    size_t timer_count;
    struct list calls; /* struct open_call */
    size_t call_count;
    struct client_bond *client; /* owned; the first; NULL = nobody is bound */
    struct client_bond *told;   /* of whom a session callback is told, runs or deferred; or NULL */
    uint64_t yielded[YIELDED_MAX]; /* whose places were given away last; 0 = nobody's */
    uint32_t yielded_count;
    uint64_t session;        /* of its calls; 0 = it has made none */
    uint64_t start;          /* of rh_incarnation(); 0 = it was not asked for */
    struct durable *durable; /* owned; of an actor of a durable kind; or NULL */
    struct extras *spare;
};
/* The empty extras of actors that have none. Never written. */
extern struct extras runtime_nothing;

/* A line of the cache, with an id of 9 bytes: there may be millions. */
struct rh_actor {
    void *owner; /* the caller's name of it; of one made by activation_new(): the caller's to read
                    and write */
    struct runtime *runtime;
    void *instance;
    uint64_t fence;
    struct extras *extra; /* runtime_nothing = just idle; NULL = not on the runtime (any more) */
    uint32_t handle;
    uint32_t flush; /* struct timer of the periodic flush; 0 = not set */
    uint8_t task;   /* enum verb */
    uint8_t role;   /* index */
    uint16_t kind;
    uint8_t id_size;
    uint8_t callback : 4; /* enum callback; NONE between the callbacks of a task */
    bool deferred : 1;    /* the callback has returned and finishes later */
    bool answered : 1;
    bool told_second : 1; /* a log line said that it answers twice */
    bool frozen : 1;
    bool poked : 1;     /* a turn was asked for and has not begun */
    bool broken : 1;    /* rh_fail() */
    bool passivate : 1; /* it has asked for that */
    bool ending : 1;    /* … and the message that it may still see has been: it gets no other */
    bool flush_due : 1;
    bool saved : 1;    /* for the stop */
    bool recorded : 1; /* its memory is the caller's to free */
    uint8_t id[];      /* flexible */
};

/* The pointer that stands for the actor in an event. */
static inline void *name_of(struct rh_actor *a)
{
    return a->recorded ? a : a->owner;
}

static inline const struct role *role_of(const struct rh_actor *a)
{
    return &a->runtime->role[a->role];
}

/* What is done at once, and may still be answered there; or NULL. */
static inline struct at_once *at_once_of(const struct runtime *s)
{
    return *s->config.at_once;
}

/* ---- durable.c: actors whose values are in a store (durable.h) */

struct store_task;
/* What the actor says leaves when it may; of a durable one. */
void durable_tell(struct rh_actor *a, const struct completion *c);
/* A callback of the actor begins, in which it may change its values … */
void durable_enter(struct rh_actor *a);
/* … or by a request, which may be answered at once: if it is asked again, and known … */
void durable_enter_request(struct rh_actor *a, const struct runtime_message *m);
/* … and returns; not `good`: it has failed, and what it changed is undone. */
void durable_leave(struct rh_actor *a, bool good);
/* Load the actor, which is then started as the entry says. */
void durable_load(struct rh_actor *a, const struct runtime_entry *entry);
/* True: it is not started yet. */
bool durable_is_loading(const struct rh_actor *a);
/* The actor ends: what it says from now on waits for nothing. */
void durable_end(struct rh_actor *a);
void durable_free(struct rh_actor *a);
/* Take what came back from the store, and free it. */
void durable_take(struct store_task *t);

/* ---- sends.c: the outbox and the inbox of a durable actor */

/* Try what is due, and save what was taken. */
void durable_sends_go(struct rh_actor *a);
/* A try ended so. */
void durable_send_ended(struct rh_actor *a, uint64_t number, const struct call_answer *answer);
/* True if something is in the outbox. */
bool durable_sends_wait(const struct rh_actor *a);
struct caller;
/* True: that send was taken before. */
bool durable_has_taken(const struct rh_actor *a, const struct caller *from, uint64_t number);
/* The callback that runs takes it … */
void durable_take_send(struct rh_actor *a, const struct caller *from, uint64_t number);
/* … or does not: what it changes is undone. */
void durable_refuse_send(struct rh_actor *a);
/* ---- operate.c */

/* Run an operator's question about the actor's values (wire/values_ask.h), and answer it. */
void values_run(struct rh_actor *a, struct bytes question);
/* ---- durable_alarms.c: their alarms */

/* The timer of its alarms rang: it waits for a turn, if the time has come … */
void durable_alarms_rang(struct rh_actor *a);
/* … which has begun. */
void durable_alarms_want(struct rh_actor *a);
bool durable_alarms_are_due(const struct rh_actor *a);
/* Fire the first; the rest of the turn goes on as its task. False: there is none to fire. */
bool durable_alarms_turn(struct rh_actor *a);
/* The alarm callback ended with `result`. */
void durable_alarms_fired(struct rh_actor *a, int result);

/* Say something of the actor's. */
static inline void actor_say(struct rh_actor *a, const struct completion *c)
{
    if (a->extra->durable != NULL) {
        durable_tell(a, c);
    } else {
        a->runtime->config.on_completion(a->runtime->config.context, c);
    }
}
static inline void actor_enter_code(struct rh_actor *a)
{
    if (a->extra->durable != NULL) {
        durable_enter(a);
    }
}
static inline void actor_leave_code(struct rh_actor *a, bool good)
{
    if (a->extra->durable != NULL) {
        durable_leave(a, good);
    }
}

/* The flags and the ticket of the message that the actor runs. */
static inline uint8_t flags_of(const struct rh_actor *a)
{
    return a->extra == &runtime_nothing ? a->runtime->message->flags : a->extra->flags;
}
static inline uint64_t ticket_of(const struct rh_actor *a)
{
    return a->extra == &runtime_nothing ? a->runtime->message->ticket : a->extra->ticket;
}

/* ---- traced.c */

/* The context of the message that the actor runs, or NULL. */
const struct trace_context *traced_context(const struct rh_actor *a);
/* A commit of a traced message begins; and has ended, if one began. */
void traced_commit(struct rh_actor *a);
void traced_committed(struct rh_actor *a, const char *outcome);

/* ---- runtime.c */

void runtime_tell(struct rh_actor *a, enum verb verb);
/* Like runtime_tell(), with what went wrong. */
void runtime_tell_error(struct rh_actor *a, enum verb verb, enum err error);
/* Like runtime_tell(), for an actor that has gone, by its name. */
void runtime_tell_gone(const struct runtime *s, void *name, enum verb verb);
/* Tell the shell that the actor's code is entered; NULL: left. */
void runtime_enter(const struct runtime *s, struct rh_actor *a);
/* The callback that runs has come to `result`: go on with its task. */
void actor_go_on(struct rh_actor *a, int result);
/* Call its activate, with a state of that version; NULL = afresh. False: it said no, and is gone.
 */
bool actor_start(struct rh_actor *a, const struct bytes *state, uint32_t version);
/* Nothing of the actor is left on the runtime. */
void actor_free(struct rh_actor *a);
/* A callback has returned: it is through with `result`, or deferred. */
void actor_returned(struct rh_actor *a, int result);
void actor_flush(struct rh_actor *a, enum rh_why why);
/* End the task: nothing of what ran is left. */
void actor_end_task(struct rh_actor *a);
/* Ask for a turn, for something waits. */
void actor_want_turn(struct rh_actor *a);
/* True if the actor runs a callback in which it may ask for things. */
bool actor_may_ask(const struct rh_actor *a);
/* Log a line that names the actor, so that people find the code. Some are left out if there are
 * many. */
void actor_complain(const struct rh_actor *a, const char *event, const char *what);

/* ---- activation.c */

void activations_init(struct runtime *s);
void activations_fini(struct runtime *s);
/* The next that is on the runtime, from *at on: 0 = the first. NULL = no more. */
struct rh_actor *activation_next(struct runtime *s, uint32_t *at);

/* ---- extras.c */

/* The actor's extras; they are lent to it if it has none, and know the message that it runs. */
struct extras *extra_of(struct rh_actor *a);
/* From now on they know that message: its ticket, flags and chain. */
void extras_note(struct extras *x, const struct runtime_message *m);
/* Give them back if there is nothing in them. */
void extras_calm(struct rh_actor *a);
/* Give the extras back, which are empty. */
void extras_give_back(struct rh_actor *a);
/* None is lent. */
void extras_fini(struct runtime *s);

/* ---- message.c */

/* The message that runs was answered: its task is over. */
void actor_ran(struct rh_actor *a, enum answer_code code, struct bytes body);
/* The request that is done at once has come to that; the body is borrowed until the next. */
static inline void run_end_at_once(struct runtime *s, enum err error, enum answer_code code,
                                   struct bytes body)
{
    struct at_once *now = *s->config.at_once;

    *s->config.at_once = NULL;
    now->error = error;
    now->code = code;
    now->answer = body;
    now->done = true;
}

/* The message that runs at once was answered, and its actor has nothing else to see to. */
__attribute__((always_inline)) static inline void
actor_ran_at_once(struct rh_actor *a, enum answer_code code, struct bytes body)
{
    a->answered = true;
    if (__builtin_expect(a->passivate, false)) { // it asked for that as it was activated
        a->ending = true;
    }
    run_end_at_once(a->runtime, ERR_OK, code, body);
}
/* actor_ran(), inline: for what runs at once. */
__attribute__((always_inline)) static inline void
actor_ran_now(struct rh_actor *a, enum answer_code code, struct bytes body)
{
    if (__builtin_expect(at_once_of(a->runtime) == NULL || a->extra != &runtime_nothing, false)) {
        actor_ran(a, code, body);
    } else {
        actor_ran_at_once(a, code, body);
    }
}

/* ---- move.c */

/* Drop what the handoff wrote: nobody wants it any more. */
void out_drop(struct rh_actor *a);
/* Free the buffers of states when no handoff runs. */
void outs_fini(struct runtime *s);
/* Have the kind turn a state of that version into one that its activate reads: `state`, which is
 * good until actor_upgrade_end() gets *kept, NULL before. False: it can't, and a log line says so.
 */
bool actor_upgrade(struct rh_actor *a, uint32_t version, struct rh_bytes *state,
                   struct rh_out **kept);
void actor_upgrade_end(struct runtime *s, struct rh_out *kept);
/* The actor's flush for the move ended with `result` … */
void actor_flushed_to_move(struct rh_actor *a, int result);
/* … and so is its handoff. */
void actor_exported(struct rh_actor *a, int result);

/* Hand a send to the actor's code, as a message. */
void message_take_send(struct rh_actor *a, const struct caller *from, uint64_t number,
                       struct bytes payload);

/* ---- later.c */

struct latch *latch_open(const struct runtime_config *config);
/* Close the latch when nobody is there any more; what is still deferred is forgotten. */
void latch_close(struct latch *l);
/* Forget that it is deferred. True: it was finished already, and has failed. */
bool deferral_drop(struct rh_actor *a);
/* True if somebody has finished the deferral, and may have freed what it worked on. */
bool deferral_is_finished(const struct rh_actor *a);
/* Finish what arrived since the last time. */
void later_take(struct runtime *s);
/* The actor's life ends: what was posted to it is forgotten. */
void life_drop(struct rh_actor *a);
/* Call what was posted, and free it. */
void post_run(struct rh_actor *a, struct due *due);

/* ---- reply.c */

/* Answer the message that runs, too big or not. */
int reply_put(struct rh_actor *a, const struct rh_value *v);
/* Write an integer or an error to the runtime's buffer, as the message wants it. */
enum answer_code reply_write(struct rh_actor *a, const struct rh_value *v);
bool reply_makes_sense(const struct rh_value *v);
bool reply_fits(const struct rh_value *v);
struct rh_value reply_too_big(void);

/* ---- timer.c */

void timers_run(struct runtime *s);
/* Drop the timers of rh_after(). */
void timers_drop_after(struct rh_actor *a);
void timers_drop(struct rh_actor *a);
/* Run the timer's callback: it is its turn. */
void timer_fire(struct timer *t);
/* Set the next periodic flush. */
void flush_set(struct rh_actor *a);

/* ---- call.c */

/* Hand out the answers that wait, in the midst of what is deferred. */
void calls_pump(struct rh_actor *a);
/* Hand the call's answer to the actor: it is its turn. */
void call_end(struct open_call *c);
void calls_drop(struct rh_actor *a);
/* Note a call of the runtime's own, for a send of the outbox; returns its number. */
uint64_t call_open_send(struct rh_actor *a, uint64_t send);
/* Complete the call, and tell it at once. */
void call_tell(struct rh_actor *a, struct call *call);
/* One push for many actors. */
struct broadcast {
    uint16_t kind;
    struct rh_bytes ids; /* each u8 size, bytes */
    size_t count;
};
/* RH_OK, or RH_OVERLOADED: too much waits already. */
int broadcast_tell(struct rh_actor *a, const struct broadcast *to, struct rh_bytes payload);

/* ---- bonds.c: who is bound */

struct client_bond *bonds_add(struct rh_actor *a);
/* Remove a bond by which nobody is bound any more. */
void bonds_drop(struct client_bond *c);
void bonds_drop_all(struct rh_actor *a);
/* Drop a bond whose place the note takes. */
void bonds_yield(struct client_bond *c, const struct note *note);
/* True for the RENEW or RESUME of one whose place was given away: it was said before its gateway
 * heard of that. */
bool bonds_yielded(const struct rh_actor *a, const struct note *note);
/* Find the bond of that connection; NULL = none. */
struct client_bond *bonds_of(const struct rh_actor *a, const struct note *note);
/* Find a bond about which the actor's code is to be told something in its next turn; NULL =
 * none. */
struct client_bond *bonds_due(const struct rh_actor *a);
/* Find the bond that a note to bind collides with: its own, or the one whose place it would take.
 * NULL = none. */
struct client_bond *bonds_against(const struct rh_actor *a, const struct note *note);
/* The bond's connection is lost: the actor is told LOST in its next turn. */
void bonds_lose(struct client_bond *c, enum rh_lost_why why);
/* Take the connection of `from` away from all other bonds of the actor that have it; those that are
 * not away are told LOST. */
void bonds_part(const struct client_bond *from);
/* Take over the bonds that came with the actor. `afresh`: its code knows nothing of them. */
void bonds_arrive(struct rh_actor *a, struct bytes bonds, bool afresh);
/* Return the bonds as they travel, valid until the runtime does something else; empty = there are
 * none. */
struct bytes bonds_pack(const struct rh_actor *a);

/* ---- session.c */

/* Run a request with REQUEST_SESSION. */
void session_run(struct rh_actor *a, const struct runtime_message *m);
/* The actor's session callback ended with `result` … */
void session_ran(struct rh_actor *a, int result);
/* … or has in a turn. */
void session_turned(struct rh_actor *a, int result);
/* True if the actor's code is to be told something about a session in its next turn. */
bool session_is_due(const struct rh_actor *a);
void session_turn(struct rh_actor *a);
/* The actor's activate ended. */
void session_start(struct rh_actor *a);
/* A client is bound: it is not ended for want of use. */
bool session_keeps(const struct rh_actor *a);
/* The actor ends: its clients have to go, or to bind themselves anew. */
void session_stop(struct rh_actor *a, enum rh_why why);
/* Tell the node that the bond has a connection, which the node has to watch. */
void session_tell_bound(const struct client_bond *c);
/* Return the stamp of a bond that is made now. */
struct bond_stamp session_stamp(const struct rh_actor *a);
/* Tell its code. */
void session_tell(struct client_bond *c, enum rh_session_type type, uint32_t why);
/* The note that runs has come to that. `c`: of NEW and KEPT. */
void session_answer(struct rh_actor *a, const struct client_bond *c, enum bound_result result);

/* ---- push.c */

void push_tell(struct client_bond *c, enum push_type type, uint32_t code, struct bytes payload);
/* Push to all bound clients that take pushes now. False: there is none. */
bool push_to_all(struct rh_actor *a, struct bytes payload);
/* Tell it who to go on as, if it was told before. It takes no number: its round ends here. */
void push_rebind(const struct client_bond *c);
void push_kick(struct client_bond *c, uint32_t code, const char *text);
/* Kick all clients that are bound, and forget those that are away. False: there is none. */
bool push_kick_all(struct rh_actor *a, uint32_t code, struct bytes text);
/* Send the pushes again, from that number on, which the client may not have got: in its present
 * round. */
void push_unacked(const struct client_bond *c, uint64_t from);

/* ---- keep.c: bonds that are kept without their connection */

/* True if the session is to be kept; the kind may not want that. */
bool keep_wants(const struct rh_actor *a, const struct note *note);
/* The bond is kept from now on, as the note says. */
void keep_begin(struct client_bond *c, const struct note *note);
/* The bond's connection is lost. False: the bond is not kept. */
bool keep_leaves(struct client_bond *c);
/* The bond has its connection again, or nobody is bound any more: stop the clock. */
void keep_unset(struct client_bond *c);
/* The time for which the bond was kept is over. */
void keep_over(struct client_bond *c);
/* RETURN to what was KEPT. */
void keep_return(struct client_bond *c, const struct note *note);
/* RENEW of what is KEPT. */
void keep_renew(struct client_bond *c, const struct note *note);
void keep_ack(const struct rh_actor *a, const struct note *note);
/* Take over a kept bond that came with its actor. */
void keep_arrive(struct client_bond *c, const struct bond *b);
/* Write a kept bond as it travels. */
void keep_pack(const struct client_bond *c, struct bond *out);
uint32_t keep_ms(const struct rh_actor *a);

#endif
