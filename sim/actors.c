/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors' code in the simulator: what a shipped actor would do, with its answers
 * late or lost.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "sim/fleet.h"
#include "wire/cursor.h"

#include <string.h>

/* The state of an actor: what it did, and ballast that must arrive unharmed.
 *
 *     | count u32 | uid u64 … | ballast u32 | bytes …, each the low byte of its index |
 *
 * Where states have versions the one that wrote it stands behind, as u32.
 */
static void state_put_list(struct buffer *out, const struct instance *i)
{
    const size_t version_size = i->node->version == 0 ? 0 : 4;
    const size_t size = 4 + 8 * i->list.count + 4 + 4 + i->entity->ballast + version_size;
    struct writer w = {.at = buffer_reserve(out, size), .left = size};

    put_u32(&w, (uint32_t)i->list.count);
    for (size_t k = 0; k < i->list.count; k++) {
        put_u64(&w, i->list.uid[k]);
    }
    put_u32(&w, (uint32_t)i->loaded);
    put_u32(&w, (uint32_t)i->entity->ballast);
    for (size_t k = 0; k < i->entity->ballast; k++) {
        put_u8(&w, (uint8_t)k);
    }
    if (version_size > 0) {
        put_u32(&w, i->node->version);
    }
    ASSERT(!w.bad && w.left == 0);
    out->size += size;
}

static bool state_get_list(struct instance *i, struct bytes state, uint32_t *version)
{
    struct reader in = {.at = state.data, .left = state.size};
    const uint32_t count = get_u32(&in);
    uint32_t ballast;

    for (uint32_t k = 0; k < count && !in.bad; k++) {
        ledger_list_add(&i->list, get_u64(&in));
    }
    i->loaded = get_u32(&in);
    ballast = get_u32(&in);
    for (uint32_t k = 0; k < ballast && !in.bad; k++) {
        if (get_u8(&in) != (uint8_t)k) {
            return false;
        }
    }
    *version = i->node->version == 0 ? 0 : get_u32(&in);
    return !in.bad && in.left == 0 && ballast == i->entity->ballast;
}

/* Older code never reads a newer state, and what is told of one is so. */
static void take_state(struct fleet *f, struct instance *i, struct bytes state, uint32_t told)
{
    uint32_t version = 0;

    if (!state_get_list(i, state, &version)) {
        world_violate(&f->world, "state", "the state of %s arrived damaged", i->entity->id);
    } else if (version != told || version > i->node->version) {
        world_violate(&f->world,
                      "state-version",
                      "%s has a state of version %u, told as %u, on %s, which reads up to %u",
                      i->entity->id,
                      version,
                      told,
                      i->node->process.name,
                      i->node->version);
    }
}

struct instance *actors_find(const struct sim_node *n, uint64_t id)
{
    struct instance *i = n->instance;

    while (i != NULL && i->id != id) {
        i = i->next;
    }
    return i;
}

/* An event about instance `i` of node number event->b. NULL: it is gone by now. */
struct instance *actors_instance(struct fleet *f, const struct world_event *event)
{
    return actors_find(&f->node[event->b], event->a);
}

void actors_later(struct fleet *f, const struct instance *i, uint64_t in_us, world_run run)
{
    world_at(&f->world,
             f->world.now_us + in_us,
             (struct world_event){.run = run,
                                  .context = f,
                                  .a = i->id,
                                  .b = (uint64_t)(i->node - f->node),
                                  .c = i->uid,
                                  .gate = &i->node->process.gate});
}

/* Unlink and free. */
void actors_end(struct fleet *f, struct instance *i)
{
    struct instance **at = &i->node->instance;

    check_discard(f, i);
    sim_durable_end(i);
    if (i->running) {
        entity_rests(f, i->entity);
    }
    node_call_close(f, i);
    while (*at != i) {
        at = &(*at)->next;
    }
    *at = i->next;
    ledger_list_fini(&i->list);
    mem_free(i);
}

static bool has_run(const struct instance *i, uint64_t uid)
{
    for (size_t k = 0; k < i->list.count; k++) {
        if (i->list.uid[k] == uid) {
            return true;
        }
    }
    return false;
}

static void activated(struct fleet *f, struct instance *i, bool failed);
static void ran(struct fleet *f, struct instance *i);

static void on_activated(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct instance *i = actors_instance(f, event);

    if (i != NULL) {
        activated(f, i, i->refused || world_chance(&f->world, f->faults.activate_fail_pm));
    }
}

