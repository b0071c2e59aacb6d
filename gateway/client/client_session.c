/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients that may come back by another connection, at any gateway: their
 * requests are numbered by themselves, in a session that outlives this one
 * (router.h, hole 44; docs/decisions/019-resume.md).
 */
#include "gateway/client/inside.h"

#include "base/mem.h"
#include "base/mutant.h"

struct client_session {
    struct table_link
        link; /* in all->client_sessions, unless a newer connection has taken its place */
    struct client *client;
    struct session_name name;
    uint32_t epoch; /* counts the connections */
    uint32_t base;  /* it has the answers of all below */
    bool listed;
};

static struct client_session *find(const struct clients *all, uint64_t session)
{
    struct table_link *l = table_first(&all->client_sessions, table_mix(session));

    return l == NULL ? NULL : CONTAINER_OF(l, struct client_session, link);
}

struct client *client_session_find(const struct clients *all, uint64_t session)
{
    const struct client_session *s = find(all, session);

    return s == NULL ? NULL : s->client;
}

static void unlist(struct clients *all, struct client_session *s)
{
    table_remove(&all->client_sessions, &s->link);
    s->listed = false;
}

void client_session_open(struct client *c, const struct session_name *name, uint32_t epoch)
{
    struct clients *all = c->all;
    struct client_session *former = find(all, name->session);

    if (former != NULL) {
        unlist(all, former); // Its actor kicks it.
    }
    struct client_session *s = mem_new(1, sizeof *s);
    *s = (struct client_session){
        .client = c, .name = *name, .epoch = epoch, .base = 1, .listed = true};
    table_put(&all->client_sessions, &s->link, table_mix(name->session));
    c->client_session = s;
}

void client_session_close(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    struct client_session *s = c->client_session;

    if (s == NULL) {
        return;
    }
    if (s->listed) {
        const struct router_event event = {
            .type = ROUTER_SESSION_CLOSED, .now_us = now_us, .session = s->name.session};

        unlist(c->all, s);
        router_step(c->all->router, &event, effects);
    }
    c->client_session = NULL;
    mem_free(s);
}

void client_session_ack(struct client *c, uint32_t answers)
{
    if (c->client_session != NULL && answers > c->client_session->base) {
        c->client_session->base = answers;
    }
}

void client_session_vouch(const struct client *c, uint64_t version)
{
    const struct client_session *s = c->client_session;

    if (s != NULL && s->listed) {
        const struct router_event event = {.type = ROUTER_VOUCHED,
                                           .now_us = c->now_us,
                                           .session = s->name.session,
                                           .first = version};

        router_step(c->all->router, &event, c->effects);
    }
}

/* Put its part into the request. */
static void number(const struct client *c, const struct ask *ask, struct router_event *event)
{
    const struct client_session *s = c->client_session;

    if (mutant(M_OWNNUMBER) && s->epoch > 1) {
        return;
    }
    event->session = s->name.session;
    event->seq = ask->name;
    event->epoch = s->epoch;
    event->base = s->base < ask->name ? s->base : ask->name;
    event->again = ask->again;
    // What was sent before may have run before any take-over since the session began: as its client
    // knew it when it came back, for it may not have heard yet that its actor was begun afresh.
    event->first = ask->again ? s->name.version : router_view(c->all->router)->ring.version;
}

void client_session_ask(const struct client *c, const struct ask *ask, struct bytes body)
{
    const bool told = (ask->flags & REQUEST_NO_REPLY) != 0;
    struct router_event event = {.type = ROUTER_REQUEST,
                                 .now_us = c->now_us,
                                 .session = c->session,
                                 .origin = c->origin,
                                 .ticket = told ? TICKET_NONE : ask->ticket,
                                 .timeout_ms = ask->timeout_ms,
                                 .flags = ask->flags,
                                 .kind = ask->kind,
                                 .id = ask->id,
                                 .body = body,
                                 .command = ask->command,
                                 .must = ask->must,
                                 .trace = client_trace(c, ask)};

    if (ask->name != 0) {
        number(c, ask, &event);
    }
    router_ask(c->all->router, &event, c->effects);
}

bool client_session_owns(const struct client *c, const struct router_effect *reply)
{
    return c->client_session != NULL && reply->session == c->client_session->name.session &&
           c->in_flight > 0;
}
