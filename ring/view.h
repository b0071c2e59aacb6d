/* SPDX-License-Identifier: Apache-2.0
 *
 * A view: the configuration at one version, as every process holds it: the
 * ring, the directory of nodes, the quarantine, the cluster's hash key and the
 * era.
 *
 * Coordinators compute each change as a Delta and apply it to their own view by
 * view_apply(); nodes and gateways apply the very same Delta by the very same
 * code. A view only moves up: holes 6 and 58.
 *
 * Pure.
 */
#ifndef RING_VIEW_H
#define RING_VIEW_H

#include "base/err.h"
#include "base/fleet_id.h"
#include "ring/quarantine.h"
#include "ring/ring.h"
#include "wire/control.pb-c.h"

enum { VIEW_NAME_MAX = 63, VIEW_ADDRESS_MAX = 127, VIEW_WEIGHT_MAX = 1000 };

struct view_member {
    uint16_t slot; /* 1..RING_NODES_MAX */
    char name[VIEW_NAME_MAX + 1];
    char address[VIEW_ADDRESS_MAX + 1]; /* where it takes links */
    uint64_t incarnation;
    uint32_t weight; /* up to VIEW_WEIGHT_MAX */
    bool leaving;    /* draining: gets nothing new */
    char role[RING_ROLE_MAX + 1];
    struct ring_kinds kinds;
};

struct view {
    struct ring ring;    /* ring.version is the view's version; 0 = nothing known yet */
    struct ring_key key; /* 0, 0 = not known: view_apply() says VIEW_GAP until view_load() */
    uint64_t era;
    struct fleet_id fleet;      /* whose configuration it is; no other's is taken */
    struct view_member *member; /* owned; sorted by slot */
    size_t member_count;
    struct quarantine quarantine;
};

enum view_result {
    VIEW_APPLIED,
    VIEW_OLD,     /* not newer than mine: ignored */
    VIEW_GAP,     /* starts from a version that is not mine: fetch */
    VIEW_DIFFERS, /* digest or content does not fit: fetch everything; the view did not change */
};

void view_init(struct view *v, uint8_t grid);
void view_copy(struct view *to, const struct view *from); /* `to` is uninitialised */
void view_fini(struct view *v);
/* The fleet's key is this. */
void view_set_key(struct view *v, struct ring_key key);

/* Replace all by a whole configuration, if it is newer or `force`. VIEW_DIFFERS: it does not
 * decode, a vnode's owner is none of its members, or it is another fleet's. */
enum view_result view_load(struct view *v, const Rh__Config *config, bool force);
/* The fleet that the configuration belongs to. */
static inline struct fleet_id view_fleet(const Rh__Config *config)
{
    return (struct fleet_id){config->fleet_high, config->fleet_low};
}
/* Apply one change, all of it or nothing. Costs O(ring) unless it is nothing but up to 256 MOVEs,
 * or leaves the ring as it is. */
enum view_result view_apply(struct view *v, const Rh__Delta *delta);
/* Fill in where `delta` (its version is set) starts from and the digest that it leads to, so that
 * view_apply() takes it; for whoever makes a change. False, and an unfinished delta: it is not
 * legal. */
bool view_seal(const struct view *v, Rh__Delta *delta);

/* Fill `config` with what view_load() takes. Everything it points to is owned by `config` and
 * freed by view_config_fini(). */
void view_config(const struct view *v, Rh__Config *config);
void view_config_fini(Rh__Config *config);

/* NULL = no such member. */
const struct view_member *view_member(const struct view *v, uint16_t slot);
const struct view_member *view_member_named(const struct view *v, const char *name);

/* Owner and vnode of an entity; node is RING_NODE_NONE before the first node of its kind's role. */
ring_hit view_lookup(const struct view *v, uint16_t kind, struct bytes id);
/* Like view_lookup(), for an entity whose hash by its kind's key is known: ring_position(). */
static inline ring_hit view_at(const struct view *v, uint16_t kind, uint64_t hash, struct bytes id)
{
    return v->ring.cell[ring_cell_at(&v->ring, kind, hash, id)];
}

/* Convert between the wire's ops and the ring's. Returns owned memory (mem_free); NULL when an op
 * is out of range. */
struct ring_op *view_ops(Rh__RingOp *const *ops, size_t count);
/* The other way. Returns owned memory that proto_free() of the message it is put into frees. */
Rh__RingOp **view_wire_ops(const struct ring_op *ops, size_t count);
/* Make a segment to put into a Delta, likewise. */
Rh__Segment *view_wire_segment(size_t index, const struct ring_segment *s, uint32_t vnodes);

#endif
