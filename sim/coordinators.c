/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated coordinators: the shipped leader's machine and Raft group, with
 * disks and crashes.
 */
#include "base/assert.h"
#include "sim/fleet.h"
#include "sim/raft/group.h"

#include <stdio.h>

static void step(struct fleet *f, struct sim_coordinator *c, struct coordinator_event event);

static void on_tick(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_coordinator *c = &f->coordinator[event->a];

    if (!c->process.up || c->process.life != event->b) {
        return;
    }
    world_at(&f->world, f->world.now_us + world_between(&f->world, 10000, c->tick_max_us), *event);
    step(f, c, (struct coordinator_event){.type = COORDINATOR_TICK});
    if (f->group != NULL && !c->process.gate.shut) {
        group_tick(f, (unsigned)event->a);
    }
}

/* ---- the log's events ---- */

static void on_applied(void *context, unsigned replica, uint64_t tag, const Rh__Command *command,
                       const struct state_result *result)
{
    struct fleet *f = context;

    step(f,
         &f->coordinator[replica],
         (struct coordinator_event){.type = COORDINATOR_APPLIED,
                                    .tag = tag,
                                    .index = f->raft.member[replica].applied,
                                    .command = command,
                                    .result = result});
}

static void on_role(void *context, unsigned replica, bool leading, uint64_t term, uint64_t leader)
{
    struct fleet *f = context;

    step(f,
         &f->coordinator[replica],
         (struct coordinator_event){
             .type = leading ? COORDINATOR_LEAD : COORDINATOR_FOLLOW,
             .term = term,
             .leader = leader,
         });
}

static void on_done(void *context, unsigned replica, uint64_t tag, enum err error)
{
    struct fleet *f = context;

    step(f,
         &f->coordinator[replica],
         (struct coordinator_event){.type = COORDINATOR_DONE, .tag = tag, .error = error});
}

static void on_committed(void *context, const Rh__Command *command,
                         const struct state_result *result)
{
    check_committed(context, command, result);
}

/* ---- life ---- */

void coordinators_init(struct fleet *f)
{
    const struct raft_model_events events = {
        .context = f,
        .applied = on_applied,
        .role = on_role,
        .done = on_done,
        .committed = on_committed,
    };

    raft_model_init(&f->raft, &f->world, &events);
    f->raft.faults = f->faults.raft;
    f->raft.lease_us = maintenance_lease_us(f);
    if (f->profile == PROFILE_COORDINATORS) {
        f->network.fellows = true;
        group_init(f, f->coordinators);
        f->coordinators = FLEET_COORDINATORS_MAX;
    }
    for (unsigned i = 0; i < f->coordinators; i++) {
        struct sim_coordinator *c = &f->coordinator[i];

        c->process.role = ROLE_COORDINATOR;
        c->process.number = i;
        (void)snprintf(c->process.name, sizeof c->process.name, "c%u", i + 1);
        nemesis_clock(f, &c->process);
        if (f->group == NULL) {
            raft_model_add(&f->raft, &c->process);
        }
    }
}

uint64_t coordinators_lease_min_us(const struct fleet *f)
{
    enum { LEAST_US = 300000 };
    const uint64_t part_us = f->lease_us / 4 < LEAST_US ? LEAST_US : f->lease_us / 4;

    return f->leases_differ && part_us < f->lease_us ? part_us : f->lease_us;
}

/* --lease and --suspect of this start. */
static void draw_lease(struct fleet *f, struct sim_coordinator *c, struct coordinator_config *to)
{
    const uint64_t before_us = c->lease_us;
    const uint64_t least_us = coordinators_lease_min_us(f);

    c->lease_us =
        prng_chance(&f->leases, 30) ? f->lease_us : prng_between(&f->leases, least_us, f->lease_us);
    coordinator_config_lease(to, (uint32_t)(c->lease_us / 1000));
    to->suspect_ms = (uint32_t)prng_between(&f->leases, c->lease_us / 4000 + 1, c->lease_us / 1200);
    f->other_leases += before_us != 0 && before_us != c->lease_us;
}

