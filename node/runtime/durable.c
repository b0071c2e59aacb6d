/* SPDX-License-Identifier: Apache-2.0
 *
 * Durable actors: loaded before they start, saved before they answer.
 */
#include "node/runtime/durable.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <stdatomic.h>

/* ---- to the store ---- */

static struct store_task *task_for(struct rh_actor *a, enum store_verb verb)
{
    struct store_task *t = store_task_new(verb);

    t->kind = a->kind;
    t->id_size = a->id_size;
    memcpy(t->id, a->id, a->id_size);
    t->fence = a->fence;
    t->actor = a;
    t->to = a->runtime->latch;
    return t;
}

static void submit(struct rh_actor *a, struct store_task *t)
{
    const struct runtime_config *config = &a->runtime->config;

    a->extra->durable->task = t;
    config->on_store(config->store, t);
}

/* All that is sealed becomes one commit, and what waits for it waits for that. */
static void commit(struct rh_actor *a)
{
    struct durable *d = a->extra->durable;
    struct store_task *t = task_for(a, STORE_COMMIT);

    ASSERT(d->task == NULL && list_empty(&d->waiting));
    t->number = d->number + 1;
    t->bytes = d->sealed;
    d->sealed = (struct buffer){0};
    list_splice_back(&d->waiting, &d->next);
    outbox_submitted(&d->outbox);
    if (d->traced) {
        traced_commit(a);
    }
    submit(a, t);
}

/* ---- figures ---- */

static void tell_figures(struct rh_actor *a, const uint64_t now[DURABLE_FIGURES])
{
    struct durable_figures *figures = a->runtime->config.figures;
    uint64_t *told = a->extra->durable->told;

    for (size_t i = 0; figures != NULL && i < DURABLE_FIGURES; i++) {
        if (now[i] != told[i]) {
            (void)atomic_fetch_add(&figures->of[i], now[i] - told[i]);
            told[i] = now[i];
        }
    }
}

void durable_count(struct rh_actor *a)
{
    const struct durable *d = a->extra->durable;
    bool due;
    const size_t alarms = durable_alarms_count(d, &due);
    const uint64_t now[DURABLE_FIGURES] = {
        [FIGURE_ANSWERS] = d->answers.count,
        [FIGURE_ANSWER_BYTES] = d->answers.size,
        [FIGURE_SENDS] = d->outbox.count,
        [FIGURE_SEND_BYTES] = d->outbox.size,
        [FIGURE_ALARMS] = alarms,
        [FIGURE_DUE] = due ? 1 : 0,
    };

    tell_figures(a, now);
}

void durable_save(struct rh_actor *a)
{
    struct durable *d = a->extra->durable;

    if (!d->runs && d->task == NULL && outbox_is_changed(&d->outbox)) {
        durable_sends_seal(a, &d->sealed);
        commit(a);
    }
}

/* ---- what it says ---- */

static bool passes(const struct durable *d, enum verb verb)
{
    const bool of_the_watchdog = verb == VERB_DEFER || verb == VERB_FINISH;
    const bool stays = verb == VERB_RETIRE; // which tells of nothing that was changed

    return of_the_watchdog || stays || d->ended || mutant(M_ANSWERFIRST) ||
           (!d->runs && d->task == NULL && d->sealed.size == 0);
}

void durable_tell(struct rh_actor *a, const struct completion *c)
{
    struct durable *d = a->extra->durable;

    if (c->verb == VERB_RUN && !d->runs && !d->ended) {
        durable_note_late_answer(a, c);
        durable_count(a);
    }
    if (passes(d, (enum verb)c->verb)) {
        a->runtime->config.on_completion(a->runtime->config.context, c);
    } else if (d->runs) {
        withheld_put(&d->said, c);
    } else {
        withheld_put(d->sealed.size > 0 ? &d->next : &d->waiting, c);
    }
    if (!d->runs && d->task == NULL && d->sealed.size > 0) {
        commit(a);
    }
}

void durable_enter(struct rh_actor *a)
{
    a->extra->durable->runs = true;
    a->extra->durable->traced = a->task == VERB_RUN && (flags_of(a) & REQUEST_TRACED) != 0;
}

