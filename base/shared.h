/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that several own, kept once: freed when the last one lets go of them.
 * One thread.
 */
#ifndef BASE_SHARED_H
#define BASE_SHARED_H

#include "base/bytes.h"

struct shared {
    uint64_t number; /* the maker's: tells it from others */
    size_t owners;
    size_t size;
    uint8_t data[]; /* flexible */
};

/* Room for `size` bytes, for its maker to fill. It has one owner. */
struct shared *shared_new(size_t size);
/* Add an owner. */
struct shared *shared_hold(struct shared *s);
/* Remove an owner; takes NULL. */
void shared_drop(struct shared *s);

static inline struct bytes shared_bytes(const struct shared *s)
{
    return (struct bytes){s->data, s->size};
}

#endif
