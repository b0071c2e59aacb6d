/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring: which node owns which part of the position space.
 *
 * A position is a 64-bit keyed hash of (kind, id). Its top `grid` bits name one
 * of 2^grid equal cells. A vnode is a run of cells with one explicit owner; the
 * vnodes cover every cell exactly once. Owners are data that transactions
 * commit; nothing is derived from node names. Lookup is one load from a table.
 *
 *     cell:   0        1        2        3        4        5        6        7
 *           +--------+--------+--------+--------+--------+--------+--------+--------+
 *     vnode |        v0                | v3     |             v1           | v2     |
 *     owner |        n1                | n2     |             n1           | n2     |
 *           +-----------------------------------+-----------------------------------+
 *
 * Three operations change it: SPLIT and MERGE (one owner, no key moves) and
 * MOVE (one vnode, A to B). MOVEs of distinct vnodes commute.
 *
 * Behind the 2^grid cells of the default role there may be more: segments, each
 * a run of cells of one role, for the kinds that are bound to it. A kind that is
 * bound to none hashes over the default cells. No vnode lies in two segments;
 * to everything else a cell is a cell: docs/decisions/009.
 *
 *     cell:   0 ........ 2^grid | 2^grid ....... | c         | c + 1 ..... c + 1024
 *             default role      | role "match"   | singleton | daemons
 *             HASH              | HASH           | OLDEST    | SPREAD
 *
 * A kind that is placed by its HOSTS has a segment for itself, in which ids hash as anywhere; only
 * nodes that host the kind may own its cells, as with singletons and daemons.
 *
 * Kinds that are placed TOGETHER share one segment of their role, in which the cell is the hash of
 * the id's tag: ids of one tag, of whatever kind, have one cell, and no cell is ever cut.
 *
 * Pure. Not thread safe: each thread that routes has a ring of its own.
 * Spec number RING_SPEC fixes hash, cells, encoding and digest for ever.
 */
#ifndef RING_RING_H
#define RING_RING_H

#include "base/bytes.h"
#include "base/err.h"
#include "ring/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RING_SPEC = 1,
    RING_GRID_MIN = 14, /* 2^14 cells, a 64 KiB table */
    RING_GRID_MAX = 20,
    RING_NODE_NONE = 0, /* node slots are 1..4095 */
    RING_NODES_MAX = 4095,
    RING_VNODES_MAX = (1 << 20) - 1, /* vnode ids are 0..RING_VNODES_MAX */
    RING_CELLS_MAX = 1 << 21,        /* of all segments */
    RING_SEGMENTS_MAX = 64,
    RING_SEGMENT_KINDS_MAX = 64,
    RING_SEGMENT_BITS_MAX = 16,
    RING_DAEMON_BITS = 10, /* a set of daemons has room for 2^10 */
    RING_ROLE_MAX = 31,
    RING_POINT_BITS = 40,   /* of a point, below its cell */
    RING_PART_WHOLE = 1000, /* thousandths: a node's whole weight counts for a kind */
};

/* The kinds that a node hosts, ascending. None: it did not say, and hosts all that there are. */
struct ring_kinds {
    uint16_t count;
    uint16_t kind[RING_SEGMENT_KINDS_MAX];
};

/* How the ids of a segment's kinds get their cells, and who should own them. */
enum ring_policy {
    RING_HASH = 0,     /* by hash; spread over the role's nodes by weight */
    RING_OLDEST = 1,   /* one cell for all; the role's longest-serving node */
    RING_SPREAD = 2,   /* "name/7" has cell 7; spread over the role's nodes, actor by actor */
    RING_TOGETHER = 3, /* by hash of the id's tag, the same for all kinds; spread as HASH */
    RING_HOSTS = 4,    /* by hash; one kind, spread as HASH over those nodes that host it */
};

struct ring_segment {
    enum ring_policy policy;
    uint8_t bits;  /* it has 2^bits cells: HASH, TOGETHER and HOSTS 1..16, OLDEST 0, SPREAD
                    * RING_DAEMON_BITS */
    uint32_t from; /* first cell; it begins where the one before it ends */
    uint32_t open; /* SPREAD: that many actors, in the first cells; else 0 */
    char role[RING_ROLE_MAX + 1];
    uint16_t kind[RING_SEGMENT_KINDS_MAX]; /* bound to it, ascending; HASH and TOGETHER: any */
    uint16_t kind_count;
};

struct ring_vnode {
    uint32_t id;         /* never reused while another vnode has it; < 2^20 */
    uint32_t from;       /* first cell; it ends where the next vnode starts */
    uint16_t owner;      /* node slot, or RING_NODE_NONE before the first node */
    uint64_t generation; /* stamp: fencing token of the vnode; only grows */
    uint64_t cold;       /* stamp of the last change of hands without drain */
    uint64_t txn;        /* number of the transaction that last moved it, 0 = none */
};

