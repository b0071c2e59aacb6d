/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeds with a poisonous entity: each request that it runs kills its node's
 * process, until all is healed. Nodes tell what ran when they died, as the file
 * in their folder would.
 *
 * What is judged: nobody is in quarantine whom fewer deaths than STRIKES met, nor
 * has more strikes than deaths; whoever has that many strikes of returning nodes
 * is; and no node starts or runs one that its own view has there. And no request
 * is given to a third node when two have died as they ran it.
 */
#include "base/assert.h"
#include "base/table.h"
#include "ring/unanswered.h"
#include "sim/fleet.h"
#include "txn/state/suspect.h"
#include "wire/versions.h"

#include <string.h>

enum { STRIKES = 3, DEATHS_OF_REQUEST = 2 };

void poison_draw(struct fleet *f)
{
    const uint64_t drawn = table_mix(f->world.seed ^ UINT64_C(0x706f69736f6e));
    const uint64_t one_of = f->profile == PROFILE_LEASE ? 2 : 8;

    if ((drawn % one_of == 0 || f->options.poisoned) &&
        (f->profile == PROFILE_MIXED || f->profile == PROFILE_LEASE)) {
        f->poison = &f->ledger.entity[(drawn >> 8) % LEDGER_HOT];
    }
}

uint32_t poison_format(const struct fleet *f)
{
    // Elsewhere nodes tell of no deaths, nor does anybody here know when a session actor met one.
    return f->roles || ((f->poison != NULL || f->profile == PROFILE_OPERATOR) && f->players == NULL)
               ? FLEET_FORMAT
               : FLEET_FORMAT_KINDS;
}

uint64_t poison_idempotent_pm(const struct fleet *f, const struct sim_ask *a)
{
    return &f->ledger.entity[a->entity] == f->poison ? 600 : 150;
}

bool poison_kills(const struct fleet *f, const struct instance *i)
{
    return i->entity == f->poison && !f->healed;
}

void poison_config(const struct fleet *f, const struct sim_node *n, struct host_config *config)
{
    if (f->poison != NULL) {
        config->died = n->died;
        config->suspects = n->suspect;
        config->suspect_count = n->suspect_count;
    }
}

/* ---- deaths ---- */

/* One that its client gave to two gateways has had two that count. */
static void request_died(struct fleet *f, uint64_t uid)
{
    struct sim_ask *a = ledger_find(f, uid);

    if (a != NULL && ++a->deaths > DEATHS_OF_REQUEST && !a->resumed) {
        world_violate(&f->world,
                      "poison",
                      "request %llu was run by %u processes that died of it",
                      (unsigned long long)uid,
                      a->deaths);
    }
}

static void met_death(struct entity *e, uint64_t incarnation)
{
    for (unsigned i = 0; i < e->deaths; i++) {
        if (e->died[i] == incarnation) {
            return;
        }
    }
    if (e->deaths < POISON_MAX) {
        e->died[e->deaths++] = incarnation;
    }
}

void poison_died(struct fleet *f, struct sim_node *n)
{
    if (f->poison == NULL || n->incarnation == 0) {
        return; // the file still tells of the process before
    }
    n->died = n->incarnation;
    n->suspect_count = 0;
    for (const struct instance *i = n->instance; i != NULL; i = i->next) {
        if ((i->running || i->turns) && n->suspect_count < FLEET_SUSPECTS_MAX) {
            const bool fits = quarantined_of(&n->suspect[n->suspect_count++],
                                             entity_kind(i->entity),
                                             bytes_of(i->entity->id, i->entity->id_size));

            ASSERT(fits);
            met_death(i->entity, n->incarnation);
            if (i->running) {
                request_died(f, i->uid);
            }
        }
    }
}

void poison_stopped(struct sim_node *n)
{
    if (n->incarnation != 0) { // else its file still tells of the process before
        n->died = n->incarnation;
        n->suspect_count = 0;
    }
}

void poison_forget(struct sim_node *n, bool wiped)
{
    n->died = wiped ? 0 : n->died;
    n->suspect_count = 0;
}

/* ---- what is judged ---- */

/* NULL: of some other kind, which others judge. */
static struct entity *entity_named(struct fleet *f, const struct quarantined *name)
{
    for (size_t i = 0; i < LEDGER_ENTITIES; i++) {
        struct entity *e = &f->ledger.entity[i];

        if (entity_kind(e) == name->kind &&
            bytes_equal(bytes_of(e->id, e->id_size), quarantined_id(name))) {
            return e;
        }
    }
    return NULL;
}

