/* SPDX-License-Identifier: Apache-2.0
 *
 * What a runtime knows of the clients that are bound to an actor, for checkers: what its code is
 * not told.
 */
#ifndef SIM_PLAYERS_SESSION_PROBE_H
#define SIM_PLAYERS_SESSION_PROBE_H

#include "wire/session.h"

#include <stdbool.h>
#include <stdint.h>

struct rh_actor;

/* Number of the last push to it, kicks too; 0 = none, or nobody is bound. */
uint64_t session_probe_pushes(const struct rh_actor *a);
/* Number of the last push to one of several, by rh_session.session; UINT64_MAX = it is not bound.
 */
uint64_t session_probe_pushes_of(const struct rh_actor *a, uint64_t session);
/* True if the actor came with a client of which its code was not told yet: a push to all reaches
 * it. */
bool session_probe_untold(const struct rh_actor *a);
/* What tells the bond of the note's connection from older and newer ones; all 0 = it is not bound.
 */
struct bond_stamp session_probe_stamp(const struct rh_actor *a, const struct note *note);
/* The instance that activate made of the actor. */
const void *session_probe_instance(const struct rh_actor *a);

#endif
