/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the end of a history: nothing waits, nothing pends, all have one ring.
 */
#include "base/mem.h"
#include "ring/plan.h"
#include "sim/fleet.h"
#include "sim/raft/group.h"
#include "txn/leader/zones.h"

#include <stdio.h>
#include <string.h>

static char waits_for[WORLD_LINE_MAX];

#define WAITS(...) (snprintf(waits_for, sizeof waits_for, __VA_ARGS__), waits_for)

static bool same_ring(const struct ring *a, const struct ring *b)
{
    return a->version == b->version && a->digest[0] == b->digest[0] && a->digest[1] == b->digest[1];
}

static const char *node_waits(const struct fleet *f, const struct sim_node *n)
{
    const struct ring *truth = &f->raft.truth.view.ring;
    struct host_stats stats;

    if (n->core == NULL) {
        return NULL;
    }
    host_stats(n->core, &stats);
    if (!stats.serving) {
        return WAITS("%s is not registered", n->process.name);
    }
    if (stats.held > 0) {
        return WAITS("%s holds %llu requests", n->process.name, (unsigned long long)stats.held);
    }
    if (stats.failing > 0) {
        return WAITS("%llu actors on %s start again after a back-off",
                     (unsigned long long)stats.failing,
                     n->process.name);
    }
    // Session actors with a client are asked to retire again and again where actors are too many,
    // and refuse.
    if (host_running(n->core) > lives_retiring(n)) {
        return WAITS("an actor still runs on %s", n->process.name);
    }
    if (!same_ring(&host_view(n->core)->ring, truth)) {
        return WAITS("%s has another ring than the coordinators", n->process.name);
    }
    for (const struct instance *i = n->instance; i != NULL; i = i->next) {
        if (i->frozen) {
            return WAITS("%s is still frozen on %s", i->entity->id, n->process.name);
        }
    }
    return NULL;
}

static const struct sim_node *node_named(const struct fleet *f, const char *name)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        if (strcmp(f->node[i].process.name, name) == 0) { // no twin: it is ended by now
            return &f->node[i];
        }
    }
    return NULL;
}

static const char *owners_wait(const struct fleet *f)
{
    const struct view *view = &f->raft.truth.view;

    for (size_t i = 0; i < view->ring.vnode_count; i++) {
        const struct view_member *m = view_member(view, view->ring.vnode[i].owner);
        const struct sim_node *n = m == NULL ? NULL : node_named(f, m->name);

        if (n == NULL || n->core == NULL || n->incarnation != m->incarnation) {
            return WAITS("vnode %u has no living owner", view->ring.vnode[i].id);
        }
        if (m->leaving) {
            return WAITS("%s is leaving and owns vnode %u", m->name, view->ring.vnode[i].id);
        }
    }
    return view->ring.vnode_count == 0 ? "there is no ring" : NULL;
}

/* Each gateway that lives has a link to the owner of each vnode, in its life of now. */
static const char *links_wait(const struct fleet *f)
{
    const struct view *view = &f->raft.truth.view;

    for (size_t i = 0; i < view->ring.vnode_count; i++) {
        const uint16_t slot = view->ring.vnode[i].owner;

        for (unsigned g = 0; g < f->gateways; g++) {
            const struct sim_gateway *gateway = &f->gateway[g];
            const struct net_end *end = gateway->core == NULL ? NULL : gateway->node[slot];

            if (gateway->core != NULL &&
                (end == NULL || !end->up || end->other_life != end->other->life)) {
                return WAITS("%s has no link to the owner of vnode %u",
                             gateway->process.name,
                             view->ring.vnode[i].id);
            }
        }
    }
    return NULL;
}

