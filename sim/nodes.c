/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated nodes: the shipped host, its actors, disk, lease and crashes.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/table.h"
#include "sim/fleet.h"
#include "sim/players/players.h"

#include <stdio.h>
#include <string.h>

static struct sim_node *node_of(struct fleet *f, const struct world_event *event)
{
    struct sim_node *n = &f->node[event->a];

    return n->process.up && n->process.life == event->b ? n : NULL;
}

static void node_later(struct fleet *f, const struct sim_node *n, uint64_t at_us,
                       struct world_event event)
{
    event.context = f;
    event.a = (uint64_t)(n - f->node);
    event.b = n->process.life;
    world_at(&f->world, at_us, event);
}

/* A renewal leaves at a tick. Where that is late by more than a small part of a lease, a node that
 * is alone is fresh too seldom for others ever to be fenced. What is shipped looks every 10 ms, and
 * no lease is shorter than a second. */
static uint64_t tick_max_us(const struct fleet *f)
{
    const uint64_t part_us = coordinators_lease_min_us(f) / 16;

    return part_us == 0 || part_us > 50000 ? 50000 : part_us;
}

static void on_tick(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *n = node_of(f, event);

    if (n == NULL) {
        return;
    }
    node_later(f,
               n,
               f->world.now_us + world_between(&f->world, 10000, tick_max_us(f)),
               (struct world_event){.run = on_tick, .gate = &n->process.gate, .timer = true});
    node_calls_tick(f, n);
    sim_runtime_tick(f, n);
    sim_teller_tick(n);
    sim_durable_tick(n);
    node_step(f, n, (struct host_event){.type = HOST_TICK});
}

void node_init(struct fleet *f, struct sim_node *n, unsigned number)
{
    n->process.role = ROLE_NODE;
    n->process.number = FLEET_COORDINATORS_MAX + number;
    (void)snprintf(n->process.name, sizeof n->process.name, "n%u", number + 1);
    n->weight = 1;
    nemesis_clock(f, &n->process);
}

/* Bytes a second: in a quarter of the seeds nothing goes ahead of holds, in others little does. */
static size_t ahead_rate(uint64_t seed)
{
    static const size_t rates[] = {0, 100000, 1000000, 64000000};

    return rates[table_mix(seed ^ 0x6168656164u) % (sizeof rates / sizeof rates[0])];
}

enum { VERSIONS = 3 };

/* Each start may bring another build, a newer one or one of before: it reads what it writes, and
 * what is older. False: states have no versions. */
static bool set_versions(const struct fleet *f, struct sim_node *n)
{
    const uint64_t drawn = table_mix(f->world.seed ^ (n->process.life << 8 | n->process.number));

    n->version = 0;
    if (f->versioned) {
        n->version = f->versions_rest ? VERSIONS : 1 + (uint32_t)(drawn % VERSIONS);
        memcpy(n->kinds, f->kinds, sizeof f->kinds);
    }
    for (size_t i = 0; i < 2 && n->version > 0; i++) {
        n->kinds[i].state_version = n->kinds[i].state_most = n->version;
        n->kinds[i].state_least = 1;
    }
    return f->versioned;
}

static struct host_config config_of(struct fleet *f, struct sim_node *n)
{
    const unsigned place = n->first != NULL ? n->first->process.number : n->process.number;
    struct host_config c = host_config_default();

