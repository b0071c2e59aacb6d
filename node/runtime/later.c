/* SPDX-License-Identifier: Apache-2.0
 *
 * rh_defer and its tokens: answers and results that come later, from any thread.
 */
#include "node/runtime/inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "storage/actors/store.h"

#include <stdatomic.h>
#include <string.h>

/* Of all runtimes of the process, so that an old token never names anything new. */
static _Atomic uint64_t last_number;

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct latch *pool; /* those that nobody uses */

static struct latch *latch_take(void)
{
    (void)pthread_mutex_lock(&pool_lock);
    struct latch *l = pool;
    if (l != NULL) {
        pool = l->next_free;
    }
    (void)pthread_mutex_unlock(&pool_lock);
    return l;
}

struct latch *latch_open(const struct runtime_config *config)
{
    struct latch *l = latch_take();

    if (l == NULL) {
        l = mem_new(1, sizeof *l);
        (void)pthread_mutex_init(&l->lock, NULL);
        list_init(&l->stored);
    }
    (void)pthread_mutex_lock(&l->lock);
    l->open = true;
    l->on_later = config->on_later;
    l->context = config->context;
    (void)pthread_mutex_unlock(&l->lock);
    return l;
}

static void free_stored(struct list *stored)
{
    struct list_link *link;

    while ((link = list_pop_front(stored)) != NULL) {
        store_task_free(CONTAINER_OF(link, struct store_task, link));
    }
}

void latch_close(struct latch *l)
{
    (void)pthread_mutex_lock(&l->lock);
    l->open = false;
    l->on_later = NULL;
    l->arrived.count = 0;
    buffer_clear(&l->arrived.bytes);
    free_stored(&l->stored);
    (void)pthread_mutex_unlock(&l->lock);
    (void)pthread_mutex_lock(&pool_lock);
    l->next_free = pool;
    pool = l;
    (void)pthread_mutex_unlock(&pool_lock);
}

/* ---- under the lock ---- */

static struct deferral *find(const struct latch *l, uint64_t number)
{
    // The mix is one to one: equal hashes are equal numbers.
    struct table_link *found = table_first(&l->deferrals, table_mix(number));

    return found == NULL ? NULL : CONTAINER_OF(found, struct deferral, by_number);
}

static void forget(struct latch *l, struct deferral *d)
{
    table_remove(&l->deferrals, &d->by_number);
    if (d->out != NULL) {
        buffer_fini(&d->out->state);
        mem_free(d->out);
    }
    mem_free(d);
}

static void put_arrival(struct arrivals *to, const struct group_arrival *arrival)
{
    const struct rh_bytes bytes = arrival->value.bytes;

    if (to->count == to->cap) {
        to->cap = to->cap == 0 ? 64 : to->cap * 2;
        to->item = mem_resize(to->item, to->cap * sizeof *to->item);
    }
    struct group_arrival *kept = &to->item[to->count++];
    *kept = *arrival;
    kept->at = to->bytes.size;
    buffer_put(&to->bytes, bytes.data, bytes.size);
}

/* RH_OK: it is the first that finishes what the token names. */
static int take_token(struct latch *l, bool of_message, const struct group_arrival *arrival)
{
    struct deferral *d = find(l, arrival->number);

    if (d == NULL || d->finished) {
        return RH_GONE;
    }
    if (d->of_life) {
        return arrival->post == NULL ? RH_INVALID : RH_OK;
    }
    if (d->of_message != of_message || arrival->post != NULL) {
        return RH_INVALID;
    }
    if (d->actor == NULL) {
        forget(l, d); // Nobody writes to its state any more.
        return RH_GONE;
    }
    d->finished = true;
    d->failed = arrival->result != RH_OK;
    return RH_OK;
}

/* ---- any thread ---- */

static int finish(struct rh_token token, bool of_message, const struct group_arrival *arrival)
{
    struct latch *l = token.scene;

    if (l == NULL || token.number == 0) {
        return RH_GONE;
    }
    (void)pthread_mutex_lock(&l->lock);
    const int taken = take_token(l, of_message, arrival);
    if (taken == RH_OK) {
        const bool first = l->arrived.count == 0;

        put_arrival(&l->arrived, arrival);
        if (first && l->on_later != NULL) {
            l->on_later(l->context);
        }
    }
    (void)pthread_mutex_unlock(&l->lock);
    return taken;
}

