/* SPDX-License-Identifier: Apache-2.0
 *
 * Which trace does a request belong to? W3C trace context, level 1
 * (https://www.w3.org/TR/trace-context/): as text, the value of the header
 * `traceparent`, and as the 25 bytes that go with a request inside a fleet.
 *
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *     version, trace, span of the sender, flags: lowercase hexadecimal digits
 *
 * Pure.
 */
#ifndef BASE_TRACEPARENT_H
#define BASE_TRACEPARENT_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TRACE_ID_SIZE = 16,
    TRACE_SPAN_SIZE = 8,
    TRACE_CONTEXT_SIZE = TRACE_ID_SIZE + TRACE_SPAN_SIZE + 1, /* as bytes */
    TRACEPARENT_SIZE = 55,                                    /* as text, without a 0 behind */
    TRACE_SAMPLED = 1, /* of the flags: the sender records this trace */
};

struct trace_context {
    uint8_t trace[TRACE_ID_SIZE];  /* not all 0 */
    uint8_t span[TRACE_SPAN_SIZE]; /* of the sender; all 0 = it has none: the trace begins here */
    uint8_t flags;
};

/* Read the value of a header `traceparent`. False: it is invalid, and to be treated as if there
 * were none. A version later than 00 may have more behind the flags. */
bool traceparent_parse(struct bytes text, struct trace_context *out);

/* Write it as version 00, with a 0 behind. Returns `out`. Of the flags, SAMPLED alone is told, as
 * version 00 knows no other. */
const char *traceparent_print(const struct trace_context *c, char out[TRACEPARENT_SIZE + 1]);

/* Write the id of a trace, or of a span, as hexadecimal digits, with a 0 behind. Returns `out`. */
const char *traceparent_hex(const uint8_t *id, size_t size, char *out);

/* The 25 bytes: trace, span, flags. */
static inline void trace_context_store(uint8_t at[TRACE_CONTEXT_SIZE],
                                       const struct trace_context *c)
{
    memcpy(at, c->trace, TRACE_ID_SIZE);
    memcpy(at + TRACE_ID_SIZE, c->span, TRACE_SPAN_SIZE);
    at[TRACE_CONTEXT_SIZE - 1] = c->flags;
}

static inline void trace_context_load(const uint8_t at[TRACE_CONTEXT_SIZE], struct trace_context *c)
{
    memcpy(c->trace, at, TRACE_ID_SIZE);
    memcpy(c->span, at + TRACE_ID_SIZE, TRACE_SPAN_SIZE);
    c->flags = at[TRACE_CONTEXT_SIZE - 1];
}

/* Take the context off the end of `body`, which has at least TRACE_CONTEXT_SIZE bytes. */
static inline void trace_context_take(struct bytes *body, struct trace_context *c)
{
    body->size -= TRACE_CONTEXT_SIZE;
    trace_context_load(body->data + body->size, c);
}

/* A sender gave it, whole, and records it: neither id is all 0. */
bool trace_context_is_sampled(const struct trace_context *c);

#endif
