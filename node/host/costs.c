/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds up the requests of each cell by vnode.
 */
#include "node/host/inside.h"

#include "base/mem.h"

#include <string.h>

void costs_begin(struct host *h)
{
    h->costs.since_us = h->now_us;
    h->costs.due_us = h->now_us + COSTS_PERIOD_US;
    h->costs.busy_at_us = h->costs.busy_us;
}

void host_set_busy_time(struct host *h, uint64_t us)
{
    h->costs.busy_us = us;
}

/* Into its place, the most requests first; what falls off the end is not told. */
static void add_row(Rh__Costs *out, uint32_t vnode, uint64_t requests)
{
    size_t at = out->n_vnodes;

    while (at > 0 && out->vnodes[at - 1]->requests < requests) {
        at--;
    }
    if (at == COSTS_ROWS_MAX) {
        return;
    }
    Rh__VnodeCost *row =
        out->n_vnodes == COSTS_ROWS_MAX ? out->vnodes[--out->n_vnodes] : mem_new(1, sizeof *row);
    *row = (Rh__VnodeCost)RH__VNODE_COST__INIT;
    row->vnode = vnode;
    row->requests = requests;
    memmove(&out->vnodes[at + 1], &out->vnodes[at], (out->n_vnodes - at) * sizeof(Rh__VnodeCost *));
    out->vnodes[at] = row;
    out->n_vnodes++;
}

/* Where a cut parts the requests best. */
static void find_cut(const struct host *h, Rh__VnodeCost *row)
{
    const struct ring *ring = &h->topology.view.ring;
    const struct ring_vnode *v = ring_find(ring, row->vnode);
    uint64_t left = 0;
    uint64_t best = 0;

    for (uint32_t cell = v->from; cell + 1 < ring_end(ring, v); cell++) {
        left += h->cells.state[cell].requests;
        const uint64_t lesser = left < row->requests - left ? left : row->requests - left;
        if (lesser > best) {
            best = lesser;
            row->cut = cell + 1;
            row->left = left;
        }
    }
}

Rh__Costs *costs_take(struct host *h)
{
    const struct ring *ring = &h->topology.view.ring;
    Rh__Costs *out = NULL;

    if (h->cells.state == NULL || h->now_us < h->costs.due_us) {
        return NULL;
    }
    out = mem_new(1, sizeof *out);
    *out = (Rh__Costs)RH__COSTS__INIT;
    out->vnodes = mem_new(COSTS_ROWS_MAX, sizeof(Rh__VnodeCost *));
    out->period_us = h->now_us - h->costs.since_us;
    out->busy_us = h->costs.busy_us - h->costs.busy_at_us;
    for (size_t i = 0; i < ring->vnode_count; i++) {
        const struct ring_vnode *v = &ring->vnode[i];
        const struct span cells = {v->from, ring_end(ring, v)};
        const uint64_t requests =
            v->owner == h->membership.slot ? cells_requests(&h->cells, cells) : 0;

        if (requests > 0) {
            out->requests += requests;
            add_row(out, v->id, requests);
        }
    }
    for (size_t i = 0; i < out->n_vnodes; i++) {
        find_cut(h, out->vnodes[i]);
    }
    for (size_t i = 0; i < ring->vnode_count; i++) {
        const struct ring_vnode *v = &ring->vnode[i];

        if (v->owner == h->membership.slot) {
            cells_forget_requests(&h->cells, (struct span){v->from, ring_end(ring, v)});
        }
    }
    costs_begin(h);
    return out;
}