static struct coordinator_config config_of(struct fleet *f, struct sim_coordinator *c)
{
    struct coordinator_config config = coordinator_config_default();

    config.formats.newest = poison_format(f);
    config.id = f->group != NULL ? group_id(f, c->process.number) : c->process.number + 1u;
    (void)snprintf(config.cluster, sizeof config.cluster, "sim");
    config.fleet = (struct fleet_id){1, world_between(&f->world, 1, UINT64_MAX - 1)};
    config.key = (struct ring_key){world_between(&f->world, 1, UINT64_MAX - 1),
                                   world_between(&f->world, 1, UINT64_MAX - 1)};
    config.grid = RING_GRID_MIN;
    config.vnodes_per_weight = f->vnodes_per_weight;
    config.moves_per_txn = f->moves_per_txn;
    config.actors_per_txn = f->actors_per_txn != 0 ? f->actors_per_txn : config.actors_per_txn;
    config.prepare_ms = f->prepare_ms;
    config.retry_ms = 200;
    config.settle_ms = 100;
    config.eligible_ms = 500;
    config.lease_us = f->lease_us;
    config.lease_margin_us = f->lease_us / 10;
    config.suspect_ms = f->lease_us == 0 ? 3000 : (uint32_t)(f->lease_us / 2000);
    roles_zones(f, &config);
    balance_configure(f, &config);
    if (f->leases_differ && f->lease_us != 0) {
        draw_lease(f, c, &config);
    }
    // One that looks less often than that takes itself for stopped, and suspects nobody. What is
    // shipped looks every 10 ms, and takes no --suspect below 250.
    c->tick_max_us = config.suspect_ms * UINT64_C(200);
    c->tick_max_us = c->tick_max_us < 50000 ? c->tick_max_us : 50000;
    return config;
}

void coordinator_start(struct fleet *f, struct sim_coordinator *c)
{
    const struct coordinator_config config = config_of(f, c);
    const unsigned number = c->process.number;

    c->config = config;
    c->process.up = true;
    c->process.life++;
    maintenance_forget(c);
    TRACE(&f->world, c->process.name, "STARTS");
    if (f->group != NULL) {
        group_start(f, number);
        c->core = coordinator_new(&config, group_state(f, number));
        group_tell_voters(f, number);
    } else {
        raft_model_start(&f->raft, number);
        c->core = coordinator_new(&config, &f->raft.member[number].state);
    }
    for (unsigned i = 0; i < number; i++) {
        network_dial(&f->network, &c->process, &f->coordinator[i].process, i);
    }
    world_at(&f->world,
             f->world.now_us,
             (struct world_event){.run = on_tick,
                                  .context = f,
                                  .a = number,
                                  .b = c->process.life,
                                  .gate = &c->process.gate,
                                  .timer = true});
}

static void on_restart(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_coordinator *c = &f->coordinator[event->a];

    if (!c->process.up && c->process.life == event->b &&
        (f->group == NULL || !group_is_lost(f, c->process.number))) {
        coordinator_start(f, c);
    }
}

static void stop(struct fleet *f, struct sim_coordinator *c, uint64_t down_us)
{
    TRACE(&f->world, c->process.name, "CRASHES");
    f->coordinator_crashes++;
    c->process.up = false;
    pause_end(f, &c->process);
    coordinator_free(c->core);
    c->core = NULL;
    coordinator_effects_fini(&c->out);
    if (f->group != NULL) {
        group_stop(f, c->process.number);
    } else {
        raft_model_stop(&f->raft, c->process.number);
    }
    network_crash(&f->network, &c->process, false);
    world_at(&f->world,
             f->world.now_us + down_us,
             (struct world_event){
                 .run = on_restart, .context = f, .a = c->process.number, .b = c->process.life});
}

