/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives each actor's work to its worker, and takes what the workers completed.
 */
#include "node/shell_uv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "node/books/actor.h"
#include "node/bridge/bridge.h"
#include "node/durable/committer_uv.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    LOOK_US = 500 * 1000, /* between two looks for callbacks that do not end */
    RUNS_US = 3 * 1000 * 1000,
    DEFERRED_US = 5 * 1000 * 1000,
    EXPORTS_A_TURN = 48, /* each makes a record of a whole actor: then the links have a turn, … */
    EXPORT_SIZE = 4096,  /* … and a large one counts as several */
};

static size_t worker_of(const struct dispatcher *d, const struct actor *actor)
{
    return table_mix(actor_name(actor).position) % d->worker_count;
}

/* ---- those that moved away ----
 *
 * Hundreds end together, each by code of its kind, and nobody waits for that: so some end a turn.
 * But all do before anything begins on their worker: it may be one of them, come back. What is
 * frozen does nothing meanwhile. */

static void depart(struct departed *d, const struct submission *end)
{
    if (d->count == d->cap) {
        d->cap = d->cap == 0 ? 64 : d->cap * 2;
        d->item = mem_resize(d->item, d->cap * sizeof *d->item);
    }
    d->item[d->count++] = *end;
}

static void end_departed(struct dispatcher *d, size_t worker, size_t most)
{
    struct departed *of = &d->departed[worker];

    for (; of->taken < of->count && most > 0; most--) {
        worker_submit(d->worker[worker], &of->item[of->taken++], (struct bytes){0});
    }
    if (of->taken == of->count) {
        of->taken = of->count = 0;
    }
}

bool dispatcher_has_departed(const struct shell *s)
{
    size_t i = 0;

    while (i < s->dispatcher.worker_count && s->dispatcher.departed[i].count == 0) {
        i++;
    }
    return i < s->dispatcher.worker_count;
}

void dispatcher_end_departed(struct shell *s)
{
    for (size_t i = 0; i < s->dispatcher.worker_count; i++) {
        end_departed(&s->dispatcher, i, SIZE_MAX);
    }
}

/* The more wait, the more a turn: there is an end to it whatever comes. */
static void end_some_departed(struct dispatcher *d)
{
    enum { SOME = 4, SHARE = 16 };

    for (size_t i = 0; i < d->worker_count; i++) {
        end_departed(d, i, SOME + d->departed[i].count / SHARE);
    }
}

/* ---- submissions ---- */

void dispatcher_submit(struct shell *s, const struct host_effect *e, struct bytes bytes)
{
    const struct kind *kind = kinds_find(&s->kinds, actor_kind(e->actor));
    struct dispatcher *d = &s->dispatcher;
    const size_t at = worker_of(d, e->actor);
    struct submission submission;

    if (kind == NULL) { // only ACTIVATE can ask for one, and nothing comes to life
        const struct host_event refused = {
            .type = HOST_COMPLETED,
            .actor = e->actor,
            .completion = {.verb = VERB_ACTIVATE, .error = ERR_NOT_FOUND}};

        shell_queue(s, &refused);
        return;
    }
    if (e->submission.verb == VERB_ACTIVATE) {
        end_departed(d, at, SIZE_MAX);
    }
    if (!bridge_submit(worker_runtime(d->worker[at]), &kind->ops, kind->shared, e, &submission)) {
        return;
    }
    if (submission.verb == VERB_DISCARD && submission.why == DISCARD_MOVED && submission.brief &&
        d->here_max == SIZE_MAX) { // else a worker does them, beside this thread
        depart(&d->departed[at], &submission);
    } else {
        worker_submit(d->worker[at], &submission, bytes);
    }
}

static bool enter(struct serving *v, size_t worker)
{
    const uint64_t bit = 1ull << worker;

    if ((v->inside & bit) == 0 && (v->closed & bit) == 0) {
        const bool in = worker_enter_inline(v->shell->dispatcher.worker[worker]);

        v->inside |= in ? bit : 0;
        v->closed |= in ? 0 : bit;
    }
    return (v->inside & bit) != 0;
}

_Static_assert(DISPATCHER_WORKERS_MAX <= 64, "a bit for each");

enum host_ran dispatcher_run(void *context, const struct actor *a, struct at_once *run)
{
    struct serving *v = context;
    const struct dispatcher *d = &v->shell->dispatcher;
    const size_t at = table_mix(actor_position(a)) % d->worker_count;
    struct worker *w = d->worker[at];

    // What takes long is better done beside this thread, where there is room for that.
    if (!enter(v, at) || (d->here_max != SIZE_MAX && worker_is_wary(w))) {
        return HOST_RAN_NOT;
    }
    return worker_run_one(w, run);
}

void dispatcher_leave_serving(struct serving *v)
{
    struct dispatcher *d = &v->shell->dispatcher;
    uint64_t now_us = 0;

    for (size_t i = 0; v->inside >> i != 0; i++) {
        if ((v->inside >> i & 1) != 0) {
            d->told = worker_leave_inline(d->worker[i], &now_us) || d->told;
        }
    }
    if (v->inside != 0) {
        host_served(v->shell->host, now_us);
    }
    v->inside = v->closed = 0;
}

void dispatcher_end_serving(struct serving *v)
{
    dispatcher_leave_serving(v);
    if (v->shell->dispatcher.told) {
        dispatcher_take(v->shell);
    }
}

