/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids that the fleet remembers: in half of the operator's seeds, those of actors in memory. Actors
 * end themselves, the operator has some forgotten, nodes crash; whatever runs is in the log all the
 * time, and when all is quiet, whoever is in the log lives.
 */
#include "base/prng.h"
#include "sim/fleet.h"
#include "txn/state/remembered.h"
#include "wire/control.h"

void remember_draw(struct fleet *f)
{
    // Not drawn: other seeds stay as they were.
    f->remembers = f->profile == PROFILE_OPERATOR && f->players == NULL && !f->faults.remembered &&
                   table_mix(f->world.seed ^ UINT64_C(0x72656d656d)) % 2 == 0;
}

void remember_wish(struct fleet *f)
{
    struct entity *e = &f->ledger.entity[world_between(&f->world, 0, LEDGER_ENTITIES - 1)];
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminForget body = RH__ADMIN_FORGET__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;
    Rh__Actor *list = &actor;

    actor.kind = entity_kind(e);
    actor.id = proto_bytes(bytes_of(e->id, e->id_size));
    body.actors = &list;
    body.n_actors = 1;
    body.by = proto_text("op");
    admin.what_case = RH__ADMIN__WHAT_FORGET;
    admin.forget = &body;
    TRACE(&f->world, "op", "has %s forgotten", e->id);
    e->given_up = true;
    hand_ask(f, &admin);
}

/* A node that heard nothing of the leader for too long goes on without its word, and so does who
 * gets its actors. */
static bool was_unsure(struct fleet *f)
{
    for (unsigned n = 0; n < f->nodes && !f->unsure; n++) {
        struct host_stats stats;

        if (f->node[n].core != NULL) {
            host_stats(f->node[n].core, &stats);
            f->unsure = stats.remember_unsure > 0;
        }
    }
    return f->unsure;
}

void remember_check_run(struct fleet *f, const struct instance *i)
{
    const struct entity *e = i->entity;

    if (f->remembers && !e->durable && !e->given_up && !i->deposed && f->restores == 0 &&
        e->live == i && check_owns(f, i->node, e) && !was_unsure(f) &&
        !remembered_has(&f->raft.truth, entity_kind(e), bytes_of(e->id, e->id_size))) {
        world_violate(&f->world,
                      "remembered",
                      "%s runs on %s, and the fleet does not remember it",
                      e->id,
                      i->node->process.name);
    }
}

const char *remember_waits(const struct fleet *f)
{
    for (size_t k = 0; k < LEDGER_ENTITIES && f->remembers; k++) {
        const struct entity *e = &f->ledger.entity[k];

        if (e->live == NULL &&
            remembered_has(&f->raft.truth, entity_kind(e), bytes_of(e->id, e->id_size)) &&
            !poison_is_in(f, e)) {
            return e->id;
        }
    }
    return NULL;
}
