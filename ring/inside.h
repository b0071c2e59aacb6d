/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the ring share and nobody else calls.
 */
#ifndef RING_INSIDE_H
#define RING_INSIDE_H

#include "ring/ring.h"

/* What the cells of `v` hold. */
static inline ring_hit ring_hit_of(const struct ring_vnode *v)
{
    return v->id << 12 | v->owner;
}

/* Make `list` (owned from now on, sorted by from) the ring's vnodes, and index their ids. Cells
 * and digest stay as they are. */
void ring_take_vnodes(struct ring *r, struct ring_vnode *list, size_t count);

/* Write the hit of `v` into its cells. */
void ring_fill_cells(struct ring *r, const struct ring_vnode *v);

#endif
