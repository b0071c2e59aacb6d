/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold top --kinds`: how long requests of each kind take, in all nodes together.
 */
#ifndef CLI_TOP_KINDS_H
#define CLI_TOP_KINDS_H

#include "cli/check/collector.h"
#include "cli/query.h"

/* Print what `after` has more than `before`, which was asked `us` earlier: requests that actors
 * answered, by kind. What was not there both times does not count. */
void top_kinds_print(const struct query *q, const struct collection *before,
                     const struct collection *after, uint64_t us);

#endif
