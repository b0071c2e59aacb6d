/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans: what a process did for a traced request, from when until when, and for whom. A core notes
 * them in a tracing that its shell gave it; without one there are none. docs/traces.md says what
 * each is.
 *
 *     spans_begin(&s, key, &span)                           it begins, and is open
 *     spans_end(&s, key, now_us, outcome, attempts)         it ends
 *     spans_put(&s, &span)                                  it is over when it is noted
 *
 * The randomness of ids is the shell's: a seed, from which each id is drawn.
 */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include "base/metrics.h"
#include "base/prng.h"
#include "base/table.h"
#include "base/traceparent.h"

enum {
    SPAN_NAME_ID_MAX = 255, /* bytes of an actor's id */
    SPANS_OPEN_MAX = 4096,  /* of one core: what comes beyond has no span */
};

enum span_what {
    SPAN_REQUEST, /* gateway: of a client, from its arrival to its answer */
    SPAN_CALL,    /* node: of an actor, to another, likewise */
    SPAN_SEND,    /* node: the same, without an answer */
    SPAN_HOLD,    /* node: it waited for a move */
    SPAN_FORWARD, /* node: it was sent on to another node */
    SPAN_MAILBOX, /* node: it waited for its actor's turn */
    SPAN_HANDLER, /* node: its actor's code, until that has answered */
    SPAN_COMMIT,  /* node: its changes on their way to the store */
};
enum { SPAN_WHATS = SPAN_COMMIT + 1 };
/* The names of spans: "request". */
extern const char *const span_names[SPAN_WHATS];

struct trace_span {
    enum span_what what;
    struct trace_context context;    /* its trace, and its own id */
    uint8_t parent[TRACE_SPAN_SIZE]; /* all 0 = none */
    uint64_t from_us;                /* on the clock of the process's steps */
    uint64_t to_us;
    uint64_t came_us;    /* when that began which a histogram counts of it (base/exemplar.h) … */
    uint64_t ticket;     /* of whoever began it; not exported */
    const char *outcome; /* static; NULL = ok */
    uint64_t txn;        /* HOLD: for which; 0 = nothing to say */
    uint32_t attempts;   /* REQUEST, CALL, SEND: times that it was sent to a node; else 0 */
    uint16_t kind;       /* of the actor that is asked */
    bool is_counted;     /* … if one does, … */
    bool has_row;        /* … and whether the kind has a row of its own there */
    uint8_t id_size;
    uint8_t id[SPAN_NAME_ID_MAX];
};

/* Why there is no span, for metrics. */
enum span_drop {
    SPAN_DROP_RATE,     /* more traces began in a second than are taken */
    SPAN_DROP_OPEN,     /* SPANS_OPEN_MAX were open */
    SPAN_DROP_FULL,     /* the queue of what is to be exported was full */
    SPAN_DROP_UNSENT,   /* the collector could not be reached, or the file not be written */
    SPAN_DROP_REJECTED, /* the collector refused them */
};
enum { SPAN_DROPS = SPAN_DROP_REJECTED + 1 };

struct exemplars;

/* Where spans go. One for all cores of a process: its functions may be called by any thread, and
 * call nothing back. */
struct tracing {
    void (*put)(void *context, const struct trace_span *span);
    void (*drop)(void *context, enum span_drop why);
    void (*figures)(void *context, struct metrics *m); /* of both, for /metrics */
    /* Copy what was noted of the process's requests, or of its actors' calls. */
    void (*exemplars)(void *context, bool of_calls, struct exemplars *out);
    void *context;
};

/* The spans of one core. All zero: none are noted. */
struct spans {
    const struct tracing *tracing; /* borrowed; NULL = nobody wants any */
    struct prng ids;
    struct table open; /* struct open_span */
};

/* `seed`: random, another for each core. */
static inline void spans_init(struct spans *s, const struct tracing *tracing, uint64_t seed)
{
    *s = (struct spans){.tracing = tracing, .ids = {.state = seed}};
}
/* Forget those that are open. */
void spans_fini(struct spans *s);

/* True if somebody wants spans. */
static inline bool spans_wanted(const struct spans *s)
{
    return s->tracing != NULL;
}

/* The context of a trace that begins here: its span is all 0. */
struct trace_context spans_new_trace(struct spans *s);
/* A span below `parent`, with an id of its own, about that actor. */
struct trace_span spans_child(struct spans *s, const struct trace_context *parent,
                              enum span_what what, uint16_t kind, struct bytes id);
/* Note a span that is over. */
void spans_put(struct spans *s, const struct trace_span *span);
/* A trace is not taken. */
void spans_drop(struct spans *s, enum span_drop why);

/* Keep it until it ends, by a key that no other open one has. False: there is no room for it. */
bool spans_begin(struct spans *s, uint64_t key, const struct trace_span *span);
/* True if it is open; `span` gets a copy. */
bool spans_find(const struct spans *s, uint64_t key, struct trace_span *span);
/* Change the ticket of one that is open. False: it is not. */
bool spans_set_ticket(struct spans *s, uint64_t key, uint64_t ticket);
/* The span of that key ends: note it. Nothing happens if none of that key is open. */
void spans_end(struct spans *s, uint64_t key, uint64_t now_us, const char *outcome,
               uint32_t attempts);

#endif
