/* SPDX-License-Identifier: Apache-2.0
 *
 * What actors do beside running requests: turns, retiring, failing, living
 * unasked; and the workers, which begin what the node gave out a while later.
 *
 * An actor in memory saves its list when it retires or hands nothing over, under
 * its token, like any flush of a game: who was fenced saves nothing.
 */
#include "base/mem.h"
#include "sim/fleet.h"
#include "sim/players/players.h"

#include <string.h>

/* ---- what is saved ---- */

bool lives_load(struct instance *i)
{
    struct entity *e = i->entity;

    if (i->token < e->saved_token) {
        return false;
    }
    e->saved_token = i->token;
    if (!i->warm) {
        ledger_list_copy(&i->list, &e->saved);
        i->loaded = i->list.count;
    }
    return true;
}

bool lives_did(struct fleet *f, const struct instance *i, uint64_t uid)
{
    for (size_t k = 0; k < i->loaded; k++) {
        if (i->list.uid[k] == uid) {
            return ledger_find(f, uid)->idempotent;
        }
    }
    return false;
}

/* False: refused, by another's token. */
static bool save(const struct instance *i)
{
    struct entity *e = i->entity;

    if (!e->durable && (i->token != e->saved_token || i->deposed)) {
        return false;
    }
    ledger_list_copy(&e->saved, &i->list);
    return true;
}

bool lives_goes_cold(struct fleet *f, const struct instance *i)
{
    return world_chance(&f->world, f->faults.cold_pm) && save(i);
}

/* ---- after a request ---- */

static void on_poke(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const struct instance *i = actors_instance(f, event);

    if (i != NULL && i->actor != NULL) {
        node_complete(f, i, (struct completion){.verb = VERB_POKE});
    }
}

static void on_passivate(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const struct instance *i = actors_instance(f, event);

    if (i != NULL) {
        node_complete(f, i, (struct completion){.verb = VERB_PASSIVATE});
    }
}

void lives_after_run(struct fleet *f, const struct instance *i)
{
    if (world_chance(&f->world, f->faults.poke_pm)) {
        actors_later(f, i, world_between(&f->world, 0, 3000), on_poke);
    }
    // One that lives unasked would be gone until it is listed again.
    if (world_chance(&f->world, f->faults.passivate_pm) &&
        !(f->kinds[0].remembered && !i->entity->durable)) {
        actors_later(f, i, world_between(&f->world, 0, 3000), on_passivate);
    }
}

bool lives_breaks(struct fleet *f, const struct instance *i)
{
    struct entity *e = i->entity;
    const uint64_t id = i->id;
    struct sim_node *n = i->node;

    if (f->healed || !world_chance(&f->world, f->faults.broken_pm)) {
        return false;
    }
    TRACE(&f->world, n->process.name, "%s is broken", e->id);
    e->broke = true;
    if (e->live == i) {
        e->lost = true; // what it did since it saved
    }
    node_complete(f, i, (struct completion){.verb = VERB_FAIL});
    return !n->process.up || actors_find(n, id) == NULL;
}

/* ---- turns ---- */

static void on_turned(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct instance *i = actors_instance(f, event);

    if (i != NULL && i->turns && i->ticket == event->c) {
        i->turns = false;
        node_complete(f, i, (struct completion){.verb = VERB_TURN, .ticket = i->ticket});
    }
}

static void lives_turn(struct fleet *f, const struct host_effect *e)
{
    struct instance *i = actor_instance(e->actor);

    TRACE(&f->world, i->node->process.name, "%s has a turn", i->entity->id);
    if (i->frozen || i->running || i->turns) {
        world_violate(&f->world,
                      "overlap",
                      "%s has a turn on %s while %s",
                      i->entity->id,
                      i->node->process.name,
                      i->frozen ? "it is frozen" : "it runs");
        return;
    }
    i->turns = true;
    i->ticket = e->submission.ticket;
    i->uid = i->ticket; // told apart by it when it ends
    actors_later(f, i, world_between(&f->world, 0, f->faults.run_max_us), on_turned);
}

/* ---- retiring ---- */

static void on_retired(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct instance *i = actors_instance(f, event);

    if (i == NULL) {
        return;
    }
    struct sim_node *n = i->node;
    struct host_event e = {.type = HOST_COMPLETED,
                           .actor = i->actor,
                           .completion = {.verb = VERB_RETIRE, .ticket = i->ticket}};
    if ((!f->healed && world_chance(&f->world, f->faults.retire_fail_pm)) || !save(i)) {
        TRACE(&f->world, n->process.name, "%s cannot save", i->entity->id);
        e.completion.error = ERR_IO;
    } else {
        TRACE(&f->world, n->process.name, "%s retires", i->entity->id);
        actor_set_instance(i->actor, NULL);
        actors_end(f, i);
    }
    node_step(f, n, e);
}

static void lives_retire(struct fleet *f, const struct host_effect *e)
{
    struct instance *i = actor_instance(e->actor);

    if (i->frozen || i->running || i->turns) {
        world_violate(&f->world,
                      "overlap",
                      "%s has to retire on %s while %s",
                      i->entity->id,
                      i->node->process.name,
                      i->frozen ? "it is frozen" : "it runs");
        return;
    }
    i->ticket = e->submission.ticket;
    actors_later(f, i, world_between(&f->world, 0, 5000), on_retired);
}

/* ---- ids that live unasked ---- */

