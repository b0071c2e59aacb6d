/* SPDX-License-Identifier: Apache-2.0
 *
 * How the state builds the Delta of a change. All of it is heap memory that
 * proto_free() frees.
 */
#ifndef TXN_STATE_DELTA_H
#define TXN_STATE_DELTA_H

#include "txn/state/state.h"

/* Returns owned; `version` and `txn` (0 = none) as drawn. */
Rh__Delta *delta_new(uint64_t version, uint64_t txn);
void delta_free(Rh__Delta *delta); /* takes NULL */
Rh__Delta *delta_copy(const Rh__Delta *delta);

void delta_ops(Rh__Delta *delta, const struct ring_op *ops, size_t count);
void delta_change(Rh__Delta *delta, const struct state_node *node);
void delta_remove(Rh__Delta *delta, uint16_t slot);
/* `vnodes`: of a new segment; see ring_put_segment(). */
void delta_segment(Rh__Delta *delta, size_t index, const struct ring_segment *s, uint32_t vnodes);

/* The actor leaves the quarantine, or comes into it. */
void delta_release(Rh__Delta *delta, const struct quarantined *actor);
void delta_quarantine(Rh__Delta *delta, const struct quarantined *actor);

/* Make a message about a node, every text copied. */
Rh__Member *delta_member(const struct state_node *node);

#endif
