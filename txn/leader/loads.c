/* SPDX-License-Identifier: Apache-2.0
 *
 * The leader's book of what vnodes cost, and when a plan goes by it.
 */
#include "txn/leader/inside.h"

#include "base/mem.h"
#include "base/mutant.h"

#include <string.h>

enum {
    DECAY_PART = 4,
    MILLION = 1000000,
    GAP_US = 3 * LOADS_DECAY_US, /* a node that told nothing for so long is not known any more */
    REQUESTS_MIN = 1000, /* of a node on the average, in `requests`: with fewer, chance counts */
    ACTORS_MIN = 100,    /* likewise, of those that live */
    REQUEST_US = 3,      /* of its node's time, beside that of its actor, is about what one takes */
    UNEVEN_PERMILLE = 1100, /* worth a plan: plan_by_load's own bound */
    IN_VAIN_PERIODS = 2,    /* after a plan with nothing to do */
    MINUTE_MS = 60000,
    MS = 1000,
};

static void make_room(struct leader_loads *own, uint32_t vnode)
{
    const size_t count = (size_t)vnode + 1;

    if (count > own->count) {
        own->of = mem_resize(own->of, count * sizeof *own->of);
        own->rests_us = mem_resize(own->rests_us, count * sizeof *own->rests_us);
        memset(&own->of[own->count], 0, (count - own->count) * sizeof *own->of);
        memset(&own->rests_us[own->count], 0, (count - own->count) * sizeof *own->rests_us);
        own->count = count;
    }
}

/* ---- what nodes tell ---- */

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

/* What a report tells, or what is left of it for the vnodes that it does not name. */
struct told {
    uint64_t requests;
    uint64_t busy_us;
    uint64_t memory;
};

/* More than this no node has; so what is reckoned with them fits. */
static struct told told_of(const Rh__Costs *costs)
{
    return (struct told){.requests = at_most(costs->requests, UINT32_MAX),
                         .busy_us = at_most(costs->busy_us, UINT32_MAX),
                         .memory = at_most(costs->memory, UINT64_C(1) << 50)};
}

static bool covers(const struct told *t, const Rh__VnodeCost *row)
{
    return row->requests <= t->requests && row->busy_us <= t->busy_us && row->memory <= t->memory;
}

/* A rate, in microseconds of the report's time, as the part of it that is added to what is known.
 */
static uint32_t rate_of(const Rh__Costs *costs, double us)
{
    // Of a report that is of more time than others the part of that time.
    const uint64_t period_us =
        costs->period_us < LOADS_DECAY_US ? LOADS_DECAY_US : costs->period_us;

    return (uint32_t)at_most((uint64_t)(us * 1e6 / (double)period_us * LOADS_UNIT / DECAY_PART),
                             UINT32_MAX);
}

static void add(struct plan_load *l, uint32_t cost)
{
    l->cost = (uint32_t)at_most((uint64_t)l->cost + cost, UINT32_MAX);
}

static const struct ring_vnode *owned_vnode(const struct coordinator *c,
                                            const struct state_node *node, uint32_t id)
{
    const struct ring_vnode *v = ring_find(&c->state->view.ring, id);

    return v != NULL && (v->owner == node->slot || mutant(M_BELIEVED)) ? v : NULL;
}

static bool goes_by_memory(const struct coordinator *c)
{
    return c->config.balance_by == BALANCE_BY_MEMORY;
}

static uint32_t kib(uint64_t bytes)
{
    return (uint32_t)at_most(bytes / 1024, UINT32_MAX);
}

/* `request_us`: what each of the report's requests takes, beside the time that rows name. */
static void take_row(struct coordinator *c, const Rh__Costs *costs, const Rh__VnodeCost *row,
                     double request_us)
{
    struct leader_loads *own = &c->loads;
    struct plan_load *l = &own->of[row->vnode];
    const struct ring_vnode *v = ring_find(&c->state->view.ring, row->vnode);

    l->cut = 0;
    if (goes_by_memory(c)) {
        l->cost = kib(row->memory);
        return;
    }
    add(l, rate_of(costs, (double)row->busy_us + (double)row->requests * request_us));
    if (row->cut > v->from && row->cut < ring_end(&c->state->view.ring, v) &&
        row->left <= MILLION) {
        l->cut = row->cut;
        l->left = (uint32_t)((uint64_t)l->cost * row->left / MILLION);
    }
}

