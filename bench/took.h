/* SPDX-License-Identifier: Apache-2.0
 *
 * A closed loop's result, for bench/commit_bench.c and bench/put_bench.c.
 */
#ifndef BENCH_TOOK_H
#define BENCH_TOOK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* CLOCK_MONOTONIC. */
static inline uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline int took_compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Answers a second since `start_ns`, then p50 and p99 of their times in microseconds; sorts them.
 * Prints nothing when there are none. */
static inline void took_print(uint64_t *took_ns, size_t count, uint64_t start_ns)
{
    const double seconds = (double)(now_ns() - start_ns) / 1e9;
    const size_t half = count / 2;
    const size_t most = count * 99 / 100;

    if (count == 0) {
        return;
    }
    qsort(took_ns, count, sizeof *took_ns, took_compare);
    (void)printf("%.0f %.1f %.1f\n",
                 (double)count / seconds,
                 (double)took_ns[half] / 1e3,
                 (double)took_ns[most] / 1e3);
}

#endif
