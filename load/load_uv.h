/* SPDX-License-Identifier: Apache-2.0
 *
 * Load on a gateway by the clients' binary protocol, and how it is answered.
 *
 * Closed loop: each connection keeps `depth` requests under way, so the slower
 * the answers the less is asked. Open loop: requests come by a schedule, whatever
 * the answers do, and latency counts from when one was due and not from when it
 * could be sent; so a stall shows in every request that it held up.
 *
 * Cheap by itself, and says what it took: one write for each connection and turn of the loop, a
 * packet that is made once (load/mould.h), no memory for a request, one reading of the clock for
 * all that came with a read.
 */
#ifndef LOAD_LOAD_UV_H
#define LOAD_LOAD_UV_H

#include "base/histogram.h"

#include <stdbool.h>
#include <stdint.h>

struct fleet_load {
    const char *address;  /* "host:port" of a gateway's --frames */
    uint32_t connections; /* 1.. */
    uint32_t depth;       /* closed loop: requests of a connection under way, 1.. */
    uint32_t rate;        /* open loop: requests a second in all; 0 = closed loop */
    uint32_t batch;       /* requests that a connection asks at once, 1.. */
    bool poisson;         /* they come at random, else evenly */
    uint32_t ids;         /* so many entities, by random */
    uint32_t size;        /* bytes of a payload */
    uint32_t kind;
    uint32_t seconds;    /* that count */
    uint32_t warm_up_ms; /* before, that do not */
    uint64_t seed;
};

enum { LOAD_STATUSES = 256 };

struct fleet_load_result {
    double seconds;                 /* measured */
    double used_seconds;            /* of them our own processor was busy */
    uint64_t status[LOAD_STATUSES]; /* answers by status */
    uint64_t answered;              /* of any time */
    uint64_t unanswered;            /* of the time that counts; 2 s after its end */
    uint64_t closed;                /* connections that ended before */
    uint64_t late_max_us;           /* open loop: how late we sent at worst; over our own CPU, or
                                       the limit of requests under way */
    char reason[128];               /* of the first that was closed */
    struct histogram latency;       /* of those that are OK, us */
};

/* Run it. False: it could not begin; `out->reason` says why. */
bool fleet_load_run(const struct fleet_load *load, struct fleet_load_result *out);

#endif
