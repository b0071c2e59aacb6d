/* SPDX-License-Identifier: Apache-2.0
 *
 * Bots on real connections: what load/bot.h wants, on one loop.
 *
 * Files are what it runs out of: a bot that wishes to connect while as many are
 * open as the process may have waits until another one's is closed.
 */
#ifndef LOAD_BOTS_UV_H
#define LOAD_BOTS_UV_H

#include "load/bot.h"

#include <stdbool.h>
#include <stdint.h>

enum { BOTS_ADDRESSES_MAX = 16 };

struct bots_outcome {
    const struct bot_ledger *ledger;
    double seconds;
    double in_seconds; /* from the start until the last bot logged in first */
    uint64_t waiting;  /* requests without an answer at the end */
    uint32_t open_max; /* connections at a time, as it was */
    char reason[128];  /* why it could not begin, or the first connection could not be made */
};

struct bots_plan {
    struct bots_config bots;                 /* `addresses` is filled in */
    const char *address[BOTS_ADDRESSES_MAX]; /* "host:port" of gateways' --frames */
    uint32_t address_count;
    uint32_t sources;  /* connect from 127.0.1.1 and on, so many; 0 = as the kernel chooses */
    uint32_t time_ms;  /* then they stop; 0 = when all are through */
    uint32_t open_max; /* connections at a time; 0 = as many as there may be files */
    /* About once a second. */
    void (*progress)(const struct bots_outcome *so_far, void *context);
    void *context;
};

/* Run them, and then `tell` the outcome, which is good only there. False: they could not begin;
 * `why` says why. */
bool bots_run(const struct bots_plan *plan,
              void (*tell)(const struct bots_outcome *outcome, void *context), char why[128]);

#endif
