/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the ring share and nobody else calls.
 */
#ifndef RING_INSIDE_H
#define RING_INSIDE_H

#include "ring/ring.h"

enum { SEGMENT_SIZE_MAX = 8 + RING_ROLE_MAX + 2 * RING_SEGMENT_KINDS_MAX };

/* The lookup result for the cells of `v`. */
static inline ring_hit ring_hit_of(const struct ring_vnode *v)
{
    return v->id << 12 | v->owner;
}

/* Make `list` (owned from now on, sorted by from) the ring's vnodes, and index their ids. Cells
 * and digest stay as they are. */
void ring_take_vnodes(struct ring *r, struct ring_vnode *list, size_t count);

/* Write the hit of `v` into its cells. */
void ring_fill_cells(struct ring *r, const struct ring_vnode *v);

/* Make `list` (owned from now on; each `from` is set here) the ring's segments: its cells follow,
 * new ones are nobody's. Vnodes and digest stay as they are. */
void ring_take_segments(struct ring *r, struct ring_segment *list, size_t count);

/* True if a segment begins at this cell: no vnode reaches over it. */
bool ring_is_border(const struct ring *r, uint32_t cell);

/* Encode a segment, as ring/code.c describes it; returns how many bytes. */
size_t segment_encode(const struct ring_segment *s, uint8_t out[SEGMENT_SIZE_MAX]);

#endif
