/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker_uv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    TICK_US = 5000,     /* timers wait no longer behind messages */
    SLEEP_US = 1000000, /* then the clock is looked at again: the machine may have slept */
    GATED_US = 20000,   /* past the lease: how often to look whether it is back */
    SAVE_US = 20000,    /* between two looks at what is still to be flushed */
};

/* The answer of a call that came after the lease's end. */
struct late_answer {
    uint64_t number;
    int status;
    size_t size;
};

struct worker {
    struct worker_config config;
    pthread_t thread;
    int fd; /* embedded: of its bell; else -1 */

    /* The worker's own. */
    struct scene *scene;
    struct batch *doing;
    struct resident *entered; /* it is in this one's code */
    uint64_t now_us;          /* read last */
    uint64_t tick_us;
    bool closed;                /* embedded: it has ended */
    struct buffer late_answers; /* struct late_answer and payload, one after the other */

    /* The protocol thread's own. */
    struct batch *making; /* NULL = none */
    struct batches spare; /* empty ones */
    struct batch *first_sent;
    struct batch *last_sent;
    struct telling taken;
    struct told told; /* what worker_take() returned last */

    atomic_bool stopping; /* begin nothing any more */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t bell;  /* for the worker, and for who waits for its end */
    struct batches waiting;
    struct batches done;
    bool rung; /* scene_tick() has something to do */
    bool sleeping;
    bool ended;
    uint64_t save_until_us;

    pthread_mutex_t hot_lock; /* the next */
    struct hot hot;

    pthread_mutex_t telling_lock; /* the next two */
    struct telling telling;
    bool muted;
};

/* ---- the bell */

/* Under the lock. */
static void wake(struct worker *w)
{
    if (w->fd >= 0) {
        const uint64_t one = 1;

        (void)!write(w->fd, &one, sizeof one);
    } else if (w->sleeping) {
        (void)pthread_cond_signal(&w->bell);
    }
}

/* From any thread: of the scene. */
static void on_later(void *context)
{
    struct worker *w = context;

    (void)pthread_mutex_lock(&w->lock);
    if (!w->rung) {
        w->rung = true;
        wake(w);
    }
    (void)pthread_mutex_unlock(&w->lock);
}

/* ---- telling */

static void tell(struct worker *w, const struct entry *entry, struct bytes head, struct bytes rest)
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

/* It is not looked at any more: the other side may free it once it is told. */
static void let_go(struct worker *w, struct resident *r)
{
    r->on_stage = NULL;
    if (w->entered == r) {
        watchdog_leave(w->config.watchdog, w->config.index);
        w->entered = NULL;
    }
}

static void tell_call(struct worker *w, struct resident *r, const struct call *call)
{
    const struct entry entry = {.type = TOLD_CALL, .resident = r};
    struct bytes fixed = bytes_of(call, sizeof *call);
    struct buffer rest = {0};

    buffer_put(&rest, call->from.data, call->from.size);
    buffer_put(&rest, call->id.data, call->id.size);
    buffer_put(&rest, call->payload.data, call->payload.size);
    tell(w, &entry, fixed, buffer_bytes(&rest));
    buffer_fini(&rest);
}

static void on_event(void *context, const struct scene_event *e)
{
    struct worker *w = context;
    struct resident *r = e->actor;
    const struct entry entry = {.type = TOLD_SCENE,
                                .event = e->type,
                                .resident = r,
                                .number = e->type == SCENE_GONE ? e->session : e->ticket,
                                .error = e->error,
                                .code = e->code,
                                .has_state = e->has_state};

    if (e->type == SCENE_DEFERRED) {
        watchdog_defer(w->config.watchdog, &r->watched, w->now_us);
        return;
    }
    if (e->type == SCENE_FINISHED) {
        watchdog_finish(w->config.watchdog, &r->watched);
        return;
    }
    if (e->type == SCENE_CALL) {
        tell_call(w, r, e->call);
        return;
    }
    if (is_gone(e)) {
        let_go(w, r);
    }
    tell(w, &entry, (struct bytes){0}, e->bytes);
}

static void enter(struct worker *w, struct resident *r)
{
    w->entered = r;
    watchdog_enter(w->config.watchdog, w->config.index, &r->watched, w->now_us);
}

/* What took less than a microsecond is counted as often as the clock moves on during it, which is
 * right on the average, and costs no more than a look at the clock. */
