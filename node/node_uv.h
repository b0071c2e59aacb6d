/* SPDX-License-Identifier: Apache-2.0
 *
 * A node as a process: the host (node/host.h), the scene (node/scene.h), links
 * and the data folder on one libuv loop. `ringhold node` and rh_node_run() are
 * this.
 *
 * Turn of the loop: what came in becomes events, each event a step of the host,
 * its effects are done in order. What an effect completes at once (an actor ran)
 * is queued as the next event: nothing here calls itself. Links flush once a
 * turn. Only the number record is written off the loop.
 */
#ifndef NODE_NODE_UV_H
#define NODE_NODE_UV_H

#include "node/host.h"

#include <ringhold.h>
#include <stdbool.h>

struct node_options {
    struct rh_node_options node; /* as a game server would give them */
    struct host_config limits;   /* only sizes, counts and times are used */
    const char *kinds;           /* what else it hosts, one line for each: kinds_add_line() */
    bool announce;               /* print "ready node=… incarnation=… address=…" on stdout */
};

/* Limits by default, the rest all zero. */
struct node_options node_options_default(void);

/* As rh_node_run(). */
int node_run(const struct node_options *options);

#endif
