/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives each actor's work to its worker, and takes what the workers completed.
 */
#include "node/shell_uv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "node/host/actor.h"
#include "node/runtime/told.h"

#include <stdio.h>
#include <string.h>

enum {
    LOOK_US = 500 * 1000, /* between two looks for callbacks that do not end */
    RUNS_US = 3 * 1000 * 1000,
    DEFERRED_US = 5 * 1000 * 1000,
    EXPORTS_A_TURN = 48, /* each makes a record of a whole actor: then the links have a turn */
};

/* ---- activations ---- */

static struct worker *worker_of(const struct dispatcher *d, const struct actor *actor)
{
    return d->worker[table_mix(actor_name(actor).position) % d->worker_count];
}

/* The host's actor; NULL = discarded, what it tells is dropped. */
static struct actor *actor_of(const struct rh_actor *r)
{
    return activation_owner(r);
}

static void free_activation(struct shell *s, struct rh_actor *r)
{
    if (actor_of(r) != NULL) {
        actor_set_instance(actor_of(r), NULL);
    }
    watchdog_hold(s->watchdog);
    activation_free(r);
    watchdog_release(s->watchdog);
}

/* ---- effects ---- */

static enum rh_why why_discarded(enum discard_why why)
{
    switch (why) {
    case DISCARD_MOVED:
        return RH_MOVED;
    case DISCARD_STOP:
        return RH_STOP;
    case DISCARD_FENCED:
    case DISCARD_ERA:
        return RH_FENCED;
    case DISCARD_BROKEN:
        return RH_BROKEN;
    }
    UNREACHABLE();
}

static void on_activate(struct shell *s, const struct host_effect *e, struct bytes bytes)
{
    const struct kind *kind = kinds_find(&s->kinds, actor_kind(e->actor));
    const struct host_event refused = {
        .type = HOST_ACTIVATED, .actor = e->actor, .error = ERR_NOT_FOUND};

    if (kind == NULL) {
        shell_complete(s, &refused);
        return;
    }
    struct worker *w = worker_of(&s->dispatcher, e->actor);
    struct rh_actor *r = worker_activation(w, kind->number, actor_id(e->actor), e->actor);
    const struct post post = {.type = POST_ACTIVATE,
                              .activation = r,
                              .kind = kind,
                              .fence = e->fence,
                              .brief = kind->ops.brief != 0,
                              .has_state = e->has_state,
                              .bond_size = e->bond_size};

    actor_set_instance(e->actor, r);
    worker_post(w, &post, NULL, bytes);
}

static void on_discard(const struct dispatcher *d, const struct host_effect *e)
{
    struct rh_actor *r = actor_instance(e->actor);
    const struct post post = {.type = POST_DISCARD,
                              .activation = r,
                              .status = (int)why_discarded(e->discard_why),
                              .flags = e->discard_why == DISCARD_ERA};

    if (r != NULL) {
        // What it has told and is on its way names an actor that is no more.
        actor_set_instance(e->actor, NULL);
        activation_set_owner(r, NULL);
        worker_post(worker_of(d, e->actor), &post, NULL, (struct bytes){0});
    }
}

static enum post_type post_type(enum host_effect_type type)
{
    switch ((int)type) {
    case HOST_RUN:
        return POST_RUN;
    case HOST_TURN:
        return POST_TURN;
    case HOST_EXPORT:
        return POST_EXPORT;
    case HOST_UNFREEZE:
        return POST_UNFREEZE;
    case HOST_RETIRE:
        return POST_RETIRE;
    default:
        UNREACHABLE();
    }
}

/* What else is done to it may save it, which takes its time. */
static bool is_brief(const struct shell *s, const struct host_effect *e)
{
    return (e->type == HOST_RUN || e->type == HOST_TURN) &&
           kinds_find(&s->kinds, actor_kind(e->actor))->ops.brief != 0;
}

bool dispatcher_enters(enum host_effect_type type)
{
    return type == HOST_ACTIVATE || type == HOST_RUN || type == HOST_TURN || type == HOST_EXPORT ||
           type == HOST_UNFREEZE || type == HOST_RETIRE || type == HOST_DISCARD;
}

void dispatcher_post(struct shell *s, const struct host_effect *e, struct bytes bytes)
{
    if (e->type == HOST_ACTIVATE) {
        on_activate(s, e, bytes);
    } else if (e->type == HOST_DISCARD) {
        on_discard(&s->dispatcher, e);
    } else {
        struct rh_actor *r = actor_instance(e->actor);
        const struct post post = {.type = post_type(e->type),
                                  .activation = r,
                                  .number = e->ticket,
                                  .flags = e->flags,
                                  .brief = is_brief(s, e),
                                  .chain_count = e->type == HOST_RUN ? e->chain_count : 0};

        worker_post(worker_of(&s->dispatcher, e->actor), &post, e->chain, bytes);
    }
}

