/* SPDX-License-Identifier: Apache-2.0
 *
 * A client asks, inline: from what it said to the owner's stream there is no call (route/steady.h).
 */
#ifndef GATEWAY_CLIENT_ASK_H
#define GATEWAY_CLIENT_ASK_H

#include "gateway/client/inside.h"
#include "route/steady.h"

/* client_ask(), inline: for what most clients ask. */
__attribute__((always_inline)) static inline void client_ask_now(struct client *c,
                                                                 const struct ask *ask)
{
    const bool told = (ask->flags & REQUEST_NO_REPLY) != 0;
    const struct bytes body =
        ask->command == NULL ? ask->body : (struct bytes){NULL, ask->command->size};
    bool fair = false;

    c->in_flight += told ? 0 : 1;
    // What few ask is put together there alone: `ask` stays in registers for all others.
    if (ask->name != 0 || __builtin_expect(c->all->spans.tracing != NULL, false)) {
        const struct ask rare = *ask;

        client_session_ask(c, &rare, body);
    } else {
        const struct router_plain plain = {.now_us = c->now_us,
                                           .session = c->session,
                                           .origin = c->origin,
                                           .ticket = told ? TICKET_NONE : ask->ticket,
                                           .timeout_ms = ask->timeout_ms,
                                           .kind = ask->kind,
                                           .flags = ask->flags,
                                           .must = ask->must,
                                           .known = c->identity != NULL,
                                           .id = ask->id,
                                           .body = body,
                                           .command = ask->command};

        fair = steady_ask(c->all->router, plain, c->effects);
    }
    c->asked = c->all->router->asked;
    if (!fair && !ask->must) {
        client_rest_if_over(c);
    }
}

#endif
