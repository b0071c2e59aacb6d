/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request costs inside a node, without its links: requests in frames are
 * admitted, run inline and answered; or handed to a worker, run, taken back and answered, as those
 * of kinds that are not brief.
 *
 *     node_bench [kv|echo] [REQUESTS] [A FRAME] [ACTORS] [SESSIONS] [inline|worker|streams]
 *
 * By `streams` they come in frames of one stream, and run inline. Prints CPU nanoseconds a request
 * for each stage. No promise; what does not depend on the machine is counted by bench/node, which
 * runs this in callgrind.
 */
#include "bench/node_mill.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum stage { STAGE_MAKE, STAGE_SERVE, STAGE_ADMIT, STAGE_RUN, STAGE_ANSWER, STAGES };

static uint64_t cpu_ns(void)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static uint64_t argument(int argc, char **argv, int at, uint64_t standard)
{
    return argc > at ? strtoull(argv[at], NULL, 10) : standard;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"make", "serve", "admit", "run", "answer"};
    static struct mill mill;
    const bool echo = argc > 1 && strcmp(argv[1], "echo") == 0;
    const uint16_t kind = echo ? MILL_ECHO : MILL_KV;
    const uint64_t requests = argument(argc, argv, 2, 1000000);
    const size_t frame = (size_t)argument(argc, argv, 3, 128);
    const size_t actors = (size_t)argument(argc, argv, 4, 100001); // odd: each gets SET and GET
    const size_t sessions = (size_t)argument(argc, argv, 5, 1);
    const char *way = argc > 6 ? argv[6] : "inline";
    const bool inlined = strcmp(way, "worker") != 0;
    const bool streams = strcmp(way, "streams") == 0;
    uint64_t sum_ns[STAGES] = {0};

    if (frame == 0 || frame > MILL_FRAME_MAX || actors < frame || sessions == 0) {
        (void)fprintf(stderr,
                      "usage: node_bench [kv|echo] [REQUESTS] [A FRAME] [ACTORS] [SESSIONS] "
                      "[inline|worker|streams]\n");
        return 2;
    }
    (inlined ? mill_open_inline : mill_open)(&mill, actors, sessions);
    mill_warm(&mill, kind, frame);
    if (streams) {
        mill_begin_stream(&mill, kind, frame);
    }
    for (uint64_t done = 0; done < requests; done += frame) {
        uint64_t at[STAGES + 1];

        at[0] = cpu_ns();
        (streams ? mill_make_frame : mill_make)(&mill, kind, frame);
        buffer_clear(&mill.answers);
        mill.answer_count = 0;
        at[1] = cpu_ns();
        if (streams) {
            mill_feed(&mill);
        } else if (inlined) {
            mill_serve(&mill);
        }
        at[2] = cpu_ns();
        if (!inlined) {
            mill_admit(&mill);
        }
        at[3] = cpu_ns();
        if (!inlined) {
            mill_run(&mill);
        }
        at[4] = cpu_ns();
        if (!inlined) {
            mill_answer(&mill);
        }
        if (streams) {
            mill.answer_count = mill_pour(&mill);
        }
        at[5] = cpu_ns();
        ASSERT(mill.answer_count == frame);
        for (int i = 0; i < STAGES; i++) {
            sum_ns[i] += at[i + 1] - at[i];
        }
    }
    for (int i = STAGE_SERVE; i < STAGES; i++) {
        (void)printf("%-8s %8.0f ns\n", names[i], (double)sum_ns[i] / (double)requests);
    }
    mill_close(&mill);
    return 0;
}
