/* SPDX-License-Identifier: Apache-2.0
 *
 * What any process may tell of itself, by the names that Prometheus' own
 * clients use.
 */
#ifndef DAEMON_PROCESS_H
#define DAEMON_PROCESS_H

#include "base/metrics.h"

void process_metrics(struct metrics *m);

#endif
