/* SPDX-License-Identifier: Apache-2.0
 *
 * What an actor pushed and its client has not acknowledged: the last pushes of
 * its bond, without a gap, to be sent again when the client comes back.
 *
 * At most BOND_UNACKED_MAX bytes; the oldest goes first. A push that is too large
 * for that takes all before it along: what is kept has no gap.
 *
 * Pure.
 */
#ifndef NODE_RUNTIME_UNACKED_PUSHES_H
#define NODE_RUNTIME_UNACKED_PUSHES_H

#include "wire/session.h"

/* All zero is a valid empty one. */
struct unacked_pushes {
    struct buffer bytes; /* each u32 size, payload: as bonds travel */
    size_t at;           /* bytes of it that are dropped */
    uint32_t count;
};

void unacked_pushes_fini(struct unacked_pushes *u);

/* Keep the payload of one push. */
void unacked_pushes_put(struct unacked_pushes *u, struct bytes payload);
/* Drop those to number `got`; the newest has `last`. */
void unacked_pushes_drop(struct unacked_pushes *u, uint64_t last, uint64_t got);
/* The payloads that are kept, the oldest first: read them with unacked_pushes_next(). Borrowed
 * until the next call. */
struct bytes unacked_pushes_bytes(const struct unacked_pushes *u);
/* Take those that came with a bond; it is empty. */
void unacked_pushes_load(struct unacked_pushes *u, struct bytes bytes);

#endif
