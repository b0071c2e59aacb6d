/* SPDX-License-Identifier: Apache-2.0
 *
 * What the host asks of actors becomes calls of their code, and what they return
 * becomes completions.
 */
#include "node/runtime/inside.h"

#include "base/actor_name.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

enum { SAVE_AT_ONCE = 64, COMPLAINTS_A_SECOND = 20 };

/* ---- telling ---- */

void runtime_tell(struct rh_actor *a, enum verb verb)
{
    const struct completion event = {
        .verb = (uint8_t)verb, .actor = name_of(a), .kept = &a->extra->kept};

    actor_say(a, &event);
}

void runtime_tell_gone(const struct runtime *s, void *name, enum verb verb)
{
    const struct completion event = {.verb = (uint8_t)verb, .actor = name};

    s->config.on_completion(s->config.context, &event);
}

void runtime_enter(const struct runtime *s, struct rh_actor *a)
{
    if (s->config.on_enter != NULL) {
        s->config.on_enter(s->config.context, a == NULL ? NULL : name_of(a));
    }
}

void runtime_tell_error(struct rh_actor *a, enum verb verb, enum err error)
{
    const struct completion event = {.verb = (uint8_t)verb, .actor = name_of(a), .error = error};

    actor_say(a, &event);
}

void actor_complain(const struct rh_actor *a, const char *event, const char *what)
{
    struct runtime *s = a->runtime;
    char name[ACTOR_NAME_SIZE];
    uint32_t hidden = 0;

    if (!ration_take(&s->complaints, s->now_us, COMPLAINTS_A_SECOND, &hidden)) {
        return;
    }
    if (hidden > 0) {
        log_warn("node", "complaints_not_shown", "count=%" PRIu32, hidden);
    }
    log_warn("node",
             event,
             "actor=%s kind=%s what=\"%s\"",
             actor_name_print(a->kind, bytes_of(a->id, a->id_size), name),
             role_of(a)->ops->name,
             what);
}

/* ---- callbacks ---- */

static const char *callback_name(enum callback callback)
{
    switch (callback) {
    case CALLBACK_ACTIVATE:
        return "activate";
    case CALLBACK_FLUSH:
        return "flush";
    case CALLBACK_HANDOFF:
        return "handoff";
    case CALLBACK_SESSION:
        return "session";
    case CALLBACK_ALARM:
        return "alarm";
    case CALLBACK_TIMER:
        return "timer";
    case CALLBACK_NONE:
    case CALLBACK_MESSAGE:
    case CALLBACK_PART:
    case CALLBACK_RESUME:
    case CALLBACK_END:
        break;
    }
    return "callback";
}

/* Nonsense has failed: the actor says so itself by RH_FAILED. */
static int check_result(const struct rh_actor *a, int result)
{
    const bool handoff = a->callback == CALLBACK_HANDOFF;

    if (result == RH_OK || result == RH_FAILED ||
        (handoff && (result == RH_BUSY || result == RH_COLD))) {
        return result;
    }
    actor_complain(a, "bad_result", callback_name((enum callback)a->callback));
    return RH_FAILED;
}

/* It has returned: is it through? */
// NOLINTNEXTLINE(misc-no-recursion): a flush, then a handoff, and no deeper
void actor_returned(struct rh_actor *a, int result)
{
    if (result == RH_PENDING && a->extra->deferral != NULL) {
        a->deferred = true;
        runtime_tell(a, VERB_DEFER);
        calls_pump(a);
        return;
    }
    (void)deferral_drop(a); // It got a token, and has finished at once after all.
    actor_go_on(a, result);
}

// NOLINTNEXTLINE(misc-no-recursion): the session, then a flush, and no deeper
void actor_flush(struct rh_actor *a, enum rh_why why)
{
    a->callback = CALLBACK_FLUSH;
    actor_returned(a, role_of(a)->ops->flush(a, a->instance, why, a->fence));
}

/* Nothing of what ran is left. */
void actor_end_task(struct rh_actor *a)
{
    const struct extras *x = a->extra;

    ASSERT(!a->deferred);
    if (x->deferral != NULL) {
        (void)deferral_drop(a);
    }
    if (!list_empty(&x->after)) {
        timers_drop_after(a);
    }
    a->task = VERB_NONE;
    a->callback = CALLBACK_NONE;
}

void actor_want_turn(struct rh_actor *a)
{
    const bool has = !list_empty(&a->extra->due) || a->flush_due ||
                     (a->extra->client != NULL && session_is_due(a));
    const bool over = a->broken || a->ending;

    if (has && !a->poked && !a->frozen && !over && a->task != VERB_ACTIVATE) {
        a->poked = true;
        runtime_tell(a, VERB_POKE);
    }
    extras_calm(a);
}

