/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the stamps of each vnode by what each command may do to them (specification §0.4): fence
 * and cold never go down, a piece that was split keeps them, what is merged has the greater ones,
 * and only a change of hands without hand-over makes a vnode cold.
 */
#include "base/mem.h"
#include "sim/fleet.h"

static void keep(struct ledger *l, const struct ring *ring)
{
    l->former = mem_resize(l->former, (ring->vnode_count + 1) * sizeof *l->former);
    l->former_count = ring->vnode_count;
    l->former_cells = ring->cell_count;
    l->former_version = ring->version;
    for (size_t i = 0; i < ring->vnode_count; i++) {
        l->former[i] = ring->vnode[i];
    }
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What the cells [from, to) had, and whether all of them had this owner. */
static struct ring_vnode before(const struct ledger *l, const struct ring_vnode *now, uint32_t to)
{
    struct ring_vnode was = {.owner = now->owner};

    for (size_t i = 0; i < l->former_count; i++) {
        const struct ring_vnode *v = &l->former[i];
        const uint32_t end = i + 1 < l->former_count ? v[1].from : l->former_cells;

        if (v->from < to && end > now->from) {
            was.generation = greater(was.generation, v->generation);
            was.cold = greater(was.cold, v->cold);
            was.owner = v->owner == now->owner ? was.owner : v->owner;
        }
    }
    return was;
}

/* Registered anew, or given away cold, by this very command. */
static bool turns_cold(const struct fleet *f, const Rh__Command *command,
                       const struct ring_vnode *now, const struct ring_vnode *was)
{
    const struct view_member *m = view_member(&f->raft.truth.view, now->owner);

    if (command->body_case == RH__COMMAND__BODY_REGISTER_) {
        return m != NULL && m->incarnation == f->raft.truth.view.ring.version;
    }
    return command->body_case == RH__COMMAND__BODY_REASSIGN && now->owner != was->owner;
}

void check_stamps(struct fleet *f, const Rh__Command *command, const struct state_result *result)
{
    struct ledger *l = &f->ledger;
    const struct ring *ring = &f->raft.truth.view.ring;
    const bool follows = result->delta != NULL && l->former_count > 0 &&
                         l->former_version < ring->version && l->former_restores == f->restores &&
                         !past_doubts(f, ring->version);

    for (size_t i = 0; f->taken_over == 0 && i < ring->vnode_count; i++) {
        f->taken_over = ring->vnode[i].cold;
    }
    for (size_t i = 0; follows && i < ring->vnode_count; i++) {
        const struct ring_vnode *now = &ring->vnode[i];
        const uint32_t to = i + 1 < ring->vnode_count ? now[1].from : ring->cell_count;
        const struct ring_vnode was = before(l, now, to);
        const bool cold = turns_cold(f, command, now, &was);
        const uint64_t fence = cold || now->owner != was.owner ? ring->version : was.generation;

        if (now->from < l->former_cells &&
            (now->generation != fence || now->cold != (cold ? ring->version : was.cold))) {
            world_violate(&f->world,
                          "stamps",
                          "vnode %u has fence %llu and cold %llu at version %llu, before that %llu "
                          "and %llu, and is %s",
                          now->id,
                          (unsigned long long)now->generation,
                          (unsigned long long)now->cold,
                          (unsigned long long)ring->version,
                          (unsigned long long)was.generation,
                          (unsigned long long)was.cold,
                          cold ? "cold by now" : "not");
            break;
        }
    }
    if (result->delta != NULL || l->former_restores != f->restores) {
        keep(l, ring);
        l->former_restores = f->restores;
    }
}
