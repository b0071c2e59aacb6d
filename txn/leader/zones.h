/* SPDX-License-Identifier: Apache-2.0
 *
 * Zones: in which may a role's cells lie? An operator says so to each coordinator (--role-zone); it
 * is a wish for where, never a reason to serve nowhere.
 */
#ifndef TXN_LEADER_ZONES_H
#define TXN_LEADER_ZONES_H

#include "ring/plan.h"
#include "txn/leader/coordinator.h"

/* True: the role is kept in that zone, or in none. */
bool zones_has(const struct coordinator_config *config, const char *role, const char *zone);
/* Have those of the nodes leave, for the planner, that are outside of their role's zones. Where
 * none of a role stays inside, all may have its cells. */
void zones_keep(const struct coordinator_config *config, struct plan_node *nodes, size_t count);

#endif
