/* SPDX-License-Identifier: Apache-2.0
 *
 * What many histories did, added up.
 */
#ifndef SIM_CHECK_TOTALS_H
#define SIM_CHECK_TOTALS_H

#include "sim/raft/group.h"

struct totals {
    uint64_t seeds;
    uint64_t profile[PROFILES];
    uint64_t players; /* seeds that have them */
    struct bank_counts bank;
    uint64_t virtual_us;
    uint64_t events;
    uint64_t moves;
    uint64_t commits;
    uint64_t aborts;
    uint64_t reassigned;
    uint64_t crashes[3]; /* nodes, coordinators, gateways */
    uint64_t power_losses;
    uint64_t pauses;
    uint64_t pauses_beyond[PAUSE_KEEPS];
    uint64_t stops_of_all;
    uint64_t twins;
    uint64_t stale; /* ends of links dropped for it */
    uint64_t cuts;
    uint64_t restores;
    uint64_t other_leases;
    uint64_t maintenances;
    uint64_t extended;
    uint64_t floods;
    uint64_t old_copies;
    uint64_t noticed;
    uint64_t hands_asked;
    uint64_t hands_done;
    uint64_t balanced; /* vnodes that moved for what they cost */
    uint64_t leader_changes;
    uint64_t groups; /* of shipped replicas */
    struct group_counts voters;
    uint64_t resets;
    uint64_t hits;
    uint64_t lulls;
    uint64_t requests;
    uint64_t nested;
    uint64_t answers[REPLY_DEADLOCK + 1];
    uint64_t store_refused;
    uint64_t store_doubts;
    struct histogram hold;
    struct histogram stall;
};

/* Add what one history did. */
void totals_count(struct totals *t, const struct fleet *f);
/* Add what another worker counted. */
void totals_add(struct totals *t, const struct totals *more);
void totals_print(const struct totals *t, double seconds);

#endif
