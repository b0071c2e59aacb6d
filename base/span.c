/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws ids, and keeps spans that are open.
 */
#include "base/span.h"

#include "base/list.h"
#include "base/mem.h"

#include <string.h>

const char *const span_names[SPAN_WHATS] = {
    [SPAN_REQUEST] = "request",
    [SPAN_CALL] = "call",
    [SPAN_SEND] = "send",
    [SPAN_HOLD] = "hold",
    [SPAN_FORWARD] = "forward",
    [SPAN_MAILBOX] = "mailbox",
    [SPAN_HANDLER] = "handler",
    [SPAN_COMMIT] = "commit",
};

struct open_span {
    struct table_link link;
    uint64_t key;
    struct trace_span span;
};

/* None of an id's bytes are all 0. */
static void draw(struct spans *s, uint8_t id[TRACE_SPAN_SIZE])
{
    uint64_t word = 0;

    while (word == 0) {
        word = prng_u64(&s->ids);
    }
    memcpy(id, &word, sizeof word);
}

struct trace_context spans_new_trace(struct spans *s)
{
    struct trace_context c = {.flags = TRACE_SAMPLED};

    draw(s, c.trace);
    draw(s, c.trace + TRACE_SPAN_SIZE);
    return c;
}

struct trace_span spans_child(struct spans *s, const struct trace_context *parent,
                              enum span_what what, uint16_t kind, struct bytes id)
{
    struct trace_span span = {
        .what = what,
        .context = *parent,
        .kind = kind,
        .id_size = (uint8_t)(id.size < SPAN_NAME_ID_MAX ? id.size : SPAN_NAME_ID_MAX),
    };

    memcpy(span.parent, parent->span, sizeof span.parent);
    draw(s, span.context.span);
    memcpy(span.id, id.data, span.id_size);
    return span;
}

void spans_put(struct spans *s, const struct trace_span *span)
{
    s->tracing->put(s->tracing->context, span);
}

void spans_drop(struct spans *s, enum span_drop why)
{
    s->tracing->drop(s->tracing->context, why);
}

static struct open_span *find(const struct spans *s, uint64_t key)
{
    struct table_link *l = table_first(&s->open, table_mix(key)); // which is one to one

    return l == NULL ? NULL : CONTAINER_OF(l, struct open_span, link);
}

bool spans_begin(struct spans *s, uint64_t key, const struct trace_span *span)
{
    if (s->open.count >= SPANS_OPEN_MAX) {
        spans_drop(s, SPAN_DROP_OPEN);
        return false;
    }
    ASSERT(find(s, key) == NULL);
    struct open_span *o = mem_new(1, sizeof *o);

    o->key = key;
    o->span = *span;
    table_put(&s->open, &o->link, table_mix(key));
    return true;
}

bool spans_find(const struct spans *s, uint64_t key, struct trace_span *span)
{
    const struct open_span *o = find(s, key);

    if (o != NULL) {
        *span = o->span;
    }
    return o != NULL;
}

bool spans_set_ticket(struct spans *s, uint64_t key, uint64_t ticket)
{
    struct open_span *o = find(s, key);

    if (o != NULL) {
        o->span.ticket = ticket;
    }
    return o != NULL;
}

void spans_end(struct spans *s, uint64_t key, uint64_t now_us, const char *outcome,
               uint32_t attempts)
{
    struct open_span *o = find(s, key);

    if (o == NULL) {
        return;
    }
    o->span.to_us = now_us;
    o->span.outcome = outcome;
    o->span.attempts = attempts;
    spans_put(s, &o->span);
    table_remove(&s->open, &o->link);
    mem_free(o);
}

void spans_fini(struct spans *s)
{
    struct table_walk at = {0};

    for (struct table_link *l = table_walk(&s->open, &at); l != NULL;
         l = table_walk(&s->open, &at)) {
        table_remove(&s->open, l);
        mem_free(CONTAINER_OF(l, struct open_span, link));
    }
    table_fini(&s->open);
}
