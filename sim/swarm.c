/* SPDX-License-Identifier: Apache-2.0
 *
 * What a seed is about: its profile, and which faults it has.
 */
#include "base/table.h"
#include "sim/fleet.h"

#include <string.h>

enum { NODE_CALLS_TENTHS = 6 }; /* of the seeds: actors ask by their node's own calls */

#define MS UINT64_C(1000)
#define S  UINT64_C(1000000)

static const struct {
    const char *name;
    uint64_t per_mille; /* of the seeds that draw their profile; the rest is mixed */
    uint64_t share;     /* of a thousand of those that a run takes; the rest likewise */
} profiles[PROFILES] = {
    [PROFILE_DRAWN] = {"drawn", 0, 0},
    [PROFILE_MIXED] = {"mixed", 0, 0},
    [PROFILE_CALM] = {"calm", 100, 90},
    [PROFILE_LEASE] = {"lease", 150, 130},
    [PROFILE_CHANGES] = {"changes", 60, 55},
    [PROFILE_COPIES] = {"copies", 60, 55},
    [PROFILE_RESTORE] = {"restore", 60, 55},
    [PROFILE_ROLES] = {"roles", 0, 120}, // roles_drawn()
    [PROFILE_CLOCKS] = {"clocks", 60, 55},
    [PROFILE_SESSIONS] = {"sessions", 0, 90}, // sim_players_draw()
    [PROFILE_COORDINATORS] = {"coordinators", 60, 55},
    [PROFILE_PAUSES] = {"pauses", 60, 55},
    [PROFILE_OPERATOR] = {"operator", 0, 50}, // campaign.c
    [PROFILE_DURABLE] = {"durable", 0, 50},   // likewise
};

const char *profile_name(enum profile p)
{
    return profiles[p].name;
}

bool profile_named(const char *name, enum profile *p)
{
    for (size_t i = 0; i < PROFILES; i++) {
        if (strcmp(profiles[i].name, name) == 0) {
            *p = (enum profile)i;
            return true;
        }
    }
    return false;
}

static enum profile draw_profile(struct world *w)
{
    uint64_t left = world_between(w, 0, 999);

    for (size_t i = 0; i < PROFILES; i++) {
        if (left < profiles[i].per_mille) {
            return (enum profile)i;
        }
        left -= profiles[i].per_mille;
    }
    return PROFILE_MIXED;
}

enum profile profile_of_seed(uint64_t seed)
{
    struct world w;

    world_init(&w, seed);
    return roles_drawn(seed) ? PROFILE_ROLES : draw_profile(&w);
}

uint64_t profile_share(enum profile p)
{
    return profiles[p].share;
}

/* Each seed has only some of the faults, each at a rate of its own: a rare
 * combination shows more than everything at once. */
static uint64_t maybe(struct fleet *f, uint64_t per_mille, uint64_t low, uint64_t high)
{
    const uint64_t value = world_between(&f->world, low, high);

    return world_chance(&f->world, per_mille) ? value : 0;
}

/* Nodes lose their leases often and at every moment, and everything else mostly works. */
static void draw_lease(struct fleet *f)
{
    struct fleet_faults *x = &f->faults;

    x->drift_ppm = world_chance(&f->world, 700) ? 60000 : 0;
    x->drift_extreme = true;
    x->store_slow_pm = maybe(f, 600, 5, 100);
    x->pause_us = maybe(f, 700, 300 * MS, 2 * S);
    x->pause_torn_pm = maybe(f, 500, 5, 50);
    x->pause_max_us = world_between(&f->world, 1 * S, 4 * S);
    x->cut_us = maybe(f, 500, 500 * MS, 2 * S);
    x->island_us = maybe(f, 600, 500 * MS, 3 * S);
    x->leader_fall_us = maybe(f, 500, 500 * MS, 3 * S);
    x->coordinator_crash_us = maybe(f, 200, 1 * S, 5 * S);
    x->run_long_pm = maybe(f, 600, 5, 50);
    x->change_us = world_between(&f->world, 300 * MS, 4 * S);
    x->net.slow_pm = maybe(f, 300, 1, 20);
    x->net.slow_max_us = world_between(&f->world, 50 * MS, 1 * S);
    x->net.loss_pm = maybe(f, 200, 1, 50);
    x->raft.stale_max_us = maybe(f, 800, 500 * MS, 4 * S);
    x->net.ghosts = world_chance(&f->world, 100);
}

