/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node counts: one list for the struct, for /metrics and for docs/metrics.md, which a test
 * compares with it. A new number is one line here and one in host_stats().
 */
#ifndef NODE_HOST_STATS_H
#define NODE_HOST_STATS_H

#include "base/metrics.h"
#include "node/books/lease.h"

#include <stdbool.h>
#include <stdint.h>

/* How a hold ended. */
enum { HOLD_COMMITTED, HOLD_ABORTED, HOLD_ENDS };

/* Why outputs were thrown away at the gate. */
enum host_drop {
    HOST_DROP_BARRED, /* this incarnation was fenced */
    HOST_DROP_ERA,    /* the cluster has another era: what was said is void (hole 53) */
    HOST_DROP_FULL,   /* over gate_size_max */
    HOST_DROP_COUNT
};

/* Records that a link sent and that were not its own to send: refused, by what they are. */
enum host_misuse {
    HOST_MISUSE_REQUEST,
    HOST_MISUSE_NOTE,
    HOST_MISUSE_ANSWER,
    HOST_MISUSE_STATE,
    HOST_MISUSE_STATE_ACK,
    HOST_MISUSE_STREAM,
    HOST_MISUSE_COUNT
};

/* Why an image that came for a move became no actor. */
enum image_drop {
    IMAGE_DROP_REPLACED, /* by a later one of its actor, or nothing is left of that */
    IMAGE_DROP_ABORTED,  /* its transaction was aborted */
    IMAGE_DROP_LOST,     /* the vnode did not come by that transaction, or went on already */
    IMAGE_DROP_ERA,      /* the node began anew */
    IMAGE_DROP_COUNT
};

// clang-format off

/* Why a request, or an answer, was dropped or refused; its word in ringhold_node_dropped_total. */
#define DROPPED_LIST(X)                                                                       \
    X(EXPIRED, "expired")       /* the time to live was over while it waited */               \
    X(DUPLICATE, "duplicate")   /* a copy: merged into one that waits, or done long ago */    \
    X(ABANDONED, "abandoned")   /* who asked gave it up before it came, or is over */           \
    X(FENCED, "fenced")         /* of an older epoch of its session */                        \
    X(OVERFLOW, "overflow")     /* no room: its sender is told to wait */                     \
    X(MAILBOX, "mailbox")       /* too many wait for its actor: the sender is told to wait */ \
    X(COLD, "activations")      /* too many wait for an activation: likewise */               \
    X(ASLEEP, "asleep")         /* only for an actor that is awake, and it was not */         \
    X(FOREIGN, "foreign")       /* an answer to a gateway that is not linked */

/* Why a frame of a stream was dropped, or its link or the stream was; its word in
 * ringhold_node_streams_dropped_total. Frames that cannot be are HOST_MISUSE_STREAM. */
#define STREAM_DROP_LIST(X)                                                                  \
    X(UNKNOWN, "unknown")         /* the stream is not known: never begun, or over */        \
    X(CONNECTION, "connection")   /* the stream has another connection */                    \
    X(INCARNATION, "incarnation") /* it is for an incarnation before this one */             \
    X(OVER, "over")               /* it is of a node that is over */                         \
    X(FULL, "full")               /* no room: for what waits, for answers, or one stream more */ \
    X(GATE, "gate")               /* a full gate lost what begins or joins it: said again */ \
    X(FORGOTTEN, "forgotten")     /* it was away for too long */

