/* SPDX-License-Identifier: Apache-2.0 */
#include "node/scene_inside.h"

#include "base/assert.h"
#include "base/history.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <string.h>

enum { SAVE_AT_ONCE = 64 };

/* Of all scenes of the process: the calls of two incarnations are never taken for one another's. */
static _Atomic uint64_t last_session;

/* ---- telling ---- */

void scene_tell(const struct rh_actor *a, enum scene_event_type type)
{
    const struct scene_event event = {.type = type, .actor = a->outer};

    a->scene->config.on_event(a->scene->config.context, &event);
}

void scene_enter(const struct scene *s, const struct rh_actor *a)
{
    if (s->config.on_enter != NULL) {
        s->config.on_enter(s->config.context, a == NULL ? NULL : a->outer);
    }
}

static void tell_error(const struct rh_actor *a, enum scene_event_type type, enum err error)
{
    const struct scene_event event = {.type = type, .actor = a->outer, .error = error};

    a->scene->config.on_event(a->scene->config.context, &event);
}

void actor_complain(const struct rh_actor *a, const char *event, const char *what)
{
    char word[HISTORY_WORD_SIZE];

    log_warn("node",
             event,
             "kind=%u actor=%s id=%s what=\"%s\"",
             a->kind,
             a->ops->name,
             history_word(bytes_of(a->id, a->id_size), word),
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
    actor_complain(a, "bad_result", callback_name(a->callback));
    return RH_FAILED;
}

/* It has returned: is it through? */
// NOLINTNEXTLINE(misc-no-recursion): a flush, then a handoff, and no deeper
void actor_returned(struct rh_actor *a, int result)
{
    if (result == RH_PENDING && a->deferral != NULL) {
        a->deferred = true;
        scene_tell(a, SCENE_DEFERRED);
        calls_pump(a);
        return;
    }
    (void)deferral_drop(a); // It got a token, and has finished at once after all.
    actor_go_on(a, result);
}

void actor_flush(struct rh_actor *a, enum rh_why why)
{
    a->callback = CALLBACK_FLUSH;
    actor_returned(a, a->ops->flush(a, a->instance, why, a->fence));
}

/* Nothing of what ran is left. */
void actor_end_task(struct rh_actor *a)
{
    ASSERT(!a->deferred);
    (void)deferral_drop(a);
    timers_drop_after(a);
    a->task = TASK_NONE;
    a->callback = CALLBACK_NONE;
}

void actor_want_turn(struct rh_actor *a)
{
    const bool has = !list_empty(&a->due) || a->flush_due;

    if (has && !a->poked && !a->frozen && !a->broken && a->task != TASK_ACTIVATE) {
        a->poked = true;
        scene_tell(a, SCENE_POKE);
    }
}

bool actor_may_ask(const struct rh_actor *a)
{
    return a->callback == CALLBACK_ACTIVATE || a->callback == CALLBACK_MESSAGE ||
           a->callback == CALLBACK_FLUSH || a->callback == CALLBACK_PART;
}

static void actor_free(struct rh_actor *a)
{
    const struct scene_event gone = {.type = SCENE_GONE, .actor = a->outer, .session = a->session};

    if (a->has_called) {
        a->scene->config.on_event(a->scene->config.context, &gone);
    }
    (void)deferral_drop(a);
    calls_drop(a);
    timers_drop(a);
    if (a->out != NULL) {
        buffer_fini(&a->out->state);
        mem_free(a->out);
    }
    list_remove(&a->in_scene);
    a->scene->actor_count--;
    a->scene->saved_count -= a->saved ? 1 : 0;
    mem_free(a);
}

/* Its last callback can ask for nothing: what it had is taken away before. */
static void deactivate(struct rh_actor *a, enum rh_why why)
{
    (void)deferral_drop(a);
    a->callback = CALLBACK_END;
    a->ops->deactivate(a, a->instance, why);
}

/* ---- activate ---- */

static void activated(struct rh_actor *a, int result)
{
    actor_end_task(a);
    struct scene *s = a->scene;
    const struct scene_event refused = {
        .type = SCENE_ACTIVATED, .actor = a->outer, .error = ERR_REFUSED};

    if (result != RH_OK) {
        actor_free(a);
        s->config.on_event(s->config.context, &refused);
        return;
    }
    tell_error(a, SCENE_ACTIVATED, ERR_OK);
    flush_set(a);
    if (a->passivate) {
        scene_tell(a, SCENE_PASSIVATE);
    }
    actor_want_turn(a);
}

static struct rh_actor *actor_new(struct scene *s, const struct scene_entry *entry)
{
    struct rh_actor *a = mem_new(1, sizeof *a + entry->id.size);

    a->scene = s;
    a->ops = entry->ops;
    a->shared = entry->shared;
    a->outer = entry->actor;
    a->fence = entry->fence;
    a->kind = entry->kind;
    a->session = atomic_fetch_add(&last_session, 1) + 1;
    a->id_size = entry->id.size;
    memcpy(a->id, entry->id.data, entry->id.size);
    list_init(&a->after);
    list_init(&a->timers);
    list_init(&a->calls);
    list_init(&a->due);
    timer_init(a);
    list_push_back(&s->actors, &a->in_scene);
    s->actor_count++;
    return a;
}

struct rh_actor *scene_activate(struct scene *s, const struct scene_entry *entry)
{
    struct rh_actor *a = actor_new(s, entry);
    const struct rh_bytes state = {entry->state.data, entry->state.size};

    a->task = TASK_ACTIVATE;
    a->callback = CALLBACK_ACTIVATE;
    const int result =
        a->ops->activate(a, entry->has_state ? &state : NULL, a->fence, &a->instance);
    const bool refused = result != RH_OK && (result != RH_PENDING || a->deferral == NULL);
    actor_returned(a, result);
    return refused ? NULL : a;
}

/* ---- turns ---- */

static void end_turn(struct rh_actor *a)
{
    const struct scene_event event = {
        .type = SCENE_RAN, .actor = a->outer, .ticket = a->ticket, .code = ANSWER_OK};

    actor_end_task(a);
    a->scene->config.on_event(a->scene->config.context, &event);
    actor_want_turn(a);
}

static void take_due(struct rh_actor *a, struct due *due)
{
    a->callback = CALLBACK_PART;
    if (due->is_timer) {
        timer_fire(CONTAINER_OF(due, struct timer, due));
    } else {
        call_end(CONTAINER_OF(due, struct open_call, due));
    }
    a->callback = CALLBACK_NONE;
}

void scene_turn(struct rh_actor *a, uint64_t ticket)
{
    struct list_link *link = NULL;
    struct list now; // What becomes due meanwhile is for the next turn.

    ASSERT(a->task == TASK_NONE && !a->frozen);
    a->task = TASK_TURN;
    a->ticket = ticket;
    a->chain_count = 0;
    a->poked = false;
    list_init(&now);
    list_splice_back(&now, &a->due);
    while (!a->broken && (link = list_front(&now)) != NULL) {
        list_remove(link);
        take_due(a, CONTAINER_OF(link, struct due, link));
    }
    list_splice_back(&a->due, &now); // of one that broke
    if (!a->flush_due || a->broken) {
        end_turn(a);
        return;
    }
    a->flush_due = false;
    actor_flush(a, RH_PERIODIC);
}

/* ---- ending ---- */

static void retired(struct rh_actor *a, int result)
{
    actor_end_task(a);
    if (result != RH_OK) {
        tell_error(a, SCENE_RETIRED, ERR_IO);
        actor_want_turn(a);
        return;
    }
    void *outer = a->outer;
    struct scene *s = a->scene;

    deactivate(a, RH_IDLE);
    actor_free(a);
    const struct scene_event event = {.type = SCENE_RETIRED, .actor = outer, .error = ERR_OK};
    s->config.on_event(s->config.context, &event);
}

void scene_retire(struct rh_actor *a)
{
    ASSERT(a->task == TASK_NONE && !a->frozen);
    a->task = TASK_RETIRE;
    if (a->ops->flush != NULL) {
        actor_flush(a, RH_IDLE);
    } else {
        retired(a, RH_OK);
    }
}

void scene_discard(struct rh_actor *a, enum rh_why why)
{
    const bool failed = deferral_drop(a);

    if (a->deferred) {
        a->deferred = false;
        scene_tell(a, SCENE_FINISHED);
    }
    if (a->task != TASK_ACTIVATE || !failed) { // else there is no instance any more
        deactivate(a, why);
    }
    actor_free(a);
}

/* ---- going on with a task ---- */

static void note_saved(struct rh_actor *a)
{
    a->saved = true;
    a->scene->saved_count++;
    list_remove(&a->in_scene);
    list_push_back(&a->scene->saved, &a->in_scene);
}

// NOLINTNEXTLINE(misc-no-recursion): a flush, then a handoff, and no deeper
void actor_go_on(struct rh_actor *a, int result)
{
    const int checked = check_result(a, result);
    const bool handoff = a->callback == CALLBACK_HANDOFF;

    if (a->deferred) {
        a->deferred = false;
        scene_tell(a, SCENE_FINISHED);
    }
    a->callback = CALLBACK_NONE;
    switch (a->task) {
    case TASK_ACTIVATE:
        activated(a, checked);
        return;
    case TASK_TURN:
        flush_set(a); // Failed or not: again when its time comes.
        end_turn(a);
        return;
    case TASK_EXPORT:
        handoff ? actor_exported(a, checked) : actor_flushed_to_move(a, checked);
        return;
    case TASK_RETIRE:
        retired(a, checked);
        return;
    case TASK_SAVE:
        actor_end_task(a);
        if (checked == RH_OK) {
            note_saved(a);
        }
        return;
    case TASK_RUN: // actor_ran()
    case TASK_NONE:
        break;
    }
    UNREACHABLE();
}

/* ---- the scene ---- */

struct scene *scene_new(const struct scene_config *config)
{
    struct scene *s = mem_new(1, sizeof *s);

    s->config = *config;
    if (s->config.state_size_max == 0 || s->config.state_size_max > SCENE_STATE_MAX) {
        s->config.state_size_max = SCENE_STATE_MAX;
    }
    s->latch = latch_open(config);
    list_init(&s->actors);
    list_init(&s->saved);
    return s;
}

void scene_set_now(struct scene *s, uint64_t now_us)
{
    s->now_us = now_us;
}

void scene_tick(struct scene *s, uint64_t now_us)
{
    s->now_us = now_us;
    later_take(s);
    timers_run(s);
}

uint64_t scene_next_us(const struct scene *s)
{
    return s->alarms.count == 0 ? UINT64_MAX : s->alarms.heap[0]->at_us;
}

/* One that waits for its move, or is not there yet, has nothing to save of its own. */
static bool has_to_save(const struct rh_actor *a)
{
    return a->ops->flush != NULL && !a->frozen && a->task != TASK_ACTIVATE && !a->broken;
}

size_t scene_save(struct scene *s)
{
    const size_t left = s->actor_count - s->saved_count;

    for (size_t i = 0; i < SAVE_AT_ONCE && i < left; i++) {
        struct rh_actor *a = CONTAINER_OF(list_front(&s->actors), struct rh_actor, in_scene);

        list_remove(&a->in_scene);
        list_push_back(&s->actors, &a->in_scene); // The busy ones have their turn later.
        if (!has_to_save(a)) {
            note_saved(a);
        } else if (a->task == TASK_NONE) {
            a->task = TASK_SAVE;
            scene_enter(s, a);
            actor_flush(a, RH_STOP);
            scene_enter(s, NULL);
        }
    }
    return s->actor_count - s->saved_count;
}

void scene_close(struct scene *s, enum rh_why why)
{
    struct list_link *at;

    list_splice_back(&s->actors, &s->saved);
    while ((at = list_front(&s->actors)) != NULL) {
        scene_discard(CONTAINER_OF(at, struct rh_actor, in_scene), why);
    }
    latch_close(s->latch);
    table_fini(&s->calls);
    alarms_fini(&s->alarms);
    buffer_fini(&s->body);
    buffer_fini(&s->taken.bytes);
    mem_free(s->taken.item);
    mem_free(s);
}
