/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks into a runtime for the checkers: what the bound client was pushed.
 */
#include "sim/players/session_probe.h"

#include "node/runtime/inside.h"

uint64_t session_probe_pushes(const struct rh_actor *a)
{
    const struct client_bond *c = a->extra->client;

    return c == NULL ? 0 : c->bond.number;
}

const void *session_probe_instance(const struct rh_actor *a)
{
    return a->instance;
}
