/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes spans as OTLP's JSON: ids as hexadecimal digits, 64-bit numbers as text.
 */
#include "daemon/otlp.h"

#include "base/actor_name.h"
#include "base/stamp.h"
#include "daemon/json.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    NUMBER_SIZE = 24,
    HEX_SIZE = 2 * TRACE_ID_SIZE + 1,
    KIND_INTERNAL = 1,
    KIND_SERVER = 2,
    KIND_CLIENT = 3,
    KIND_PRODUCER = 4,
    STATUS_ERROR = 2,
};

static int kind_of(enum span_what what)
{
    switch (what) {
    case SPAN_REQUEST:
        return KIND_SERVER;
    case SPAN_CALL:
    case SPAN_COMMIT:
        return KIND_CLIENT;
    case SPAN_SEND:
        return KIND_PRODUCER;
    case SPAN_HANDLER:
        return KIND_SERVER;
    case SPAN_HOLD:
    case SPAN_FORWARD:
    case SPAN_MAILBOX:
        return KIND_INTERNAL;
    }
    return KIND_INTERNAL;
}

static void put_attribute(struct buffer *out, const char *key, const char *type, const char *value)
{
    json_begin(out, NULL, '{');
    json_text(out, "key", key);
    json_begin(out, "value", '{');
    json_text(out, type, value);
    json_end(out, '}');
    json_end(out, '}');
}

static void put_integer(struct buffer *out, const char *key, uint64_t value)
{
    char text[NUMBER_SIZE];

    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    put_attribute(out, key, "intValue", text);
}

static void put_time(struct buffer *out, const char *key, uint64_t us)
{
    char text[NUMBER_SIZE];

    (void)snprintf(text, sizeof text, "%" PRIu64 "000", us);
    json_text(out, key, text);
}

static void put_attributes(struct buffer *out, const struct trace_span *s)
{
    char name[ACTOR_NAME_SIZE];

    json_begin(out, "attributes", '[');
    put_attribute(out,
                  "ringhold.actor",
                  "stringValue",
                  actor_name_print(s->kind, bytes_of(s->id, s->id_size), name));
    put_integer(out, "ringhold.kind", s->kind);
    put_attribute(out, "ringhold.outcome", "stringValue", s->outcome == NULL ? "ok" : s->outcome);
    if (s->attempts > 0) {
        put_integer(out, "ringhold.attempts", s->attempts);
    }
    if (s->what == SPAN_HOLD) {
        put_attribute(out, "ringhold.cause", "stringValue", "move");
        put_attribute(out, "ringhold.txn", "stringValue", STAMP(s->txn));
    }
    json_end(out, ']');
}

static void put_span(struct buffer *out, const struct trace_span *s, uint64_t wall_offset_us)
{
    static const uint8_t none[TRACE_SPAN_SIZE];
    char hex[HEX_SIZE];

    json_begin(out, NULL, '{');
    json_text(out, "traceId", traceparent_hex(s->context.trace, TRACE_ID_SIZE, hex));
    json_text(out, "spanId", traceparent_hex(s->context.span, TRACE_SPAN_SIZE, hex));
    if (memcmp(s->parent, none, sizeof none) != 0) {
        json_text(out, "parentSpanId", traceparent_hex(s->parent, TRACE_SPAN_SIZE, hex));
    }
    json_text(out, "name", span_names[s->what]);
    json_number(out, "kind", (uint64_t)kind_of(s->what));
    put_time(out, "startTimeUnixNano", s->from_us + wall_offset_us);
    put_time(out, "endTimeUnixNano", s->to_us + wall_offset_us);
    put_attributes(out, s);
    json_begin(out, "status", '{');
    if (s->outcome != NULL) {
        json_text(out, "message", s->outcome);
        json_number(out, "code", STATUS_ERROR);
    }
    json_end(out, '}');
    json_end(out, '}');
}

static void put_resource(struct buffer *out, const struct otlp_resource *who)
{
    json_begin(out, "resource", '{');
    json_begin(out, "attributes", '[');
    put_attribute(out, "service.name", "stringValue", who->service);
    put_attribute(out, "service.instance.id", "stringValue", who->instance);
    put_attribute(out, "service.namespace", "stringValue", who->cluster);
    put_attribute(out, "service.version", "stringValue", RINGHOLD_VERSION);
    json_end(out, ']');
    json_end(out, '}');
}

void otlp_put(struct buffer *out, const struct otlp_resource *who, const struct trace_span *span,
              size_t count, uint64_t wall_offset_us)
{
    json_begin(out, NULL, '{');
    json_begin(out, "resourceSpans", '[');
    json_begin(out, NULL, '{');
    put_resource(out, who);
    json_begin(out, "scopeSpans", '[');
    json_begin(out, NULL, '{');
    json_begin(out, "scope", '{');
    json_text(out, "name", "ringhold");
    json_end(out, '}');
    json_begin(out, "spans", '[');
    for (size_t i = 0; i < count; i++) {
        put_span(out, &span[i], wall_offset_us);
    }
    json_end(out, ']');
    json_end(out, '}');
    json_end(out, ']');
    json_end(out, '}');
    json_end(out, ']');
    json_end(out, '}');
}