void dispatcher_answer(struct shell *s, const struct call_answer *answer)
{
    const struct post post = {
        .type = POST_ANSWER, .number = answer->number, .status = answer->status};

    if (answer->worker < s->dispatcher.worker_count) {
        worker_post(s->dispatcher.worker[answer->worker], &post, NULL, answer->payload);
    }
}

void dispatcher_gateway_gone(struct shell *s, uint64_t gateway)
{
    const struct post post = {.type = POST_GATEWAY, .number = gateway};

    for (size_t i = 0; i < s->dispatcher.worker_count; i++) {
        worker_post(s->dispatcher.worker[i], &post, NULL, (struct bytes){0});
    }
}

/* What is brief, and so few that it is not worth a wake-up. */
static size_t do_here(struct shell *s)
{
    struct dispatcher *d = &s->dispatcher;
    size_t count = 0;

    for (size_t i = 0; i < d->worker_count && !s->exiting; i++) {
        count += worker_run_inline(d->worker[i], d->here_max);
    }
    return count;
}

static void do_all_here(struct shell *s)
{
    enum { AT_ONCE = 2000 }; // then the links get their turn
    size_t done = 0;
    size_t count = 0;

    while (done < AT_ONCE && (count = do_here(s)) > 0) {
        done += count;
        s->now_us = clock_boottime_us();
        s->fresh = 0;
        dispatcher_take(s); // It may post more.
    }
}

void dispatcher_do(struct shell *s)
{
    if (s->dispatcher.here_max == SIZE_MAX) {
        do_all_here(s);
    }
}

void dispatcher_send(struct shell *s)
{
    do_all_here(s);
    for (size_t i = 0; i < s->dispatcher.worker_count; i++) {
        worker_send(s->dispatcher.worker[i]);
    }
}

/* ---- the lease ---- */

/* They change with a grant, and are read with every message. */
static void set(_Atomic uint64_t *limit_us, uint64_t us)
{
    if (atomic_load_explicit(limit_us, memory_order_relaxed) != us) {
        atomic_store(limit_us, us);
    }
}

void dispatcher_set_limits(struct shell *s)
{
    struct limits *l = &s->dispatcher.limits;

    set(&l->start_us, host_limit_us(s->host, HOST_RUN));
    set(&l->gate_us, host_gate_us(s->host));
    set(&l->hard_end_us, host_hard_end_us(s->host));
    watchdog_set(s->watchdog, host_hard_end_us(s->host));
}

/* What stands behind a slow one does not count as running. */
void dispatcher_recall(struct shell *s)
{
    const struct limits *l = &s->dispatcher.limits;

    if (s->now_us < atomic_load(&l->start_us) && s->now_us < atomic_load(&l->gate_us)) {
        return;
    }
    for (size_t i = 0; i < s->dispatcher.worker_count; i++) {
        worker_recall(s->dispatcher.worker[i], s->now_us);
    }
    dispatcher_take_all(s);
}

/* One line for each, which names it: who never ends would show nowhere else than in a table that
 * nobody looks at before it hurts. */
void dispatcher_complain(struct shell *s)
{
    struct dispatcher *d = &s->dispatcher;

    if (s->now_us - d->looked_us < LOOK_US) {
        return;
    }
    d->looked_us = s->now_us;
    watchdog_hold(s->watchdog);
    for (size_t i = 0; i < d->worker_count; i++) {
        const struct watched_at at = watchdog_at(s->watchdog, i);

        if (at.actor != NULL && at.since_us + RUNS_US < s->now_us && at.since_us != d->told_us[i]) {
            d->told_us[i] = at.since_us;
            shell_log_actor(
                LOG_WARN,
                "slow_callback",
                activation_name(at.actor),
                "the handler has been running for 3 s: the other actors of its worker wait");
        }
    }
    const struct watched *oldest = watchdog_deferred(s->watchdog);
    if (oldest != NULL && oldest->deferred_us + DEFERRED_US < s->now_us &&
        oldest->deferred_us != d->told_deferred_us) {
        d->told_deferred_us = oldest->deferred_us;
        shell_log_actor(LOG_WARN,
                        "slow_answer",
                        activation_name(oldest->actor),
                        "the actor has deferred a message for 5 s: it can't move until it replies");
    }
    watchdog_release(s->watchdog);
}

/* ---- what is told ---- */

static enum host_effect_type effect_type(enum post_type type)
{
    switch (type) {
    case POST_ACTIVATE:
        return HOST_ACTIVATE;
    case POST_RUN:
        return HOST_RUN;
    case POST_TURN:
        return HOST_TURN;
    case POST_EXPORT:
        return HOST_EXPORT;
    case POST_UNFREEZE:
        return HOST_UNFREEZE;
    case POST_RETIRE:
        return HOST_RETIRE;
    case POST_DISCARD:
    case POST_GATEWAY:
    case POST_ANSWER:
        break;
    }
    UNREACHABLE();
}