void durable_leave(struct rh_actor *a, bool good)
{
    struct durable *d = a->extra->durable;

    const bool stays = good && !a->broken && !d->refuses;

    d->runs = d->refuses = false;
    if (d->knows) { // whatever becomes of a commit that is on its way
        d->knows = false;
        d->name.number = 0;
        withheld_say(a, &d->said);
    }
    if (a->broken && (named_values_are_changed(&d->values) || durable_alarms_are_changed(d) ||
                      durable_sends_are_changed(d) || d->taking.size > 0)) {
        withheld_deny(a, &d->said);
    }
    if (a->broken || (good && !stays)) {
        withheld_mute(a, &d->said);
    }
    if (!stays) {
        named_values_undo(&d->values);
        durable_alarms_undo(d);
        durable_sends_undo(d);
    }
    bool changed = named_values_are_changed(&d->values) || durable_alarms_are_changed(d) ||
                   durable_sends_are_changed(d);
    changed = durable_sends_take(d, changed) || changed;
    named_values_seal(&d->values, &d->sealed);
    if (mutant(M_ALARMAPART) && d->task == NULL && d->sealed.size > 0) {
        commit(a);
    }
    durable_alarms_seal(a, &d->sealed);
    durable_sends_seal(a, &d->sealed);
    if (mutant(M_ANSWERAPART) && d->task == NULL && d->sealed.size > 0) {
        commit(a);
    }
    if (!a->broken) {
        durable_note_answer(a, changed);
    }
    durable_count(a);
    if (d->sealed.size > 0) {
        list_splice_back(&d->next, &d->said);
    } else if (d->task != NULL) {
        list_splice_back(&d->waiting, &d->said);
    } else {
        withheld_say(a, &d->said);
    }
    if (d->task == NULL && d->sealed.size > 0) {
        commit(a);
    }
}

/* ---- when it can't be saved ---- */

static const char *text_of(enum store_result why)
{
    return why == STORE_FENCED
               ? "STORE_FENCED another owner has the actor: the changes were dropped"
               : "STORE_UNAVAILABLE the changes could not be saved, and were dropped";
}

struct bytes durable_failed_answer(struct rh_actor *a, enum store_result why,
                                   enum answer_code *code)
{
    const struct rh_value error = rh_error(text_of(why));

    buffer_clear(&a->runtime->body);
    if (why == STORE_UNKNOWN) {
        *code = ANSWER_LOST;
    } else if ((flags_of(a) & REQUEST_SESSION) != 0) {
        *code = ANSWER_OK; // and nothing, which is no answer to whoever sent it
    } else {
        *code = reply_write(a, &error);
    }
    return buffer_bytes(&a->runtime->body);
}

static void complain(const struct rh_actor *a, enum store_result why)
{
    switch (why) {
    case STORE_DONE:
        return;
    case STORE_FENCED:
        actor_complain(a, "store_fenced", "the store says that another owner has the actor");
        return;
    case STORE_UNAVAILABLE:
        actor_complain(a, "store_unavailable", "the store failed: nothing was changed");
        return;
    case STORE_UNKNOWN:
        actor_complain(a, "store_unknown", "the store failed amidst a commit: done, or not");
        return;
    }
}

/* The callback that is deferred ends here: nobody is heard who finishes it from now on. */
static void end_deferred(struct rh_actor *a, enum store_result why)
{
    enum answer_code code = ANSWER_OK;

    if (a->callback == CALLBACK_MESSAGE) {
        const struct bytes body = durable_failed_answer(a, why, &code);

        actor_ran(a, code, body);
    } else {
        (void)deferral_drop(a);
        actor_go_on(a, RH_FAILED);
    }
}

static void refuse(struct runtime *s, void *name)
{
    const struct completion refused = {.verb = VERB_ACTIVATE, .actor = name, .error = ERR_REFUSED};

    s->config.on_completion(s->config.context, &refused);
}

/* What activate changed could not be saved: it has not come to life. */
static void end_activation(struct rh_actor *a)
{
    struct runtime *s = a->runtime;
    void *name = name_of(a);

    runtime_discard(a, RH_BROKEN);
    refuse(s, name);
}

static void fail(struct rh_actor *a, enum store_result why)
{
    struct durable *d = a->extra->durable;
    const bool activates = a->task == VERB_ACTIVATE ||
                           withheld_find(&d->waiting, VERB_ACTIVATE) != NULL ||
                           withheld_find(&d->next, VERB_ACTIVATE) != NULL;

    complain(a, why);
    d->ended = true;
    buffer_clear(&d->sealed); // it stands on what is not saved
    if (activates) {
        end_activation(a);
        return;
    }
    if (!a->broken) {
        a->broken = true;
        runtime_tell_error(a, VERB_FAIL, why == STORE_FENCED ? ERR_CONFLICT : ERR_OK);
    }
    withheld_fail(a, &d->waiting, why);
    // What stands behind a commit in doubt is surely not saved, unless a part of it is in that.
    withheld_fail(a, &d->next, why == STORE_UNKNOWN && !d->begun ? STORE_UNAVAILABLE : why);
    if (a->deferred) {
        end_deferred(a, why);
    }
}