    (void)snprintf(c.name, sizeof c.name, "%s", process_says(&n->process));
    (void)snprintf(c.address, sizeof c.address, "%s", n->process.name);
    c.weight = n->weight;
    c.boot_id[0] = (uint8_t)place;
    c.boot_id[1] = n->boots;
    c.boot_id[2] = n->copied; // another lock file
    c.data_uuid[0] = (uint8_t)place;
    c.data_uuid[1] = n->wipes;
    if (f->faults.tight) {
        c.held_size_max = 20000;
        c.queue_count_max = 20;
    }
    if (f->activations > 0) {
        c.activations_max = f->activations;
        c.cold_count_max = 8;
    }
    c.nonce = n->nonce = world_between(&f->world, 1, UINT64_MAX - 1);
    c.disk = n->disk;
    f->kinds[0] = (struct host_kind){.number = FLEET_KIND,
                                     .idle_ms = f->faults.idle_ms,
                                     .remembered = f->faults.remembered,
                                     .remember = f->remembers,
                                     .ahead = true,
                                     .brief = serve_drawn(f->world.seed)};
    f->kinds[1] = (struct host_kind){.number = FLEET_KIND_DURABLE, .idle_ms = f->faults.idle_ms};
    f->kinds[2] = (struct host_kind){
        .number = FLEET_KIND_SESSION, .ahead = true, .idle_ms = f->faults.idle_ms};
    f->kinds[3] = (struct host_kind){
        .number = FLEET_KIND_REJECTING, .ahead = true, .idle_ms = f->faults.idle_ms};
    f->kinds[4] = (struct host_kind){
        .number = FLEET_KIND_SEVERAL, .ahead = true, .idle_ms = f->faults.idle_ms};
    if (f->bank != NULL) { // then there are no players
        f->kinds[2] = bank_kind(f);
    }
    c.kinds = set_versions(f, n) ? n->kinds : f->kinds;
    c.kind_count = f->bank != NULL                        ? 3
                   : f->players == NULL                   ? 2
                   : f->players->actors == SESSION_ACTORS ? 4
                                                          : 5;
    c.actors_max = f->faults.actors_max;
    roles_config(f, n, &c);
    poison_config(f, n, &c);
    c.state_window = 131072;
    c.exports_at_once = 2;
    c.move_rate = ahead_rate(f->world.seed);
    c.serve = f->options.serves;
    c.poll_ms = f->poll_ms;
    c.renew_ms = f->lease_us == 0 ? 500 : (uint32_t)(f->lease_us / 6000);
    return c;
}

void node_start(struct fleet *f, struct sim_node *n)
{
    sim_folder_open(f, n);
    const struct host_config config = config_of(f, n);

    n->process.up = true;
    n->process.life++;
    n->incarnation = 0;
    n->seen = (struct view_seen){0};
    n->wanted = true;
    n->exits = false;
    n->leaving = n->leaving && !n->stopping;
    n->stopping = false;
    n->disk_us = n->persisted_us = 0;
    n->watch_us = 0;
    n->core = host_new(&config);
    n->settles = false;
    node_calls_start(f, n);
    sim_runtime_open(f, n);
    sim_durable_open(f, n);
    sim_teller_open(f, n);
    TRACE(&f->world, n->process.name, "STARTS, weight %u", n->weight);
    if (n->version > 0) {
        TRACE(&f->world, n->process.name, "writes states of version %u", n->version);
    }
    for (unsigned i = 0; i < f->coordinators; i++) {
        network_dial(&f->network, &n->process, &f->coordinator[i].process, i);
    }
    node_later(f,
               n,
               f->world.now_us,
               (struct world_event){.run = on_tick, .gate = &n->process.gate, .timer = true});
    // A restore may have brought an old drain back while it was gone, or was about to stop.
    operator_looks(f, n);
}

static void stop(struct fleet *f, struct sim_node *n, bool clean)
{
    n->process.up = false;
    pause_end(f, &n->process);
    actors_crash(f, n);
    node_calls_stop(n);
    lives_drop(n, NULL);
    sim_runtime_close(n);
    sim_durable_close(n);
    sim_teller_close(n);
    host_free(n->core);
    n->core = NULL;
    host_effects_fini(&n->out);
    memset(n->coordinator, 0, sizeof n->coordinator);
    network_crash(&f->network, &n->process, clean);
}

static void on_restart(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *n = &f->node[event->a];

    if (!n->process.up && n->wanted && n->process.life == event->b) {
        node_start(f, n);
    }
}