/* X(kind, field, metric, help), in the order of /metrics. SECONDS: the field has microseconds. */
#define HOST_STATS(X)                                                                            \
    X(GAUGE, version, "ringhold_node_ring_version", "Version of the ring that the node uses.")   \
    X(GAUGE, incarnation, "ringhold_node_incarnation",                                           \
      "Incarnation of this process: the number of its start.")                                   \
    X(GAUGE, share_permille, "ringhold_node_share_permille",                                     \
      "Cells of the ring that the node owns, in thousandths of all.")                            \
    X(GAUGE, live, "ringhold_node_actors", "Live actors.")                                       \
    X(GAUGE, actors, "ringhold_node_actor_records", "Ids of which the node keeps a record.")     \
    X(COUNTER, executed, "ringhold_node_requests_total", "Requests that actors handled.")        \
    X(COUNTER, turns, "ringhold_node_turns_total",                                               \
      "Timers, wake-ups and other tasks that actors ran between requests.")                      \
    X(COUNTER, forwarded, "ringhold_node_forwarded_total",                                       \
      "Requests forwarded to the new owner of their id.")                                        \
    X(COUNTER, late_answers, "ringhold_node_late_answers_total",                                 \
      "Answers to forwarded requests that had already ended.")                                   \
    X(GAUGE, held, "ringhold_node_held_now", "Requests held now because their vnode moves.")         \
    X(COUNTER, held_total, "ringhold_node_held_total", "Requests held since the start.")         \
    X(COUNTER, images_ahead, "ringhold_node_images_ahead_total",                                 \
      "Images of actors sent before their vnode was held.")                                      \
    X(COUNTER, images_stood, "ringhold_node_images_stood_total",                                 \
      "Of these, images whose actor did nothing more before the hold.")                          \
    X(GAUGE, waiting, "ringhold_node_waiting",                                                   \
      "Requests that wait for any reason, held ones included.")                                  \
    X(GAUGE, waiting_size, "ringhold_node_waiting_bytes", "Memory of the waiting requests.")     \
    X(GAUGE, activating, "ringhold_node_activating", "Actors that are being activated.")         \
    X(GAUGE, cold, "ringhold_node_activations_waiting",                                          \
      "Actors that stand in line for their activation.")                             \
    X(GAUGE, mailbox_waiting, "ringhold_node_mailbox_waiting",                                   \
      "Requests that wait in the mailboxes of actors.")                                          \
    X(GAUGE, mailbox_deepest, "ringhold_node_mailbox_deepest",                                   \
      "The most that waited in one mailbox within the last 5 to 10 s.")                          \
    X(COUNTER, put_off_total, "ringhold_node_put_off_total",                                     \
      "Requests that waited for a full link or a step.")                                         \
    X(GAUGE, streams, "ringhold_node_streams", "Streams that the node serves.")                  \
    X(GAUGE, streams_size, "ringhold_node_streams_bytes",                                        \
      "Memory of their answers and of frames that wait.")                                        \
    X(COUNTER, full_total, "ringhold_node_link_full_total", "Times that a link was full.")       \
    X(COUNTER, attached, "ringhold_node_copies_attached_total",                                  \
      "Copies of a request that arrived while it ran.")                                          \
    X(COUNTER, answered_again, "ringhold_node_answered_again_total",                             \
      "Copies answered with the saved answer.")                                                  \
    X(COUNTER, answers_lost, "ringhold_node_answers_lost_total",                                 \
      "Copies of finished requests whose answer was not kept.")                                  \
    X(GAUGE, answers, "ringhold_node_saved_answers", "Answers kept for possible copies.")        \
    X(COUNTER, refused_cold, "ringhold_node_cold_total",                                         \
      "Requests told that their id was taken over cold.")                                        \
    X(COUNTER, refused_quarantine, "ringhold_node_quarantined_total",                            \
      "Requests refused because their actor is in quarantine.")                                  \
    X(COUNTER, refused_deadlock, "ringhold_node_deadlocks_total",                                \
      "Calls refused because actors waited for each other in a circle.")                         \
    X(COUNTER, retired_total, "ringhold_node_retired_total",                                     \
      "Actors that ended because they were idle, or asked to end.")                              \
    X(COUNTER, failed_total, "ringhold_node_failures_total",                                     \
      "Times that an actor failed or did not start.")                                            \
    X(COUNTER, deposed_total, "ringhold_node_deposed_total",                                     \
      "Actors that ended because their store has another owner.")                                \
    X(COUNTER, doubles_total, "ringhold_node_double_activations_total",                          \
      "Actors found alive outside the node's vnodes: must be 0.")                                \
    X(GAUGE, failing, "ringhold_node_failing", "Actors that wait for their next start.")         \
    X(COUNTER, woken, "ringhold_node_woken_total", "Actors started without a request.")          \
    X(GAUGE, wake_waiting, "ringhold_node_wake_waiting", "Ids to be started without a request.")  \
    X(COUNTER, alarms_started, "ringhold_node_alarms_started_total",                             \
      "Actors started because an alarm of theirs was due.")                                      \
    X(SECONDS, alarms_lag_us, "ringhold_node_alarms_lag_seconds",                                \
      "By how much the alarm was late for which an actor was started last.")                     \
    X(GAUGE, remember_waiting, "ringhold_node_remember_waiting",                                 \
      "Ids that the fleet is being told to remember or to forget.")                              \
    X(COUNTER, remember_refused, "ringhold_node_remember_refused_total",                         \
      "Ids that the leader refused to remember or to forget.")                                   \
    X(COUNTER, remember_dropped, "ringhold_node_remember_dropped_total",                         \
      "Ids that were not told, because too many waited to be.")                                  \
    X(COUNTER, remember_unsure, "ringhold_node_remember_unsure_total",                           \
      "Requests that were let in before the fleet had remembered their actor.")

