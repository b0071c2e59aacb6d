/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks into a runtime for the checkers: what the bound client was pushed.
 */
#include "sim/players/session_probe.h"

#include "node/runtime/bond.h"
#include "node/runtime/inside.h"

uint64_t session_probe_pushes(const struct rh_actor *a)
{
    const struct client_bond *c = a->extra->client;

    return c == NULL ? 0 : c->bond.number;
}

uint64_t session_probe_pushes_of(const struct rh_actor *a, uint64_t session)
{
    const struct client_bond *c = a->extra->client;

    while (c != NULL && bond_session(&c->bond) != session) {
        c = c->next;
    }
    return c == NULL ? UINT64_MAX : c->bond.number;
}

bool session_probe_untold(const struct rh_actor *a)
{
    const struct client_bond *c = a->extra->client;

    while (c != NULL && c->due != RH_SESSION_RESUMED) {
        c = c->next;
    }
    return c != NULL;
}

struct bond_stamp session_probe_stamp(const struct rh_actor *a, const struct note *note)
{
    const struct client_bond *c = bonds_of(a, note);
    const struct bond_stamp none = {0};

    return c == NULL ? none : c->bond.stamp;
}

const void *session_probe_instance(const struct rh_actor *a)
{
    return a->instance;
}
