/* SPDX-License-Identifier: Apache-2.0
 *
 * The named values of one durable actor: key -> bytes, in the order of their keys, and what the
 * callback that runs has changed of them.
 *
 *     put, delete, put …  --named_values_seal()--> changes, as bytes, for a commit
 *                         --named_values_undo()--> as before the callback
 *
 * Pure.
 */
#ifndef NODE_DURABLE_VALUES_H
#define NODE_DURABLE_VALUES_H

#include "base/bytes.h"
#include "base/list.h"

enum {
    NAMED_VALUES_MAX = 65536,                 /* of one actor */
    NAMED_VALUES_SIZE_MAX = 64 * 1024 * 1024, /* bytes of keys and values */
};

struct named_value;

/* All zero but for named_values_init(). */
struct named_values {
    struct named_value **at; /* owned; in order; those that were deleted are here until the seal */
    size_t count;
    size_t cap;
    size_t there;        /* of these: not deleted */
    size_t size;         /* bytes of their keys and values */
    struct list changed; /* since the last seal or undo, in the order of their first change */
};

enum named_put { NAMED_PUT_DONE, NAMED_PUT_FULL };

void named_values_init(struct named_values *v);
void named_values_fini(struct named_values *v);

/* Find the value of that key; it is borrowed until it is changed, or the changes are sealed or
 * undone. False: there is none. */
bool named_values_get(const struct named_values *v, struct bytes key, struct bytes *bytes);
/* Find the first value whose key is greater than `after`; as named_values_get(). */
bool named_values_next(const struct named_values *v, struct bytes after, struct bytes *key,
                       struct bytes *bytes);
/* Find the value at that place, from 0, in the order of the keys; of a table without changes.
 * False: there are fewer. */
bool named_values_at(const struct named_values *v, size_t place, struct bytes *key,
                     struct bytes *bytes);
/* Copy the value to its key, of 1 to 255 bytes. FULL: there would be more than the limits above,
 * and nothing is changed. */
enum named_put named_values_put(struct named_values *v, struct bytes key, struct bytes bytes);
/* False: there is no such value. */
bool named_values_delete(struct named_values *v, struct bytes key);

/* True if something was changed since the last seal or undo. */
static inline bool named_values_are_changed(const struct named_values *v)
{
    return !list_empty(&v->changed);
}
/* Append what was changed to `out`, each value once, as it is now (storage/actors/changes.h). */
void named_values_seal(struct named_values *v, struct buffer *out);
/* Take all changes since the last seal back. */
void named_values_undo(struct named_values *v);

/* Fill an empty table with the values in what changes_put() wrote, in the order of the keys. False:
 * they are out of order. */
bool named_values_load(struct named_values *v, struct bytes all);

#endif
