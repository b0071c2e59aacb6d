/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring's digest: the sum of one 128-bit hash per vnode.
 *
 * A sum does not depend on order, so it follows a change in O(1). It finds
 * rings that differ by mistake; it is no authenticator, its keys are public.
 *
 * Fixed by RING_SPEC for ever. A vnode is these 40 little-endian bytes:
 *
 *     0        4        8        12       16       24       32       40
 *     | id u32 | from   | end    | owner  | generat| cold   | txn    |
 *
 * digest[0] is the sum modulo 2^64 of their SipHash-1-3 under the 16 ASCII
 * bytes "ringhold digest0" as key, digest[1] the same under "ringhold digest1".
 * An empty ring's digest is 0, 0.
 *
 * A segment adds the hash of its bytes as ring/code.c lays them out, behind its
 * first cell as a u32, under "ringhold segment" and "ringhold segmenu".
 */
#ifndef RING_DIGEST_H
#define RING_DIGEST_H

#include "ring/ring.h"

/* `end` is the first cell after the vnode. */
void digest_add(uint64_t digest[2], const struct ring_vnode *v, uint32_t end);
void digest_remove(uint64_t digest[2], const struct ring_vnode *v, uint32_t end);

void digest_add_segment(uint64_t digest[2], const struct ring_segment *s);
void digest_remove_segment(uint64_t digest[2], const struct ring_segment *s);

#endif
