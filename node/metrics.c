/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a node's figures for /metrics.
 */
#include "node/metrics.h"

#include "node/host/times.h"

#include <stddef.h>

#define ROW_COUNTER(field, metric, help) \
    {{metric, help, METRIC_COUNTER}, offsetof(struct host_stats, field), false},
#define ROW_GAUGE(field, metric, help) \
    {{metric, help, METRIC_GAUGE}, offsetof(struct host_stats, field), false},
#define ROW_SECONDS(field, metric, help) \
    {{metric, help, METRIC_GAUGE}, offsetof(struct host_stats, field), true},
#define ROW(kind, field, metric, help) ROW_##kind(field, metric, help)

static const struct metrics_row work[] = {HOST_STATS(ROW)};
static const struct metrics_row lease[] = {HOST_LEASE_STATS(ROW)};

static const struct metric dropped = {"ringhold_node_dropped_total",
                                      "Requests that were not delivered to their actor, by reason.",
                                      METRIC_COUNTER};
#define DROP(name, word) {word, offsetof(struct host_stats, dropped[DROPPED_##name])},
static const struct metrics_word drops[] = {DROPPED_LIST(DROP)};

static const struct metric streams_dropped = {
    "ringhold_node_streams_dropped_total",
    "Frames of streams that were dropped, and streams that were forgotten, by reason.",
    METRIC_COUNTER};
