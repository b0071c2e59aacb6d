/* SPDX-License-Identifier: Apache-2.0
 *
 * Fence: which nodes fell silent, and when has what they own surely no owner (specification §4)?
 *
 * fence.c fences, reassigns, allocates, and settles after a restore; lease.c says how long a lease
 * is and when one has surely ended.
 */
#ifndef TXN_LEADER_FENCE_H
#define TXN_LEADER_FENCE_H

#include "txn/leader/proposal.h"

struct fence {
    uint64_t deaf_us;       /* no node at all was heard until then, or might be */
    uint64_t looked_us;     /* when I looked last for silent nodes */
    uint64_t owned_version; /* of the ring in which everything is somebody's; 0 = not known */
    uint64_t extended_us;   /* when the leases that I extended end, on true clocks; 0 = none were */
    bool taken_back;        /* an operator needs longer leases than mine no more */
    uint64_t told_us;       /* until then leases last of which a node told, and the log did not */
};

enum {
    LEASE_FOR_MS_MAX = 120000,      /* nodes may be had to serve without coordinators so long */
    LEASE_EXTENDED_MS_MAX = 300000, /* as --lease: a restore that is told nothing waits so long */
};

/* ---- fence.c ---- */

/* Propose to fence the node's incarnation: it never gets a lease again. `clean`: the node said BYE.
 */
void fence_propose(struct coordinator *c, const struct state_node *node, bool clean);
void fence_applied(struct coordinator *c, const struct proposal *p,
                   const struct state_result *result);
/* True if all nodes were heard of lately, and none stops, leaves or awaits its end. */
bool fence_rests(const struct coordinator *c);
/* True if the node is silent, others are not, and one of the others could have what it owns. */
bool fence_suspects(struct coordinator *c, const struct state_node *node);
/* Fence who is silent; reassign what fenced nodes own once their leases surely ended. */
void fence_run(struct coordinator *c);
/* Restored from a backup: nothing begins yet (hole 52). */
bool fence_settling(const struct coordinator *c);
/* End that once every lease of the old era surely ended. Till then nobody is taken for silent: the
 * nodes will need a moment to register. */
void fence_settle(struct coordinator *c);
/* Number of members that the role should have before its first allocation. */
uint32_t fence_least_members(const struct coordinator *c, const char *role);
/* True if with `more` who are to come the role has fewer members that could take something than it
 * should have before its first allocation. */
bool fence_role_is_short(struct coordinator *c, const char *role, uint32_t more);
void fence_forget(struct coordinator *c);
/* "live", "suspect", "fenced", "dead", "leaving". */
const char *fence_state(struct coordinator *c, const struct state_node *node);
uint64_t fence_lease_left_us(const struct coordinator *c, const struct state_node *node);

/* ---- lease.c ---- */

/* The longest lease that I or a leader before me may have granted. */
uint64_t lease_longest_us(const struct coordinator *c);
/* From a grant, on our clock, until the lease is over on any clock whose rate is within the bound
 * (hole 27), whoever granted it. */
uint64_t lease_wait_us(const struct coordinator *c);
/* When the last lease of the node's incarnation has surely ended; I11. */
uint64_t lease_over_us(const struct coordinator *c, const struct state_node *node);
/* When all leases that earlier leaders granted have surely ended. */
uint64_t lease_elders_over_us(const struct coordinator *c);
/* The state knows the length of my leases: they may leave. */
bool lease_ready(const struct coordinator *c);
/* Make it know. */
void lease_agree(struct coordinator *c);
/* The lease to grant to the node now, whose renewal `seen` has: mine, or an extended one. */
uint64_t lease_grant_us(const struct coordinator *c, const struct seen *seen);
/* The node tells of its lease. If none is so long by what the log has, the log is an older copy, or
 * a clock is worse than promised: nothing is given away before such leases are over. */
void lease_told(struct coordinator *c, const struct state_node *node, const Rh__Renew *in);
/* True if what is granted counts instead of any longer lease that the node has. */
bool lease_replaces(const struct coordinator *c, const struct seen *seen);
/* How long a lease is by which a node serves for `for_ms` though nobody renews it. */
uint64_t lease_extended_us(const struct coordinator *c, uint32_t for_ms);
/* Grant that length from here on, until it is over: the log has it. */
void lease_extend(struct coordinator *c, uint32_t for_ms);
/* Grant my own length instead of any longer lease from here on, whoever extended it. Nodes hold on
 * to an extended lease until an operator wants that: a new leader can't know whether he is through.
 */
void lease_take_back(struct coordinator *c);

#endif