static void activated(struct fleet *f, struct instance *i, bool failed)
{
    struct host_event e = {
        .type = HOST_COMPLETED, .actor = i->actor, .completion = {.verb = VERB_ACTIVATE}};
    struct sim_node *n = i->node;

    if (failed) {
        TRACE(&f->world, n->process.name, "%s does not start", i->entity->id);
        e.completion.error = ERR_IO;
        actor_set_instance(i->actor, NULL);
        actors_end(f, i);
    }
    node_step(f, n, e);
}

static uint64_t activation_us(struct fleet *f)
{
    const bool late = !f->healed && world_chance(&f->world, f->faults.late_pm);

    return world_between(&f->world, 0, late ? 3000000 : 3000);
}

void actors_activate(struct fleet *f, struct sim_node *n, const struct host_effect *e,
                     struct bytes state)
{
    struct instance *i = mem_new(1, sizeof *i);

    i->id = ++f->instance_count;
    i->actor = e->actor;
    i->node = n;
    i->entity = ledger_entity(f, actor_id(e->actor));
    ASSERT(i->entity != NULL);
    i->next = n->instance;
    n->instance = i;
    actor_set_instance(e->actor, i);
    if (e->submission.has_state) {
        take_state(f, i, state, e->submission.state_version);
    }
    TRACE(&f->world,
          n->process.name,
          "activates %s with %zu effects%s",
          i->entity->id,
          i->list.count,
          e->submission.has_state ? ", handed over" : "");
    i->token = e->submission.fence;
    i->warm = e->submission.has_state;
    if (i->entity->durable) {
        sim_durable_begin(i);
        return;
    }
    i->refused = !lives_load(i);
    if (!i->refused) {
        check_activate(f, i, i->warm);
    }
    actors_later(f, i, activation_us(f), on_activated);
}

void actors_claimed(struct fleet *f, struct instance *i, bool ok)
{
    if (ok) {
        check_activate(f, i, i->warm);
    }
    if (f->world.checker == NULL) {
        activated(f, i, !ok || world_chance(&f->world, f->faults.activate_fail_pm));
    }
}

static void answer(struct fleet *f, struct instance *i, enum answer_code code, struct bytes body)
{
    i->running = false;
    entity_rests(f, i->entity);
    lives_after_run(f, i);
    if (lives_breaks(f, i)) {
        return;
    }
    node_complete(
        f,
        i,
        (struct completion){.verb = VERB_RUN, .ticket = i->ticket, .code = code, .bytes = body});
}

static void answer_done(struct fleet *f, struct instance *i)
{
    uint8_t body[12];
    struct writer w = {.at = body, .left = sizeof body};

    put_u64(&w, i->uid);
    put_u32(&w, (uint32_t)i->list.count);
    answer(f, i, i->uid % 50 == 0 ? ANSWER_APP_ERROR : ANSWER_OK, bytes_of(body, sizeof body));
}

void actors_wrote(struct fleet *f, struct instance *i, enum err error, enum answer_code code)
{
    const struct bytes body = bytes_of("not saved", code == ANSWER_LOST ? 0 : 9);

    if (error == ERR_OK && code == ANSWER_OK) {
        ledger_list_add(&i->list, i->uid);
        answer_done(f, i);
        return;
    }
    i->running = false;
    entity_rests(f, i->entity);
    node_complete(
        f,
        i,
        (struct completion){
            .verb = VERB_RUN, .error = error, .ticket = i->ticket, .code = code, .bytes = body});
}

static void on_ran(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct instance *i = actors_instance(f, event);

    if (i != NULL && i->running && i->uid == event->c) {
        ran(f, i);
    }
}

static void ran(struct fleet *f, struct instance *i)
{
    if (i->handled) {
        return; // what it asked was answered in time
    }
    i->handled = true;
    i->asks = 0;
    TRACE(&f->world,
          i->node->process.name,
          "%s ran request %llu",
          i->entity->id,
          (unsigned long long)i->uid);
    if (!i->entity->durable && lives_did(f, i, i->uid)) {
        i->running = false;
        answer_done(f, i);
    } else if (!i->entity->durable) {
        i->running = false;
        check_run_end(f, i, i->uid);
        answer_done(f, i);
    } else if (has_run(i, i->uid)) {
        answer_done(f, i); // an idempotent one, that a former life did
    } else {
        sim_durable_run(i, i->uid);
    }
}

static void on_answered(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct instance *i = actors_instance(f, event);

    if (i != NULL && i->running && i->asks == event->c) {
        ran(f, i);
    }
}

/* What it asked before that in the same run, and waits for still: refused for a circle, the last
 * one is answered first. 0 = nothing. */
