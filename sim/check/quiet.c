/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the end of a history: nothing waits, nothing pends, all have one ring.
 */
#include "ring/plan.h"
#include "sim/fleet.h"
#include "sim/raft/group.h"

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
    struct host_figures figures;

    if (n->core == NULL) {
        return NULL;
    }
    host_figures(n->core, &figures);
    if (!figures.serving) {
        return WAITS("%s is not registered", n->process.name);
    }
    if (figures.held > 0) {
        return WAITS("%s holds %llu requests", n->process.name, (unsigned long long)figures.held);
    }
    if (figures.failing > 0) {
        return WAITS("%llu actors on %s start again after a back-off",
                     (unsigned long long)figures.failing,
                     n->process.name);
    }
    if (host_running(n->core) > 0) {
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

/* The planner must have nothing left to do for the nodes that are there. */
static const char *plan_waits(const struct fleet *f)
{
    const struct view *view = &f->raft.truth.view;
    const struct plan_limits limits = {.vnodes_per_weight = f->raft.truth.vnodes_per_weight,
                                       .moves_per_txn = 8,
                                       .wave_cap = 4,
                                       .owned_only = true};
    struct plan_node node[FLEET_NODES_MAX * 4];
    struct plan plan;
    size_t count = 0;
    size_t left;

    for (size_t i = 0; i < view->member_count; i++) {
        const struct sim_node *n = node_named(f, view->member[i].name);

        // A dead one gets nothing; and one whose late REGISTER came after it had left.
        if (n != NULL && n->core != NULL && count < sizeof node / sizeof node[0]) {
            node[count++] = (struct plan_node){
                .slot = view->member[i].slot,
                .weight = view->member[i].weight,
                .leaving = view->member[i].leaving,
                .role = view->member[i].role,
                .kinds = &view->member[i].kinds,
                .incarnation = view->member[i].incarnation,
            };
        }
    }
    if (plan_make(&plan, &view->ring, node, count, &limits) != ERR_OK) {
        return NULL; // all are leaving: nothing can be planned
    }
    left = plan.txn_count;
    plan_fini(&plan);
    return left > 0 ? WAITS("%zu transactions are still to plan", left) : NULL;
}

void check_holds(struct fleet *f)
{
    enum { BOUND_US = 10000000 };

    if (f->world.now_us < f->heal_us + BOUND_US) {
        return;
    }
    for (unsigned n = 0; n < f->nodes; n++) {
        for (const struct instance *i = f->node[n].instance; i != NULL; i = i->next) {
            if (i->frozen && i->frozen_us < f->heal_us) {
                world_violate(&f->world,
                              "hold",
                              "%s is frozen on %s since long before the heal",
                              i->entity->id,
                              i->node->process.name);
            }
        }
    }
}

void check_pending(struct fleet *f)
{
    enum { SLACK_US = 12000000 };
    const uint64_t max_us = (uint64_t)f->prepare_ms * 1000 + SLACK_US;
    const struct state *truth = &f->raft.truth;

    for (size_t i = 0; i < truth->txn_count; i++) {
        const struct state_txn *t = &truth->txn[i];
        const uint64_t created_us = t->created_us - FLEET_WALL_US;
        // A new leader, and so one of a restored group, begins it anew.
        const uint64_t begun_us = created_us > f->raft.elected_us ? created_us : f->raft.elected_us;

        if (t->state == TXN_PENDING && f->world.now_us > begun_us + max_us) {
            world_violate(&f->world,
                          "drain",
                          "transaction %llu is pending since %llu ms",
                          (unsigned long long)t->number,
                          (unsigned long long)(f->world.now_us - begun_us) / 1000);
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

const char *check_quiet(struct fleet *f)
{
    const char *what = check_settled(f);

    what = what == NULL ? group_waits(f) : what;
    what = what == NULL ? owners_wait(f) : what;
    if (what == NULL && lives_waits(f) != NULL) {
        what = WAITS("%s does not live", lives_waits(f));
    }
    what = what == NULL ? plan_waits(f) : what;
    what = what == NULL ? roles_wait(f) : what;
    return what == NULL ? players_wait(f) : what;
}
