/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses and does the faults of a history: crashes, pauses, partitions, jumps
 * of clocks.
 */
#include "sim/fleet.h"
#include "sim/raft/group.h"

#define MS UINT64_C(1000)
#define S  UINT64_C(1000000)

/* ---- faults ---- */

static void again(struct fleet *f, uint64_t mean_us, world_run run)
{
    if (mean_us > 0 && !f->healed) {
        world_at(&f->world,
                 f->world.now_us + world_gap(&f->world, mean_us),
                 (struct world_event){.run = run, .context = f});
    }
}

/* While all stand still nothing else goes wrong: what they find later is what they left. */
static bool acts(const struct fleet *f)
{
    return !f->healed && f->world.now_us >= f->asleep_us;
}

static void on_node_crash(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *n = &f->node[world_between(&f->world, 0, f->nodes - 1)];

    (void)event;
    if (acts(f) && n->core != NULL) {
        node_crash(f, n);
    }
    again(f, f->faults.node_crash_us, on_node_crash);
}

static void on_coordinator_crash(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_coordinator *c = &f->coordinator[world_between(&f->world, 0, f->coordinators - 1)];

    (void)event;
    if (acts(f) && c->core != NULL) {
        coordinator_crash(f, c);
    }
    again(f, f->faults.coordinator_crash_us, on_coordinator_crash);
}

static void on_gateway_crash(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_gateway *g = &f->gateway[world_between(&f->world, 0, f->gateways - 1)];

    (void)event;
    if (acts(f) && g->core != NULL) {
        gateway_crash(f, g);
    }
    again(f, f->faults.gateway_crash_us, on_gateway_crash);
}

static void on_leader_fall(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    (void)event;
    if (acts(f)) {
        coordinators_fall(f, UINT64_MAX);
    }
    again(f, f->faults.leader_fall_us, on_leader_fall);
}

static void on_reset(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    (void)event;
    if (acts(f)) {
        // Without its coordinators a node is fenced, and its memory is lost.
        network_reset_any(&f->network, f->profile != PROFILE_CALM);
    }
    again(f, f->faults.reset_us, on_reset);
}

static struct process *any_process(struct fleet *f)
{
    return fleet_process(f, (unsigned)world_between(&f->world, 0, fleet_size(f) - 1));
}

/* ---- clocks and pauses ---- */

void nemesis_clock(struct fleet *f, struct process *p)
{
    uint64_t ppm = world_between(&f->world, 0, 2 * f->faults.drift_ppm);

    if (f->faults.drift_extreme) {
        ppm = ppm < f->faults.drift_ppm ? 0 : 2 * f->faults.drift_ppm;
    }

    p->clock.shows_us = world_between(&f->world, 0, 1000000000);
    p->clock.rate_ppm = (int32_t)ppm - (int32_t)f->faults.drift_ppm;
}

/* Mostly short ones; some as long as a lease may be, some longer. */
void nemesis_pause(struct fleet *f, struct process *p)
{
    const uint64_t max_us = f->faults.pause_max_us;
    const uint64_t time_us = world_chance(&f->world, 500)
                                 ? world_between(&f->world, 100, max_us / 8 + 100)
                                 : world_between(&f->world, max_us / 8, max_us);
    const enum pause_kind kind = world_chance(&f->world, f->faults.freeze_pm)    ? PAUSE_FREEZE
                                 : world_chance(&f->world, f->faults.suspend_pm) ? PAUSE_SUSPEND
                                                                                 : PAUSE_STOP;

    pause_begin(f, p, time_us, kind);
}

size_t nemesis_stops_at(struct fleet *f, size_t count)
{
    return count > 0 && world_chance(&f->world, f->faults.pause_torn_pm) &&
                   world_chance(&f->world, 100)
               ? world_between(&f->world, 0, count - 1)
               : SIZE_MAX;
}

static void on_pause(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    (void)event;
    if (acts(f)) {
        nemesis_pause(f, any_process(f));
    }
    again(f, f->faults.pause_us, on_pause);
}

/* ---- stops beyond what is kept ---- */

