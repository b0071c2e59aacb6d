/* SPDX-License-Identifier: Apache-2.0
 *
 * A simulated fleet: its shape from a seed, its network, its run.
 */
#include "sim/fleet.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"
#include "sim/describe.h"
#include "sim/players/players.h"
#include "sim/raft/group.h"
#include "wire/access.h"
#include "wire/control.h"

#include <string.h>

enum {
    START_US = 2000000,
    WORK_AFTER_HEAL_US = 3000000,  /* clients go on for so long */
    SETTLED_MAX_US = 60000000,     /* after the heal: what was under way is over by then (K8) */
    QUIESCENCE_MAX_US = 140000000, /* and changes put off by a full back-off are done by then */
    PROBE_US = 15000000,
};

bool fleet_is_apart(uint16_t kind)
{
    return sim_players_has(kind) || kind == FLEET_KIND_ACCOUNT;
}

struct sim_coordinator *fleet_coordinator(struct process *p)
{
    return CONTAINER_OF(p, struct sim_coordinator, process);
}

struct sim_node *fleet_node(struct process *p)
{
    return CONTAINER_OF(p, struct sim_node, process);
}

struct sim_gateway *fleet_gateway(struct process *p)
{
    return CONTAINER_OF(p, struct sim_gateway, process);
}

unsigned fleet_size(const struct fleet *f)
{
    return f->coordinators + f->nodes + f->gateways;
}

struct process *fleet_process(struct fleet *f, unsigned index)
{
    if (index < f->coordinators) {
        return &f->coordinator[index].process;
    }
    index -= f->coordinators;
    return index < f->nodes ? &f->node[index].process : &f->gateway[index - f->nodes].process;
}

unsigned fleet_process_index(const struct fleet *f, const struct process *p)
{
    switch (p->role) {
    case ROLE_NODE:
        return f->coordinators + p->number - FLEET_COORDINATORS_MAX;
    case ROLE_GATEWAY:
        return f->coordinators + f->nodes + p->number - FLEET_COORDINATORS_MAX - FLEET_NODES_MAX;
    case ROLE_COORDINATOR:
    case ROLE_CLI:
        break;
    }
    return p->number;
}

/* ---- the network's events, to whom they are for ---- */

static bool on_hello(void *context, struct process *who, struct process *other,
                     uint64_t *incarnation)
{
    (void)context;
    switch (who->role) {
    case ROLE_NODE:
        *incarnation = fleet_node(who)->incarnation;
        // A node takes no requests before it has a number.
        return other->role == ROLE_COORDINATOR || *incarnation != 0;
    case ROLE_GATEWAY:
        *incarnation = fleet_gateway(who)->id;
        return true;
    case ROLE_COORDINATOR:
    case ROLE_CLI:
        break;
    }
    return true;
}

static void on_up(void *context, struct net_end *end)
{
    struct fleet *f = context;

    switch (end->me->role) {
    case ROLE_COORDINATOR:
        coordinator_up(f, fleet_coordinator(end->me), end);
        break;
    case ROLE_NODE:
        node_up(f, fleet_node(end->me), end);
        break;
    case ROLE_GATEWAY:
        gateway_up(f, fleet_gateway(end->me), end);
        break;
    case ROLE_CLI:
        f->operator_end[end->key] = end;
        break;
    }
}

static void on_down(void *context, struct net_end *end)
{
    struct fleet *f = context;

    switch (end->me->role) {
    case ROLE_COORDINATOR:
        coordinator_down(f, fleet_coordinator(end->me), end);
        break;
    case ROLE_NODE:
        node_down(f, fleet_node(end->me), end);
        break;
    case ROLE_GATEWAY:
        gateway_down(f, fleet_gateway(end->me), end);
        break;
    case ROLE_CLI:
        f->operator_end[end->key] = NULL;
        break;
    }
}

/* Coordinators of a release that knows of no versions pass over what is told of them. */
static void coordinator_hears(struct fleet *f, struct net_end *end, Rh__Control *message)
{
    const bool renews = message->body_case == RH__CONTROL__BODY_RENEW;
    const bool passes = f->versions_untold && renews;
    const size_t states = passes ? message->renew->n_states : 0;

    if (passes) {
        message->renew->n_states = 0;
    }
    if (renews && end->other->role == ROLE_NODE) {
        balance_tell(f, fleet_node(end->other), message->renew);
    }
    coordinator_message(f, fleet_coordinator(end->me), end, message);
    if (passes) {
        message->renew->n_states = states; // to be freed
    }
}

