/* SPDX-License-Identifier: Apache-2.0
 *
 * A gateway's figures, named for who watches it. docs/metrics.md lists them.
 */
#ifndef GATEWAY_CLIENT_METRICS_H
#define GATEWAY_CLIENT_METRICS_H

#include "base/metrics.h"
#include "gateway/client/stats.h"

void gateway_metrics(const struct gateway_stats *t, struct metrics *m);
/* How long requests took: router_latencies() of all threads, added up; `e`: exemplars_copy(). */
void gateway_latency_metrics(const struct latencies *l, const struct exemplars *e,
                             struct metrics *m);

#endif
