/* SPDX-License-Identifier: Apache-2.0
 *
 * Trend: what did the fleet do in the last hour?
 *
 * Pure. A leader keeps TREND_POINTS_MAX points of TREND_POINT_US each; a new one begins with none,
 * for only a leader hears of nodes. Nothing of it is replicated, and nothing is decided by it.
 */
#ifndef TXN_LEADER_TREND_H
#define TXN_LEADER_TREND_H

#include "base/latency.h"
#include "wire/control.pb-c.h"

#include <stdint.h>

enum { TREND_POINTS_MAX = 360, TREND_POINT_US = 10000000, TREND_P99 = 990 /* thousandths */ };

struct trend_point {
    uint64_t wall_us;  /* its end */
    uint64_t took_us;  /* TREND_POINT_US, or more if the leader rested or slept */
    uint64_t requests; /* that actors ran, as nodes' renewals told in this time */
    uint64_t held;     /* likewise: that had to wait for a move */
    uint32_t moves;    /* vnodes that got another owner */
    uint32_t p99_us;   /* of requests that actors answered, all nodes'; 0 = none was */
};

struct leader_trend {
    struct trend_point point[TREND_POINTS_MAX]; /* point n is at n % TREND_POINTS_MAX */
    uint64_t next;                              /* number of the point under way, from 1 on */
    uint64_t begun_us;                          /* when that began */
    struct trend_point sum;                     /* of it, so far */
    uint64_t took[LATENCY_BUCKETS];             /* likewise: requests, by how long they took */
};

/* I lead: what was before is forgotten. */
void trend_begin(struct leader_trend *t, uint64_t now_us);
/* A node of the same incarnation said `before`, and now says `now`. `before` may be all 0: it said
 * nothing yet, and what it did until now is not known to be of this time. */
void trend_told(struct leader_trend *t, const Rh__Renew *before, const Rh__Renew *now);
/* Add what a report tells of how long requests took: UINT32_MAX of each at most, whoever tells. */
void trend_add_took(const Rh__Costs *costs, uint64_t sum[LATENCY_BUCKETS]);
/* A change of the ring was applied. */
void trend_changed(struct leader_trend *t, const Rh__Delta *delta);
/* End the point that is under way, if its time is over. Call it once a tick at least. */
void trend_run(struct leader_trend *t, uint64_t now_us, uint64_t wall_us);
/* Number of the oldest point that is kept; `next` if there is none. */
uint64_t trend_first(const struct leader_trend *t);
/* Point `number`, which is trend_first() at least, and less than `next`. */
const struct trend_point *trend_at(const struct leader_trend *t, uint64_t number);

#endif
