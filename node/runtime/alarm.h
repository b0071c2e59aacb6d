/* SPDX-License-Identifier: Apache-2.0
 *
 * Alarms: what is due next? A binary heap of times, ties in the order they were
 * set; an alarm knows its place, so it can be taken out in O(log n).
 *
 * Pure. The alarm lives in the caller's item.
 */
#ifndef NODE_RUNTIME_ALARM_H
#define NODE_RUNTIME_ALARM_H

#include <stddef.h>
#include <stdint.h>

struct alarm {
    uint64_t at_us;
    uint64_t order; /* of setting */
    size_t place;   /* in the heap, from 1; 0 = not set */
};

/* All zero is a valid empty set. */
struct alarms {
    struct alarm **heap; /* owned; the alarms are borrowed while set */
    size_t count;
    size_t cap;
    uint64_t last_order;
};

/* Set an alarm that is not set. */
void alarms_set(struct alarms *s, struct alarm *a, uint64_t at_us);
/* Take it out, if it is set. */
void alarms_unset(struct alarms *s, struct alarm *a);
/* Take out and return the earliest one if it is due, else NULL. */
struct alarm *alarms_due(struct alarms *s, uint64_t now_us);
void alarms_fini(struct alarms *s);

#endif
