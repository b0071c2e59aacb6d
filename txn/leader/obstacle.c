/* SPDX-License-Identifier: Apache-2.0
 *
 * The words, and what waits for the same put together.
 */
#include "txn/leader/obstacle.h"

#include <stdbool.h>

const char *obstacle_word(enum obstacle_reason reason)
{
#define OBSTACLE(name, word) [OBSTACLE_##name] = (word),
    static const char *const words[] = {[OBSTACLE_NONE] = "", OBSTACLE_LIST(OBSTACLE)};
#undef OBSTACLE

    return words[reason];
}

struct obstacle obstacle_longer(struct obstacle a, struct obstacle b)
{
    // One without a time, which is 0, lasts longest.
    const bool first = b.reason == OBSTACLE_NONE ||
                       (a.reason != OBSTACLE_NONE &&
                        (a.left_us == 0 || (b.left_us != 0 && a.left_us >= b.left_us)));

    return first ? a : b;
}

void obstacles_add(struct obstacles *all, const struct obstructed *more)
{
    for (size_t i = 0; i < all->count; i++) {
        struct obstructed *o = &all->item[i];

        if (o->by.reason == more->by.reason && o->by.slot == more->by.slot &&
            o->by.other == more->by.other && o->drains == more->drains) {
            o->by = obstacle_longer(o->by, more->by);
            o->txns += more->txns;
            o->vnodes += more->vnodes;
            return;
        }
    }
    if (all->count < OBSTACLES_MAX) {
        all->item[all->count++] = *more;
    }
}