static void on_returned(struct shell *s, const struct told *t)
{
    struct rh_actor *r = t->entry->activation;
    struct host_event event = {.type = HOST_RETURNED,
                               .actor = actor_of(r),
                               .ticket = t->entry->number,
                               .returned = effect_type(t->entry->returned),
                               .flags = t->entry->flags,
                               .chain_count = t->entry->chain_count,
                               .chain = t->chain,
                               .bytes = t->bytes};

    if (t->entry->returned == POST_ACTIVATE) {
        free_activation(s, r); // It is activated as if for the first time.
    }
    shell_feed(s, &event);
}

static void on_runtime(struct shell *s, const struct told *t)
{
    const struct entry *e = t->entry;
    struct rh_actor *r = e->activation;
    struct host_event event = {.type = runtime_told_type(e->event),
                               .actor = actor_of(r),
                               .ticket = e->number,
                               .error = e->error,
                               .code = e->code,
                               .has_state = e->has_state,
                               .bond = t->bond,
                               .bytes = t->bytes};

    if (e->event == RUNTIME_EXPORTED) {
        s->dispatcher.exports++;
        event.under_way = calls_under_way(s->calls, e->number);
    }
    if (runtime_told_ends(e->event, e->error)) {
        free_activation(s, r);
    }
    shell_feed(s, &event);
}

static void on_told(struct shell *s, const struct told *t)
{
    struct rh_actor *r = t->entry->activation;

    if (t->entry->type == TOLD_DISCARDED) {
        free_activation(s, r);
    } else if (t->entry->type == TOLD_RUNTIME && t->entry->event == RUNTIME_GONE) {
        calls_close(s->calls, t->entry->number, s->now_us);
    } else if (t->entry->type == TOLD_RUNTIME && t->entry->event == RUNTIME_BOUND) {
        presence_bound(&s->presence, t->entry->number, s->now_us);
    } else if (t->entry->type == TOLD_PUSH) {
        shell_push(s, t->entry->number, t->bytes);
    } else if (actor_of(r) == NULL) {
        if (t->entry->type == TOLD_CALL) {
            calls_drop_call(s->calls, &t->call);
        }
        return; // Its discard is on its way.
    } else if (t->entry->type == TOLD_CALL) {
        calls_ask(s->calls, &t->call, s->now_us);
    } else if (t->entry->type == TOLD_RETURNED) {
        on_returned(s, t);
    } else {
        on_runtime(s, t);
    }
}

/* The memory of those whose ends come soon is fetched, one step of the way after the other: it was
 * touched when they began, and there may have been many since. */
static void prefetch(const struct shell *s, const struct worker *w)
{
    enum { ACTIVATION_AT = 6, ACTOR_AT = 4, ORDER_AT = 2 };
    const struct rh_actor *activation = worker_peek(w, ACTIVATION_AT);
    const struct rh_actor *actor = worker_peek(w, ACTOR_AT);
    const struct rh_actor *order = worker_peek(w, ORDER_AT);

    if (activation != NULL) {
        __builtin_prefetch(activation);
    }
    if (actor != NULL && actor_of(actor) != NULL) {
        host_prefetch_running(actor_of(actor));
    }
    if (order != NULL && actor_of(order) != NULL) {
        host_prefetch_order(s->host, actor_of(order));
    }
}

static void take(struct shell *s, struct worker *w, size_t exports_max)
{
    const struct told *t = NULL;

    while (!s->exiting && s->dispatcher.exports < exports_max && (t = worker_take(w)) != NULL) {
        prefetch(s, w);
        on_told(s, t);
    }
}

void dispatcher_take_all(struct shell *s)
{
    for (size_t i = 0; i < s->dispatcher.worker_count; i++) {
        take(s, s->dispatcher.worker[i], SIZE_MAX);
    }
    shell_settle(s);
}

/* Workers that hand a thousand actors over tell as fast as it is taken, and who asks one that stays
 * would wait for the last of them. There are host_config.exports_at_once of them at most, so what
 * is behind them waits for a few turns. The worker that comes after is the first the next time. */
void dispatcher_take(struct shell *s)
{
    struct dispatcher *d = &s->dispatcher;

    for (size_t i = 0; i < d->worker_count && d->exports < EXPORTS_A_TURN; i++) {
        take(s, d->worker[d->first], EXPORTS_A_TURN);
        d->first = (d->first + 1) % d->worker_count;
    }
    shell_settle(s);
}

void dispatcher_end_turn(struct shell *s)
{
    if (s->dispatcher.exports >= EXPORTS_A_TURN) {
        (void)uv_async_send(&s->told); // there may be more
    }
    s->dispatcher.exports = 0;
}

void dispatcher_wake(struct shell *s)
{
    enum { AT_ONCE = 2000 }; // then the links get their turn
    struct host_event event = {.type = HOST_WAKE};

    for (size_t i = 0; i < AT_ONCE && !s->exiting; i++) {
        if (!lister_take(s->lister, s->now_us, &event.kind, &event.id)) {
            return;
        }
        shell_feed(s, &event);
    }
    (void)uv_async_send(&s->told); // the rest after the next turn
}
