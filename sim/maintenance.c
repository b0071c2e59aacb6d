/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold coordinators maintenance`, in some fleets: the operator has nodes serve without
 * coordinators, stops all of these, at once or one after the other, and starts them when the time
 * that he asked for is over, or before. Then he may say that he is through.
 *
 * Checker `maintenance`: from when its leader has applied the wish, each node that renews is
 * granted all that is left until the common end. Who has such a lease was promised to need no
 * coordinator until the operator's time is over, whatever becomes of these: he may begin something
 * at any moment till then, unless his own clocks disagree, or the operator said that he is through
 * and the node was told so. What it owns is nobody else's before that lease is over (`fence`,
 * `lease`).
 */
#include "sim/fleet.h"
#include "wire/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAINTENANCE_TAG (UINT64_C(1) << 61) /* no wish and no question of another file has it */

enum {
    GAP_US = 4000000,
    SOFT_PART = 5,    /* of a lease: nothing begins in it (node/books/lease.h) */
    FRESH_PART = 2,   /* of a lease: a renewal that is no older gets a lease that is long enough */
    AT_ONCE_PM = 600, /* all coordinators are stopped at once so often, … */
    THROUGH_PM = 500, /* … and so often he says that he is through */
    REASON_SIZE = 32,
};

void maintenance_draw(struct fleet *f, uint64_t seed)
{
    struct prng aside = {.state = seed ^ 0x6d61696e74656eu};
    const uint64_t lease_ms = f->lease_us / 1000;

    if (f->lease_us > 0 && f->profile != PROFILE_CALM &&
        (f->options.maintained || prng_chance(&aside, 200))) {
        f->maintenance_ms = (uint32_t)prng_between(&aside, 2 * lease_ms, 4 * lease_ms);
    }
}

/* How long leases are that a leader with leases of `lease_us` extends. */
static uint64_t extended_us(const struct fleet *f, uint64_t lease_us)
{
    return (uint64_t)f->maintenance_ms * 4000 / 3 + lease_us;
}

uint64_t maintenance_lease_us(const struct fleet *f)
{
    return f->maintenance_ms == 0 ? f->lease_us : extended_us(f, f->lease_us);
}

/* ---- the operator */

/* `for_ms` 0: he is through. The reason, which comes back with the log's entry, is until when nodes
 * are to need no coordinator. */
static void wish(struct fleet *f, struct net_end *end, uint32_t for_ms)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminMaintenance body = RH__ADMIN_MAINTENANCE__INIT;
    struct buffer out = {0};
    char reason[REASON_SIZE];

    (void)snprintf(
        reason, sizeof reason, "%llu", (unsigned long long)(for_ms == 0 ? 0 : f->maintenance_us));
    body.for_ms = for_ms;
    body.reason = reason;
    admin.tag = MAINTENANCE_TAG | ++f->maintenances_asked;
    admin.what_case = RH__ADMIN__WHAT_MAINTENANCE;
    admin.maintenance = &body;
    control.body_case = RH__CONTROL__BODY_ADMIN;
    control.admin = &admin;
    control_put(&out, &control);
    network_send(&f->network, end, FRAME_CONTROL, buffer_bytes(&out));
    buffer_fini(&out);
}

static struct net_end *leaders_end(const struct fleet *f)
{
    return f->raft.leader < 0 || f->healed || f->world.now_us < f->asleep_us
               ? NULL
               : f->operator_end[f->raft.leader];
}

static void on_ask(void *context, const struct world_event *event);

static void ask_in(struct fleet *f, uint64_t us)
{
    world_at(&f->world,
             f->world.now_us + us +
                 world_gap(&f->world, f->options.maintained ? GAP_US / 4 : GAP_US),
             (struct world_event){.run = on_ask, .context = f});
}

static void on_ask(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct net_end *end = leaders_end(f);

    (void)event;
    if (f->healed) {
        return;
    }
    if (end != NULL) {
        TRACE(&f->world, "op", "wants a maintenance of %u ms", f->maintenance_ms);
        f->maintenance_us = f->world.now_us + (uint64_t)f->maintenance_ms * 1000;
        wish(f, end, f->maintenance_ms);
        f->maintenance_tag = MAINTENANCE_TAG | f->maintenances_asked;
    }
    ask_in(f, (uint64_t)f->maintenance_ms * 1000);
}

void maintenance_start(struct fleet *f)
{
    if (f->maintenance_ms > 0) {
        ask_in(f, 0);
    }
}

static void on_through(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct net_end *end = leaders_end(f);

    (void)event;
    if (end != NULL) {
        TRACE(&f->world, "op", "is through with his maintenance");
        wish(f, end, 0);
    }
}

static void on_stop_one(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    if (!f->healed && f->world.now_us < f->maintenance_us) {
        TRACE(&f->world,
              "op",
              "stops c%u for %llu us",
              (unsigned)event->a + 1,
              (unsigned long long)event->b);
        coordinators_stop(f, (unsigned)event->a, event->b);
    }
}

/* Each is back when the next one is stopped, or not quite. */
static void stop_in_turn(struct fleet *f, uint64_t time_us)
{
    const uint64_t each_us = time_us / f->coordinators;

    for (unsigned i = 0; i < f->coordinators; i++) {
        world_at(&f->world,
                 f->world.now_us + i * each_us,
                 (struct world_event){.run = on_stop_one,
                                      .context = f,
                                      .a = i,
                                      .b = world_between(&f->world, 1, each_us + each_us / 4)});
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

    f->maintenances++;
    if (world_chance(&f->world, AT_ONCE_PM)) {
        TRACE(&f->world, "op", "stops all coordinators for %llu us", (unsigned long long)away_us);
        coordinators_stop_all(f, away_us);
    } else {
        stop_in_turn(f, away_us);
    }
    if (world_chance(&f->world, THROUGH_PM)) {
        world_at(&f->world,
                 f->world.now_us + away_us + world_between(&f->world, 0, f->lease_us),
                 (struct world_event){.run = on_through, .context = f});
    }
}

void maintenance_told(struct fleet *f, const Rh__AdminReply *reply)
{
    if (f->maintenance_tag != 0 && reply->tag == f->maintenance_tag && reply->error[0] == '\0') {
        // Nodes renew before; and now and then he does not wait for that.
        world_at(&f->world,
                 f->world.now_us + world_between(&f->world, 0, f->lease_us),
                 (struct world_event){.run = on_stop, .context = f});
    }
}

/* ---- what leaders owe nodes */

static uint64_t mine_us(const struct fleet *f, const struct sim_coordinator *c)
{
    return f->leases_differ ? c->lease_us / 1000 * 1000 : f->lease_us;
}

void maintenance_forget(struct sim_coordinator *c)
{
    c->lease_tag = 0;
    c->extended_us = 0;
    c->promised_us = 0;
    c->through = false;
}

void maintenance_wished(struct sim_coordinator *c, uint64_t tag, struct bytes bytes)
{
    Rh__Command *command = command_get(bytes);

    if (command != NULL && command->body_case == RH__COMMAND__BODY_LEASE) {
        c->lease_tag = tag;
    }
    command_free(command);
}

void maintenance_done(struct fleet *f, struct sim_coordinator *c, uint64_t tag,
                      const Rh__Command *command)
{
    if (tag == 0 || tag != c->lease_tag) {
        return;
    }
    c->lease_tag = 0;
    if (command == NULL || command->reason[0] == '\0') {
        return; // it came to nothing, or is no operator's wish
    }
    const uint64_t until_us = strtoull(command->reason, NULL, 10);
    const uint64_t end_us =
        sim_clock_read(&c->process.clock, f->world.now_us) + extended_us(f, mine_us(f, c));

    c->through = until_us == 0;
    if (until_us != 0) {
        c->extended_us = end_us > c->extended_us ? end_us : c->extended_us;
        c->promised_us = until_us > c->promised_us ? until_us : c->promised_us;
    }
}

void maintenance_granted(struct fleet *f, const struct sim_coordinator *c, struct sim_node *n,
                         const Rh__Grant *grant)
{
    const uint64_t own_us = mine_us(f, c);
    const uint64_t left_us =
        c->through || c->extended_us <= c->step_us ? 0 : c->extended_us - c->step_us;
    const bool due = left_us > own_us && c->lease_tag == 0 && grant->clock_parts == 0;

    if (f->maintenance_ms > 0 && ((grant->lease_us > own_us && grant->lease_us != left_us) ||
                                  (grant->lease_us <= own_us && due))) {
        world_violate(&f->world,
                      "maintenance",
                      "%s grants %s a lease of %llu us: its own is %llu, extended ones end in %llu",
                      c->process.name,
                      n->process.name,
                      (unsigned long long)grant->lease_us,
                      (unsigned long long)own_us,
                      (unsigned long long)left_us);
    }
    n->owed[grant->seq % FLEET_OWED_MAX] =
        (struct sim_owed){.seq = grant->seq,
                          .term = grant->term,
                          .lease_us = grant->lease_us,
                          .until_us = grant->lease_us > own_us ? c->promised_us : 0,
                          .own_us = own_us,
                          .through = c->through};
}

/* ---- what nodes have */

/* Whether the node may begin something then, by what its lease is and not by when it looked last.
 */
static bool may_begin(const struct sim_node *n, uint64_t at_us)
{
    const uint64_t clock_us = sim_clock_read(&n->process.clock, at_us);
    struct host_stats figures;

    host_stats(n->core, &figures);
    return clock_us + figures.lease_us / SOFT_PART < figures.lease_until_us;
}

/* What it was promised holds yet. */
static bool is_promised(const struct fleet *f, const struct sim_node *n)
{
    struct host_stats figures;

    if (n->core == NULL || n->promised != n->incarnation || n->promised == 0 ||
        f->world.now_us > n->promised_us || f->profile == PROFILE_CLOCKS) {
        return false;
    }
    host_stats(n->core, &figures);
    return figures.serving && figures.lease_jumps == n->promised_jumps;
}

static void judge(struct fleet *f, const struct sim_node *n)
{
    if (is_promised(f, n) && !may_begin(n, f->world.now_us)) {
        world_violate(&f->world,
                      "maintenance",
                      "%s may begin nothing %llu us before the operator's time is over",
                      n->process.name,
                      (unsigned long long)(n->promised_us - f->world.now_us));
    }
}

static void on_over(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    judge(f, &f->node[event->a]);
}

/* It counts from `seq` now. A renewal that was long on its way leaves less than was asked for, and
 * the node tells so in its next one. */
static bool is_enough(const struct fleet *f, const struct sim_node *n, const struct sim_owed *owed)
{
    const uint64_t clock_us = sim_clock_read(&n->process.clock, f->world.now_us);
    struct host_stats figures;

    host_stats(n->core, &figures);
    const uint64_t age_us = clock_us - (figures.lease_until_us - figures.lease_us);

    return age_us <= owed->own_us / FRESH_PART || may_begin(n, owed->until_us);
}

static void promise(struct fleet *f, struct sim_node *n, const struct sim_owed *owed)
{
    struct host_stats figures;

    host_stats(n->core, &figures);
    if (n->promised != n->incarnation || n->promised_jumps != figures.lease_jumps) {
        n->promised_us = 0;
    }
    n->promised = n->incarnation;
    n->promised_jumps = figures.lease_jumps;
    if (owed->until_us > n->promised_us) {
        TRACE(&f->world,
              n->process.name,
              "needs no coordinator until %llu us",
              (unsigned long long)owed->until_us);
        f->extended++;
        n->promised_us = owed->until_us;
        world_at(&f->world,
                 owed->until_us,
                 (struct world_event){.run = on_over, .context = f, .a = (uint64_t)(n - f->node)});
    }
}

void maintenance_took(struct fleet *f, struct sim_node *n, const Rh__Grant *grant)
{
    const struct sim_owed *owed = &n->owed[grant->seq % FLEET_OWED_MAX];
    struct host_stats figures;

    host_stats(n->core, &figures);
    const bool known = owed->seq == grant->seq && owed->term == grant->term &&
                       owed->lease_us == grant->lease_us && figures.serving;

    if (known && grant->instead && owed->through && figures.lease_us == grant->lease_us) {
        n->promised = 0; // else it came late: the node has a later one
    } else if (known && owed->until_us > f->world.now_us && figures.lease_us == grant->lease_us &&
               is_enough(f, n, owed)) {
        promise(f, n, owed);
    }
    judge(f, n);
}