static void note_busy(struct worker *w, const struct resident *r, uint64_t us)
{
    struct hot_counter c = {.hash = r->hash,
                            .busy_us = us,
                            .tasks = 1,
                            .kind = r->watched.kind,
                            .id_size = (uint8_t)r->watched.id.size};

    memcpy(c.id, r->watched.id.data, c.id_size);
    (void)pthread_mutex_lock(&w->hot_lock);
    hot_add(&w->hot, w->now_us, &c);
    (void)pthread_mutex_unlock(&w->hot_lock);
}

static void leave(struct worker *w)
{
    const uint64_t before_us = w->now_us;

    w->now_us = clock_boottime_us();
    if (w->entered == NULL) {
        return;
    }
    if (w->now_us > before_us) {
        note_busy(w, w->entered, w->now_us - before_us);
    }
    watchdog_leave(w->config.watchdog, w->config.index);
    w->entered = NULL;
}

static void on_enter(void *context, void *actor)
{
    struct worker *w = context;

    if (actor == NULL) {
        leave(w);
    } else {
        w->now_us = clock_boottime_us();
        enter(w, actor);
    }
}

/* ---- doing */

static uint64_t limit_us(const struct worker *w, enum post_type type)
{
    switch (type) {
    case POST_ACTIVATE:
    case POST_RUN:
    case POST_TURN:
    case POST_RETIRE:
        return atomic_load(&w->config.limits->start_us);
    case POST_EXPORT:
    case POST_UNFREEZE:
        return atomic_load(&w->config.limits->gate_us);
    case POST_DISCARD:
    case POST_ANSWER:
        return UINT64_MAX;
    }
    UNREACHABLE();
}

static bool is_past_the_end(const struct worker *w)
{
    return w->now_us >= atomic_load(&w->config.limits->hard_end_us);
}

static struct entry returned(const struct post *p)
{
    return (struct entry){.type = TOLD_RETURNED,
                          .returned = p->type,
                          .resident = p->resident,
                          .number = p->number,
                          .flags = p->flags,
                          .chain_count = p->chain_count};
}

static void give_back(struct worker *w, const struct post *p)
{
    const struct entry entry = returned(p);

    tell(w, &entry, batch_chain(w->doing, p), batch_bytes(w->doing, p));
}

static void activate(struct worker *w, const struct post *p)
{
    struct resident *r = p->resident;
    const struct scene_entry entry = {.ops = &r->kind->ops,
                                      .shared = r->kind->shared,
                                      .actor = r,
                                      .id = r->watched.id,
                                      .state = batch_bytes(w->doing, p),
                                      .has_state = p->has_state,
                                      .kind = r->watched.kind,
                                      .fence = r->fence};
    struct rh_actor *actor = scene_activate(w->scene, &entry);

    if (actor != NULL) { // else the record may be gone by now
        r->on_stage = actor;
    }
}

static void run(struct worker *w, const struct post *p)
{
    uint64_t chain[RECORD_CHAIN_MAX];
    const struct bytes packed = batch_chain(w->doing, p);
    const struct scene_message message = {.ticket = p->number,
                                          .flags = p->flags,
                                          .body = batch_bytes(w->doing, p),
                                          .chain_count = p->chain_count,
                                          .chain = chain};

    if (packed.size > 0) {
        memcpy(chain, packed.data, packed.size);
    }
    scene_run(p->resident->on_stage, &message);
}

static void discard(struct worker *w, const struct post *p)
{
    struct resident *r = p->resident;
    const struct entry entry = {.type = TOLD_DISCARDED, .resident = r};

    if (r->on_stage != NULL) {
        scene_discard(r->on_stage, (enum rh_why)p->status);
    }
    let_go(w, r);
    tell(w, &entry, (struct bytes){0}, (struct bytes){0});
}

static void answer(struct worker *w, uint64_t number, int status, struct bytes payload)
{
    const struct call_answer a = {.number = number, .status = status, .payload = payload};

    scene_answer(w->scene, &a);
}

/* Code of an actor that is deferred: not past the hard end, even if the watchdog lets it be. */
static void answer_in_time(struct worker *w, const struct post *p)
{
    const struct bytes payload = batch_bytes(w->doing, p);
    const struct late_answer late = {p->number, p->status, payload.size};

    if (!is_past_the_end(w)) {
        answer(w, p->number, p->status, payload);
        return;
    }
    buffer_put(&w->late_answers, &late, sizeof late);
    buffer_put(&w->late_answers, payload.data, payload.size);
}