static uint64_t asked_before(struct fleet *f, const struct instance *i)
{
    const struct sim_ask *a = NULL;

    for (uint64_t uid = i->asks; (a = ledger_find(f, uid)) != NULL && a->parent == i->uid; uid--) {
        if (!a->answered) {
            return uid;
        }
    }
    return 0;
}

void actors_answered(struct fleet *f, uint64_t uid)
{
    for (unsigned n = 0; n < f->nodes; n++) {
        for (struct instance *i = f->node[n].instance; i != NULL; i = i->next) {
            if (i->running && i->asks == uid && asked_before(f, i) != 0) {
                i->asks = asked_before(f, i);
            } else if (i->running && i->asks == uid) {
                world_at(&f->world,
                         f->world.now_us + world_between(&f->world, 20, 2000),
                         (struct world_event){.run = on_answered,
                                              .context = f,
                                              .a = i->id,
                                              .b = n,
                                              .c = uid,
                                              .gate = &f->node[n].process.gate});
            }
        }
    }
}

/* One with a smaller number: by it actors wait for each other in circles, which their nodes find.
 * Zero: none. */
static size_t called_back(struct fleet *f, size_t me)
{
    const size_t back = (size_t)world_between(&f->world, 0, 3) * 3 + (me % 3 == 2 ? 2 : 1);

    return me >= LEDGER_HOT + back && f->faults.node_calls && world_chance(&f->world, 500)
               ? me - back
               : 0;
}

/* The handler asks another actor. In calm seeds a chain is three long: longer ones would wait in
 * each other's mailboxes until the deadline, drain or not. Circles of calls, and of calls and
 * drains, come of it, also across nodes, and none may last (hole 18). */
static uint64_t call(struct fleet *f, struct instance *i)
{
    const size_t me = (size_t)(i->entity - f->ledger.entity);
    const bool ends = f->profile == PROFILE_CALM && me % 3 == 2;
    const size_t back = ends || f->profile != PROFILE_CALM ? called_back(f, me) : 0;
    const size_t other = back != 0 ? back : me + world_between(&f->world, 1, 8);

    if (other >= LEDGER_ENTITIES ||
        (f->profile == PROFILE_CALM && back == 0 && (ends || other % 3 != me % 3 + 1))) {
        return 0;
    }
    if (!f->faults.node_calls) {
        return clients_call(f, i->uid, other);
    }
    // It waits for the last one only: what it asks of one other runs there in order.
    for (uint64_t more = f->faults.asks_once ? 0 : world_between(&f->world, 0, 2); more > 0;
         more--) {
        (void)node_call(f, i, other);
    }
    return node_call(f, i, other);
}

static void on_poison(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const struct instance *i = actors_instance(f, event);

    if (i != NULL && i->running && i->uid == event->c) {
        TRACE(&f->world, i->node->process.name, "is killed by %s", i->entity->id);
        node_crash(f, i->node);
    }
}

static void on_call(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct instance *i = actors_instance(f, event);

    if (i == NULL || !i->running || i->uid != event->c) {
        return;
    }
    i->asks = call(f, i);
    // Should no answer come, it goes on without.
    actors_later(f, i, i->asks == 0 ? 0 : (uint64_t)f->deadline_ms * 1000 + 500000, on_ran);
    node_calls_settle(f, i->node);
}

void actors_run(struct fleet *f, const struct host_effect *e, struct bytes body)
{
    struct instance *i = actor_instance(e->actor);
    const struct bytes asked = node_called(f, &e->submission, body);
    struct reader in = {.at = asked.data, .left = asked.size};
    const uint64_t uid = get_u64(&in);
    const bool slow = world_chance(&f->world, f->faults.run_long_pm);
    uint64_t run_us =
        world_between(&f->world, 0, slow ? f->faults.run_long_us : f->faults.run_max_us);

    ASSERT(i != NULL && i->actor == e->actor);
    TRACE(&f->world,
          i->node->process.name,
          "%s runs request %llu",
          i->entity->id,
          (unsigned long long)uid);
    check_run_begin(f, i, uid);
    if (f->world.checker != NULL) {
        return;
    }
    i->running = true;
    i->entity->run_from_us = f->world.now_us;
    i->handled = false;
    i->uid = uid;
    i->ticket = e->submission.ticket;
    i->chain_count = submission_chain(&e->submission, body, i->chain);
    if (world_chance(&f->world, f->faults.poison_pm) && world_chance(&f->world, 100)) {
        actors_later(f, i, run_us / 2, on_poison);
    }
    if (poison_kills(f, i)) {
        actors_later(f, i, run_us / 2, on_poison);
    }
    i->asks = 0;
    if (i->entity >= &f->ledger.entity[LEDGER_HOT] && world_chance(&f->world, f->faults.call_pm)) {
        actors_later(f, i, world_between(&f->world, 0, 300000), on_call);
        return;
    }
    actors_later(f, i, run_us, on_ran);
}

