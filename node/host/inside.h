/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's inside, shared by its files: a list of parts, each with a header of its own, whose
 * fields are written in the part's own files alone (tools/parts). What stands here belongs to
 * host.c, which runs a step. README.md has the drawing.
 *
 * Each handler may emit effects; none calls back into host_step().
 */
#ifndef NODE_HOST_INSIDE_H
#define NODE_HOST_INSIDE_H

#include "base/span.h"
#include "node/host/alarms.h"
#include "node/host/autostart.h"
#include "node/host/backpressure.h"
#include "node/host/cells.h"
#include "node/host/costs.h"
#include "node/host/forwards.h"
#include "node/host/inspection.h"
#include "node/host/lease_policy.h"
#include "node/host/links.h"
#include "node/host/membership.h"
#include "node/host/prefetch.h"
#include "node/host/quarantine.h"
#include "node/host/remember.h"
#include "node/host/streams.h"
#include "node/host/times.h"
#include "node/host/topology.h"
#include "node/host/txns.h"
#include "node/host/work.h"

struct host {
    struct host_config config;
    struct host_effects *out; /* of this step */
    size_t record_at;         /* host_record() */
    uint64_t now_us;
    uint32_t now_ms;  /* the same, modulo 2^32 */
    uint64_t wall_us; /* of this step; 0 = not known */
    bool judged;      /* the lease has not changed since it was judged */
    bool to_flush;    /* it is over, and its actors are the shell's to flush and end */

    struct membership membership;
    struct topology topology;
    struct host_links links;
    struct txns txns;
    struct host_cells cells;
    struct costs costs;
    struct actors actors;
    struct orders orders;
    struct work work;
    struct requests requests;
    struct backpressure backpressure;
    struct streams streams;
    struct forwards forwards;
    struct autostart autostart;
    struct remember remember;
    struct alarm_scan alarms;
    struct lease_policy lease_policy;
    struct quarantine_watch quarantine;
    struct inspection inspection;
    struct prefetch prefetch;
    struct times times;
    struct spans spans; /* traced.c: of handlers, by the tickets of their runs */
};

/* The cell is this node's, by the ring that the view has. */
static inline bool host_owns(const struct host *h, uint32_t cell)
{
    return ring_hit_node(h->topology.view.ring.cell[cell]) == h->membership.slot;
}

struct host_effect *host_emit(struct host *h, enum host_effect_type type);
/* The actor is to do that. */
struct host_effect *host_submit(struct host *h, struct actor *a, enum verb verb);
/* Attach a copy of the bytes, behind those attached before if nothing else came between. */
void host_emit_bytes(struct host *h, struct host_effect *e, struct bytes bytes);
/* Return the buffer for one record, which host_send_record() then sends. */
struct buffer *host_record(struct host *h);
void host_send_record(struct host *h, uint64_t peer, int frame_type);
/* Stop everything and ask to exit. */
void host_stop(struct host *h, enum host_exit_why why);
/* Stop all actors, drop all that waits and all transactions. */
void host_drop_all(struct host *h, enum discard_why why);

#endif