void coordinators_start_all(struct fleet *f)
{
    for (unsigned i = 0; i < f->coordinators; i++) {
        if (f->group == NULL || group_id(f, i) != 0) {
            on_restart(f, &(struct world_event){.a = i, .b = f->coordinator[i].process.life});
        }
    }
}

void coordinator_crash(struct fleet *f, struct sim_coordinator *c)
{
    stop(f, c, world_between(&f->world, 1000, f->healed ? 100000 : f->faults.coordinator_down_us));
}

void coordinators_stop(struct fleet *f, unsigned number, uint64_t down_us)
{
    if (f->coordinator[number].core != NULL) {
        stop(f, &f->coordinator[number], down_us);
    }
}

void coordinators_stop_all(struct fleet *f, uint64_t down_us)
{
    for (unsigned i = 0; i < f->coordinators; i++) {
        coordinators_stop(f, i, down_us);
    }
}

void coordinators_crash_all(struct fleet *f)
{
    for (unsigned i = 0; i < f->coordinators; i++) {
        if (f->coordinator[i].core != NULL) {
            coordinator_crash(f, &f->coordinator[i]);
        }
    }
}

/* ---- steps ---- */

static void propose(struct fleet *f, const struct sim_coordinator *c, uint64_t tag,
                    struct bytes command)
{
    if (f->group != NULL) {
        group_propose(f, c->process.number, tag, command);
    } else {
        raft_model_propose(&f->raft, c->process.number, tag, command);
    }
}

static void barrier(struct fleet *f, const struct sim_coordinator *c, uint64_t tag)
{
    if (f->group != NULL) {
        group_barrier(f, c->process.number, tag);
    } else {
        raft_model_barrier(&f->raft, c->process.number, tag);
    }
}

void coordinators_fall(struct fleet *f, uint64_t stale_us)
{
    if (f->group == NULL && stale_us == UINT64_MAX) {
        raft_model_fall(&f->raft);
    } else if (f->group == NULL) {
        raft_model_fall_late(&f->raft, stale_us);
    } else if (f->raft.leader >= 0) {
        const uint64_t drawn_us = world_between(&f->world, 0, f->raft.faults.stale_max_us);

        nemesis_part(f,
                     &f->coordinator[f->raft.leader].process,
                     stale_us == UINT64_MAX ? drawn_us : stale_us);
    }
}

/* Its replica is not taken away from under itself: what is left of the effects is not done. */
static void die(struct fleet *f, struct sim_coordinator *c)
{
    if (c->inside) {
        c->dies = true;
        c->out_at = c->out.count;
    } else {
        coordinator_crash(f, c);
    }
}

static void effect(struct fleet *f, struct sim_coordinator *c, const struct coordinator_effect *e)
{
    const struct bytes bytes = {c->out.bytes.data + e->at, e->size};
    struct net_end *end;

    switch (e->type) {
    case COORDINATOR_PROPOSE:
        check_fence_wish(f, c, bytes);
        check_wait(f, c, bytes);
        maintenance_wished(c, e->tag, bytes);
        propose(f, c, e->tag, bytes);
        break;
    case COORDINATOR_BARRIER:
        barrier(f, c, e->tag);
        break;
    case COORDINATOR_SEND:
        end = network_end(&f->network, e->peer);
        if (end != NULL) {
            ASSERT(end->me == &c->process);
            check_grant(f, c, end, bytes);
            network_send(&f->network, end, FRAME_CONTROL, bytes);
        }
        break;
    }
}

void coordinator_go_on(struct fleet *f, struct sim_coordinator *c)
{
    while (c->out_at < c->out.count && c->process.up && !c->process.gate.shut) {
        if (c->out_at == c->falls_at) {
            c->falls_at = SIZE_MAX;
            coordinators_fall(f, UINT64_MAX);
            if (world_chance(&f->world, 300)) {
                die(f, c);
                return;
            }
        }
        if (c->out_at == c->stops_at) {
            c->stops_at = SIZE_MAX;
            nemesis_pause(f, &c->process);
            return;
        }
        effect(f, c, &c->out.item[c->out_at++]);
    }
}

