/* SPDX-License-Identifier: Apache-2.0
 *
 * What all threads of a gateway have counted together, for INFO.
 *
 * A thread counts for itself, and puts its own where all find them, now and then:
 * those of the others are some milliseconds old, and no request waits for a
 * lock. With one thread there is no such place.
 */
#ifndef GATEWAY_CLIENT_STATS_H
#define GATEWAY_CLIENT_STATS_H

#include "gateway/client/client.h"

struct gateway_stats {
    struct clients_stats clients;
    struct router_stats router; /* version, digest: of the oldest ring */
    uint64_t connections_max;
    uint64_t buffers_max;
    uint64_t threads;
};

/* Sum of what these clients and their router have counted. */
void gateway_stats_own(const struct clients *all, struct gateway_stats *out);

/* Add up the counters of all threads. */
void gateway_stats_all(const struct clients *all, struct gateway_stats *out);

void gateway_stats_add(struct gateway_stats *sum, const struct gateway_stats *more);

/* Where the threads put theirs. All of it may be called by any thread. */
struct thread_stats;
struct thread_stats *thread_stats_new(unsigned threads);
/* Takes NULL. */
void thread_stats_free(struct thread_stats *b);
void thread_stats_put(struct thread_stats *b, unsigned thread, const struct gateway_stats *own);
/* `sum` = `own`, and what the other threads put last. */
void thread_stats_sum(struct thread_stats *b, unsigned thread, const struct gateway_stats *own,
                      struct gateway_stats *sum);

#endif
