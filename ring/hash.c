/* SPDX-License-Identifier: Apache-2.0 */
#include "ring/hash.h"

#include "base/assert.h"

/* Compilers make one load of it where the machine is little endian. */
static uint64_t load_u64(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

/* The last size % 8 bytes as a little-endian word. */
static uint64_t load_rest(struct bytes message)
{
    size_t rest = message.size % 8;
    uint64_t word = 0;

    if (rest == 0) {
        return 0;
    }
    if (message.size >= 8) {
        // The eight last bytes lie inside the message; drop those already hashed.
        return load_u64(message.data + message.size - 8) >> (64 - 8 * rest);
    }
    for (size_t i = 0; i < rest; i++) {
        word |= (uint64_t)message.data[i] << (8 * i);
    }
    return word;
}

uint64_t siphash_bytes(struct ring_key key, struct bytes message)
{
    struct siphash s = siphash_start(key);

    for (size_t at = 0; at + 8 <= message.size; at += 8) {
        siphash_word(&s, load_u64(message.data + at));
    }
    return siphash_end(&s, (uint64_t)message.size << 56 | load_rest(message));
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
