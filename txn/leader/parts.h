/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts: which part of its weight does a node take of the kinds that are placed by their hosts
 * (decision 083)? Nodes tell with each renewal; who has not told since I lead takes nothing new.
 *
 * Pure.
 */
#ifndef TXN_LEADER_PARTS_H
#define TXN_LEADER_PARTS_H

#include "ring/plan.h"
#include "wire/control.h"

struct coordinator;
struct state_node;

/* What a node told; of a kind that is not there it takes all. */
struct told_parts {
    uint16_t count;
    struct plan_part part[RING_SEGMENT_KINDS_MAX];
};

void parts_note(struct told_parts *own, const Rh__Renew *in);
/* Changes with what was told. */
uint64_t parts_mix(const struct told_parts *own);
/* True: the node in the slot did not renew since I lead, or since it registered. */
bool parts_untold(const struct coordinator *c, uint16_t slot);
/* Say of the plan's node what `node` told. Borrows it until it tells again. */
void parts_set(const struct coordinator *c, const struct state_node *node, struct plan_node *to);

#endif
