/* SPDX-License-Identifier: Apache-2.0
 *
 * SipHash-1-3, keys derived from the cluster's, and tags.
 */
#include "ring/hash.h"

#include "base/mutant.h"

#include <string.h>

uint64_t siphash_bytes(struct ring_key key, struct bytes message)
{
    return siphash_inline(key, message);
}

/* The hashes under the master key of the label, its last byte 0 and then 1. */
static struct ring_key derive(struct ring_key master, uint8_t *label, size_t size)
{
    struct ring_key key;

    key.k0 = siphash_bytes(master, bytes_of(label, size));
    label[size - 1] = 1;
    key.k1 = siphash_bytes(master, bytes_of(label, size));
    return key;
}

struct ring_key ring_key_of_kind(struct ring_key master, uint16_t kind)
{
    // Fixed by RING_SPEC: "kind", the kind as two little-endian bytes, and 0 or 1.
    uint8_t label[7] = {'k', 'i', 'n', 'd', (uint8_t)kind, (uint8_t)(kind >> 8), 0};

    return derive(master, label, sizeof label);
}

struct ring_key ring_key_of_tags(struct ring_key master)
{
    uint8_t label[5] = {'t', 'a', 'g', 's', 0}; // fixed by RING_SPEC, as that of a kind

    return derive(master, label, sizeof label);
}

struct bytes ring_tag(struct bytes id)
{
    const uint8_t *open = memchr(id.data, '{', id.size);
    const uint8_t *close =
        open == NULL ? NULL : memchr(open, '}', (size_t)(id.data + id.size - open));

    if (close == NULL || close == open + 1 || mutant(M_TAGSPLIT)) {
        return id;
    }
    return bytes_of(open + 1, (size_t)(close - open - 1));
}
