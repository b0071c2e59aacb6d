/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker/inside_uv.h"

#include "base/clock.h"
#include "base/mem.h"

#include <string.h>

enum {
    RING_US = 50,    /* what was told waits no longer for the end of its batch */
    WARY_TASKS = 64, /* so long is not forgotten that one took longer */
    PROFILE_US = 50, /* less time than that is not noted in a counter */
};

void worker_tell(struct worker *w, const struct entry *entry, struct bytes head, struct bytes rest)
{
    if (atomic_load_explicit(&w->muted, memory_order_relaxed)) {
        return;
    }
    telling_put(&w->telling, entry, head, rest);
    if (w->unsaid++ == 0) {
        w->unsaid_us = w->now_us;
    }
}

void worker_ring(struct worker *w)
{
    if (w->unsaid == 0) {
        return;
    }
    w->unsaid = 0;
    if (w->runs_inline) {
        return; // It tells itself.
    }
    // Once until all was taken. Who takes clears it before it looks for the last time.
    if (atomic_exchange(&w->told_of, true)) {
        return;
    }
    (void)pthread_mutex_lock(&w->told_lock);
    if (!atomic_load(&w->muted)) {
        w->config.on_told(w->config.context);
    }
    (void)pthread_mutex_unlock(&w->told_lock);
}

void worker_ring_if_due(struct worker *w)
{
    if (w->unsaid > 0 && (w->wary > 0 || w->now_us - w->unsaid_us >= RING_US)) {
        worker_ring(w);
    }
}

static bool is_gone(const struct runtime_event *e)
{
    return (e->type == RUNTIME_ACTIVATED && e->error != ERR_OK) ||
           (e->type == RUNTIME_RETIRED && e->error == ERR_OK);
}

static void leave(struct worker *w)
{
    watchdog_leave(w->config.watchdog, w->config.index);
    crash_record_leave(w->config.crash_record);
    w->entered = NULL;
}

/* It is not looked at any more: the other side may free it once it is told. */
void worker_let_go(struct worker *w, struct rh_actor *r)
{
    if (w->entered == r) {
        leave(w);
    }
}

void worker_tell_discarded(struct worker *w, struct rh_actor *r)
{
    const struct entry entry = {.type = TOLD_DISCARDED, .activation = r};

    worker_let_go(w, r);
    worker_tell(w, &entry, (struct bytes){0}, (struct bytes){0});
}

static void tell_call(struct worker *w, struct rh_actor *r, const struct call *call)
{
    const struct entry entry = {.type = TOLD_CALL, .activation = r};
    struct bytes fixed = bytes_of(call, sizeof *call);
    struct buffer rest = {0};

    buffer_put(&rest, call->from.data, call->from.size);
    buffer_put(&rest, call->id.data, call->id.size);
    buffer_put(&rest, call->payload.data, call->payload.size);
    worker_tell(w, &entry, fixed, buffer_bytes(&rest));
    buffer_fini(&rest);
}

static void tell_push(struct worker *w, struct rh_actor *r, const struct push_record *push)
{
    const struct entry entry = {.type = TOLD_PUSH, .activation = r, .number = push->gateway};
    struct buffer record = {0};

    push_put(&record, push);
    worker_tell(w, &entry, (struct bytes){0}, buffer_bytes(&record));
    buffer_fini(&record);
}

static uint64_t number_of(const struct runtime_event *e)
{
    return e->type == RUNTIME_GONE || e->type == RUNTIME_BOUND || e->type == RUNTIME_EXPORTED
               ? e->session
               : e->ticket;
}

static struct watched *watch_deferred(struct worker *w, const struct rh_actor *r)
{
    struct watched *deferred = mem_new(1, sizeof *deferred);

    watchdog_defer(w->config.watchdog, deferred, r, w->now_us);
    return deferred;
}

void worker_on_event(void *context, const struct runtime_event *e)
{
    struct worker *w = context;
    struct rh_actor *r = e->actor;
    const struct entry entry = {.type = TOLD_RUNTIME,
                                .event = e->type,
                                .activation = r,
                                .number = number_of(e),
                                .error = e->error,
                                .code = e->code,
                                .has_state = e->has_state};

    if (e->type == RUNTIME_DEFERRED) {
        *e->kept = w->saving ? NULL : watch_deferred(w, r);
        return;
    }
    if (e->type == RUNTIME_FINISHED) {
        if (*e->kept != NULL) {
            watchdog_finish(w->config.watchdog, *e->kept);
            mem_free(*e->kept);
        }
        return;
    }
    if (e->type == RUNTIME_PARTED) {
        worker_tell_discarded(w, r);
        return;
    }
    if (e->type == RUNTIME_CALL) {
        tell_call(w, r, e->call);
        return;
    }
    if (e->type == RUNTIME_PUSH) {
        tell_push(w, r, e->push);
        return;
    }
    if (is_gone(e)) {
        worker_let_go(w, r);
    }
    worker_tell(w, &entry, e->bond, e->bytes);
}

/* Its time is up to now. Short tasks are not noted one by one: whoever is at work when PROFILE_US
 * have come together gets them all, which is right on the average, as what takes less than a
 * microsecond is when the clock moves on during it. So he has done as many tasks like this as fit
 * into them. */
static void note_busy(struct worker *w, uint64_t us)
{
    const struct rh_actor *r = w->entered;

    w->wary = us >= RING_US ? WARY_TASKS : w->wary - (w->wary > 0 ? 1 : 0);
    w->unnoted_us += us;
    if (us == 0 || w->unnoted_us < PROFILE_US) {
        return;
    }
    const struct named name = activation_name(r);
    struct profile_counter c = {.hash = activation_hash(r),
                                .busy_us = w->unnoted_us,
                                .tasks = w->unnoted_us / us,
                                .kind = name.kind,
                                .id_size = (uint8_t)name.id.size};

    memcpy(c.id, name.id.data, c.id_size);
    w->unnoted_us = 0;
    (void)pthread_mutex_lock(&w->profile_lock);
    profile_add(&w->profile, w->now_us, &c);
    (void)pthread_mutex_unlock(&w->profile_lock);
}

static void look_at_clock(struct worker *w)
{
    const uint64_t before_us = w->now_us;

    w->now_us = clock_boottime_us();
    if (w->entered != NULL) {
        note_busy(w, w->now_us - before_us);
    }
}

/* The clock is read while the watchdog can see an actor here: this one, or the one before it, which
 * has not been left. So what begins too late after all is not overlooked (hole 30). */
void worker_enter(struct worker *w, struct rh_actor *r)
{
    const struct named name = activation_name(r);

    if (w->entered == NULL && !w->saving) {
        watchdog_enter(w->config.watchdog, w->config.index, r, w->now_us);
    }
    look_at_clock(w);
    w->entered = r;
    crash_record_enter(w->config.crash_record, name.kind, name.id);
    if (!w->saving) {
        watchdog_go_on(w->config.watchdog, w->config.index, r, w->now_us);
    }
}

void worker_leave(struct worker *w)
{
    look_at_clock(w);
    if (w->entered != NULL) {
        leave(w);
    }
}

void worker_on_enter(void *context, void *actor)
{
    struct worker *w = context;

    if (actor == NULL) {
        worker_leave(w);
    } else {
        worker_enter(w, actor);
    }
}
