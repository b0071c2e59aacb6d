/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeded random numbers (splitmix64). The only randomness the core may use;
 * the same seed gives the same run on every machine.
 */
#ifndef BASE_PRNG_H
#define BASE_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
    uint64_t state;
};

static inline uint64_t prng_u64(struct prng *p)
{
    uint64_t z = (p->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [low, high]; the bias of % is below 2^-32 for the ranges we use. */
static inline uint64_t prng_between(struct prng *p, uint64_t low, uint64_t high)
{
    return low + prng_u64(p) % (high - low + 1);
}

static inline bool prng_chance(struct prng *p, uint64_t percent)
{
    return prng_between(p, 1, 100) <= percent;
}

#endif