struct ring {
    uint8_t grid;             /* bits of a cell number */
    uint64_t version;         /* stamp of the last change applied */
    uint64_t digest[2];       /* order-independent sum over vnodes; see ring_digest() */
    struct ring_vnode *vnode; /* owned; sorted by from */
    size_t vnode_count;
    uint32_t *cell;               /* owned; cell_count entries of vnode:20 | node:12 */
    uint32_t cell_count;          /* 2^grid, and those of the segments */
    struct ring_segment *segment; /* owned; behind the default cells, in their order */
    size_t segment_count;
    uint32_t *slot; /* owned; vnode id -> index in `vnode` + 1, 0 = no such vnode */
    size_t slot_count;
    struct ring_key tags; /* ring_key_of_tags(); not in its bytes: view_set_key() */
};

/* Result of one lookup: vnode:20 | node:12. */
typedef uint32_t ring_hit;
static inline uint16_t ring_hit_node(ring_hit hit)
{
    return (uint16_t)(hit & 4095u);
}
static inline uint32_t ring_hit_vnode(ring_hit hit)
{
    return hit >> 12;
}

/* ---- positions: ring_position() of ring/hash.h ---- */

static inline uint32_t ring_cell_of(const struct ring *r, uint64_t position)
{
    return (uint32_t)(position >> (64 - r->grid));
}
static inline ring_hit ring_at(const struct ring *r, uint64_t position)
{
    return r->cell[position >> (64 - r->grid)];
}

/* ---- segments ---- */

/* The segment that a kind is bound to; NULL = the default one. */
const struct ring_segment *ring_segment_of_kind(const struct ring *r, uint16_t kind);
/* True: its ids have cells by hash, their own or their tags', spread by weight. */
static inline bool ring_is_hashed(const struct ring_segment *s)
{
    return s == NULL || s->policy == RING_HASH || s->policy == RING_TOGETHER ||
           s->policy == RING_HOSTS;
}
/* True: kinds share it, and any node of its role may own its cells; else it is of one kind, and
 * only who hosts that may. */
static inline bool ring_is_shared(const struct ring_segment *s)
{
    return s == NULL || s->policy == RING_HASH || s->policy == RING_TOGETHER;
}
/* The segment a cell lies in; NULL = the default one. */
const struct ring_segment *ring_segment_at(const struct ring *r, uint32_t cell);
static inline uint32_t ring_segment_end(const struct ring_segment *s)
{
    return s->from + ((uint32_t)1 << s->bits);
}
/* Return where an id lives, whatever segment its kind is bound to: the cell, and 40 bits of the
 * whole id's hash below. `key` is of the kind. A kind's points stay what they are while its binding
 * does. */
uint64_t ring_point(const struct ring *r, uint16_t kind, struct ring_key key, struct bytes id);
/* The cell alone, for an id whose hash under that key is known. */
uint32_t ring_cell_in(const struct ring *r, uint16_t kind, uint64_t hash, struct bytes id);
static inline uint32_t ring_cell_at(const struct ring *r, uint16_t kind, uint64_t hash,
                                    struct bytes id)
{
    return r->segment_count == 0 ? ring_cell_of(r, hash) : ring_cell_in(r, kind, hash, id);
}
/* Like ring_point(), for an id whose hash under that key is known. */
static inline uint64_t ring_point_at(const struct ring *r, uint16_t kind, uint64_t hash,
                                     struct bytes id)
{
    return (uint64_t)ring_cell_at(r, kind, hash, id) << RING_POINT_BITS |
           (hash & ((UINT64_C(1) << RING_POINT_BITS) - 1));
}
static inline uint32_t ring_point_cell(uint64_t point)
{
    return (uint32_t)(point >> RING_POINT_BITS);
}
/* The number of a daemon's id "name/7". False: it has none, or one that no set has room for. */
bool ring_daemon_number(struct bytes id, uint32_t *number);
/* Static text that says what is wrong with `s` as segment number `index` of `r` (its `from` does
 * not matter), or NULL. For an index below segment_count only `open` may change, and kinds may be
 * added. Takes segments from untrusted sources. */
const char *ring_segment_fault(const struct ring *r, size_t index, const struct ring_segment *s);
/* Append a segment, or change one; ring_segment_fault() is NULL, and the ring has vnodes. A new one
 * starts as `vnodes` runs (SPREAD: one for each open cell, one for the others) that nobody owns,
 * with generation = cold = version. */
void ring_put_segment(struct ring *r, size_t index, const struct ring_segment *s, uint32_t vnodes,
                      uint64_t version);

/* ---- life ---- */

/* Make an empty ring (no vnodes, version 0); lookups yield RING_NODE_NONE. grid is
 * 1..RING_GRID_MAX; below RING_GRID_MIN it is for tests: ring_decode() refuses it. */
