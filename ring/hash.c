/* SPDX-License-Identifier: Apache-2.0
 *
 * SipHash-1-3, and a kind's key derived from the cluster's.
 */
#include "ring/hash.h"

uint64_t siphash_bytes(struct ring_key key, struct bytes message)
{
    return siphash_inline(key, message);
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
