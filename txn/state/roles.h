/* SPDX-License-Identifier: Apache-2.0
 *
 * Roles: who may host which kind, and where the ring has cells for it.
 *
 * A node says at its registration which role it has and which kinds it hosts.
 * A role's kinds are those that its nodes host, the fenced ones aside: a set that
 * grows with each node that brings another, and shrinks when the last that had
 * one registers without it. A number has one name, role and placement; only what
 * the fenced alone hosted is anybody's. A node may own cells for a kind that it
 * lacks: requests for it wait. It gets none of a segment that is one kind's; what it has
 * of such, from when it hosted the kind, the planner gives to others. Before FLEET_FORMAT_KINDS all
 * hosted the same. A kind of the default role that hashes needs nothing more; any other gets its
 * segment of the ring.
 *
 * Pure and deterministic: part of the replicated state (specification §3.1).
 */
#ifndef TXN_STATE_ROLES_H
#define TXN_STATE_ROLES_H

#include "txn/state/state.h"

enum { ROLES_FAULT_SIZE = 416, ROLES_DAEMONS_MAX = 1000 /* of one set */ };

/* Say why this registration is impossible, whatever else is true of it: a kind is bound to another
 * role or placement, or has another name on other nodes. Empty: it can. */
void roles_fault(const struct state *s, const Rh__CommandRegister *in,
                 char fault[ROLES_FAULT_SIZE]);

/* True: the registration would be without fault on this account if `node`, another one, were
 * fenced: it hosts one of these numbers as another kind. */
bool roles_rivals(const struct state *s, const Rh__CommandRegister *in,
                  const struct state_node *node);

/* Declare the kinds of a registration without fault, and add to `delta` the segments that they
 * need. The ring has vnodes, or `delta` creates them. */
void roles_bind(struct state *s, const Rh__CommandRegister *in, Rh__Delta *delta);

/* The set of daemons of that name; NULL = none. */
const struct ring_segment *roles_daemons(const struct state *s, const char *name);

/* The role whose nodes may own the vnode. */
const char *roles_of_vnode(const struct ring *ring, const struct ring_vnode *v);
/* True if the node may get the vnode. It may own it though it may not get it any more: a process
 * that died was started again without the kind, or the cells were those of a kind that is gone. */
bool roles_fit(const struct state *s, const struct state_node *node, uint32_t vnode);

/* NULL = nobody declared it. */
const struct state_kind *roles_kind(const struct state *s, uint16_t number);
/* "7 'boss' (singleton)" for people. */
const char *roles_placement_name(uint8_t placement);

#endif
