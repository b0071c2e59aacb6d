/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this room share.
 *
 * Two sides meet here. Actors are on the node's workers: their callbacks begin turns, and what a
 * host said of them is done there. Links are on the listener's thread: bytes come in and go out.
 * One lock is between them, and all that says "under the lock" belongs to whoever has it. It is
 * never held while the game's side is called, but for rh_post(), which calls nobody back.
 *
 *     a turn:  NONE -callback-> WAITS -there is a host, and credit-> OPEN -done, or it ends-> NONE
 */
#ifndef HOSTED_INSIDE_H
#define HOSTED_INSIDE_H

#include "base/bytes.h"
#include "base/list.h"
#include "base/table.h"
#include "hosted/hosted.h"
#include "wire/host.pb-c.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    HOSTED_VERSION = 1,
    HOSTED_LINKS_MAX = 64,
    HOSTED_KINDS_MAX = 64,
    HOSTED_FRAME_MAX = 72 * 1024 * 1024, /* from a host */
    HOSTED_HELLO_MAX = 64 * 1024,        /* of the first */
    HOSTED_HELLO_MS = 5000,
    HOSTED_PING_MS = 1000,
    HOSTED_WAIT_MS = 2000, /* for a host, to be activated */
    HOSTED_TURN_MS = 30000,
    HOSTED_WINDOW_TURNS = 4096,
    HOSTED_WINDOW_BYTES = 16 * 1024 * 1024,
    HOSTED_QUEUED_MAX = 64 * 1024 * 1024, /* of steps that wait for their actors */
};

/* Why a link ended, by the words of metrics and docs/host-protocol.md. The first is that the host
 * closed. */
#define HOSTED_REASONS(X)           \
    X(NONE, "closed")               \
    X(MALFORMED, "malformed")       \
    X(VERSION, "version")           \
    X(TOKEN, "token")               \
    X(LATE, "late")                 \
    X(KIND_UNKNOWN, "kind_unknown") \
    X(KIND_TAKEN, "kind_taken")     \
    X(KIND_DIFFERS, "kind_differs") \
    X(UNEXPECTED, "unexpected")     \
    X(NEVER_GIVEN, "never_given")   \
    X(HUNG, "hung")                 \
    X(STOPS, "stops")               \
    X(FULL, "full")
enum { HOSTED_REASON_COUNT = 13 };

struct hosted_stats {
    _Atomic uint64_t hosts; /* that are welcome now */
    _Atomic uint64_t welcome;
    _Atomic uint64_t ended[HOSTED_REASON_COUNT];
    _Atomic uint64_t turns;        /* said to hosts */
    _Atomic uint64_t steps;        /* that came */
    _Atomic uint64_t waiting;      /* turns that wait for credit or for a host */
    _Atomic uint64_t stale;        /* steps of an activation or a turn that was over */
    _Atomic uint64_t late_answers; /* of calls, for turns that were over */
    _Atomic uint64_t effects;      /* pushes to many that there was no room for */
    _Atomic uint64_t failed_gone;  /* actors that ended with their host … */
    _Atomic uint64_t failed_slow;  /* … for a turn that took too long, … */
    _Atomic uint64_t failed_said;  /* … because the host said so, … */
    _Atomic uint64_t failed_wrong; /* … or for an effect that can't be */
    _Atomic uint64_t unserved;     /* activations that found no host in time */
};

struct hosted_link;

/* A kind, as the options declare it. */
struct hosted_kind {
    struct hosted *hosted;
    char name[HOSTED_NAME_MAX + 1];
    uint16_t number; /* since it was started */
    bool durable;
    bool alarms;
    bool sessions;
    bool flush;
    uint32_t turn_ms;
    struct rh_actor_ops ops;
    struct hosted_link *link; /* that serves it; NULL = none. Under the lock, as the next */
    struct list unserved;     /* struct hosted_actor: activations that wait for a host */
    struct list open;         /* struct hosted_actor: turns that a host has, the oldest first */
};

struct hosted {
    struct hosted_options options;
    char token[HOSTED_TOKEN_MAX + 1];
    char node[HOSTED_NAME_MAX + 1]; /* its name */
    struct hosted_kind kind[HOSTED_KINDS_MAX];
    size_t kind_count;
    size_t started_count; /* of these */
    struct hosted_stats stats;
    struct hosted_listener *listener; /* owned; NULL = not started */
    pthread_mutex_t lock;             /* all below */
    uint64_t now_us;                  /* as the listener looked at the clock last */
    uint64_t last_activation;         /* none before had its number */
    uint64_t queued;                  /* bytes of steps that wait for their actors */
    struct list links;                /* struct hosted_link */
    size_t link_count;
    void (*on_output)(void *context); /* from any thread: a link has something to send */
    void *context;
};

enum link_state { LINK_GREETED, LINK_OPEN, LINK_OVER };

/* A connection of a host. */
struct hosted_link {
    struct hosted *hosted;
    struct list_link in_hosted;
    char name[HOSTED_NAME_MAX + 1];
    struct buffer in;              /* the listener's: a part of a frame */
    uint64_t begun_us;             /* likewise */
    uint64_t last_ping;            /* likewise: number of the ping that is out … */
    uint64_t ping_us;              /* … since then … */
    bool pinged;                   /* … and not answered */
    enum link_state state;         /* under the lock, as all below */
    enum _Rh__Host__Reason reason; /* of OVER */
    struct buffer out;             /* frames */
    size_t frame_at;               /* of the last */
    struct table actors;           /* struct hosted_actor, by activation */
    struct list waiting;           /* struct hosted_actor: turns that wait for credit */
    uint32_t window_turns;
    uint64_t window_bytes;
    uint32_t open_turns;
    uint64_t open_bytes;
};

