/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds up by vnode what cells were asked, for how long their actors ran, and what these take.
 */
#include "node/host/inside.h"

#include "base/mem.h"
#include "wire/control.h"

#include <string.h>

enum {
    REQUEST_US = 3,
    MILLION = 1000000
}; /* beside its actor's time, a request takes about that */

void costs_fini(struct costs *c)
{
    proto_free(c->report == NULL ? NULL : &c->report->base);
    c->report = NULL;
}

static void begin_period(struct host *h)
{
    h->costs.since_us = h->now_us;
    h->costs.due_us = h->now_us + COSTS_PERIOD_US;
    h->costs.busy_at_us = h->costs.busy_us;
    times_took(&h->times, h->costs.took_at);
}

void costs_begin(struct host *h)
{
    costs_fini(&h->costs);
    h->costs = (struct costs){.busy_us = h->costs.busy_us, .request_us = REQUEST_US};
    begin_period(h);
}

void host_set_busy_time(struct host *h, uint64_t us)
{
    h->costs.busy_us = us;
}

void host_count_time(struct host *h, const struct actor *actor, uint64_t us)
{
    cells_count_time(&h->cells, ring_point_cell(actor_position(actor)), us);
}

/* ---- rows ---- */

/* What costs most comes first, whichever of the two it is that the leader goes by: as parts of what
 * all had the last time. */
static double rank_of(const struct costs *c, const struct costs_vnode *v)
{
    const double cost = (double)v->busy_us + (double)v->requests * c->request_us;

    return cost / (c->cost + 1) + (double)v->memory / (c->memory + 1);
}

/* Into its place; what falls off the end is not told. */
static void add_row(struct costs *c, const struct costs_vnode *v, uint64_t cost)
{
    Rh__Costs *out = c->report;
    const double rank = rank_of(c, v);
    size_t at = out->n_vnodes;

    while (at > 0 && c->rank[at - 1] < rank) {
        at--;
    }
    if (at == COSTS_ROWS_MAX) {
        return;
    }
    Rh__VnodeCost *row =
        out->n_vnodes == COSTS_ROWS_MAX ? out->vnodes[--out->n_vnodes] : mem_new(1, sizeof *row);
    *row = (Rh__VnodeCost)RH__VNODE_COST__INIT;
    row->vnode = v->id;
    row->requests = v->requests;
    row->busy_us = v->busy_us;
    row->memory = v->memory;
    row->cut = v->cut;
    row->left = cost == 0 ? 0 : (uint64_t)((double)v->cut_left * MILLION / (double)cost);
    memmove(&out->vnodes[at + 1], &out->vnodes[at], (out->n_vnodes - at) * sizeof(Rh__VnodeCost *));
    memmove(&c->rank[at + 1], &c->rank[at], (out->n_vnodes - at) * sizeof *c->rank);
    out->vnodes[at] = row;
    c->rank[at] = rank;
    out->n_vnodes++;
}

/* ---- cells ---- */

static uint64_t cost_of(const struct costs *c, uint64_t requests, uint64_t busy_us)
{
    return busy_us + (uint64_t)((double)requests * c->request_us);
}

static void add_cell(struct host *h, uint32_t cell)
{
    const struct cell_cost *cost = &h->cells.cost[cell];
    struct costs_vnode *v = &h->costs.at;

    v->requests += h->cells.state[cell].requests;
    v->busy_us += cost->busy_us;
    v->memory += (uint64_t)cost->memory * CELL_MEMORY_UNIT;
}

/* The second time: what was counted is forgotten, and parted. */
static void part_cell(struct host *h, uint32_t cell)
{
    struct costs_vnode *v = &h->costs.at;
    const uint64_t all = cost_of(&h->costs, v->requests, v->busy_us);

    v->left += cost_of(&h->costs, h->cells.state[cell].requests, h->cells.cost[cell].busy_us);
    cells_forget_costs(&h->cells, cell);
    const uint64_t right = all > v->left ? all - v->left : 0; // more may have come between
    const uint64_t lesser = v->left < right ? v->left : right;
    if (cell + 1 < v->to && lesser > v->best) {
        v->best = lesser;
        v->cut = cell + 1;
        v->cut_left = v->left;
    }
}

