/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a gateway's figures: a row for each, with its names in INFO and
 * for Prometheus.
 */
#include "gateway/client/stat_rows.h"

#include <stddef.h>

/* The only value of its metric, … */
#define ONE(field, section, name, ...)                                                             \
    {                                                                                              \
        offsetof(struct gateway_stats, field), section, name, &(const struct metric){__VA_ARGS__}, \
            NULL, NULL                                                                             \
    }
/* … or one of several. */
#define OF(field, section, name, metric, label, word)                             \
    {                                                                             \
        offsetof(struct gateway_stats, field), section, name, metric, label, word \
    }

static const struct metric outcome = {
    "ringhold_gateway_not_ok_total",
    "Requests that ended without an answer of their actor, by reason.",
    METRIC_COUNTER};
static const struct metric closed = {"ringhold_gateway_connections_closed_total",
                                     "Connections that the gateway closed, by reason.",
                                     METRIC_COUNTER};
static const struct metric refused = {"ringhold_gateway_refused_total",
                                      "Connections that were turned away, by reason.",
                                      METRIC_COUNTER};
static const struct metric rests = {"ringhold_gateway_rests_total",
                                    "Times that a connection had to wait: its entity or address "
                                    "had used its share, or it had sent too much that was refused.",
                                    METRIC_COUNTER};
static const struct metric logins = {
    "ringhold_gateway_logins_total", "Logins passed to a login actor, by outcome.", METRIC_COUNTER};
static const struct metric dropped = {"ringhold_gateway_pushes_dropped_total",
                                      "Pushes that reached no client, by reason.",
                                      METRIC_COUNTER};

