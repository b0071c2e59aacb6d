/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans as OTLP/HTTP JSON (https://opentelemetry.io/docs/specs/otlp/): one
 * ExportTraceServiceRequest, an object on one line.
 *
 * Pure.
 */
#ifndef DAEMON_OTLP_H
#define DAEMON_OTLP_H

#include "base/bytes.h"
#include "base/span.h"

/* Whose spans they are. Texts are UTF-8, borrowed. */
struct otlp_resource {
    const char *service;  /* "ringhold-node" */
    const char *instance; /* its name in the fleet */
    const char *cluster;
};

/* Append the document. `wall_offset_us`: the wall clock is so much ahead of the spans'. */
void otlp_put(struct buffer *out, const struct otlp_resource *who, const struct trace_span *span,
              size_t count, uint64_t wall_offset_us);

#endif
