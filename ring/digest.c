/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds a vnode's hash to the ring's digest, or takes it out.
 */
#include "ring/digest.h"

#include "ring/hash.h"
#include "ring/inside.h"

struct digest_pair {
    uint64_t first;
    uint64_t second;
};

static uint64_t hash_words(struct ring_key key, const uint64_t word[5])
{
    struct siphash s = siphash_start(key);

    for (unsigned i = 0; i < 5; i++) {
        siphash_word(&s, word[i]);
    }
    return siphash_end(&s, (uint64_t)40 << 56);
}

static struct digest_pair hash_vnode(const struct ring_vnode *v, uint32_t end)
{
    // The keys are the ASCII of "ringhold", then "digest" after a blank.
    static const struct ring_key first = {0x646c6f68676e6972u, 0x3074736567696420u};
    static const struct ring_key second = {0x646c6f68676e6972u, 0x3174736567696420u};
    const uint64_t word[5] = {
        v->id | (uint64_t)v->from << 32,
        end | (uint64_t)v->owner << 32,
        v->generation,
        v->cold,
        v->txn,
    };

    return (struct digest_pair){hash_words(first, word), hash_words(second, word)};
}

void digest_add(uint64_t digest[2], const struct ring_vnode *v, uint32_t end)
{
    struct digest_pair hash = hash_vnode(v, end);

    digest[0] += hash.first;
    digest[1] += hash.second;
}

void digest_remove(uint64_t digest[2], const struct ring_vnode *v, uint32_t end)
{
    struct digest_pair hash = hash_vnode(v, end);

    digest[0] -= hash.first;
    digest[1] -= hash.second;
}

static struct digest_pair hash_segment(const struct ring_segment *s)
{
    // The keys are the ASCII of "ringhold", then of "segment" and "segmenu" after a blank.
    static const struct ring_key first = {0x646c6f68676e6972u, 0x746e656d67657320u};
    static const struct ring_key second = {0x646c6f68676e6972u, 0x756e656d67657320u};
    uint8_t bytes[4 + SEGMENT_SIZE_MAX];
    size_t size;

    for (unsigned i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(s->from >> (8 * i));
    }
    size = 4 + segment_encode(s, bytes + 4);
    return (struct digest_pair){siphash_bytes(first, bytes_of(bytes, size)),
                                siphash_bytes(second, bytes_of(bytes, size))};
}

void digest_add_segment(uint64_t digest[2], const struct ring_segment *s)
{
    struct digest_pair hash = hash_segment(s);

    digest[0] += hash.first;
    digest[1] += hash.second;
}

void digest_remove_segment(uint64_t digest[2], const struct ring_segment *s)
{
    struct digest_pair hash = hash_segment(s);

    digest[0] -= hash.first;
    digest[1] -= hash.second;
}