bool actor_may_ask(const struct rh_actor *a)
{
    return a->callback == CALLBACK_ACTIVATE || a->callback == CALLBACK_MESSAGE ||
           a->callback == CALLBACK_FLUSH || a->callback == CALLBACK_PART ||
           a->callback == CALLBACK_SESSION || a->callback == CALLBACK_ALARM ||
           a->callback == CALLBACK_TIMER;
}

void actor_free(struct rh_actor *a)
{
    const struct completion gone = {
        .verb = VERB_END_CALLS, .actor = name_of(a), .number = a->extra->session};

    if (a->extra->session != 0) {
        a->runtime->config.on_completion(a->runtime->config.context, &gone);
    }
    (void)deferral_drop(a);
    life_drop(a);
    calls_drop(a);
    timers_drop(a);
    bonds_drop_all(a);
    if (a->extra->out != NULL) {
        out_drop(a);
    }
    if (a->extra->durable != NULL) {
        durable_free(a);
    }
    a->runtime->actor_count--;
    a->runtime->saved_count -= a->saved ? 1 : 0;
    if (a->extra != &runtime_nothing) {
        extras_give_back(a);
    }
    a->extra = NULL;
    if (!a->recorded) {
        activation_free(a);
    }
}

/* Its last callback can ask for nothing: what it had is taken away before. */
static void deactivate(struct rh_actor *a, enum rh_why why)
{
    (void)deferral_drop(a);
    if (a->extra->durable != NULL) {
        durable_end(a);
    }
    session_stop(a, why);
    a->callback = CALLBACK_END;
    role_of(a)->ops->deactivate(a, a->instance, why);
}

/* ---- activate ---- */

static void activated(struct rh_actor *a, int result)
{
    actor_end_task(a);
    struct runtime *s = a->runtime;
    const struct completion refused = {
        .verb = VERB_ACTIVATE, .actor = name_of(a), .error = ERR_REFUSED};

    if (result != RH_OK) {
        actor_free(a);
        s->config.on_completion(s->config.context, &refused);
        return;
    }
    runtime_tell_error(a, VERB_ACTIVATE, ERR_OK);
    flush_set(a);
    session_start(a);
    if (a->passivate) {
        runtime_tell(a, VERB_PASSIVATE);
    }
    actor_want_turn(a);
}

static uint8_t role_index(struct runtime *s, const struct runtime_entry *entry)
{
    for (size_t i = 0; i < s->role_count; i++) {
        const struct role *role = &s->role[i];

        if (role->ops == entry->ops && role->shared == entry->shared) {
            return (uint8_t)i;
        }
    }
    ASSERT(s->role_count <= UINT8_MAX);
    s->role = mem_resize(s->role, (s->role_count + 1) * sizeof *s->role);
    s->role[s->role_count] = (struct role){entry->ops, entry->shared};
    return (uint8_t)s->role_count++;
}

static struct rh_actor *take_activation(struct runtime *s, const struct runtime_entry *entry)
{
    struct rh_actor *a = entry->activation;

    if (a == NULL) {
        a = activation_new(s, entry->kind, entry->id, entry->actor);
        a->recorded = false;
    }
    a->role = role_index(s, entry);
    a->fence = entry->fence;
    a->extra = &runtime_nothing;
    s->actor_count++;
    return a;
}

bool actor_start(struct rh_actor *a, const struct bytes *state, uint32_t version)
{
    struct rh_bytes given = {0};
    struct rh_out *kept = NULL;
    int result = RH_FAILED;

    if (state != NULL) {
        given = (struct rh_bytes){state->data, state->size};
    }
    const bool readable = state == NULL || actor_upgrade(a, version, &given, &kept);
    a->callback = CALLBACK_ACTIVATE;
    actor_enter_code(a);
    if (readable) {
        result =
            role_of(a)->ops->activate(a, state == NULL ? NULL : &given, a->fence, &a->instance);
    }
    actor_upgrade_end(a->runtime, kept);
    const bool refused = result != RH_OK && (result != RH_PENDING || a->extra->deferral == NULL);
    actor_leave_code(a, !refused);
    actor_returned(a, result);
    return !refused;
}

struct rh_actor *runtime_activate(struct runtime *s, const struct runtime_entry *entry)
{
    struct rh_actor *a = take_activation(s, entry);

    bonds_arrive(a, entry->bond, !entry->has_state);
    a->task = VERB_ACTIVATE;
    if (role_of(a)->ops->durable != 0) {
        durable_load(a, entry);
        return a;
    }
    return actor_start(a, entry->has_state ? &entry->state : NULL, entry->state_version) ? a : NULL;
}

/* ---- turns ---- */

static void end_turn(struct rh_actor *a)
{
    const struct completion event = {
        .verb = VERB_TURN, .actor = name_of(a), .ticket = a->extra->ticket, .code = ANSWER_OK};

    actor_end_task(a);
    actor_say(a, &event);
    actor_want_turn(a);
}