static bool is_in(const struct view *view, const struct entity *e)
{
    return quarantine_has(&view->quarantine, entity_kind(e), bytes_of(e->id, e->id_size));
}

bool poison_is_in(const struct fleet *f, const struct entity *e)
{
    return is_in(&f->raft.truth.view, e);
}

/* What others told of that death was a guess: who is not named did not run then. */
static void acquit(struct entity *e, uint64_t incarnation)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < e->deaths; i++) {
        if (e->died[i] != incarnation) {
            e->died[kept++] = e->died[i];
        }
    }
    e->deaths = kept;
}

static bool is_named(const Rh__CommandRegister *in, const struct entity *e)
{
    struct quarantined name;

    for (size_t i = 0; i < in->n_suspects; i++) {
        if (quarantined_read(&name, in->suspects[i]) && name.kind == entity_kind(e) &&
            bytes_equal(bytes_of(e->id, e->id_size), quarantined_id(&name))) {
            return true;
        }
    }
    return false;
}

static void on_registered(struct fleet *f, const Rh__CommandRegister *in)
{
    struct quarantined name;

    for (size_t i = 0; i < LEDGER_ENTITIES && in->died != 0 && in->died == in->replaces; i++) {
        if (!is_named(in, &f->ledger.entity[i]) && !poison_is_in(f, &f->ledger.entity[i])) {
            acquit(&f->ledger.entity[i], in->died);
        }
    }

    for (size_t i = 0; i < in->n_suspects && in->died == in->replaces; i++) {
        if (quarantined_read(&name, in->suspects[i])) {
            struct entity *e = entity_named(f, &name);

            ASSERT(e != NULL); // what a node's file tells, it ran
            e->strikes++;
            if (e->strikes >= STRIKES && !poison_is_in(f, e)) {
                world_violate(&f->world,
                              "quarantine",
                              "%s has %u strikes and is not in quarantine",
                              e->id,
                              e->strikes);
            }
        }
    }
}

/* Whom others told of may have run then. */
static void on_reassigned(struct fleet *f, const Rh__CommandReassign *in)
{
    struct unanswered_actor a;

    for (size_t i = 0; i < in->n_suspects; i++) {
        struct entity *e =
            unanswered_read_suspect(&a, in->suspects[i]) ? entity_named(f, &a.actor) : NULL;

        if (e != NULL && a.before != 0) {
            met_death(e, a.before);
        }
        if (e != NULL) {
            met_death(e, in->incarnation);
        }
    }
}

/* One death, one strike. */
static void judge(struct fleet *f, const struct entity *e)
{
    struct quarantined name;
    const struct state_suspect *s = NULL;

    if (!quarantined_of(&name, entity_kind(e), bytes_of(e->id, e->id_size))) {
        UNREACHABLE();
    }
    s = suspect_find(&f->raft.truth, &name);
    if (s != NULL && e->deaths < POISON_MAX && s->strikes > e->deaths) {
        world_violate(&f->world,
                      "quarantine",
                      "%s has %u strikes of %u deaths",
                      e->id,
                      s->strikes,
                      e->deaths);
    } else if (e->deaths < STRIKES && poison_is_in(f, e)) {
        world_violate(
            &f->world, "quarantine", "%s is in quarantine after %u deaths", e->id, e->deaths);
    }
}

void poison_committed(struct fleet *f, const Rh__Command *command,
                      const struct state_result *result)
{
    if (f->poison == NULL || !result->accepted || result->delta == NULL) {
        return;
    }
    if (command->body_case == RH__COMMAND__BODY_REGISTER_) {
        on_registered(f, command->register_);
    } else if (command->body_case == RH__COMMAND__BODY_REASSIGN) {
        on_reassigned(f, command->reassign);
    }
    for (size_t i = 0; i < LEDGER_ENTITIES; i++) {
        judge(f, &f->ledger.entity[i]);
    }
}

void poison_stepped(struct fleet *f, struct sim_node *n)
{
    const struct view *view = host_view(n->core);

    for (size_t i = 0; view->quarantine.count > 0 && i < n->out.count; i++) {
        const struct host_effect *e = &n->out.item[i];

        const enum verb verb = e->submission.verb;

        if ((verb == VERB_ACTIVATE || verb == VERB_RUN) &&
            quarantine_has(&view->quarantine, actor_kind(e->actor), actor_id(e->actor))) {
            world_violate(&f->world,
                          "quarantine",
                          "%s begins %.*s although it knows that it is in quarantine",
                          n->process.name,
                          (int)actor_id(e->actor).size,
                          (const char *)actor_id(e->actor).data);
        }
    }
}
