/* SPDX-License-Identifier: Apache-2.0
 *
 * What an actor costs that moves, without links: of the node that gives it, and of
 * the one that takes it.
 *
 *     move_bench [ACTORS] [ROUNDS] [ahead]
 *
 * ACTORS of 1 KiB go from one to the other and back; between, each is asked once. `ahead`: their
 * images go before the hold does.
 * Prints CPU nanoseconds an actor and move. No promise; callgrind counts what does
 * not depend on the machine.
 */
#include "base/log.h"
#include "bench/move_mill.h"

#include <stdlib.h>
#include <time.h>

static uint64_t cpu_ns(void)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

int main(int argc, char **argv)
{
    static struct move_mill mill;
    const size_t actors = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
    const size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 4;
    const bool ahead = argc > 3 && strcmp(argv[3], "ahead") == 0;
    uint64_t sum_ns = 0;

    if (actors == 0 || rounds == 0) {
        (void)fprintf(stderr, "usage: move_bench [ACTORS] [ROUNDS] [ahead]\n");
        return 2;
    }
    log_set_level(LOG_WARN);
    move_open(&mill, ahead, MOVE_VNODES);
    move_ask(&mill, 1, true, actors);
    for (size_t i = 0; i < rounds; i++) {
        const uint16_t from = (uint16_t)(1 + i % 2);
        const uint16_t to = (uint16_t)(3 - from);
        const uint64_t begun_ns = cpu_ns();

        move_all(&mill, from, to);
        sum_ns += cpu_ns() - begun_ns;
        move_ask(&mill, to, false, actors);
    }
    (void)printf("move %8.0f ns, %.3f records, %.3f acks, most effects of a step %zu\n",
                 (double)sum_ns / (double)actors / (double)rounds,
                 (double)mill.records / (double)actors / (double)rounds,
                 (double)mill.acks / (double)actors / (double)rounds,
                 mill.node[0].node.effect_count_most);
    move_close(&mill);
    return 0;
}
