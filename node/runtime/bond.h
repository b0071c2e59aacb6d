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

/* What a note BIND, KEEP, RESUME, RENEW or RETURN comes to; `have` NULL = nobody is bound.
 * BOUND_NEW: it is bound from now on, and who was before, another connection, is kicked. BOUND_KEPT
 * of a RETURN: of a copy of what ran, or it goes over to the new connection. BOUND_OLD of a
 * RETURN: another one is bound, or its client has returned since, by a later attempt. BOUND_GONE of
 * a RETURN: of nothing, or of its own that was begun afresh since. */
enum bound_result bond_judge(const struct bond *have, const struct note *note);

/* Its client was kicked, or told to go on as another entity: it gets nothing more. */
bool bond_is_over(const struct bond *b);

/* Is it the same connection? */
bool bond_is_of(const struct bond *have, const struct note *note);

/* What the game calls it: > 0, the same as long as it lasts, on each node, and no other's. */
uint64_t bond_session(const struct bond *b);

#endif