/* The planner must have nothing left to do for the nodes that are there. */
static const char *plan_waits(const struct fleet *f)
{
    const struct view *view = &f->raft.truth.view;
    const struct plan_limits limits = {.vnodes_per_weight = f->raft.truth.vnodes_per_weight,
                                       .moves_per_txn = 8,
                                       .wave_cap = 4,
                                       .owned_only = true};
    struct plan_node node[FLEET_NODES_MAX * 4];
    struct plan_part part[FLEET_NODES_MAX * 4];
    struct coordinator_config config = {.zone_count = 0};
    struct plan_wishes wishes = {0};
    struct plan plan;
    enum err e;
    size_t count = 0;
    size_t left;

    for (size_t i = 0; i < view->member_count; i++) {
        const struct sim_node *n = node_named(f, view->member[i].name);

        // A dead one gets nothing; and one whose late REGISTER came after it had left.
        if (n != NULL && n->core != NULL && count < sizeof node / sizeof node[0]) {
            part[count] = roles_part(f, n);
            node[count] = (struct plan_node){
                .slot = view->member[i].slot,
                .weight = view->member[i].weight,
                .leaving = view->member[i].leaving,
                .role = view->member[i].role,
                .kinds = &view->member[i].kinds,
                .incarnation = view->member[i].incarnation,
                .zone = state_node(&f->raft.truth, view->member[i].slot)->zone,
                .parts = &part[count],
                .part_count = part[count].permille < RING_PART_WHOLE,
            };
            count++;
        }
    }
    roles_zones(f, &config);
    zones_keep(&config, node, count);
    wishes.wish = mem_new(f->raft.truth.pin_count + 1, sizeof *wishes.wish);
    wishes.count = placement_wishes(f, wishes.wish);
    e = plan_make(&plan,
                  plan_by_weight,
                  &(struct plan_view){&view->ring, node, count},
                  NULL,
                  &wishes,
                  &limits);
    mem_free(wishes.wish);
    if (e != ERR_OK) {
        return NULL; // all are leaving: nothing can be planned
    }
    left = plan.txn_count;
    plan_fini(&plan);
    return left > 0 ? WAITS("%zu transactions are still to plan", left) : NULL;
}

/* From then on K7's bounds count: the faults are over, dead links were noticed and dialled again,
 * nobody else was elected since, nor has the log had another longest lease. */
static uint64_t calm_since_us(const struct fleet *f)
{
    enum { LINKS_US = HOST_CONN_MS * 1000 + 1000000 };
    const uint64_t links_us = f->heal_us + LINKS_US;
    const uint64_t led_us =
        f->raft.elected_us > f->lease_agreed_us ? f->raft.elected_us : f->lease_agreed_us;

    return links_us > led_us ? links_us : led_us;
}

/* The longest lease and its margin by a clock that is 6 % slow. */
static uint64_t lease_wait_us(const struct fleet *f)
{
    return f->raft.truth.lease_us * 117 / 100;
}

/* Coordinators that were stopped draw no number before each node was heard of, or has no lease:
 * after a maintenance that is longer than a transaction may take. */
static uint64_t extended_us(const struct fleet *f)
{
    return f->raft.truth.lease_us > f->lease_us ? lease_wait_us(f) : 0;
}

/* How much later than both of these. */
static uint64_t since_both_us(const struct fleet *f, uint64_t a_us, uint64_t b_us)
{
    const uint64_t from_us = a_us > b_us ? a_us : b_us;

    return f->world.now_us > from_us ? f->world.now_us - from_us : 0;
}

/* Commits, what is sent again, and what this looks at seldom. */
enum { ROUNDS_US = 2000000 };

void check_holds(struct fleet *f)
{
    const uint64_t bound_us =
        ((uint64_t)f->prepare_ms + 2 * (uint64_t)f->poll_ms) * 1000 + extended_us(f);

    for (unsigned n = 0; n < f->nodes; n++) {
        for (const struct instance *i = f->node[n].instance; i != NULL; i = i->next) {
            if (i->frozen &&
                since_both_us(f, i->frozen_us, calm_since_us(f)) > bound_us + ROUNDS_US) {
                world_violate(&f->world,
                              "hold",
                              "%s is frozen on %s since %llu ms",
                              i->entity->id,
                              i->node->process.name,
                              (unsigned long long)(f->world.now_us - i->frozen_us) / 1000);
            }
        }
    }
}

