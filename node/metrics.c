/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a node's figures for /metrics.
 */
#include "node/metrics.h"

#include <stddef.h>

static const struct metrics_row work[] = {
    {{"ringhold_node_ring_version", "Version of the ring that the node uses.", METRIC_GAUGE},
     offsetof(struct host_figures, version),
     false},
    {{"ringhold_node_incarnation",
      "Incarnation of this process: the number of its start.",
      METRIC_GAUGE},
     offsetof(struct host_figures, incarnation),
     false},
    {{"ringhold_node_actors", "Live actors.", METRIC_GAUGE},
     offsetof(struct host_figures, live),
     false},
    {{"ringhold_node_actor_records", "Ids of which the node keeps a record.", METRIC_GAUGE},
     offsetof(struct host_figures, actors),
     false},
    {{"ringhold_node_requests_total", "Requests that actors handled.", METRIC_COUNTER},
     offsetof(struct host_figures, executed),
     false},
    {{"ringhold_node_turns_total",
      "Timers, wake-ups and other tasks that actors ran between requests.",
      METRIC_COUNTER},
     offsetof(struct host_figures, turns),
     false},
    {{"ringhold_node_forwarded_total",
      "Requests forwarded to the new owner of their id.",
      METRIC_COUNTER},
     offsetof(struct host_figures, forwarded),
     false},
    {{"ringhold_node_held", "Requests held now because their vnode moves.", METRIC_GAUGE},
     offsetof(struct host_figures, held),
     false},
    {{"ringhold_node_held_total", "Requests held since the start.", METRIC_COUNTER},
     offsetof(struct host_figures, held_total),
     false},
    {{"ringhold_node_waiting",
      "Requests that wait for any reason, held ones included.",
      METRIC_GAUGE},
     offsetof(struct host_figures, waiting),
     false},
    {{"ringhold_node_waiting_bytes", "Memory of the waiting requests.", METRIC_GAUGE},
     offsetof(struct host_figures, waiting_size),
     false},
    {{"ringhold_node_activating", "Actors that are being activated.", METRIC_GAUGE},
     offsetof(struct host_figures, activating),
     false},
    {{"ringhold_node_activations_waiting",
      "Requests that wait for the limit of concurrent activations.",
      METRIC_GAUGE},
     offsetof(struct host_figures, cold),
     false},
    {{"ringhold_node_put_off_total",
      "Requests that waited for a full link or a step.",
      METRIC_COUNTER},
     offsetof(struct host_figures, put_off_total),
     false},
    {{"ringhold_node_link_full_total", "Times that a link was full.", METRIC_COUNTER},
     offsetof(struct host_figures, full_total),
     false},
    {{"ringhold_node_copies_attached_total",
      "Copies of a request that arrived while it ran.",
      METRIC_COUNTER},
     offsetof(struct host_figures, attached),
     false},
    {{"ringhold_node_answered_again_total",
      "Copies answered with the saved answer.",
      METRIC_COUNTER},
     offsetof(struct host_figures, answered_again),
     false},
    {{"ringhold_node_answers_lost_total",
      "Copies of finished requests whose answer was not kept.",
      METRIC_COUNTER},
     offsetof(struct host_figures, answers_lost),
     false},
    {{"ringhold_node_saved_answers", "Answers kept for possible copies.", METRIC_GAUGE},
     offsetof(struct host_figures, answers),
     false},
    {{"ringhold_node_cold_total",
      "Requests told that their id was taken over cold.",
      METRIC_COUNTER},
     offsetof(struct host_figures, refused_cold),
     false},
    {{"ringhold_node_quarantined_total",
      "Requests refused because their actor is in quarantine.",
      METRIC_COUNTER},
     offsetof(struct host_figures, refused_quarantine),
     false},
    {{"ringhold_node_deadlocks_total",
      "Calls refused because actors waited for each other in a circle.",
      METRIC_COUNTER},
     offsetof(struct host_figures, refused_deadlock),
     false},
    {{"ringhold_node_retired_total",
      "Actors that ended because they were idle, or asked to end.",
      METRIC_COUNTER},
     offsetof(struct host_figures, retired_total),
     false},
    {{"ringhold_node_failures_total",
      "Times that an actor failed or did not start.",
      METRIC_COUNTER},
     offsetof(struct host_figures, failed_total),
     false},
    {{"ringhold_node_double_activations_total",
      "Actors found alive outside the node's vnodes: must be 0.",
      METRIC_COUNTER},
     offsetof(struct host_figures, doubles_total),
     false},
    {{"ringhold_node_failing", "Actors that wait for their next start.", METRIC_GAUGE},
     offsetof(struct host_figures, failing),
     false},
    {{"ringhold_node_woken_total", "Actors started without a request.", METRIC_COUNTER},
     offsetof(struct host_figures, woken),
     false},
    {{"ringhold_node_wake_waiting", "Ids to be started without a request.", METRIC_GAUGE},
     offsetof(struct host_figures, wake_waiting),
     false},
};

