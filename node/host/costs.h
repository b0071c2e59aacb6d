/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs: what do the vnodes of this node cost it, for the leader's plan (docs/decisions/081)?
 *
 * Each request that begins is counted with its cell (cells_count_request()), so is the time that
 * the workers know of by actor (host_count_time()), and what live actors take. Every
 * COSTS_PERIOD_US the cells are gone through, COSTS_CELLS_A_TURN at a tick, so that a node with a
 * million of them does not stand still for it. The next renewal carries what came together: of the
 * vnodes that cost most, where a cut would part that best, and the sums of all.
 */
#ifndef NODE_HOST_COSTS_H
#define NODE_HOST_COSTS_H

#include "base/latency.h"
#include "node/host/host.h"

enum { COSTS_PERIOD_US = 5000000, COSTS_ROWS_MAX = 64, COSTS_CELLS_A_TURN = 65536 };

/* A vnode that is being gone through: twice, for where a cut parts it best is known once all of it
 * is. */
struct costs_vnode {
    uint32_t id;
    uint32_t from;
    uint32_t to;
    bool again;    /* the second time, */
    uint64_t left; /* in which the cells up to here have so much of its cost, … */
    uint64_t best; /* … and this is the lesser part by the best cut so far */
    uint64_t requests;
    uint64_t busy_us;
    uint64_t memory;
    uint32_t cut;
    uint64_t cut_left; /* the cost of the cells left of the cut */
};

struct costs {
    uint64_t due_us;     /* the cells are gone through with the first tick from then on */
    uint64_t since_us;   /* counted since */
    uint64_t busy_us;    /* actors ran for so long, as the shell told last … */
    uint64_t busy_at_us; /* … and as it was at `since_us` */
    uint64_t took_at[LATENCY_BUCKETS]; /* times_took() as it was then */
    Rh__Costs *report;                 /* owned; NULL = nothing is under way */
    uint32_t cell;                     /* the next, of those that are gone through */
    bool ready;                        /* the report is complete: the next renewal takes it */
    struct costs_vnode at;
    double rank[COSTS_ROWS_MAX]; /* of the report's rows */
    double request_us;           /* of the last report: what a request took on the average, … */
    double cost;                 /* … what all cost, in microseconds, and … */
    double memory;               /* … the bytes of all actors */
};

/* This incarnation begins: nothing is counted. */
void costs_begin(struct host *h);
void costs_fini(struct costs *c);
/* Go on through the cells, if that is due: COSTS_CELLS_A_TURN of them. */
void costs_tick(struct host *h);
/* Go on through `most` of the cells, if that is due. */
void costs_turn(struct host *h, uint32_t most);
/* What was counted, if a report is ready; else NULL. Free it with proto_free(). */
Rh__Costs *costs_take(struct host *h);

#endif