/* Spread what the rows don't name over the node's other vnodes. `named`: by id. */
static void take_rest(struct coordinator *c, const struct state_node *node, const uint8_t *named,
                      uint32_t cost)
{
    const struct ring *ring = &c->state->view.ring;
    size_t others = 0;

    if (cost == 0 && !goes_by_memory(c)) {
        return;
    }
    for (size_t i = 0; i < ring->vnode_count; i++) {
        others += ring->vnode[i].owner == node->slot && named[ring->vnode[i].id] == 0;
    }
    for (size_t i = 0; i < ring->vnode_count; i++) {
        const struct ring_vnode *v = &ring->vnode[i];

        if (v->owner == node->slot && named[v->id] == 0) {
            struct plan_load *l = &c->loads.of[v->id];

            l->cost = goes_by_memory(c) ? 0 : l->cost; // a rate is added up, an amount is not
            add(l, cost / (uint32_t)others);
        }
    }
}

/* A node tells of what it owns: what it says of others' vnodes counts for nothing, and of one vnode
 * only what it says first. Its rows take no more than it has in all. */
static void take_costs(struct coordinator *c, const struct state_node *node, const Rh__Costs *costs)
{
    const struct told all = told_of(costs);
    struct told rest = all;
    uint8_t *named = mem_new(c->loads.count, 1);
    const Rh__VnodeCost **taken = mem_new(costs->n_vnodes + 1, sizeof(Rh__VnodeCost *));
    size_t count = 0;

    for (size_t i = 0; i < costs->n_vnodes; i++) {
        const Rh__VnodeCost *row = costs->vnodes[i];
        const struct ring_vnode *v = owned_vnode(c, node, row->vnode);

        if (v != NULL && named[v->id] == 0 && covers(&rest, row)) {
            named[v->id] = 1;
            taken[count++] = row;
            rest.requests -= row->requests;
            rest.busy_us -= row->busy_us;
            rest.memory -= row->memory;
        }
    }
    // What no row says of the actors' time goes to all requests alike, or, where there are none, to
    // all vnodes that no row names.
    const double request_us =
        REQUEST_US + (all.requests == 0 ? 0 : (double)rest.busy_us / (double)all.requests);
    const double rest_us =
        all.requests == 0 ? (double)rest.busy_us : (double)rest.requests * request_us;
    for (size_t i = 0; i < count; i++) {
        take_row(c, costs, taken[i], request_us);
    }
    take_rest(c, node, named, goes_by_memory(c) ? kib(rest.memory) : rate_of(costs, rest_us));
    mem_free(taken);
    mem_free(named);
}

static uint32_t p99_of(const Rh__Costs *costs)
{
    uint64_t took[LATENCY_BUCKETS] = {0};

    trend_add_took(costs, took);
    return (uint32_t)latency_quantile_us(took, TREND_P99);
}

void loads_told(struct coordinator *c, const struct state_node *node, const Rh__Costs *costs)
{
    const struct ring *ring = &c->state->view.ring;

    if (costs->period_us == 0 || ring->vnode_count == 0) {
        return;
    }
    make_room(&c->loads, (uint32_t)ring->slot_count);
    take_costs(c, node, costs);
    c->loads.requests += at_most(costs->requests, UINT32_MAX);
    c->loads.actors[node->slot] = (uint32_t)at_most(costs->actors, UINT32_MAX);
    c->loads.rate[node->slot] =
        (uint32_t)at_most(told_of(costs).requests * MILLION / costs->period_us, UINT32_MAX);
    c->loads.p99_us[node->slot] = p99_of(costs);
    if (c->now_us - c->loads.told_us[node->slot] > GAP_US) {
        c->loads.tells_us[node->slot] = c->now_us;
    }
    c->loads.told_us[node->slot] = c->now_us;
}

bool loads_rate(const struct coordinator *c, const struct state_node *node, uint64_t *out)
{
    const uint64_t told_us = c->loads.told_us[node->slot];

    *out = c->loads.rate[node->slot];
    return told_us != 0 && c->now_us - told_us <= GAP_US;
}

uint64_t loads_p99_us(const struct coordinator *c, const struct state_node *node)
{
    uint64_t rate;

    return loads_rate(c, node, &rate) ? c->loads.p99_us[node->slot] : 0;
}

/* ---- what changes ---- */

