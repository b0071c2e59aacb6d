/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds expired requests: a list for each time-out, in order of deadline.
 */
#include "route/deadlines.h"

#include "base/assert.h"

enum { OTHERS = DEADLINE_LISTS - 1 };

void deadlines_init(struct deadlines *a)
{
    *a = (struct deadlines){0};
    for (size_t i = 0; i < DEADLINE_LISTS; i++) {
        list_init(&a->list[i]);
    }
}

static size_t list_for(struct deadlines *a, uint32_t timeout_ms)
{
    size_t empty = OTHERS;

    for (size_t i = 0; i < a->top && i < OTHERS; i++) {
        if (a->timeout_ms[i] == timeout_ms) {
            return i;
        }
        if (empty == OTHERS && list_empty(&a->list[i])) {
            empty = i;
        }
    }
    if (empty == OTHERS && a->top < OTHERS) {
        empty = a->top;
    }
    a->timeout_ms[empty] = timeout_ms;
    a->top = empty >= a->top ? empty + 1 : a->top;
    return empty;
}

/* Most come last: from the end. */
static void put_sorted(struct list *list, struct deadline *d)
{
    struct list_link *at = list->head.prev;

    while (at != &list->head && CONTAINER_OF(at, struct deadline, in)->at_us > d->at_us) {
        at = at->prev;
    }
    list_insert_after(at, &d->in);
}

void deadlines_put_elsewhere(struct deadlines *a, struct deadline *d, uint32_t timeout_ms)
{
    put_sorted(&a->list[list_for(a, timeout_ms)], d);
}

struct deadline *deadlines_expired(const struct deadlines *a, uint64_t now_us)
{
    for (size_t i = 0; i < a->top; i++) {
        struct list_link *l = list_front(&a->list[i]);

        if (l != NULL && CONTAINER_OF(l, struct deadline, in)->at_us <= now_us) {
            return CONTAINER_OF(l, struct deadline, in);
        }
    }
    return NULL;
}

size_t deadlines_check(const struct deadlines *a)
{
    size_t count = 0;

    for (size_t i = 0; i < DEADLINE_LISTS; i++) {
        uint64_t before_us = 0;

        for (struct list_link *l = list_front(&a->list[i]); l != NULL;
             l = list_next(&a->list[i], l)) {
            const struct deadline *d = CONTAINER_OF(l, struct deadline, in);

            ASSERT(d->at_us >= before_us && i < a->top);
            before_us = d->at_us;
            count++;
        }
    }
    return count;
}