static void on_control(struct fleet *f, struct net_end *end, struct bytes bytes)
{
    Rh__Control *message = control_get(bytes);

    if (message == NULL) {
        world_violate(
            &f->world, "codec", "%s got a control message that does not decode", end->me->name);
        return;
    }
    TRACE(&f->world, end->me->name, "<- %s %s", end->other->name, describe_control(message));
    switch (end->me->role) {
    case ROLE_COORDINATOR:
        coordinator_hears(f, end, message);
        break;
    case ROLE_NODE:
        node_control(f, fleet_node(end->me), end, message);
        break;
    case ROLE_GATEWAY:
        gateway_control(f, fleet_gateway(end->me), end, message);
        break;
    case ROLE_CLI:
        operator_message(f, message);
        break;
    }
    control_free(message);
}

/* Nobody here says what a link would refuse. Of actors that call by a gateway, as none does that
 * ships, the gateway has their chains. */
static void check_access(struct fleet *f, const struct net_end *end, int type, struct bytes bytes)
{
    const struct frame frame = {.type = (enum frame_type)type, .count = 1, .body = bytes};
    const enum access_message m = access_judge(&frame, end->other->role, end->me->role);

    if (m != ACCESS_NONE && (m != ACCESS_CALL || f->faults.node_calls)) {
        world_violate(&f->world,
                      "access",
                      "%s says %s to %s",
                      end->other->name,
                      access_text(m),
                      end->me->name);
    }
}

static void on_message(void *context, struct net_end *end, int type, struct bytes bytes)
{
    struct fleet *f = context;

    check_access(f, end, type, bytes);
    if (type == FRAME_CONTROL) {
        on_control(f, end, bytes);
    } else if (end->me->role == ROLE_COORDINATOR) {
        coordinator_raft(f, fleet_coordinator(end->me), bytes);
    } else if (end->me->role == ROLE_NODE) {
        node_record(f, fleet_node(end->me), end, type, bytes);
    } else {
        ASSERT(end->me->role == ROLE_GATEWAY);
        gateway_record(f, fleet_gateway(end->me), end, type, bytes);
    }
}

static void on_frame(void *context, struct net_end *end, const struct frame *frame)
{
    struct fleet *f = context;
    const enum access_message m = access_judge(frame, end->other->role, end->me->role);

    if (m != ACCESS_NONE) {
        world_violate(&f->world,
                      "access",
                      "%s says %s to %s",
                      end->other->name,
                      access_text(m),
                      end->me->name);
    } else if (end->me->role == ROLE_NODE) {
        node_frame(f, fleet_node(end->me), end, frame);
    } else {
        ASSERT(end->me->role == ROLE_GATEWAY);
        gateway_frame(f, fleet_gateway(end->me), end, frame);
    }
}

static void on_room(void *context, struct net_end *end)
{
    struct fleet *f = context;

    if (end->me->role == ROLE_NODE) {
        node_room(f, fleet_node(end->me), end);
    } else {
        gateway_room(f, fleet_gateway(end->me), end);
    }
}

/* ---- life ---- */