static void on_op(struct coordinator *c, const Rh__RingOp *op, bool for_load)
{
    struct leader_loads *own = &c->loads;

    make_room(own, op->vnode > op->other ? op->vnode : op->other);
    struct plan_load *l = &own->of[op->vnode];
    struct plan_load *other = &own->of[op->other];
    if (op->kind == RING_MOVE) {
        own->rests_us[op->vnode] = for_load && !mutant(M_RESTLESS)
                                       ? c->now_us + (uint64_t)c->config.balance_rest_ms * MS
                                       : 0;
        return;
    }
    if (op->kind == RING_MERGE) {
        add(l, other->cost);
        other->cost = 0;
        if (own->rests_us[op->other] > own->rests_us[op->vnode]) {
            own->rests_us[op->vnode] = own->rests_us[op->other]; // part of it moved then
        }
    } else {
        const uint32_t left = l->cut == op->at ? l->left : l->cost / 2;

        other->cost = l->cost - (uint32_t)at_most(left, l->cost);
        own->rests_us[op->other] = own->rests_us[op->vnode];
        l->cost -= other->cost;
    }
    l->cut = other->cut = 0;
}

void loads_changed(struct coordinator *c, const Rh__Delta *delta)
{
    const struct state_txn *t = delta->txn == 0 ? NULL : state_txn(c->state, delta->txn);

    for (size_t i = 0; i < delta->n_ops; i++) {
        if (delta->ops[i]->vnode <= RING_VNODES_MAX && delta->ops[i]->other <= RING_VNODES_MAX) {
            on_op(c, delta->ops[i], t != NULL && rebalance_is_for_load(t));
        }
    }
}

/* ---- how uneven it is ---- */

/* What nodes have, and should have, of the load of their role. */
struct sums {
    uint64_t own[RING_NODES_MAX + 1];
    uint16_t first[RING_NODES_MAX + 1];  /* slot of the first node of its role, which has … */
    uint64_t role[RING_NODES_MAX + 1];   /* … what all of them have, … */
    uint64_t weight[RING_NODES_MAX + 1]; /* … and the weight of those who stay */
};

/* Roles are few. */
static uint16_t first_of_role(const struct state *state, size_t node)
{
    size_t i = 0;

    while (strcmp(state->node[i].role, state->node[node].role) != 0) {
        i++;
    }
    return state->node[i].slot;
}

static bool is_by_hosts(const struct ring *ring, const struct ring_vnode *v)
{
    const struct ring_segment *s = ring_segment_at(ring, v->from);

    return s != NULL && s->policy == RING_HOSTS;
}

static void add_up(const struct coordinator *c, struct sums *s)
{
    const struct state *state = c->state;
    const struct ring *ring = &state->view.ring;

    for (size_t i = 0; i < ring->vnode_count; i++) {
        const struct ring_vnode *v = &ring->vnode[i];

        // By its hosts: other nodes of the role have no share of that.
        if (v->id < c->loads.count && !is_by_hosts(ring, v)) {
            s->own[v->owner] += c->loads.of[v->id].cost;
        }
    }
    for (size_t i = 0; i < state->node_count; i++) {
        const struct state_node *n = &state->node[i];
        const uint16_t first = first_of_role(state, i);

        s->first[n->slot] = first;
        s->role[first] += s->own[n->slot];
        s->weight[first] += n->leaving ? 0 : n->weight;
    }
}

/* In thousandths of what the node should have of its role's load. */
static uint64_t permille_of(const struct sums *s, const struct state_node *n, uint64_t cost)
{
    const uint16_t first = s->first[n->slot];
    const double share =
        s->weight[first] == 0 ? 0 : (double)s->role[first] * n->weight / (double)s->weight[first];

    return share < 1 ? 0 : (uint64_t)((double)cost * 1000 / share);
}

/* So few that chance decides who has them. */
static const char *has_too_few(const struct coordinator *c)
{
    const uint64_t nodes = c->state->node_count;
    uint64_t actors = 0;

    for (size_t i = 0; i < c->state->node_count; i++) {
        actors += c->loads.actors[c->state->node[i].slot];
    }
    if (goes_by_memory(c)) {
        return actors < ACTORS_MIN * nodes ? "there are too few actors" : NULL;
    }
    return c->loads.requests < REQUESTS_MIN * nodes ? "there are too few requests" : NULL;
}

