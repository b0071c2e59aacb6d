/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's figures, named for who watches it. docs/metrics.md lists them.
 */
#ifndef NODE_METRICS_H
#define NODE_METRICS_H

#include "base/metrics.h"
#include "node/calls/broadcasts.h"
#include "node/durable/committer_uv.h"
#include "node/host/host.h"
#include "route/router.h"

/* `vnodes`: that it owns. `calls`, `told`: what its actors asked of others. */
void node_metrics(const struct host_stats *f, size_t vnodes, const struct router_stats *calls,
                  const struct broadcast_stats *told, struct metrics *m);
/* How long it all took: `requests` as host_latencies(), `handlers` as worker_handlers() of all
 * workers, `calls` as calls_latencies(). */
struct node_latencies {
    const struct latencies *requests; /* borrowed, as all below */
    const struct latencies *handlers;
    const struct latencies *calls;       /* or NULL */
    const struct exemplars *of_requests; /* exemplars_copy(), or NULL */
    const struct exemplars *of_calls;    /* likewise */
};
void node_latency_metrics(const struct node_latencies *l, struct metrics *m);
/* Of alarms, as struct alarm_counts (node/runtime/runtime.h). */
struct alarm_figures {
    uint64_t set;
    uint64_t cancelled;
    uint64_t fired;
    uint64_t late;
    uint64_t failed;
};
/* Of what its durable actors that live keep, as struct durable_figures (likewise). */
struct kept_figures {
    uint64_t answers;
    uint64_t answer_bytes;
    uint64_t sends;
    uint64_t send_bytes;
    uint64_t alarms;
    uint64_t alarms_due;
};
/* Of its store, if it has one. */
void node_store_metrics(const struct committer_stats *f, const struct alarm_figures *alarms,
                        const struct kept_figures *kept, struct metrics *m);

#endif
