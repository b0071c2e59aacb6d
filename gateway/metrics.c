/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/metrics.h"

#include <stddef.h>

static const struct metrics_row requests[] = {
    {{"ringhold_gateway_requests_total", "Requests taken from clients.", METRIC_COUNTER},
     offsetof(struct tally, router.requests),
     false},
    {{"ringhold_gateway_replies_total",
      "Requests that were answered, whatever the answer.",
      METRIC_COUNTER},
     offsetof(struct tally, router.replied),
     false},
    {{"ringhold_gateway_in_flight", "Requests that wait for their answer.", METRIC_GAUGE},
     offsetof(struct tally, router.in_flight),
     false},
    {{"ringhold_gateway_waiting",
      "Requests in flight that are at the gateway, not with a node.",
      METRIC_GAUGE},
     offsetof(struct tally, router.waiting),
     false},
    {{"ringhold_gateway_resent_total", "Attempts after the first of a request.", METRIC_COUNTER},
     offsetof(struct tally, router.resent),
     false},
    {{"ringhold_gateway_retried_total",
      "Attempts for want of an answer, or for a lost link.",
      METRIC_COUNTER},
     offsetof(struct tally, router.retried),
     false},
    {{"ringhold_gateway_moved_answers_total",
      "Answers of nodes that the id is elsewhere.",
      METRIC_COUNTER},
     offsetof(struct tally, router.moved),
     false},
    {{"ringhold_gateway_cold_answers_total",
      "Answers of nodes that took an id over cold.",
      METRIC_COUNTER},
     offsetof(struct tally, router.cold),
     false},
    {{"ringhold_gateway_stale_answers_total", "Answers of fenced owners, refused.", METRIC_COUNTER},
     offsetof(struct tally, router.stale_answers),
     false},
    {{"ringhold_gateway_late_answers_total", "Answers to requests that were over.", METRIC_COUNTER},
     offsetof(struct tally, router.late_answers),
     false},
};

static const struct metric outcome = {
    "ringhold_gateway_not_ok_total",
    "Requests that ended otherwise than with an answer of their actor.",
    METRIC_COUNTER};
static const struct metrics_word outcomes[] = {
    {"unknown", offsetof(struct tally, router.unknown)},
    {"timeout", offsetof(struct tally, router.timeout)},
    {"rejected", offsetof(struct tally, router.rejected)},
    {"overloaded", offsetof(struct tally, router.overloaded)},
};

static const struct metrics_row clients[] = {
    {{"ringhold_gateway_ring_version",
      "Version of the ring that requests are routed by.",
      METRIC_GAUGE},
     offsetof(struct tally, router.version),
     false},
    {{"ringhold_gateway_threads", "Event loops.", METRIC_GAUGE},
     offsetof(struct tally, threads),
     false},
    {{"ringhold_gateway_connections", "Connections of clients.", METRIC_GAUGE},
     offsetof(struct tally, clients.connected),
     false},
    {{"ringhold_gateway_connections_limit", "Connections that it takes at most.", METRIC_GAUGE},
     offsetof(struct tally, connections_max),
     false},
    {{"ringhold_gateway_connections_accepted_total",
      "Connections that were taken.",
      METRIC_COUNTER},
     offsetof(struct tally, clients.accepted),
     false},
    {{"ringhold_gateway_connections_refused_total",
      "Connections that were turned away for a limit.",
      METRIC_COUNTER},
     offsetof(struct tally, clients.refused),
     false},
    {{"ringhold_gateway_unauthenticated",
      "Connections that have shown no token yet.",
      METRIC_GAUGE},
     offsetof(struct tally, clients.strangers),
     false},
    {{"ringhold_gateway_authenticated_total",
      "Connections that showed a good token.",
      METRIC_COUNTER},
     offsetof(struct tally, clients.authenticated),
     false},
    {{"ringhold_gateway_logins_under_way", "Logins that an actor is asked for.", METRIC_GAUGE},
     offsetof(struct tally, clients.logins.under_way),
     false},
    {{"ringhold_gateway_rate_limited_total",
      "Requests beyond the rate of their connection.",
      METRIC_COUNTER},
     offsetof(struct tally, clients.rate_limited),
     false},
    {{"ringhold_gateway_unauthorized_total",
      "Requests for another entity than the token's.",
      METRIC_COUNTER},
     offsetof(struct tally, clients.unauthorized),
     false},
    {{"ringhold_gateway_commands_total", "Commands of Redis clients.", METRIC_COUNTER},
     offsetof(struct tally, clients.commands),
     false},
    {{"ringhold_gateway_error_replies_total",
      "Replies to Redis clients that are errors.",
      METRIC_COUNTER},
     offsetof(struct tally, clients.errors),
     false},
    {{"ringhold_gateway_packets_total", "Packets of clients.", METRIC_COUNTER},
     offsetof(struct tally, clients.packets),
     false},
    {{"ringhold_gateway_bad_requests_total",
      "Packets that asked for what makes no sense.",
      METRIC_COUNTER},
     offsetof(struct tally, clients.bad_requests),
     false},
    {{"ringhold_gateway_client_buffers_bytes", "Memory held for clients.", METRIC_GAUGE},
     offsetof(struct tally, clients.buffered),
     false},
    {{"ringhold_gateway_client_buffers_limit_bytes",
      "Memory that may be held for clients.",
      METRIC_GAUGE},
     offsetof(struct tally, buffers_max),
     false},
};

