/* SPDX-License-Identifier: Apache-2.0
 *
 * The vnodes while a plan is made: a copy that is cut, given and joined, and
 * the list of what was done to it.
 */
#ifndef RING_PIECES_H
#define RING_PIECES_H

#include "ring/plan.h"

struct piece {
    uint32_t id;
    uint32_t from; /* first cell */
    uint32_t size; /* cells, > 0 */
    uint16_t owner;
    bool part;     /* of a vnode that is cut only to travel: it is joined again with its left */
    bool apart;    /* by a wish: nothing is joined with it */
    bool fixed;    /* by a wish: it stays with its owner */
    uint32_t move; /* its MOVE + 1 in `moves`: it stays where it is now; 0 = not moved */
};

/* One op and whose it is: source and target of a MOVE; else both are the owner. */
struct step {
    struct ring_op op;
    uint16_t source;
    uint16_t target;
    uint32_t cells; /* MOVE: that change owner */
};

struct steps {
    struct step *step; /* owned */
    size_t count;
    size_t cap;
};

struct pieces {
    struct piece *piece; /* owned; one segment's in their order, then those cut off */
    size_t count;
    size_t cap;
    uint8_t *used; /* owned; vnode id -> 1 if taken */
    uint32_t free; /* no id below it is free */
    struct steps splits;
    struct steps moves;
    struct steps merges;
    uint64_t moved_cells;
    size_t parts; /* of all segments; see pieces_slice() */
};

/* Make an empty book: no pieces yet, and no steps. */
void pieces_init(struct pieces *p, const struct ring *r);
void pieces_fini(struct pieces *p);

/* Take up the vnodes of the cells [from, end), one segment; what was done to another one stays in
 * the list of steps. */
void pieces_load(struct pieces *p, const struct ring *r, uint32_t from, uint32_t end);

/* Cut what the wishes are about out of the pieces that are loaded, and mark it apart; `at` is
 * called with each such piece. */
typedef void pieces_at(void *context, uint32_t index, const struct plan_wish *wish);
void pieces_set_apart(struct pieces *p, const struct plan_wishes *wishes, pieces_at *at,
                      void *context);

/* SPLIT `size` cells (0 < size < its own) off the right of a piece; returns the index of the new
 * one, which has the lowest free id, and is fixed and apart as the other is. */
uint32_t pieces_cut(struct pieces *p, uint32_t index, uint32_t size);

/* MOVE a piece that this plan has not moved yet. */
void pieces_give(struct pieces *p, uint32_t index, uint16_t target);

/* Cut what moves and has more than cells_of[its source] cells (0: as it is) into parts of about one
 * size, each with a MOVE of its own; all count as the one piece that they become again. */
void pieces_slice(struct pieces *p, const uint32_t *cells_of);

/* MERGE the parts of what was sliced, and neighbours of one owner, the smallest pairs first and
 * none above `most` cells, while there are more than `enough` pieces that are not apart. Ends the
 * use of `p`: indexes change. */
void pieces_join(struct pieces *p, size_t enough, uint32_t most);

#endif
