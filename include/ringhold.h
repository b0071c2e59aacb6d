/* SPDX-License-Identifier: Apache-2.0
 *
 * libringhold: host actors, exactly one live actor per id across a fleet.
 *
 * A game server describes a kind of actor by a table of callbacks and either
 * runs a node in its own process (rh_node_run) or is loaded by one as a shared
 * object (`ringhold node --actor ./game.so`). docs/actors.md shows both.
 *
 * An actor comes to life at its first request. Requests to one actor run one
 * at a time. When its id moves to another node, the actor finishes what it
 * runs, hands its state over and is activated there; requests wait meanwhile.
 *
 * Threads: every callback is called on the node's loop thread, and every
 * function here must be called on it, unless it says otherwise. A callback
 * must not block: all other actors of the node wait for it.
 */
#ifndef RINGHOLD_H
#define RINGHOLD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the structures below. A table or options with another number are refused. Structures grow at
 * their end only and start with their size, so that what was built for an older header goes on
 * working. */
enum { RH_ABI = 1 };

/* What functions return. Never renumbered. */
enum rh_result {
    RH_OK = 0,
    RH_INVALID = 1, /* not now, or not with these arguments */
    RH_GONE = 2,    /* the actor is no longer here, or was answered already */
    RH_TOO_BIG = 3, /* over a limit; the client was told so */
    RH_FAILED = 4,  /* an actor's own reason */
};

/* Bytes that someone else owns. */
struct rh_bytes {
    const void *data;
    size_t size;
};

/* A live actor, as the library knows it. Valid from its activate to the return of its deactivate.
 */
struct rh_actor;

/* ---- what an actor is asked ---- */

enum rh_message_flags {
    RH_NO_REPLY = 1, /* nobody waits: a reply is dropped */
};

/* One request. Everything in it is borrowed until the message callback returns. */
struct rh_message {
    struct rh_bytes payload; /* of CALL or TELL: opaque; empty for a command */
    /* A command, such as {"INCRBY", key, "3"}: name in upper case, the key it names, the rest. */
    const struct rh_bytes *argument;
    size_t argument_count; /* 0: it is a payload */
    uint32_t flags;        /* enum rh_message_flags */
};

/* ---- what it answers ---- */

enum rh_value_type { RH_BYTES, RH_TEXT, RH_INTEGER, RH_NIL, RH_ERROR };

/* A reply. To a command each type arrives as what it is (a Redis client sees a bulk, a status, an
 * integer, a nil, an error). To a payload: bytes and text as they are, an integer in decimal, nil
 * as no bytes, an error as an error. */
struct rh_value {
    enum rh_value_type type;
    int64_t integer;
    struct rh_bytes bytes; /* BYTES, TEXT, ERROR: borrowed during the call it is given to */
};

static inline struct rh_value rh_bytes_value(const void *data, size_t size)
{
    struct rh_value v = {RH_BYTES, 0, {data, size}};
    return v;
}

static inline struct rh_value rh_integer(int64_t integer)
{
    struct rh_value v = {RH_INTEGER, integer, {NULL, 0}};
    return v;
}

static inline struct rh_value rh_nil(void)
{
    struct rh_value v = {RH_NIL, 0, {NULL, 0}};
    return v;
}

/* One line of text, NUL-terminated: "OK". */
struct rh_value rh_text(const char *text);
/* Like text. Its first word is a code in capitals: "ERR no such item", "BUSY in a trade". */
struct rh_value rh_error(const char *text);

/* Answer the message that this actor runs; the first reply counts. Within its message callback, or
 * later from a timer after rh_defer(). The value is copied. RH_INVALID: there is nothing to answer;
 * RH_TOO_BIG: over 1 MiB, and the client gets an error that says so. */
int rh_reply(struct rh_actor *actor, struct rh_value value);

/* Names one deferred message for ever; it stays harmless after the actor is gone. */
struct rh_token {
    void *scene;
    uint64_t number;
};

/* Within the message callback: the answer comes later. The actor stays busy until it does: its next
 * request waits, and it can't move. So answer every one, in bounded time. */
struct rh_token rh_defer(struct rh_actor *actor);

/* Answer a deferred message. RH_GONE: it was answered, or its actor was stopped meanwhile; else as
 * rh_reply(). */
int rh_reply_later(struct rh_token token, struct rh_value value);

/* Called `ms` milliseconds (up to 20 more) after rh_after() was. */
typedef void (*rh_timer)(struct rh_actor *actor, void *instance, void *argument);

/* While a message runs, deferred ones included: call `timer` on this actor. A timer belongs to that
 * message: once it is answered, the timers that are left never fire; so none fires on an actor that
 * is moving or gone. `argument` is the caller's. RH_INVALID: no message runs. */
int rh_after(struct rh_actor *actor, uint32_t ms, rh_timer timer, void *argument);

/* ---- what an actor may ask ---- */

/* Its id: 1..255 bytes, borrowed for its life. */
struct rh_bytes rh_id(const struct rh_actor *actor);
/* Its fencing token: the generation of the vnode that it was activated under. It only grows from
 * one owner to the next. A store that keeps the highest one beside the data and refuses a write
 * with a smaller one can't be overwritten by a deposed owner: examples/fenced_store.c. */
uint64_t rh_fence(const struct rh_actor *actor);
/* What the kind's start callback made; NULL without one. */
void *rh_shared(const struct rh_actor *actor);

