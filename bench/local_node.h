/* SPDX-License-Identifier: Apache-2.0
 *
 * A node without links, threads or files: a host and one worker with the bridge between them,
 * driven on one thread as the shell does. What leaves it is its owner's to carry.
 */
#ifndef BENCH_LOCAL_NODE_H
#define BENCH_LOCAL_NODE_H

#include "base/assert.h"
#include "base/clock.h"
#include "node/bridge/bridge.h"
#include "node/worker/worker_uv.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/hello.h"

#include <sched.h>
#include <stdio.h>

enum { LOCAL_NODE_START_US = 1000000000 }; /* of its clock */

struct local_node {
    struct host *host;
    struct host_effects effects;
    const struct kind *kind; /* borrowed; by number */
    bool threaded;           /* its worker has a thread, which sleeps: what is brief runs inline */
    struct limits limits;
    struct watchdog *watchdog;
    struct crash_record_slot crash_record;
    struct worker *worker;
    uint64_t now_us;          /* it goes on only where its owner says so */
    size_t completed;         /* times that its worker said so */
    size_t effect_count;      /* so far */
    size_t effect_count_most; /* of one step */
    size_t copying;           /* actors that are asked for a copy */
    size_t copying_most;
    /* Does what is not for an actor. */
    void (*perform)(struct local_node *n, const struct host_effect *e, struct bytes bytes);
};

static inline void local_node_on_completed(void *context)
{
    struct local_node *n = context;

    n->completed++;
}

static inline void local_node_perform(struct local_node *n, const struct host_effect *e)
{
    const struct bytes bytes = {n->effects.bytes.data + e->at, e->size};
    struct submission s;

    if (e->type != HOST_SUBMIT) {
        n->perform(n, e, bytes);
        return;
    }
    const struct kind *kind = &n->kind[actor_kind(e->actor)];
    n->copying += e->submission.verb == VERB_COPY ? 1 : 0;
    n->copying_most = n->copying > n->copying_most ? n->copying : n->copying_most;
    if (bridge_submit(worker_runtime(n->worker), &kind->ops, kind->shared, e, &s)) {
        worker_submit(n->worker, &s, bytes);
    }
}

static inline void local_node_step(struct local_node *n, struct host_event *event)
{
    event->now_us = n->now_us;
    host_step(n->host, event, &n->effects);
    n->effect_count += n->effects.count;
    if (n->effects.count > n->effect_count_most) {
        n->effect_count_most = n->effects.count;
    }
    for (size_t i = 0; i < n->effects.count; i++) {
        local_node_perform(n, &n->effects.item[i]);
    }
    host_effects_clear(&n->effects);
}

/* All that its worker has completed; its actors neither call nor push. */
static inline void local_node_take(struct local_node *n)
{
    const struct completion *c = NULL;

    while ((c = worker_take(n->worker)) != NULL) {
        struct host_event event;
        const bool heard = bridge_complete(c, &event);

        if (completion_ends(c)) {
            activation_free(c->actor);
        }
        n->copying -= c->verb == VERB_COPY ? 1 : 0;
        if (heard) {
            local_node_step(n, &event);
        }
    }
}

/* ---- what is brief, at once */

static inline enum host_ran local_node_run(void *context, const struct actor *a,
                                           struct at_once *run)
{
    const struct local_node *n = context;

    (void)a;
    return worker_run_one(n->worker, run);
}

/* The worker's thread may have it again. True: something was completed by the way. */
static inline bool local_node_leave(struct local_node *n)
{
    uint64_t left_us = 0; // by the real clock, which is not the node's
    const bool told = worker_leave_inline(n->worker, &left_us);

    host_served(n->host, n->now_us);
    return told;
}

/* As shell_serve(): the requests of that link that are steady, from the front; `answer` as in
 * host_server. */
static inline size_t local_node_serve(struct local_node *n, uint64_t peer,
                                      const struct request_record *r, const uint64_t *position,
                                      size_t count,
                                      bool (*answer)(void *context, const struct answer_record *a))
{
    const struct host_server server = {n, local_node_run, answer, &n->effects, NULL, NULL};
    const struct host_event event = {.type = HOST_REQUEST, .peer = peer, .now_us = n->now_us};

    if (!worker_enter_inline(n->worker)) {
        return 0;
    }
    const size_t served = host_serve(n->host, &event, r, position, count, &server);
    const bool told = local_node_leave(n);
    for (size_t i = 0; i < n->effects.count; i++) {
        local_node_perform(n, &n->effects.item[i]);
    }
    host_effects_clear(&n->effects);
    if (told) {
        local_node_take(n);
    }
    return served;
}

