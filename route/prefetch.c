/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that come next: of thousands of requests under way hardly one stands in
 * the processor's first cache when it is answered. So the memory that the answers
 * of a frame need is asked for together, one step of the way for all of them after
 * the other.
 *
 * A hint: it changes nothing that anybody could see.
 */
#include "route/router_inside.h"

#include "base/assert.h"

struct prefetch_way {
    uint64_t hash;
    struct table_link *link;
    const struct lane *lane; /* NULL = not known */
};

static void look_for_bucket(const struct router *r, struct prefetch_way *w)
{
    table_fetch(&r->pendings, w->hash);
}

static void look_for_request(const struct router *r, struct prefetch_way *w)
{
    w->link = table_front(&r->pendings, w->hash);
    if (w->link != NULL) {
        pending_fetch(CONTAINER_OF(w->link, struct pending, link));
    }
}

/* Few buckets have more than one. */
static void look_for_lane(const struct router *r, struct prefetch_way *w)
{
    (void)r;
    if (w->link != NULL && w->link->hash == w->hash) {
        w->lane = CONTAINER_OF(w->link, struct pending, link)->lane;
        lane_fetch(w->lane);
    }
}

static void look_for_lanes(const struct router *r, struct prefetch_way *w)
{
    if (w->lane != NULL) {
        lanes_fetch(&r->lanes, w->lane->session, w->lane->position);
    }
}

static void look_for_front(const struct router *r, struct prefetch_way *w)
{
    if (w->lane != NULL) {
        lanes_fetch_front(&r->lanes, w->lane->session, w->lane->position);
    }
}

void router_prefetch(const struct router *r, const struct answer_record *a, size_t count)
{
    static void (*const steps[])(const struct router *r, struct prefetch_way *w) = {
        look_for_bucket, look_for_request, look_for_lane, look_for_lanes, look_for_front};
    struct prefetch_way way[ROUTER_PREFETCH_MAX];

    ASSERT(count <= ROUTER_PREFETCH_MAX);
    for (size_t i = 0; i < count; i++) {
        way[i] = (struct prefetch_way){.hash = route_hash(a[i].session, a[i].seq)};
    }
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        for (size_t i = 0; i < count; i++) {
            steps[s](r, &way[i]);
        }
    }
}
