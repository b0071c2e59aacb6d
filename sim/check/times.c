/* SPDX-License-Identifier: Apache-2.0
 *
 * Durations in buckets, added and compared.
 */
#include "sim/check/times.h"

#include <stddef.h>

void times_add(struct times *t, uint64_t time_us)
{
    const uint64_t b = time_us / TIMES_BUCKET_US;

    t->count++;
    t->max_us = time_us > t->max_us ? time_us : t->max_us;
    t->bucket[b < TIMES_BUCKETS ? b : TIMES_BUCKETS - 1]++;
}

double times_within(const struct times *t, uint64_t per_mille)
{
    uint64_t left = t->count * per_mille / 1000;

    for (size_t i = 0; i < TIMES_BUCKETS; i++) {
        if (t->bucket[i] > left) {
            return (double)(i + 1) * TIMES_BUCKET_US / 1e6;
        }
        left -= t->bucket[i];
    }
    return (double)t->max_us / 1e6;
}

void times_merge(struct times *t, const struct times *more)
{
    t->count += more->count;
    t->max_us = more->max_us > t->max_us ? more->max_us : t->max_us;
    for (size_t i = 0; i < TIMES_BUCKETS; i++) {
        t->bucket[i] += more->bucket[i];
    }
}
