/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose deadline is over? Unfinished requests, a list for each of the time-outs
 * in use: requests of one time-out end in the order they came. A program has a
 * handful of them; what is beyond shares a list that is kept sorted.
 */
#ifndef ROUTE_DEADLINES_H
#define ROUTE_DEADLINES_H

#include "base/list.h"

#include <stddef.h>
#include <stdint.h>

enum { DEADLINE_LISTS = 16 };

/* Of a request; in its struct. */
struct deadline {
    struct list_link in;
    uint64_t at_us;
};

struct deadlines {
    struct list list[DEADLINE_LISTS];    /* struct deadline; the last is for all other time-outs */
    uint32_t timeout_ms[DEADLINE_LISTS]; /* of a list with requests */
    size_t top;                          /* lists ever used */
};

void deadlines_init(struct deadlines *a);
/* deadlines_put(), for another time-out than that of the first list, or not at its end. */
void deadlines_put_elsewhere(struct deadlines *a, struct deadline *d, uint32_t timeout_ms);
/* Make it end in `timeout_ms` from now; time never goes back. */
static inline void deadlines_put(struct deadlines *a, struct deadline *d, uint64_t now_us,
                                 uint32_t timeout_ms)
{
    struct list *first = &a->list[0]; // most requests have the time-out that the first one had
    struct list_link *last = first->head.prev;

    d->at_us = now_us + (uint64_t)timeout_ms * 1000;
    if (__builtin_expect(a->top > 0 && a->timeout_ms[0] == timeout_ms, true) &&
        (last == &first->head || CONTAINER_OF(last, struct deadline, in)->at_us <= d->at_us)) {
        list_push_back(first, &d->in);
    } else {
        deadlines_put_elsewhere(a, d, timeout_ms);
    }
}
/* NULL = none is over. It stays where it is: list_remove(&d->in). */
struct deadline *deadlines_expired(const struct deadlines *a, uint64_t now_us);
/* Abort unless every list is in order; how many there are in all. */
size_t deadlines_check(const struct deadlines *a);

#endif