static const struct metrics_row lease[] = {
    {{"ringhold_node_lease_seconds", "Length of the lease that was granted last.", METRIC_GAUGE},
     offsetof(struct host_figures, lease_us),
     true},
    {{"ringhold_node_lease_margin_seconds", "Remaining time of the lease.", METRIC_GAUGE},
     offsetof(struct host_figures, lease_margin_us),
     true},
    {{"ringhold_node_lease_margin_least_seconds",
      "Smallest remaining time ever; 0: the lease ran out.",
      METRIC_GAUGE},
     offsetof(struct host_figures, lease_margin_min_us),
     true},
    {{"ringhold_node_lease_gated_total",
      "Times that output was held back because there was no lease.",
      METRIC_COUNTER},
     offsetof(struct host_figures, lease_gated),
     false},
    {{"ringhold_node_clock_jumps_total", "Times that a clock jumped.", METRIC_COUNTER},
     offsetof(struct host_figures, lease_jumps),
     false},
    {{"ringhold_node_clock_away_permille",
      "By how much its clock is faster or slower than the leader's; 0: no more than is promised.",
      METRIC_GAUGE},
     offsetof(struct host_figures, clock_parts),
     false},
    {{"ringhold_node_lease_lapses_total",
      "Times that the node served on without a lease, as configured.",
      METRIC_COUNTER},
     offsetof(struct host_figures, lease_lapses),
     false},
    {{"ringhold_node_leaseless", "Requests that wait for a lease now.", METRIC_GAUGE},
     offsetof(struct host_figures, leaseless),
     false},
    {{"ringhold_node_leaseless_total",
      "Requests that waited for a lease since the start.",
      METRIC_COUNTER},
     offsetof(struct host_figures, leaseless_total),
     false},
    {{"ringhold_node_gate_kept", "Outputs held back until there is a lease.", METRIC_GAUGE},
     offsetof(struct host_figures, gate_kept),
     false},
};

static const struct metric dropped = {"ringhold_node_dropped_total",
                                      "Requests that were not delivered to their actor, by reason.",
                                      METRIC_COUNTER};
static const struct metrics_word drops[] = {
    {"expired", offsetof(struct host_figures, dropped_expired)},
    {"duplicate", offsetof(struct host_figures, dropped_duplicate)},
    {"abandoned", offsetof(struct host_figures, dropped_abandoned)},
    {"fenced", offsetof(struct host_figures, dropped_fenced)},
    {"overflow", offsetof(struct host_figures, dropped_overflow)},
    {"mailbox", offsetof(struct host_figures, dropped_mailbox)},
    {"activations", offsetof(struct host_figures, dropped_cold)},
    {"asleep", offsetof(struct host_figures, dropped_asleep)},
    {"foreign", offsetof(struct host_figures, dropped_foreign)},
};

static const struct metric gated = {"ringhold_node_gate_dropped_total",
                                    "Outputs of a deposed incarnation that were dropped.",
                                    METRIC_COUNTER};
