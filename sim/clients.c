/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated clients: requests in bursts, by several gateways, with lost
 * connections.
 */
#include "sim/fleet.h"

enum { FLOOD_MIN = 1025, FLOOD_MAX = 1400 }; /* a mailbox takes 1,024 */

static void on_client(void *context, const struct world_event *event);

static void client_later(struct fleet *f, const struct sim_client *c)
{
    const uint64_t from_us = f->lull_us > f->world.now_us ? f->lull_us : f->world.now_us;

    world_at(
        &f->world,
        from_us + world_gap(&f->world, f->client_gap_us),
        (struct world_event){
            .run = on_client, .context = f, .a = c->number, .gate = &c->gateway->process.gate});
}

/* Body: the request's uid, and noise. `again`: it was given to another gateway before. */
static void give(struct fleet *f, struct sim_gateway *g, struct sim_session *s, uint64_t uid,
                 bool again)
{
    const struct sim_ask *a = ledger_find(f, uid);
    const struct entity *e = &f->ledger.entity[a->entity];
    uint8_t body[8 + 64] = {0};
    uint64_t chain[RECORD_CHAIN_MAX];
    struct router_event event = {
        .type = ROUTER_REQUEST,
        .session = s->id,
        .ticket = (uint64_t)s->epoch << CHECK_TICKET_BITS | uid,
        .flags = a->flags,
        .kind = a->foreign ? FLEET_KIND_FOREIGN : entity_kind(e),
        .id = bytes_of(e->id, e->id_size),
        .body = bytes_of(body, 8 + world_between(&f->world, 0, 64)),
        .chain = chain,
        .chain_count = gateway_chain(f, g, a, chain),
    };

    for (unsigned i = 0; i < 8; i++) {
        body[i] = (uint8_t)(uid >> (8 * i));
    }
    if (s->owned) {
        while (s->low < s->asked.count && ledger_find(f, s->asked.uid[s->low])->answered) {
            s->low++;
        }
        event.seq = a->number;
        event.base = s->low + 1;
        event.epoch = s->epoch;
        event.first = a->first;
        event.again = again;
    }
    gateway_step(f, g, event);
}

static uint64_t ask(struct fleet *f, struct sim_gateway *g, struct sim_session *s, size_t entity,
                    uint64_t parent)
{
    const bool foreign = parent == 0 && world_chance(&f->world, 2);
    const struct entity *e = &f->ledger.entity[entity];
    const uint64_t uid = ledger_ask(f, s, entity, foreign);
    struct sim_ask *a = ledger_find(f, uid);
    const bool silent = parent == 0 && !s->owned && world_chance(&f->world, 50);

    a->parent = parent;
    a->idempotent = world_chance(&f->world, poison_idempotent_pm(f, a));
    a->flags =
        (uint8_t)((silent ? REQUEST_NO_REPLY : 0) | (a->idempotent ? REQUEST_IDEMPOTENT : 0));
    record_send(f, uid);
    if (s->owned) {
        ledger_list_add(&s->asked, uid);
        a->number = s->asked.count;
        // What it heard of last: never newer than the first send.
        s->known = router_view(g->core)->ring.version > s->known
                       ? router_view(g->core)->ring.version
                       : s->known;
        a->first = s->known + (s->known == 0);
    }
    TRACE(&f->world,
          g->process.name,
          "takes request %llu: session %llu, %s, number %u%s",
          (unsigned long long)uid,
          (unsigned long long)s->number,
          e->id,
          a->seq,
          a->idempotent ? ", idempotent" : "");
    give(f, g, s, uid, false);
    return uid;
}

static void close_session(struct fleet *f, struct sim_client *c)
{
    struct sim_session *s = c->session;

    c->session = NULL;
    ledger_close(f, s);
    TRACE(&f->world, s->gateway->process.name, "loses session %llu", (unsigned long long)s->number);
    gateway_step(
        f, s->gateway, (struct router_event){.type = ROUTER_SESSION_CLOSED, .session = s->id});
}

static bool can_ask(const struct sim_gateway *g)
{
    return g->core != NULL && !g->process.gate.shut && !router_full(g->core);
}

/* ---- a client that outlives its gateway (hole 44) ---- */

static void on_resume(void *context, const struct world_event *event);

static void resume_later(struct fleet *f, const struct sim_session *s)
{
    world_at(
        &f->world,
        f->world.now_us + world_between(&f->world, 1000, 300000),
        (struct world_event){.run = on_resume, .context = f, .a = s->number - 1, .b = s->epoch});
}

void clients_orphaned(struct fleet *f, struct sim_session *s)
{
    s->epoch++;
    s->gateway = NULL;
    resume_later(f, s);
}

