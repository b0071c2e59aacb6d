/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration, adopted: what is mine now and what no more (I2, I4; hole 59).
 */
#include "node/host/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stamp.h"

void adopt_forget(struct topology *t)
{
    t->marked_version = 0;
}

const struct ring_vnode *host_vnode(const struct host *h, uint64_t position)
{
    return ring_find(&h->topology.view.ring,
                     ring_hit_vnode(h->topology.view.ring.cell[ring_point_cell(position)]));
}

size_t host_vnodes(const struct host *h)
{
    return h->membership.slot == 0 ? 0
                                   : ring_owned_count(&h->topology.view.ring, h->membership.slot);
}

static void look_if_nothing_is_left(struct host *h)
{
    if (h->cells.mine_count == 0) {
        h->topology.lost_version = h->topology.view.ring.version;
        h->topology.lost_us = h->now_us;
    }
}

/* I4: nothing lives in cells that are not mine. */
static bool lives_elsewhere(const struct host *h, struct span at)
{
    for (uint32_t c = at.from; c < at.to; c++) {
        if (!h->cells.state[c].mine && cell_first(&h->actors, c) != NULL) {
            return true;
        }
    }
    return false;
}

/* The changed cells, in at most `delta->n_ops` spans, which are owned; or in one, of all cells.
 * `delta` is the change from the version that the cells are marked by, or NULL. */
static struct span *changed_cells(const struct host *h, const Rh__Delta *delta, size_t *count)
{
    const size_t ops = delta == NULL ? 0 : delta->n_ops;
    struct span *span = mem_new(ops + 1, sizeof *span);

    *count = 0;
    for (size_t i = 0; i < ops; i++) {
        const struct ring_vnode *v = ring_find(&h->topology.view.ring, delta->ops[i]->vnode);

        if (delta->ops[i]->kind != RING_MOVE || v == NULL) {
            *count = 0;
            break;
        }
        span[(*count)++] = (struct span){v->from, ring_end(&h->topology.view.ring, v)};
    }
    if (*count == 0) {
        span[(*count)++] = (struct span){0, h->actors.cell_count};
    }
    return span;
}

/* What lives here lives where the ring says. An actor's cell is for life: were its kind bound to
 * other cells now, the fleet would look for it elsewhere. */
static bool has_other_grid(const struct host *h)
{
    return h->topology.view.ring.grid != h->actors.grid ||
           h->topology.view.ring.cell_count < h->actors.cell_count;
}

static bool has_rebound_kind(const struct host *h)
{
    for (size_t i = 0; i < h->config.kind_count; i++) {
        if (cells_first_of(&h->topology.view.ring, h->cells.kind[i].kind) !=
            h->cells.kind[i].first_cell) {
            return true;
        }
    }
    return false;
}

/* `delta`: what changed since the configuration that was adopted last; NULL = anything. */
static void adopt(struct host *h, const Rh__Delta *delta)
{
    const struct view_member *me = view_member(&h->topology.view, h->membership.slot);
    struct span *span = NULL;
    size_t count = 0;
    bool lost = false;
    bool strays = false;

    ASSERT(h->topology.view.ring.version >= h->topology.checked_version); // I2
    h->topology.checked_version = h->topology.view.ring.version;
    if (delta == NULL || delta->n_changed > 0 || delta->n_removed > 0) {
        h->topology.members_version = h->topology.view.ring.version;
    }
    prefetch_forget(&h->prefetch);
    if (me == NULL || me->incarnation != h->membership.incarnation) {
        host_stop(h, h->membership.life == LIFE_PARTING ? HOST_EXIT_LEFT : HOST_EXIT_NO_MEMBER);
        return;
    }
    if (has_other_grid(h) || has_rebound_kind(h)) {
        host_stop(h, has_other_grid(h) ? HOST_EXIT_GRID : HOST_EXIT_REBOUND);
        return;
    }
    span = changed_cells(h, delta, &count);
    for (size_t i = 0; i < count; i++) {
        lost = cells_mark(h, span[i]) || lost;
    }
    h->topology.marked_version = h->topology.view.ring.version;
    member_stay_if_it_owns(h);
    if (lost) {
        look_if_nothing_is_left(h);
    }
    host_dials_sync(h);
    if (delta == NULL || delta->n_changed > 0) {
        identity_adopt(h);
    }
    quarantine_adopt(h);
    streams_adopt(h);
    if (delta == NULL || delta->n_changed > 0) {
        forwards_join(h);
    }
    txn_adopt(h);
    quarantine_adopt(h); // those that a hold kept
    wake_adopt(h);
    always_adopt(h);
    for (size_t i = 0; i < count; i++) {
        strays = strays || lives_elsewhere(h, span[i]);
    }
    mem_free(span);
    if (strays) {
        log_error(
            "node", "live_actor_in_lost_cells", "version=%s", STAMP(h->topology.view.ring.version));
        host_stop(h, HOST_EXIT_OVERLAP);
        return;
    }
    streams_go_on(h);
    admit_all(h, &h->requests.waitver);
    admit_all(h, &h->links.lonely);
}

void adopt_first(struct host *h)
{
    h->topology.checked_version = h->topology.view.ring.version;
    h->topology.want_version = 0;
    h->topology.lost_version = 0;
    h->topology.lost_us = h->now_us;
    (void)cells_mark(h, (struct span){0, h->actors.cell_count});
    h->topology.marked_version = h->topology.view.ring.version;
    identity_adopt(h);
}

void host_adopt(struct host *h)
{
    adopt(h, NULL);
}

void host_adopt_delta(struct host *h, const Rh__Delta *delta, uint64_t before)
{
    adopt(h, h->topology.marked_version == before ? delta : NULL);
}
