/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker tells what became of its actors' tasks, and wakes the protocol
 * thread.
 */
#include "node/worker/inside_uv.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <string.h>

void worker_complete(struct worker *w, const struct completion *c)
{
    if (atomic_load_explicit(&w->muted, memory_order_relaxed)) {
        return;
    }
    w->at_once = NULL; // What comes now stands behind this.
    w->untold = true;
    completion_queue_put(&w->completed, c);
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
    if (atomic_exchange(&w->announced, true)) {
        return;
    }
    (void)pthread_mutex_lock(&w->announce_lock);
    if (!atomic_load(&w->muted)) {
        w->config.on_completed(w->config.context);
    }
    (void)pthread_mutex_unlock(&w->announce_lock);
}

void worker_ring_if_due(struct worker *w)
{
    if (w->unsaid > 0 && (w->wary > 0 || w->now_us - w->unsaid_us >= WORKER_RING_US)) {
        worker_ring(w);
    }
}

static void leave(struct worker *w)
{
    watchdog_leave(w->config.watchdog, w->config.index);
    crash_record_leave(w->config.crash_record);
    w->entered = NULL;
}

static void complete_push(struct worker *w, const struct completion *c)
{
    struct completion packed = {.verb = VERB_PUSH, .actor = c->actor, .number = c->push->gateway};
    struct buffer record = {0};

    push_put(&record, c->push);
    packed.bytes = buffer_bytes(&record);
    worker_complete(w, &packed);
    buffer_fini(&record);
}

static struct watched *watch_deferred(struct worker *w, const struct rh_actor *r)
{
    struct watched *deferred = mem_new(1, sizeof *deferred);

    watchdog_defer(w->config.watchdog, deferred, r, w->now_us);
    return deferred;
}

/* The protocol thread makes the call, and what its actor said before was heard. */
static bool calls_at_once(const struct worker *w)
{
    return w->runs_inline && w->config.on_call != NULL &&
           (completion_queue_is_empty(&w->completed) || mutant(M_CALLAHEAD)) &&
           !atomic_load_explicit(&w->muted, memory_order_relaxed);
}

void worker_on_completion(void *context, const struct completion *c)
{
    struct worker *w = context;

    if (c->verb == VERB_DEFER) {
        *c->kept = w->saving ? NULL : watch_deferred(w, c->actor);
        return;
    }
    if (c->verb == VERB_FINISH) {
        if (*c->kept != NULL) {
            watchdog_finish(w->config.watchdog, *c->kept);
            mem_free(*c->kept);
        }
        return;
    }
    if (c->verb == VERB_PUSH) {
        complete_push(w, c);
        return;
    }
    if (c->verb == VERB_CALL && calls_at_once(w)) {
        w->config.on_call(w->config.context, c);
        return;
    }
    // It is not looked at any more: the other side may free it once it is told.
    if (completion_ends(c) && w->entered == c->actor) {
        leave(w);
    }
    worker_complete(w, c);
}

/* To the host, for the cost of its vnode. Not while requests are served: their answers are given
 * back at once only as long as nothing else was told. */
static void tell_spent(struct worker *w, uint64_t us)
{
    const struct completion c = {.verb = VERB_SPENT, .actor = w->entered, .number = us};

    if (w->doing != NULL || !w->runs_inline) {
        worker_complete(w, &c);
    }
}

void worker_note_busy(struct worker *w, uint64_t us)
{
    const struct rh_actor *r = w->entered;
    const struct named name = activation_name(r);
    struct profile_counter c = {.hash = activation_hash(r),
                                .busy_us = w->unnoted_us,
                                .tasks = w->unnoted_us / us,
                                .kind = name.kind,
                                .id_size = (uint8_t)name.id.size};

    memcpy(c.id, name.id.data, c.id_size);
    w->unnoted_us = 0;
    (void)atomic_fetch_add_explicit(&w->busy_us, c.busy_us, memory_order_relaxed);
    (void)pthread_mutex_lock(&w->profile_lock);
    profile_add(&w->profile, w->now_us, &c);
    (void)pthread_mutex_unlock(&w->profile_lock);
    tell_spent(w, c.busy_us);
}

void worker_find_handler(struct worker *w, uint16_t kind)
{
    // Only hosted kinds are entered.
    w->handler = &w->handlers.row[latencies_row(&w->handlers, kind)].of[0];
    w->handler_kind = kind;
}

void worker_enter(struct worker *w, struct rh_actor *r)
{
    worker_enter_named(w, r, activation_name(r), w->saving);
}

void worker_leave(struct worker *w)
{
    worker_look_at_clock(w);
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
