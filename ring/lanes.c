/* SPDX-License-Identifier: Apache-2.0 */
#include "ring/lanes.h"

#include "base/assert.h"

#include <string.h>

#if defined(__x86_64__)

/* The compiler's vectors: arithmetic on them works lane by lane. */
typedef uint64_t lanes __attribute__((vector_size(LANES * sizeof(uint64_t))));

struct state {
    lanes v0;
    lanes v1;
    lanes v2;
    lanes v3;
};

/* Inlined into a function that may use AVX-512; by pointer, for no call passes such a vector. */
#define INLINE static inline __attribute__((always_inline))

#define ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))

INLINE void round_of(struct state *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = ROTATE(s->v1, 13) ^ s->v0;
    s->v3 = ROTATE(s->v3, 16) ^ s->v2;
    s->v0 = ROTATE(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = ROTATE(s->v1, 17) ^ s->v2;
    s->v3 = ROTATE(s->v3, 21) ^ s->v0;
    s->v2 = ROTATE(s->v2, 32);
}

__attribute__((target("avx512f"))) static void
hash_avx512(struct ring_key key, uint64_t (*word)[LANES], size_t words, uint64_t hash[LANES])
{
    const lanes zero = {0};
    struct state s = {zero + (key.k0 ^ 0x736f6d6570736575u),
                      zero + (key.k1 ^ 0x646f72616e646f6du),
                      zero + (key.k0 ^ 0x6c7967656e657261u),
                      zero + (key.k1 ^ 0x7465646279746573u)};

    for (size_t w = 0; w < words; w++) {
        lanes m;

        memcpy(&m, word[w], sizeof m);
        s.v3 ^= m;
        round_of(&s);
        s.v0 ^= m;
    }
    s.v2 ^= zero + 0xff;
    round_of(&s);
    round_of(&s);
    round_of(&s);
    s.v0 ^= s.v1 ^ s.v2 ^ s.v3;
    memcpy(hash, &s.v0, sizeof s.v0);
}

bool lanes_usable(void)
{
    return __builtin_cpu_supports("avx512f") != 0;
}

void lanes_hash(struct ring_key key, uint64_t (*word)[LANES], size_t words, uint64_t hash[LANES])
{
    ASSERT(words >= 1 && words <= LANES_WORDS_MAX);
    hash_avx512(key, word, words, hash);
}

#else

bool lanes_usable(void)
{
    return false;
}

void lanes_hash(struct ring_key key, uint64_t (*word)[LANES], size_t words, uint64_t hash[LANES])
{
    (void)key;
    (void)word;
    (void)words;
    (void)hash;
    UNREACHABLE();
}

#endif
