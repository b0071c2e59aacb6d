/* SPDX-License-Identifier: Apache-2.0 */
#include "node/metrics.h"

#include <stddef.h>

static const struct metrics_row work[] = {
    {{"ringhold_node_ring_version", "Version of the ring that it serves by.", METRIC_GAUGE},
     offsetof(struct host_figures, version),
     false},
    {{"ringhold_node_incarnation", "Number of this start of the node.", METRIC_GAUGE},
     offsetof(struct host_figures, incarnation),
     false},
    {{"ringhold_node_actors", "Actors that have an instance.", METRIC_GAUGE},
     offsetof(struct host_figures, live),
     false},
    {{"ringhold_node_actor_records", "Ids that it knows something of.", METRIC_GAUGE},
     offsetof(struct host_figures, actors),
     false},
    {{"ringhold_node_requests_total", "Requests that actors ran.", METRIC_COUNTER},
     offsetof(struct host_figures, executed),
     false},
    {{"ringhold_node_turns_total",
      "Timers, wake-ups and what else actors ran between requests.",
      METRIC_COUNTER},
     offsetof(struct host_figures, turns),
     false},
    {{"ringhold_node_forwarded_total",
      "Requests sent on to the new owner of their id.",
      METRIC_COUNTER},
     offsetof(struct host_figures, forwarded),
     false},
    {{"ringhold_node_held", "Requests held because their vnode moves.", METRIC_GAUGE},
     offsetof(struct host_figures, held),
     false},
    {{"ringhold_node_held_total", "Requests that were held.", METRIC_COUNTER},
     offsetof(struct host_figures, held_total),
     false},
    {{"ringhold_node_waiting", "Requests that wait for anything, held ones too.", METRIC_GAUGE},
     offsetof(struct host_figures, waiting),
     false},
    {{"ringhold_node_waiting_bytes", "Memory of the requests that wait.", METRIC_GAUGE},
     offsetof(struct host_figures, waiting_size),
     false},
    {{"ringhold_node_activating", "Actors that are being activated.", METRIC_GAUGE},
     offsetof(struct host_figures, activating),
     false},
    {{"ringhold_node_activations_waiting",
      "Requests that wait until fewer are activated.",
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
      "Copies of a request that came while it ran.",
      METRIC_COUNTER},
     offsetof(struct host_figures, attached),
     false},
    {{"ringhold_node_answered_again_total",
      "Copies answered with the saved answer.",
      METRIC_COUNTER},
     offsetof(struct host_figures, answered_again),
     false},
    {{"ringhold_node_answers_lost_total",
      "Copies of what ran whose answer was not kept.",
      METRIC_COUNTER},
     offsetof(struct host_figures, answers_lost),
     false},
    {{"ringhold_node_saved_answers", "Answers kept for copies that may come.", METRIC_GAUGE},
     offsetof(struct host_figures, answers),
     false},
    {{"ringhold_node_cold_total",
      "Requests told that their id was taken over cold.",
      METRIC_COUNTER},
     offsetof(struct host_figures, refused_cold),
     false},
    {{"ringhold_node_quarantined_total", "Requests for an actor in quarantine.", METRIC_COUNTER},
     offsetof(struct host_figures, refused_quarantine),
     false},
    {{"ringhold_node_deadlocks_total",
      "Calls refused, for actors waited for each other in a circle.",
      METRIC_COUNTER},
     offsetof(struct host_figures, refused_deadlock),
     false},
    {{"ringhold_node_retired_total",
      "Actors that ended: nobody used them, or they wished to.",
      METRIC_COUNTER},
     offsetof(struct host_figures, retired_total),
     false},
    {{"ringhold_node_failures_total",
      "Times that an actor broke or did not start.",
      METRIC_COUNTER},
     offsetof(struct host_figures, failed_total),
     false},
    {{"ringhold_node_double_activations_total",
      "Actors that lived here without the right to: must be 0.",
      METRIC_COUNTER},
     offsetof(struct host_figures, doubles_total),
     false},
    {{"ringhold_node_failing", "Actors that wait for their next start.", METRIC_GAUGE},
     offsetof(struct host_figures, failing),
     false},
    {{"ringhold_node_woken_total", "Actors started without a request.", METRIC_COUNTER},
     offsetof(struct host_figures, woken),
     false},
    {{"ringhold_node_wake_waiting", "Ids that are to be started without a request.", METRIC_GAUGE},
     offsetof(struct host_figures, wake_waiting),
     false},
};