#define STREAM_DROP(name, word) \
    {word, offsetof(struct host_stats, streams_dropped[STREAM_DROP_##name])},
static const struct metrics_word stream_drops[] = {STREAM_DROP_LIST(STREAM_DROP)};

static const struct metric gated = {"ringhold_node_gate_dropped_total",
                                    "Outputs of a deposed incarnation that were dropped.",
                                    METRIC_COUNTER};
static const char *const gates[HOST_DROP_COUNT] = {
    [HOST_DROP_BARRED] = "barred", [HOST_DROP_ERA] = "era", [HOST_DROP_FULL] = "full"};

static const struct metric misused = {
    "ringhold_node_misused_records_total",
    "Records refused because the sender's identity does not allow them.",
    METRIC_COUNTER};

static const struct metric not_taken = {
    "ringhold_node_images_dropped_total",
    "Images of actors that came for a move and were thrown away, by reason.",
    METRIC_COUNTER};
static const char *const image_drops[IMAGE_DROP_COUNT] = {[IMAGE_DROP_REPLACED] = "replaced",
                                                          [IMAGE_DROP_ABORTED] = "aborted",
                                                          [IMAGE_DROP_LOST] = "lost",
                                                          [IMAGE_DROP_ERA] = "era"};

static const struct metric stalls = {
    "ringhold_node_hold_seconds",
    "How long vnodes were held, by the outcome of their transaction.",
    METRIC_HISTOGRAM};

static const struct metric unserved = {"ringhold_node_unserved_seconds",
                                       "How long ids of this node were not served, by cause.",
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
     offsetof(struct broadcast_stats, made),
     false},
    {{"ringhold_node_broadcast_members_total", "Recipients of these pushes.", METRIC_COUNTER},
     offsetof(struct broadcast_stats, handed),
     false},
};

static const struct metric not_broadcast = {
    "ringhold_node_broadcasts_dropped_total",
    "Broadcasts refused because the queue was full; recipients given up because they were late.",
    METRIC_COUNTER};
static const struct metrics_word not_broadcasts[] = {
    {"overloaded", offsetof(struct broadcast_stats, refused)},
    {"late", offsetof(struct broadcast_stats, late)},
};

static const struct metrics_row stored[] = {
    {{"ringhold_node_store_waiting",
      "Loads and commits of durable actors that wait for the store, or are being done.",
      METRIC_GAUGE},
     offsetof(struct committer_stats, waiting),
     false},
    {{"ringhold_node_store_transactions_total",
      "Transactions of the store; each has all that came during the one before.",
      METRIC_COUNTER},
     offsetof(struct committer_stats, transactions),
     false},
    {{"ringhold_node_store_commits_total",
      "Commits of durable actors that were done.",
      METRIC_COUNTER},
     offsetof(struct committer_stats, commits),
     false},
    {{"ringhold_node_store_loads_total", "Durable actors that were loaded.", METRIC_COUNTER},
     offsetof(struct committer_stats, claims),
     false},
    {{"ringhold_node_store_scans_total",
      "Pages of alarms that are due, as the store has read them.",
      METRIC_COUNTER},
     offsetof(struct committer_stats, scans),
     false},
    {{"ringhold_node_store_reconnects_total",
      "New connections to the store's database, in the place of one that broke.",
      METRIC_COUNTER},
     offsetof(struct committer_stats, store.reconnects),
     false},
    {{"ringhold_node_store_went_back_total",
      "Commits that found an old copy of the store; not 0: the node refuses all that is for it.",
      METRIC_COUNTER},
     offsetof(struct committer_stats, store.went_back),
     false},
};

static const struct metric not_stored = {
    "ringhold_node_store_refused_total",
    "Loads and commits that were not done, or perhaps not, by reason.",
    METRIC_COUNTER};
static const struct metrics_word not_stored_words[] = {
    {"fenced", offsetof(struct committer_stats, fenced)},
    {"unavailable", offsetof(struct committer_stats, unavailable)},
    {"unknown", offsetof(struct committer_stats, unknown)},
};

static const struct metric commit_times = {"ringhold_node_store_commit_seconds",
                                           "How long transactions of the store took.",
                                           METRIC_HISTOGRAM};
static const struct metric batch_sizes = {"ringhold_node_store_batch_size",
                                          "Loads and commits in one transaction of the store.",
                                          METRIC_HISTOGRAM};
static const struct metric alarms_total = {
    "ringhold_node_alarms_total",
    "Alarms of durable actors: set, cancelled, fired, of these late by a second, and failed.",
    METRIC_COUNTER};
static const struct metrics_word alarm_words[] = {
    {"set", offsetof(struct alarm_figures, set)},
    {"cancelled", offsetof(struct alarm_figures, cancelled)},
    {"fired", offsetof(struct alarm_figures, fired)},
    {"late", offsetof(struct alarm_figures, late)},
    {"failed", offsetof(struct alarm_figures, failed)},
};

#define KEPT(field, metric, help) \
    {{metric, help, METRIC_GAUGE}, offsetof(struct kept_figures, field), false},
static const struct metrics_row kept_rows[] = {
    // clang-format off
    KEPT(answers, "ringhold_node_answers_kept", "Saved answers of the durable actors that live here.")
    KEPT(answer_bytes, "ringhold_node_answers_kept_bytes", "Bytes of these answers.")
    KEPT(sends, "ringhold_node_outbox_sends", "Sends of durable actors that their receivers have not taken yet.")
    KEPT(send_bytes, "ringhold_node_outbox_bytes", "Bytes of these sends.")
    KEPT(alarms, "ringhold_node_alarms_set", "Alarms that are set, of the durable actors that live here.")
    KEPT(alarms_due, "ringhold_node_alarms_due", "Durable actors here with an alarm that is due and has not ended.")
    // clang-format on
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void put_unserved(const struct host_stats *f, struct metrics *m)
{
    struct metrics_times moves = f->holds[HOLD_COMMITTED];

    metrics_add_times(&moves, &f->holds[HOLD_ABORTED]);
    metrics_put_times(m, &unserved, "cause", "move", &moves);
    metrics_put_times(m, &unserved, "cause", "takeover", &f->takeovers);
    metrics_put_times(m, &unserved, "cause", "lease", &f->leaseless_times);
}

void node_metrics(const struct host_stats *f, size_t vnodes, const struct router_stats *calls,
                  const struct broadcast_stats *told, struct metrics *m)
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
    metrics_put_words(m, &streams_dropped, "reason", stream_drops, COUNT(stream_drops), f);
    metrics_put_times(m, &stalls, "outcome", "committed", &f->holds[HOLD_COMMITTED]);
    metrics_put_times(m, &stalls, "outcome", "aborted", &f->holds[HOLD_ABORTED]);
    put_unserved(f, m);
    metrics_put_rows(m, lease, COUNT(lease), f);
    for (size_t i = 0; i < HOST_DROP_COUNT; i++) {
        metrics_put_labelled(m, &gated, "reason", gates[i], f->gate_dropped[i]);
    }
    for (size_t i = 0; i < HOST_MISUSE_COUNT; i++) {
        metrics_put_labelled(m, &misused, "record", host_misuse_word(i), f->misuses[i]);
    }
    for (size_t i = 0; i < IMAGE_DROP_COUNT; i++) {
        metrics_put_labelled(m, &not_taken, "reason", image_drops[i], f->images_dropped[i]);
    }
    metrics_put_rows(m, asked, COUNT(asked), calls);
    metrics_put_words(m, &not_ok, "outcome", outcomes, COUNT(outcomes), calls);
    metrics_put_rows(m, broadcasts, COUNT(broadcasts), told);
    metrics_put_words(m, &not_broadcast, "reason", not_broadcasts, COUNT(not_broadcasts), told);
}

static const char *const activated[] = {"ok", "failed"};

void node_latency_metrics(const struct node_latencies *l, struct metrics *m)
{
    static const struct metric took[] = {
        {"ringhold_node_request_seconds",
         "How long requests took from when they came to this node to their answer.",
         METRIC_HISTOGRAM},
        {"ringhold_node_mailbox_seconds",
         "How long requests waited in the mailbox of their actor before they ran.",
         METRIC_HISTOGRAM},
        {"ringhold_node_activation_seconds",
         "How long actors took to start, or to fail at it.",
         METRIC_HISTOGRAM},
        {"ringhold_node_handler_seconds",
         "How long actors' code ran each time that it was entered.",
         METRIC_HISTOGRAM},
        {"ringhold_node_call_seconds",
         "How long calls and sends of this node's actors took to their answer.",
         METRIC_HISTOGRAM},
    };
    static const struct metrics_series series[] = {
        {"outcome", times_answer_words, TIMES_REQUEST, COUNT(times_answer_words)},
        {NULL, NULL, TIMES_MAILBOX, 1},
        {"outcome", activated, TIMES_ACTIVATED, COUNT(activated)},
        {NULL, NULL, 0, 1},
        {"outcome", router_reply_words, 0, REPLY_CODES},
    };
    const struct latencies *const from[] = {
        l->requests, l->requests, l->requests, l->handlers, l->calls};
    const struct exemplars *const exemplars[] = {l->of_requests, NULL, NULL, NULL, l->of_calls};

    for (size_t i = 0; i < COUNT(took); i++) {
        if (from[i] != NULL) {
            metrics_put_latencies(m, &took[i], &series[i], from[i], exemplars[i]);
        }
    }
}

void node_store_metrics(const struct committer_stats *f, const struct alarm_figures *alarms,
                        const struct kept_figures *kept, struct metrics *m)
{
    metrics_put_rows(m, stored, COUNT(stored), f);
    metrics_put_words(m, &not_stored, "reason", not_stored_words, COUNT(not_stored_words), f);
    metrics_put_times(m, &commit_times, NULL, NULL, &f->times);
    metrics_put_counts(m, &batch_sizes, &f->sizes);
    metrics_put_words(m, &alarms_total, "event", alarm_words, COUNT(alarm_words), alarms);
    metrics_put_rows(m, kept_rows, COUNT(kept_rows), kept);
}
