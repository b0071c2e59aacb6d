/* SPDX-License-Identifier: Apache-2.0
 *
 * Gateways with players: the shipped clients (gateway/client/client.h) on the gateway's
 * router, as its listener drives them (gateway/listener_uv.c). Each knows its
 * wire by client_user().
 */
#include "base/mem.h"
#include "gateway/client/client.h"
#include "sim/players/players.h"

/* Who returns is given all that it has not acknowledged at once, which must not be what cuts it. */
enum { SECOND_US = 1000000, UNREAD_MAX = BOND_UNACKED_MAX + 16 * 1024 };

static uint64_t clock_of(const struct fleet *f, const struct sim_gateway *g)
{
    return sim_clock_read(&g->process.clock, f->world.now_us);
}

void session_clients_open(struct fleet *f, struct sim_gateway *g)
{
    struct clients_config config = clients_config_default();

    if (f->players == NULL) {
        return;
    }
    config.deadline_ms = f->deadline_ms;
    config.push_unread_max = UNREAD_MAX;
    g->clients = clients_new(&config, g->core, clock_of(f, g));
    g->looked_us = 0;
}

static bool is_mine(const struct sim_gateway *g, const struct wire *w)
{
    return w->at == g && w->client != NULL;
}

void session_clients_close(struct fleet *f, struct sim_gateway *g)
{
    for (size_t i = 0; g->clients != NULL && i < f->players->wire_count; i++) {
        struct wire *w = f->players->wire[i];

        if (is_mine(g, w)) {
            client_free(w->client, clock_of(f, g), &g->wanted);
            w->client = NULL;
            w->over = true;
            sim_players_hung_up(f, w);
        }
    }
    clients_free(g->clients);
    g->clients = NULL;
    router_effects_fini(&g->wanted); // it died: nothing of that is done
}

/* What its clients want is done when none of them is at work. */
static void do_wanted(struct fleet *f, struct sim_gateway *g)
{
    struct router_effects now = g->wanted;

    g->wanted = (struct router_effects){0};
    gateway_do(f, g, &now);
    router_effects_fini(&now);
}

static void leave(struct fleet *f, struct wire *w)
{
    struct client *c = w->client;

    TRACE(&f->world,
          w->at->process.name,
          "loses the line of wire %llu",
          (unsigned long long)w->number);
    w->client = NULL;
    w->over = true;
    client_free(c, clock_of(f, w->at), &w->at->wanted);
    do_wanted(f, w->at);
}

/* Send what it has, unless the device reads nothing; close what is over. */
static void flush(struct fleet *f, struct wire *w)
{
    const uint64_t now_us = clock_of(f, w->at);
    const bool reads = !w->dead && f->world.now_us >= w->stalls_us;
    const struct bytes out = client_output(w->client);

    if (reads && out.size > 0) {
        sim_players_hear(f, w, out);
        client_sent(w->client, out.size, now_us);
    }
    if (client_is_done(w->client) || client_is_stuck(w->client, now_us)) {
        leave(f, w);
        sim_players_hung_up(f, w);
    }
}

/* It takes what has arrived, as far as it wants it. */
static void pump(struct fleet *f, struct wire *w)
{
    struct sim_gateway *g = w->at;

    while (w->client != NULL) {
        const uint64_t now_us = clock_of(f, g);

        if (client_has_input(w->client)) {
            client_resume(w->client, now_us, &g->wanted);
        } else if (w->in.size > 0 && client_wants_input(w->client)) {
            struct buffer in = w->in;

            w->in = (struct buffer){0};
            client_on_bytes(w->client, buffer_bytes(&in), now_us, &g->wanted);
            buffer_fini(&in);
        } else {
            break;
        }
        do_wanted(f, g);
    }
    if (w->client != NULL) {
        flush(f, w);
    }
}

void session_clients_accept(struct fleet *f, struct wire *w)
{
    struct sim_gateway *g = w->at;
    struct admission_result admission_result;

    if (!clients_admit(
            g->clients, CLIENT_PACKETS, "10.0.0.1:1", clock_of(f, g), &admission_result)) {
        world_violate(&f->world, "session", "%s turns a player away", g->process.name);
        return;
    }
    w->life = g->process.life;
    w->client = client_new(g->clients, CLIENT_PACKETS, "10.0.0.1:1", clock_of(f, g));
    client_let_in(w->client, admission_result.client_address);
    client_set_user(w->client, w);
    TRACE(&f->world,
          g->process.name,
          "accepts wire %llu of device %zu",
          (unsigned long long)w->number,
          w->device->number);
}

void session_clients_take(struct fleet *f, struct wire *w)
{
    pump(f, w);
}

void session_clients_leave(struct fleet *f, struct wire *w)
{
    if (w->client != NULL) {
        leave(f, w);
    }
}

void session_clients_drain(struct fleet *f, struct sim_gateway *g)
{
    for (size_t i = 0; g->clients != NULL && i < f->players->wire_count; i++) {
        struct wire *w = f->players->wire[i];

        if (is_mine(g, w)) {
            client_drain(w->client, clock_of(f, g));
            flush(f, w);
        }
    }
}

static void tick_each(struct fleet *f, struct sim_gateway *g)
{
    const uint64_t now_us = clock_of(f, g);
    const bool second = now_us - g->looked_us >= SECOND_US;

    for (size_t i = 0; i < f->players->wire_count && g->clients != NULL; i++) {
        struct wire *w = f->players->wire[i];

        if (is_mine(g, w)) {
            if (second) {
                client_tick(w->client, now_us);
            }
            pump(f, w);
        }
    }
    g->looked_us = second ? now_us : g->looked_us;
}

void session_clients_tick(struct fleet *f, struct sim_gateway *g)
{
    if (g->clients == NULL) {
        return;
    }
    while (clients_go_on(g->clients, clock_of(f, g), &g->wanted) != NULL) {
        do_wanted(f, g);
    }
    do_wanted(f, g);
    tick_each(f, g);
}

void session_clients_node_link(struct fleet *f, struct sim_gateway *g, uint16_t slot, bool up)
{
    if (g->clients != NULL && up) {
        clients_on_node_up(g->clients, slot, clock_of(f, g));
    } else if (g->clients != NULL) {
        clients_on_node_down(g->clients, slot, clock_of(f, g));
    }
}

void session_clients_push(struct fleet *f, struct sim_gateway *g, const struct push_record *push)
{
    struct client *c =
        g->clients == NULL ? NULL : clients_on_push(g->clients, push, clock_of(f, g));

    if (c != NULL) {
        flush(f, client_user(c));
    }
}

/* A ticket of the ledger's: its session is the one that asked. */
static bool is_ledgers(struct fleet *f, const struct router_effect *e)
{
    const uint64_t uid = e->ticket & (((uint64_t)1 << CHECK_TICKET_BITS) - 1);
    const struct sim_ask *a = ledger_find(f, uid);

    return a != NULL && a->session->id == e->session;
}

void session_clients_vouch(struct fleet *f, struct sim_gateway *g, const struct router_effect *e)
{
    struct client *c = g->clients == NULL ? NULL : clients_find(g->clients, e->session);

    if (c != NULL) {
        client_vouch(c, e->version, clock_of(f, g));
    }
}

bool session_clients_reply(struct fleet *f, struct sim_gateway *g, const struct router_effect *e,
                           struct bytes bytes)
{
    if (g->clients == NULL || is_ledgers(f, e)) {
        return false;
    }
    struct client *c = clients_find(g->clients, e->session);

    if (c != NULL) {
        client_on_reply(c, e, bytes, clock_of(f, g));
    }
    return true;
}
