/* SPDX-License-Identifier: Apache-2.0
 *
 * The operator who wants other coordinators, again and again: more, fewer, a new
 * one in the place of one whose machine is lost, or of any.
 */
#include "sim/raft/group_inside.h"

#include "base/assert.h"

#include <stdio.h>

static bool leads(const struct group_member *m)
{
    struct replica_status status = {0};

    if (m->replica != NULL) {
        replica_status(m->replica, &status);
    }
    return status.leading;
}

static bool votes(const struct sim_group *g, const struct group_member *m)
{
    return m->id != 0 && generation_voter(&g->newest, m->id) != NULL;
}

void group_wish_done(struct fleet *f, enum err error)
{
    struct sim_group *g = f->group;

    TRACE(&f->world, "op", "other coordinators: %s", err_name(error));
    g->wish_count = 0;
    if (error != ERR_OK) {
        g->counts.unknown++;
    }
    g->unknown_us = f->world.now_us;
}

/* ---- machines ---- */

static bool waits(const struct group_member *m)
{
    return m->replica != NULL && replica_part(m->replica) == REPLICA_WAITS;
}

/* One more that waits to join, on a machine of no voter. Its folder goes, if it has one: what was
 * decided of it is known, see may_act(). */
static void provide_joiner(struct fleet *f)
{
    struct sim_group *g = f->group;
    const unsigned first = (unsigned)world_between(&f->world, 0, FLEET_COORDINATORS_MAX - 1);

    for (unsigned i = 0; i < FLEET_COORDINATORS_MAX; i++) {
        const unsigned at = (first + i) % FLEET_COORDINATORS_MAX;
        struct sim_coordinator *c = &f->coordinator[at];

        if (votes(g, &g->member[at]) || waits(&g->member[at]) || c->process.gate.shut ||
            g->last_id == GENERATION_ID_MAX) {
            continue;
        }
        if (c->core != NULL) {
            coordinator_crash(f, c);
        }
        group_new_folder(f, at);
        coordinator_start(f, c);
        return;
    }
}

/* ---- wishes ---- */

static unsigned wanted(struct fleet *f, size_t now)
{
    static const unsigned next[][4] = {[1] = {3, 3, 3, 5}, [3] = {5, 5, 3, 1}, [5] = {5, 5, 3, 3}};

    return next[now][world_between(&f->world, 0, 3)];
}

/* Not by a link to whoever was on that machine before. */
static bool is_linked(const struct fleet *f, unsigned at, unsigned other)
{
    const struct net_end *end = f->group->member[at].fellow[other];

    return at == other || (end != NULL && end->other_life == end->other->life);
}

/* Who leads by what is long over may count voters whose folders have gone since: no machine has
 * that id, and nobody answers. */
static bool is_gone(const struct fleet *f, uint64_t id)
{
    return group_machine(f, id) == FLEET_COORDINATORS_MAX;
}

static void add_wish(struct fleet *f, uint64_t id, const char *address)
{
    struct sim_group *g = f->group;
    const unsigned at = group_machine(f, id);
    struct generation_wish *w = &g->wish[g->wish_count++];

    *w =
        (struct generation_wish){.id = id, .linked = !is_gone(f, id) && is_linked(f, g->asked, at)};
    w->empty = w->linked && waits(&g->member[at]);
    (void)snprintf(w->address, sizeof w->address, "%s", address);
}

/* Those who stay: the lost ones leave first, then any. */
static void add_voters(struct fleet *f, const struct generation *now, size_t leave)
{
    const struct sim_group *g = f->group;
    const size_t count = now->voter_count;
    const size_t first = (size_t)world_between(&f->world, 0, count - 1);
    bool leaves[GENERATION_VOTERS_MAX] = {false};

    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < count && leave > 0; i++) {
            const size_t k = first + i < count ? first + i : first + i - count;
            const uint64_t id = now->voter[k].id;
            const bool lost = is_gone(f, id) || g->member[group_machine(f, id)].lost;

            if (!leaves[k] && (pass == 1 || lost)) {
                leaves[k] = true;
                leave--;
            }
        }
    }
    for (size_t i = 0; i < now->voter_count; i++) {
        if (!leaves[i]) {
            add_wish(f, now->voter[i].id, now->voter[i].address);
        }
    }
}

