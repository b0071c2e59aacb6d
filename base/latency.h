/* SPDX-License-Identifier: Apache-2.0
 *
 * How long did requests of each kind take, by what came of them? Histograms for /metrics that cost
 * a request some twenty instructions: a bucket for each power of two, from 64 us to 16 s.
 *
 * One thread writes, any may read: each number is right by itself, and those of one histogram
 * differ by what is being counted at that moment at most. The memory is fixed: what is of no row
 * of its own counts in row 0.
 */
#ifndef BASE_LATENCY_H
#define BASE_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    LATENCY_BUCKETS = 20,
    LATENCY_FIRST_US = 64, /* what takes less is in the first bucket, … */
    LATENCY_LAST_US = LATENCY_FIRST_US << (LATENCY_BUCKETS - 2), /* … and the rest in the last */
    LATENCY_KINDS = 16,  /* that have a row; all others share row 0 */
    LATENCY_SERIES = 12, /* of a row */
    LATENCY_ROW_BITS = 5,
};
_Static_assert(LATENCY_KINDS < 1 << LATENCY_ROW_BITS, "a stamp holds a row");

/* Bucket i counts what took less than latency_bound_us(i), and is in none before it. */
struct latency {
    _Atomic uint64_t bucket[LATENCY_BUCKETS];
    _Atomic uint64_t sum_us;
};

/* What a series is, is for the owner to say: an outcome, a step of the work. */
struct latency_row {
    uint16_t kind;
    struct latency of[LATENCY_SERIES];
};

/* All zero is a valid empty one. */
struct latencies {
    struct latency_row row[LATENCY_KINDS + 1];
    _Atomic uint32_t count; /* rows in use behind row 0 */
};

/* 64 us, 128 us … 16.8 s; UINT64_MAX for the last. */
uint64_t latency_bound_us(unsigned bucket);

static inline uint64_t latency_read(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

/* Add to a number, by the thread that alone writes it: there is nothing to lock. */
static inline void latency_raise(_Atomic uint64_t *number, uint64_t by)
{
    atomic_store_explicit(number, latency_read(number) + by, memory_order_relaxed);
}

/* The bucket that counts what took so long. */
static inline int latency_bucket(uint64_t us)
{
    const uint64_t within_us = us < LATENCY_LAST_US ? us : LATENCY_LAST_US;
    const int top = __builtin_clzll(LATENCY_FIRST_US - 1);

    return top - __builtin_clzll(within_us | (LATENCY_FIRST_US - 1));
}

/* `count` of them took so long. */
static inline void latency_add(struct latency *l, uint64_t us, uint64_t count)
{
    latency_raise(&l->bucket[latency_bucket(us)], count);
    latency_raise(&l->sum_us, us * count);
}

/* Return how many there were. */
uint64_t latency_count(const struct latency *l);
/* How long so many thousandths of those, 1 to 1000, took at most: at least 1; LATENCY_LAST_US for
 * what took longer; 0 = none were counted. Within a bucket as if they lay evenly, as Prometheus
 * reckons it. Each count is at most 2^48. */
uint64_t latency_quantile_us(const uint64_t bucket[LATENCY_BUCKETS], uint32_t permille);
/* Count in `to` what `more` counts, too. */
void latency_merge(struct latency *to, const struct latency *more);

/* Return the row of that kind; 0 = it has none of its own. */
uint32_t latencies_find(const struct latencies *l, uint16_t kind);
/* Likewise; it gets one as long as there are. Who may name kinds that nobody has must not get here,
 * or strangers fill the rows. */
uint32_t latencies_row(struct latencies *l, uint16_t kind);
/* Count in `sum` what `more` counts, too, kind by kind. */
void latencies_merge(struct latencies *sum, const struct latencies *more);

/* When something of that row began, in 32 bits: for as long as two minutes. */
static inline uint32_t latency_stamp(uint64_t now_us, uint32_t row)
{
    return (uint32_t)(now_us << LATENCY_ROW_BITS) | row;
}
static inline uint32_t latency_stamp_row(uint32_t stamp)
{
    return stamp & ((1u << LATENCY_ROW_BITS) - 1);
}
/* How long ago that was. */
static inline uint64_t latency_stamp_age_us(uint32_t stamp, uint64_t now_us)
{
    const uint32_t rows = (1u << LATENCY_ROW_BITS) - 1;

    return (((uint32_t)(now_us << LATENCY_ROW_BITS) | rows) - stamp) >> LATENCY_ROW_BITS;
}

#endif
