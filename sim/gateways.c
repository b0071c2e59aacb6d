/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated gateways: the shipped router, its links and its clients.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "route/router_inside.h"
#include "sim/fleet.h"
#include "sim/players/players.h"

#include <stdio.h>
#include <string.h>

static void on_tick(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_gateway *g = &f->gateway[event->a];

    if (!g->process.up || g->process.life != event->b) {
        return;
    }
    world_at(&f->world, f->world.now_us + world_between(&f->world, 10000, 50000), *event);
    gateway_step(f, g, (struct router_event){.type = ROUTER_TICK});
    if (!g->process.gate.shut) {
        session_clients_tick(f, g);
    }
}

void gateway_init(struct fleet *f, struct sim_gateway *g, unsigned number)
{
    g->process.role = ROLE_GATEWAY;
    g->process.number = FLEET_COORDINATORS_MAX + FLEET_NODES_MAX + number;
    (void)snprintf(g->process.name, sizeof g->process.name, "g%u", number + 1);
    nemesis_clock(f, &g->process);
    g->node = mem_new(RING_NODES_MAX + 1, sizeof(struct net_end *));
}

void gateway_start(struct fleet *f, struct sim_gateway *g)
{
    struct router_config config = router_config_default();

    g->id = world_between(&f->world, 1, UINT64_MAX - 1);
    config.gateway = g->id;
    config.deadline_ms = f->deadline_ms;
    config.retry_ms = f->retry_ms;
    config.streams = true;
    if (f->faults.tight) {
        config.in_flight_max = 200;
        config.waiting_size_max = 30000;
        config.peer_size_max = 20000;
    }
    (void)snprintf(config.name, sizeof config.name, "%s", g->process.name);
    g->process.up = true;
    g->process.life++;
    g->seen = (struct view_seen){0};
    g->core = router_new(&config);
    session_clients_open(f, g);
    TRACE(&f->world, g->process.name, "STARTS");
    for (unsigned i = 0; i < f->coordinators; i++) {
        network_dial(&f->network, &g->process, &f->coordinator[i].process, i);
    }
    world_at(&f->world,
             f->world.now_us,
             (struct world_event){.run = on_tick,
                                  .context = f,
                                  .a = (uint64_t)(g - f->gateway),
                                  .b = g->process.life,
                                  .gate = &g->process.gate,
                                  .timer = true});
}

static void on_restart(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_gateway *g = &f->gateway[event->a];

    if (!g->process.up && g->process.life == event->b) {
        gateway_start(f, g);
    }
}

void gateway_crash(struct fleet *f, struct sim_gateway *g)
{
    const uint64_t down_us = world_between(&f->world, 1000, f->healed ? 100000 : 2000000);

    TRACE(&f->world, g->process.name, "CRASHES");
    record_process(f, HISTORY_CRASH, &g->process);
    f->gateway_crashes++;
    g->process.up = false;
    pause_end(f, &g->process);
    session_clients_close(f, g);
    router_free(g->core);
    g->core = NULL;
    router_effects_fini(&g->out);
    memset(g->coordinator, 0, sizeof g->coordinator);
    memset(g->node, 0, (RING_NODES_MAX + 1) * sizeof(struct net_end *));
    for (size_t i = 0; i < f->ledger.session_count; i++) {
        struct sim_session *s = f->ledger.session[i];

        if (s->gateway == g && !s->closed && s->owned) {
            clients_orphaned(f, s);
        } else if (s->gateway == g && !s->closed) {
            ledger_close(f, s);
        }
    }
    bank_gateway_gone(f, g);
    network_crash(&f->network, &g->process, false);
    world_at(&f->world,
             f->world.now_us + down_us,
             (struct world_event){.run = on_restart,
                                  .context = f,
                                  .a = (uint64_t)(g - f->gateway),
                                  .b = g->process.life});
}

/* ---- effects ---- */

static void send(struct fleet *f, struct net_end *end, int type, struct bytes bytes)
{
    if (end != NULL) {
        network_send(&f->network, end, type, bytes);
    }
}

