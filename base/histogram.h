/* SPDX-License-Identifier: Apache-2.0
 *
 * Latencies in microseconds, in buckets 1/128 of their size wide: 0.8 %
 * accurate from 1 us to over an hour, in a fixed 35 KiB. As HdrHistogram does it,
 * of which Debian 12 packs no library for C.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 128 * 35 };

struct histogram {
    uint64_t count;
    uint64_t max_us;
    uint64_t bucket[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t us);

/* histogram_add() of the same value, `count` times. */
void histogram_add_many(struct histogram *h, uint64_t us, uint64_t count);

/* Add all of `from` to `h`. */
void histogram_merge(struct histogram *h, const struct histogram *from);

/* The value that `per_mille` thousandths of all lie below or at; 0 when empty. */
uint64_t histogram_at(const struct histogram *h, unsigned per_mille);

#endif
