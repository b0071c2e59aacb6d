/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors in quarantine: who is in it, what is refused, and who ends.
 */
#include "node/host/inside.h"

#include "base/actor_name.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/mutant.h"
#include "wire/control.h"

#include <inttypes.h>

enum { LOOK_AGAIN_US = 1000000 };

bool quarantine_names(const struct host *h, uint16_t kind, struct bytes id)
{
    return !mutant(M_POISON) && quarantine_has(&h->topology.view.quarantine, kind, id);
}

bool quarantine_holds(const struct host *h, const struct actor *a)
{
    return h->topology.view.quarantine.count > 0 &&
           quarantine_names(h, a->kind, bytes_of(a->id, a->id_size));
}

void quarantine_refuse(struct host *h, struct admission *in)
{
    char name[ACTOR_NAME_SIZE];

    h->quarantine.refused++;
    if ((h->quarantine.refused & (h->quarantine.refused - 1)) == 0) { // at 1, 2, 4, 8 …
        log_warn("node",
                 "quarantined",
                 "actor=%s refused=%" PRIu64 " remedy=\"ringhold quarantine list\"",
                 actor_name_print(in->r->kind, in->r->id, name),
                 h->quarantine.refused);
    }
    admit_refuse(h, in, ANSWER_NO_KIND, NO_KIND_QUARANTINED);
}

void quarantine_refuse_all(struct host *h, struct actor *a)
{
    struct waiting *w = NULL;
    struct queue all;

    queue_init(&all);
    actor_empty(h, a, &all);
    while ((w = queue_pop(&all)) != NULL) {
        struct admission in = admission_of(w);

        quarantine_refuse(h, &in);
    }
}

/* What moves, or ends, is left to that. */
static void end(struct host *h, struct actor *a)
{
    quarantine_refuse_all(h, a);
    if (actor_held(a) != NULL || a->state == ACTOR_RETIRING) {
        return;
    }
    if (a->wanted) {
        wake_unlist(h, a);
        a->wanted = false;
    }
    switch ((enum actor_state)a->state) {
    case ACTOR_FAILING:
        delay_stop(&a->work->delay);
        actor_enter(a, ACTOR_ABSENT);
        actor_rest(h, a);
        return;
    case ACTOR_ABSENT:
        actor_rest(h, a);
        return;
    case ACTOR_IDLE:
        fail_broken(h, a);
        return;
    case ACTOR_ACTIVATING:
    case ACTOR_RUNNING:
    case ACTOR_EXPORTING: // of a hold that is over
        a->broken = true;
        return;
    case ACTOR_BUSY:
    case ACTOR_FROZEN:
    case ACTOR_RETIRING:
        break; // held, or ending
    }
    UNREACHABLE();
}

void quarantine_adopt(struct host *h)
{
    h->quarantine.look_us = h->now_us + LOOK_AGAIN_US;
    for (size_t i = 0; i < h->topology.view.quarantine.count; i++) {
        const struct quarantined *e = &h->topology.view.quarantine.entry[i];
        const struct image_name name = {.position = host_position(h, e->kind, quarantined_id(e)),
                                        .kind = e->kind,
                                        .id = quarantined_id(e)};
        struct actor *a = host_has_kind(h, e->kind) ? actor_find(&h->actors, name) : NULL;

        if (a != NULL && quarantine_holds(h, a)) {
            end(h, a);
        }
    }
}

void quarantine_tick(struct host *h)
{
    if (h->topology.view.quarantine.count > 0 && h->now_us >= h->quarantine.look_us) {
        quarantine_adopt(h);
    }
}

void quarantine_released(struct host *h)
{
    wake_list_again(&h->autostart);
    always_adopt(h);
}

void quarantine_tell(const struct host *h, Rh__Register *r, Rh__Actor *actor, Rh__Actor **list)
{
    r->died = h->config.died;
    r->suspects = list;
    for (size_t i = 0; i < h->config.suspect_count; i++) {
        const struct bytes id = quarantined_id(&h->config.suspects[i]);

        actor[i] = (Rh__Actor)RH__ACTOR__INIT;
        actor[i].kind = h->config.suspects[i].kind;
        actor[i].id = proto_bytes(id);
        list[r->n_suspects++] = &actor[i];
    }
}