static void on_given_back(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_gateway *g = &f->gateway[event->a];
    const struct answer_record *answer = event->data;

    if (g->process.life == event->b) {
        gateway_step(f, g, (struct router_event){.type = ROUTER_ANSWER, .answer = answer});
    }
}

size_t gateway_chain(struct fleet *f, const struct sim_gateway *g, const struct sim_ask *a,
                     uint64_t chain[RECORD_CHAIN_MAX])
{
    size_t count = 0;

    while (a != NULL && a->parent != 0 && count < RECORD_CHAIN_MAX) {
        const struct entity *e;

        a = ledger_find(f, a->parent);
        e = &f->ledger.entity[a->entity];
        chain[count++] = ring_point(&router_view(g->core)->ring,
                                    entity_kind(e),
                                    ring_key_of_kind(router_view(g->core)->key, entity_kind(e)),
                                    bytes_of(e->id, e->id_size));
    }
    return count;
}

/* Its chain may not have been known when it was asked. */
static void send_chained(struct fleet *f, const struct sim_gateway *g, struct net_end *to,
                         struct request_record *r)
{
    struct reader in = {.at = r->body.data, .left = r->body.size};
    struct buffer out = {0};

    r->chain_count = (uint8_t)gateway_chain(f, g, ledger_find(f, get_u64(&in)), r->chain);
    request_put(&out, r);
    network_send(&f->network, to, FRAME_REQUEST, buffer_bytes(&out));
    buffer_fini(&out);
}

/* A link takes a request, or it comes back at once as BUSY: it surely did not run. */
static void send_request(struct fleet *f, struct sim_gateway *g, const struct router_effect *e,
                         struct bytes bytes)
{
    struct reader in = {.at = bytes.data, .left = bytes.size};
    struct request_record r;
    struct answer_record back = {.code = ANSWER_BUSY, .aux = 20};

    if (request_get(&in, &r) != ERR_OK) {
        world_violate(&f->world, "codec", "%s sent a record that does not decode", g->process.name);
        return;
    }
    if (fleet_is_apart(r.kind)) {
        send(f, g->node[e->slot], FRAME_REQUEST, bytes);
        return;
    }
    if (g->node[e->slot] != NULL && !world_chance(&f->world, f->faults.refuse_pm)) {
        check_copy(f, fleet_node(g->node[e->slot]->other), &r);
        send_chained(f, g, g->node[e->slot], &r);
        return;
    }
    back.gateway = r.gateway;
    back.session = r.session;
    back.seq = r.seq;
    back.copy = r.copy;
    world_at(&f->world,
             f->world.now_us,
             (struct world_event){
                 .run = on_given_back,
                 .context = f,
                 .a = (uint64_t)(g - f->gateway),
                 .b = g->process.life,
                 .data = mem_copy(&back, sizeof back),
                 .gate = &g->process.gate,
             });
}

static void connect_to(struct fleet *f, struct sim_gateway *g, const struct router_effect *e,
                       const char *address)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        if (strcmp(f->node[i].process.name, address) == 0) {
            network_forget(&f->network, &g->process, ROLE_NODE, e->slot);
            g->node[e->slot] = NULL;
            network_dial(&f->network, &g->process, &f->node[i].process, e->slot);
        }
    }
}

static void effect(struct fleet *f, struct sim_gateway *g, const struct router_effect *e,
                   struct bytes bytes)
{

