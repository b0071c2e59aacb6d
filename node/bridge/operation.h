/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node's host has its actors do, and what comes of it: one list of verbs, one struct on the
 * way there, one on the way back. The host (node/host/host.h) emits a submission in HOST_SUBMIT and
 * takes a completion in HOST_COMPLETED; the runtime (node/runtime/runtime.h) takes the one in
 * runtime_perform() and tells the other; whatever carries them in between, a worker's queue or a
 * simulated one, carries these very structs.
 *
 *     host --submission--> bridge --> queue --> runtime --> the game's callbacks
 *     host <--completion-- bridge <-- queue <-- runtime <------'
 *
 * Pure.
 */
#ifndef NODE_BRIDGE_OPERATION_H
#define NODE_BRIDGE_OPERATION_H

#include "base/bytes.h"
#include "base/err.h"
#include "wire/record.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct call;
struct push_record;
struct rh_actor;
struct rh_actor_ops;

enum verb {
    VERB_NONE,

    /* The host asks an actor for these six, one at a time. Each is answered by one completion of
     * the same verb, however late, unless the actor is discarded meanwhile. */
    VERB_ACTIVATE, /* bytes: the bond of its clients (the head), then its state if has_state; fence.
                      Answer: error, it could not and is gone */
    VERB_RUN,  /* a request; flags; bytes: the chain of its callers' positions (the head), then its
                  body, which ends with the context of the handler's span if it is TRACED. Answer:
                  code, bytes */
    VERB_TURN, /* what it does between requests: timers, answers of calls, flushes */
    VERB_EXPORT, /* it is to freeze. Answer: its state: has_state, bytes, the bond (the head),
                    number: the session of its calls or 0; or none: it goes cold. Error ERR_BUSY:
                    not now, it goes on and is asked again; other errors: it cannot move */
    VERB_COPY, /* the same, but it goes on: nothing of what it does may be lost if it does not move.
                  Answer: as EXPORT's; any error: there is no copy */
    VERB_RETIRE, /* why: enum retire_why; it is to save what it has, and to end. Answer: error, it
                    stays; ERR_BUSY: it is in use after all */

    VERB_UNFREEZE, /* it stays after all; not after ERR_BUSY. No answer */
    VERB_DISCARD,  /* why: enum discard_why. The host names the actor no more; the answer says that
                      nothing is left of its activation */

    /* Submitted beside the host, for no actor. */
    VERB_ANSWER,  /* ticket: the call that ended, status: enum rh_result; bytes: payload */
    VERB_GATEWAY, /* ticket: a gateway that is gone, and all clients at it */

    /* Verbs that an actor says unasked. */
    VERB_POKE,      /* it wants a turn */
    VERB_PASSIVATE, /* it wants to retire when it is through with what it has begun */
    VERB_FAIL,      /* it is broken; comes ahead of the answer of what it runs. error: ERR_CONFLICT
                       if another owner has its id */
    VERB_CALL,      /* call: it asks another actor */
    VERB_PUSH,      /* push: for a client that is bound to it; carried packed: number: its gateway;
                       bytes: a push record */
    VERB_BIND,      /* number: a gateway, a client of which is bound to it now */
    VERB_END_CALLS, /* number: session of its calls: nobody waits for their answers any more */
    VERB_DEFER,     /* kept: the callback that runs finishes later … */
    VERB_FINISH,    /* kept: … and now it has */

    /* Said of an actor by the worker. */
    VERB_SPENT, /* number: it ran for so long, in microseconds */

    /* The runtime's own. */
    VERB_SAVE, /* the node stops: flush */
};

enum discard_why {
    DISCARD_MOVED,
    DISCARD_STOP,
    DISCARD_FENCED,
    DISCARD_BROKEN,
    DISCARD_ERA, /* as FENCED, but nobody is known to have it: what it has is flushed first */
};

enum retire_why {
    RETIRE_IDLE,  /* unused for its kind's idle_ms */
    RETIRE_ROOM,  /* over actors_max */
    RETIRE_ASKED, /* VERB_PASSIVATE */
};

/* True if the host waits for the verb's completion. */
static inline bool verb_is_task(enum verb verb)
{
    return verb >= VERB_ACTIVATE && verb <= VERB_RETIRE;
}

