/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds up what renewals and changes of the ring tell, and keeps a point every ten seconds.
 */
#include "txn/leader/trend.h"

#include "base/assert.h"
#include "ring/ring.h"

#include <string.h>

void trend_begin(struct leader_trend *t, uint64_t now_us)
{
    *t = (struct leader_trend){.next = 1, .begun_us = now_us};
}

/* Both only grow, unless the node lies. */
static uint64_t grown(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

void trend_add_took(const Rh__Costs *costs, uint64_t sum[LATENCY_BUCKETS])
{
    for (size_t i = 0; i < costs->n_took && i < LATENCY_BUCKETS; i++) {
        sum[i] += costs->took[i] < UINT32_MAX ? costs->took[i] : UINT32_MAX;
    }
}

void trend_told(struct leader_trend *t, const Rh__Renew *before, const Rh__Renew *now)
{
    if (before->seq != 0) {
        t->sum.requests += grown(before->executed, now->executed);
        t->sum.held += grown(before->held_total, now->held_total);
    }
    if (now->costs != NULL) {
        trend_add_took(now->costs, t->took);
    }
}

void trend_changed(struct leader_trend *t, const Rh__Delta *delta)
{
    for (size_t i = 0; i < delta->n_ops; i++) {
        t->sum.moves += delta->ops[i]->kind == RING_MOVE;
    }
}

void trend_run(struct leader_trend *t, uint64_t now_us, uint64_t wall_us)
{
    const uint64_t took_us = now_us - t->begun_us;

    if (took_us < TREND_POINT_US) {
        return;
    }
    t->sum.wall_us = wall_us;
    t->sum.took_us = took_us;
    t->sum.p99_us = (uint32_t)latency_quantile_us(t->took, TREND_P99);
    t->point[t->next % TREND_POINTS_MAX] = t->sum;
    t->sum = (struct trend_point){.moves = 0};
    memset(t->took, 0, sizeof t->took);
    t->begun_us = now_us;
    t->next++;
}

uint64_t trend_first(const struct leader_trend *t)
{
    return t->next > TREND_POINTS_MAX ? t->next - TREND_POINTS_MAX : 1;
}

const struct trend_point *trend_at(const struct leader_trend *t, uint64_t number)
{
    ASSERT(number >= trend_first(t) && number < t->next);
    return &t->point[number % TREND_POINTS_MAX];
}