    switch (e->type) {
    case ROUTER_SEND_NODE:
        send_request(f, g, e, bytes);
        break;
    case ROUTER_SEND_STREAM:
        if (g->node[e->slot] != NULL) {
            network_say(&f->network, g->node[e->slot], (enum stream_frame)e->frame, bytes);
        }
        break;
    case ROUTER_TELL_NODE:
        send(f, g->node[e->slot], FRAME_CONTROL, bytes);
        break;
    case ROUTER_SEND_COORDINATOR:
        send(f, g->coordinator[e->coordinator], FRAME_CONTROL, bytes);
        break;
    case ROUTER_REPLY:
        if (!bank_reply(f, g, e, bytes) && !session_clients_reply(f, g, e, bytes)) {
            check_reply(f, g, e->ticket, e->code, bytes);
        }
        break;
    case ROUTER_VOUCH:
        bank_vouch(f, g, e);
        session_clients_vouch(f, g, e);
        break;
    case ROUTER_CONNECT:
        connect_to(f, g, e, (const char *)bytes.data);
        break;
    case ROUTER_DISCONNECT:
        network_forget(&f->network, &g->process, ROLE_NODE, e->slot);
        g->node[e->slot] = NULL;
        session_clients_node_link(f, g, e->slot, false);
        break;
    }
}

/* What streams have goes onto their links, behind what begins them there. */
static void pour(struct fleet *f, struct sim_gateway *g)
{
    struct sendlog *log = NULL;
    uint16_t slot;

    while (g->core != NULL && g->out_at == g->out.count && f->world.checker == NULL &&
           (log = router_unsent(g->core, &slot)) != NULL) {
        if (g->node[slot] != NULL) {
            network_pour(&f->network, g->node[slot], log);
        }
    }
}

void gateway_go_on(struct fleet *f, struct sim_gateway *g)
{
    while (g->out_at < g->out.count && f->world.checker == NULL) {
        if (g->out_at == g->stops_at) {
            g->stops_at = SIZE_MAX;
            nemesis_pause(f, &g->process);
            return;
        }
        const struct router_effect *e = &g->out.item[g->out_at++];

        effect(f, g, e, bytes_of(g->out.bytes.data + e->at, e->size));
    }
    pour(f, g);
}

void gateway_do(struct fleet *f, struct sim_gateway *g, const struct router_effects *wanted)
{
    for (size_t i = 0; i < wanted->count && f->world.checker == NULL; i++) {
        const struct router_effect *e = &wanted->item[i];

        effect(f, g, e, bytes_of(wanted->bytes.data + e->at, e->size));
    }
    pour(f, g);
}

uint64_t gateway_put_off_us(const struct fleet *f, const struct sim_gateway *g)
{
    return g->put_off_us + (g->put_off_from_us == 0 ? 0 : f->world.now_us - g->put_off_from_us);
}

static bool lacks_a_link(const struct router *r)
{
    bool lacks = false;

    for (uint16_t slot = 1; slot <= r->peers.top; slot++) {
        const struct peer *peer = r->peers.at[slot];

        lacks = lacks || (peer != NULL && !peer->removed && !peer->up);
    }
    return lacks;
}

/* Requests wait in the gateway while a node answers nothing of what it was sent, and where a link
 * is broken. */
static void note_put_off(const struct fleet *f, struct sim_gateway *g)
{
    const bool silent =
        !list_empty(&g->core->silent) || g->core->by_stream.silent > 0 || lacks_a_link(g->core);

    if (silent == (g->put_off_from_us == 0)) {
        g->put_off_us = gateway_put_off_us(f, g);
        g->put_off_from_us = g->put_off_from_us == 0 ? f->world.now_us : 0;
    }
}

static uint64_t begin(struct fleet *f, struct sim_gateway *g)
{
    ASSERT(!g->process.gate.shut);
    g->process.step_us = f->world.now_us;
    router_effects_clear(&g->out);
    return sim_clock_read(&g->process.clock, f->world.now_us);
}

/* The step is made: do what it wants. */
static void end(struct fleet *f, struct sim_gateway *g)
{
    check_view(f, g->process.name, router_view(g->core), &g->seen);
    note_put_off(f, g);
    g->out_at = 0;
    g->stops_at = nemesis_stops_at(f, g->out.count);
    gateway_go_on(f, g);
}

void gateway_step(struct fleet *f, struct sim_gateway *g, struct router_event event)
{
    if (g->core != NULL) {
        event.now_us = begin(f, g);
        router_step(g->core, &event, &g->out);
        end(f, g);
    }
}

