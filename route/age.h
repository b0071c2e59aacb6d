/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose deadline is over? Unfinished requests, a list for each of the time-outs
 * in use: requests of one time-out end in the order they came. A program has a
 * handful of them; what is beyond shares a list that is kept sorted.
 */
#ifndef ROUTE_AGE_H
#define ROUTE_AGE_H

#include "base/list.h"
#include "route/pending.h"

enum { AGES = 16 };

struct ages {
    struct list list[AGES];    /* struct pending, in_age; the last is for all other time-outs */
    uint32_t timeout_ms[AGES]; /* of a list with requests */
    size_t top;                /* lists ever used */
};

void ages_init(struct ages *a);
/* p->deadline_us is now and `timeout_ms`; time never goes back. */
void ages_put(struct ages *a, struct pending *p, uint32_t timeout_ms);
/* NULL = none is over. It stays where it is: list_remove(&p->in_age). */
struct pending *ages_expired(const struct ages *a, uint64_t now_us);
/* Abort unless every list is in order; how many there are in all. */
size_t ages_check(const struct ages *a);

#endif
