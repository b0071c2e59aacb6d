/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a gateway's figures for /metrics.
 */
#include "gateway/client/metrics.h"

#include "gateway/client/stat_rows.h"

static const struct metric transport = {
    "ringhold_gateway_transport_total", "WebSocket connections, by event.", METRIC_COUNTER};

static const struct metric http_refused = {
    "ringhold_gateway_http_refused_total",
    "HTTP requests that did not run, and connections that the gateway ended, by reason.",
    METRIC_COUNTER};

static const struct metric kicked = {
    "ringhold_gateway_kicks_total",
    "Connections kicked with one of the gateway's own codes, by reason.",
    METRIC_COUNTER};

void gateway_metrics(const struct gateway_stats *t, struct metrics *m)
{
    for (size_t i = 0; i < stat_row_count; i++) {
        const struct stat_row *f = &stat_rows[i];

        if (f->label == NULL) {
            metrics_put(m, f->metric, stat_row_value(f, t));
        } else {
            metrics_put_labelled(m, f->metric, f->label, f->word, stat_row_value(f, t));
        }
    }
    for (size_t i = 0; i < TRANSPORT_EVENT_COUNT; i++) {
        metrics_put_labelled(m,
                             &transport,
                             "event",
                             transport_event_name((enum transport_event)i),
                             t->clients.transports.count[i]);
    }
    for (size_t i = 0; i < HTTP_REFUSAL_COUNT; i++) {
        metrics_put_labelled(m,
                             &http_refused,
                             "reason",
                             http_why((enum http_refusal)i)->word,
                             t->clients.http_refused[i]);
    }
    for (size_t i = 0; i < PACKET_KICK_COUNT; i++) {
        metrics_put_labelled(m,
                             &kicked,
                             "reason",
                             packet_kick_name((enum packet_kick)(PACKET_KICK_BAD_PACKET + i)),
                             t->clients.kicks[i]);
    }
}

void gateway_latency_metrics(const struct latencies *l, const struct exemplars *e,
                             struct metrics *m)
{
    static const struct metric took = {
        "ringhold_gateway_request_seconds",
        "How long requests took from when they were read to their answer, by kind and outcome.",
        METRIC_HISTOGRAM};
    static const struct metrics_series outcomes = {
        .label = "outcome", .word = router_reply_words, .count = REPLY_CODES};

    metrics_put_latencies(m, &took, &outcomes, l, e);
}
