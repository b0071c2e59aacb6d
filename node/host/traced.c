/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes the spans of traced requests at a node.
 */
#include "node/host/traced.h"

#include "base/assert.h"
#include "node/host/inside.h"

static struct trace_context context_of(const struct request_record *r)
{
    struct trace_context parent;
    struct bytes body = r->body;

    trace_context_take(&body, &parent);
    return parent;
}

/* Below whoever asks, from then until now. */
static struct trace_span span_of(struct host *h, const struct request_record *r,
                                 enum span_what what, uint64_t from_us)
{
    const struct trace_context parent = context_of(r);
    struct trace_span span = spans_child(&h->spans, &parent, what, r->kind, r->id);

    span.from_us = from_us;
    span.to_us = h->now_us;
    return span;
}

void traced_held(struct host *h, const struct waiting *w, uint64_t txn)
{
    if (traced_is(&w->record) && spans_wanted(&h->spans)) {
        struct trace_span span = span_of(h, &w->record, SPAN_HOLD, w->boxed_us);

        span.txn = txn;
        spans_put(&h->spans, &span);
    }
}

void traced_all_held(struct host *h, const struct queue *q, uint64_t txn)
{
    for (const struct waiting *w = spans_wanted(&h->spans) ? queue_front(q) : NULL; w != NULL;
         w = queue_next(q, w)) {
        traced_held(h, w, txn);
    }
}

void traced_forward(struct host *h, const struct admission *in)
{
    if (spans_wanted(&h->spans)) {
        const struct trace_span span =
            span_of(h, in->r, SPAN_FORWARD, admission_came_us(in, h->now_us));

        spans_put(&h->spans, &span);
    }
}

void traced_run(struct host *h, const struct admission *in, uint64_t ticket, struct host_effect *e)
{
    const struct request_record *r = in->r;
    const struct bytes body = bytes_of(r->body.data, r->body.size - TRACE_CONTEXT_SIZE);
    struct trace_context context = context_of(r);
    uint8_t bytes[TRACE_CONTEXT_SIZE];

    if (spans_wanted(&h->spans)) {
        struct trace_span handler = span_of(h, r, SPAN_HANDLER, h->now_us);

        handler.came_us = admission_came_us(in, h->now_us);
        handler.is_counted = true;
        handler.has_row = latencies_find(&h->times.all, r->kind) != 0;
        if (in->w != NULL) {
            const struct trace_span waited = span_of(h, r, SPAN_MAILBOX, in->w->boxed_us);

            spans_put(&h->spans, &waited);
        }
        if (spans_begin(&h->spans, ticket, &handler)) {
            context = handler.context;
        }
    }
    trace_context_store(bytes, &context);
    host_emit_bytes(h, e, body);
    host_emit_bytes(h, e, bytes_of(bytes, sizeof bytes));
}

void traced_end(struct host *h, uint64_t ticket, enum answer_code code)
{
    ASSERT(code <= ANSWER_CODE_LAST);
    if (__builtin_expect(h->spans.open.count > 0, false)) {
        spans_end(
            &h->spans, ticket, h->now_us, code == ANSWER_OK ? NULL : times_answer_words[code], 0);
    }
}

void traced_strip(struct request_record *r)
{
    r->flags &= (uint8_t)~REQUEST_TRACED;
    r->body.size -= TRACE_CONTEXT_SIZE;
}
