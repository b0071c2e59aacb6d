/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker/inside_uv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mutant.h"

#include <string.h>

enum { TICK_US = 5000 }; /* timers wait no longer behind messages */

uint64_t worker_limit_us(const struct worker *w, enum post_type type)
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
    case POST_GATEWAY:
    case POST_ANSWER:
        return UINT64_MAX;
    }
    UNREACHABLE();
}

bool worker_is_past_the_end(const struct worker *w)
{
    return w->now_us >= atomic_load(&w->config.limits->hard_end_us);
}

struct entry worker_returned(const struct post *p)
{
    return (struct entry){.type = TOLD_RETURNED,
                          .returned = p->type,
                          .activation = p->activation,
                          .number = p->number,
                          .flags = p->flags,
                          .chain_count = p->chain_count};
}

static void give_back(struct worker *w, const struct post *p)
{
    const struct entry entry = worker_returned(p);

    worker_tell(w, &entry, batch_chain(w->doing, p), batch_bytes(w->doing, p));
}

static struct bytes rest_of(struct bytes all, size_t taken)
{
    return taken == 0 ? all : bytes_of(all.data + taken, all.size - taken);
}

static void activate(struct worker *w, const struct post *p)
{
    const struct bytes all = batch_bytes(w->doing, p);
    const struct runtime_entry entry = {.ops = &p->kind->ops,
                                        .shared = p->kind->shared,
                                        .activation = p->activation,
                                        .bond = bytes_of(all.data, p->bond_size),
                                        .state = rest_of(all, p->bond_size),
                                        .has_state = p->has_state,
                                        .fence = p->fence};

    (void)runtime_activate(w->runtime, &entry);
}

static void run(struct worker *w, const struct post *p)
{
    uint64_t chain[RECORD_CHAIN_MAX];
    const struct bytes packed = batch_chain(w->doing, p);
    const struct runtime_message message = {.ticket = p->number,
                                            .flags = p->flags,
                                            .body = batch_bytes(w->doing, p),
                                            .chain_count = p->chain_count,
                                            .chain = chain};

    if (packed.size > 0) {
        memcpy(chain, packed.data, packed.size);
    }
    runtime_run(p->activation, &message);
}

/* `flags`: it is flushed first, by its fence, which no lease bounds. */
static void discard(struct worker *w, const struct post *p)
{
    struct rh_actor *r = p->activation;

    if (activation_is_live(r) && p->flags != 0) {
        w->saving = true;
        watchdog_leave(w->config.watchdog, w->config.index);
        runtime_part(r, (enum rh_why)p->status); // RUNTIME_PARTED follows
        w->saving = false;
        return;
    }
    if (activation_is_live(r)) {
        runtime_discard(r, (enum rh_why)p->status);
    }
    worker_tell_discarded(w, r);
}

static void answer(struct worker *w, uint64_t number, int status, struct bytes payload)
{
    const struct call_answer a = {.number = number, .status = status, .payload = payload};

    runtime_answer(w->runtime, &a);
}

/* Code of an actor that is deferred: not past the hard end, even if the watchdog lets it be. */
static void answer_in_time(struct worker *w, const struct post *p)
{
    const struct bytes payload = batch_bytes(w->doing, p);
    const struct late_answer late = {p->number, p->status, payload.size};

    if (!worker_is_past_the_end(w)) {
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
    struct rh_actor *r = p->activation;

    switch (p->type) {
    case POST_ACTIVATE:
        activate(w, p);
        return;
    case POST_RUN:
        run(w, p);
        return;
    case POST_TURN:
        runtime_turn(r, p->number);
        return;
    case POST_EXPORT:
        runtime_export(r);
        return;
    case POST_UNFREEZE:
        runtime_unfreeze(r);
        return;
    case POST_RETIRE:
        runtime_retire(r);
        return;
    case POST_DISCARD:
        discard(w, p);
        return;
    case POST_GATEWAY:
        runtime_gateway_gone(w->runtime, p->number);
        return;
    case POST_ANSWER:
        answer_in_time(w, p);
        return;
    }
    UNREACHABLE();
}

void worker_tick(struct worker *w)
{
    // Timers are code of tasks that run: not past the hard end, even if the watchdog lets them be.
    // The last flush goes by the fence.
    if (w->saving || !worker_is_past_the_end(w)) {
        w->tick_us = w->now_us;
        hand_out_late(w);
        runtime_tick(w->runtime, w->now_us);
    }
}

static void enter(struct worker *w, const struct post *p)
{
    if (p->activation != NULL) {
        worker_enter(w, p->activation);
    } else {
        worker_leave(w);
    }
}

/* The clock is read after the task was made and right before it is begun (hole 30): once, for the
 * end of the one before, too. */
static bool begins_in_time(struct worker *w, const struct post *p)
{
    if (mutant(M_STARTCHK)) {
        return true;
    }
    if (w->now_us >= worker_limit_us(w, p->type)) {
        return false;
    }
    enter(w, p);
    if (!w->runs_inline && w->now_us - w->tick_us >= TICK_US) {
        worker_leave(w);
        worker_tick(w);
        enter(w, p);
    }
    worker_ring_if_due(w);
    return w->now_us < worker_limit_us(w, p->type);
}

/* Begun or recalled, never both: the host may have given a recalled task to another owner. */
static bool take(struct post *p)
{
    int queued = POST_QUEUED;

    return atomic_compare_exchange_strong(&p->state, &queued, POST_STARTED) || mutant(M_RECALL);
}

static void do_one(struct worker *w, struct post *p)
{
    if (!take(p) || (atomic_load(&w->stopping) && p->type != POST_DISCARD)) {
        return;
    }
    if (begins_in_time(w, p)) {
        begin(w, p);
    } else {
        worker_leave(w);
        give_back(w, p);
    }
}

/* Their memory comes while those before them run. */
static void prefetch(const struct batch *b, size_t at)
{
    if (at + 4 < b->count) {
        __builtin_prefetch(b->item[at + 4].activation, 1);
    }
    if (at + 2 < b->count && b->item[at + 2].type == POST_RUN) {
        activation_fetch(b->item[at + 2].activation);
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
