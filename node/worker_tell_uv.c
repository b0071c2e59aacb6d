/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker_inside_uv.h"

#include "base/clock.h"
#include "base/mem.h"

#include <string.h>

void worker_tell(struct worker *w, const struct entry *entry, struct bytes head, struct bytes rest)
{
    (void)pthread_mutex_lock(&w->telling_lock);
    if (!w->muted) {
        const bool first = w->telling.count == 0;

        telling_put(&w->telling, entry, head, rest);
        if (first) {
            w->config.on_told(w->config.context);
        }
    }
    (void)pthread_mutex_unlock(&w->telling_lock);
}

static bool is_gone(const struct scene_event *e)
{
    return (e->type == SCENE_ACTIVATED && e->error != ERR_OK) ||
           (e->type == SCENE_RETIRED && e->error == ERR_OK);
}

static void leave(struct worker *w)
{
    watchdog_leave(w->config.watchdog, w->config.index);
    blame_leave(w->config.blame);
    w->entered = NULL;
}

/* It is not looked at any more: the other side may free it once it is told. */
void worker_let_go(struct worker *w, struct rh_actor *r)
{
    if (w->entered == r) {
        leave(w);
    }
}

static void tell_call(struct worker *w, struct rh_actor *r, const struct call *call)
{
    const struct entry entry = {.type = TOLD_CALL, .resident = r};
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
    const struct entry entry = {.type = TOLD_PUSH, .resident = r, .number = push->gateway};
    struct buffer record = {0};

    push_put(&record, push);
    worker_tell(w, &entry, (struct bytes){0}, buffer_bytes(&record));
    buffer_fini(&record);
}

static uint64_t number_of(const struct scene_event *e)
{
    return e->type == SCENE_GONE || e->type == SCENE_BOUND ? e->session : e->ticket;
}

void worker_on_event(void *context, const struct scene_event *e)
{
    struct worker *w = context;
    struct rh_actor *r = e->actor;
    const struct entry entry = {.type = TOLD_SCENE,
                                .event = e->type,
                                .resident = r,
                                .number = number_of(e),
                                .error = e->error,
                                .code = e->code,
                                .has_state = e->has_state};

    if (e->type == SCENE_DEFERRED) {
        struct watched *deferred = mem_new(1, sizeof *deferred);

        *e->kept = deferred;
        watchdog_defer(w->config.watchdog, deferred, r, w->now_us);
        return;
    }
    if (e->type == SCENE_FINISHED) {
        watchdog_finish(w->config.watchdog, *e->kept);
        mem_free(*e->kept);
        return;
    }
    if (e->type == SCENE_CALL) {
        tell_call(w, r, e->call);
        return;
    }
    if (e->type == SCENE_PUSH) {
        tell_push(w, r, e->push);
        return;
    }
    if (is_gone(e)) {
        worker_let_go(w, r);
    }
    worker_tell(w, &entry, e->bond, e->bytes);
}

void worker_enter(struct worker *w, struct rh_actor *r)
{
    const struct named name = scene_name(r);

    w->entered = r;
    blame_enter(w->config.blame, name.kind, name.id, scene_hash(r));
    watchdog_enter(w->config.watchdog, w->config.index, r, w->now_us);
}

/* What took less than a microsecond is counted as often as the clock moves on during it, which is
 * right on the average, and costs no more than a look at the clock. */
static void note_busy(struct worker *w, const struct rh_actor *r, uint64_t us)
{
    const struct named name = scene_name(r);
    struct hot_counter c = {.hash = scene_hash(r),
                            .busy_us = us,
                            .tasks = 1,
                            .kind = name.kind,
                            .id_size = (uint8_t)name.id.size};

    memcpy(c.id, name.id.data, c.id_size);
    (void)pthread_mutex_lock(&w->hot_lock);
    hot_add(&w->hot, w->now_us, &c);
    (void)pthread_mutex_unlock(&w->hot_lock);
}

void worker_leave(struct worker *w)
{
    const uint64_t before_us = w->now_us;

    w->now_us = clock_boottime_us();
    if (w->entered == NULL) {
        return;
    }
    if (w->now_us > before_us) {
        note_busy(w, w->entered, w->now_us - before_us);
    }
    leave(w);
}

void worker_on_enter(void *context, void *actor)
{
    struct worker *w = context;

    if (actor == NULL) {
        worker_leave(w);
    } else {
        w->now_us = clock_boottime_us();
        worker_enter(w, actor);
    }
}
