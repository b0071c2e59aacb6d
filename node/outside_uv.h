/* SPDX-License-Identifier: Apache-2.0
 *
 * What does the program around a node ask, from threads of its own? rh_node_call() and
 * rh_node_owner(), on their way to the protocol thread and back.
 *
 *     any thread        outside_call(), outside_owner() -> asked
 *     protocol thread   outside_take(): asked -> open, asked by the node's calls
 *                                       (node/calls/calls.h)
 *                       outside_answer(): open -> told here, or, of an embedded node, answered
 *     rh_node_poll()    outside_hand_out(): answered -> told
 *
 * Whoever asked is told exactly once: by the router, or when the node's incarnation ends, or the
 * node has left.
 */
#ifndef NODE_OUTSIDE_UV_H
#define NODE_OUTSIDE_UV_H

#include "base/list.h"
#include "node/calls/call.h"
#include "node/node_uv.h"

#include <pthread.h>
#include <uv.h>

enum {
    OUTSIDE_WORKER = 255, /* of struct call: no worker's */
    OUTSIDE_CALLS_MAX = 1024,
};

struct worker;

struct outside {
    struct rh_node *node;  /* as callbacks are told */
    struct worker *worker; /* of an embedded node: to be woken; else NULL */
    pthread_mutex_t lock;  /* of all but the last three */
    pthread_cond_t told;   /* an owner was */
    struct list asked;     /* struct outside_ask */
    struct list answered;  /* likewise, of an embedded node */
    size_t count;          /* of calls, in these and in `open` */
    uv_async_t *wake;      /* NULL = the node is not there yet, or has left */
    pthread_t thread;      /* the protocol thread, once … */
    bool serves;           /* … it does */
    bool leaves;           /* no more calls */
    struct list open;      /* calls that the protocol thread has taken */
    uint64_t last_number;  /* of a call */
    uint64_t session;      /* of all calls: those to one actor run in order; 0 = none was made */
};

void outside_init(struct outside *o, struct rh_node *node);
void outside_fini(struct outside *o);

/* ---- any thread */

/* A call, as the program made it; borrowed. */
struct outside_question {
    uint16_t kind;
    struct rh_bytes id;
    struct rh_bytes payload;
    uint32_t timeout_ms;
    uint32_t flags;
    rh_on_node_answer then;
    void *argument;
};
/* Ask an actor, as rh_node_call() does. */
int outside_call(struct outside *o, const struct outside_question *q);
/* Find an owner, as rh_node_owner() does. */
int outside_owner(struct outside *o, struct shell *s, uint16_t kind, struct rh_bytes id,
                  char name[RH_NODE_NAME]);
/* Tell what was answered: on the thread of rh_node_poll(). */
void outside_hand_out(struct outside *o);

/* ---- the protocol thread; `asks` of the shell may have no outside */

/* The protocol thread is this one. */
void outside_serve(struct shell *s);
/* Take what was asked. */
void outside_take(struct shell *s);
/* Look at what is open. */
void outside_tick(struct shell *s);
/* A call was answered. */
void outside_answer(struct shell *s, const struct call_answer *answer);
/* The node begins to leave: it takes no more calls. */
void outside_leave(struct shell *s);
/* The node has left: everybody who still waits is told. */
void outside_close(struct shell *s);

#endif
