/* SPDX-License-Identifier: Apache-2.0
 *
 * Inspection: what does the node tell an operator, and what may an operator have it do?
 *
 * inspect.c answers `ringhold check` and does what `ringhold fix` asks; trace.c writes what
 * `ringhold trace` follows; residents.c answers `ringhold actors`.
 */
#ifndef NODE_HOST_INSPECTION_H
#define NODE_HOST_INSPECTION_H

#include "node/host/requests.h"

/* What one question of `ringhold actors` may cost a loop, however many actors there are. */
enum {
    RESIDENTS_ROWS_MAX = 1000,
    RESIDENTS_BUCKETS_MAX = 4096, /* of the table of actors, in each of which is one, on average */
};

struct inspection {
    const struct host_profile_row *profile; /* borrowed; host_set_profile() */
    size_t profile_count;
    const struct router_stats *calls; /* borrowed; host_set_calls() */
    struct buffer trace;              /* of the last note that was traced */
};

/* ---- inspect.c ---- */

/* Tell how this node is. Changes nothing. */
void host_inspect(struct host *h, int coordinator, const Rh__Inspect *question);
/* An operator has it set right. */
void host_repair(struct host *h, const Rh__Repair *repair);

/* ---- residents.c ---- */

/* Tell who lives here: a page of those that are wanted, and the cursor of the next one. Of the
 * pages from the first to the last, each actor that lives all that time is in exactly one. Changes
 * nothing. */
void host_list_residents(struct host *h, int coordinator, const Rh__Actors *question);

/* ---- trace.c ---- */

/* True if an operator follows the request. */
bool trace_is(const struct request_record *r);
/* Append to the admission's trace what this node did, and for how long the request was here. The
 * result is borrowed until the next call. */
struct bytes trace_stamp(struct host *h, const struct admission *in, uint8_t did);
/* Append to the answer's trace how long its actor took. The result is borrowed likewise. */
struct bytes trace_ran(struct host *h, struct bytes hops, uint64_t began_us);

#endif