int rh_done(struct rh_token token, int result)
{
    const struct group_arrival arrival = {.number = token.number, .result = result};

    return result == RH_PENDING ? RH_INVALID : finish(token, false, &arrival);
}

int rh_post(struct rh_token life, rh_timer then, void *argument)
{
    const struct group_arrival arrival = {
        .number = life.number, .post = then, .argument = argument};

    return then == NULL ? RH_INVALID : finish(life, false, &arrival);
}

int rh_reply_later(struct rh_token token, struct rh_value value)
{
    struct group_arrival arrival = {.number = token.number, .value = value};
    const bool fits = reply_fits(&value);

    if (!reply_makes_sense(&value)) {
        return RH_INVALID;
    }
    if (value.type == RH_INTEGER || value.type == RH_NIL) {
        arrival.value.bytes = (struct rh_bytes){0};
    } else if (!fits) {
        arrival.value = reply_too_big();
    }
    const int result = finish(token, true, &arrival);
    return result == RH_OK && !fits ? RH_TOO_BIG : result;
}

/* ---- the runtime's thread ---- */

static struct deferral *deferral_new(struct rh_actor *a, const struct deferral *kind)
{
    struct latch *l = a->runtime->latch;
    struct deferral *d = mem_new(1, sizeof *d);

    *d = *kind;
    d->number = atomic_fetch_add(&last_number, 1) + 1;
    d->actor = a;
    (void)pthread_mutex_lock(&l->lock);
    table_put(&l->deferrals, &d->by_number, table_mix(d->number));
    (void)pthread_mutex_unlock(&l->lock);
    return d;
}

struct rh_token rh_defer(struct rh_actor *actor)
{
    if (actor == NULL) {
        return (struct rh_token){NULL, 0};
    }
    struct latch *l = actor->runtime->latch;
    const bool may = actor->callback == CALLBACK_ACTIVATE || actor->callback == CALLBACK_FLUSH ||
                     actor->callback == CALLBACK_HANDOFF || actor->callback == CALLBACK_SESSION ||
                     actor->callback == CALLBACK_ALARM || actor->callback == CALLBACK_TIMER ||
                     (actor->callback == CALLBACK_MESSAGE && !actor->answered);

    if (may && actor->extra->deferral == NULL) {
        const struct deferral kind = {.of_message = actor->callback == CALLBACK_MESSAGE};

        extra_of(actor)->deferral = deferral_new(actor, &kind);
    }
    return (struct rh_token){l, may ? actor->extra->deferral->number : 0};
}

struct rh_token rh_life(struct rh_actor *actor)
{
    const struct deferral kind = {.of_life = true};

    if (actor == NULL || actor->callback == CALLBACK_END) {
        return (struct rh_token){NULL, 0};
    }
    if (actor->extra->life == NULL) {
        extra_of(actor)->life = deferral_new(actor, &kind);
    }
    return (struct rh_token){actor->runtime->latch, actor->extra->life->number};
}

void life_drop(struct rh_actor *a)
{
    struct latch *l = a->runtime->latch;
    struct deferral *d = a->extra->life;
    struct list_link *next = NULL;

    if (d == NULL) {
        return;
    }
    a->extra->life = NULL;
    (void)pthread_mutex_lock(&l->lock);
    forget(l, d);
    (void)pthread_mutex_unlock(&l->lock);
    for (struct list_link *at = list_front(&a->extra->due); at != NULL; at = next) {
        struct due *due = CONTAINER_OF(at, struct due, link);

        next = list_next(&a->extra->due, at);
        if (due->is_post) {
            list_remove(at);
            mem_free(CONTAINER_OF(due, struct post, due));
        }
    }
}

bool deferral_is_finished(const struct rh_actor *a)
{
    struct latch *l = a->runtime->latch;

    if (a->extra->deferral == NULL) {
        return false;
    }
    (void)pthread_mutex_lock(&l->lock);
    const bool finished = a->extra->deferral->finished;
    (void)pthread_mutex_unlock(&l->lock);
    return finished;
}

