/* SPDX-License-Identifier: Apache-2.0
 *
 * How long something took, many times: counts in buckets.
 */
#ifndef SIM_CHECK_TIMES_H
#define SIM_CHECK_TIMES_H

#include <stdint.h>

/* The last bucket takes all that are longer. */
enum { TIMES_BUCKETS = 3000, TIMES_BUCKET_US = 10000 };

struct times {
    uint64_t count;
    uint64_t max_us;
    uint64_t bucket[TIMES_BUCKETS];
};

void times_add(struct times *t, uint64_t time_us);
void times_merge(struct times *t, const struct times *more);
/* Seconds within which `per_mille` of a thousand were over: the bucket's upper end. */
double times_within(const struct times *t, uint64_t per_mille);

#endif