static void draw_shape(struct fleet *f)
{
    static const unsigned groups[] = {1, 3, 3, 3, 5};
    uint64_t busy_us;

    f->coordinators = groups[world_between(&f->world, 0, 4)];
    f->nodes = f->options.nodes != 0 ? f->options.nodes
                                     : (unsigned)world_between(&f->world, 2, FLEET_NODES_MAX - 2);
    f->nodes = f->roles && f->nodes < 4 ? 4 : f->nodes; // two of each
    f->gateways = (unsigned)world_between(&f->world, 1, 2);
    f->clients = (unsigned)world_between(&f->world, 2, FLEET_CLIENTS_MAX);
    f->client_gap_us = world_between(&f->world, 40000, 160000);
    // The hot entities shall be busy half of their time, not overrun.
    busy_us = f->client_gap_us * 12 / ((uint64_t)f->clients * 7);
    busy_us /= 2; // the other half for the store
    f->faults.run_max_us = f->faults.run_max_us < busy_us ? f->faults.run_max_us : busy_us;
    f->faults.store_max_us =
        f->faults.store_max_us < busy_us / 2 ? f->faults.store_max_us : busy_us / 2;
    f->vnodes_per_weight = (uint32_t)world_between(&f->world, 2, 8);
    f->moves_per_txn = (uint32_t)world_between(&f->world, 1, 4);
    f->prepare_ms = (uint32_t)(world_chance(&f->world, 400) ? world_between(&f->world, 100, 600)
                                                            : world_between(&f->world, 500, 5000));
    if (f->profile == PROFILE_CALM && f->faults.call_pm > 0) {
        f->prepare_ms = 4000; // so that one that is reached shows
    }
    f->lease_us = 0;
    if (!world_chance(&f->world, 100)) {
        f->lease_us = world_between(&f->world, 300000, 3000000);
    }
    if (f->lease_us == 0) {
        f->faults.reboot_pm = f->faults.wipe_pm = 0; // nothing would ever prove the old one dead
    }
    if (f->profile == PROFILE_CALM && f->lease_us != 0) {
        f->lease_us = 3000000;
    } else if (f->profile == PROFILE_LEASE || f->profile == PROFILE_ROLES) {
        f->lease_us = world_between(&f->world, 300000, 3000000);
        f->prepare_ms = f->prepare_ms < 2000 ? 2000 : f->prepare_ms;
    } else if (f->profile == PROFILE_RESTORE) {
        // A restore brings nodes back that have left since: only leases tell that they are gone.
        f->lease_us = world_between(&f->world, 1000000, 3000000);
    }
    if (f->profile == PROFILE_COORDINATORS) {
        // An election takes its time, and there are many.
        f->lease_us = world_between(&f->world, 1500000, 3000000);
    }
    f->deadline_ms = 10000;
    if (f->profile != PROFILE_CALM && world_chance(&f->world, 500)) {
        f->deadline_ms = (uint32_t)world_between(&f->world, 200, 2000);
    }
    f->retry_ms = (uint32_t)world_between(&f->world, 100, 1500);
    if (f->faults.lull_us > 0) {
        f->retry_ms = 100;
        f->deadline_ms = 10000;
    }
    if (f->profile == PROFILE_COPIES || f->profile == PROFILE_CHANGES) {
        f->deadline_ms = f->profile == PROFILE_COPIES ? 10000 : f->deadline_ms;
        f->retry_ms = 100;
        f->lease_us = f->lease_us > 0 ? 3000000 : 0;
    }
    f->poll_ms = (uint32_t)world_between(&f->world, 50, 1000);
}

/* So few actors are activated at a time, in some fleets: drawn by itself, so that the others stay
 * as they were. Not with roles, nor with players, where few ids wait for one another as it is; nor
 * where every answer must be OK, for who waits in line may be told to come again. */
static void draw_activations(struct fleet *f, uint64_t seed)
{
    struct prng aside = {.state = seed ^ 0x61637469766174u};
    const bool fits =
        f->profile != PROFILE_ROLES && f->profile != PROFILE_SESSIONS && f->profile != PROFILE_CALM;

    if (fits && prng_chance(&aside, 30)) {
        f->activations = (uint32_t)prng_between(&aside, 1, 3);
    }
}

/* Vnodes move in parts, in some fleets: drawn by itself, as above. Not with roles: there the few
 * cells of a segment are parts already, and rare histories stay what they were. */
static void draw_slices(struct fleet *f, uint64_t seed)
{
    struct prng aside = {.state = seed ^ 0x736c69636573u};

    if (f->profile != PROFILE_ROLES && prng_chance(&aside, 30)) {
        f->actors_per_txn = (uint32_t)prng_between(&aside, 1, 8);
    }
}

/* Coordinators have settings of their own, in some fleets, and others after a restart: drawn by
 * itself, as above. */
static void draw_leases(struct fleet *f, uint64_t seed)
{
    f->leases.state = seed ^ 0x6c6561736573u;
    const bool fits = f->lease_us > 0 && f->profile != PROFILE_CALM &&
                      f->profile != PROFILE_ROLES && f->profile != PROFILE_COORDINATORS;

    f->leases_differ = fits && prng_chance(&f->leases, f->profile == PROFILE_RESTORE ? 60 : 20);
}

void sim_fleet_init(struct fleet *f, uint64_t seed, const struct fleet_options *options)
{
    const struct net_events events = {.context = f,
                                      .hello = on_hello,
                                      .up = on_up,
                                      .down = on_down,
                                      .message = on_message,
                                      .frame = on_frame,
                                      .room = on_room,
                                      .poured = streams_on_poured,
                                      .kind = aim_kind};

    memset(f, 0, sizeof *f);
    world_init(&f->world, seed);
    f->options = *options;
    nemesis_draw(f);
    draw_shape(f);
    draw_activations(f, seed);
    draw_slices(f, seed);
    draw_leases(f, seed);
    store_draw(f, seed);
    maintenance_draw(f, seed);
    f->serving.state = seed ^ 0x7365727665u;
    past_draw(f, seed);
    aim_draw(f, seed);
    network_init(&f->network, &f->world, &events);
    f->network.faults = f->faults.net;
    ledger_init(f);
    poison_draw(f);
    sim_players_draw(f);
    bank_draw(f);
    remember_draw(f);
    twin_draw(f, seed);
    coordinators_init(f);
    for (unsigned i = 0; i < f->nodes; i++) {
        node_init(f, &f->node[i], i);
    }
    for (unsigned i = 0; i < f->gateways; i++) {
        gateway_init(f, &f->gateway[i], i);
    }
    streams_draw(f, seed);
}

