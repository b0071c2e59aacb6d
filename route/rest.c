/* SPDX-License-Identifier: Apache-2.0
 *
 * The wheel of lanes that wait for a time.
 */
#include "route/rest.h"

#include "base/assert.h"

void rest_init(struct rest *r, uint64_t now_us)
{
    for (size_t i = 0; i < REST_SLOTS; i++) {
        list_init(&r->slot[i]);
    }
    r->at = now_us >> REST_SHIFT;
}

void rest_put(struct rest *r, struct lane *lane, uint64_t now_us, uint64_t ms)
{
    const uint64_t rest_ms = ms < REST_MAX_MS ? ms : REST_MAX_MS;
    uint64_t slot = ((now_us + rest_ms * 1000) >> REST_SHIFT) + 1;

    ASSERT(!list_linked(&lane->resting));
    if (slot <= r->at) {
        slot = r->at + 1;
    }
    list_push_back(&r->slot[slot % REST_SLOTS], &lane->resting);
}

void rest_advance(struct rest *r, uint64_t now_us, struct list *due)
{
    const uint64_t now = now_us >> REST_SHIFT;

    if (now > r->at + REST_SLOTS) {
        r->at = now - REST_SLOTS; // a long gap: one round empties every slot
    }
    while (r->at < now) {
        r->at++;
        list_splice_back(due, &r->slot[r->at % REST_SLOTS]);
    }
}
