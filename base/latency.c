/* SPDX-License-Identifier: Apache-2.0
 *
 * Histograms by kind: their bounds and rows, read and added up.
 */
#include "base/latency.h"

uint64_t latency_bound_us(unsigned bucket)
{
    return bucket < LATENCY_BUCKETS - 1 ? (uint64_t)LATENCY_FIRST_US << bucket : UINT64_MAX;
}

uint64_t latency_count(const struct latency *l)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
        count += latency_read(&l->bucket[i]);
    }
    return count;
}

uint64_t latency_quantile_us(const uint64_t bucket[LATENCY_BUCKETS], uint32_t permille)
{
    uint64_t count = 0;
    uint64_t before = 0;
    unsigned at = 0;

    for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
        count += bucket[i];
    }
    if (count == 0) {
        return 0;
    }
    const uint64_t rank = (count * permille + 999) / 1000; // of the first that takes so long
    while (before + bucket[at] < rank) {
        before += bucket[at++];
    }
    if (at == LATENCY_BUCKETS - 1) {
        return LATENCY_LAST_US;
    }
    const uint64_t from_us = at == 0 ? 0 : latency_bound_us(at - 1);
    const double part = bucket[at] == 0 ? 0 : (double)(rank - before) / (double)bucket[at];
    const uint64_t us = from_us + (uint64_t)((double)(latency_bound_us(at) - from_us) * part);

    return us == 0 ? 1 : us;
}

void latency_merge(struct latency *to, const struct latency *more)
{
    for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
        latency_raise(&to->bucket[i], latency_read(&more->bucket[i]));
    }
    latency_raise(&to->sum_us, latency_read(&more->sum_us));
}

uint32_t latencies_find(const struct latencies *l, uint16_t kind)
{
    uint32_t row = atomic_load_explicit(&l->count, memory_order_acquire);

    while (row > 0 && l->row[row].kind != kind) {
        row--;
    }
    return row;
}

uint32_t latencies_row(struct latencies *l, uint16_t kind)
{
    const uint32_t found = latencies_find(l, kind);
    const uint32_t next = atomic_load_explicit(&l->count, memory_order_relaxed) + 1;

    if (found != 0 || next > LATENCY_KINDS) {
        return found;
    }
    l->row[next].kind = kind;
    atomic_store_explicit(&l->count, next, memory_order_release); // It may be read from now on.
    return next;
}

void latencies_merge(struct latencies *sum, const struct latencies *more)
{
    const uint32_t count = atomic_load_explicit(&more->count, memory_order_acquire);

    for (uint32_t i = 0; i <= count; i++) {
        const uint32_t to = i == 0 ? 0 : latencies_row(sum, more->row[i].kind);

        for (unsigned s = 0; s < LATENCY_SERIES; s++) {
            latency_merge(&sum->row[to].of[s], &more->row[i].of[s]);
        }
    }
}