static inline uint64_t local_node_time(void *context)
{
    const struct local_node *n = context;

    return n->now_us;
}

/* A frame of a stream, of which what is steady runs at once. */
static inline void local_node_frame(struct local_node *n, uint64_t peer, const struct frame *frame)
{
    const struct host_server server = {
        .context = n, .run = local_node_run, .now_us = local_node_time, .fetch = activation_fetch};
    struct host_event event = {.type = HOST_FRAME, .peer = peer, .frame = frame, .server = &server};

    while (!worker_enter_inline(n->worker)) {
        (void)sched_yield(); // its thread looks up for a moment
    }
    local_node_step(n, &event);
    if (local_node_leave(n)) {
        local_node_take(n);
    }
}

/* `kind` by number, as `kinds` has them; `perform` is set. */
static inline void local_node_open(struct local_node *n, const char *name,
                                   const struct host_kind *kinds, size_t kind_count,
                                   const struct kind *kind)
{
    struct host_config config = host_config_default();
    struct worker_config worker = {.embedded = !n->threaded,
                                   .on_completed = local_node_on_completed,
                                   .context = n,
                                   .limits = &n->limits,
                                   .crash_record = &n->crash_record,
                                   .state_size_max = config.staged_size_max};

    n->kind = kind;
    n->now_us = LOCAL_NODE_START_US; // two that are made are alike, however long that took
    atomic_store(&n->limits.start_us, UINT64_MAX);
    atomic_store(&n->limits.gate_us, UINT64_MAX);
    atomic_store(&n->limits.hard_end_us, UINT64_MAX);
    worker.watchdog = n->watchdog = watchdog_new(RH_OVERRUN_GATE, 1);
    n->worker = worker_new(&worker);
    ASSERT(n->watchdog != NULL && n->worker != NULL);
    (void)snprintf(config.name, sizeof config.name, "%s", name);
    config.kinds = kinds;
    config.kind_count = kind_count;
    config.nonce = 7;
    n->host = host_new(&config);
}

static inline void local_node_close(struct local_node *n)
{
    worker_stop(n->worker, 0);
    if (n->threaded) {
        ASSERT(worker_join(n->worker, clock_boottime_us() + 60000000));
    } else {
        (void)worker_poll(n->worker, 0);
    }
    worker_free(n->worker);
    watchdog_free(n->watchdog);
    host_free(n->host);
    host_effects_fini(&n->effects);
}

static inline void local_node_control(struct local_node *n, Rh__Control *c)
{
    struct host_event event = {.type = HOST_CONTROL, .message = c};

    c->era = 1;
    local_node_step(n, &event);
}

static inline void local_node_link(struct local_node *n, uint64_t peer, enum link_role role,
                                   const char *name, uint64_t incarnation)
{
    struct host_event up = {.type = HOST_PEER_UP,
                            .peer = peer,
                            .role = (int)role,
                            .name = name,
                            .incarnation = incarnation};

    local_node_step(n, &up);
}

/* The node learns from a leader that it is that member of the cluster. */
static inline void local_node_register(struct local_node *n, const struct view *cluster,
                                       uint16_t slot, uint64_t incarnation)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Leader leader = RH__LEADER__INIT;
    Rh__Control r = RH__CONTROL__INIT;
    Rh__RegOk ok = RH__REG_OK__INIT;
    Rh__Config config;
    struct host_event up = {.type = HOST_COORDINATOR_UP};

    local_node_step(n, &up);
    leader.leading = true;
    leader.term = 1;
    c.body_case = RH__CONTROL__BODY_LEADER;
    c.leader = &leader;
    local_node_control(n, &c);
    view_config(cluster, &config);
    ok.nonce = 7;
    ok.slot = slot;
    ok.incarnation = incarnation;
    ok.floor = cluster->ring.version;
    ok.config = &config;
    r.body_case = RH__CONTROL__BODY_REG_OK;
    r.reg_ok = &ok;
    local_node_control(n, &r);
    view_config_fini(&config);
}

#endif