static void end_vnode(struct host *h)
{
    struct costs *c = &h->costs;
    const struct costs_vnode *v = &c->at;

    c->report->requests += v->requests;
    c->report->memory += v->memory;
    if (v->requests > 0 || v->busy_us > 0 || v->memory > 0) {
        add_row(c, v, cost_of(c, v->requests, v->busy_us));
    }
}

/* Some cells of the vnode, which is mine. Returns how many. */
static uint32_t go_on(struct host *h, uint32_t most)
{
    struct costs *c = &h->costs;
    const uint32_t begin = c->cell;
    const uint32_t end = most < c->at.to - begin ? begin + most : c->at.to;

    for (; c->cell < end; c->cell++) {
        if (c->at.again) {
            part_cell(h, c->cell);
        } else {
            add_cell(h, c->cell);
        }
    }
    if (c->cell == c->at.to && c->at.again) {
        end_vnode(h);
        c->at = (struct costs_vnode){0};
    } else if (c->cell == c->at.to) {
        c->cell = c->at.from;
        c->at.again = true;
    }
    return end - begin;
}

/* The ring may have changed since the last turn: what is another vnode now is begun anew. */
static uint32_t go_on_at(struct host *h, const struct ring_vnode *v, uint32_t most)
{
    struct costs *c = &h->costs;
    const uint32_t end = ring_end(&h->topology.view.ring, v);

    if (v->owner != h->membership.slot) {
        c->cell = end;
        return 1;
    }
    if (c->at.to != end || c->at.from != v->from || c->at.id != v->id) {
        c->at = (struct costs_vnode){.id = v->id, .from = v->from, .to = end};
        c->cell = v->from;
    }
    return go_on(h, most);
}

/* ---- reports ---- */

/* Nothing, if nothing was answered. */
static void tell_took(struct host *h)
{
    uint64_t took[LATENCY_BUCKETS];
    Rh__Costs *out = h->costs.report;

    times_took(&h->times, took);
    out->took = mem_new(LATENCY_BUCKETS, sizeof *out->took);
    for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
        out->took[i] = took[i] - h->costs.took_at[i];
        out->n_took = out->took[i] > 0 ? LATENCY_BUCKETS : out->n_took;
    }
}

static void begin_report(struct host *h)
{
    struct costs *c = &h->costs;

    costs_fini(c);
    c->report = mem_new(1, sizeof *c->report);
    *c->report = (Rh__Costs)RH__COSTS__INIT;
    c->report->vnodes = mem_new(COSTS_ROWS_MAX, sizeof(Rh__VnodeCost *));
    c->cell = 0;
    c->ready = false;
    c->at = (struct costs_vnode){0};
    c->report->period_us = h->now_us - c->since_us;
    c->report->busy_us = c->busy_us - c->busy_at_us;
    tell_took(h);
    begin_period(h);
}

static void end_report(struct host *h)
{
    struct costs *c = &h->costs;

    c->report->actors = h->work.live;
    c->cost = (double)c->report->busy_us + (double)c->report->requests * REQUEST_US;
    c->request_us = c->report->requests == 0 ? REQUEST_US : c->cost / (double)c->report->requests;
    c->memory = (double)c->report->memory;
    c->ready = true;
}

void costs_turn(struct host *h, uint32_t most)
{
    const struct ring *ring = &h->topology.view.ring;
    struct costs *c = &h->costs;

    if (h->cells.state == NULL || ring->vnode_count == 0) {
        return;
    }
    if (h->now_us >= c->due_us) {
        begin_report(h);
    }
    for (uint32_t left = most; c->report != NULL && !c->ready && left > 0;) {
        left -= go_on_at(h, ring_find(ring, ring_hit_vnode(ring->cell[c->cell])), left);
        if (c->cell >= h->actors.cell_count) {
            end_report(h);
        }
    }
}

void costs_tick(struct host *h)
{
    costs_turn(h, COSTS_CELLS_A_TURN);
}

Rh__Costs *costs_take(struct host *h)
{
    Rh__Costs *out = h->costs.ready ? h->costs.report : NULL;

    if (out != NULL) {
        h->costs.report = NULL;
        h->costs.ready = false;
    }
    return out;
}
