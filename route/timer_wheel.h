/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes that rest for some milliseconds: a wheel of time slots, O(1) to enter.
 */
#ifndef ROUTE_TIMER_WHEEL_H
#define ROUTE_TIMER_WHEEL_H

#include "base/list.h"
#include "route/lane.h"

#include <stdint.h>

enum {
    TIMER_WHEEL_SLOTS = 128,
    TIMER_WHEEL_SHIFT = 12,   /* a slot is 2^12 us, some 4 ms */
    TIMER_WHEEL_MAX_MS = 500, /* below TIMER_WHEEL_SLOTS slots; longer rests end sooner */
};

struct timer_wheel {
    struct list slot[TIMER_WHEEL_SLOTS];
    uint64_t at; /* slot number up to which all were woken */
};

void timer_wheel_init(struct timer_wheel *w, uint64_t now_us);

/* Let the lane rest for at least `ms`, at most TIMER_WHEEL_MAX_MS and one slot. It must not be
 * resting. */
void timer_wheel_put(struct timer_wheel *w, struct lane *lane, uint64_t now_us, uint64_t ms);

/* Move all whose rest is over to `due` (struct lane, resting). */
void timer_wheel_advance(struct timer_wheel *w, uint64_t now_us, struct list *due);

#endif
