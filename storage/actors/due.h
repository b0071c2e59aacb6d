/* SPDX-License-Identifier: Apache-2.0
 *
 * Alarms that are due, as bytes: what a store answers to DUE, and from where it is asked to go on
 * (store.h). They are in the order of their times, of one time by id and name.
 *
 * Pure.
 */
#ifndef STORAGE_ACTORS_DUE_H
#define STORAGE_ACTORS_DUE_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

enum { STORE_DUE_MAX = 1024 /* alarms of one page; fewer: there are no more */ };

/* An alarm of the kind that was asked for. Borrowed. */
struct due_alarm {
    uint64_t due_ms;   /* since 1970 */
    struct bytes id;   /* of its actor, 1 to 255 bytes … */
    struct bytes name; /* … and its own, likewise */
};

/* Append the alarm to `out`. */
void due_put(struct buffer *out, const struct due_alarm *d);
/* Take the next alarm off the front of `all`, bytes of due_put(); it borrows them. False: that was
 * all. */
bool due_next(struct bytes *all, struct due_alarm *d);

#endif
