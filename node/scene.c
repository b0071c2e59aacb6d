/* SPDX-License-Identifier: Apache-2.0 */
#include "node/scene_inside.h"

#include "base/assert.h"
#include "base/history.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/args.h"

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
static void returned(struct rh_actor *a, int result)
{
    if (result == RH_PENDING && a->deferral != NULL) {
        a->deferred = true;
        scene_tell(a, SCENE_DEFERRED);
        calls_pump(a);
        return;
    }
    deferral_drop(a); // It got a token, and has finished at once after all.
    actor_go_on(a, result);
}

static void flush(struct rh_actor *a, enum rh_why why)
{
    a->callback = CALLBACK_FLUSH;
    returned(a, a->ops->flush(a, a->instance, why, a->fence));
}

/* Nothing of what ran is left. */
static void end_task(struct rh_actor *a)
{
    ASSERT(!a->deferred);
    deferral_drop(a);
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
    deferral_drop(a);
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
    deferral_drop(a);
    a->callback = CALLBACK_END;
    a->ops->deactivate(a, a->instance, why);
}

/* ---- activate ---- */

static void activated(struct rh_actor *a, int result)
{
    end_task(a);
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
    returned(a, result);
    return refused ? NULL : a;
}

/* ---- messages ---- */

void actor_ran(struct rh_actor *a, enum answer_code code, struct bytes body)
{
    const struct scene_event event = {
        .type = SCENE_RAN, .actor = a->outer, .ticket = a->ticket, .code = code, .bytes = body};

    if (a->deferred) {
        a->deferred = false;
        scene_tell(a, SCENE_FINISHED);
        end_task(a);
    }
    a->answered = true;
    timers_drop_after(a);
    a->scene->config.on_event(a->scene->config.context, &event);
    if (a->task == TASK_NONE) {
        actor_want_turn(a);
    }
}

/* Point the message at the body's arguments; false if they do not decode. */
static bool open_arguments(struct bytes body, struct rh_bytes list[ARGS_MAX],
                           struct rh_message *message)
{
    struct args args;

    if (args_get(body, &args) != ERR_OK) {
        return false;
    }
    for (size_t i = 0; i < args.count; i++) {
        list[i] = (struct rh_bytes){args.arg[i].data, args.arg[i].size};
    }
    message->argument = list;
    message->argument_count = args.count;
    return true;
}

static uint32_t message_flags(uint8_t flags)
{
    return ((flags & REQUEST_NO_REPLY) != 0 ? RH_NO_REPLY : 0u) |
           ((flags & REQUEST_IDEMPOTENT) != 0 ? RH_IDEMPOTENT : 0u);
}

static void open_message(struct rh_actor *a, const struct scene_message *m)
{
    ASSERT(a->task == TASK_NONE && !a->frozen);
    a->task = TASK_RUN;
    a->callback = CALLBACK_MESSAGE;
    a->answered = false;
    a->ticket = m->ticket;
    a->flags = m->flags;
    a->chain_count = m->chain_count;
    if (m->chain_count > 0) {
        memcpy(a->chain, m->chain, m->chain_count * sizeof a->chain[0]);
    }
}

/* False if it does not decode; its sender is one of us, so that is nobody's actor. */
static bool open_body(const struct scene_message *m, struct rh_bytes list[ARGS_MAX],
                      struct rh_message *message)
{
    struct bytes body = m->body;
    struct caller caller = {0};

    if ((m->flags & REQUEST_CALL) != 0 && caller_get(&body, &caller) != ERR_OK) {
        return false;
    }
    message->from_kind = caller.kind;
    message->from = (struct rh_bytes){caller.id.data, caller.id.size};
    if ((m->flags & REQUEST_COMMAND) != 0) {
        return open_arguments(body, list, message);
    }
    message->payload = (struct rh_bytes){body.data, body.size};
    return true;
}

void scene_run(struct rh_actor *a, const struct scene_message *m)
{
    struct rh_bytes list[ARGS_MAX];
    struct rh_message message = {.flags = message_flags(m->flags)};

    open_message(a, m);
    if (open_body(m, list, &message)) {
        a->ops->message(a, a->instance, &message);
    } else {
        (void)rh_reply(a, rh_error("ERR the command does not decode"));
    }
    if (!a->answered && a->deferral != NULL) {
        a->deferred = true;
        scene_tell(a, SCENE_DEFERRED);
        calls_pump(a);
        return;
    }
    if (!a->answered) {
        (void)rh_reply(a, rh_nil());
    }
    end_task(a);
    actor_want_turn(a);
}

