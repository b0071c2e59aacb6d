/* SPDX-License-Identifier: Apache-2.0
 *
 * What a runtime knows of the one client that is bound to an actor, for checkers: what its code is
 * not told.
 */
#ifndef SIM_PLAYERS_SESSION_PROBE_H
#define SIM_PLAYERS_SESSION_PROBE_H

#include <stdint.h>

struct rh_actor;

/* Number of the last push to it, kicks too; 0 = none, or nobody is bound. */
uint64_t session_probe_pushes(const struct rh_actor *a);
/* The instance that activate made of the actor. */
const void *session_probe_instance(const struct rh_actor *a);

#endif