enum turn_of {
    TURN_OF_NOTHING,
    TURN_OF_ACTIVATE,
    TURN_OF_MESSAGE,
    TURN_OF_TIMER,
    TURN_OF_ALARM,
    TURN_OF_SESSION,
    TURN_OF_FLUSH,
    TURN_OF_HANDOFF,
};

enum turn_stage { TURN_STAGE_NONE, TURN_STAGE_WAITS, TURN_STAGE_OPEN };

/* A step that came, until its actor does it. */
struct hosted_step {
    struct list_link link;
    Rh__Host__Step *step; /* owned: hosted_step_free() */
    size_t size;
};

/* A timer of the actor: the host's number, and the library's. */
struct hosted_timer {
    uint64_t number;
    uint64_t timer;
    bool once;
};

/* An actor's instance. */
struct hosted_actor {
    struct rh_actor *actor; /* the worker's, as all above the lock's */
    struct hosted_kind *kind;
    struct rh_token life;
    enum turn_of of;
    struct rh_token token;      /* of the callback that is deferred */
    struct rh_out *out;         /* of a handoff */
    struct hosted_timer *timer; /* owned */
    size_t timer_count;
    bool failed;  /* it is over, and waits to be deactivated */
    bool counted; /* its failure was */

    /* Under the lock. */
    struct hosted_link *link; /* that it is at; NULL = at none (any more) */
    struct table_link by_number;
    uint64_t number; /* of the activation */
    uint64_t turn;   /* the last */
    enum turn_stage stage;
    struct list_link in_turn; /* WAITS: in a link's or a kind's list; OPEN: in the kind's */
    uint64_t since_us;        /* of the stage */
    size_t turn_size;
    struct buffer said; /* WAITS: the turn, packed */
    bool begun;         /* the host knows the activation */
    bool gone;          /* its host has ended */
    bool late;          /* its turn took too long, or found no host */
    struct list steps;  /* struct hosted_step */
};

/* ---- actor.c: the callbacks of rh_actor_ops, on a worker */

extern const struct rh_actor_ops hosted_actor_ops; /* all callbacks that a kind may have */

/* Post to the actor that something of it changed under the lock, which is held. */
void hosted_actor_post(const struct hosted_actor *p);

/* ---- turn.c: turns that begin and end; under the lock */

/* Begin the actor's next turn: say it to its host, or let it wait. `says` has its activation and
 * turn. False: its host is gone. */
bool hosted_turn_begin(struct hosted_actor *p, const Rh__Host__NodeSays *says, size_t size);
/* End the turn, if there is one, and give its credit back. */
void hosted_turn_end(struct hosted_actor *p);
/* Say what waits and has credit now. */
void hosted_turns_go(struct hosted_link *l);
/* Serve a kind by this link from here on: what waits for a host is said to it. */
void hosted_turns_serve(struct hosted_link *l, struct hosted_kind *k);
/* The link has ended: its actors are told, and what it has not begun waits for another. */
void hosted_turns_part(struct hosted_link *l);
/* End what waits, or lasts, for too long. */
void hosted_turns_tick(struct hosted_kind *k);
/* The actor ends: nothing of it is left here. */
void hosted_turns_forget(struct hosted_actor *p);

/* ---- effect.c: what a step does, on the actor's worker */

/* NULL: it is done. Else what is wrong with it; static text. */
const char *hosted_effect(struct hosted_actor *p, const Rh__Host__Effect *e);
/* A call of the actor's has ended. */
void hosted_on_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                      void *argument);
/* Return the host's number of a timer that rang, which is free again if it rings once. */
uint64_t hosted_timer_rang(struct hosted_actor *p, uint64_t timer);

/* ---- link.c: a connection without its socket, on the listener's thread */

/* A new link; one too many is told so, and over. The lock is taken by these. */
struct hosted_link *hosted_link_new(struct hosted *h);
/* Bytes came. */
void hosted_link_receive(struct hosted_link *l, struct bytes in);
/* Time went by, for all links and turns. */
void hosted_tick(struct hosted *h, uint64_t now_us);
/* End it: by the host, NONE; or by us, who say goodbye. */
void hosted_link_end(struct hosted_link *l, enum _Rh__Host__Reason reason, const char *text);
/* Move what is to be sent to `out`, which is empty. True: nothing comes after it. */
bool hosted_link_take(struct hosted_link *l, struct buffer *out);
/* True if no more may be read for now: its steps wait for their actors. */
bool hosted_is_full(struct hosted *h);
void hosted_link_free(struct hosted_link *l);
void hosted_step_free(struct hosted_step *s);

/* Append a message to what is to be sent; under the lock. */
void hosted_say(struct hosted_link *l, const Rh__Host__NodeSays *says);
/* … or one that hosted_pack() packed. */
void hosted_say_packed(struct hosted_link *l, struct bytes packed);
void hosted_pack(struct buffer *out, const Rh__Host__NodeSays *says);

/* ---- listen_uv.c */

/* Bytes as protobuf-c wants them, which only reads them when it packs. */
static inline ProtobufCBinaryData hosted_data(struct rh_bytes bytes)
{
    return (ProtobufCBinaryData){bytes.size, (uint8_t *)(uintptr_t)bytes.data};
}

struct hosted_listener;
/* Take hosts, on a thread of its own. NULL: one line on stderr says why not. */
struct hosted_listener *hosted_listener_new(struct hosted *h);
/* Say goodbye to all hosts, and end it. */
void hosted_listener_free(struct hosted_listener *l);

#endif
