/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request costs inside the gateway, without I/O: 50 clients, batches of
 * 32 commands of 64 bytes, one node. Prints nanoseconds a request.
 *
 *     gateway_bench [TURNS [KEYS]]                   a turn is 1600 requests
 *
 * Instructions, which are the same on every machine, by bench/gateway.
 */
#include "tests/gateway_rig.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void run(bool set, uint64_t turns, uint64_t keys)
{
    struct gateway_rig g;
    const uint64_t requests = turns * GATEWAY_RIG_CLIENTS * GATEWAY_RIG_BATCH;
    uint64_t spent_ns = 0;

    gateway_rig_init(&g);
    for (uint64_t i = 0; i < turns; i++) {
        gateway_rig_ask(&g, set, keys);
        const uint64_t from_ns = now_ns();
        gateway_rig_turn(&g);
        spent_ns += now_ns() - from_ns;
    }
    printf("%s: %" PRIu64 " requests, %.0f ns each, %.1f bytes of reply\n",
           set ? "SET" : "GET",
           requests,
           (double)spent_ns / (double)requests,
           (double)g.replied / (double)requests);
    gateway_rig_fini(&g);
}

int main(int argc, char **argv)
{
    const uint64_t turns = argc > 1 ? strtoull(argv[1], NULL, 10) : 500;
    const uint64_t keys = argc > 2 ? strtoull(argv[2], NULL, 10) : 100000;

    run(true, turns, keys);
    run(false, turns, keys);
    return 0;
}