enum { STOP_US = 1000000 }; /* as far apart they begin at most, and end */

/* For longer than a link may hold something back, than forwards are remembered, than all. */
static uint64_t stop_time(struct fleet *f)
{
    static const uint64_t least_us[] = {1 * S, 5 * S, 5 * S, 31 * S, 121 * S, 121 * S};
    const uint64_t i = world_between(&f->world, 0, sizeof least_us / sizeof least_us[0] - 1);

    return least_us[i] + world_between(&f->world, 0, least_us[i] / 4);
}

static void on_stop(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    uint64_t time_us = stop_time(f);

    (void)event;
    // What the others do meanwhile takes its time: one that is longer than the rest of the seed.
    if (acts(f)) {
        const uint64_t end_us = f->world.now_us + time_us + 2 * S;

        f->heal_us = end_us > f->heal_us ? end_us : f->heal_us;
        pause_begin(f, any_process(f), time_us, PAUSE_STOP);
    }
    if (time_us < 31 * S) {
        again(f, f->faults.stop_us, on_stop);
    }
}

static void on_stop_one_of_all(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct process *p = fleet_process(f, (unsigned)event->c);

    if (!f->healed) {
        const uint64_t until_us = event->a + world_between(&f->world, 0, event->b);

        pause_begin(f, p, until_us - f->world.now_us, PAUSE_STOP);
    }
}

/* All of them, within a moment; and they go on so. */
static void on_stop_all(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const uint64_t time_us = stop_time(f);
    const uint64_t apart_us = world_chance(&f->world, 500) ? 2 * MS : STOP_US;

    (void)event;
    if (acts(f)) {
        TRACE(&f->world, "net", "STOP of all for %llu ms", (unsigned long long)time_us / MS);
        f->stops_of_all++;
        f->asleep_us = f->world.now_us + time_us + apart_us;
        f->heal_us += time_us;
        for (unsigned i = 0; i < fleet_size(f); i++) {
            world_at(&f->world,
                     f->world.now_us + world_between(&f->world, 0, apart_us / 2),
                     (struct world_event){.run = on_stop_one_of_all,
                                          .context = f,
                                          .a = f->world.now_us + time_us,
                                          .b = apart_us,
                                          .c = i});
        }
    }
    if (f->faults.stop_all_us > 0 && !f->healed) {
        const uint64_t awake_us = f->asleep_us > f->world.now_us ? f->asleep_us : f->world.now_us;

        world_at(&f->world,
                 awake_us + world_gap(&f->world, f->faults.stop_all_us),
                 (struct world_event){.run = on_stop_all, .context = f});
    }
}

/* ---- a lull, nearly as long as what guards against copies is kept ---- */

/* What was made before it is older than that soon after it, and what was used last before it is
 * not: then all are busy again. */
static void on_lull(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const uint64_t time_us = prng_between(&f->aims, 100 * S, 116 * S);

    (void)event;
    if (acts(f)) {
        TRACE(&f->world, "net", "LULL for %llu ms", (unsigned long long)time_us / MS);
        f->lulls++;
        f->asleep_us = f->lull_us = f->world.now_us + time_us;
        f->heal_us += time_us;
    }
}

/* ---- cuts ---- */

static void on_uncut(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    f->network.cut[event->a][event->b] = false;
}

static void cut_for(struct fleet *f, const struct process *from, const struct process *to,
                    uint64_t time_us)
{
    network_cut(&f->network, from, to, true);
    world_at(
        &f->world,
        f->world.now_us + time_us,
        (struct world_event){.run = on_uncut, .context = f, .a = from->number, .b = to->number});
}

void nemesis_part(struct fleet *f, const struct process *coordinator, uint64_t time_us)
{
    for (unsigned i = 0; i < f->coordinators; i++) {
        const struct process *other = &f->coordinator[i].process;

        if (other != coordinator) {
            cut_for(f, coordinator, other, time_us);
            cut_for(f, other, coordinator, time_us);
        }
    }
}