/* Between any two effects of a leader it may fall, or die; of anybody, it may be stopped. */
static void step(struct fleet *f, struct sim_coordinator *c, struct coordinator_event event)
{
    const bool torn = world_chance(&f->world, f->faults.leader_torn_pm) &&
                      f->raft.leader == (int)c->process.number;

    if (c->core == NULL || c->dies) {
        return;
    }
    ASSERT(!c->process.gate.shut);
    event.now_us = sim_clock_read(&c->process.clock, f->world.now_us);
    event.wall_us = FLEET_WALL_US + f->world.now_us;
    c->step_us = event.now_us;
    c->lead_us = event.type == COORDINATOR_LEAD ? event.now_us : c->lead_us;
    c->longest_us = f->raft.truth.lease_us;
    if (event.type == COORDINATOR_LEAD || event.type == COORDINATOR_FOLLOW) {
        maintenance_forget(c);
    } else if (event.type == COORDINATOR_APPLIED) {
        maintenance_done(f, c, event.tag, event.result->accepted ? event.command : NULL);
    } else if (event.type == COORDINATOR_DONE) {
        maintenance_done(f, c, event.tag, NULL);
    }
    coordinator_effects_clear(&c->out);
    coordinator_step(c->core, &event, &c->out);
    c->out_at = 0;
    c->falls_at = torn && c->out.count > 0 ? world_between(&f->world, 0, c->out.count) : SIZE_MAX;
    c->stops_at = c->inside ? SIZE_MAX : nemesis_stops_at(f, c->out.count);
    coordinator_go_on(f, c);
}

void coordinator_step_from(struct fleet *f, struct sim_coordinator *c,
                           struct coordinator_event event)
{
    step(f, c, event);
}

/* ---- the network's events ---- */

void coordinator_raft(struct fleet *f, struct sim_coordinator *c, struct bytes bytes)
{
    group_receive(f, c->process.number, bytes);
}

void coordinator_up(struct fleet *f, struct sim_coordinator *c, struct net_end *end)
{
    const bool fellow = f->group != NULL && end->other->role == ROLE_COORDINATOR;
    char id[24];

    if (fellow) {
        (void)snprintf(id, sizeof id, "%llu", (unsigned long long)group_id(f, end->other->number));
        group_up(f, c->process.number, end);
    }
    // Elsewhere they say nothing, and the fleet begins with the first format.
    const bool says_format = f->roles || f->profile == PROFILE_OPERATOR;

    step(f,
         c,
         (struct coordinator_event){
             .type = COORDINATOR_PEER_UP,
             .peer = end->id,
             .role = (int)end->other->role,
             .name = fellow                                 ? id
                     : end->other->role == ROLE_COORDINATOR ? end->other->name + 1
                                                            : process_says(end->other),
             .incarnation = end->other_incarnation,
             .format = {says_format ? FLEET_FORMAT_OLDEST : 0, says_format ? poison_format(f) : 0},
             .identity = fellow ? group_identity(f, end->other->number)
                         : end->other->role == ROLE_COORDINATOR ? end->other->number + 1000u
                                                                : 0,
         });
}

void coordinator_down(struct fleet *f, struct sim_coordinator *c, const struct net_end *end)
{
    if (f->group != NULL && end->other->role == ROLE_COORDINATOR) {
        group_down(f, c->process.number, end);
    }
    step(f, c, (struct coordinator_event){.type = COORDINATOR_PEER_DOWN, .peer = end->id});
}

void coordinator_message(struct fleet *f, struct sim_coordinator *c, const struct net_end *end,
                         const Rh__Control *message)
{
    if (message->body_case == RH__CONTROL__BODY_RENEW &&
        message->source_incarnation == fleet_node(end->other)->incarnation && c->core != NULL) {
        check_heard_of(f, c, fleet_node(end->other));
    }
    step(f,
         c,
         (struct coordinator_event){
             .type = COORDINATOR_MESSAGE, .peer = end->id, .message = message});
}
