/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks into a runtime for the checkers: what the bound client was pushed.
 */
#include "sim/players/bonded.h"

#include "node/runtime/inside.h"

uint64_t bonded_pushes(const struct rh_actor *a)
{
    const struct client_bond *c = a->extra->client;

    return c == NULL ? 0 : c->bond.number;
}

const void *bonded_instance(const struct rh_actor *a)
{
    return a->instance;
}
