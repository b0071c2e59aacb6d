/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds up the stats of a gateway's threads, in memory that each of them writes to.
 */
#include "gateway/client/stats.h"

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/client/stat_rows.h"

#include <pthread.h>

struct thread_stats {
    pthread_mutex_t lock; /* all below */
    unsigned threads;
    struct gateway_stats *stats; /* owned; threads = 0: nothing was put yet */
};

static void add(struct gateway_stats *sum, const struct gateway_stats *more, size_t offset)
{
    uint64_t *at = (uint64_t *)(void *)((char *)sum + offset);

    *at += *(const uint64_t *)(const void *)((const char *)more + offset);
}

void gateway_stats_add(struct gateway_stats *sum, const struct gateway_stats *more)
{
    const struct router_stats before = sum->router;
    const bool older = more->router.version < before.version;

    for (size_t i = 0; i < stat_row_count; i++) {
        add(sum, more, stat_rows[i].offset);
    }
    for (size_t i = 0; i < PACKET_KICK_COUNT; i++) {
        sum->clients.kicks[i] += more->clients.kicks[i];
    }
    for (size_t i = 0; i < HTTP_REFUSAL_COUNT; i++) {
        sum->clients.http_refused[i] += more->clients.http_refused[i];
    }
    for (size_t i = 0; i < TRANSPORT_EVENT_COUNT; i++) {
        sum->clients.transports.count[i] += more->clients.transports.count[i];
    }
    const struct router_stats *ring = older ? &more->router : &before;
    sum->router.version = ring->version;
    sum->router.digest[0] = ring->digest[0];
    sum->router.digest[1] = ring->digest[1];
}

struct thread_stats *thread_stats_new(unsigned threads)
{
    struct thread_stats *b = mem_new(1, sizeof *b);

    (void)pthread_mutex_init(&b->lock, NULL);
    b->threads = threads;
    b->stats = mem_new(threads, sizeof *b->stats);
    return b;
}

void thread_stats_free(struct thread_stats *b)
{
    if (b != NULL) {
        (void)pthread_mutex_destroy(&b->lock);
        mem_free(b->stats);
        mem_free(b);
    }
}

void thread_stats_put(struct thread_stats *b, unsigned thread, const struct gateway_stats *own)
{
    ASSERT(thread < b->threads);
    (void)pthread_mutex_lock(&b->lock);
    b->stats[thread] = *own;
    (void)pthread_mutex_unlock(&b->lock);
}

void thread_stats_sum(struct thread_stats *b, unsigned thread, const struct gateway_stats *own,
                      struct gateway_stats *sum)
{
    *sum = *own;
    (void)pthread_mutex_lock(&b->lock);
    for (unsigned i = 0; i < b->threads; i++) {
        if (i != thread && b->stats[i].threads > 0) {
            gateway_stats_add(sum, &b->stats[i]);
        }
    }
    (void)pthread_mutex_unlock(&b->lock);
}
