/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs: what do the vnodes of this node cost it, for the leader's plan (docs/decisions/081)?
 *
 * Each request that begins is counted with its cell (cells_count_request()). Every COSTS_PERIOD_US
 * a renewal carries what came together: of the vnodes that were asked most often the requests and
 * where a cut would part them best, the sum of all, and for how long actors ran.
 */
#ifndef NODE_HOST_COSTS_H
#define NODE_HOST_COSTS_H

#include "node/host/host.h"

enum { COSTS_PERIOD_US = 5000000, COSTS_ROWS_MAX = 64 };

struct costs {
    uint64_t due_us;     /* with the first renewal from then on */
    uint64_t since_us;   /* counted since */
    uint64_t busy_us;    /* actors ran for so long, as the shell told last … */
    uint64_t busy_at_us; /* … and as it was at `since_us` */
};

/* This incarnation begins: nothing is counted. */
void costs_begin(struct host *h);
/* What was counted, if it is due, and count anew; else NULL. Free it with proto_free(). */
Rh__Costs *costs_take(struct host *h);

#endif