static unsigned joiners(const struct sim_group *g)
{
    unsigned count = 0;

    for (unsigned i = 0; i < FLEET_COORDINATORS_MAX; i++) {
        count += waits(&g->member[i]);
    }
    return count;
}

/* Ask `at`, which believes to lead. */
static void wish(struct fleet *f, unsigned at)
{
    struct sim_group *g = f->group;
    const struct generation now = *replica_generation(g->member[at].replica);
    const size_t size = now.voter_count;
    const size_t leave = g->target < size ? size - g->target : g->target == size ? 1 : 0;
    char why[160] = "";

    g->asked = at;
    g->wish_count = 0;
    add_voters(f, &now, leave);
    for (unsigned i = 0; i < FLEET_COORDINATORS_MAX && g->wish_count < g->target; i++) {
        if (waits(&g->member[i])) {
            char address[GENERATION_ADDRESS_MAX + 1];

            group_address(f, i, address, sizeof address);
            add_wish(f, g->member[i].id, address);
        }
    }
    const enum err e =
        replica_change(g->member[at].replica, GROUP_WISH, g->wish, g->wish_count, why, sizeof why);
    TRACE(&f->world,
          "op",
          "asks %s for %u coordinators instead of %zu: %s",
          f->coordinator[at].process.name,
          g->target,
          size,
          e == ERR_OK ? "it goes on" : why);
    if (e != ERR_OK) {
        g->counts.refused++;
        g->wish_count = 0;
        return;
    }
    g->target = 0;
}

/* A leader of the newest generation that knows how the last wish ended; or NULL. */
static const struct group_member *leader(const struct fleet *f)
{
    const struct sim_group *g = f->group;
    const struct group_member *m = f->raft.leader < 0 ? NULL : &g->member[f->raft.leader];

    return m != NULL && leads(m) && f->raft.elected_us > g->unknown_us &&
                   replica_generation(m->replica)->number == g->newest.number
               ? m
               : NULL;
}

static void on_voters(void *context, const struct world_event *event);

static void again(struct fleet *f)
{
    world_at(&f->world,
             f->world.now_us + world_gap(&f->world, f->faults.voters_us),
             (struct world_event){.run = on_voters, .context = f});
}

/* Now and then one is asked that leads no more, and does not know. */
static unsigned whom_to_ask(struct fleet *f, const struct group_member *now)
{
    const unsigned first = (unsigned)world_between(&f->world, 0, FLEET_COORDINATORS_MAX - 1);

    for (unsigned i = 0; i < FLEET_COORDINATORS_MAX && world_chance(&f->world, 300); i++) {
        const unsigned at = (first + i) % FLEET_COORDINATORS_MAX;

        if (leads(&f->group->member[at]) && !f->coordinator[at].process.gate.shut) {
            return at;
        }
    }
    return now->at;
}

static void on_voters(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_group *g = f->group;
    const struct group_member *now = leader(f);

    (void)event;
    if (f->healed) {
        return;
    }
    again(f);
    if (g->wish_count > 0 || now == NULL || f->coordinator[now->at].process.gate.shut) {
        return;
    }
    const size_t size = g->newest.voter_count;
    g->target = g->target == 0 ? wanted(f, size) : g->target;
    const size_t needed = g->target > size ? g->target - size : g->target == size ? 1 : 0;
    if (joiners(g) < needed) {
        while (joiners(g) < needed && g->last_id < GENERATION_ID_MAX) {
            const unsigned before = joiners(g);

            provide_joiner(f);
            if (joiners(g) == before) {
                break;
            }
        }
        return; // the links to them come up first
    }
    wish(f, whom_to_ask(f, now));
}

void group_changes_start(struct fleet *f)
{
    if (f->group != NULL && f->faults.voters_us > 0) {
        again(f);
    }
}
