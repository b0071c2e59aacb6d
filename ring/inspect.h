/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at a configuration from outside: does the ring contradict itself, and
 * are two processes' configurations really the same?
 *
 * ring_check_invariants() aborts, for there a fault is our own bug that must not
 * go on; these functions tell, so that `ringhold check` can name the process.
 *
 * Pure.
 */
#ifndef RING_INSPECT_H
#define RING_INSPECT_H

#include "ring/hash.h"
#include "ring/view.h"

enum { RING_FAULT_SIZE = 128 };

/* Write into `fault` what is wrong with the ring; "" = nothing. `sum` gets its digest, added up
 * anew: the digest that the ring keeps may be right while the ring is not. O(cells). */
void ring_inspect(const struct ring *r, uint64_t sum[2], char fault[RING_FAULT_SIZE]);

#ifdef RINGHOLD_INJECT
/* Plant a fault: the cells of the first vnode say that they are the last one's. */
void ring_spoil(struct ring *r);
#endif

/* Fingerprint of the directory, the quarantine and the cluster's key, which it does not give away:
 * equal if both are. For comparing, not for keeping: it may change with the program. */
uint64_t view_digest(const struct view *v);

/* Mix in any bytes, and how many they are. */
void digest_bytes(struct siphash *s, struct bytes bytes);

#endif