/* From all coordinators but one. */
static void cut_off(struct fleet *f, const struct process *node, unsigned except, uint64_t time_us)
{
    TRACE(&f->world,
          "net",
          "cut %s -x coordinators, all but %s, for %llu ms",
          node->name,
          except < f->coordinators ? f->coordinator[except].process.name : "none",
          (unsigned long long)time_us / MS);
    f->cuts++;
    for (unsigned i = 0; i < f->coordinators; i++) {
        if (i != except) {
            cut_for(f, node, &f->coordinator[i].process, time_us);
            cut_for(f, &f->coordinator[i].process, node, time_us);
        }
    }
}

static void on_island(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const struct process *node = &f->node[world_between(&f->world, 0, f->nodes - 1)].process;
    const uint64_t time_us = world_between(&f->world, 500 * MS, 6 * S);

    (void)event;
    again(f, f->faults.island_us, on_island);
    if (!acts(f)) {
        return;
    }
    // Half of the time it hears one of them yet: a leader that is none any more.
    if (f->raft.leader >= 0 && world_chance(&f->world, 500)) {
        const unsigned old = (unsigned)f->raft.leader;

        coordinators_fall(f, time_us);
        cut_off(f, node, old, time_us);
    } else {
        cut_off(f, node, FLEET_COORDINATORS_MAX, time_us);
    }
}

void nemesis_restore(struct fleet *f, size_t keep)
{
    const size_t count = f->raft.log_count;

    coordinators_crash_all(f);
    check_restores(f);
    if (raft_model_restore(&f->raft, keep)) {
        TRACE(&f->world,
              "net",
              "RESTORE of a backup, %zu of %zu entries, era %llu",
              f->raft.restored - 1,
              count,
              (unsigned long long)f->raft.truth.view.era);
        f->restores++;
        check_restored(f);
        roles_restored(f);
        past_over(f);
        for (unsigned i = 0; i < f->nodes; i++) {
            operator_looks(f, &f->node[i]);
        }
    }
}

static void on_restore(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const size_t count = f->raft.log_count;

    (void)event;
    if (acts(f)) {
        // One that does not hear of it goes on as long as its lease lasts.
        if (world_chance(&f->world, 700)) {
            cut_off(f,
                    &f->node[world_between(&f->world, 0, f->nodes - 1)].process,
                    FLEET_COORDINATORS_MAX,
                    4 * S);
        }
        nemesis_restore(f, world_between(&f->world, count / 3, count));
    }
    again(f, f->faults.restore_us, on_restore);
}

static void on_old_copy(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    (void)event;
    if (acts(f)) {
        past_begin(f);
    }
    again(f, f->faults.old_copy_us, on_old_copy);
}

/* Shorter than the silence that breaks a link. */
static void on_stuck(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    (void)event;
    if (acts(f)) {
        cut_for(f,
                &f->gateway[world_between(&f->world, 0, f->gateways - 1)].process,
                &f->node[world_between(&f->world, 0, f->nodes - 1)].process,
                world_between(&f->world, 500 * MS, 4500 * MS));
    }
    again(f, f->faults.stuck_us, on_stuck);
}

/* One pair, one way or both; or one process from all others. */
static void on_cut(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const struct process *one = any_process(f);
    const struct process *other = any_process(f);
    const bool both = world_chance(&f->world, 500);
    const bool all = world_chance(&f->world, 250);
    const uint64_t time_us = world_chance(&f->world, 800) ? world_between(&f->world, 50 * MS, 3 * S)
                                                          : world_between(&f->world, 3 * S, 9 * S);

    (void)event;
    again(f, f->faults.cut_us, on_cut);
    if (!acts(f) || one == other) {
        return;
    }
    f->cuts++;
    TRACE(&f->world,
          "net",
          "cut %s -%s %s for %llu ms",
          one->name,
          both ? "x" : ">",
          all ? "all" : other->name,
          (unsigned long long)time_us / MS);
    for (unsigned i = 0; i < NETWORK_PROCESSES_MAX; i++) {
        const struct process to = {.number = i};

        if (i != one->number && (all || i == other->number)) {
            cut_for(f, one, &to, time_us);
            if (both) {
                cut_for(f, &to, one, time_us);
            }
        }
    }
}

/* ---- planned changes ---- */