void node_crash(struct fleet *f, struct sim_node *n)
{
    const uint64_t down_us = world_between(&f->world, 1000, f->healed ? 100000 : 3000000);

    TRACE(&f->world, n->process.name, "CRASHES");
    f->crashes++;
    check_node_crash(f, n);
    check_leaves_lease(f, n);
    poison_died(f, n);
    stop(f, n, false);
    const bool begun = !world_chance(&f->world, 500);
    const bool reboots = world_chance(&f->world, f->faults.reboot_pm);
    sim_folder_crash(f, n, begun, reboots);
    if (reboots) {
        n->boots++;
        poison_forget(n, false);
    }
    if (world_chance(&f->world, f->faults.wipe_pm)) {
        TRACE(&f->world, n->process.name, "lost its disk");
        n->wipes++;
        poison_forget(n, true);
        sim_folder_free(n);
        n->disk = n->told = (struct host_disk){0};
    }
    node_later(f, n, f->world.now_us + down_us, (struct world_event){.run = on_restart});
}

void nodes_end_versions(struct fleet *f)
{
    f->versions_rest = true;
    for (unsigned i = 0; f->versioned && i < f->nodes; i++) {
        if (f->node[i].core != NULL && f->node[i].version != VERSIONS) {
            node_crash(f, &f->node[i]);
        }
    }
}

void node_leave(struct fleet *f, struct sim_node *n)
{
    TRACE(&f->world, n->process.name, "is told to leave");
    n->leaving = true;
    n->stopping = true;
    node_step(f, n, (struct host_event){.type = HOST_LEAVE});
}

/* ---- effects ---- */

static void on_written(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *n = node_of(f, event);

    if (n != NULL) {
        memcpy(&n->disk, event->data, sizeof n->disk);
    }
}

static void on_persisted(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *n = node_of(f, event);
    struct host_event e = {.type = HOST_PERSISTED};

    if (n != NULL) {
        sim_folder_store(n);
        n->told = n->disk;
        memcpy(&e.ticket, event->data, sizeof e.ticket);
        node_step(f, n, e);
    }
}

/* The record is on the disk some time before the node hears of it. */
static void persist(struct fleet *f, struct sim_node *n, const struct host_effect *e)
{
    const uint64_t now = f->world.now_us;

    if (world_chance(&f->world, f->faults.disk_fail_pm)) {
        TRACE(&f->world, n->process.name, "cannot write its number");
        n->exits = true; // as the shell does
        n->exit_code = 1;
        return;
    }
    n->disk_us = (n->disk_us > now ? n->disk_us : now) +
                 world_between(&f->world, 10, f->faults.persist_max_us);
    n->persisted_us = n->persisted_us > n->disk_us ? n->persisted_us : n->disk_us;
    n->persisted_us += world_between(&f->world, 0, f->faults.persist_max_us / 2);
    node_later(f,
               n,
               n->disk_us,
               (struct world_event){.run = on_written, .data = mem_copy(e->disk, sizeof *e->disk)});
    node_later(f,
               n,
               n->persisted_us,
               (struct world_event){.run = on_persisted,
                                    .data = mem_copy(&e->ticket, sizeof e->ticket),
                                    .gate = &n->process.gate});
}

static void send(struct fleet *f, struct net_end *end, int type, struct bytes bytes)
{
    if (end != NULL) {
        network_send(&f->network, end, type, bytes);
    }
}

static void connect_to(struct fleet *f, struct sim_node *n, const struct host_effect *e)
{
    const char *address = (const char *)n->out.bytes.data + e->at;

    for (unsigned i = 0; i < f->nodes; i++) {
        if (strcmp(f->node[i].process.name, address) == 0) {
            network_forget(&f->network, &n->process, ROLE_NODE, e->slot);
            network_dial(&f->network, &n->process, &f->node[i].process, e->slot);
        }
    }
}

static void send_peer(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                      struct bytes bytes)
{
    struct net_end *end = network_end(&f->network, e->peer);

    if (frame_type_is_stream((uint8_t)e->frame_type)) {
        if (end != NULL) {
            network_say(&f->network, end, (enum stream_frame)e->frame_type, bytes);
        }
        return;
    }
    check_output(f, n);
    check_frame(f, n, e->frame_type, bytes);
    send(f, end, e->frame_type, bytes);
}

