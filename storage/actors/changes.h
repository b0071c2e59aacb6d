/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of an actor's named values as bytes: what a commit brings to its store, and the values
 * that the store gives back when it loads the actor.
 *
 * Pure. The bytes stay in one process, between its workers and its store; they are in no file and
 * on no wire.
 */
#ifndef STORAGE_ACTORS_CHANGES_H
#define STORAGE_ACTORS_CHANGES_H

#include "base/bytes.h"

#include <stdbool.h>

enum {
    CHANGES_KEY_MAX = 255,           /* bytes of a key, 1 or more */
    CHANGES_VALUE_MAX = 1024 * 1024, /* bytes of a value */
};

/* One value, as it is from now on. Borrowed. */
struct value_change {
    struct bytes key;
    bool gone; /* there is no such value any more; `bytes` is empty */
    struct bytes bytes;
};

/* Append the change to `out`. */
void changes_put(struct buffer *out, const struct value_change *c);
/* Take the next change off the front of `all`, bytes of changes_put(); it borrows them. False: that
 * was all. */
bool changes_next(struct bytes *all, struct value_change *c);

#endif
