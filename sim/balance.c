/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement by load or by memory, in some fleets: nodes share what their vnodes cost. What that is,
 * is made up here and changes all the time, and some nodes lie: of vnodes that they don't own, of
 * some twice, and now more than they have, now less. So the leader plans many moves, and all
 * checkers judge them as any others.
 *
 * At the heal the option is set back, or plans would never end.
 *
 * Checker `rest`: what a leader moved for the load's sake it does not move again for that, as long
 * as it rests.
 */
#include "base/mem.h"
#include "base/table.h"
#include "sim/fleet.h"
#include "txn/leader/rebalance.h"

enum {
    FLEETS = 20, /* of a hundred of those that may be */
    LOADS = 70,  /* and of a hundred of these so many share time; the others memory */
    WARM_MS = 200,
    PERIOD_MS = 200,
    REST_MS = 4000,
    REST_SURE_US = REST_MS * 800, /* by any clock */
    MOVES_A_MINUTE = 300,
    CHANGES_US = 9000000, /* then everything costs something else: the leader knows averages */
    LIARS = 4,            /* one of so many nodes lies; what it owns costs it … */
    SWING = 16,           /* … so many times as much, and then not, … */
    SWING_US = 2000000,   /* … by turns */
    PERIOD_US = 500000,
    RUN = 1024, /* cells that cost the same: a vnode has some of these, in small fleets */
    UNIT = 16,
    DOUBLINGS = 6,
    LIE = 1 << 20,
};

void balance_draw(struct fleet *f)
{
    const bool fits =
        f->profile == PROFILE_MIXED || f->profile == PROFILE_CHANGES || f->profile == PROFILE_LEASE;

    f->loads = (struct prng){.state = f->world.seed ^ 0x62616c616e6365u};
    if (fits && prng_chance(&f->loads, FLEETS)) {
        f->balance_by = prng_chance(&f->loads, LOADS) ? BALANCE_BY_LOAD : BALANCE_BY_MEMORY;
    }
}

void balance_configure(const struct fleet *f, struct coordinator_config *config)
{
    if (f->balance_by != BALANCE_BY_HASH) {
        config->balance_by = f->healed ? BALANCE_BY_HASH : f->balance_by;
        config->balance_warm_ms = WARM_MS;
        config->balance_period_ms = PERIOD_MS;
        config->balance_rest_ms = REST_MS;
        config->balance_moves = MOVES_A_MINUTE;
    }
}

void balance_heal(struct fleet *f)
{
    for (unsigned i = 0; i < f->coordinators && f->balance_by != BALANCE_BY_HASH; i++) {
        struct sim_coordinator *c = &f->coordinator[i];

        if (c->core != NULL) {
            balance_configure(f, &c->config);
            coordinator_configure(c->core, &c->config);
        }
    }
}

/* ---- what nodes tell ---- */

/* Some runs of cells cost more than others. */
static uint64_t cost_of(const struct fleet *f, uint32_t cell)
{
    const uint64_t run = cell / RUN | (f->world.now_us / CHANGES_US) << 32;

    return UNIT << table_mix(f->world.seed ^ run) % DOUBLINGS;
}

static Rh__VnodeCost *add_row(Rh__Costs *out, uint32_t vnode, uint64_t cost)
{
    Rh__VnodeCost *row = mem_new(1, sizeof *row);

    *row = (Rh__VnodeCost)RH__VNODE_COST__INIT;
    row->vnode = vnode;
    row->requests = cost;
    row->busy_us = cost / 2;
    row->memory = cost * 1024;
    out->vnodes[out->n_vnodes++] = row;
    return row;
}

static bool lies(const struct fleet *f, const struct sim_node *n)
{
    return table_mix(f->world.seed + n->process.number) % LIARS == 0;
}

static void tell_vnode(struct fleet *f, Rh__Costs *out, const struct ring_vnode *v, uint64_t times)
{
    const struct ring *ring = &f->raft.truth.view.ring;
    uint64_t cost = 0;

    for (uint32_t cell = v->from; cell < ring_end(ring, v);) {
        const uint32_t run_end = (cell / RUN + 1) * RUN;
        const uint32_t end = run_end < ring_end(ring, v) ? run_end : ring_end(ring, v);

        cost += cost_of(f, cell) * (end - cell);
        cell = end;
    }
    Rh__VnodeCost *row = add_row(out, v->id, cost * times);
    row->cut = (uint32_t)prng_between(&f->loads, v->from, ring_end(ring, v));
    row->left = prng_between(&f->loads, 0, 1000000);
    out->requests += row->requests;
    out->busy_us += row->busy_us;
    out->memory += row->memory;
}

