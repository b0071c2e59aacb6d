/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that a client may ask again, on any connection and at any gateway, by a key of its own
 * (docs/decisions/103-http-for-back-ends.md).
 *
 * Entity and key make a session that no gateway owns (hole 44), with one request in it, number 1:
 * the owner answers a copy with the answer that it saved. Nothing else is kept for it, here least:
 * only who waits for the answer.
 *
 *     nothing     -asked-> UNDER WAY    -asked again-> (same), refused
 *     UNDER WAY   -answered-> OVER      -its connection goes-> nothing, the router is told
 *     OVER        -asked again-> UNDER WAY    -the next turn-> nothing, the router is told
 */
#include "gateway/client/http_inside.h"

#include "base/mem.h"
#include "base/mutant.h"
#include "ring/hash.h"

#include <string.h>

struct keyed {
    struct table_link link;   /* in all->keyed */
    struct list_link in_list; /* its client's, or all->keyed_over */
    uint64_t session;
    struct client *client; /* NULL = it is over */
};

static struct keyed *find(const struct clients *all, uint64_t session)
{
    struct table_link *l = table_first(&all->keyed, table_mix(session));

    return l == NULL ? NULL : CONTAINER_OF(l, struct keyed, link);
}

uint64_t keyed_session(const struct clients *all, const struct ask *ask, struct bytes key)
{
    // The cluster's secret: the same at each gateway, and nobody can guess another's.
    const struct ring_key secret = router_view(all->router)->key;
    const uint64_t entity = siphash_bytes(ring_key_of_kind(secret, ask->kind), ask->id);
    const uint64_t session = siphash_bytes(
        (struct ring_key){.k0 = secret.k0 ^ entity, .k1 = secret.k1 ^ UINT64_C(0x4b6579)}, key);

    return session == 0 ? 1 : session;
}

bool keyed_is_free(const struct clients *all, uint64_t session)
{
    return keyed_find(all, session) == NULL;
}

struct client *keyed_find(const struct clients *all, uint64_t session)
{
    const struct keyed *k = find(all, session);

    return k == NULL ? NULL : k->client;
}

static void forget(struct clients *all, struct keyed *k)
{
    table_remove(&all->keyed, &k->link);
    list_remove(&k->in_list);
    mem_free(k);
}

static void await_answer(struct client *c, uint64_t session)
{
    struct clients *all = c->all;
    struct keyed *k = find(all, session);

    if (k != NULL) {
        list_remove(&k->in_list); // its session is not over
    } else {
        k = mem_new(1, sizeof *k);
        k->session = session;
        table_put(&all->keyed, &k->link, table_mix(session));
    }
    k->client = c;
    list_push_back(&c->http->keyed, &k->in_list);
}

static void close_session(const struct clients *all, uint64_t session, uint64_t now_us,
                          struct router_effects *effects)
{
    const struct router_event event = {
        .type = ROUTER_SESSION_CLOSED, .now_us = now_us, .session = session};

    router_step(all->router, &event, effects);
}

/* `base` stays 0: the router stamps it anew where it surely did not run, as its own. */
void keyed_ask(struct client *c, uint64_t session, const struct ask *ask, uint64_t first)
{
    const struct clients *all = c->all;
    const bool told = (ask->flags & REQUEST_NO_REPLY) != 0;
    const uint64_t version = router_view(all->router)->ring.version;
    const struct router_event event = {.type = ROUTER_REQUEST,
                                       .now_us = c->now_us,
                                       .session = session,
                                       .origin = c->origin,
                                       .ticket = told ? TICKET_NONE : ask->ticket,
                                       .kind = ask->kind,
                                       .flags = ask->flags,
                                       .seq = mutant(M_KEYIGNORED) ? c->slots.tail + 1 : 1,
                                       .first = ask->again && first < version ? first : version,
                                       .epoch = 1,
                                       .again = ask->again,
                                       .id = ask->id,
                                       .body = ask->body,
                                       .trace = client_trace(c, ask),
                                       .timeout_ms = ask->timeout_ms};

    if (!told) {
        await_answer(c, session);
    }
    router_ask(all->router, &event, c->effects);
    client_has_asked(c, told ? 0 : 1, router_asked(all->router));
    if (told && find(all, session) == NULL) {
        close_session(all, session, c->now_us, c->effects);
    }
    client_rest_if_over(c);
}

static void be_over(struct clients *all, struct keyed *k)
{
    k->client = NULL;
    list_remove(&k->in_list);
    list_push_back(&all->keyed_over, &k->in_list);
}

bool keyed_answered(struct client *c, const struct router_effect *reply)
{
    struct keyed *k = find(c->all, reply->session);

    if (k == NULL || k->client != c) {
        return false;
    }
    // The effects of this step are not to be added to.
    be_over(c->all, k);
    return true;
}

void keyed_leave(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    while (c->http != NULL && !list_empty(&c->http->keyed)) {
        struct keyed *k = CONTAINER_OF(list_front(&c->http->keyed), struct keyed, in_list);
        const uint64_t session = k->session;

        forget(c->all, k);
        close_session(c->all, session, now_us, effects);
    }
}

bool keyed_go_on(struct clients *all, uint64_t now_us, struct router_effects *effects)
{
    const bool any = !list_empty(&all->keyed_over);

    while (!list_empty(&all->keyed_over)) {
        struct keyed *k = CONTAINER_OF(list_front(&all->keyed_over), struct keyed, in_list);
        const uint64_t session = k->session;

        forget(all, k);
        close_session(all, session, now_us, effects);
    }
    return any;
}

void keyed_end(struct clients *all)
{
    while (!list_empty(&all->keyed_over)) {
        forget(all, CONTAINER_OF(list_front(&all->keyed_over), struct keyed, in_list));
    }
    table_fini(&all->keyed);
}
