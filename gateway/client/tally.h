/* SPDX-License-Identifier: Apache-2.0
 *
 * What all threads of a gateway have counted together, for INFO.
 *
 * A thread counts for itself, and puts its figures on the board now and then:
 * those of the others are some milliseconds old, and no request waits for a
 * lock. With one thread there is no board.
 */
#ifndef GATEWAY_CLIENT_TALLY_H
#define GATEWAY_CLIENT_TALLY_H

#include "gateway/client/client.h"

struct tally {
    struct clients_figures clients;
    struct router_figures router; /* version, digest: of the oldest ring */
    uint64_t connections_max;
    uint64_t buffers_max;
    uint64_t threads;
};

/* What these clients and their router have counted. */
void clients_tally(const struct clients *all, struct tally *out);

/* With those of the other threads. */
void clients_tally_all(const struct clients *all, struct tally *out);

void tally_add(struct tally *sum, const struct tally *more);

/* Where the threads put theirs. All of it may be called by any thread. */
struct board;
struct board *board_new(unsigned threads);
/* Takes NULL. */
void board_free(struct board *b);
void board_put(struct board *b, unsigned thread, const struct tally *own);
/* `sum` = `own`, and what the other threads put last. */
void board_sum(struct board *b, unsigned thread, const struct tally *own, struct tally *sum);

#endif