/* One operation for the runtime. Its bytes go beside it: a head of head_size, then the rest. */
struct submission {
    uint8_t verb;           /* enum verb, up to GATEWAY */
    uint8_t flags;          /* RUN: enum request_flags */
    uint8_t why;            /* DISCARD, RETIRE */
    bool has_state;         /* ACTIVATE */
    bool brief;             /* the bridge's: it takes microseconds */
    uint8_t asked;          /* RUN, which has a name: enum asked */
    uint32_t head_size;     /* ACTIVATE, RUN */
    int status;             /* ANSWER */
    uint32_t state_version; /* ACTIVATE: of the state */
    uint64_t ticket; /* of the task, told back with it; ANSWER, GATEWAY: what the verb says */
    uint64_t fence;  /* ACTIVATE */
    struct rh_actor *activation; /* the bridge's: who is to do it; of ANSWER and GATEWAY: NULL */
    union {
        struct {                            /* ACTIVATE, the bridge's */
            const struct rh_actor_ops *ops; /* of its kind … */
            void *shared;                   /* … with what all of that kind share */
        };
        struct request_name name; /* RUN */
    };
};

/* All it points to is borrowed. */
struct completion {
    uint8_t verb;   /* enum verb */
    bool returned;  /* the submission was not begun in time: `flags`, `head_size`, `ticket` and
                       `bytes` are as they were submitted */
    bool has_state; /* EXPORT, COPY */
    uint8_t flags;
    uint32_t head_size;
    enum err error;
    enum answer_code code; /* RUN */
    uint64_t ticket;       /* RUN, TURN, and RETURNED */
    uint64_t number;
    void *actor; /* its activation; in a runtime without the bridge the name it was given there */
    struct bytes head;
    struct bytes bytes;
    union {
        const struct call *call;
        const struct push_record *push;
        void **kept; /* room for a pointer of whoever listens, the same for both */
    };
};

/* One request. Borrowed. */
struct runtime_message {
    uint64_t ticket;
    struct bytes body; /* of REQUEST_CALL: it starts with the caller */
    uint8_t flags;     /* enum request_flags */
    uint8_t chain_count;
    uint8_t asked; /* enum asked, of that name */
    struct request_name name;
    const uint64_t *chain;             /* of positions: whose calls led here */
    const struct trace_context *trace; /* with REQUEST_TRACED; it is no part of the body here */
};

/* A RUN that is done where its request is taken (host_serve()): submission and completion in one.
 */
struct at_once {
    void *instance; /* of the actor that is to do it; below its name */
    struct bytes id;
    uint16_t kind;
    struct runtime_message message;
    bool done; /* it is complete, and the answer is below */
    enum err error;
    enum answer_code code;
    uint8_t *room;    /* where the answer may be written, … */
    size_t room_size; /* … if it is no longer than that, RECORD_BODY_MAX at most; 0 = nowhere */
    struct bytes answer; /* there, or borrowed until the next run */
};

static inline struct bytes submission_head(const struct submission *s, struct bytes all)
{
    return bytes_of(all.data, s->head_size);
}

static inline struct bytes submission_rest(const struct submission *s, struct bytes all)
{
    return s->head_size == 0 ? all : bytes_of(all.data + s->head_size, all.size - s->head_size);
}

/* RUN: how many are in `chain`. */
static inline uint8_t submission_chain(const struct submission *s, struct bytes all,
                                       uint64_t chain[RECORD_CHAIN_MAX])
{
    if (s->head_size > 0) {
        memcpy(chain, all.data, s->head_size);
    }
    return (uint8_t)(s->head_size / sizeof *chain);
}

/* The completion of an operation that was not begun in time. */
static inline struct completion submission_returned(const struct submission *s, struct bytes all)
{
    return (struct completion){.verb = s->verb,
                               .returned = true,
                               .flags = s->flags,
                               .head_size = s->head_size,
                               .ticket = s->ticket,
                               .actor = s->activation,
                               .bytes = all};
}

/* Bytes that the completion borrows: its head and bytes, or its call and what that borrows. (A push
 * is carried packed.) */
size_t completion_size(const struct completion *c);
/* Copy it to `to`, which borrows all that from `room`: that is of that size and aligned for a
 * uint64_t. */
void completion_copy(const struct completion *c, struct completion *to, uint8_t *room);

/* True if nothing of the activation is left in the runtime: whoever made it frees it. */
static inline bool completion_ends(const struct completion *c)
{
    switch ((int)c->verb) {
    case VERB_ACTIVATE:
        return c->returned || c->error != ERR_OK;
    case VERB_RETIRE:
        return !c->returned && c->error == ERR_OK;
    default:
        return c->verb == VERB_DISCARD;
    }
}

#endif