/* By its own clock the client gave it up: it says so to its user, and asks no more. */
static bool is_over(struct fleet *f, struct sim_ask *a)
{
    if (f->world.now_us - a->sent_us < (uint64_t)REQUEST_TTL_MAX_MS * 1000) {
        return false;
    }
    a->answered = true;
    a->code = REPLY_TIMEOUT;
    a->answered_us = f->world.now_us;
    f->ledger.open--;
    f->ledger.answers[REPLY_TIMEOUT]++;
    return true;
}

/* All that is unanswered, in order, through any gateway that is there. What it does not take at
 * once, because it is stopped meanwhile, waits for the next try. */
static void on_resume(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_session *s = f->ledger.session[event->a];
    struct sim_gateway *g = &f->gateway[world_between(&f->world, 0, f->gateways - 1)];

    if (s->closed || s->epoch != event->b) {
        return;
    }
    if (!can_ask(g)) {
        resume_later(f, s);
        return;
    }
    const size_t view = check_view_index(f, g->seen.version);

    TRACE(&f->world, g->process.name, "takes up session %llu", (unsigned long long)s->number);
    f->resumed++;
    s->gateway = g;
    for (size_t i = s->low; i < s->asked.count && s->gateway == g; i++) {
        struct sim_ask *a = ledger_find(f, s->asked.uid[i]);

        if (a->answered || is_over(f, a)) {
            continue;
        }
        if (!can_ask(g)) {
            clients_orphaned(f, s);
            return;
        }
        a->resumed = true;
        a->given_us = f->world.now_us;
        a->view = view < a->view ? view : a->view; // copies of the former one may be on their way
        give(f, g, s, s->asked.uid[i], true);
    }
}

/* A burst of pipelined requests, half of them to the few hot entities; or a flood to one. */
static void burst(struct fleet *f, struct sim_client *c)
{
    const bool floods = f->faults.flood_pm > 0 && world_chance(&f->world, f->faults.flood_pm);
    const uint64_t count =
        floods ? world_between(&f->world, FLOOD_MIN, FLOOD_MAX) : world_between(&f->world, 1, 6);
    const size_t one = floods ? world_between(&f->world, 0, LEDGER_ENTITIES - 1) : 0;

    if (c->session != NULL && c->session->owned) {
        if (c->session->gateway == NULL) {
            return;
        }
        c->gateway = c->session->gateway;
    } else if (c->session == NULL || c->life != c->gateway->process.life) {
        c->life = c->gateway->process.life;
        c->session = ledger_session(f, c->gateway, router_session(c->gateway->core));
        c->session->owned = world_chance(&f->world, f->faults.owned_pm);
        c->session->epoch = 1;
    }
    if (c->session->owned && router_view(c->gateway->core)->ring.version == 0) {
        return; // it waits until it hears of a ring: its stamp would be older than any
    }
    for (uint64_t i = 0; i < count && can_ask(c->gateway); i++) {
        const bool hot = !floods && world_chance(&f->world, 500);
        const size_t last = hot ? LEDGER_HOT - 1 : LEDGER_ENTITIES - 1;

        (void)ask(f, c->gateway, c->session, floods ? one : world_between(&f->world, 0, last), 0);
    }
    f->floods += floods;
    if (c->session->gateway != NULL && c->session->owned &&
        world_chance(&f->world, f->faults.turn_pm)) {
        clients_orphaned(f, c->session);
        return;
    }
    if (world_chance(&f->world, 5) && !c->session->owned && can_ask(c->gateway)) {
        close_session(f, c);
    }
}

static void on_client(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_client *c = &f->client[event->a];

    if (!f->working) {
        return;
    }
    client_later(f, c);
    if (c->gateway->core != NULL) {
        burst(f, c);
    }
}

void clients_start(struct fleet *f)
{
    f->working = true;
    for (unsigned i = 0; i < f->clients; i++) {
        f->client[i].number = i;
        f->client[i].gateway = &f->gateway[i % f->gateways];
        client_later(f, &f->client[i]);
    }
}

uint64_t clients_call(struct fleet *f, uint64_t parent, size_t entity)
{
    struct sim_gateway *g = &f->gateway[world_between(&f->world, 0, f->gateways - 1)];

    if (!can_ask(g)) {
        return 0;
    }
    f->ledger.nested++;
    return ask(f, g, ledger_session(f, g, router_session(g->core)), entity, parent);
}

void clients_probe(struct fleet *f)
{
    for (unsigned i = 0; i < f->gateways; i++) {
        struct sim_gateway *g = &f->gateway[i];
        struct sim_session *s = ledger_session(f, g, router_session(g->core));

        for (size_t entity = 0; entity < LEDGER_ENTITIES; entity++) {
            (void)ask(f, g, s, entity, 0);
            f->ledger.ask[f->ledger.ask_count - 1].probe = true;
        }
    }
}
