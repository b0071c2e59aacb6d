/* SPDX-License-Identifier: Apache-2.0
 *
 * The wheel of lanes that wait for a time.
 */
#include "route/timer_wheel.h"

#include "base/assert.h"

void timer_wheel_init(struct timer_wheel *w, uint64_t now_us)
{
    for (size_t i = 0; i < TIMER_WHEEL_SLOTS; i++) {
        list_init(&w->slot[i]);
    }
    w->at = now_us >> TIMER_WHEEL_SHIFT;
}

void timer_wheel_put(struct timer_wheel *w, struct lane *lane, uint64_t now_us, uint64_t ms)
{
    const uint64_t rest_ms = ms < TIMER_WHEEL_MAX_MS ? ms : TIMER_WHEEL_MAX_MS;
    uint64_t slot = ((now_us + rest_ms * 1000) >> TIMER_WHEEL_SHIFT) + 1;

    ASSERT(!list_linked(&lane->resting));
    if (slot <= w->at) {
        slot = w->at + 1;
    }
    list_push_back(&w->slot[slot % TIMER_WHEEL_SLOTS], &lane->resting);
}

void timer_wheel_advance(struct timer_wheel *w, uint64_t now_us, struct list *due)
{
    const uint64_t now = now_us >> TIMER_WHEEL_SHIFT;

    if (now > w->at + TIMER_WHEEL_SLOTS) {
        w->at = now - TIMER_WHEEL_SLOTS; // a long gap: one round empties every slot
    }
    while (w->at < now) {
        w->at++;
        list_splice_back(due, &w->slot[w->at % TIMER_WHEEL_SLOTS]);
    }
}