/* ---- from the store ---- */

static void committed(struct rh_actor *a)
{
    struct durable *d = a->extra->durable;

    d->number++;
    outbox_committed(&d->outbox);
    withheld_say(a, &d->waiting);
    if (d->sealed.size > 0) {
        commit(a);
    }
    durable_sends_go(a);
}

static void claimed(struct rh_actor *a, struct store_task *t)
{
    struct durable *d = a->extra->durable;
    struct buffer state = d->state;
    const struct bytes given = buffer_bytes(&state);
    const bool good = t->result == STORE_DONE &&
                      named_values_load(&d->values, buffer_bytes(&t->bytes)) &&
                      answers_load(&d->answers, buffer_bytes(&t->bytes), a->runtime->now_us) &&
                      durable_alarms_load(a, buffer_bytes(&t->bytes)) &&
                      durable_sends_load(a, buffer_bytes(&t->bytes));
    struct runtime *s = a->runtime;
    void *name = name_of(a);

    d->loading = false;
    d->state = (struct buffer){0};
    d->number = t->number;
    withheld_say(a, &d->waiting); // what was said of it while it was loaded
    if (good) {
        durable_sends_go(a);
        (void)actor_start(a, d->has_state ? &given : NULL, d->state_version);
    } else {
        complain(a, t->result == STORE_DONE ? STORE_UNAVAILABLE : (enum store_result)t->result);
        actor_end_task(a);
        actor_free(a);
        refuse(s, name);
    }
    buffer_fini(&state);
}

static void take(struct rh_actor *a, struct store_task *t)
{
    struct runtime *s = a->runtime;

    if (t->verb == STORE_COMMIT && t->result == STORE_DONE) {
        committed(a); // no code of the actor runs
        return;
    }
    runtime_enter(s, a);
    if (t->verb == STORE_CLAIM) {
        claimed(a, t);
    } else {
        fail(a, (enum store_result)t->result);
    }
    runtime_enter(s, NULL);
}

void durable_take(struct store_task *t)
{
    static const char *const outcomes[] = {[STORE_DONE] = NULL,
                                           [STORE_FENCED] = "fenced",
                                           [STORE_UNAVAILABLE] = "unavailable",
                                           [STORE_UNKNOWN] = "unknown"};
    struct rh_actor *a = t->actor;

    if (a != NULL) { // else it was stopped meanwhile
        a->extra->durable->task = NULL;
        traced_committed(a, outcomes[t->result]);
        take(a, t);
    }
    store_task_free(t);
}

/* ---- its life ---- */

void durable_load(struct rh_actor *a, const struct runtime_entry *entry)
{
    struct durable *d = mem_new(1, sizeof *d);

    ASSERT(a->runtime->config.on_store != NULL); // kinds.h sees to that
    named_values_init(&d->values);
    outbox_init(&d->outbox);
    inbox_init(&d->inbox);
    answers_init(&d->answers);
    list_init(&d->said);
    list_init(&d->waiting);
    list_init(&d->next);
    buffer_put(&d->state, entry->state.data, entry->state.size);
    d->has_state = entry->has_state;
    d->state_version = entry->state_version;
    d->loading = true;
    extra_of(a)->durable = d;
    submit(a, task_for(a, STORE_CLAIM));
}

bool durable_is_loading(const struct rh_actor *a)
{
    return a->extra->durable != NULL && a->extra->durable->loading;
}

void durable_end(struct rh_actor *a)
{
    a->extra->durable->ended = true;
}

void durable_free(struct rh_actor *a)
{
    static const uint64_t nothing[DURABLE_FIGURES] = {0};
    struct durable *d = a->extra->durable;

    tell_figures(a, nothing);
    durable_alarms_free(a);
    durable_sends_free(a);
    a->extra->durable = NULL;
    if (d->task != NULL) {
        d->task->actor = NULL; // It is done all the same, and nobody hears of it.
        traced_committed(a, "unknown");
    }
    withheld_drop(a, &d->said);
    withheld_drop(a, &d->waiting);
    withheld_drop(a, &d->next);
    named_values_fini(&d->values);
    values_batch_fini(&d->batch);
    answers_fini(&d->answers);
    buffer_fini(&d->sealed);
    buffer_fini(&d->state);
    mem_free(d);
}