const struct stat_row stat_rows[] = {
    ONE(router.requests, "RINGHOLD", "requests", "ringhold_gateway_requests_total",
        "Requests accepted from clients.", METRIC_COUNTER),
    ONE(router.replied, NULL, NULL, "ringhold_gateway_replies_total",
        "Requests answered, whatever the answer.", METRIC_COUNTER),
    ONE(router.in_flight, "RINGHOLD", "in_flight", "ringhold_gateway_in_flight",
        "Requests that wait for their answer.", METRIC_GAUGE),
    ONE(router.waiting, "RINGHOLD", "waiting", "ringhold_gateway_waiting",
        "Requests in flight that wait at the gateway, not at a node.", METRIC_GAUGE),
    ONE(router.resent, "RINGHOLD", "resent", "ringhold_gateway_resent_total",
        "Attempts after a request's first.", METRIC_COUNTER),
    ONE(router.retried, "RINGHOLD", "retried", "ringhold_gateway_retried_total",
        "Attempts repeated because no answer came, or because a link was lost.", METRIC_COUNTER),
    ONE(router.moved, "RINGHOLD", "moved", "ringhold_gateway_moved_answers_total",
        "Answers of nodes that the id is at another node.", METRIC_COUNTER),
    ONE(router.cold, "RINGHOLD", "cold", "ringhold_gateway_cold_answers_total",
        "Answers of nodes that took an id over cold.", METRIC_COUNTER),
    ONE(router.stale_answers, "RINGHOLD", "stale_answers", "ringhold_gateway_stale_answers_total",
        "Answers of fenced owners; the gateway refuses them.", METRIC_COUNTER),
    ONE(router.late_answers, "RINGHOLD", "late_answers", "ringhold_gateway_late_answers_total",
        "Answers to requests that had already ended.", METRIC_COUNTER),
    ONE(router.loose_answers, "RINGHOLD", "loose_answers", "ringhold_gateway_loose_answers_total",
        "Answers of streams that were not joined; the gateway passes them over.", METRIC_COUNTER),
    ONE(router.bad_streams, "RINGHOLD", "bad_streams", "ringhold_gateway_bad_streams_total",
        "Frames of streams that cannot be; the gateway lets go of the node's link.",
        METRIC_COUNTER),
    OF(router.unknown, "RINGHOLD", "unknown", &outcome, "outcome", "unknown"),
    OF(router.timeout, "RINGHOLD", "timeout", &outcome, "outcome", "timeout"),
    OF(router.rejected, "RINGHOLD", "rejected", &outcome, "outcome", "rejected"),
    OF(router.overloaded, "RINGHOLD", "overloaded", &outcome, "outcome", "overloaded"),
    ONE(router.version, "RINGHOLD", "ring_version", "ringhold_gateway_ring_version",
        "Version of the ring that the gateway routes by.", METRIC_GAUGE),
    ONE(threads, "SERVER", "threads", "ringhold_gateway_threads", "Event loops.", METRIC_GAUGE),
    ONE(clients.connected, "CLIENTS", "connected_clients", "ringhold_gateway_connections",
        "Client connections now.", METRIC_GAUGE),
    ONE(connections_max, "CLIENTS", "maxclients", "ringhold_gateway_connections_limit",
        "Limit of client connections.", METRIC_GAUGE),
    ONE(clients.accepted, "STATS", "total_connections_received",
        "ringhold_gateway_connections_accepted_total",
        "Client connections accepted since the start.", METRIC_COUNTER),
    ONE(clients.refused, "STATS", "rejected_connections",
        "ringhold_gateway_connections_refused_total",
        "Client connections turned away because of a limit.", METRIC_COUNTER),
    ONE(clients.unauthenticated, "PACKETS", "unauthenticated", "ringhold_gateway_unauthenticated",
        "Client connections that have not logged in yet.", METRIC_GAUGE),
    ONE(clients.authenticated, "PACKETS", "authenticated", "ringhold_gateway_authenticated_total",
        "Client connections that logged in.", METRIC_COUNTER),
    ONE(clients.logins.under_way, "PACKETS", "logins_under_way",
        "ringhold_gateway_logins_under_way", "Logins that wait for a login actor.", METRIC_GAUGE),
    ONE(clients.rate_limited, "PACKETS", "rate_limited", "ringhold_gateway_rate_limited_total",
        "Requests beyond the rate limit of their connection.", METRIC_COUNTER),
    ONE(clients.unauthorized, "PACKETS", "unauthorized", "ringhold_gateway_unauthorized_total",
        "Requests for another entity than the token's.", METRIC_COUNTER),
    ONE(clients.commands, "STATS", "total_commands_processed", "ringhold_gateway_commands_total",
        "Commands of Redis clients.", METRIC_COUNTER),
    ONE(clients.errors, "STATS", "total_error_replies", "ringhold_gateway_error_replies_total",
        "Replies to Redis clients that are errors.", METRIC_COUNTER),
    ONE(clients.packets, "PACKETS", "packets", "ringhold_gateway_packets_total",
        "Packets of clients.", METRIC_COUNTER),
    ONE(clients.http_requests, "HTTP", "http_requests", "ringhold_gateway_http_requests_total",
        "Requests of HTTP clients.", METRIC_COUNTER),
    ONE(clients.bad_requests, "PACKETS", "bad_requests", "ringhold_gateway_bad_requests_total",
        "Packets with an invalid request.", METRIC_COUNTER),
    ONE(clients.buffered, "CLIENTS", "client_buffers", "ringhold_gateway_client_buffers_bytes",
        "Memory held for clients.", METRIC_GAUGE),
    ONE(buffers_max, "CLIENTS", "client_buffers_max", "ringhold_gateway_client_buffers_limit_bytes",
        "Memory that may be held for clients.", METRIC_GAUGE),
    OF(clients.refused_full, "PACKETS", "refused_full", &refused, "reason", "full"),
    OF(clients.refused_accept_rate, "PACKETS", "refused_accept_rate", &refused, "reason",
       "accept_rate"),
    OF(clients.refused_address_rate, "PACKETS", "refused_address_rate", &refused, "reason",
       "address_rate"),
    OF(clients.refused_address_count, "PACKETS", "refused_address_connections", &refused, "reason",
       "address_count"),
    OF(clients.refused_unauthenticated, "PACKETS", "refused_unauthenticated", &refused, "reason",
       "unauthenticated"),
    OF(clients.refused_address, "PACKETS", "refused_unauthenticated_address", &refused, "reason",
       "unauthenticated_address"),
    OF(clients.refused_address_share, "PACKETS", "refused_address_share", &refused, "reason",
       "address_share"),
    OF(clients.refused_entity_share, "PACKETS", "refused_entity_share", &refused, "reason",
       "entity_share"),
    OF(clients.rests_entity, "STATS", "rests_entity", &rests, "of", "entity"),
    OF(clients.rests_origin, "STATS", "rests_address", &rests, "of", "address"),
    OF(clients.rests_spent, "STATS", "rests_spent", &rests, "of", "spent"),
    OF(clients.bad_input, "STATS", "closed_bad_input", &closed, "reason", "bad_input"),
    OF(clients.stalled, "STATS", "closed_stalled", &closed, "reason", "stalled"),
    OF(clients.overrun, "STATS", "closed_overrun", &closed, "reason", "overrun"),
    OF(clients.pushes.cut, "SESSIONS", "closed_unread_pushes", &closed, "reason", "unread_pushes"),
    OF(clients.pushes.kicked, "SESSIONS", "closed_kicked", &closed, "reason", "kicked_by_actor"),
    OF(clients.logins.ok, "PACKETS", "logins_ok", &logins, "outcome", "ok"),
    OF(clients.logins.refused, "PACKETS", "logins_refused", &logins, "outcome", "refused"),
    OF(clients.logins.broken, "PACKETS", "logins_broken", &logins, "outcome", "broken"),
    OF(clients.logins.unanswered, "PACKETS", "logins_unanswered", &logins, "outcome", "unanswered"),
    OF(clients.logins.full, "PACKETS", "logins_full", &logins, "outcome", "full"),
    OF(clients.logins.left, "PACKETS", "logins_left", &logins, "outcome", "left"),
    ONE(clients.pushes.bound, "SESSIONS", "bound_clients", "ringhold_gateway_sessions",
        "Connections that are bound to an actor.", METRIC_GAUGE),
    ONE(clients.pushes.resumed, "SESSIONS", "sessions_resumed",
        "ringhold_gateway_session_asks_total",
        "Times that a bind was repeated after a move or a loss.", METRIC_COUNTER),
    ONE(clients.pushes.returned, "SESSIONS", "sessions_returned",
        "ringhold_gateway_sessions_returned_total", "Clients that resumed their session.",
        METRIC_COUNTER),
    ONE(clients.pushes.rebound, "SESSIONS", "sessions_rebound",
        "ringhold_gateway_sessions_rebound_total",
        "Clients whose actor passed them on to another entity.", METRIC_COUNTER),
    ONE(clients.pushes.gone, "SESSIONS", "sessions_gone", "ringhold_gateway_sessions_gone_total",
        "Clients that came back after their session had ended.", METRIC_COUNTER),
    ONE(clients.pushes.delivered, "SESSIONS", "pushes", "ringhold_gateway_pushes_total",
        "Pushes handed to clients.", METRIC_COUNTER),
    ONE(clients.pushes.lost, "SESSIONS", "pushes_lost", "ringhold_gateway_pushes_lost_total",
        "Numbered pushes that never arrived.", METRIC_COUNTER),
    OF(clients.pushes.dropped_unknown, "SESSIONS", "pushes_dropped_unknown", &dropped, "reason",
       "unknown"),
    OF(clients.pushes.dropped_stale, "SESSIONS", "pushes_dropped_stale", &dropped, "reason",
       "stale"),
    OF(clients.pushes.dropped_copy, "SESSIONS", "pushes_dropped_copy", &dropped, "reason", "copy"),
    OF(clients.pushes.dropped_room, "SESSIONS", "pushes_dropped_room", &dropped, "reason", "room"),
};

const size_t stat_row_count = sizeof stat_rows / sizeof stat_rows[0];
