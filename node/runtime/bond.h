/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is bound to an actor, of those who say so. A client stands against one that
 * is bound: it is the same, or it takes its place, or it stays outside. A client whose actor was
 * begun afresh comes again, and so may one that was replaced before, of which its gateway was not
 * told: the stamp says which of them is newer (docs/decisions/012-sessions.md).
 *
 * Pure.
 */
#ifndef NODE_RUNTIME_BOND_H
#define NODE_RUNTIME_BOND_H

#include "wire/session.h"

/* Judge a note BIND, KEEP, RESUME, RENEW or RETURN; `have` NULL = no client is bound. BOUND_NEW:
 * the note's client is bound from now on, and another connection that was bound before is kicked.
 * BOUND_KEPT for a RETURN: the note is a copy of one that ran, or the bond goes over to the new
 * connection. BOUND_OLD for a RETURN: another client is bound, or this client has returned since,
 * by a later attempt. BOUND_GONE for a RETURN: there is no bond, or the client's own bond was begun
 * afresh since. */
enum bound_result bond_judge(const struct bond *have, const struct note *note);

/* True if the client was kicked, or told to go on as another entity: it gets nothing more. */
bool bond_is_over(const struct bond *b);

/* True if the note is of the bond's connection. */
bool bond_is_of(const struct bond *have, const struct note *note);

/* The game's number for the session: > 0, the same as long as the session lasts, on each node, and
 * no other session's. */
uint64_t bond_session(const struct bond *b);

#endif
