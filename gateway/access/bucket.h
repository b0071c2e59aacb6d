/* SPDX-License-Identifier: Apache-2.0
 *
 * Token bucket: may one more pass now, and if not, when? `rate` pass a second,
 * `burst` at once after a rest.
 *
 * Pure. It is kept as the time at which it will be full again, so that time
 * passes by itself: a bucket that nobody asks costs eight bytes and no work.
 */
#ifndef GATEWAY_ACCESS_BUCKET_H
#define GATEWAY_ACCESS_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct bucket_rate {
    uint32_t rate;  /* a second; 0 = no limit */
    uint32_t burst; /* at once; 0 counts as 1 */
};

/* All zero: full. */
struct bucket {
    uint64_t full_ns; /* when it will be; in the past = it is */
};

static inline bool bucket_is_full(const struct bucket *b, uint64_t now_us)
{
    return b->full_ns <= now_us * 1000;
}

/* Take one: 0. Or there is none: microseconds until there is, and nothing was taken. */
static inline uint64_t bucket_take(struct bucket *b, struct bucket_rate r, uint64_t now_us)
{
    const uint64_t now_ns = now_us * 1000;

    if (r.rate == 0) {
        return 0;
    }
    const uint64_t one_ns = UINT64_C(1000000000) / r.rate;
    const uint64_t all_ns = one_ns * (r.burst == 0 ? 1 : r.burst);
    const uint64_t full_ns = (b->full_ns > now_ns ? b->full_ns : now_ns) + one_ns;
    if (full_ns > now_ns + all_ns) {
        return (full_ns - now_ns - all_ns) / 1000 + 1;
    }
    b->full_ns = full_ns;
    return 0;
}

#endif
