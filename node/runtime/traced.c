/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace of the message that an actor runs, and the spans of its commits.
 */
#include "node/runtime/inside.h"

const struct trace_context *traced_context(const struct rh_actor *a)
{
    if (a->task != VERB_RUN || (flags_of(a) & REQUEST_TRACED) == 0) {
        return NULL;
    }
    return a->extra == &runtime_nothing ? a->runtime->message->trace : &a->extra->trace;
}

static uint64_t key_of(const struct rh_actor *a)
{
    return (uint64_t)(uintptr_t)a; // which has one commit on its way at most
}

void traced_commit(struct rh_actor *a)
{
    struct runtime *s = a->runtime;

    if (spans_wanted(&s->spans)) {
        struct trace_span span = spans_child(
            &s->spans, &a->extra->trace, SPAN_COMMIT, a->kind, bytes_of(a->id, a->id_size));

        span.from_us = s->now_us;
        (void)spans_begin(&s->spans, key_of(a), &span);
    }
}

void traced_committed(struct rh_actor *a, const char *outcome)
{
    struct runtime *s = a->runtime;

    if (__builtin_expect(s->spans.open.count > 0, false)) {
        spans_end(&s->spans, key_of(a), s->now_us, outcome, 0);
    }
}

/* ---- ringhold.h ---- */

int rh_trace(const struct rh_actor *actor, char traceparent[RH_TRACE_SIZE])
{
    if (actor == NULL || traceparent == NULL) {
        return RH_INVALID;
    }
    const struct trace_context *trace = traced_context(actor);

    if (trace == NULL) {
        traceparent[0] = '\0';
        return RH_GONE;
    }
    (void)traceparent_print(trace, traceparent);
    return RH_OK;
}
_Static_assert((int)RH_TRACE_SIZE == TRACEPARENT_SIZE + 1, "with a 0 behind");
