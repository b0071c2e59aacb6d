/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose deadline is over? Unfinished requests, a list for each of the time-outs
 * in use: requests of one time-out end in the order they came. A program has a
 * handful of them; what is beyond shares a list that is kept sorted.
 */
#ifndef ROUTE_DEADLINES_H
#define ROUTE_DEADLINES_H

#include "base/list.h"
#include "route/pending.h"

enum { DEADLINE_LISTS = 16 };

struct deadlines {
    struct list list[DEADLINE_LISTS];    /* struct pending, in_deadlines; the last is for all other
                                            time-outs */
    uint32_t timeout_ms[DEADLINE_LISTS]; /* of a list with requests */
    size_t top;                          /* lists ever used */
};

void deadlines_init(struct deadlines *a);
/* Set p->deadline_us to now and `timeout_ms`; time never goes back. */
void deadlines_put(struct deadlines *a, struct pending *p, uint32_t timeout_ms);
/* NULL = none is over. It stays where it is: list_remove(&p->in_deadlines). */
struct pending *deadlines_expired(const struct deadlines *a, uint64_t now_us);
/* Abort unless every list is in order; how many there are in all. */
size_t deadlines_check(const struct deadlines *a);

#endif