/* ---- a kind of actor ---- */

/* Where the state to hand over is written. */
struct rh_out;
/* Append a copy. */
void rh_out_put(struct rh_out *out, const void *data, size_t size);

enum rh_why {
    RH_MOVED,  /* another node took it over, state and all */
    RH_STOP,   /* the node stops */
    RH_FENCED, /* the node lost the right to run it: keep nothing, write nothing */
};

/* What a start callback may know. Borrowed until the kind stops. */
struct rh_kind_info {
    size_t size; /* of this struct */
    uint16_t kind;
    const char *node;     /* the node's name */
    const char *argument; /* what stood after "=" in --actor NAME=ARGUMENT; "" if nothing */
};

/* Callbacks marked "may be NULL" are optional. `instance` is what activate made. */
struct rh_actor_ops {
    uint32_t abi;     /* RH_ABI */
    uint32_t size;    /* sizeof(struct rh_actor_ops) */
    const char *name; /* for logs: "counter" */

    /* Once, before any actor: open what all actors of the kind share. Anything but RH_OK ends the
     * node with an error; say why on stderr. May be NULL. */
    int (*start)(const struct rh_kind_info *info, void **shared);
    /* Once, after the last actor. May be NULL. */
    void (*stop)(void *shared);

    /* Make the instance of an actor. `state`: what handoff wrote at the old owner, borrowed until
     * return; NULL = a fresh start (load it from your store, if any). Anything but RH_OK: it could
     * not be made, and its requests are refused. */
    int (*activate)(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                    void **instance);
    /* One request. Answer by rh_reply(), or rh_defer(). Who does neither answers nil. */
    void (*message)(struct rh_actor *actor, void *instance, const struct rh_message *message);
    /* The actor is frozen and may move: write its state. Nothing else is called until resume or
     * deactivate. May be NULL: it moves without state. */
    void (*handoff)(struct rh_actor *actor, void *instance, struct rh_out *out);
    /* The move was called off: it stays and goes on. May be NULL. */
    void (*resume)(struct rh_actor *actor, void *instance);
    /* Free the instance. `actor` is dead after this. */
    void (*deactivate)(struct rh_actor *actor, void *instance, enum rh_why why);
};

/* A shared object for `ringhold node --actor ./game.so` defines this one symbol. */
extern const struct rh_actor_ops ringhold_actor;

/* ---- a node in this process ---- */

struct rh_kind {
    uint16_t number;                /* 0 = the default kind */
    const struct rh_actor_ops *ops; /* borrowed until rh_node_run() returns */
    const char *argument;           /* may be NULL */
};

/* A node that reaches no coordinator can't renew its lease. When that ends, others take its ids. */
enum rh_on_lease_loss {
    RH_LOSS_PAUSE =
        0, /* actors stay in memory; nothing runs and nothing leaves until it is renewed */
    RH_LOSS_SERVE = 1, /* go on: then an id may live twice while the network is split */
};

/* A message that runs past the end of the lease, blocked or deferred. */
enum rh_on_lease_overrun {
    RH_OVERRUN_ABORT = 0, /* the process ends by abort(), with one line on stderr */
    RH_OVERRUN_GATE = 1,  /* it goes on, nothing of it leaves: its store has to check rh_fence() */
};

/* All zero but what is marked is a good start. Texts are borrowed until rh_node_run() returns. */
struct rh_node_options {
    uint32_t abi;          /* RH_ABI */
    uint32_t size;         /* sizeof(struct rh_node_options) */
    const char *cluster;   /* NULL = "ringhold" */
    const char *name;      /* required: this node's name, unique, stays over restarts */
    const char *listen;    /* "host:port" for gateways and nodes; NULL = "127.0.0.1:0", any port */
    const char *advertise; /* how others reach that, if it differs; NULL = as bound */
    const char *join;      /* required: the coordinators, "host:port,host:port,…" */
    const char *data;      /* required: folder of this node alone; made if missing */
    const char *zone;      /* NULL = none */
    uint32_t weight;       /* share of the fleet's ids; 0 = 1 */

    const struct rh_kind *kinds; /* what is hosted here … */
    size_t kind_count;
    const char *actor; /* … and with none: the default kind by its name ("kv") or file ("./x.so") */

    uint32_t keep_signals; /* 1: leave SIGTERM and SIGINT alone; else they drain the node */
    /* On the loop thread, when the node is registered and takes requests. May be NULL. */
    void (*ready)(void *context, uint64_t incarnation, const char *address);
    void *context;

    uint32_t on_lease_loss;    /* enum rh_on_lease_loss */
    uint32_t on_lease_overrun; /* enum rh_on_lease_overrun */
};

/* Run a node until it has left the fleet; its loop is this thread's until then. One at a time in a
 * process. Returns the exit code: 0 = drained and left; 1 = an error, which was printed to stderr
 * as one line; 75 = fenced (its lease ended and others took its ids, or it was removed): start the
 * process again, and it joins as a new incarnation; 128 + n = a second signal n cut the drain
 * short. */
int rh_node_run(const struct rh_node_options *options);

/* Drain the running node, then let rh_node_run() return; a second call ends it at once. From any
 * thread, and from a signal handler. Nothing happens when none runs. */
void rh_node_stop(void);

#ifdef __cplusplus
}
#endif

#endif
