/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request costs inside the gateway, without I/O: 50 clients, batches of
 * 32 commands of 64 bytes, one node. Prints nanoseconds of CPU a request: of
 * the median turn, and of the best, which others on the machine disturbed least.
 *
 *     gateway_bench [TURNS [KEYS [SET|GET|CALL|PACKETS [records|streams]]]]
 *
 * A turn is 1600 requests.
 *
 * Instructions, which are the same on every machine, by bench/gateway.
 */
#include "tests/gateway/gateway_rig.h"

#include <stdlib.h>
#include <time.h>

enum { TURN_REQUESTS = GATEWAY_RIG_CLIENTS * GATEWAY_RIG_BATCH };

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static const char *const names[] = {"SET", "GET", "CALL", "PACKETS"};
static const char *const ways[] = {"records", "streams"};

// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): one call, by their names
static void run(enum gateway_rig_load load, bool streams, size_t turns, uint64_t keys)
{
    struct gateway_rig g;
    uint64_t *spent_ns = mem_new(turns, sizeof *spent_ns);

    gateway_rig_init(&g, load, streams);
    for (size_t i = 0; i < turns; i++) {
        gateway_rig_ask(&g, keys);
        const uint64_t there_ns = now_ns();
        gateway_rig_there(&g);
        spent_ns[i] = now_ns() - there_ns;
        gateway_rig_node(&g);
        const uint64_t back_ns = now_ns();
        gateway_rig_back(&g);
        spent_ns[i] += now_ns() - back_ns;
    }
    qsort(spent_ns, turns, sizeof *spent_ns, compare);
    const uint64_t median_ns = spent_ns[turns / 2];

    printf("%s by %s: %.0f ns a request, at best %.0f\n",
           names[load],
           ways[streams],
           (double)median_ns / TURN_REQUESTS,
           (double)spent_ns[0] / TURN_REQUESTS);
    mem_free(spent_ns);
    gateway_rig_fini(&g);
}

int main(int argc, char **argv)
{
    const size_t turns = argc > 1 ? strtoull(argv[1], NULL, 10) : 500;
    const uint64_t keys = argc > 2 ? strtoull(argv[2], NULL, 10) : 100000;
    const char *only = argc > 3 ? argv[3] : "";
    const char *way = argc > 4 ? argv[4] : "";

    if (turns == 0 || keys == 0) {
        return 1;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (int streams = 0; streams < 2; streams++) {
            if ((only[0] == '\0' || strcmp(only, names[i]) == 0) &&
                (way[0] == '\0' || strcmp(way, ways[streams]) == 0)) {
                run((enum gateway_rig_load)i, streams, turns, keys);
            }
        }
    }
    return 0;
}
