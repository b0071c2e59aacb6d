/* SPDX-License-Identifier: Apache-2.0
 *
 * What every strategy has in common: what it is asked is checked before, and what it writes down
 * becomes transactions.
 */
#include "ring/plan.h"

#include "base/mem.h"
#include "ring/pieces.h"
#include "ring/waves.h"

enum { SLOTS = RING_NODES_MAX + 1, WEIGHT_MAX = 1000 };

/* False: a node is not one, or twice there, or owns what is nobody's; or none stays. */
static bool nodes_are_good(const struct plan_view *v)
{
    bool known[SLOTS] = {[RING_NODE_NONE] = true};
    bool stays = false;

    for (const struct plan_node *n = v->nodes; n < v->nodes + v->node_count; n++) {
        if (n->slot > RING_NODES_MAX || known[n->slot] || n->weight < 1 || n->weight > WEIGHT_MAX) {
            return false;
        }
        known[n->slot] = true;
        stays = stays || !n->leaving;
    }
    for (size_t i = 0; i < v->ring->vnode_count; i++) {
        if (!known[v->ring->vnode[i].owner]) {
            return false;
        }
    }
    return stays;
}

static bool wishes_are_good(const struct plan_wishes *w)
{
    uint32_t end = 0;

    for (size_t i = 0; i < w->count; i++) {
        if (w->wish[i].from < end || w->wish[i].to <= w->wish[i].from ||
            w->wish[i].slot > RING_NODES_MAX) {
            return false;
        }
        end = w->wish[i].to;
    }
    return true;
}

const struct plan_wish *plan_wish_in(const struct plan_wishes *wishes, uint32_t from, uint32_t to)
{
    size_t low = 0;
    size_t high = wishes == NULL ? 0 : wishes->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (wishes->wish[middle].to <= from) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return wishes != NULL && low < wishes->count && wishes->wish[low].from < to ? &wishes->wish[low]
                                                                                : NULL;
}

enum err plan_make(struct plan *plan, plan_strategy *strategy, const struct plan_view *view,
                   const struct plan_loads *loads, const struct plan_wishes *wishes,
                   const struct plan_limits *limits)
{
    static const struct plan_loads no_loads = {0};
    static const struct plan_wishes no_wishes = {0};
    struct pieces pieces;

    loads = loads == NULL ? &no_loads : loads;
    wishes = wishes == NULL ? &no_wishes : wishes;
    *plan = (struct plan){0};
    if (limits->vnodes_per_weight == 0 || limits->moves_per_txn == 0 || limits->wave_cap == 0 ||
        !nodes_are_good(view) || !wishes_are_good(wishes)) {
        return ERR_INVALID;
    }
    if (view->ring->vnode_count > 0) {
        pieces_init(&pieces, view->ring);
        strategy(view, loads, wishes, limits, &pieces);
        waves_make(plan, &pieces, limits, loads->cells_of);
        pieces_fini(&pieces);
    }
    return ERR_OK;
}

void plan_fini(struct plan *plan)
{
    mem_free(plan->txn);
    *plan = (struct plan){0};
}
