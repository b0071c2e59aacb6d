/* SPDX-License-Identifier: Apache-2.0
 *
 * A load by Zipf's law on the cells of a ring.
 */
#include "sim/zipf.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IDS = 1000000, ROWS = 64, OFF_PERCENT = 5, REQUEST_US = 20, SECOND_US = 1000000 };

void zipf_init(struct zipf *z, const struct ring *ring, double exponent, double rate)
{
    double all = 0;

    *z = (struct zipf){.prng = {1}};
    z->cell = mem_new(ring->cell_count, sizeof *z->cell);
    z->owner_of = mem_new(RING_VNODES_MAX + 1, sizeof *z->owner_of);
    for (unsigned n = 1; n <= IDS; n++) {
        const double part = pow(n, -exponent);

        z->cell[prng_u64(&z->prng) % ring->cell_count] += part;
        all += part;
    }
    for (uint32_t c = 0; c < ring->cell_count; c++) {
        z->cell[c] *= rate / all;
    }
}

void zipf_fini(struct zipf *z)
{
    mem_free(z->cell);
    mem_free(z->owner_of);
}

static double rate_of(const struct zipf *z, const struct ring *ring, const struct ring_vnode *v)
{
    double sum = 0;

    for (uint32_t c = v->from; c < ring_end(ring, v); c++) {
        sum += z->cell[c];
    }
    return sum;
}

static double off(struct zipf *z)
{
    return 1 + ((double)prng_between(&z->prng, 0, 2000) / 1000 - 1) * OFF_PERCENT / 100;
}

static void find_cut(const struct zipf *z, const struct ring *ring, const struct ring_vnode *v,
                     Rh__VnodeCost *row)
{
    const double all = rate_of(z, ring, v);
    double left = 0;
    double best = 0;

    for (uint32_t c = v->from; c + 1 < ring_end(ring, v); c++) {
        left += z->cell[c];
        const double lesser = left < all - left ? left : all - left;
        if (lesser > best) {
            best = lesser;
            row->cut = c + 1;
            row->left = (uint64_t)(1e6 * left / all);
        }
    }
}

static int by_requests(const void *a, const void *b)
{
    const Rh__VnodeCost *x = *(Rh__VnodeCost *const *)a;
    const Rh__VnodeCost *y = *(Rh__VnodeCost *const *)b;

    return (x->requests < y->requests) - (x->requests > y->requests);
}

Rh__Costs *zipf_costs(struct zipf *z, const struct ring *ring, uint16_t slot, uint64_t period_us)
{
    Rh__Costs *out = mem_new(1, sizeof *out);

    *out = (Rh__Costs)RH__COSTS__INIT;
    out->period_us = period_us;
    out->vnodes = mem_new(ring_owned_count(ring, slot) + 1, sizeof(Rh__VnodeCost *));
    for (size_t i = 0; i < ring->vnode_count; i++) {
        const struct ring_vnode *v = &ring->vnode[i];

        if (v->owner == slot) {
            Rh__VnodeCost *row = out->vnodes[out->n_vnodes++] = mem_new(1, sizeof *row);

            *row = (Rh__VnodeCost)RH__VNODE_COST__INIT;
            row->vnode = v->id;
            row->requests =
                (uint64_t)(rate_of(z, ring, v) * off(z) * (double)period_us / SECOND_US);
            find_cut(z, ring, v, row);
            out->requests += row->requests;
        }
    }
    out->busy_us = (uint64_t)((double)out->requests * REQUEST_US * off(z));
    qsort(out->vnodes, out->n_vnodes, sizeof(Rh__VnodeCost *), by_requests);
    for (; out->n_vnodes > ROWS; out->n_vnodes--) {
        mem_free(out->vnodes[out->n_vnodes - 1]);
    }
    return out;
}

void zipf_moved(struct zipf *z, const Rh__RingOp *op)
{
    z->moves++;
    z->back += z->owner_of[op->vnode] == op->to;
    z->owner_of[op->vnode] = (uint16_t)op->from;
}

uint64_t zipf_permille(const struct zipf *z, const struct ring *ring, size_t nodes)
{
    double *own = mem_new(RING_NODES_MAX + 1, sizeof *own);
    double all = 0;
    double most = 0;

    for (size_t i = 0; i < ring->vnode_count; i++) {
        const struct ring_vnode *v = &ring->vnode[i];
        const double rate = rate_of(z, ring, v);

        own[v->owner] += rate;
        all += rate;
        most = own[v->owner] > most ? own[v->owner] : most;
    }
    mem_free(own);
    return (uint64_t)(most * 1000 * (double)nodes / all);
}