static const struct metric closed = {"ringhold_gateway_connections_closed_total",
                                     "Connections that the gateway closed, by reason.",
                                     METRIC_COUNTER};
static const struct metrics_word reasons[] = {
    {"bad_input", offsetof(struct tally, clients.bad_input)},
    {"stalled", offsetof(struct tally, clients.stalled)},
    {"overrun", offsetof(struct tally, clients.overrun)},
    {"unread_pushes", offsetof(struct tally, clients.pushes.cut)},
    {"kicked_by_actor", offsetof(struct tally, clients.pushes.kicked)},
};

static const struct metric refused = {"ringhold_gateway_refused_total",
                                      "Connections that were turned away, by reason.",
                                      METRIC_COUNTER};
static const struct metrics_word refusals[] = {
    {"full", offsetof(struct tally, clients.refused_full)},
    {"accept_rate", offsetof(struct tally, clients.refused_accept_rate)},
    {"address_rate", offsetof(struct tally, clients.refused_address_rate)},
    {"address_count", offsetof(struct tally, clients.refused_address_count)},
    {"unauthenticated", offsetof(struct tally, clients.refused_strangers)},
    {"unauthenticated_address", offsetof(struct tally, clients.refused_address)},
};

static const struct metric logins = {"ringhold_gateway_logins_total",
                                     "Logins that an actor was asked for, by how they ended.",
                                     METRIC_COUNTER};
static const struct metrics_word login_ends[] = {
    {"ok", offsetof(struct tally, clients.logins.ok)},
    {"refused", offsetof(struct tally, clients.logins.refused)},
    {"broken", offsetof(struct tally, clients.logins.broken)},
    {"unanswered", offsetof(struct tally, clients.logins.unanswered)},
    {"full", offsetof(struct tally, clients.logins.full)},
    {"left", offsetof(struct tally, clients.logins.left)},
};

static const struct metric transport = {
    "ringhold_gateway_transport_total", "What became of WebSockets, by event.", METRIC_COUNTER};

static const struct metric kicked = {"ringhold_gateway_kicks_total",
                                     "Connections kicked with a code of the gateway, by reason.",
                                     METRIC_COUNTER};

static const struct metrics_row sessions[] = {
    {{"ringhold_gateway_sessions", "Connections that are bound to an actor.", METRIC_GAUGE},
     offsetof(struct tally, clients.pushes.bound),
     false},
    {{"ringhold_gateway_session_asks_total",
      "Times that a bond was asked for again.",
      METRIC_COUNTER},
     offsetof(struct tally, clients.pushes.resumed),
     false},
    {{"ringhold_gateway_sessions_returned_total",
      "Clients that came back to their session.",
      METRIC_COUNTER},
     offsetof(struct tally, clients.pushes.returned),
     false},
    {{"ringhold_gateway_sessions_rebound_total",
      "Clients that their actor let go on as another entity.",
      METRIC_COUNTER},
     offsetof(struct tally, clients.pushes.rebound),
     false},
    {{"ringhold_gateway_sessions_gone_total",
      "Clients that came back and found their session over.",
      METRIC_COUNTER},
     offsetof(struct tally, clients.pushes.gone),
     false},
    {{"ringhold_gateway_pushes_total", "Pushes handed to clients.", METRIC_COUNTER},
     offsetof(struct tally, clients.pushes.delivered),
     false},
    {{"ringhold_gateway_pushes_lost_total", "Pushes whose number never came.", METRIC_COUNTER},
     offsetof(struct tally, clients.pushes.lost),
     false},
};

static const struct metric dropped = {"ringhold_gateway_pushes_dropped_total",
                                      "Pushes that reached no client, by reason.",
                                      METRIC_COUNTER};
static const struct metrics_word drops[] = {
    {"unknown", offsetof(struct tally, clients.pushes.dropped_unknown)},
    {"stale", offsetof(struct tally, clients.pushes.dropped_stale)},
    {"copy", offsetof(struct tally, clients.pushes.dropped_copy)},
    {"room", offsetof(struct tally, clients.pushes.dropped_room)},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

void gateway_metrics(const struct tally *t, struct metrics *m)
{
    metrics_put_rows(m, requests, COUNT(requests), t);
    metrics_put_words(m, &outcome, "outcome", outcomes, COUNT(outcomes), t);
    metrics_put_rows(m, clients, COUNT(clients), t);
    metrics_put_words(m, &refused, "reason", refusals, COUNT(refusals), t);
    metrics_put_words(m, &closed, "reason", reasons, COUNT(reasons), t);
    metrics_put_words(m, &logins, "outcome", login_ends, COUNT(login_ends), t);
    for (size_t i = 0; i < CARRIER_EVENT_COUNT; i++) {
        metrics_put_labelled(m,
                             &transport,
                             "event",
                             carrier_event_name((enum carrier_event)i),
                             t->clients.carriers.count[i]);
    }
    for (size_t i = 0; i < PACKET_KICK_COUNT; i++) {
        metrics_put_labelled(m,
                             &kicked,
                             "reason",
                             packet_kick_name((enum packet_kick)(PACKET_KICK_BAD_PACKET + i)),
                             t->clients.kicks[i]);
    }
    metrics_put_rows(m, sessions, COUNT(sessions), t);
    metrics_put_words(m, &dropped, "reason", drops, COUNT(drops), t);
}
