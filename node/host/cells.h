/* SPDX-License-Identifier: Apache-2.0
 *
 * Cells: what does the node know of each of the ring's cells, and of each kind that it hosts, where
 * its cells begin and who of it is idle?
 */
#ifndef NODE_HOST_CELLS_H
#define NODE_HOST_CELLS_H

#include "node/books/idle.h"
#include "node/host/hold.h"
#include "node/host/host.h"

#include <ringhold.h>

/* State that the node keeps for each cell beside the ring. */
struct cell_state {
    struct hold *hold; /* it is held: requests wait there; NULL = free */
    uint64_t since_us; /* when it came, if it is mine, or was given away last; 0 = never */
    uint64_t fence;    /* greatest that an actor here was activated under */
    uint32_t requests; /* begun here since that was told last */
    bool mine;         /* by the configuration adopted last */
};

/* What a cell costs beside its requests. Not in its state, which each request reads: that is 32
 * bytes, so its place takes no multiplication. */
struct cell_cost {
    uint32_t busy_us; /* its actors ran for so long, as far as that is known by actor, since that
                         was told last */
    uint32_t memory;  /* that its live actors take, in CELL_MEMORY_UNITs */
};

enum { CELL_MEMORY_UNIT = 256 /* bytes: about what an actor takes that has nothing */ };

struct kind_state {
    uint16_t kind;
    uint32_t first_cell; /* of its segment, when this incarnation began */
    struct ring_key key;
    const struct host_kind *how; /* the configuration's */
    bool any;                    /* kind_takes_any(how) */
    uint8_t row;                 /* of its times */
    bool at_once;                /* brief; and not durable, whose answers wait and have names */
    struct idle idle;
};
static inline bool kind_is_always(const struct kind_state *kind)
{
    return kind->how->remembered || kind->how->always || kind->how->remember;
}

struct host_cells {
    struct kind_state *kind;  /* owned, as many as config.kind_count */
    struct cell_state *state; /* owned, one per cell; NULL = never registered */
    struct cell_cost *cost;   /* owned, likewise */
    uint32_t mine_count;      /* cells of which `mine` is true */
    uint64_t doubles_total;   /* I1: times an actor lived here that had no right to */
};

/* A range of cells. */
struct span {
    uint32_t from;
    uint32_t to; /* not of it */
};

void cells_init(struct host_cells *c, const struct host_config *config);
void cells_fini(struct host_cells *c);
/* The node was registered: lay out all that depends on the key and the grid of the fleet. */
void cells_lay_out(struct host *h);
/* A role, a singleton or a set of daemons is new: the ring has more cells. */
void cells_grow(struct host *h);
/* Forget what is known of the cells. */
void cells_forget(struct host *h);
/* The configuration changed: note which cells are mine. True: some are no longer. */
bool cells_mark(struct host *h, struct span at);
/* A request for an actor of that cell begins. */
static inline void cells_count_request(struct host_cells *c, uint32_t cell)
{
    c->state[cell].requests++;
}
/* An actor of that cell ran for so long. */
void cells_count_time(struct host_cells *c, uint32_t cell, uint64_t us);
/* The actor gets an instance, or has none any more. */
void cells_count_live(struct host *h, const struct actor *a, bool lives);
/* Count the requests for the cell, and the time of its actors, from 0. */
void cells_forget_costs(struct host_cells *c, uint32_t cell);
/* What an actor of that kind takes, in CELL_MEMORY_UNITs. */
uint32_t cells_memory_of(const struct host *h, uint16_t kind);
/* From now on the cell is held by that transaction; NULL = by none. */
void cells_hold(struct host *h, uint32_t cell, struct hold *hold);
/* The actor's new fence is the greatest of its cell: I2, a fence never goes down (hole 32). */
void cells_note_fence(struct host *h, const struct actor *a);
/* Return the first cell of the segment that the kind is bound to. */
uint32_t cells_first_of(const struct ring *r, uint16_t kind);
/* An actor lives here that has no right to. */
static inline void cells_count_double(struct host_cells *c)
{
    c->doubles_total++;
}

/* True: any id may be asked; false: only those of a singleton or a set. */
static inline bool kind_takes_any(const struct host_kind *kind)
{
    return kind->placement != RH_PLACE_SINGLETON && kind->placement != RH_PLACE_DAEMONS;
}

/* Find what is known of a kind; NULL: it is not hosted here. */
struct kind_state *host_kind_find(const struct host *h, uint16_t kind);
uint64_t host_position(const struct host *h, uint16_t kind, struct bytes id);
bool host_has_kind(const struct host *h, uint16_t kind);
/* The state of a kind that is hosted here, or NULL. */
struct kind_state *host_kind_of(const struct host *h, uint16_t kind);

#endif