/* No node is lost for long, so transactions go on all the time. */
static void draw_changes(struct fleet *f)
{
    struct fleet_faults *x = &f->faults;

    x->change_us = world_between(&f->world, 200 * MS, 1 * S);
    x->node_crash_us = maybe(f, 500, 2 * S, 10 * S);
    x->coordinator_crash_us = maybe(f, 300, 2 * S, 10 * S);
    x->leader_fall_us = maybe(f, 800, 200 * MS, 3 * S);
    x->leader_torn_pm = maybe(f, 500, 10, 60);
    x->cut_us = x->pause_us = x->pause_torn_pm = 0;
    x->run_long_pm = maybe(f, 500, 1, 3);
    x->run_long_us = world_chance(&f->world, 500) ? 60 * S : 3 * S;
    x->net.slow_pm = world_between(&f->world, 20, 300);
    x->net.slow_max_us = world_between(&f->world, 200 * MS, 5 * S);
    x->net.loss_pm = maybe(f, 500, 1, 200);
    x->net.duplicate_pm = world_between(&f->world, 100, 500);
    x->net.ghosts = world_chance(&f->world, 700);
}

static void draw_copies(struct fleet *f)
{
    struct fleet_faults *x = &f->faults;

    x->change_us = world_between(&f->world, 200 * MS, 1 * S);
    x->node_crash_us = world_between(&f->world, 300 * MS, 2 * S);
    x->stuck_us = world_between(&f->world, 50 * MS, 500 * MS);
    x->coordinator_crash_us = x->leader_fall_us = x->cut_us = x->pause_us = 0;
    x->reset_us = 0;
    x->net.slow_pm = x->net.loss_pm = x->run_long_pm = 0;
    x->refuse_pm = 0;
    x->tight = false;
    x->reboot_pm = x->wipe_pm = 0; // its restart takes over at once
}

/* Actors that come and go by themselves. In calm seeds none fails, nor takes its time. */
static void draw_lives(struct fleet *f)
{
    struct fleet_faults *x = &f->faults;
    const bool calm = f->profile == PROFILE_CALM;

    x->poke_pm = maybe(f, 500, 50, 500);
    x->idle_ms = (uint32_t)maybe(f, 600, 20, 2000);
    x->passivate_pm = maybe(f, 300, 5, 200);
    x->actors_max = maybe(f, 200, 3, 20);
    x->worker_us = maybe(f, 500, 100, calm ? 1 * MS : 20 * MS);
    x->remembered = world_chance(&f->world, calm ? 0 : 250);
    if (calm) {
        return;
    }
    x->broken_pm = maybe(f, 300, 1, 20);
    x->retire_fail_pm = maybe(f, 300, 10, 300);
    x->busy_pm = maybe(f, 400, 50, 700);
    x->cold_pm = maybe(f, 300, 50, 500);
    x->late_pm = maybe(f, 300, 5, 50);
    if (f->profile == PROFILE_LEASE && x->worker_us > 0) {
        x->worker_us = world_between(&f->world, 10 * MS, 600 * MS);
    }
}

/* Other coordinators all the time, and most of the time a majority of them to decide it. */
static void draw_voters(struct fleet *f)
{
    struct fleet_faults *x = &f->faults;

    x->voters_us = world_between(&f->world, 150 * MS, 500 * MS);
    x->machine_pm = maybe(f, 700, 50, 400);
    x->coordinator_crash_us = maybe(f, 700, 700 * MS, 5 * S);
    x->coordinator_down_us = world_chance(&f->world, 600) ? 500 * MS : 3 * S;
    x->leader_fall_us = maybe(f, 600, 2 * S, 8 * S);
    x->cut_us = maybe(f, 500, 1 * S, 8 * S);
    x->reset_us = maybe(f, 600, 100 * MS, 3 * S);
    x->pause_us = maybe(f, 500, 700 * MS, 8 * S);
    x->raft.stale_max_us = world_between(&f->world, 500 * MS, 3 * S);
}

/* Requests wait long enough to be sent again, and then everything stands still. */
static void draw_stops(struct fleet *f)
{
    struct fleet_faults *x = &f->faults;

    x->stop_us = maybe(f, 500, 2 * S, 10 * S);
    x->stop_all_us =
        x->stop_us == 0 ? world_between(&f->world, 500 * MS, 4 * S) : maybe(f, 500, 1 * S, 8 * S);
    x->stuck_us = maybe(f, 500, 50 * MS, 500 * MS);
    x->node_crash_us = maybe(f, 200, 2 * S, 10 * S);
    x->coordinator_crash_us = maybe(f, 200, 2 * S, 10 * S);
    x->cut_us = maybe(f, 200, 500 * MS, 8 * S);
    x->reset_us = maybe(f, 200, 500 * MS, 3 * S);
    x->pause_us = 0;
    x->pause_torn_pm = maybe(f, 300, 1, 5);
}

