/* SPDX-License-Identifier: Apache-2.0
 *
 * A collector of traces, by HTTP: what became of a document that it was sent?
 */
#ifndef DAEMON_COLLECTOR_CURL_H
#define DAEMON_COLLECTOR_CURL_H

#include "base/bytes.h"

enum { COLLECTOR_WHY_SIZE = 256 };

enum collector_result {
    COLLECTOR_TOOK,
    COLLECTOR_LATER,   /* it can't be reached, or has no room: send it again */
    COLLECTOR_REFUSES, /* it never takes that */
};

struct trace_collector;

/* Load libcurl and take a URL, http:// or https://. The URL of OTLP's base alone gets /v1/traces
 * appended. Before the process has other threads. NULL: `why` says what is wrong. Nothing is sent
 * yet. */
struct trace_collector *trace_collector_new(const char *url, char why[COLLECTOR_WHY_SIZE]);
void trace_collector_free(struct trace_collector *c);
/* POST a document of JSON; waits for the answer, at most `timeout_ms`. `why` says what is wrong
 * unless it was taken. From one thread at a time. */
enum collector_result trace_collector_post(struct trace_collector *c, struct bytes document,
                                           long timeout_ms, char why[COLLECTOR_WHY_SIZE]);

#endif