/* Somebody can take over from `n`. */
static bool others_serve(const struct fleet *f, const struct sim_node *n)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        const struct sim_node *other = &f->node[i];

        if (other != n && other->core != NULL && other->incarnation != 0 && !other->leaving &&
            !twin_is(f, other) && roles_of(f, other) == roles_of(f, n)) {
            return true;
        }
    }
    return false;
}

void check_recovery(struct fleet *f)
{
    const struct view *view = &f->raft.truth.view;
    // After a restore nodes are registered only when it is over, and whoever is heard of then is
    // waited for once more.
    const uint64_t bound_us = (f->restores > 0 ? 2 : 1) * lease_wait_us(f) + ROUNDS_US;

    for (unsigned i = 0; i < f->nodes && f->lease_us > 0; i++) {
        const struct sim_node *n = &f->node[i];
        const struct view_member *m = view_member_named(view, process_says(&n->process));

        if (n->down_us != 0 && m != NULL && ring_owned_count(&view->ring, m->slot) > 0 &&
            others_serve(f, n) && f->twins == 0 &&
            since_both_us(f, n->down_us, calm_since_us(f)) > bound_us) {
            world_violate(&f->world,
                          "recovery",
                          "the vnodes of %s have no server since %llu ms",
                          n->process.name,
                          (unsigned long long)(f->world.now_us - n->down_us) / 1000);
        }
    }
}

void check_pending(struct fleet *f)
{
    const uint64_t bound_us = (uint64_t)f->prepare_ms * 1000 + ROUNDS_US + extended_us(f);
    const struct state *truth = &f->raft.truth;

    for (size_t i = 0; i < truth->txn_count; i++) {
        const struct state_txn *t = &truth->txn[i];
        const uint64_t created_us = t->created_us - FLEET_WALL_US;

        // A new leader, and so one of a restored group, begins it anew.
        if (t->state == TXN_PENDING && since_both_us(f, created_us, calm_since_us(f)) > bound_us) {
            world_violate(&f->world,
                          "drain",
                          "transaction %llu is pending since %llu ms",
                          (unsigned long long)t->number,
                          (unsigned long long)(f->world.now_us - created_us) / 1000);
        }
    }
}

const char *check_settled(struct fleet *f)
{
    const struct state *truth = &f->raft.truth;
    const char *what = NULL;

    if (network_has_dead(&f->network)) {
        return WAITS("a link is dead, and an end has not noticed");
    }
    if (f->ledger.open > 0) {
        return WAITS("%zu requests have no answer", f->ledger.open);
    }
    for (size_t i = 0; i < truth->txn_count; i++) {
        if (truth->txn[i].state == TXN_PENDING) {
            return WAITS("transaction %llu is pending", (unsigned long long)truth->txn[i].number);
        }
    }
    for (unsigned i = 0; i < f->nodes && what == NULL; i++) {
        what = node_waits(f, &f->node[i]);
    }
    for (unsigned i = 0; i < f->gateways && what == NULL; i++) {
        if (!same_ring(&router_view(f->gateway[i].core)->ring, &truth->view.ring)) {
            what = WAITS("%s has another ring than the coordinators", f->gateway[i].process.name);
        }
    }
    return what;
}

const char *check_quiescence(struct fleet *f)
{
    const char *what = check_settled(f);

    what = what == NULL ? group_waits(f) : what;
    what = what == NULL ? owners_wait(f) : what;
    what = what == NULL ? links_wait(f) : what;
    if (what == NULL && lives_waits(f) != NULL) {
        what = WAITS("%s does not live", lives_waits(f));
    }
    if (what == NULL && remember_waits(f) != NULL) {
        what = WAITS("%s is remembered and does not live", remember_waits(f));
    }
    what = what == NULL ? plan_waits(f) : what;
    what = what == NULL ? roles_wait(f) : what;
    what = what == NULL ? bank_waits(f) : what;
    return what == NULL ? sim_players_wait(f) : what;
}
