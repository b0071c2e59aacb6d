/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers what the fleet did in the last hour, as its leader has kept it.
 */
#include "txn/admin/inside.h"

#include "base/mem.h"

static Rh__TrendRow *trend_row(const struct leader_trend *t, uint64_t number)
{
    const struct trend_point *p = trend_at(t, number);
    Rh__TrendRow *row = mem_new(1, sizeof *row);

    *row = (Rh__TrendRow)RH__TREND_ROW__INIT;
    row->number = number;
    row->wall_us = p->wall_us;
    row->took_us = p->took_us;
    row->requests = p->requests;
    row->held = p->held;
    row->moves = p->moves;
    row->p99_us = p->p99_us;
    return row;
}

void admin_add_hour(const struct coordinator *c, Rh__AdminReply *reply, uint64_t from)
{
    const struct leader_trend *t = &c->trend;

    if (from == 0 || t->next == 0) { // 0: it has never led
        return;
    }
    reply->trend_next = t->next;
    reply->trend = mem_new(TREND_POINTS_MAX, sizeof(Rh__TrendRow *));
    for (uint64_t n = from > trend_first(t) ? from : trend_first(t); n < t->next; n++) {
        reply->trend[reply->n_trend++] = trend_row(t, n);
    }
}
