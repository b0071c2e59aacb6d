/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor's memory that changes with every request, so that a lost byte is
 * found after a move.
 */
#include "demo/ballast.h"

#include "base/crc.h"
#include "base/mem.h"

#include <string.h>

void ballast_init(struct ballast *b, uint32_t size, uint64_t id_hash)
{
    b->size = size;
    b->byte = size == 0 ? NULL : mem_new(size, 1);
    for (uint32_t i = 0; i < size; i++) {
        id_hash = id_hash * 6364136223846793005u + 1442695040888963407u; // Knuth, MMIX
        b->byte[i] = (uint8_t)(id_hash >> 56);
    }
}

void ballast_fini(struct ballast *b)
{
    mem_free(b->byte);
}

void ballast_touch(struct ballast *b, uint64_t seq)
{
    if (b->size > 0) {
        b->byte[seq % b->size] ^= (uint8_t)(seq | 1);
    }
}

void ballast_put(const struct ballast *b, struct rh_out *out)
{
    uint8_t head[8];
    struct writer w = {.at = head, .left = sizeof head};

    if (b->size > 0) {
        put_u32(&w, b->size);
        put_u32(&w, crc32c(b->byte, b->size));
        rh_out_put(out, head, sizeof head);
        rh_out_put(out, b->byte, b->size);
    }
}

bool ballast_get(struct ballast *b, struct reader *in)
{
    if (b->size == 0) {
        return true;
    }
    const uint32_t size = get_u32(in);
    const uint32_t crc = get_u32(in);
    const uint8_t *body = get_bytes(in, b->size);

    if (body == NULL || size != b->size || crc32c(body, size) != crc) {
        return false;
    }
    memcpy(b->byte, body, size);
    return true;
}
