/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares by weight, around what has to stay where it is.
 */
#include "ring/shares.h"

#include "ring/ranking.h"

enum { SLOTS = RING_NODES_MAX + 1 };

/* `cells` and `weight` become those of the nodes that are not full. */
static void keep_fixed(struct plan_share *share, uint64_t *cells, uint64_t *weight)
{
    bool more = true;

    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        struct plan_share *s = &share[slot];

        s->full = !s->stays;
        s->target = s->fixed;
        *cells -= s->full ? (uint64_t)s->fixed : 0;
    }
    while (more) { // each that is full leaves the others less
        more = false;
        for (uint32_t slot = 1; slot < SLOTS; slot++) {
            struct plan_share *s = &share[slot];

            if (!s->full && (uint64_t)s->fixed * *weight > *cells * s->weight) {
                s->full = more = true;
                *cells -= (uint64_t)s->fixed;
                *weight -= s->weight;
            }
        }
    }
}

// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): cells and weight are named at the call
void shares_set_targets(struct plan_share *share, uint64_t cells, uint64_t weight)
{
    struct ranking remainder;

    keep_fixed(share, &cells, &weight);
    uint64_t left = cells;
    ranking_init(&remainder, SLOTS);
    for (uint32_t slot = 1; slot < SLOTS; slot++) {
        struct plan_share *s = &share[slot];
        const uint64_t part = cells * s->weight;

        if (!s->full) {
            s->target = (int64_t)(part / weight);
            left -= part / weight;
            ranking_put(&remainder, slot, (int64_t)(part % weight));
        }
    }
    for (; left > 0; left--) {
        uint32_t slot = ranking_top(&remainder);

        share[slot].target++;
        ranking_remove(&remainder, slot);
    }
    ranking_fini(&remainder);
}
