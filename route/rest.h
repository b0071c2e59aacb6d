/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes that rest for some milliseconds: a wheel of time slots, O(1) to enter.
 */
#ifndef ROUTE_REST_H
#define ROUTE_REST_H

#include "base/list.h"
#include "route/lane.h"

#include <stdint.h>

enum {
    REST_SLOTS = 128,
    REST_SHIFT = 12,   /* a slot is 2^12 us, some 4 ms */
    REST_MAX_MS = 500, /* below REST_SLOTS slots; longer rests end sooner */
};

struct rest {
    struct list slot[REST_SLOTS];
    uint64_t at; /* slot number up to which all were woken */
};

void rest_init(struct rest *r, uint64_t now_us);

/* Let the lane rest for at least `ms`, at most REST_MAX_MS and one slot. It must not be resting. */
void rest_put(struct rest *r, struct lane *lane, uint64_t now_us, uint64_t ms);

/* Move all whose rest is over to `due` (struct lane, resting). */
void rest_advance(struct rest *r, uint64_t now_us, struct list *due);

#endif