static bool answers_at_once(struct serving *v, const struct call_answer *answer)
{
    const struct dispatcher *d = &v->shell->dispatcher;
    struct worker *w = d->worker[answer->worker];

    return (answer->number & CALL_BRIEF) != 0 && enter(v, answer->worker) &&
           (d->here_max == SIZE_MAX || !worker_is_wary(w)) && worker_answer_one(w, answer);
}

void dispatcher_answer(struct serving *v, const struct call_answer *answer)
{
    struct shell *s = v->shell;
    const struct submission submission = {.verb = VERB_ANSWER,
                                          .brief = (answer->number & CALL_BRIEF) != 0,
                                          .ticket = answer->number,
                                          .status = answer->status};

    if (answer->worker < s->dispatcher.worker_count && !answers_at_once(v, answer)) {
        worker_submit(s->dispatcher.worker[answer->worker], &submission, answer->payload);
    }
}

void dispatcher_gateway_gone(struct shell *s, uint64_t gateway)
{
    const struct submission gone = {.verb = VERB_GATEWAY, .ticket = gateway};

    for (size_t i = 0; i < s->dispatcher.worker_count; i++) {
        worker_submit(s->dispatcher.worker[i], &gone, (struct bytes){0});
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

    while (done < AT_ONCE && ((count = do_here(s)) > 0 || s->dispatcher.told)) {
        done += count > 0 ? count : 1;
        s->now_us = clock_boottime_us();
        s->fresh = 0;
        dispatcher_take(s); // It may submit more.
    }
    if (s->dispatcher.told) {
        dispatcher_ring(s); // the rest after the next turn
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
    end_some_departed(&s->dispatcher);
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

    set(&l->start_us, host_verb_limit_us(s->host, VERB_RUN));
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

/* ---- completions ---- */

static void feed(struct shell *s, const struct completion *c)
{
    struct host_event event;
    const bool heard = bridge_complete(c, &event);

    if (heard && (c->verb == VERB_EXPORT || c->verb == VERB_COPY) && !c->returned) {
        s->dispatcher.exports += 1 + c->bytes.size / EXPORT_SIZE;
        event.completion.number = calls_under_way(s->calls, c->number);
    }
    if (completion_ends(c)) {
        watchdog_hold(s->watchdog);
        activation_free(c->actor);
        watchdog_release(s->watchdog);
    }
    if (heard) {
        shell_feed(s, &event);
    }
}

void dispatcher_on_call(void *shell, const struct completion *c)
{
    const struct shell *s = shell;

    if (activation_owner(c->actor) != NULL) {
        calls_ask(s->calls, c->call, s->now_us);
    } else {
        calls_drop_call(s->calls, c->call);
    }
}

static void on_completion(struct shell *s, const struct completion *c)
{
    switch ((int)c->verb) {
    case VERB_CALL:
        dispatcher_on_call(s, c);
        return;
    case VERB_SPENT:
        if (activation_owner(c->actor) != NULL) {
            host_count_time(s->host, activation_owner(c->actor), c->number);
        }
        return;
    case VERB_END_CALLS:
        calls_close(s->calls, c->number, s->now_us);
        return;
    case VERB_BIND:
        presence_bound(&s->presence, c->number, s->now_us);
        return;
    case VERB_PUSH:
        shell_push(s, c->number, c->bytes);
        return;
    default:
        feed(s, c);
        return;
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
    if (actor != NULL && activation_owner(actor) != NULL) {
        host_prefetch_running(activation_owner(actor));
    }
    if (order != NULL && activation_owner(order) != NULL) {
        host_prefetch_order(s->host, activation_owner(order));
    }
}

static void take(struct shell *s, struct worker *w, size_t exports_max)
{
    const struct completion *c = NULL;

    while (!s->exiting && s->dispatcher.exports < exports_max && (c = worker_take(w)) != NULL) {
        prefetch(s, w);
        on_completion(s, c);
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

    d->told = false;
    for (size_t i = 0; i < d->worker_count && d->exports < EXPORTS_A_TURN; i++) {
        take(s, d->worker[d->first], EXPORTS_A_TURN);
        d->first = (d->first + 1) % d->worker_count;
    }
    shell_settle(s);
}

void dispatcher_end_turn(struct shell *s)
{
    if (s->dispatcher.exports >= EXPORTS_A_TURN) {
        dispatcher_ring(s); // there may be more
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
    dispatcher_ring(s); // the rest after the next turn
}

/* ---- alarms ---- */

void dispatcher_ask_due(struct shell *s, const struct host_effect *e, struct bytes after)
{
    struct store_task *t = store_task_new(STORE_DUE);

    t->kind = e->kinds[0];
    t->number = e->count;
    t->to = s;
    buffer_put(&t->bytes, after.data, after.size);
    committer_put(s->dispatcher.committer, t); // Who has such kinds has a store: start_uv.c.
}

void dispatcher_take_due(struct shell *s)
{
    struct store_task *t = atomic_exchange(&s->dispatcher.due, NULL);

    if (t == NULL) {
        return;
    }
    if (!s->exiting) {
        const bool read = t->result == STORE_DONE;
        struct host_event event = {.type = HOST_DUE_PAGE,
                                   .kind = t->kind,
                                   .id = read ? buffer_bytes(&t->bytes) : (struct bytes){0}};

        shell_feed(s, &event);
    }
    store_task_free(t);
}