/* Drawn by itself, as floods are: copies are late, but all live. */
static void draw_lull(struct fleet *f)
{
    struct prng aside = {.state = f->world.seed ^ 0x6c756c6cu};
    struct fleet_faults *x = &f->faults;

    if (f->profile == PROFILE_PAUSES && prng_chance(&aside, 25)) {
        x->lull_us = 4 * S;
        x->stop_us = x->stop_all_us = x->node_crash_us = 0;
        x->stuck_us = prng_between(&aside, 50 * MS, 300 * MS);
    }
}

/* Votes take their time, so that what is decided meanwhile matters. */
static void draw_operator(struct fleet *f)
{
    struct fleet_faults *x = &f->faults;

    x->hand_us = world_between(&f->world, 50 * MS, 400 * MS);
    x->change_us = world_between(&f->world, 200 * MS, 1500 * MS);
    x->node_crash_us = maybe(f, 700, 1 * S, 8 * S);
    x->leader_fall_us = maybe(f, 500, 500 * MS, 5 * S);
    x->run_long_pm = maybe(f, 700, 5, 40);
    x->net.slow_pm = maybe(f, 700, 10, 200);
}

/* What each seed has, and then its profile. */
static void draw_calm(struct fleet *f)
{
    struct fleet_faults *x = &f->faults;

    x->call_pm = maybe(f, 600, 100, 300);
    // Links that break are no excuse: what was lost is sent again.
    x->reset_us = maybe(f, 400, 100 * MS, 1 * S);
    x->call_pm = x->reset_us > 0 ? 0 : x->call_pm;
    if (f->options.node_calls) { // whoever wants them wants them in every seed
        x->call_pm = 300;
        x->reset_us = 0;
    }
    x->run_long_pm = 0;
}

static void draw_clocks(struct fleet *f)
{
    f->faults.drift_ppm = world_between(&f->world, 150000, 600000);
    f->faults.freeze_pm = maybe(f, 700, 100, 1000);
    f->faults.store_slow_pm = world_between(&f->world, 50, 300);
}

/* Accounts change owners, and their nodes die. */
static void draw_durable(struct fleet *f)
{
    struct fleet_faults *x = &f->faults;

    x->node_calls = true;
    x->change_us = world_between(&f->world, 300 * MS, 3 * S);
    x->node_crash_us = maybe(f, 800, 500 * MS, 5 * S);
    x->gateway_crash_us = maybe(f, 300, 1 * S, 8 * S);
    x->store_slow_pm = maybe(f, 400, 2, 30);
}

/* What only this profile has, over what all have. */
static void draw_of_profile(struct fleet *f)
{
    struct fleet_faults *x = &f->faults;

    if (f->profile == PROFILE_LEASE || f->profile == PROFILE_CLOCKS ||
        f->profile == PROFILE_ROLES) {
        draw_lease(f);
    }
    if (f->profile == PROFILE_CHANGES) {
        draw_changes(f);
    }
    if (f->profile == PROFILE_COPIES) {
        draw_copies(f);
    }
    if (f->profile == PROFILE_RESTORE) {
        x->restore_us = world_between(&f->world, 3 * S, 8 * S);
        x->coordinator_down_us = world_chance(&f->world, 600) ? 300 * MS : 3 * S;
        x->change_us = world_between(&f->world, 200 * MS, 1 * S);
        x->net.ghosts = false;
    }
    if (f->profile == PROFILE_COORDINATORS) {
        draw_voters(f);
    }
    if (f->profile == PROFILE_PAUSES) {
        draw_stops(f);
    }
    if (f->profile == PROFILE_OPERATOR) {
        draw_operator(f);
    }
    if (f->profile == PROFILE_CLOCKS) {
        draw_clocks(f);
    }
    if (f->profile == PROFILE_DURABLE) {
        draw_durable(f);
    }
}

