/* SPDX-License-Identifier: Apache-2.0 */
#include "ring/hash.h"

#include "base/assert.h"

uint64_t siphash_bytes(struct ring_key key, struct bytes message)
{
    struct siphash s = siphash_start(key);

    for (size_t at = 0; at + 8 <= message.size; at += 8) {
        siphash_word(&s, siphash_load(message.data + at));
    }
    return siphash_end(&s, siphash_last(message));
}

struct ring_key ring_key_of_kind(struct ring_key master, uint16_t kind)
{
    // Fixed by RING_SPEC: k0 and k1 are the hashes under the master key of
    // "kind", the kind as two little-endian bytes, and 0 or 1.
    uint8_t label[7] = {'k', 'i', 'n', 'd', (uint8_t)kind, (uint8_t)(kind >> 8), 0};
    struct ring_key key;

    key.k0 = siphash_bytes(master, bytes_of(label, sizeof label));
    label[6] = 1;
    key.k1 = siphash_bytes(master, bytes_of(label, sizeof label));
    return key;
}

uint64_t ring_position(struct ring_key key, struct bytes id)
{
    ASSERT(id.size >= 1 && id.size <= 255);
    return siphash_bytes(key, id);
}

uint64_t ring_position_u64(struct ring_key key, uint64_t id)
{
    return siphash_u64(key, id);
}