static const char *const gates[HOST_DROP_COUNT] = {
    [HOST_DROP_BARRED] = "barred", [HOST_DROP_ERA] = "era", [HOST_DROP_FULL] = "full"};

static const struct metric misused = {
    "ringhold_node_misused_records_total",
    "Records refused because the sender's identity does not allow them.",
    METRIC_COUNTER};

static const struct metric stalls = {
    "ringhold_node_hold_seconds",
    "How long vnodes were held, by the outcome of their transaction.",
    METRIC_HISTOGRAM};

static const struct metrics_row asked[] = {
    {{"ringhold_node_calls_total",
      "Calls and sends of this node's actors to other actors.",
      METRIC_COUNTER},
     offsetof(struct router_stats, requests),
     false},
    {{"ringhold_node_calls_in_flight", "Calls that wait for their answer.", METRIC_GAUGE},
     offsetof(struct router_stats, in_flight),
     false},
};

static const struct metric not_ok = {"ringhold_node_calls_not_ok_total",
                                     "Calls that ended without an answer, by reason.",
                                     METRIC_COUNTER};
static const struct metrics_word outcomes[] = {
    {"unknown", offsetof(struct router_stats, unknown)},
    {"timeout", offsetof(struct router_stats, timeout)},
    {"rejected", offsetof(struct router_stats, rejected)},
    {"overloaded", offsetof(struct router_stats, overloaded)},
};

static const struct metrics_row broadcasts[] = {
    {{"ringhold_node_broadcasts_total",
      "Pushes of this node's actors to groups and lists of ids.",
      METRIC_COUNTER},
     offsetof(struct broadcast_figures, made),
     false},
    {{"ringhold_node_broadcast_members_total", "Recipients of these pushes.", METRIC_COUNTER},
     offsetof(struct broadcast_figures, handed),
     false},
};

static const struct metric not_broadcast = {
    "ringhold_node_broadcasts_dropped_total",
    "Broadcasts refused because the queue was full; recipients given up because they were late.",
    METRIC_COUNTER};
static const struct metrics_word not_broadcasts[] = {
    {"overloaded", offsetof(struct broadcast_figures, refused)},
    {"late", offsetof(struct broadcast_figures, late)},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

void node_metrics(const struct host_figures *f, size_t vnodes, const struct router_stats *calls,
                  const struct broadcast_figures *told, struct metrics *m)
{
    static const struct metric serving = {
        "ringhold_node_serving", "1: registered, with a share of the ids.", METRIC_GAUGE};
    static const struct metric owned = {
        "ringhold_node_vnodes",
        "Vnodes that the node owns; the number falls during a drain.",
        METRIC_GAUGE};

    metrics_put(m, &serving, f->serving);
    metrics_put(m, &owned, vnodes);
    metrics_put_rows(m, work, COUNT(work), f);
    metrics_put_words(m, &dropped, "reason", drops, COUNT(drops), f);
    metrics_put_times(m, &stalls, "outcome", "committed", &f->holds[HOLD_COMMITTED]);
    metrics_put_times(m, &stalls, "outcome", "aborted", &f->holds[HOLD_ABORTED]);
    metrics_put_rows(m, lease, COUNT(lease), f);
    for (size_t i = 0; i < HOST_DROP_COUNT; i++) {
        metrics_put_labelled(m, &gated, "reason", gates[i], f->gate_dropped[i]);
    }
    for (size_t i = 0; i < HOST_MISUSE_COUNT; i++) {
        metrics_put_labelled(m, &misused, "record", host_misuse_word(i), f->misuses[i]);
    }
    metrics_put_rows(m, asked, COUNT(asked), calls);
    metrics_put_words(m, &not_ok, "outcome", outcomes, COUNT(outcomes), calls);
    metrics_put_rows(m, broadcasts, COUNT(broadcasts), told);
    metrics_put_words(m, &not_broadcast, "reason", not_broadcasts, COUNT(not_broadcasts), told);
}
