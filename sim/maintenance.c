/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold coordinators maintenance`, in some fleets: the operator has nodes serve without
 * coordinators, stops all of these at once, and starts them when the time that he asked for is
 * over, or before. Whoever got such a lease serves all that time (checker `maintenance`), and what
 * it owns is nobody else's before that lease is over (`fence`, `lease`).
 */
#include "sim/fleet.h"
#include "wire/control.h"

#define MAINTENANCE_TAG (UINT64_C(1) << 61) /* no wish and no question of another file has it */

enum { GAP_US = 4000000, SOFT_PART = 5 };

void maintenance_draw(struct fleet *f, uint64_t seed)
{
    struct prng aside = {.state = seed ^ 0x6d61696e74656eu};
    const uint64_t lease_ms = f->lease_us / 1000;

    if (f->lease_us > 0 && f->profile != PROFILE_CALM &&
        (f->options.maintained || prng_chance(&aside, 200))) {
        f->maintenance_ms = (uint32_t)prng_between(&aside, 2 * lease_ms, 4 * lease_ms);
    }
}

uint64_t maintenance_lease_us(const struct fleet *f)
{
    return f->maintenance_ms == 0 ? f->lease_us
                                  : (uint64_t)f->maintenance_ms * 4000 / 3 + f->lease_us;
}

static void on_ask(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct net_end *end = f->raft.leader < 0 ? NULL : f->operator_end[f->raft.leader];
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminMaintenance body = RH__ADMIN_MAINTENANCE__INIT;
    struct buffer out = {0};

    (void)event;
    if (f->healed) {
        return;
    }
    if (end != NULL && f->world.now_us >= f->asleep_us) {
        body.for_ms = f->maintenance_ms;
        admin.tag = MAINTENANCE_TAG | ++f->maintenances_asked;
        admin.what_case = RH__ADMIN__WHAT_MAINTENANCE;
        admin.maintenance = &body;
        control.body_case = RH__CONTROL__BODY_ADMIN;
        control.admin = &admin;
        control_put(&out, &control);
        TRACE(&f->world, "op", "wants a maintenance of %u ms", f->maintenance_ms);
        network_send(&f->network, end, FRAME_CONTROL, buffer_bytes(&out));
        buffer_fini(&out);
        f->maintenance_us = f->world.now_us + (uint64_t)f->maintenance_ms * 1000;
    }
    maintenance_start(f);
}

void maintenance_start(struct fleet *f)
{
    if (f->maintenance_ms > 0) {
        world_at(&f->world,
                 f->world.now_us + f->maintenance_ms * UINT64_C(1000) +
                     world_gap(&f->world, f->options.maintained ? GAP_US / 4 : GAP_US),
                 (struct world_event){.run = on_ask, .context = f});
    }
}

/* Whether the node may begin something now, by what its lease is and not by when it looked last. */
static bool may_begin(const struct fleet *f, const struct sim_node *n,
                      const struct host_stats *figures)
{
    const uint64_t clock_us = sim_clock_read(&n->process.clock, f->world.now_us);

    return clock_us + figures->lease_us / SOFT_PART < figures->lease_until_us;
}

/* Those whose lease counts from a renewal that left since the log had this maintenance's length: a
 * lease of a former one ends earlier. */
static bool is_of_this(const struct fleet *f, const struct sim_node *n,
                       const struct host_stats *figures)
{
    const uint64_t clock_us = sim_clock_read(&n->process.clock, f->world.now_us);
    const uint64_t age_us = clock_us - (figures->lease_until_us - figures->lease_us);

    return figures->lease_us > f->lease_us &&
           age_us < (f->world.now_us - f->lease_agreed_us) * 9 / 10; // by whatever clock
}

static void note_extended(struct fleet *f)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        struct sim_node *n = &f->node[i];
        struct host_stats figures = {0};

        n->extended = 0;
        if (n->core != NULL && n->incarnation != 0 && !n->process.gate.shut) {
            host_stats(n->core, &figures);
        }
        if (figures.serving && is_of_this(f, n, &figures) && may_begin(f, n, &figures)) {
            n->extended = n->incarnation;
            n->extended_jumps = figures.lease_jumps;
            f->extended++;
        }
    }
}

static void on_over(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    for (unsigned i = 0; i < f->nodes && f->profile != PROFILE_CLOCKS; i++) {
        const struct sim_node *n = &f->node[i];
        struct host_stats figures = {0};

        if (n->core == NULL || n->extended == 0 || n->extended != n->incarnation) {
            continue;
        }
        host_stats(n->core, &figures);
        if (figures.serving && figures.lease_jumps == n->extended_jumps &&
            !may_begin(f, n, &figures)) {
            world_violate(&f->world,
                          "maintenance",
                          "%s may begin nothing, %llu us after its coordinators were stopped",
                          n->process.name,
                          (unsigned long long)(f->world.now_us - event->a));
        }
    }
}

static void on_stop(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    (void)event;
    if (f->healed || f->world.now_us < f->asleep_us || f->world.now_us >= f->maintenance_us) {
        return;
    }
    const uint64_t left_us = f->maintenance_us - f->world.now_us;
    const uint64_t away_us =
        world_chance(&f->world, 500) ? left_us : world_between(&f->world, 1000, left_us);

    TRACE(&f->world, "op", "stops all coordinators for %llu us", (unsigned long long)away_us);
    note_extended(f);
    f->maintenances++;
    coordinators_stop_all(f, away_us);
    world_at(&f->world,
             f->world.now_us + away_us,
             (struct world_event){.run = on_over, .context = f, .a = f->world.now_us});
}

void maintenance_told(struct fleet *f, const Rh__AdminReply *reply)
{
    if (reply->tag == (MAINTENANCE_TAG | f->maintenances_asked) && reply->error[0] == '\0') {
        // Nodes renew before; and now and then he does not wait for that.
        world_at(&f->world,
                 f->world.now_us + world_between(&f->world, 0, f->lease_us),
                 (struct world_event){.run = on_stop, .context = f});
    }
}
