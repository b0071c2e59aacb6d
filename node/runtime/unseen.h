/* SPDX-License-Identifier: Apache-2.0
 *
 * What an actor pushed and its client has not acknowledged: the last pushes of
 * its bond, without a gap, to be sent again when the client comes back.
 *
 * At most BOND_UNSEEN_MAX bytes; the oldest goes first. A push that is too large
 * for that takes all before it along: what is kept has no gap.
 *
 * Pure.
 */
#ifndef NODE_RUNTIME_UNSEEN_H
#define NODE_RUNTIME_UNSEEN_H

#include "wire/session.h"

/* All zero is a valid empty one. */
struct unseen {
    struct buffer bytes; /* each u32 size, payload: as bonds travel */
    size_t at;           /* bytes of it that are dropped */
    uint32_t count;
};

void unseen_fini(struct unseen *u);

/* It was pushed. */
void unseen_put(struct unseen *u, struct bytes payload);
/* Drop those to number `got`; the newest has `last`. */
void unseen_drop(struct unseen *u, uint64_t last, uint64_t got);
/* Those that are kept, the oldest first: unseen_next(). Borrowed until the next call. */
struct bytes unseen_bytes(const struct unseen *u);
/* Take those that came with a bond; it is empty. */
void unseen_load(struct unseen *u, struct bytes bytes);

#endif