/* (Nobody here is two.) */
static void let_go(struct fleet *f, const struct sim_node *n, const struct host_effect *e)
{
    struct net_end *end = network_end(&f->network, e->peer);

    TRACE(&f->world, n->process.name, "drops a link: %s", e->why);
    if (end != NULL) {
        network_break(&f->network, end);
    }
}

static void effect(struct fleet *f, struct sim_node *n, const struct host_effect *e)
{
    const struct bytes bytes = {n->out.bytes.data + e->at, e->size};

    switch (e->type) {
    case HOST_SEND_COORDINATOR:
        send(f, n->coordinator[e->coordinator], FRAME_CONTROL, bytes);
        break;
    case HOST_SEND_PEER:
        if (e->peer == CALLS_LINK) {
            node_calls_output(f, n, bytes);
            break;
        }
        n->process.step_us = n->stepped_us; // the calls may have gone on since
        send_peer(f, n, e, bytes);
        break;
    case HOST_CONNECT:
        connect_to(f, n, e);
        break;
    case HOST_DISCONNECT:
        network_forget(&f->network, &n->process, ROLE_NODE, e->slot);
        break;
    case HOST_PERSIST:
        persist(f, n, e);
        break;
    case HOST_SUBMIT:
        lives_submit(f, n, e, bytes);
        break;
    case HOST_FORMER:
        node_calls_former(f, n, e);
        break;
    case HOST_LIST:
        lives_list(f, n);
        break;
    case HOST_DROP_PEER:
        let_go(f, n, e);
        break;
    case HOST_DUE:
        sim_teller_due(f, n, e, bytes);
        break;
    case HOST_MAILBOX_FULL:
        break;
    case HOST_REGISTERED:
        TRACE(&f->world,
              n->process.name,
              "is registered, incarnation %llu",
              (unsigned long long)e->incarnation);
        check_registered(f, n, e->incarnation);
        n->incarnation = e->incarnation;
        sim_runtime_renew(n);
        network_renew(&f->network, &n->process); // who met it before knows it by an older one
        check_served(f, n);
        break;
    case HOST_EXIT:
        n->exits = true;
        n->exit_code = e->code;
        // I4. A fenced one may learn of its end this way, and so may one that coordinators on old
        // files know nothing of, when it has no lease.
        if (e->exit_why == HOST_EXIT_OVERLAP && n->incarnation > n->reassigned &&
            !(past_doubts(f, n->incarnation) && node_is_gated(f, n))) {
            world_violate(&f->world, "overlap", "%s: %s", n->process.name, e->why);
        }
        if (e->exit_why == HOST_EXIT_OPERATOR) {
            hand_ended(f, n);
        }
        TRACE(&f->world, n->process.name, "exits %d: %s", e->code, e->why);
        break;
    }
}

void node_complete(struct fleet *f, const struct instance *i, struct completion c)
{
    node_step(f,
              i->node,
              (struct host_event){.type = HOST_COMPLETED, .actor = i->actor, .completion = c});
}

static void exit_now(struct fleet *f, struct sim_node *n)
{
    if (n->exit_code != 0) {
        node_crash(f, n);
        return;
    }
    n->wanted = false;
    n->leaving = false;
    poison_stopped(n);
    stop(f, n, true);
}

/* The clock is read again before each effect: what comes too late for the lease is kept (I8). */
static void do_next(struct fleet *f, struct sim_node *n)
{
    const size_t at = n->out_at++;
    const struct host_effect *e = &n->out.item[at];

    if (sim_clock_read(&n->process.clock, f->world.now_us) >= host_limit_us(n->core, e)) {
        host_keep(n->core, &n->out, at);
    } else {
        effect(f, n, e);
    }
}

/* ---- the watchdog: a thread of its own, that ends the process ---- */

static void watch(struct fleet *f, struct sim_node *n);

static void on_watch(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *n = node_of(f, event);

    if (n == NULL || n->watch_us == 0) {
        return;
    }
    n->watch_us = 0;
    lives_recall(f, n);
    if (n->core == NULL || f->world.checker != NULL) {
        return;
    }
    if (host_running(n->core) > 0 && node_is_past_the_end(f, n)) {
        TRACE(&f->world, n->process.name, "is ended by its watchdog");
        node_crash(f, n);
        return;
    }
    watch(f, n);
}

