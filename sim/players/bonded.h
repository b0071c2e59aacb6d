/* SPDX-License-Identifier: Apache-2.0
 *
 * What a runtime knows of the one client that is bound to an actor, for checkers: what its code is
 * not told.
 */
#ifndef SIM_PLAYERS_BONDED_H
#define SIM_PLAYERS_BONDED_H

#include <stdint.h>

struct rh_actor;

/* Number of the last push to it, kicks too; 0 = none, or nobody is bound. */
uint64_t bonded_pushes(const struct rh_actor *a);
/* The instance that activate made of the actor. */
const void *bonded_instance(const struct rh_actor *a);

#endif