bool deferral_drop(struct rh_actor *a)
{
    struct latch *l = a->runtime->latch;
    struct deferral *d = a->extra->deferral;

    if (d == NULL) {
        return false;
    }
    a->extra->deferral = NULL;
    (void)pthread_mutex_lock(&l->lock);
    const bool failed = d->failed;
    if (a->deferred && a->callback == CALLBACK_HANDOFF && !d->finished) {
        d->actor = NULL; // Another thread may be writing the state this very moment.
        d->out = a->extra->out;
        a->extra->out = NULL;
    } else {
        forget(l, d);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return failed;
}

/* The actor that waits for this, or NULL: it was stopped since. */
static struct rh_actor *take_deferral(struct latch *l, uint64_t number)
{
    struct rh_actor *actor = NULL;

    (void)pthread_mutex_lock(&l->lock);
    struct deferral *d = find(l, number);
    if (d != NULL && d->actor != NULL && d->actor->deferred) {
        actor = d->actor;
        actor->extra->deferral = NULL;
        forget(l, d);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return actor;
}

/* The actor that this was posted to, or NULL: it was stopped since. */
static struct rh_actor *take_life(struct latch *l, uint64_t number)
{
    (void)pthread_mutex_lock(&l->lock);
    const struct deferral *d = find(l, number);
    struct rh_actor *actor = d == NULL ? NULL : d->actor;
    (void)pthread_mutex_unlock(&l->lock);
    return actor;
}

static void call_post(struct rh_actor *a, rh_timer post, void *argument)
{
    actor_enter_code(a);
    post(a, a->instance, argument);
    actor_leave_code(a, true);
}

void post_run(struct rh_actor *a, struct due *due)
{
    struct post *p = CONTAINER_OF(due, struct post, due);
    const rh_timer call = p->call;
    void *argument = p->argument;

    mem_free(p);
    call_post(a, call, argument);
}

/* It is part of what is deferred, or else something for a turn. */
static void take_post(struct runtime *s, const struct group_arrival *arrival)
{
    struct rh_actor *a = take_life(s->latch, arrival->number);

    if (a == NULL) {
        return;
    }
    runtime_enter(s, a);
    if (a->deferred && !deferral_is_finished(a)) {
        call_post(a, arrival->post, arrival->argument);
    } else {
        struct post *p = mem_new(1, sizeof *p);

        *p = (struct post){
            .due = {.is_post = true}, .call = arrival->post, .argument = arrival->argument};
        list_push_back(&extra_of(a)->due, &p->due.link);
        actor_want_turn(a);
    }
    runtime_enter(s, NULL);
}

static void take(struct runtime *s, struct group_arrival *arrival)
{
    if (arrival->post != NULL) {
        take_post(s, arrival);
        return;
    }
    struct rh_actor *actor = take_deferral(s->latch, arrival->number);

    if (actor == NULL) {
        return;
    }
    runtime_enter(s, actor);
    if (actor->callback == CALLBACK_MESSAGE) {
        if (arrival->value.bytes.size > 0) {
            arrival->value.bytes.data = s->taken.bytes.data + arrival->at;
        }
        (void)reply_put(actor, &arrival->value);
    } else {
        actor_go_on(actor, arrival->result);
    }
    runtime_enter(s, NULL);
}

void runtime_stored(struct store_task *task)
{
    struct latch *l = task->to;

    (void)pthread_mutex_lock(&l->lock);
    const bool there = l->open;
    if (there && list_empty(&l->stored) && l->on_later != NULL) {
        l->on_later(l->context);
    }
    if (there) {
        list_push_back(&l->stored, &task->link);
    }
    (void)pthread_mutex_unlock(&l->lock);
    if (!there) {
        store_task_free(task);
    }
}

void later_take(struct runtime *s)
{
    const struct arrivals empty = s->taken;
    struct list stored = LIST_INIT(stored);
    struct list_link *link;

    (void)pthread_mutex_lock(&s->latch->lock);
    if (s->latch->arrived.count == 0 && list_empty(&s->latch->stored)) {
        (void)pthread_mutex_unlock(&s->latch->lock);
        return;
    }
    s->taken = s->latch->arrived;
    s->latch->arrived = empty;
    list_splice_back(&stored, &s->latch->stored);
    (void)pthread_mutex_unlock(&s->latch->lock);
    while ((link = list_pop_front(&stored)) != NULL) {
        durable_take(CONTAINER_OF(link, struct store_task, link));
    }
    for (size_t i = 0; i < s->taken.count; i++) {
        take(s, &s->taken.item[i]);
    }
    s->taken.count = 0;
    buffer_clear(&s->taken.bytes);
}
