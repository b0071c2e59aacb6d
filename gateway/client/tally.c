/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds up the figures of a gateway's threads on a board that each of them writes
 * to.
 */
#include "gateway/client/tally.h"

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/client/figure.h"

#include <pthread.h>

struct board {
    pthread_mutex_t lock; /* all below */
    unsigned threads;
    struct tally *tally; /* owned; threads = 0: nothing was put yet */
};

static void add(struct tally *sum, const struct tally *more, size_t offset)
{
    uint64_t *at = (uint64_t *)(void *)((char *)sum + offset);

    *at += *(const uint64_t *)(const void *)((const char *)more + offset);
}

void tally_add(struct tally *sum, const struct tally *more)
{
    const struct router_figures before = sum->router;
    const bool older = more->router.version < before.version;

    for (size_t i = 0; i < figure_count; i++) {
        add(sum, more, figures[i].offset);
    }
    for (size_t i = 0; i < PACKET_KICK_COUNT; i++) {
        sum->clients.kicks[i] += more->clients.kicks[i];
    }
    for (size_t i = 0; i < TRANSPORT_EVENT_COUNT; i++) {
        sum->clients.transports.count[i] += more->clients.transports.count[i];
    }
    const struct router_figures *ring = older ? &more->router : &before;
    sum->router.version = ring->version;
    sum->router.digest[0] = ring->digest[0];
    sum->router.digest[1] = ring->digest[1];
}

struct board *board_new(unsigned threads)
{
    struct board *b = mem_new(1, sizeof *b);

    (void)pthread_mutex_init(&b->lock, NULL);
    b->threads = threads;
    b->tally = mem_new(threads, sizeof *b->tally);
    return b;
}

void board_free(struct board *b)
{
    if (b != NULL) {
        (void)pthread_mutex_destroy(&b->lock);
        mem_free(b->tally);
        mem_free(b);
    }
}

void board_put(struct board *b, unsigned thread, const struct tally *own)
{
    ASSERT(thread < b->threads);
    (void)pthread_mutex_lock(&b->lock);
    b->tally[thread] = *own;
    (void)pthread_mutex_unlock(&b->lock);
}

void board_sum(struct board *b, unsigned thread, const struct tally *own, struct tally *sum)
{
    *sum = *own;
    (void)pthread_mutex_lock(&b->lock);
    for (unsigned i = 0; i < b->threads; i++) {
        if (i != thread && b->tally[i].threads > 0) {
            tally_add(sum, &b->tally[i]);
        }
    }
    (void)pthread_mutex_unlock(&b->lock);
}