static void take_due(struct rh_actor *a, struct due *due)
{
    a->callback = due->is_timer ? CALLBACK_TIMER : CALLBACK_PART;
    if (due->is_timer) {
        timer_fire(CONTAINER_OF(due, struct timer, due));
    } else if (due->is_post) {
        post_run(a, due);
    } else {
        call_end(CONTAINER_OF(due, struct open_call, due));
    }
    a->callback = a->deferred ? a->callback : CALLBACK_NONE;
}

/* What may finish later comes last, one after the other. */
// NOLINTNEXTLINE(misc-no-recursion): the session, then a flush, and no deeper
static void end_of_turn(struct rh_actor *a)
{
    if (session_is_due(a) && !a->broken && !a->ending) {
        session_turn(a);
        return;
    }
    if (durable_alarms_are_due(a) && durable_alarms_turn(a)) {
        return;
    }
    if (!a->flush_due || a->broken || a->ending) {
        end_turn(a);
        return;
    }
    a->flush_due = false;
    actor_flush(a, RH_PERIODIC);
}

void runtime_turn(struct rh_actor *a, uint64_t ticket)
{
    struct list_link *link = NULL;
    struct list now; // What becomes due meanwhile is for the next turn.

    ASSERT(a->task == VERB_NONE && !a->frozen);
    a->task = VERB_TURN;
    extra_of(a)->ticket = ticket;
    a->extra->chain_count = 0;
    a->poked = false;
    list_init(&now);
    list_splice_back(&now, &a->extra->due);
    while (!a->broken && !a->ending && !a->deferred && (link = list_front(&now)) != NULL) {
        list_remove(link);
        take_due(a, CONTAINER_OF(link, struct due, link));
    }
    list_splice_back(&now, &a->extra->due); // of one that broke, ended itself, or finishes later
    list_splice_back(&a->extra->due, &now);
    if (a->deferred) {
        calls_pump(a);
    } else {
        end_of_turn(a);
    }
}

/* ---- ending ---- */

static void retired(struct rh_actor *a, int result)
{
    actor_end_task(a);
    if (result != RH_OK) {
        a->passivate = a->ending = false; // It lives on until it could be saved.
        runtime_tell_error(a, VERB_RETIRE, ERR_IO);
        actor_want_turn(a);
        return;
    }
    void *name = name_of(a);
    struct runtime *s = a->runtime;

    deactivate(a, RH_IDLE);
    actor_free(a);
    runtime_tell_gone(s, name, VERB_RETIRE);
}

void runtime_retire(struct rh_actor *a)
{
    ASSERT(a->task == VERB_NONE && !a->frozen);
    if (session_keeps(a) || (durable_sends_wait(a) && !a->passivate)) {
        runtime_tell_error(a, VERB_RETIRE, ERR_BUSY);
        return;
    }
    a->task = VERB_RETIRE;
    if (role_of(a)->ops->flush != NULL) {
        actor_flush(a, RH_IDLE);
    } else {
        retired(a, RH_OK);
    }
}

void runtime_discard(struct rh_actor *a, enum rh_why why)
{
    const bool failed = deferral_drop(a);

    if (a->deferred) {
        a->deferred = false;
        runtime_tell(a, VERB_FINISH);
    }
    // Else there is no instance any more, or not yet.
    if ((a->task != VERB_ACTIVATE || !failed) && !durable_is_loading(a)) {
        deactivate(a, why);
    }
    actor_free(a);
}

/* ---- going on with a task ---- */

static void parted(struct rh_actor *a, int result)
{
    struct runtime *s = a->runtime;
    void *name = name_of(a);

    if (result != RH_OK) {
        actor_complain(a, "actor_not_saved", "the actor's node lost it in another era");
    }
    actor_end_task(a);
    deactivate(a, RH_STOP);
    actor_free(a);
    runtime_tell_gone(s, name, VERB_DISCARD);
}

/* One that waits for its move, or is not there yet, has nothing to save of its own. */
static bool has_to_save(const struct rh_actor *a)
{
    return role_of(a)->ops->flush != NULL && !a->frozen && a->task != VERB_ACTIVATE && !a->broken;
}

void runtime_part(struct rh_actor *a, enum rh_why otherwise)
{
    struct runtime *s = a->runtime;
    void *name = name_of(a);

    if (has_to_save(a) && a->task == VERB_NONE) {
        a->task = VERB_DISCARD;
        actor_flush(a, RH_STOP);
        return;
    }
    runtime_discard(a, otherwise);
    runtime_tell_gone(s, name, VERB_DISCARD);
}

static void note_saved(struct rh_actor *a)
{
    a->saved = true;
    a->runtime->saved_count++;
}

