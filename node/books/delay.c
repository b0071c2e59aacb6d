/* SPDX-License-Identifier: Apache-2.0
 *
 * Back-offs of actors that fail: a list for each length, so that the next one
 * due is in front.
 */
#include "node/books/delay.h"

enum { MS = 1000 };

void delays_init(struct delays *d)
{
    for (unsigned i = 0; i < DELAY_LEVELS; i++) {
        list_init(&d->level[i]);
    }
}

static uint64_t length_us(unsigned level)
{
    return level == DELAY_LONGEST ? (uint64_t)DELAY_LAST_MS * MS
                                  : ((uint64_t)DELAY_FIRST_MS * MS) << level;
}

void delay_start(struct delays *d, struct delay *item, unsigned level, uint64_t now_us)
{
    const unsigned at = level < DELAY_LONGEST ? level : DELAY_LONGEST;

    delay_stop(item);
    item->due_us = now_us + length_us(at);
    list_push_back(&d->level[at], &item->link);
}

void delay_stop(struct delay *item)
{
    if (delay_runs(item)) {
        list_remove(&item->link);
    }
}

struct delay *delays_due(struct delays *d, uint64_t now_us)
{
    for (unsigned i = 0; i < DELAY_LEVELS; i++) {
        struct list_link *first = list_front(&d->level[i]);
        struct delay *item = first == NULL ? NULL : CONTAINER_OF(first, struct delay, link);

        if (item != NULL && now_us >= item->due_us) {
            delay_stop(item);
            return item;
        }
    }
    return NULL;
}

uint64_t delays_next_us(const struct delays *d)
{
    uint64_t next_us = UINT64_MAX;

    for (unsigned i = 0; i < DELAY_LEVELS; i++) {
        struct list_link *first = list_front(&d->level[i]);
        const struct delay *item = first == NULL ? NULL : CONTAINER_OF(first, struct delay, link);

        next_us = item != NULL && item->due_us < next_us ? item->due_us : next_us;
    }
    return next_us;
}