static void draw_faults(struct fleet *f)
{
    struct fleet_faults *x = &f->faults;

    if (f->options.profile == PROFILE_DRAWN && roles_drawn(f->world.seed)) {
        f->profile = PROFILE_ROLES;
    }
    f->roles = f->profile == PROFILE_ROLES;
    f->zoned = f->roles && table_mix(f->world.seed) % 2 == 0;
    f->apart = f->roles && table_mix(f->world.seed ^ 0x6170617274u) % 2 == 0;
    x->change_us = world_between(&f->world, 400 * MS, 4 * S);
    x->persist_max_us = world_between(&f->world, 200, 50 * MS);
    x->run_max_us = world_between(&f->world, 100, 50 * MS);
    x->run_long_pm = maybe(f, 400, 1, 3);
    x->owned_pm = maybe(f, 400, 200, 1000);
    x->run_long_us = 3 * S;
    x->coordinator_down_us = 3 * S;
    x->call_pm = maybe(f, 400, 5, 100);
    // Not drawn: until its first call, a seed shows the same whichever these are.
    x->node_calls = f->options.node_calls || table_mix(f->world.seed) % 10 < NODE_CALLS_TENTHS;
    x->asks_once = table_mix(f->world.seed) % 2 == 0;
    x->net.delay_max_us = world_between(&f->world, 200, 20 * MS);
    x->store_max_us = world_between(&f->world, 100, 20 * MS);
    x->raft.commit_max_us = world_between(&f->world, 500, 30 * MS);
    x->raft.lag_max_us = world_between(&f->world, 500, 300 * MS);
    if (f->profile == PROFILE_CALM) {
        draw_calm(f);
        return;
    }
    x->turn_pm = maybe(f, 400, 1, 30);
    x->node_crash_us = maybe(f, 500, 1 * S, 10 * S);
    x->coordinator_crash_us = maybe(f, 400, 1 * S, 10 * S);
    x->gateway_crash_us = maybe(f, 200, 2 * S, 10 * S);
    x->leader_fall_us = maybe(f, 600, 300 * MS, 5 * S);
    x->reset_us = maybe(f, 600, 40 * MS, 3 * S);
    x->cut_us = maybe(f, 400, 500 * MS, 8 * S);
    x->node_torn_pm = maybe(f, 300, 1, 5);
    x->leader_torn_pm = maybe(f, 500, 1, 60);
    x->raft.stale_max_us = maybe(f, 700, 10 * MS, 3 * S);
    x->net.slow_pm = maybe(f, 600, 1, 150);
    x->net.slow_max_us =
        world_between(&f->world, 10 * MS, world_chance(&f->world, 300) ? 10 * S : 2 * S);
    x->net.loss_pm = maybe(f, 600, 1, 400);
    x->net.duplicate_pm = maybe(f, 500, 1, 300);
    x->activate_fail_pm = maybe(f, 150, 1, 100);
    x->export_fail_pm = maybe(f, 150, 1, 100);
    x->poison_pm = maybe(f, 150, 1, 10);
    x->disk_fail_pm = maybe(f, 150, 1, 30);
    x->reboot_pm = maybe(f, 400, 50, 1000);
    x->wipe_pm = maybe(f, 200, 50, 500);
    x->tight = world_chance(&f->world, 150);
    x->refuse_pm = maybe(f, 200, 1, 50);
    x->drift_ppm = maybe(f, 600, 100, 50000);
    x->pause_us = maybe(f, 400, 500 * MS, 8 * S);
    x->pause_torn_pm = maybe(f, 300, 1, 5);
    x->pause_max_us = world_between(&f->world, 100 * MS, 8 * S);
    x->suspend_pm = maybe(f, 500, 1, 1000);
    x->net.ghosts = world_chance(&f->world, 300);
    draw_of_profile(f);
}

/* Drawn by itself, so that the others stay as they were. */
static void draw_floods(struct fleet *f)
{
    struct prng aside = {.state = f->world.seed ^ 0x666c6f6f64u};
    const bool fits = f->profile == PROFILE_COPIES || f->profile == PROFILE_PAUSES;

    if (fits && prng_chance(&aside, 25)) {
        f->faults.flood_pm = prng_between(&aside, 1, 5);
    }
}

/* Likewise: what is lost of probes is found by later ones. */
static void draw_probes(struct fleet *f)
{
    struct prng aside = {.state = f->world.seed ^ 0x70726f626573u};

    if (f->profile == PROFILE_CALM && f->faults.node_calls && prng_chance(&aside, 50)) {
        f->faults.deaf_us = prng_between(&aside, 300 * MS, 1200 * MS);
    }
}

/* Likewise. Where the planner lets a node have less, other faults show less: few seeds have them.
 */
static void draw_versions(struct fleet *f)
{
    struct prng aside = {.state = f->world.seed ^ 0x76657273u};
    const bool fits =
        f->profile == PROFILE_MIXED || f->profile == PROFILE_CHANGES || f->profile == PROFILE_LEASE;

    f->versioned = fits && prng_chance(&aside, 12);
    f->versions_untold = f->versioned && prng_chance(&aside, 40);
}

void nemesis_draw(struct fleet *f)
{
    f->profile = f->options.profile == PROFILE_DRAWN ? draw_profile(&f->world) : f->options.profile;
    draw_faults(f);
    draw_floods(f);
    draw_lull(f);
    draw_probes(f);
    draw_versions(f);
    balance_draw(f);
    if (world_chance(&f->world, 400)) {
        draw_lives(f);
    }
}