// NOLINTNEXTLINE(misc-no-recursion): a flush, then a handoff, and no deeper
void actor_go_on(struct rh_actor *a, int result)
{
    const int checked = check_result(a, result);
    const bool handoff = a->callback == CALLBACK_HANDOFF;
    const bool session = a->callback == CALLBACK_SESSION;
    const bool alarm = a->callback == CALLBACK_ALARM;
    const bool timer = a->callback == CALLBACK_TIMER;

    if (a->deferred) {
        a->deferred = false;
        runtime_tell(a, VERB_FINISH);
    }
    a->callback = CALLBACK_NONE;
    switch ((int)a->task) {
    case VERB_ACTIVATE:
        activated(a, checked);
        return;
    case VERB_TURN:
        if (session) {
            session_turned(a, checked);
            end_of_turn(a);
            return;
        }
        if (alarm) {
            durable_alarms_fired(a, checked);
            end_turn(a);
            return;
        }
        if (timer) {
            end_of_turn(a);
            return;
        }
        flush_set(a); // Failed or not: again when its time comes.
        end_turn(a);
        return;
    case VERB_EXPORT:
    case VERB_COPY:
        handoff ? actor_exported(a, checked) : actor_flushed_to_move(a, checked);
        return;
    case VERB_RETIRE:
        retired(a, checked);
        return;
    case VERB_DISCARD:
        parted(a, checked);
        return;
    case VERB_SAVE:
        actor_end_task(a);
        if (checked == RH_OK) {
            note_saved(a);
            a->runtime->flushed_count++;
        }
        extras_calm(a);
        return;
    case VERB_RUN: // of a message: actor_ran()
        if (session) {
            session_ran(a, checked);
            return;
        }
        break;
    default:
        break;
    }
    UNREACHABLE();
}

/* ---- the runtime ---- */

struct runtime *runtime_new(const struct runtime_config *config)
{
    struct runtime *s = mem_new(1, sizeof *s);

    s->config = *config;
    s->config.at_once = config->at_once == NULL ? &s->nothing_at_once : config->at_once;
    s->config.numbering = config->numbering == NULL ? &s->alone : config->numbering;
    if (s->config.state_size_max == 0 || s->config.state_size_max > RUNTIME_STATE_MAX) {
        s->config.state_size_max = RUNTIME_STATE_MAX;
    }
    activations_init(s);
    s->latch = latch_open(config);
    list_init(&s->bonds);
    list_init(&s->alarmed);
    spans_init(&s->spans, config->tracing, config->span_seed);
    return s;
}

void runtime_set_now(struct runtime *s, uint64_t now_us)
{
    s->now_us = now_us;
}

void runtime_tick(struct runtime *s, uint64_t now_us)
{
    s->now_us = now_us;
    later_take(s);
    timers_run(s);
}

uint64_t runtime_next_us(const struct runtime *s)
{
    return s->alarms.count == 0 ? UINT64_MAX : s->alarms.heap[0]->at_us;
}

/* The next one in turn; there is one. */
static struct rh_actor *next_unsaved(struct runtime *s)
{
    struct rh_actor *a = NULL;

    do {
        a = activation_next(s, &s->save_at);
    } while (a == NULL || a->saved);
    return a;
}

size_t runtime_save(struct runtime *s, size_t *flushed)
{
    const size_t left = s->actor_count - s->saved_count;

    for (size_t i = 0; i < SAVE_AT_ONCE && i < left; i++) {
        struct rh_actor *a = next_unsaved(s); // The busy ones have their turn later.

        if (!has_to_save(a)) {
            note_saved(a);
        } else if (a->task == VERB_NONE) {
            a->task = VERB_SAVE;
            runtime_enter(s, a);
            actor_flush(a, RH_STOP);
            runtime_enter(s, NULL);
        }
    }
    *flushed = s->flushed_count;
    return s->actor_count - s->saved_count;
}

void runtime_end(struct runtime *s, enum rh_why why)
{
    struct rh_actor *a = NULL;
    uint32_t at = 0;

    while ((a = activation_next(s, &at)) != NULL) {
        runtime_enter(s, a);
        runtime_discard(a, why);
        runtime_enter(s, NULL);
    }
    extras_fini(s);
    outs_fini(s);
    pool_fini(&s->flushes);
    latch_close(s->latch);
    table_fini(&s->calls);
    pool_fini(&s->call_memory);
    alarms_fini(&s->alarms);
    buffer_fini(&s->body);
    buffer_fini(&s->taken.bytes);
    mem_free(s->taken.item);
    mem_free(s->role);
}

void runtime_free(struct runtime *s)
{
    activations_fini(s);
    spans_fini(&s->spans);
    mem_free(s);
}

void runtime_close(struct runtime *s, enum rh_why why)
{
    runtime_end(s, why);
    runtime_free(s);
}
