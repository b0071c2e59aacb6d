/* SPDX-License-Identifier: Apache-2.0
 *
 * Roles: who may host which kind, and where the ring has cells for it.
 *
 * A node says at its registration which role it has and which kinds it hosts.
 * The first of a role declares the role's kinds; every other must host the very
 * same ones, for an id of any of them may hash to it. A kind of the default
 * role that hashes needs nothing more. Any other gets its segment of the ring.
 *
 * Pure and deterministic: part of the replicated state (PROTOCOL §3.1).
 */
#ifndef TXN_ROLES_H
#define TXN_ROLES_H

#include "txn/state.h"

enum { ROLES_FAULT_SIZE = 320, ROLES_DAEMONS_MAX = 1000 /* of one set */ };

/* Why this registration can't be, whatever else is true of it: a kind is bound to another role or
 * placement, or the kinds are not those of the role's other nodes. Empty: it can. */
void roles_fault(const struct state *s, const Rh__CommandRegister *in,
                 char fault[ROLES_FAULT_SIZE]);

/* Declare the kinds of a registration without fault, and add to `delta` the segments that they
 * need. The ring has vnodes, or `delta` creates them. */
void roles_bind(struct state *s, const Rh__CommandRegister *in, Rh__Delta *delta);

/* The set of daemons of that name; NULL = none. */
const struct ring_segment *roles_daemons(const struct state *s, const char *name);

/* The role whose nodes may own the vnode. */
const char *roles_of_vnode(const struct ring *ring, const struct ring_vnode *v);
/* May the node own the vnode? */
bool roles_fit(const struct state *s, const struct state_node *node, uint32_t vnode);

/* NULL = nobody declared it. */
const struct state_kind *roles_kind(const struct state *s, uint16_t number);
/* "7 'boss' (singleton)" for people. */
const char *roles_placement_name(uint8_t placement);

#endif
