/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of a frame: of thousands of requests under way hardly one stands in the
 * processor's first cache when it is answered. So the memory that they need is
 * asked for together, one step of the way for all of them after the other; then
 * they are taken in their order.
 */
#include "route/router_inside.h"

#include "base/assert.h"

void route_on_answers(struct router *r, const struct router_answers *a)
{
    uint64_t hash[ROUTER_PREFETCH_MAX];

    ASSERT(a->count <= ROUTER_PREFETCH_MAX);
    for (size_t i = 0; i < a->count; i++) {
        hash[i] = route_hash(a->answer[i].session, a->answer[i].seq);
        table_fetch(&r->pendings, hash[i]);
    }
    for (size_t i = 0; i < a->count; i++) {
        struct table_link *link = table_front(&r->pendings, hash[i]);

        if (link != NULL) {
            pending_fetch(CONTAINER_OF(link, struct pending, link));
        }
    }
    // Few buckets have more than one.
    for (size_t i = 0; i < a->count; i++) {
        struct table_link *link = table_front(&r->pendings, hash[i]);

        if (link != NULL) {
            const struct lane *lane = CONTAINER_OF(link, struct pending, link)->lane;

            lane_fetch(lane);
            lanes_fetch(&r->lanes, lane->session, lane->position);
        }
    }
    for (size_t i = 0; i < a->count; i++) {
        const struct answer_record *answer = &a->answer[i];
        struct table_link *at = table_front(&r->pendings, hash[i]);

        route_on_answer(r, a->slot, answer, route_find_at(at, answer->session, answer->seq));
    }
}