static const struct metrics_row lease[] = {
    {{"ringhold_node_lease_seconds", "Length of the lease, as granted last.", METRIC_GAUGE},
     offsetof(struct host_figures, lease_us),
     true},
    {{"ringhold_node_lease_margin_seconds", "What is left of the lease.", METRIC_GAUGE},
     offsetof(struct host_figures, lease_margin_us),
     true},
    {{"ringhold_node_lease_margin_least_seconds",
      "The least that was ever left; 0: it ran out.",
      METRIC_GAUGE},
     offsetof(struct host_figures, lease_margin_min_us),
     true},
    {{"ringhold_node_lease_gated_total",
      "Times that nothing could leave for want of a lease.",
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
      "Times that it served on without a lease, as told to.",
      METRIC_COUNTER},
     offsetof(struct host_figures, lease_lapses),
     false},
    {{"ringhold_node_leaseless", "Requests that wait for a lease.", METRIC_GAUGE},
     offsetof(struct host_figures, leaseless),
     false},
    {{"ringhold_node_leaseless_total", "Requests that waited for a lease.", METRIC_COUNTER},
     offsetof(struct host_figures, leaseless_total),
     false},
    {{"ringhold_node_gate_kept", "Outputs kept until there is a lease.", METRIC_GAUGE},
     offsetof(struct host_figures, gate_kept),
     false},
};

static const struct metric dropped = {"ringhold_node_dropped_total",
                                      "Requests that did not come to their actor, by reason.",
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
                                    "Outputs of a deposed incarnation that were thrown away.",
                                    METRIC_COUNTER};
static const char *const gates[HOST_DROP_COUNT] = {
    [HOST_DROP_BARRED] = "barred", [HOST_DROP_ERA] = "era", [HOST_DROP_FULL] = "full"};

static const struct metric misused = {"ringhold_node_misused_records_total",
                                      "Records refused: they were not their link's own to send.",
                                      METRIC_COUNTER};

static const struct metric stalls = {"ringhold_node_hold_seconds",
                                     "How long vnodes were held, by how their transaction ended.",
                                     METRIC_HISTOGRAM};

static const struct metrics_row asked[] = {
    {{"ringhold_node_calls_total", "Calls and sends of its actors to others.", METRIC_COUNTER},
     offsetof(struct router_figures, requests),
     false},
    {{"ringhold_node_calls_in_flight", "Calls that wait for their answer.", METRIC_GAUGE},
     offsetof(struct router_figures, in_flight),
     false},
};

static const struct metric not_ok = {"ringhold_node_calls_not_ok_total",
                                     "Calls that ended otherwise than with an answer.",
                                     METRIC_COUNTER};
static const struct metrics_word outcomes[] = {
    {"unknown", offsetof(struct router_figures, unknown)},
    {"timeout", offsetof(struct router_figures, timeout)},
    {"rejected", offsetof(struct router_figures, rejected)},
    {"overloaded", offsetof(struct router_figures, overloaded)},
};

static const struct metrics_row broadcasts[] = {
    {{"ringhold_node_broadcasts_total",
      "Pushes of its actors to groups and lists of ids.",
      METRIC_COUNTER},
     offsetof(struct casts_figures, made),
     false},
    {{"ringhold_node_broadcast_members_total", "Ids that they were for.", METRIC_COUNTER},
     offsetof(struct casts_figures, handed),
     false},
};

static const struct metric not_cast = {"ringhold_node_broadcasts_dropped_total",
                                       "Broadcasts refused for want of room; ids given up late.",
                                       METRIC_COUNTER};
static const struct metrics_word not_casts[] = {
    {"overloaded", offsetof(struct casts_figures, refused)},
    {"late", offsetof(struct casts_figures, late)},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

void node_metrics(const struct host_figures *f, size_t vnodes, const struct router_figures *calls,
                  const struct casts_figures *casts, struct metrics *m)
{
    static const struct metric serving = {
        "ringhold_node_serving", "1: registered, with a share of the ids.", METRIC_GAUGE};
    static const struct metric owned = {
        "ringhold_node_vnodes", "Vnodes that it owns; fewer and fewer in a drain.", METRIC_GAUGE};

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
    metrics_put_rows(m, broadcasts, COUNT(broadcasts), casts);
    metrics_put_words(m, &not_cast, "reason", not_casts, COUNT(not_casts), casts);
}
