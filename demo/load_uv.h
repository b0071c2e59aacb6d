/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo's clients: connections to the gateway that call ids at a steady
 * rate and number their requests per id. A thread of its own with its own
 * loop; the judge reads what it sent and what was answered when it has ended.
 *
 * Payload: "client seq", or "client seq milliseconds" for a slow one. The
 * ledger actor answers "OK count", its count of this client's requests: as the
 * clients number from 1, count must equal seq; a lower one means lost state.
 */
#ifndef DEMO_LOAD_UV_H
#define DEMO_LOAD_UV_H

#include "base/histogram.h"
#include "base/history.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOAD_CLIENTS = 16, LOAD_SLOW_IDS = 48, LOAD_PHASES = 5, LOAD_ERROR_SIZE = 160 };

enum load_phase { LOAD_BEFORE, LOAD_JOIN, LOAD_BETWEEN, LOAD_DRAIN, LOAD_AFTER };

struct load_options {
    const char *gateway; /* host:port */
    uint32_t ids;        /* "p0" … "p<ids-1>"; slow ones "slow0" … are on top */
    uint32_t rate;       /* requests a second, all clients together */
    uint32_t slow_ms;    /* how long a slow request takes */
    uint64_t seed;
    struct history *history; /* borrowed; what is sent and answered, NULL = not written down */
};

struct load_stats {
    uint64_t sent;
    uint64_t answered; /* with OK */
    uint64_t errors;   /* answered with an error, or on a lost connection */
    uint64_t wrong;    /* OK, but the actor's count is not seq: state was lost or run twice */
    char first_error[LOAD_ERROR_SIZE];
    struct histogram latency[LOAD_PHASES]; /* without the slow ids */
};

struct load;

/* Connect and start sending. NULL after printing why. */
struct load *load_start(const struct load_options *options);
/* From any thread. */
void load_stats(struct load *l, struct load_stats *out);
void load_phase(struct load *l, enum load_phase phase);
/* Keep one slow request in flight for each of the first `count` slow ids. */
void load_slow(struct load *l, uint32_t count);
/* Send nothing new; wait until all is answered. False: something is not after timeout_ms. */
bool load_finish(struct load *l, uint32_t timeout_ms);
void load_free(struct load *l);

/* Return, after load_finish(), the highest seq that `client` sent to an id; ids are numbered, the
 * slow ones after the others. */
uint32_t load_id_count(const struct load *l);
void load_id_name(const struct load *l, uint32_t id, char *out, size_t size);
uint32_t load_sent_to(const struct load *l, uint32_t client, uint32_t id);

#endif