/* ---- the network's events ---- */

void gateway_up(struct fleet *f, struct sim_gateway *g, struct net_end *end)
{
    if (end->other->role == ROLE_COORDINATOR) {
        g->coordinator[end->key] = end;
        gateway_step(
            f,
            g,
            (struct router_event){.type = ROUTER_COORDINATOR_UP, .coordinator = (int)end->key});
        return;
    }
    g->node[end->key] = end;
    gateway_step(f,
                 g,
                 (struct router_event){
                     .type = ROUTER_NODE_UP,
                     .slot = (uint16_t)end->key,
                     .name = process_says(end->other),
                     .incarnation = end->other_incarnation,
                     .speaks_streams = network_has_streams(end),
                 });
    session_clients_node_link(f, g, (uint16_t)end->key, true);
}

void gateway_down(struct fleet *f, struct sim_gateway *g, const struct net_end *end)
{
    if (end->other->role == ROLE_COORDINATOR) {
        g->coordinator[end->key] = NULL;
        gateway_step(
            f,
            g,
            (struct router_event){.type = ROUTER_COORDINATOR_DOWN, .coordinator = (int)end->key});
        return;
    }
    g->lost_us[fleet_node(end->other) - f->node] = f->world.now_us;
    if (g->node[end->key] != end) {
        return; // a newer link took its place, or the router gave it up
    }
    g->node[end->key] = NULL;
    gateway_step(f, g, (struct router_event){.type = ROUTER_NODE_DOWN, .slot = (uint16_t)end->key});
    session_clients_node_link(f, g, (uint16_t)end->key, false);
}

void gateway_control(struct fleet *f, struct sim_gateway *g, const struct net_end *end,
                     const Rh__Control *message)
{
    if (end->other->role != ROLE_COORDINATOR) {
        return;
    }
    check_outcome(f, g->process.name, message);
    gateway_step(f,
                 g,
                 (struct router_event){
                     .type = ROUTER_CONTROL, .coordinator = (int)end->key, .message = message});
}

void gateway_record(struct fleet *f, struct sim_gateway *g, const struct net_end *end, int type,
                    struct bytes bytes)
{
    struct reader in = {.at = bytes.data, .left = bytes.size};
    struct answer_record answer;
    struct push_record push;

    if (type == FRAME_PUSH && push_get(&in, &push) == ERR_OK && in.left == 0) {
        session_clients_push(f, g, &push);
        return;
    }
    if (type != FRAME_ANSWER || answer_get(&in, &answer) != ERR_OK || in.left != 0) {
        world_violate(&f->world, "codec", "%s got a record that does not decode", g->process.name);
        return;
    }
    if (end->dialled && g->node[end->key] == end) {
        gateway_step(f,
                     g,
                     (struct router_event){
                         .type = ROUTER_ANSWER, .slot = (uint16_t)end->key, .answer = &answer});
    }
}

void gateway_frame(struct fleet *f, struct sim_gateway *g, struct net_end *from,
                   const struct frame *frame)
{
    struct router_frame in = {.frame = frame, .slot = (uint16_t)from->key};
    enum err e = ERR_OK;

    if (!from->dialled || g->node[from->key] != from || g->core == NULL) {
        return;
    }
    check_stream_heard(f, g, fleet_node(from->other), frame);
    in.now_us = begin(f, g);
    do {
        e = router_frame(g->core, &in, &g->out);
    } while (e == ERR_OK && in.left > 0);
    router_effects_keep(&g->out, 0);
    end(f, g);
    if (e != ERR_OK) {
        world_violate(&f->world, "codec", "%s got a frame that cannot be", g->process.name);
    }
}

void gateway_room(struct fleet *f, struct sim_gateway *g, struct net_end *to)
{
    struct sendlog *log = g->core == NULL ? NULL : router_log(g->core, (uint16_t)to->key);

    if (log != NULL && g->node[to->key] == to) {
        network_pour(&f->network, to, log);
    }
}