static void on_listed(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *n = &f->node[event->a];

    for (size_t k = 0; k < LEDGER_ENTITIES; k++) {
        const struct entity *e = &f->ledger.entity[k];

        if (n->process.up && n->process.life == event->b && !n->process.gate.shut &&
            entity_kind(e) == FLEET_KIND) {
            node_step(f,
                      n,
                      (struct host_event){.type = HOST_WAKE,
                                          .kind = FLEET_KIND,
                                          .id = bytes_of(e->id, e->id_size)});
        }
    }
}

void lives_list(struct fleet *f, const struct sim_node *n)
{
    TRACE(&f->world, n->process.name, "lists who shall live");
    world_at(&f->world,
             f->world.now_us + world_between(&f->world, 1000, 300000),
             (struct world_event){.run = on_listed,
                                  .context = f,
                                  .a = (uint64_t)(n - f->node),
                                  .b = n->process.life,
                                  .gate = &f->node[n - f->node].process.gate});
}

const char *lives_waits(const struct fleet *f)
{
    for (size_t k = 0; k < LEDGER_ENTITIES && f->kinds[0].remembered && !f->roles; k++) {
        if (!f->ledger.entity[k].durable && f->ledger.entity[k].live == NULL &&
            !poison_is_in(f, &f->ledger.entity[k])) {
            return f->ledger.entity[k].id;
        }
    }
    return NULL;
}

/* ---- workers ---- */

struct sim_task {
    struct sim_task *next; /* of its node */
    uint64_t id;
    struct host_effect effect;
    size_t size;
    uint8_t data[];
};

static struct sim_task *take_task(struct sim_node *n, struct sim_task **at)
{
    struct sim_task *t = *at;

    (void)n;
    *at = t->next;
    return t;
}

static void begin(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                  struct bytes bytes)
{
    if (sim_runtime_takes(f, n, e, bytes) || sim_teller_takes(f, n, e, bytes)) {
        return;
    }
    switch ((int)e->submission.verb) {
    case VERB_ACTIVATE:
        actors_activate(f, n, e, bytes);
        return;
    case VERB_RUN:
        actors_run(f, e, bytes);
        return;
    case VERB_TURN:
        lives_turn(f, e);
        return;
    case VERB_EXPORT:
        actors_export(f, e);
        return;
    case VERB_COPY:
        actors_copy(f, e);
        return;
    case VERB_RETIRE:
        lives_retire(f, e);
        return;
    case VERB_UNFREEZE:
        actors_unfreeze(f, e);
        return;
    default:
        actors_discard(f, n, e);
        return;
    }
}

/* Not begun in time: back to the node. */
static void give_back(struct fleet *f, struct sim_node *n, const struct sim_task *t)
{
    TRACE(&f->world, n->process.name, "a worker had no time to begin");
    node_step(f,
              n,
              (struct host_event){.type = HOST_COMPLETED,
                                  .actor = t->effect.actor,
                                  .completion = submission_returned(&t->effect.submission,
                                                                    bytes_of(t->data, t->size))});
}

static bool too_late(const struct fleet *f, const struct sim_node *n, const struct sim_task *t)
{
    return sim_clock_read(&n->process.clock, f->world.now_us) >= host_limit_us(n->core, &t->effect);
}

static void on_begin(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *n = &f->node[event->a];
    struct sim_task **at = &n->task;

    while (*at != NULL && (*at)->id != event->b) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        return; // its actor was discarded, or the node is gone
    }
    struct sim_task *t = take_task(n, at);
    if (too_late(f, n, t)) {
        give_back(f, n, t);
    } else {
        begin(f, n, &t->effect, bytes_of(t->data, t->size));
    }
    mem_free(t);
}

/* It is begun a while later. */
static void put_task(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                     struct bytes bytes)
{
    struct sim_task *t = mem_new(1, sizeof *t + bytes.size);
    struct sim_task **at = &n->task;

    t->id = ++f->task_count;
    t->effect = *e;
    t->size = bytes.size;
    if (bytes.size > 0) {
        memcpy(t->data, bytes.data, bytes.size);
    }
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = t;
    world_at(&f->world,
             f->world.now_us + world_between(&f->world, 1, f->faults.worker_us),
             (struct world_event){.run = on_begin,
                                  .context = f,
                                  .a = (uint64_t)(n - f->node),
                                  .b = t->id,
                                  .gate = &n->process.gate});
}

void lives_submit(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                  struct bytes bytes)
{
    if (f->faults.worker_us > 0 && verb_is_task(e->submission.verb)) {
        put_task(f, n, e, bytes);
        return;
    }
    if (e->submission.verb == VERB_DISCARD) {
        lives_drop(n, e->actor);
    }
    begin(f, n, e, bytes);
}

size_t lives_retiring(const struct sim_node *n)
{
    size_t count = sim_runtime_retiring(n);

    for (const struct sim_task *t = n->task; t != NULL; t = t->next) {
        count += t->effect.submission.verb == VERB_RETIRE &&
                 sim_players_has(actor_kind(t->effect.actor));
    }
    return count;
}

void lives_recall(struct fleet *f, struct sim_node *n)
{
    struct sim_task **at = &n->task;

    while (n->core != NULL && *at != NULL) {
        if (too_late(f, n, *at)) {
            struct sim_task *t = take_task(n, at);

            give_back(f, n, t);
            mem_free(t);
            at = &n->task; // the step may have done anything
        } else {
            at = &(*at)->next;
        }
    }
}

void lives_drop(struct sim_node *n, const struct actor *a)
{
    struct sim_task **at = &n->task;

    while (*at != NULL) {
        if (a == NULL || (*at)->effect.actor == a) {
            mem_free(take_task(n, at));
        } else {
            at = &(*at)->next;
        }
    }
}
