/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker does what was submitted to it, in order, and gives back what comes
 * too late for the lease.
 */
#include "node/worker/inside_uv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mutant.h"
#include "node/runtime/late_answers.h"

enum { TICK_US = 5000 }; /* timers wait no longer behind messages */

uint64_t worker_limit_us(const struct worker *w, enum verb verb)
{
    switch ((int)verb) {
    case VERB_ACTIVATE:
    case VERB_RUN:
    case VERB_TURN:
    case VERB_RETIRE:
        return atomic_load(&w->config.limits->start_us);
    case VERB_EXPORT:
    case VERB_COPY:
    case VERB_UNFREEZE:
        return atomic_load(&w->config.limits->gate_us);
    case VERB_DISCARD:
    case VERB_ANSWER:
    case VERB_GATEWAY:
        return UINT64_MAX;
    default:
        UNREACHABLE();
    }
}

bool worker_is_past_the_end(const struct worker *w)
{
    return w->now_us >= atomic_load(&w->config.limits->hard_end_us);
}

/* The last flush goes by the fence, which no lease bounds. */
static void discard(struct worker *w, const struct submission *s)
{
    w->saving = s->why == DISCARD_ERA && activation_is_live(s->activation);
    if (w->saving) {
        watchdog_leave(w->config.watchdog, w->config.index);
    }
    runtime_perform(w->runtime, s, (struct bytes){0});
    w->saving = false;
}

/* Code of an actor that is deferred: not past the hard end, even if the watchdog lets it be. */
static void answer_in_time(struct worker *w, const struct submission *s, struct bytes payload)
{
    const struct call_answer answer = {
        .number = s->ticket, .status = s->status, .payload = payload};

    if (worker_is_past_the_end(w)) {
        late_answers_put(&w->late_answers, &answer);
    } else {
        runtime_perform(w->runtime, s, payload);
    }
}

static void hand_out_late(struct worker *w)
{
    struct buffer late = w->late_answers;
    struct bytes left = buffer_bytes(&late);
    struct call_answer answer;

    w->late_answers = (struct buffer){0};
    while (late_answers_next(&left, &answer)) {
        runtime_answer(w->runtime, &answer);
        worker_leave(w);
    }
    buffer_fini(&late);
}

static void begin(struct worker *w, const struct queued *q)
{
    const struct bytes bytes = batch_bytes(w->doing, q);

    if (q->submission.verb == VERB_DISCARD) {
        discard(w, &q->submission);
    } else if (q->submission.verb == VERB_ANSWER) {
        answer_in_time(w, &q->submission, bytes);
    } else {
        runtime_perform(w->runtime, &q->submission, bytes);
    }
}

void worker_tick(struct worker *w)
{
    // Timers are code of tasks that run: not past the hard end, even if the watchdog lets them be.
    // The last flush goes by the fence.
    if (w->saving || !worker_is_past_the_end(w)) {
        w->tick_us = w->now_us;
        hand_out_late(w);
        if (w->config.on_store != NULL) { // alarms go by it
            runtime_set_wall(w->runtime, w->now_us, clock_wall_us());
        }
        runtime_tick(w->runtime, w->now_us);
    }
}

static void enter(struct worker *w, struct rh_actor *a)
{
    if (a != NULL) {
        worker_enter(w, a);
    } else {
        worker_leave(w);
    }
}

/* The clock is read after the task was made and right before it is begun (hole 30): once, for the
 * end of the one before, too. */
bool worker_begins_in_time(struct worker *w, enum verb verb, struct rh_actor *a)
{
    if (mutant(M_STARTCHK)) {
        return true;
    }
    if (w->now_us >= worker_limit_us(w, verb)) {
        return false;
    }
    enter(w, a);
    if (!w->runs_inline && w->now_us - w->tick_us >= TICK_US) {
        worker_skip_handler(w);
        worker_leave(w);
        worker_tick(w);
        enter(w, a);
    }
    worker_ring_if_due(w);
    return w->now_us < worker_limit_us(w, verb);
}

/* Begun or recalled, never both: the host may have given a recalled task to another owner. */
static bool take(struct queued *q)
{
    int queued = QUEUED;

    return atomic_compare_exchange_strong(&q->state, &queued, STARTED) || mutant(M_RECALL);
}

static void do_one(struct worker *w, struct queued *q)
{
    const struct submission *s = &q->submission;

    if (!take(q) || (atomic_load(&w->stopping) && s->verb != VERB_DISCARD)) {
        return;
    }
    if (worker_begins_in_time(w, s->verb, s->activation)) {
        begin(w, q);
    } else {
        const struct completion returned = submission_returned(s, batch_bytes(w->doing, q));

        worker_leave(w);
        worker_complete(w, &returned);
    }
}

/* These come by the hundred. */
static bool has_instance(enum verb verb)
{
    return verb == VERB_RUN || verb == VERB_COPY || verb == VERB_EXPORT || verb == VERB_DISCARD;
}

/* Their memory comes while those before them run. */
static void prefetch(const struct batch *b, size_t at)
{
    enum { ACTIVATION_AT = 8, INSTANCE_AT = 4 };

    if (at + ACTIVATION_AT < b->count) {
        __builtin_prefetch(b->item[at + ACTIVATION_AT].submission.activation, 1);
    }
    if (at + INSTANCE_AT < b->count && has_instance(b->item[at + INSTANCE_AT].submission.verb)) {
        activation_fetch(b->item[at + INSTANCE_AT].submission.activation);
    }
}

void worker_do_batch(struct worker *w, struct batch *b)
{
    w->doing = b;
    w->now_us = clock_boottime_us();
    runtime_set_now(w->runtime, w->now_us);
    for (size_t i = 0; i < b->count; i++) {
        prefetch(b, i);
        do_one(w, &b->item[i]);
    }
    worker_leave(w);
    worker_ring(w);
    w->doing = NULL;
}
