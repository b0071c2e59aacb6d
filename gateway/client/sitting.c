/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients that may come back by another connection, at any gateway: their
 * requests are numbered by themselves, in a session that outlives this one
 * (router.h, hole 44; docs/decisions/019-resume.md).
 */
#include "gateway/client/inside.h"

#include "base/mem.h"
#include "base/mutant.h"

struct sitting {
    struct table_link link; /* in all->sittings, unless a newer connection has taken its place */
    struct client *client;
    struct session_name name;
    uint32_t epoch; /* counts the connections */
    uint32_t base;  /* it has the answers of all below */
    bool listed;
};

static struct sitting *find(const struct clients *all, uint64_t session)
{
    struct table_link *l = table_first(&all->sittings, table_mix(session));

    return l == NULL ? NULL : CONTAINER_OF(l, struct sitting, link);
}

struct client *sitting_find(const struct clients *all, uint64_t session)
{
    const struct sitting *s = find(all, session);

    return s == NULL ? NULL : s->client;
}

static void unlist(struct clients *all, struct sitting *s)
{
    table_remove(&all->sittings, &s->link);
    s->listed = false;
}

void sitting_open(struct client *c, const struct session_name *name, uint32_t epoch)
{
    struct clients *all = c->all;
    struct sitting *former = find(all, name->session);

    if (former != NULL) {
        unlist(all, former); // Its actor kicks it.
    }
    struct sitting *s = mem_new(1, sizeof *s);
    *s = (struct sitting){.client = c, .name = *name, .epoch = epoch, .base = 1, .listed = true};
    table_put(&all->sittings, &s->link, table_mix(name->session));
    c->sitting = s;
}

void sitting_close(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    struct sitting *s = c->sitting;

    if (s == NULL) {
        return;
    }
    if (s->listed) {
        const struct router_event event = {
            .type = ROUTER_SESSION_CLOSED, .now_us = now_us, .session = s->name.session};

        unlist(c->all, s);
        router_step(c->all->router, &event, effects);
    }
    c->sitting = NULL;
    mem_free(s);
}

void sitting_ack(struct client *c, uint32_t answers)
{
    if (c->sitting != NULL && answers > c->sitting->base) {
        c->sitting->base = answers;
    }
}

void sitting_vouch(const struct client *c, uint64_t version)
{
    const struct sitting *s = c->sitting;

    if (s != NULL && s->listed) {
        const struct router_event event = {.type = ROUTER_VOUCHED,
                                           .now_us = c->now_us,
                                           .session = s->name.session,
                                           .first = version};

        router_step(c->all->router, &event, c->effects);
    }
}

void sitting_number(const struct client *c, const struct ask *ask, struct router_event *event)
{
    const struct sitting *s = c->sitting;

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

bool sitting_owns(const struct client *c, const struct router_effect *reply)
{
    return c->sitting != NULL && reply->session == c->sitting->name.session && c->in_flight > 0;
}