void sim_fleet_fini(struct fleet *f)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        actors_crash(f, &f->node[i]);
        calls_free(f->node[i].calls);
        sim_runtime_close(&f->node[i]);
        sim_durable_close(&f->node[i]);
        sim_teller_close(&f->node[i]);
        host_free(f->node[i].core);
        host_effects_fini(&f->node[i].out);
        sim_folder_free(&f->node[i]);
    }
    for (unsigned i = 0; i < f->gateways; i++) {
        session_clients_close(f, &f->gateway[i]);
        router_free(f->gateway[i].core);
        router_effects_fini(&f->gateway[i].out);
        mem_free(f->gateway[i].node);
    }
    for (unsigned i = 0; i < f->coordinators; i++) {
        coordinator_free(f->coordinator[i].core);
        coordinator_effects_fini(&f->coordinator[i].out);
    }
    for (unsigned i = 0; i < fleet_size(f); i++) {
        world_gate_fini(&fleet_process(f, i)->gate);
    }
    store_fini(f);
    balance_free(f);
    sim_players_fini(f);
    bank_fini(f);
    group_fini(f);
    raft_model_fini(&f->raft);
    network_fini(&f->network);
    ledger_fini(&f->ledger);
    world_fini(&f->world);
}

static void start(struct fleet *f)
{
    const unsigned all = f->nodes - (f->faults.twin_us > 0);
    const unsigned nodes = (unsigned)world_between(&f->world, f->roles ? 2 : 1, all);

    for (unsigned i = 0; i < f->coordinators; i++) {
        if (f->group == NULL || group_id(f, i) != 0) {
            coordinator_start(f, &f->coordinator[i]);
        }
    }
    operator_start(f);
    roles_start(f);
    for (unsigned i = 0; i < nodes; i++) {
        node_start(f, &f->node[i]);
    }
    for (unsigned i = 0; i < f->gateways; i++) {
        gateway_start(f, &f->gateway[i]);
    }
}

/* Look until the fleet is quiet twice in a row; not in time is a violation. */
static void await_quiescence(struct fleet *f, uint64_t until_us)
{
    const uint64_t settled_max_us = f->world.now_us + SETTLED_MAX_US;
    bool settled = false;
    unsigned times = 0;
    const char *what = "time";

    while (f->world.checker == NULL && times < 2 && f->world.now_us < until_us) {
        world_run_until(&f->world, f->world.now_us + FLEET_LOOK_US);
        check_holds(f);
        check_pending(f);
        check_recovery(f);
        what = check_settled(f);
        settled = settled || what == NULL;
        if (!settled && f->world.now_us > settled_max_us) {
            break;
        }
        what = what == NULL ? check_quiescence(f) : what;
        times = what == NULL ? times + 1 : 0;
    }
    if (f->world.checker == NULL && times < 2) {
        world_violate(&f->world, "stuck", "after the heal: %s", what == NULL ? "time" : what);
    }
}

/* Twice as long where coordinators change: each takes an election. */
static uint64_t heal_at(const struct fleet *f)
{
    const uint64_t times = f->profile == PROFILE_COORDINATORS ? 2 : 1;

    return START_US + times * f->options.seconds * 1000000;
}

void sim_fleet_run(struct fleet *f)
{
    f->heal_us = heal_at(f);
    start(f);
    world_run_until(&f->world, world_between(&f->world, 0, START_US));
    clients_start(f);
    sim_players_start(f);
    bank_start(f);
    world_run_until(&f->world, START_US);
    nemesis_start(f);
    while (f->world.checker == NULL && f->world.now_us < f->heal_us) {
        world_run_until(&f->world, f->heal_us);
    }
    if (f->world.checker != NULL) {
        return;
    }
    nemesis_heal(f);
    sim_players_heal(f);
    bank_heal(f);
    world_run_until(&f->world, f->heal_us + WORK_AFTER_HEAL_US);
    f->working = false;
    nemesis_let_one_stay(f);
    await_quiescence(f, f->heal_us + QUIESCENCE_MAX_US);
    if (f->world.checker == NULL) {
        clients_probe(f);
        bank_probe(f);
        await_quiescence(f, f->world.now_us + PROBE_US);
    }
    if (f->world.checker == NULL) {
        check_lists(f);
        check_final(f);
    }
}
