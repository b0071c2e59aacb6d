/* SPDX-License-Identifier: Apache-2.0
 *
 * A node as a process: the host (node/host/host.h), links and the data folder on one
 * libuv loop, the protocol thread; actors on the workers (node/worker/worker_uv.h).
 * `ringhold node` and rh_node_start() are this.
 *
 * Turn of the loop: what came in, from links and from workers, becomes events,
 * each event a step of the host, its effects are done in order. What is for an
 * actor is handed to its worker at the end of the turn. Links flush once a turn.
 * Only the number record is written off the loop.
 */
#ifndef NODE_NODE_UV_H
#define NODE_NODE_UV_H

#include "daemon/reload_uv.h"
#include "node/host/host.h"

#include <ringhold.h>
#include <stdatomic.h>
#include <stdbool.h>

struct metrics; /* base/metrics.h */
struct pages;   /* daemon/page_uv.h */

struct node_options {
    struct rh_node_options node; /* as a game server would give them */
    struct host_config limits;   /* only sizes, counts and times are used */
    const char *kinds;           /* what else it hosts, one line for each: kinds_add_line() */
    /* The kind that "host=WORDS" in `kinds` declares, or NULL after printing why not; NULL = there
     * are none. */
    const struct rh_actor_ops *(*host_kind)(const char *words);
    void (*host_figures)(struct metrics *m); /* its figures; NULL = none */
    uint32_t drain_ms;           /* when it leaves: at most so long, then it ends; 0 = no end */
    struct pages *pages;         /* who asks for metrics; NULL = nobody; borrowed */
    struct reload_source source; /* SIGHUP: what changes these limits and drain_ms; none */
    bool announce;               /* print "ready node=… incarnation=… address=…" on stdout */
};

/* Limits by default, the rest all zero. */
struct node_options node_options_default(void);

/* Run a node, as rh_node_run() does. */
int node_run(const struct node_options *options);

/* ---- for node/handle_uv.c */

struct shell;
struct worker;
struct outside; /* node/outside_uv.h */

/* Requests from other threads to a node. */
struct node_asks {
    atomic_uint stops;
    atomic_bool drain;
    struct outside *outside; /* NULL = no program of others is around it */
};

/* Start a node; both are borrowed until it has left. NULL: one line on stderr says why. */
struct shell *node_open(const struct node_options *options, struct node_asks *asks);
/* Run its loop on this thread until it has left, and free it. Returns the exit code. */
int node_serve(struct shell *s);
/* Embedded: the one worker. It is there until worker_poll() says that it has ended. */
struct worker *node_worker(const struct shell *s);
/* Stop every node of this process, as rh_node_stop() does. Signal-safe. */
void node_stop_any(void);

#endif