static void hand_out_late(struct worker *w)
{
    struct buffer all = w->late_answers;
    struct late_answer late;

    w->late_answers = (struct buffer){0};
    for (size_t at = 0; at < all.size; at += sizeof late + late.size) {
        memcpy(&late, all.data + at, sizeof late);
        answer(w, late.number, late.status, bytes_of(all.data + at + sizeof late, late.size));
    }
    buffer_fini(&all);
}

static void begin(struct worker *w, const struct post *p)
{
    struct resident *r = p->resident;

    switch (p->type) {
    case POST_ACTIVATE:
        activate(w, p);
        return;
    case POST_RUN:
        run(w, p);
        return;
    case POST_TURN:
        scene_turn(r->on_stage, p->number);
        return;
    case POST_EXPORT:
        scene_export(r->on_stage);
        return;
    case POST_UNFREEZE:
        scene_unfreeze(r->on_stage);
        return;
    case POST_RETIRE:
        scene_retire(r->on_stage);
        return;
    case POST_DISCARD:
        discard(w, p);
        return;
    case POST_ANSWER:
        answer_in_time(w, p);
        return;
    }
    UNREACHABLE();
}

static void tick(struct worker *w)
{
    // Timers are code of tasks that run: not past the hard end, even if the watchdog lets them be.
    if (!is_past_the_end(w)) {
        w->tick_us = w->now_us;
        hand_out_late(w);
        scene_tick(w->scene, w->now_us);
    }
}

/* The clock is read after the task was made and right before it is begun (hole 30), and after the
 * watchdog can see it: what begins too late after all is not overlooked. */
static bool begins_in_time(struct worker *w, const struct post *p)
{
    if (w->now_us >= limit_us(w, p->type)) {
        return false;
    }
    if (p->resident != NULL) {
        enter(w, p->resident);
    }
    w->now_us = clock_boottime_us();
    return w->now_us < limit_us(w, p->type);
}

static void do_one(struct worker *w, struct post *p)
{
    int queued = POST_QUEUED;

    if (!atomic_compare_exchange_strong(&p->state, &queued, POST_STARTED) ||
        (atomic_load(&w->stopping) && p->type != POST_DISCARD)) {
        return;
    }
    if (begins_in_time(w, p)) {
        begin(w, p);
        leave(w);
    } else {
        leave(w);
        give_back(w, p);
    }
    if (w->now_us - w->tick_us >= TICK_US) {
        tick(w);
    }
}

static void do_batch(struct worker *w, struct batch *b)
{
    w->doing = b;
    w->now_us = clock_boottime_us();
    scene_set_now(w->scene, w->now_us);
    for (size_t i = 0; i < b->count; i++) {
        do_one(w, &b->item[i]);
    }
    w->doing = NULL;
}

/* ---- waiting */

/* How long it may sleep. */
static uint64_t idle_us(struct worker *w)
{
    const uint64_t next_us = scene_next_us(w->scene);

    w->now_us = clock_boottime_us();
    if (is_past_the_end(w)) {
        return GATED_US;
    }
    if (next_us <= w->now_us || w->late_answers.size > 0) {
        return 0;
    }
    return next_us - w->now_us < SLEEP_US ? next_us - w->now_us : SLEEP_US;
}

/* Under the lock. */
static bool has_work(const struct worker *w)
{
    return w->waiting.first != NULL || w->rung || atomic_load(&w->stopping);
}

static struct timespec monotonic_in(uint64_t us)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += (long)(us % 1000000) * 1000;
    at.tv_sec += (time_t)(us / 1000000) + at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static void sleep_until_rung(struct worker *w, uint64_t us)
{
    const struct timespec at = monotonic_in(us);

    (void)pthread_mutex_lock(&w->lock);
    w->sleeping = true;
    while (!has_work(w) && pthread_cond_timedwait(&w->bell, &w->lock, &at) == 0) {
    }
    w->sleeping = false;
    (void)pthread_mutex_unlock(&w->lock);
}

/* Embedded: the descriptor is readable as long as there is work. */
static void poll_until_rung(const struct worker *w, uint64_t us)
{
    struct pollfd fd = {.fd = w->fd, .events = POLLIN};

    (void)poll(&fd, 1, (int)((us + 999) / 1000));
}