/* It sleeps until the hard end as known now, and looks again then. A grant may move the end to an
 * earlier time, when a maintenance that had extended the lease is over. */
static void watch(struct fleet *f, struct sim_node *n)
{
    const uint64_t end_us = host_hard_end_us(n->core);

    if (end_us == UINT64_MAX || host_running(n->core) == 0) {
        return;
    }
    const uint64_t at_us = sim_clock_when(&n->process.clock, end_us, f->world.now_us) + 1;
    if (n->watch_us != 0 && n->watch_us <= at_us) {
        return;
    }
    n->watch_us = at_us;
    node_later(f, n, n->watch_us, (struct world_event){.run = on_watch, .gate = &n->process.gate});
}

bool node_is_gated(const struct fleet *f, const struct sim_node *n)
{
    return n->core == NULL ||
           sim_clock_read(&n->process.clock, f->world.now_us) >= host_gate_us(n->core);
}

bool node_is_past_the_end(const struct fleet *f, const struct sim_node *n)
{
    return n->core == NULL ||
           sim_clock_read(&n->process.clock, f->world.now_us) >= host_hard_end_us(n->core);
}

void node_go_on(struct fleet *f, struct sim_node *n)
{
    while (n->out_at < n->out.count && f->world.checker == NULL) {
        if (n->out_at == n->dies_at) {
            node_crash(f, n);
            return;
        }
        if (n->out_at == n->stops_at) {
            n->stops_at = SIZE_MAX;
            nemesis_pause(f, &n->process);
            return;
        }
        do_next(f, n);
    }
    if (n->exits) {
        exit_now(f, n);
    } else if (n->process.up) {
        watch(f, n);
        node_pour(f, n);
        node_calls_settle(f, n);
    }
}

/* What the step decided to run, in time. */
static void look_at_runs(struct fleet *f, const struct sim_node *n)
{
    for (size_t i = 0; i < n->out.count; i++) {
        const struct host_effect *e = &n->out.item[i];
        const enum verb verb = e->submission.verb;

        if (e->type == HOST_SUBMIT && (verb == VERB_RUN || verb == VERB_ACTIVATE)) {
            check_begins(f, n);
        }
        if (e->submission.verb == VERB_RUN && !fleet_is_apart(actor_kind(e->actor))) {
            const struct bytes asked =
                node_called(f, &e->submission, bytes_of(n->out.bytes.data + e->at, e->size));
            struct reader in = {.at = asked.data, .left = asked.size};

            check_in_time(f, n, get_u64(&in));
        }
    }
}

void node_begin_step(struct fleet *f, struct sim_node *n, struct host_event *event)
{
    ASSERT(!n->process.gate.shut);
    n->process.step_us = n->stepped_us = f->world.now_us;
    event->now_us = sim_clock_read(&n->process.clock, f->world.now_us);
    // Without M_MONO's other half the two clocks would tell of the sleep (hole 28).
    event->wall_us = mutant(M_MONO) ? 0 : FLEET_WALL_US + event->now_us + (uint64_t)n->wall_us;
    host_effects_clear(&n->out);
}

void node_end_step(struct fleet *f, struct sim_node *n, bool torn)
{
    check_view(f, n->process.name, host_view(n->core), &n->seen);
    poison_stepped(f, n);
    look_at_runs(f, n);
    node_calls_look(f, n);
    record_lease(f, n);
    actors_look_still(f, n);
    n->out_at = 0;
    n->dies_at = torn && n->out.count > 0 && world_chance(&f->world, f->faults.node_torn_pm) &&
                         world_chance(&f->world, 100)
                     ? world_between(&f->world, 0, n->out.count - 1)
                     : SIZE_MAX;
    n->stops_at = torn && !n->has_more ? nemesis_stops_at(f, n->out.count) : SIZE_MAX;
    node_go_on(f, n);
}

void node_step(struct fleet *f, struct sim_node *n, struct host_event event)
{
    if (n->core == NULL) {
        return;
    }
    node_begin_step(f, n, &event);
    host_step(n->core, &event, &n->out);
    node_end_step(f, n, true);
}