#define HOST_LEASE_STATS(X)                                                                        \
    X(SECONDS, lease_us, "ringhold_node_lease_seconds",                                            \
      "Length of the lease that was granted last.")                                                \
    X(SECONDS, lease_margin_us, "ringhold_node_lease_margin_seconds",                              \
      "Remaining time of the lease.")                                                              \
    X(SECONDS, lease_margin_min_us, "ringhold_node_lease_margin_least_seconds",                    \
      "Smallest remaining time ever; 0: the lease ran out.")                                       \
    X(COUNTER, lease_gated, "ringhold_node_lease_gated_total",                                     \
      "Times that output was held back because there was no lease.")                               \
    X(COUNTER, lease_jumps, "ringhold_node_clock_jumps_total", "Times that a clock jumped.")       \
    X(GAUGE, clock_parts, "ringhold_node_clock_away_permille",                                     \
      "By how much its clock is faster or slower than the leader's; 0: no more than is promised.") \
    X(COUNTER, lease_lapses, "ringhold_node_lease_lapses_total",                                   \
      "Times that the node served on without a lease, as configured.")                             \
    X(GAUGE, leaseless, "ringhold_node_leaseless_now", "Requests that wait for a lease now.")          \
    X(COUNTER, leaseless_total, "ringhold_node_leaseless_total",                                   \
      "Requests that waited for a lease since the start.")                                         \
    X(GAUGE, gate_kept, "ringhold_node_gate_kept", "Outputs held back until there is a lease.")

// clang-format on

#define DROPPED(name, word) DROPPED_##name,
enum dropped { DROPPED_LIST(DROPPED) DROPPED_COUNT };
#undef DROPPED

#define STREAM_DROP(name, word) STREAM_DROP_##name,
enum stream_drop { STREAM_DROP_LIST(STREAM_DROP) STREAM_DROP_COUNT };
#undef STREAM_DROP

struct host_stats {
#define HOST_STAT(kind, field, metric, help) uint64_t field;
    HOST_STATS(HOST_STAT)
    HOST_LEASE_STATS(HOST_STAT)
#undef HOST_STAT
    uint64_t digest[2];
    uint64_t hold_us_max;
    struct metrics_times holds[HOLD_ENDS]; /* by how they ended */
    struct metrics_times takeovers; /* so long a dead node's vnodes had nobody who served them … */
    struct metrics_times leaseless_times; /* … and so long requests found no lease */
    uint64_t dropped[DROPPED_COUNT];
    uint64_t streams_dropped[STREAM_DROP_COUNT];
    uint64_t wake_dropped; /* ids for which there was no room: they are listed again */
    uint64_t answers_size; /* bytes of the large saved answers */
    bool serving;          /* registered */
    bool draining;         /* by the ring that the node knows, it gets nothing new */
    enum lease_state lease;
    bool lease_in_force;
    uint64_t lease_until_us; /* CLOCK_BOOTTIME, 0 = none */
    uint64_t gate_kept_total;
    uint64_t gate_dropped[HOST_DROP_COUNT];
    uint64_t misuses[HOST_MISUSE_COUNT];
    uint64_t images_dropped[IMAGE_DROP_COUNT];
};

#endif