static void stop_ringing(const struct worker *w)
{
    uint64_t rung = 0;

    if (w->fd >= 0) {
        (void)!read(w->fd, &rung, sizeof rung);
    }
}

/* ---- working */

/* Do what is there. False = it has to end. */
static bool work(struct worker *w)
{
    struct batch *b = NULL;

    stop_ringing(w);
    (void)pthread_mutex_lock(&w->lock);
    w->rung = false;
    b = batches_take(&w->waiting);
    (void)pthread_mutex_unlock(&w->lock);
    while (b != NULL) {
        do_batch(w, b);
        (void)pthread_mutex_lock(&w->lock);
        batches_put(&w->done, b);
        b = batches_take(&w->waiting);
        (void)pthread_mutex_unlock(&w->lock);
    }
    w->now_us = clock_boottime_us();
    tick(w);
    return !atomic_load(&w->stopping);
}

/* Flush what can be, as long as the lease lasts. */
static void save_all(struct worker *w, uint64_t until_us)
{
    size_t left = 0;
    size_t before = 0;

    do {
        const struct timespec pause = {.tv_nsec = SAVE_US * 1000L};

        before = left;
        w->now_us = clock_boottime_us();
        if (w->now_us >= until_us || w->now_us >= limit_us(w, POST_RUN)) {
            return;
        }
        tick(w);
        left = scene_save(w->scene);
        if (left == before && left > 0) {
            (void)nanosleep(&pause, NULL);
        }
    } while (left > 0);
}

static void end(struct worker *w)
{
    (void)pthread_mutex_lock(&w->lock);
    const uint64_t save_until_us = w->save_until_us;
    (void)pthread_mutex_unlock(&w->lock);
    (void)work(w); // discards that came last
    if (save_until_us > 0) {
        save_all(w, save_until_us);
    }
    scene_close(w->scene, RH_STOP);
    (void)pthread_mutex_lock(&w->lock);
    w->ended = true;
    (void)pthread_cond_broadcast(&w->bell);
    (void)pthread_mutex_unlock(&w->lock);
}

static void *run_worker(void *argument)
{
    struct worker *w = argument;

    while (work(w)) {
        const uint64_t us = idle_us(w);

        if (us > 0) {
            sleep_until_rung(w, us);
        }
    }
    end(w);
    return NULL;
}

/* ---- worker_uv.h: making */

static bool start(struct worker *w)
{
    if (w->config.embedded) {
        w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        return w->fd >= 0;
    }
    return pthread_create(&w->thread, NULL, run_worker, w) == 0;
}

struct worker *worker_new(const struct worker_config *config)
{
    struct worker *w = mem_new(1, sizeof *w);
    const struct scene_config scene = {
        .on_event = on_event,
        .on_enter = on_enter,
        .on_later = on_later,
        .context = w,
        .state_size_max = config->state_size_max,
        .worker = config->index,
    };
    pthread_condattr_t monotonic;

