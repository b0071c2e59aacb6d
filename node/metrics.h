/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's figures, named for who watches it. docs/metrics.md lists them.
 */
#ifndef NODE_METRICS_H
#define NODE_METRICS_H

#include "base/metrics.h"
#include "gateway/router.h"
#include "node/host.h"

/* `calls`: what its actors asked of others. */
void node_metrics(const struct host_figures *f, const struct router_figures *calls,
                  struct metrics *m);

#endif
