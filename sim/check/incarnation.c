/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks what rh_incarnation() tells: each life of an actor has one of its own, greater than those
 * of its former lives.
 */
#include "base/mem.h"
#include "sim/fleet.h"

#include <inttypes.h>

/* Where one that is deposed may go on, it may also begin again behind a later owner's. */
static bool in_turn(const struct fleet *f)
{
    return f->profile != PROFILE_CLOCKS && !f->options.serves;
}

static void keep(struct ledger *l, const void *actor, struct rh_incarnation new)
{
    if (l->life_count == l->life_cap) {
        l->life_cap = l->life_cap == 0 ? 64 : l->life_cap * 2;
        l->life = mem_resize(l->life, l->life_cap * sizeof *l->life);
    }
    l->life[l->life_count].actor = actor;
    l->life[l->life_count].fence = new.fence;
    l->life[l->life_count++].start = new.start;
}

void check_incarnation(struct fleet *f, const void *actor, struct rh_incarnation new)
{
    struct ledger *l = &f->ledger;

    for (size_t i = 0; i < l->life_count; i++) {
        const bool same = l->life[i].fence == new.fence && l->life[i].start == new.start;
        const bool lesser = l->life[i].fence > new.fence ||
                            (l->life[i].fence == new.fence && l->life[i].start > new.start);

        if (l->life[i].actor == actor && (same || (lesser && in_turn(f)))) {
            world_violate(&f->world,
                          "incarnation",
                          "an actor begins as %" PRIu64 "-%" PRIu64 ", and was %" PRIu64 "-%" PRIu64
                          " before",
                          new.fence,
                          new.start,
                          l->life[i].fence,
                          l->life[i].start);
            return;
        }
    }
    keep(l, actor, new);
}