static void on_not_now(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const struct instance *i = actors_instance(f, event);

    if (i != NULL) {
        node_complete(f, i, (struct completion){.verb = VERB_EXPORT, .error = ERR_BUSY});
    }
}

static void on_exported(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct instance *i = actors_instance(f, event);
    struct buffer state = {0};
    enum err error = ERR_OK;
    bool has_state = true;

    if (i == NULL || !i->frozen) {
        return;
    }
    if (world_chance(&f->world, f->faults.export_fail_pm)) {
        TRACE(&f->world, i->node->process.name, "%s is not exported", i->entity->id);
        error = ERR_IO;
    } else if (lives_goes_cold(f, i)) {
        has_state = false;
    } else {
        state_put_list(&state, i);
    }
    node_complete(f,
                  i,
                  (struct completion){.verb = VERB_EXPORT,
                                      .error = error,
                                      .has_state = has_state,
                                      .bytes = buffer_bytes(&state)});
    buffer_fini(&state);
}

void actors_export(struct fleet *f, const struct host_effect *e)
{
    struct instance *i = actor_instance(e->actor);

    TRACE(&f->world,
          i->node->process.name,
          "freezes %s with %zu effects",
          i->entity->id,
          i->list.count);
    if (!f->healed && !i->running && world_chance(&f->world, f->faults.busy_pm)) {
        actors_later(f, i, world_between(&f->world, 0, 3000), on_not_now);
        return;
    }
    check_freeze(f, i);
    actors_later(f, i, world_between(&f->world, 0, 3000), on_exported);
}

static void on_copied(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct instance *i = actors_instance(f, event);
    struct buffer state = {0};

    if (i == NULL) {
        return;
    }
    state_put_list(&state, i);
    node_complete(
        f,
        i,
        (struct completion){.verb = VERB_COPY, .has_state = true, .bytes = buffer_bytes(&state)});
    buffer_fini(&state);
}

static void on_not_copied(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const struct instance *i = actors_instance(f, event);

    if (i != NULL) {
        node_complete(f, i, (struct completion){.verb = VERB_COPY, .error = ERR_BUSY});
    }
}

void actors_copy(struct fleet *f, const struct host_effect *e)
{
    const struct instance *i = actor_instance(e->actor);
    const bool busy = !f->healed && world_chance(&f->world, f->faults.busy_pm);

    TRACE(&f->world,
          i->node->process.name,
          "copies %s with %zu effects",
          i->entity->id,
          i->list.count);
    actors_later(f, i, world_between(&f->world, 0, 3000), busy ? on_not_copied : on_copied);
}

/* What its host froze without a word, for its image went ahead, and let go on: as an UNFREEZE, that
 * is of no account without a lease. */
void actors_look_still(struct fleet *f, struct sim_node *n)
{
    const bool gated = f->lease_us > 0 && node_is_gated(f, n);

    for (struct instance *i = n->instance; i != NULL; i = i->next) {
        const bool frozen = actor_is_frozen(i->actor);

        if (frozen && !i->frozen) {
            check_freeze(f, i);
            i->still = true;
        } else if (!frozen && i->still && !gated) {
            i->still = false;
            check_unfreeze(f, i);
        }
    }
}

void actors_unfreeze(struct fleet *f, const struct host_effect *e)
{
    struct instance *i = actor_instance(e->actor);

    TRACE(&f->world, i->node->process.name, "unfreezes %s", i->entity->id);
    check_unfreeze(f, i);
}

void actors_discard(struct fleet *f, struct sim_node *n, const struct host_effect *e)
{
    struct instance *i = actor_instance(e->actor);

    if (i == NULL) {
        return;
    }
    TRACE(&f->world, n->process.name, "discards %s", i->entity->id);
    const enum discard_why why = e->submission.why;

    if ((why == DISCARD_FENCED || why == DISCARD_ERA) &&
        (i->entity->live == i || i->entity->last == n)) {
        i->entity->lost = true;
    }
    if (why == DISCARD_BROKEN && poison_is_in(f, i->entity)) {
        i->entity->broke = true;
        i->entity->lost = i->entity->lost || i->entity->live == i;
    }
    i->broken = why == DISCARD_BROKEN;
    actor_set_instance(e->actor, NULL); // one that is broken goes on as a record
    actors_end(f, i);
}

void actors_crash(struct fleet *f, struct sim_node *n)
{
    while (n->instance != NULL) {
        actors_end(f, n->instance);
    }
}
