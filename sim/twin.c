/* SPDX-License-Identifier: Apache-2.0
 *
 * A node that was started twice: from a copy of its folder on the same machine, or from an old copy
 * on another machine that tells the same boot id. Both say that they are the same node. One at a
 * time may be it: the other waits until no lease of the first can last.
 */
#include "sim/fleet.h"

#include <string.h>

void twin_draw(struct fleet *f, uint64_t seed)
{
    struct prng aside = {.state = seed ^ 0x7477696e73u};
    const bool fits = (f->profile == PROFILE_LEASE || f->profile == PROFILE_MIXED ||
                       f->profile == PROFILE_PAUSES) &&
                      f->lease_us > 0 && f->players == NULL && f->poison == NULL &&
                      f->nodes < FLEET_NODES_MAX;

    if (fits && prng_chance(&aside, 20)) {
        f->faults.twin_us = prng_between(&aside, 1000000, 4000000);
        f->nodes++;
    }
}

const struct sim_node *twin_of(const struct fleet *f, const struct sim_node *n)
{
    const struct sim_node *twin = f->faults.twin_us == 0 ? NULL : &f->node[f->nodes - 1];

    return twin == NULL ? NULL : n == twin ? twin->first : n == twin->first ? twin : NULL;
}

bool twin_is(const struct fleet *f, const struct sim_node *n)
{
    return f->faults.twin_us > 0 && n == &f->node[f->nodes - 1];
}

static void start(struct fleet *f, struct sim_node *twin, struct sim_node *first)
{
    const bool elsewhere = world_chance(&f->world, 500);

    if (twin->first != NULL) {
        twin->first->twinned_us = f->world.now_us;
    }
    twin->first = first;
    twin->weight = first->weight;
    twin->boots = first->boots;
    twin->wipes = first->wipes;
    if (twin->memory_disk != NULL) {
        sim_folder_free(twin);
    }
    sim_folder_open(f, twin);
    twin->disk = first->told;
    twin->copied = !elsewhere;
    if (elsewhere) { // that copy was made before the first was started last
        twin->disk.floor = twin->disk.seen = first->incarnation - 1;
        twin->disk.active_count = 0;
    }
    sim_folder_store(twin);
    twin->told = twin->disk;
    memcpy(twin->process.says, first->process.name, sizeof twin->process.says);
    f->twins++;
    TRACE(&f->world,
          twin->process.name,
          "is started as %s: %s",
          first->process.name,
          elsewhere ? "elsewhere, an old copy" : "beside it");
    node_start(f, twin);
}

static void on_twin(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *twin = &f->node[f->nodes - 1];
    struct sim_node *first = &f->node[world_between(&f->world, 0, f->nodes - 2)];

    (void)event;
    if (f->healed) {
        return;
    }
    if (twin->wanted) {
        twin_end(f);
    } else if (first->incarnation != 0 && first->core != NULL && !first->leaving) {
        start(f, twin, first);
    }
    twin_start(f);
}

void twin_start(struct fleet *f)
{
    if (f->faults.twin_us > 0) {
        world_at(&f->world,
                 f->world.now_us + world_gap(&f->world, f->faults.twin_us),
                 (struct world_event){.run = on_twin, .context = f});
    }
}

void twin_end(struct fleet *f)
{
    struct sim_node *twin = &f->node[f->nodes - 1];

    if (f->faults.twin_us > 0 && twin->wanted) {
        twin->wanted = false;
        if (twin->core != NULL) {
            node_crash(f, twin);
        }
    }
}

/* The vnodes of one are the other's from now on, and what its actors had is lost. */
void twin_registered(struct fleet *f, const Rh__CommandRegister *command)
{
    struct sim_node *twin = &f->node[f->nodes == 0 ? 0 : f->nodes - 1];
    struct sim_node *both[2] = {twin, twin->first};

    for (size_t i = 0; f->faults.twin_us > 0 && twin->first != NULL && i < 2; i++) {
        struct sim_node *old = both[i];

        if (old->incarnation == 0 || old->incarnation != command->replaces ||
            both[1 - i]->nonce != command->nonce) {
            continue;
        }
        check_over(f, old);
        old->reassigned = old->incarnation;
        for (size_t k = 0; k < LEDGER_ENTITIES; k++) {
            struct entity *e = &f->ledger.entity[k];

            e->lost = e->lost || e->last == old || check_owns(f, old, e);
        }
    }
}