void ring_init(struct ring *r, uint8_t grid);
/* Replace everything by `vnodes` equal runs owned by `owner`, generation = cold = stamp,
 * version = stamp. vnodes is 1..2^grid. */
void ring_create(struct ring *r, uint32_t vnodes, uint16_t owner, uint64_t stamp);
void ring_copy(struct ring *to, const struct ring *from); /* `to` is uninitialised */
void ring_fini(struct ring *r);

/* ---- changes ---- */

enum ring_op_kind { RING_SPLIT = 1, RING_MERGE = 2, RING_MOVE = 3 };

struct ring_op {
    enum ring_op_kind kind;
    uint32_t vnode; /* the vnode; MERGE: the left one, which stays */
    uint32_t other; /* SPLIT: id of the new right part; MERGE: the right neighbour, which goes */
    uint32_t at;    /* SPLIT: first cell of the right part */
    uint16_t from;  /* MOVE: owner now */
    uint16_t to;    /* MOVE: owner after */
};

/* Values that a change writes into the vnodes it moves. */
struct ring_stamps {
    uint64_t version;
    uint64_t txn;
    bool cold; /* without drain: `txn` stays */
};

/* ERR_OK if every op, in order, is legal on `r` (which is not changed): vnodes exist
 * (ERR_NOT_FOUND), owners match, new ids are free, MERGE sides are neighbours of one owner
 * (ERR_CONFLICT), a cut lies inside its vnode, ids are in range, a MOVE goes to another node than
 * it comes from and not to RING_NODE_NONE (ERR_INVALID). Takes ops from anyone. */
MUST_CHECK enum err ring_check(const struct ring *r, const struct ring_op *ops, size_t count);

/* Apply ops that ring_check() accepts (ASSERT otherwise). MOVEd vnodes get generation = version
 * and txn = txn, keep cold. SPLIT copies stamps; MERGE takes the greater of each. Here and below
 * `version` must not be less than the ring's. MOVEs cost O(cells of their vnodes), with a SPLIT
 * or MERGE among the ops O(vnodes + ops). */
void ring_apply(struct ring *r, const struct ring_op *ops, size_t count, uint64_t version,
                uint64_t txn);

/* Change an owner without a drain: every vnode of `owner` gets generation = cold = version (its
 * owner was registered anew). Sets the ring's version even if it owns none. */
void ring_renew_owner(struct ring *r, uint16_t owner, uint64_t version);

/* MOVEs (that ring_check() accepts) whose vnodes get generation = cold = version and keep txn:
 * reassignment of a dead node's vnodes. */
void ring_reassign(struct ring *r, const struct ring_op *moves, size_t count, uint64_t version);

/* Check the operations as ring_check() does, and tell the digest to which ring_apply() of them (or
 * with `cold` ring_reassign()) will lead. Up to 256 MOVEs cost nothing of the ring's size. */
MUST_CHECK enum err ring_foresee(const struct ring *r, const struct ring_op *ops, size_t count,
                                 const struct ring_stamps *stamps, uint64_t digest[2]);

/* Set only the version (a directory change that moved nothing). */
void ring_set_version(struct ring *r, uint64_t version);

/* ---- questions ---- */

const struct ring_vnode *ring_find(const struct ring *r, uint32_t id); /* NULL = none */
uint32_t ring_end(const struct ring *r, const struct ring_vnode *v);   /* first cell after it */
size_t ring_owned_count(const struct ring *r, uint16_t owner);
uint64_t ring_owned_cells(const struct ring *r, uint16_t owner);
/* Recompute the digest from nothing; r->digest is kept true by every change. The version is not
 * part of it, segments are. Its definition is in ring/digest.h. */
void ring_digest(const struct ring *r, uint64_t digest[2]);
/* Abort unless every invariant holds: sorted, covering, ids unique, cells and digest true. O(ring).
 */
void ring_check_invariants(const struct ring *r);

/* ---- bytes: canonical, little endian, CRC at the end ---- */

void ring_encode(const struct ring *r, struct buffer *out);
/* `r` is uninitialised; on error (ERR_CORRUPT; ERR_FOREIGN: another RING_SPEC) it is left an
 * empty ring, to be ring_fini()ed too. Never trusts the bytes. */
MUST_CHECK enum err ring_decode(struct ring *r, struct bytes in);

/* True: whoever hosts these hosts `kind`. */
bool ring_kinds_have(const struct ring_kinds *k, uint16_t kind);
/* Add one, up to RING_SEGMENT_KINDS_MAX; it may be there already. False: there is no room. */
bool ring_kinds_add(struct ring_kinds *k, uint16_t kind);
/* True: who hosts these may own cells of the segment (NULL: the default one), if it has its role:
 * one that is not shared is of one kind, which it must host; in others what it lacks waits for it.
 */
bool ring_kinds_fit(const struct ring_kinds *k, const struct ring_segment *s);

#endif
