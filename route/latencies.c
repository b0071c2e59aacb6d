/* SPDX-License-Identifier: Apache-2.0
 *
 * How long requests took: stamps when they come, counted when they end.
 */
#include "route/router_inside.h"

const char *const router_reply_words[REPLY_CODES] = {
    [REPLY_OK] = "ok",
    [REPLY_APP_ERROR] = "error",
    [REPLY_UNKNOWN] = "unknown",
    [REPLY_TIMEOUT] = "timeout",
    [REPLY_REJECTED] = "rejected",
    [REPLY_NO_KIND] = "no_kind",
    [REPLY_OVERLOADED] = "overloaded",
    [REPLY_QUARANTINED] = "quarantined",
    [REPLY_DEADLOCK] = "deadlock",
};
_Static_assert((int)REPLY_CODES <= (int)LATENCY_SERIES, "a series for each");

uint32_t route_stamp_anew(struct router *r, uint16_t kind)
{
    r->timing.kind = kind;
    r->timing.stamp = latency_stamp(r->now_us, latencies_find(&r->latencies, kind));
    return r->timing.stamp;
}

void route_put_counted(struct router *r)
{
    const uint32_t began = r->timing.began;

    latency_add(&r->latencies.row[latency_stamp_row(began)].of[r->timing.code],
                latency_stamp_age_us(began, r->timed_us),
                r->timing.count);
    r->timing.count = 0;
}

void route_count_anew(struct router *r, uint32_t stamp, enum reply_code code)
{
    route_end_counting(r);
    r->timing.began = stamp;
    r->timing.code = code;
    r->timing.count = 1;
}

void route_begin_counting(struct router *r)
{
    r->timing.kind = UINT32_MAX;
    r->timing.code = REPLY_CODES;
}

/* What nodes host gets a row of its own as long as there are rows. What clients may ask for does
 * not. */
void route_find_rows(struct router *r, const struct ring_kinds *kinds)
{
    for (size_t k = 0; k < kinds->count; k++) {
        (void)latencies_row(&r->latencies, kinds->kind[k]);
    }
    r->timing.kind = UINT32_MAX; // it may have a row now
}

const struct latencies *router_latencies(const struct router *r)
{
    return &r->latencies;
}