/* Of the node's role; a twin is refused, or takes the other's place. */
static unsigned staying(const struct fleet *f, const struct sim_node *n)
{
    unsigned count = 0;

    for (unsigned i = 0; i < f->nodes; i++) {
        count += f->node[i].wanted && !f->node[i].leaving && !twin_is(f, &f->node[i]) &&
                 roles_of(f, &f->node[i]) == roles_of(f, n);
    }
    return count;
}

void nemesis_let_one_stay(struct fleet *f)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        struct sim_node *n = &f->node[i];

        operator_looks(f, n);
        if (n->wanted && n->leaving && !n->stopping && !twin_is(f, n) && staying(f, n) == 0) {
            operator_drain(f, n, true);
        }
    }
}

static void change(struct fleet *f, struct sim_node *n)
{
    const uint64_t what = world_between(&f->world, 0, 9);

    if (twin_is(f, n)) {
        return;
    }
    if (!n->wanted) {
        n->weight = (uint32_t)world_between(&f->world, 1, 3);
        n->leaving = false;
        node_start(f, n);
    } else if (n->core == NULL) {
        n->weight = (uint32_t)world_between(&f->world, 1, 3); // of its next start
    } else if (n->leaving) {
        if (!n->stopping && what < 5) {
            operator_drain(f, n, true);
        }
    } else if ((staying(f, n) > 1 && what < 6) || operator_drains_last(f, n)) {
        operator_drain(f, n, false);
    } else if (staying(f, n) > 1 && n->incarnation != 0 && !n->process.gate.shut) {
        node_leave(f, n);
    }
}

static void on_change(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    (void)event;
    if (acts(f)) {
        f->changes++;
        change(f, &f->node[world_between(&f->world, 0, f->nodes - 1)]);
    }
    again(f, f->faults.change_us, on_change);
}

void nemesis_start(struct fleet *f)
{
    again(f, f->faults.node_crash_us, on_node_crash);
    again(f, f->faults.coordinator_crash_us, on_coordinator_crash);
    again(f, f->faults.gateway_crash_us, on_gateway_crash);
    again(f, f->faults.leader_fall_us, on_leader_fall);
    again(f, f->faults.restore_us, on_restore);
    again(f, f->faults.old_copy_us, on_old_copy);
    again(f, f->faults.reset_us, on_reset);
    again(f, f->faults.cut_us, on_cut);
    again(f, f->faults.change_us, on_change);
    hand_start(f);
    maintenance_start(f);
    placement_start(f);
    aim_start(f);
    again(f, f->faults.pause_us, on_pause);
    again(f, f->faults.stop_us, on_stop);
    again(f, f->faults.lull_us, on_lull);
    twin_start(f);
    again(f, f->faults.stop_all_us, on_stop_all);
    again(f, f->faults.stuck_us, on_stuck);
    again(f, f->faults.island_us, on_island);
    group_changes_start(f);
}

void nemesis_heal(struct fleet *f)
{
    TRACE(&f->world, "net", "HEAL");
    nodes_end_versions(f);
    roles_end_lacks(f);
    twin_end(f);
    past_end(f);
    f->healed = true;
    f->heal_us = f->world.now_us;
    f->faults = (struct fleet_faults){.persist_max_us = 1 * MS,
                                      .run_max_us = 5 * MS,
                                      .store_max_us = 2 * MS,
                                      .node_calls = f->faults.node_calls}; // it is no fault
    f->raft.faults = (struct raft_model_faults){.commit_max_us = 2 * MS, .lag_max_us = 5 * MS};
    network_heal(&f->network);
    group_heal(f);
    balance_heal(f);
    if (f->maintenance_ms > 0) {
        coordinators_start_all(f);
    }
    pause_end_all(f); // by the clocks as they are: one that stands has to go on first
    for (unsigned i = 0; f->profile == PROFILE_CLOCKS && i < fleet_size(f); i++) {
        struct sim_clock *c = &fleet_process(f, i)->clock;

        sim_clock_stood(c, f->world.now_us, 0);
        c->rate_ppm = 0; // the clocks are mended, too
    }
}