/* ---- the network's events ---- */

void node_up(struct fleet *f, struct sim_node *n, struct net_end *end)
{
    if (end->other->role == ROLE_COORDINATOR) {
        n->coordinator[end->key] = end;
        node_step(
            f, n, (struct host_event){.type = HOST_COORDINATOR_UP, .coordinator = (int)end->key});
        return;
    }
    n->has_more = true;
    if (end->other->role == ROLE_NODE) {
        node_calls_link(f, n, end, true);
    } else {
        sim_runtime_link(f, n, end, true);
    }
    n->has_more = false;
    node_step(f,
              n,
              (struct host_event){
                  .type = HOST_PEER_UP,
                  .peer = end->id,
                  .role = (int)end->other->role,
                  .name = process_says(end->other),
                  .incarnation = end->other_incarnation,
                  .dialled = end->dialled,
                  .streams = network_has_streams(end),
              });
}

void node_down(struct fleet *f, struct sim_node *n, const struct net_end *end)
{
    if (end->other->role == ROLE_COORDINATOR) {
        n->coordinator[end->key] = NULL;
        node_step(
            f, n, (struct host_event){.type = HOST_COORDINATOR_DOWN, .coordinator = (int)end->key});
        return;
    }
    n->has_more = true;
    check_stream_parted(f, n, end);
    if (end->other->role == ROLE_NODE) {
        n->lost_us[fleet_node(end->other) - f->node] = f->world.now_us;
        node_calls_link(f, n, end, false);
    } else {
        sim_runtime_link(f, n, end, false);
    }
    n->has_more = false;
    node_step(f, n, (struct host_event){.type = HOST_PEER_DOWN, .peer = end->id});
}

void node_control(struct fleet *f, struct sim_node *n, const struct net_end *end,
                  const Rh__Control *message)
{
    if (end->other->role == ROLE_COORDINATOR) {
        check_outcome(f, n->process.name, message);
        node_step(f,
                  n,
                  (struct host_event){
                      .type = HOST_CONTROL, .coordinator = (int)end->key, .message = message});
        check_lease(f, n, message);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_PROBE) {
        node_calls_probe(f, n, end->id, message->probe);
        return;
    }
    n->has_more = true;
    node_calls_control(f, n, end->id, message);
    n->has_more = false;
    node_step(
        f, n, (struct host_event){.type = HOST_PEER_CONTROL, .peer = end->id, .message = message});
}

void node_record(struct fleet *f, struct sim_node *n, const struct net_end *end, int type,
                 struct bytes bytes)
{
    struct reader in = {.at = bytes.data, .left = bytes.size};
    struct request_record request;
    struct answer_record answer;
    struct state_record state;
    struct state_ack_record state_ack;
    struct host_event e = {.peer = end->id};
    enum err error = ERR_CORRUPT;

    if (type == FRAME_REQUEST) {
        e.type = HOST_REQUEST;
        e.request = &request;
        error = request_get(&in, &request);
        if (error == ERR_OK) {
            check_hops(f, n, end->other, &request);
        }
    } else if (type == FRAME_ANSWER) {
        e.type = HOST_ANSWER;
        e.answer = &answer;
        error = answer_get(&in, &answer);
    } else if (type == FRAME_STATE) {
        e.type = HOST_STATE;
        e.state = &state;
        e.state_count = 1;
        error = state_get(&in, &state);
    } else if (type == FRAME_STATE_ACK) {
        e.type = HOST_STATE_ACK;
        e.state_ack = &state_ack;
        error = state_ack_get(&in, &state_ack);
    }
    if (error != ERR_OK || in.left != 0) {
        world_violate(&f->world, "codec", "%s got a record that does not decode", n->process.name);
        return;
    }
    if (type == FRAME_ANSWER && node_calls_answer(f, n, end->id, &answer)) {
        node_calls_settle(f, n);
        return;
    }
    if (type == FRAME_REQUEST && serve_request(f, n, end->id, 0, &request)) {
        return;
    }
    node_step(f, n, e);
}
