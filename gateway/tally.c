/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tally.h"

#include "base/assert.h"
#include "base/mem.h"

#include <pthread.h>

struct board {
    pthread_mutex_t lock; /* all below */
    unsigned threads;
    struct tally *tally; /* owned; threads = 0: nothing was put yet */
};

static void add_pushes(struct push_figures *sum, const struct push_figures *more)
{
    sum->delivered += more->delivered;
    sum->dropped_unknown += more->dropped_unknown;
    sum->dropped_stale += more->dropped_stale;
    sum->dropped_copy += more->dropped_copy;
    sum->dropped_room += more->dropped_room;
    sum->lost += more->lost;
    sum->cut += more->cut;
    sum->kicked += more->kicked;
    sum->resumed += more->resumed;
    sum->returned += more->returned;
    sum->gone += more->gone;
    sum->rebound += more->rebound;
    sum->bound += more->bound;
}

static void add_logins(struct login_figures *sum, const struct login_figures *more)
{
    sum->under_way += more->under_way;
    sum->ok += more->ok;
    sum->refused += more->refused;
    sum->broken += more->broken;
    sum->unanswered += more->unanswered;
    sum->full += more->full;
    sum->left += more->left;
}

static void add_clients(struct clients_figures *sum, const struct clients_figures *more)
{
    sum->connected += more->connected;
    sum->accepted += more->accepted;
    sum->refused += more->refused;
    sum->commands += more->commands;
    sum->errors += more->errors;
    sum->bad_input += more->bad_input;
    sum->stalled += more->stalled;
    sum->overrun += more->overrun;
    sum->buffered += more->buffered;
    sum->packets += more->packets;
    sum->bad_requests += more->bad_requests;
    sum->authenticated += more->authenticated;
    sum->strangers += more->strangers;
    sum->refused_strangers += more->refused_strangers;
    sum->refused_address += more->refused_address;
    sum->refused_full += more->refused_full;
    sum->refused_accept_rate += more->refused_accept_rate;
    sum->refused_address_rate += more->refused_address_rate;
    sum->refused_address_count += more->refused_address_count;
    sum->rate_limited += more->rate_limited;
    sum->unauthorized += more->unauthorized;
    add_logins(&sum->logins, &more->logins);
    for (size_t i = 0; i < PACKET_KICK_COUNT; i++) {
        sum->kicks[i] += more->kicks[i];
    }
    for (size_t i = 0; i < CARRIER_EVENT_COUNT; i++) {
        sum->carriers.count[i] += more->carriers.count[i];
    }
    add_pushes(&sum->pushes, &more->pushes);
}

static void add_router(struct router_figures *sum, const struct router_figures *more)
{
    if (more->version < sum->version) {
        sum->version = more->version;
        sum->digest[0] = more->digest[0];
        sum->digest[1] = more->digest[1];
    }
    sum->requests += more->requests;
    sum->in_flight += more->in_flight;
    sum->waiting += more->waiting;
    sum->resent += more->resent;
    sum->retried += more->retried;
    sum->moved += more->moved;
    sum->cold += more->cold;
    sum->stale_answers += more->stale_answers;
    sum->late_answers += more->late_answers;
    sum->replied += more->replied;
    sum->unknown += more->unknown;
    sum->timeout += more->timeout;
    sum->rejected += more->rejected;
    sum->overloaded += more->overloaded;
}

void tally_add(struct tally *sum, const struct tally *more)
{
    add_clients(&sum->clients, &more->clients);
    add_router(&sum->router, &more->router);
    sum->connections_max += more->connections_max;
    sum->buffers_max += more->buffers_max;
    sum->threads += more->threads;
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