void balance_tell(struct fleet *f, const struct sim_node *n, Rh__Renew *renew)
{
    const struct ring *ring = &f->raft.truth.view.ring;
    const struct state_node *node = state_node_named(&f->raft.truth, n->process.name);
    const bool swings = lies(f, n) && f->world.now_us / SWING_US % 2 == 0;
    Rh__Costs *out = NULL;

    if (f->balance_by == BALANCE_BY_HASH || node == NULL) {
        return;
    }
    proto_free(renew->costs == NULL ? NULL : &renew->costs->base);
    renew->costs = out = mem_new(1, sizeof *out); // freed with the message
    *out = (Rh__Costs)RH__COSTS__INIT;
    out->period_us = PERIOD_US;
    out->actors = 1000;
    out->vnodes = mem_new(2 * ring->vnode_count + 1, sizeof(Rh__VnodeCost *));
    for (size_t i = 0; i < ring->vnode_count; i++) {
        const struct ring_vnode *v = &ring->vnode[i];

        if (lies(f, n) && prng_chance(&f->loads, 30)) {
            (void)add_row(out, v->id, prng_between(&f->loads, 0, LIE));
        }
        if (v->owner == node->slot) {
            tell_vnode(f, out, v, swings ? SWING : 1);
        }
    }
    if (lies(f, n)) {
        out->requests += prng_between(&f->loads, 0, LIE);
        out->memory += (uint64_t)LIE * 1024;
    }
}

/* ---- the checker ---- */

/* A node that has less than half of its share gets whatever there is, also what rests. One plan may
 * take several transactions, so the node arrives until it has its share, or gives something. Only
 * nodes that stay have a share. */
static void note_arrivals(struct fleet *f)
{
    const struct state *s = &f->raft.truth;
    const struct ring *ring = &s->view.ring;
    uint64_t *own = mem_new(RING_NODES_MAX + 1, sizeof *own);
    uint64_t weight = 0;

    for (size_t i = 0; i < ring->vnode_count; i++) {
        own[ring->vnode[i].owner] += ring_end(ring, &ring->vnode[i]) - ring->vnode[i].from;
    }
    for (size_t i = 0; i < s->node_count; i++) {
        weight += s->node[i].leaving || s->node[i].barred ? 0 : s->node[i].weight;
    }
    for (size_t i = 0; i < s->node_count; i++) {
        const struct state_node *node = &s->node[i];
        const uint64_t has = own[node->slot] * weight;
        const uint64_t share = (uint64_t)ring->cell_count * node->weight;

        f->arrives[node->slot] = has * 2 < share || (f->arrives[node->slot] && has < share);
    }
    mem_free(own);
}

static uint64_t lead_us(const struct fleet *f)
{
    return f->raft.leader < 0 ? 0 : f->coordinator[f->raft.leader].lead_us;
}

static void check_begun(struct fleet *f, const struct state_txn *t)
{
    for (size_t i = 0; i < t->op_count; i++) {
        const struct ring_op *op = &t->ops[i];
        const struct ring_vnode *v = ring_find(&f->raft.truth.view.ring, op->vnode);

        if (op->kind == RING_MOVE && v != NULL && f->rest_us[v->from] > f->world.now_us &&
            f->rest_lead_us == lead_us(f) && !f->arrives[op->to]) {
            world_violate(&f->world, "rest", "vnode %u moves for its load again", v->id);
        }
    }
}

static void note_moved(struct fleet *f, const Rh__Delta *delta, bool for_load)
{
    const struct ring *ring = &f->raft.truth.view.ring;

    for (size_t i = 0; i < delta->n_ops; i++) {
        const struct ring_vnode *v =
            delta->ops[i]->kind == RING_MOVE ? ring_find(ring, delta->ops[i]->vnode) : NULL;

        if (v != NULL && for_load) {
            f->arrives[delta->ops[i]->from] = false; // who gives has enough
        }
        for (uint32_t cell = v == NULL ? 0 : v->from; v != NULL && cell < ring_end(ring, v);
             cell++) {
            f->rest_us[cell] = for_load ? f->world.now_us + REST_SURE_US : 0;
        }
        f->balanced += v != NULL && for_load;
    }
}

void balance_committed(struct fleet *f, const Rh__Command *command,
                       const struct state_result *result)
{
    const bool begins = command->body_case == RH__COMMAND__BODY_BEGIN && result->accepted;
    const Rh__Delta *delta = result->delta;
    const struct state_txn *t = state_txn(&f->raft.truth,
                                          begins          ? result->stamp
                                          : delta == NULL ? 0
                                                          : delta->txn);

    if (f->balance_by == BALANCE_BY_HASH) {
        return;
    }
    if (f->rest_us == NULL) {
        f->rest_us = mem_new(RING_CELLS_MAX, sizeof *f->rest_us);
        f->arrives = mem_new(RING_NODES_MAX + 1, sizeof *f->arrives);
    }
    if (f->rest_lead_us != lead_us(f)) {
        f->rest_lead_us = lead_us(f); // who comes to lead knows of no rest
        for (uint32_t cell = 0; cell < f->raft.truth.view.ring.cell_count; cell++) {
            f->rest_us[cell] = 0;
        }
    }
    if (begins || delta != NULL) {
        note_arrivals(f);
    }
    if (begins && t != NULL && rebalance_is_for_load(t)) {
        check_begun(f, t);
    } else if (delta != NULL) {
        note_moved(f, delta, t != NULL && rebalance_is_for_load(t));
    }
}

void balance_free(struct fleet *f)
{
    mem_free(f->arrives);
    mem_free(f->rest_us);
    f->arrives = NULL;
    f->rest_us = NULL;
}
