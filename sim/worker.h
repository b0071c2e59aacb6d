/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker of a simulated node: actors' code on the shipped runtime. What the host submits is done
 * at once, as a worker's thread does it; what the runtime completes comes to the host a while
 * later, in order.
 */
#ifndef SIM_WORKER_H
#define SIM_WORKER_H

#include "node/bridge/bridge.h"
#include "sim/fleet.h"

/* One incarnation of an actor there. */
struct sim_life {
    struct sim_life *next;
    uint64_t id; /* in its fleet */
    struct rh_actor *activation;
};

struct sim_completed {
    struct sim_completed *next;
    uint64_t life;
    struct completion completion; /* its actor; NULL = was discarded, it is dropped */
    uint64_t data[];              /* what the completion borrows */
};

struct sim_worker {
    struct fleet *fleet;
    struct sim_node *node;
    struct runtime *runtime;     /* owned */
    struct sim_life *life;       /* owned */
    struct sim_completed *first; /* owned: on its way to the host */
    struct sim_completed *last;
    uint64_t told_us;           /* when the newest arrives there */
    uint64_t takes_us;          /* what is done now takes so long; set by the caller */
    bool rests;                 /* something may be due since before the lease's hard end */
    struct buffer late_answers; /* that came meanwhile */
    bool closing;
    /* Arrived: true if that is all. NULL = the host and its calls are told of everything. */
    bool (*arrived)(struct sim_worker *w, const struct sim_completed *t);
};

void sim_worker_open(struct sim_worker *w, struct fleet *f, struct sim_node *n,
                     const struct runtime_config *config);
void sim_worker_close(struct sim_worker *w);

/* By the clock of its node. */
uint64_t sim_worker_clock(const struct sim_worker *w);

/* Do what the host submits. */
void sim_worker_perform(struct sim_worker *w, const struct submission *what, struct bytes bytes);

/* Have the runtime do what is due; as in the shipped worker, nothing of that runs past the lease's
 * hard end: what the store said meanwhile is taken at a later tick. */
void sim_worker_tick(struct sim_worker *w);

/* Hand the answer of a call out; past the hard end that is done at a later tick. */
void sim_worker_answer(struct sim_worker *w, const struct call_answer *answer);

/* Send a completion of the runtime on its way to the host. */
void sim_worker_tell(struct sim_worker *w, const struct completion *c);

/* A copy of it, alone; owned. */
struct sim_completed *sim_completed_new(const struct completion *c, uint64_t life);
void sim_completed_free_all(struct sim_completed **first);

#endif
