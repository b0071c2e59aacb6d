/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers of actors: rh_timer_start, rh_timer_call, rh_after, and the periodic flush.
 */
#include "node/runtime/inside.h"

#include "base/assert.h"
#include "base/mem.h"

enum { FLUSH_DEFAULT_MS = 300000, FLUSH_SPREAD = 8 };

static void unset(struct timer *t)
{
    alarms_unset(&t->actor->runtime->alarms, &t->alarm);
    if (list_linked(&t->due.link)) {
        list_remove(&t->due.link);
    }
}

static void timer_free(struct timer *t)
{
    unset(t);
    list_remove(&t->in_actor);
    t->actor->extra->timer_count -= t->type == TIMER_OWN ? 1 : 0;
    if (t->destroy != NULL) {
        t->destroy(t->argument);
    }
    mem_free(t);
}

/* Find one that was set by its id; NULL = it has ended. */
static struct timer *find(const struct rh_actor *a, uint64_t number)
{
    for (struct list_link *l = list_front(&a->extra->timers); l != NULL;
         l = list_next(&a->extra->timers, l)) {
        struct timer *t = CONTAINER_OF(l, struct timer, in_actor);

        if (t->number == number) {
            return t;
        }
    }
    return NULL;
}

static void free_all(struct list *timers)
{
    struct list_link *at;

    while ((at = list_front(timers)) != NULL) {
        timer_free(CONTAINER_OF(at, struct timer, in_actor));
    }
}

static void flush_unset(struct rh_actor *a)
{
    struct runtime *s = a->runtime;

    if (a->flush != 0) {
        struct timer *t = pool_at(&s->flushes, a->flush);

        alarms_unset(&s->alarms, &t->alarm);
        pool_give(&s->flushes, a->flush);
        a->flush = 0;
    }
}

void timers_drop_after(struct rh_actor *a)
{
    free_all(&a->extra->after);
}

void timers_drop(struct rh_actor *a)
{
    free_all(&a->extra->after);
    free_all(&a->extra->timers);
    flush_unset(a);
}

static uint64_t after_ms(const struct rh_actor *a, uint64_t ms)
{
    return a->runtime->now_us + ms * 1000;
}

/* Actors that came together, as after a take-over, are spread over the period. */
static uint64_t spread_ms(struct runtime *s, uint64_t period_ms)
{
    const uint64_t step = period_ms / FLUSH_SPREAD / FLUSH_SPREAD;

    return ++s->last_number % FLUSH_SPREAD * step;
}

void flush_set(struct rh_actor *a)
{
    const uint32_t given = role_of(a)->ops->flush_ms;
    const uint64_t period_ms = given == 0 ? FLUSH_DEFAULT_MS : given;

    flush_unset(a);
    if (role_of(a)->ops->flush != NULL && given != UINT32_MAX) {
        const uint64_t at_us = after_ms(a, period_ms - spread_ms(a->runtime, period_ms));
        struct timer *t = pool_take(&a->runtime->flushes, offsetof(struct timer, due), &a->flush);

        t->actor = a;
        t->type = TIMER_FLUSH;
        alarms_set(&a->runtime->alarms, &t->alarm, at_us);
    }
}

/* ---- when they are due ---- */

static void run_after(struct timer *t)
{
    struct rh_actor *a = t->actor;
    struct runtime *s = a->runtime;
    const rh_timer call = t->call;
    void *argument = t->argument;

    timer_free(t); // First: the call may answer, which drops the actor's other timers.
    if (deferral_is_finished(a)) {
        return; // Whom it belonged to is over, and may have freed the instance.
    }
    runtime_enter(s, a);
    actor_enter_code(a);
    call(a, a->instance, argument);
    actor_leave_code(a, true);
    runtime_enter(s, NULL);
}

static void on_due(struct timer *t)
{
    struct rh_actor *a = t->actor;

    switch (t->type) {
    case TIMER_AFTER:
        run_after(t);
        return;
    case TIMER_OWN:
        list_push_back(&a->extra->due, &t->due.link);
        break;
    case TIMER_FLUSH:
        a->flush_due = true;
        break;
    case TIMER_SENDS:
        durable_sends_go(a);
        return;
    case TIMER_AWAY:
        keep_over(CONTAINER_OF(t, struct client_bond, until));
        break;
    case TIMER_ALARM:
        durable_alarms_rang(a);
        break;
    }
    actor_want_turn(a);
}

void timers_run(struct runtime *s)
{
    struct alarm *due;

    while ((due = alarms_due(&s->alarms, s->now_us)) != NULL) {
        on_due(CONTAINER_OF(due, struct timer, alarm));
    }
}

