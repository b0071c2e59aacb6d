/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that are traced: they go as all others do, with their context behind their body, and
 * their span ends when they do. Until then they have a ticket of their own here, by which it is
 * found, and which is with the request wherever it waits.
 */
#include "route/router_inside.h"

enum { OWN_TICKET_BIT = 63 }; /* no caller's ticket of a traced request has it */

static bool is_own(uint64_t ticket)
{
    return ticket >> OWN_TICKET_BIT != 0 && ticket != UINT64_MAX;
}

static enum span_what what_of(const struct router_event *event)
{
    if (event->from == NULL) {
        return SPAN_REQUEST;
    }
    return (event->flags & REQUEST_NO_REPLY) != 0 ? SPAN_SEND : SPAN_CALL;
}

/* With its context behind. */
static struct bytes body_of(struct router *r, const struct router_event *event,
                            const struct trace_context *context)
{
    buffer_clear(&r->body);
    uint8_t *at = buffer_reserve(&r->body, event->body.size + TRACE_CONTEXT_SIZE);

    if (event->command != NULL) {
        args_command_store(at, event->command);
    } else {
        bytes_copy(at, event->body.data, event->body.size);
    }
    trace_context_store(at + event->body.size, context);
    return bytes_of(at, event->body.size + TRACE_CONTEXT_SIZE);
}

void route_request_traced(struct router *r, const struct router_event *event)
{
    const struct trace_context *parent = event->trace;
    struct router_event inner = *event;
    bool traced = true;

    ASSERT((event->flags & REQUEST_SESSION) == 0 && event->common == NULL);
    ASSERT(event->body.size <= RECORD_BODY_MAX);
    inner.trace = NULL;
    if (spans_wanted(&r->spans)) {
        struct trace_span span =
            spans_child(&r->spans, parent, what_of(event), event->kind, event->id);

        span.from_us = span.came_us = r->now_us;
        span.is_counted = true;
        span.has_row = latencies_find(&r->latencies, event->kind) != 0;
        span.ticket = event->ticket;
        inner.ticket = UINT64_C(1) << OWN_TICKET_BIT | ++r->traced;
        traced = spans_begin(&r->spans, inner.ticket, &span);
        inner.body = traced ? body_of(r, event, &span.context) : event->body;
        inner.ticket = traced ? inner.ticket : event->ticket;
    } else {
        inner.body = body_of(r, event, parent);
    }
    inner.flags |= traced ? REQUEST_TRACED : 0;
    inner.command = traced ? NULL : event->command;
    route_request(r, &inner);
}

uint64_t route_end_span(struct router *r, uint64_t ticket, enum reply_code code, uint32_t attempts)
{
    struct trace_span span;

    if (!is_own(ticket) || !spans_find(&r->spans, ticket, &span)) {
        return ticket;
    }
    spans_end(
        &r->spans, ticket, r->now_us, code == REPLY_OK ? NULL : router_reply_words[code], attempts);
    return span.ticket;
}

void route_retarget(struct router *r, struct pending *p, const struct router_event *event)
{
    const uint64_t ticket = (event->flags & REQUEST_TRACED) != 0
                                ? route_end_span(r, event->ticket, REPLY_UNKNOWN, 0)
                                : event->ticket;

    // The first trace goes on.
    if ((p->flags & REQUEST_TRACED) == 0 || !spans_set_ticket(&r->spans, p->ticket, ticket)) {
        p->ticket = ticket;
    }
}