    w->config = *config;
    w->fd = -1;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_mutex_init(&w->telling_lock, NULL);
    (void)pthread_mutex_init(&w->hot_lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->bell, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    w->scene = scene_new(&scene);
    if (!start(w)) {
        scene_close(w->scene, RH_STOP);
        worker_free(w);
        return NULL;
    }
    return w;
}

void worker_free(struct worker *w)
{
    struct batch *b;

    while ((b = batches_take(&w->waiting)) != NULL || (b = batches_take(&w->done)) != NULL ||
           (b = batches_take(&w->spare)) != NULL) {
        batch_free(b);
    }
    batch_free(w->making);
    telling_fini(&w->taken);
    telling_fini(&w->telling);
    buffer_fini(&w->late_answers);
    (void)pthread_cond_destroy(&w->bell);
    (void)pthread_mutex_destroy(&w->lock);
    (void)pthread_mutex_destroy(&w->telling_lock);
    (void)pthread_mutex_destroy(&w->hot_lock);
    if (w->fd >= 0) {
        (void)close(w->fd);
    }
    mem_free(w);
}

/* ---- the protocol thread */

void worker_post(struct worker *w, const struct post *post, const uint64_t *chain,
                 struct bytes bytes)
{
    if (w->making == NULL) {
        w->making = batches_take(&w->spare);
    }
    if (w->making == NULL) {
        w->making = mem_new(1, sizeof *w->making);
    }
    batch_put(w->making, post, chain, bytes);
}

/* What is done comes back in the order in which it was sent. */
static void recycle(struct worker *w, struct batch *done)
{
    while (done != NULL) {
        struct batch *next = done->next;

        ASSERT(done == w->first_sent);
        w->first_sent = done->next_sent;
        batch_clear(done);
        batches_put(&w->spare, done);
        done = next;
    }
}

void worker_send(struct worker *w)
{
    struct batch *b = w->making;

    if (b == NULL) {
        return;
    }
    w->making = NULL;
    if (w->first_sent == NULL) {
        w->first_sent = b;
    } else {
        w->last_sent->next_sent = b;
    }
    w->last_sent = b;
    (void)pthread_mutex_lock(&w->lock);
    const bool first = w->waiting.first == NULL;
    struct batch *done = w->done.first;
    w->done.first = NULL;
    batches_put(&w->waiting, b);
    if (first) {
        wake(w);
    }
    (void)pthread_mutex_unlock(&w->lock);
    recycle(w, done);
}

static void open_told(struct worker *w, const struct entry *e)
{
    const struct bytes head = telling_head(&w->taken, e);
    struct told *t = &w->told;
    struct call *c = &t->call;

    t->entry = e;
    t->bytes = telling_rest(&w->taken, e);
    if (e->type == TOLD_RETURNED && head.size > 0) {
        memcpy(t->chain, head.data, head.size);
    } else if (e->type == TOLD_CALL) {
        memcpy(c, head.data, sizeof *c);
        c->from.data = t->bytes.data;
        c->id.data = c->from.data + c->from.size;
        c->payload.data = c->id.data + c->id.size;
    }
}

const struct told *worker_take(struct worker *w)
{
    const struct entry *e = telling_take(&w->taken);

    if (e == NULL) {
        const struct telling empty = w->taken;

        (void)pthread_mutex_lock(&w->telling_lock);
        w->taken = w->telling;
        w->telling = empty;
        (void)pthread_mutex_unlock(&w->telling_lock);
        e = telling_take(&w->taken);
    }
    if (e == NULL) {
        return NULL;
    }
    open_told(w, e);
    return &w->told;
}

void worker_recall(struct worker *w, uint64_t now_us)
{
    for (struct batch *b = w->first_sent; b != NULL; b = b->next_sent) {
        for (size_t i = 0; i < b->count; i++) {
            struct post *p = &b->item[i];
            int queued = POST_QUEUED;

            if (now_us >= limit_us(w, p->type) &&
                atomic_compare_exchange_strong(&p->state, &queued, POST_RECALLED)) {
                const struct entry entry = returned(p);

                telling_put(&w->taken, &entry, batch_chain(b, p), batch_bytes(b, p));
            }
        }
    }
}

size_t worker_hot(struct worker *w, uint64_t now_us, struct hot_counter *out, size_t max)
{
    (void)pthread_mutex_lock(&w->hot_lock);
    const size_t count = hot_top(&w->hot, now_us, out, max);
    (void)pthread_mutex_unlock(&w->hot_lock);
    return count;
}

void worker_stop(struct worker *w, uint64_t save_until_us)
{
    worker_send(w);
    (void)pthread_mutex_lock(&w->telling_lock);
    w->muted = true;
    (void)pthread_mutex_unlock(&w->telling_lock);
    (void)pthread_mutex_lock(&w->lock);
    w->save_until_us = save_until_us;
    atomic_store(&w->stopping, true);
    wake(w);
    (void)pthread_mutex_unlock(&w->lock);
}

bool worker_join(struct worker *w, uint64_t until_us)
{
    const uint64_t now_us = clock_boottime_us();
    const struct timespec at = monotonic_in(until_us > now_us ? until_us - now_us : 0);

    (void)pthread_mutex_lock(&w->lock);
    while (!w->ended && pthread_cond_timedwait(&w->bell, &w->lock, &at) == 0) {
    }
    const bool ended = w->ended;
    (void)pthread_mutex_unlock(&w->lock);
    if (ended && !w->config.embedded) {
        (void)pthread_join(w->thread, NULL);
    }
    return ended;
}

/* ---- embedded */

int worker_fd(const struct worker *w)
{
    return w->fd;
}

bool worker_poll(struct worker *w, uint64_t wait_us)
{
    if (w->closed) {
        return false;
    }
    const uint64_t us = idle_us(w);

    poll_until_rung(w, us < wait_us ? us : wait_us);
    if (!work(w)) {
        end(w);
        w->closed = true;
    }
    return !w->closed;
}