static void call_timer(struct rh_actor *a, rh_timer call, uint64_t number, void *argument)
{
    actor_enter_code(a);
    if (call != NULL) {
        call(a, a->instance, argument);
    } else {
        role_of(a)->ops->timer(a, a->instance, number, argument);
    }
    actor_leave_code(a, true);
}

void timer_fire(struct timer *t)
{
    struct rh_actor *a = t->actor;
    const uint64_t number = t->number;
    const rh_timer call = t->call;
    const rh_destroy destroy = t->destroy;
    void *argument = t->argument;

    if (t->type == TIMER_ALARM) {
        durable_alarms_want(a); // It comes last in the turn, for it may finish later.
        return;
    }
    t->destroy = NULL; // While the call runs it may be stopped.
    if (t->every_us == 0) {
        timer_free(t);
    } else {
        // From when it was due, unless that has gone by as well: what was missed is not made up.
        const uint64_t next_us = t->alarm.at_us + t->every_us;

        alarms_set(&a->runtime->alarms,
                   &t->alarm,
                   next_us > a->runtime->now_us ? next_us : a->runtime->now_us + t->every_us);
    }
    call_timer(a, call, number, argument);
    if (destroy != NULL) {
        t = find(a, number);
        if (t != NULL) {
            t->destroy = destroy;
        } else {
            destroy(argument);
        }
    }
    if (a->extra->deferral != NULL) {
        a->deferred = true;
        runtime_tell(a, VERB_DEFER);
    }
}

/* ---- ringhold.h ---- */

int rh_after(struct rh_actor *actor, uint32_t ms, rh_timer timer, void *argument)
{
    if (actor == NULL || timer == NULL) {
        return RH_INVALID;
    }
    const bool runs =
        actor->callback == CALLBACK_MESSAGE ? !actor->answered : actor->extra->deferral != NULL;

    if (!runs) {
        return RH_INVALID;
    }
    struct timer *t = mem_new(1, sizeof *t);
    t->actor = actor;
    t->type = TIMER_AFTER;
    t->call = timer;
    t->argument = argument;
    list_push_back(&extra_of(actor)->after, &t->in_actor);
    alarms_set(&actor->runtime->alarms, &t->alarm, after_ms(actor, ms));
    return RH_OK;
}

static bool may_set(const struct rh_actor *a)
{
    return actor_may_ask(a) || a->callback == CALLBACK_RESUME;
}

static struct timer *start(struct rh_actor *actor, uint32_t ms, uint32_t every_ms, void *argument)
{
    if (!may_set(actor) || actor->extra->timer_count == RUNTIME_TIMERS_MAX) {
        return NULL;
    }
    struct timer *t = mem_new(1, sizeof *t);
    t->due.is_timer = true;
    t->actor = actor;
    t->type = TIMER_OWN;
    t->number = ++actor->runtime->last_number;
    t->every_us = (uint64_t)every_ms * 1000;
    t->argument = argument;
    list_push_back(&extra_of(actor)->timers, &t->in_actor);
    actor->extra->timer_count++;
    alarms_set(&actor->runtime->alarms, &t->alarm, after_ms(actor, ms));
    return t;
}

uint64_t rh_timer_start(struct rh_actor *actor, uint32_t ms, uint32_t every_ms, void *argument)
{
    const struct timer *t = actor == NULL || role_of(actor)->ops->timer == NULL
                                ? NULL
                                : start(actor, ms, every_ms, argument);

    return t == NULL ? 0 : t->number;
}

uint64_t rh_timer_call(struct rh_actor *actor, uint32_t ms, uint32_t every_ms, rh_timer then,
                       void *argument, rh_destroy destroy)
{
    struct timer *t = actor == NULL || then == NULL ? NULL : start(actor, ms, every_ms, argument);

    if (t == NULL) {
        if (destroy != NULL) {
            destroy(argument);
        }
        return 0;
    }
    t->call = then;
    t->destroy = destroy;
    return t->number;
}

int rh_timer_stop(struct rh_actor *actor, uint64_t timer)
{
    if (actor == NULL) {
        return RH_INVALID;
    }
    struct timer *t = find(actor, timer);

    if (t == NULL) {
        return RH_GONE;
    }
    timer_free(t);
    return RH_OK;
}

int rh_flush_soon(struct rh_actor *actor)
{
    if (actor == NULL || !may_set(actor) || role_of(actor)->ops->flush == NULL) {
        return RH_INVALID;
    }
    if (!actor->flush_due) {
        actor->flush_due = true;
        flush_unset(actor);
        actor_want_turn(actor);
    }
    return RH_OK;
}