static const char *unknown_why(struct coordinator *c)
{
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *n = &c->state->node[i];

        if (!peers_live(c, n)) {
            continue;
        }
        if (c->now_us - c->loads.told_us[n->slot] > GAP_US) {
            return "a node does not tell what its vnodes cost: it has just come, or is older";
        }
        if (c->now_us - c->loads.tells_us[n->slot] < (uint64_t)c->config.balance_warm_ms * MS) {
            return "this leader was elected just now, or a node has just come";
        }
    }
    return has_too_few(c);
}

struct loads_state loads_state(struct coordinator *c)
{
    const struct ring *ring = &c->state->view.ring;
    struct sums *s = mem_new(1, sizeof *s);
    struct loads_state out = {.why = unknown_why(c)};
    uint32_t most = 0;

    out.known = out.why == NULL;
    add_up(c, s);
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *n = &c->state->node[i];
        const uint64_t permille = permille_of(s, n, s->own[n->slot]);

        if (permille > out.permille) {
            out.permille = permille;
            out.node = n->slot;
        }
    }
    for (size_t i = 0; i < ring->vnode_count; i++) {
        const struct ring_vnode *v = &ring->vnode[i];
        const struct state_node *n = state_node(c->state, v->owner);

        if (v->id < c->loads.count && n != NULL && c->loads.of[v->id].cost > most) {
            most = c->loads.of[v->id].cost;
            out.vnode = v->id;
            out.vnode_permille = permille_of(s, n, most);
        }
    }
    mem_free(s);
    return out;
}

/* ---- plans ---- */

/* An op that pends: what rests once it is applied? As on_op() has it. */
static void rest_ahead(struct leader_loads *own, const struct ring_op *op, bool for_load)
{
    make_room(own, op->vnode > op->other ? op->vnode : op->other);
    struct plan_load *l = &own->of[op->vnode];
    struct plan_load *other = &own->of[op->other];
    if (op->kind == RING_MOVE) {
        l->rests = for_load && !mutant(M_MOVEDON);
    } else if (op->kind == RING_SPLIT) {
        other->rests = l->rests;
    } else {
        l->rests = l->rests || other->rests;
    }
}

struct plan_loads loads_of(struct coordinator *c, uint32_t moves)
{
    struct leader_loads *own = &c->loads;

    for (size_t i = 0; i < own->count; i++) {
        own->of[i].rests = own->rests_us[i] > c->now_us;
    }
    for (size_t i = 0; i < c->state->txn_count; i++) {
        const struct state_txn *t = &c->state->txn[i];

        for (size_t k = 0; k < t->op_count && t->state == TXN_PENDING; k++) {
            rest_ahead(own, &t->ops[k], rebalance_is_for_load(t));
        }
    }
    return (struct plan_loads){.of = own->of, .of_count = own->count, .moves = moves};
}

uint32_t loads_moves(struct coordinator *c)
{
    const uint64_t a_minute = (uint64_t)c->config.balance_moves * c->state->node_count;

    if (c->config.balance_by == BALANCE_BY_HASH || c->now_us < c->loads.look_us ||
        unknown_why(c) != NULL) {
        return 0;
    }
    return (uint32_t)(a_minute * c->config.balance_period_ms / MINUTE_MS + 1);
}

void loads_planned(struct coordinator *c, uint32_t moves, size_t txns)
{
    if (moves > 0) {
        c->loads.look_us = c->now_us + (uint64_t)c->config.balance_period_ms * MS *
                                           (txns == 0 ? IN_VAIN_PERIODS : 1);
    }
}

void loads_run(struct coordinator *c)
{
    struct leader_loads *own = &c->loads;

    if (c->now_us - own->decayed_us >= LOADS_DECAY_US) {
        own->decayed_us = c->now_us;
        own->requests -= own->requests / DECAY_PART;
        for (size_t i = 0; i < own->count && !goes_by_memory(c); i++) {
            own->of[i].cost -= own->of[i].cost / DECAY_PART;
            own->of[i].left -= own->of[i].left / DECAY_PART;
        }
    }
    if (c->config.balance_by == BALANCE_BY_HASH || c->now_us < own->look_us ||
        rebalance_planning(c) || rebalance_planned(c) > 0 || state_pending_count(c->state) > 0) {
        return;
    }
    const struct loads_state state = loads_state(c);
    if (state.known && state.permille > UNEVEN_PERMILLE) {
        rebalance_touch(c);
    } else {
        own->look_us = c->now_us + LOADS_DECAY_US;
    }
}

void loads_reset(struct coordinator *c)
{
    mem_free(c->loads.of);
    mem_free(c->loads.rests_us);
    c->loads = (struct leader_loads){0};
}
