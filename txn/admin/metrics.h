/* SPDX-License-Identifier: Apache-2.0
 *
 * A coordinator's figures, named for who watches it. docs/metrics.md lists them.
 */
#ifndef TXN_ADMIN_METRICS_H
#define TXN_ADMIN_METRICS_H

#include "base/metrics.h"
#include "txn/leader/coordinator.h"

/* Write the figures. A leader tells all about the fleet, another coordinator what it has applied.
 * `leader`: whom Raft follows, 0 = none; a coordinator that never led does not know. `wall_us`: the
 * time of day. */
void coordinator_metrics(struct coordinator *c, uint64_t leader, uint64_t wall_us,
                         struct metrics *m);

#endif
