/* SPDX-License-Identifier: Apache-2.0
 *
 * SipHash-1-3: the keyed hash behind positions and digests; the tag of an id.
 *
 * Keyed, because a client who can predict positions can aim all its ids at one
 * node. Fixed by its specification, so every process of every version agrees.
 */
#ifndef RING_HASH_H
#define RING_HASH_H

#include "base/assert.h"
#include "base/bytes.h"

#include <stdint.h>
#include <string.h>

/* The cluster's secret, or a key derived from it for one kind. Never logged. */
struct ring_key {
    uint64_t k0;
    uint64_t k1;
};

/* Four words of state. */
struct siphash {
    uint64_t v0;
    uint64_t v1;
    uint64_t v2;
    uint64_t v3;
};

static inline uint64_t siphash_rotate(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

__attribute__((always_inline)) static inline void siphash_round(struct siphash *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = siphash_rotate(s->v1, 13) ^ s->v0;
    s->v3 = siphash_rotate(s->v3, 16) ^ s->v2;
    s->v0 = siphash_rotate(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = siphash_rotate(s->v1, 17) ^ s->v2;
    s->v3 = siphash_rotate(s->v3, 21) ^ s->v0;
    s->v2 = siphash_rotate(s->v2, 32);
}

static inline struct siphash siphash_start(struct ring_key key)
{
    return (struct siphash){key.k0 ^ 0x736f6d6570736575u,
                            key.k1 ^ 0x646f72616e646f6du,
                            key.k0 ^ 0x6c7967656e657261u,
                            key.k1 ^ 0x7465646279746573u};
}

/* Mix in the next 8 bytes, as a little-endian word. */
__attribute__((always_inline)) static inline void siphash_word(struct siphash *s, uint64_t word)
{
    s->v3 ^= word;
    siphash_round(s);
    s->v0 ^= word;
}

/* `last`: the size of the message in the top byte, under it its last size % 8 bytes. */
__attribute__((always_inline)) static inline uint64_t siphash_end(struct siphash *s, uint64_t last)
{
    siphash_word(s, last);
    s->v2 ^= 0xff;
    siphash_round(s);
    siphash_round(s);
    siphash_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* 8 bytes as a little-endian word. */
static inline uint64_t siphash_load(const uint8_t *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The last word of the message for siphash_end(). */
static inline uint64_t siphash_last(struct bytes message)
{
    size_t rest = message.size % 8;
    uint64_t word = (uint64_t)message.size << 56;

    if (rest == 0) {
        return word;
    }
    if (message.size >= 8) {
        // The eight last bytes lie inside the message; drop those already hashed.
        return word | siphash_load(message.data + message.size - 8) >> (64 - 8 * rest);
    }
    for (size_t i = 0; i < rest; i++) {
        word |= (uint64_t)message.data[i] << (8 * i);
    }
    return word;
}

/* Hash of the 8 little-endian bytes of `id`. */
static inline uint64_t siphash_u64(struct ring_key key, uint64_t id)
{
    struct siphash s = siphash_start(key);

    siphash_word(&s, id);
    return siphash_end(&s, (uint64_t)8 << 56);
}

/* Hash of any bytes, size 0 included, from where siphash_start() of a key has begun. The last two
 * whole words go without a loop: most ids have no more. Always: compiled as one, gcc calls it, for
 * a fifth more instructions. */
__attribute__((always_inline)) static inline uint64_t siphash_from(struct siphash s,
                                                                   struct bytes message)
{
    size_t whole = message.size / 8;
    const uint8_t *at = message.data;

    for (; whole > 2; whole--, at += 8) {
        siphash_word(&s, siphash_load(at));
    }
    if (whole == 2) {
        siphash_word(&s, siphash_load(at));
        siphash_word(&s, siphash_load(at + 8));
    } else if (whole == 1) {
        siphash_word(&s, siphash_load(at));
    }
    return siphash_end(&s, siphash_last(message));
}

/* Likewise, with that key. */
__attribute__((always_inline)) static inline uint64_t siphash_inline(struct ring_key key,
                                                                     struct bytes message)
{
    return siphash_from(siphash_start(key), message);
}

/* SipHash of the whole message, as a function that is not inlined. */
uint64_t siphash_bytes(struct ring_key key, struct bytes message);

/* ---- positions ---- */

/* The key of one kind, from the cluster's key. Kind 0 has a key of its own too. */
struct ring_key ring_key_of_kind(struct ring_key master, uint16_t kind);
/* The key of tags, which are those of all kinds. */
struct ring_key ring_key_of_tags(struct ring_key master);
/* What decides where an id lives whose kind is placed by tags: what stands between its first '{'
 * and the first '}' behind that, or the whole id where that is nothing. It points into `id`. */
struct bytes ring_tag(struct bytes id);
/* `id` is 1..255 bytes compared as bytes. */
__attribute__((always_inline)) static inline uint64_t ring_position(struct ring_key key,
                                                                    struct bytes id)
{
    ASSERT(id.size >= 1 && id.size <= 255);
    return siphash_inline(key, id);
}

/* Same result as ring_position() of the 8 little-endian bytes of `id`. */
static inline uint64_t ring_position_u64(struct ring_key key, uint64_t id)
{
    return siphash_u64(key, id);
}

#endif
