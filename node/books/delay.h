/* SPDX-License-Identifier: Apache-2.0
 *
 * Back-offs: 100 ms, doubled with each failure in a row, 30 s at most. All that
 * wait equally long stand in one list, which is in order of time by itself: to
 * start, to stop and to find what is due costs the same however many wait.
 *
 * Pure.
 */
#ifndef NODE_BOOKS_DELAY_H
#define NODE_BOOKS_DELAY_H

#include "base/list.h"

#include <stdint.h>

enum {
    DELAY_FIRST_MS = 100,
    DELAY_LAST_MS = 30000,
    DELAY_LEVELS = 10, /* 100 ms << 0 .. 8, then the last */
    DELAY_LONGEST = DELAY_LEVELS - 1,
};

struct delay {
    struct list_link link; /* all zero = it does not run */
    uint64_t due_us;
};

struct delays {
    struct list level[DELAY_LEVELS];
};

void delays_init(struct delays *d);
/* Start it, anew if it runs. Level 0 is the shortest; above DELAY_LONGEST counts as that. */
void delay_start(struct delays *d, struct delay *item, unsigned level, uint64_t now_us);
void delay_stop(struct delay *item); /* if it runs */
static inline bool delay_runs(const struct delay *item)
{
    return list_linked(&item->link);
}
/* Stops and returns one that is due; NULL = none. */
struct delay *delays_due(struct delays *d, uint64_t now_us);
/* When the next one is due; UINT64_MAX = none runs. */
uint64_t delays_next_us(const struct delays *d);

#endif