/* ---- turns ---- */

static void end_turn(struct rh_actor *a)
{
    const struct scene_event event = {
        .type = SCENE_RAN, .actor = a->outer, .ticket = a->ticket, .code = ANSWER_OK};

    end_task(a);
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
    flush(a, RH_PERIODIC);
}

/* ---- moving, ending ---- */

static void drop_out(struct rh_actor *a)
{
    buffer_fini(&a->out->state);
    mem_free(a->out);
    a->out = NULL;
}

static void exported(struct rh_actor *a, int result)
{
    struct rh_out *out = a->out;
    struct scene_event event = {.type = SCENE_EXPORTED, .actor = a->outer};

    end_task(a);
    if (result == RH_BUSY) {
        event.error = ERR_BUSY;
    } else {
        a->frozen = true;
        a->poked = false;
        event.has_state = result == RH_OK && !out->over;
        event.bytes = event.has_state ? buffer_bytes(&out->state) : (struct bytes){0};
        if (out->over) {
            actor_complain(a, "state_too_big", "it moves cold: handoff wrote over state_max");
        }
    }
    a->scene->config.on_event(a->scene->config.context, &event);
    drop_out(a);
    if (result == RH_BUSY) {
        actor_want_turn(a);
    }
}

static size_t state_size_max(const struct rh_actor *a)
{
    const size_t wanted = a->ops->state_max == 0 ? SCENE_STATE_DEFAULT : a->ops->state_max;
    const size_t granted = a->scene->config.state_size_max;

    return wanted < granted ? wanted : granted;
}

// NOLINTNEXTLINE(misc-no-recursion): a flush, then a handoff, and no deeper
static void hand_off(struct rh_actor *a)
{
    a->out = mem_new(1, sizeof *a->out);
    a->out->size_max = state_size_max(a);
    if (a->ops->handoff == NULL) {
        exported(a, RH_OK);
        return;
    }
    a->callback = CALLBACK_HANDOFF;
    returned(a, a->ops->handoff(a, a->instance, a->out));
}

void scene_export(struct rh_actor *a)
{
    ASSERT(a->task == TASK_NONE && !a->frozen);
    a->task = TASK_EXPORT;
    if (a->ops->flush != NULL) {
        flush(a, RH_MOVED);
    } else {
        hand_off(a);
    }
}

/* Its flush for the move is through. */
// NOLINTNEXTLINE(misc-no-recursion): a flush, then a handoff, and no deeper
static void flushed_to_move(struct rh_actor *a, int result)
{
    const struct scene_event event = {.type = SCENE_EXPORTED, .actor = a->outer, .error = ERR_BUSY};

    if (result == RH_OK) {
        hand_off(a);
        return;
    }
    end_task(a);
    a->scene->config.on_event(a->scene->config.context, &event);
    actor_want_turn(a);
}

void scene_unfreeze(struct rh_actor *a)
{
    ASSERT(a->task == TASK_NONE && a->frozen);
    a->frozen = false;
    if (a->ops->resume != NULL) {
        a->callback = CALLBACK_RESUME;
        a->ops->resume(a, a->instance);
        a->callback = CALLBACK_NONE;
    }
    actor_want_turn(a);
}

static void retired(struct rh_actor *a, int result)
{
    end_task(a);
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
        flush(a, RH_IDLE);
    } else {
        retired(a, RH_OK);
    }
}

void scene_discard(struct rh_actor *a, enum rh_why why)
{
    if (a->deferred) {
        deferral_drop(a);
        a->deferred = false;
        scene_tell(a, SCENE_FINISHED);
    }
    deactivate(a, why);
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
        handoff ? exported(a, checked) : flushed_to_move(a, checked);
        return;
    case TASK_RETIRE:
        retired(a, checked);
        return;
    case TASK_SAVE:
        end_task(a);
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
            flush(a, RH_STOP);
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
