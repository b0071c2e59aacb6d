/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds and reads skynet's frames as a client does, for conformance checks.
 */
#include "conform/frame16.h"

#include "base/big.h"

enum { SIZE_SIZE = 2, TYPE_SIZE = 1 };

/* False: it has no frame. */
static bool put_head(struct buffer *out, struct frame16_cut *cut)
{
    uint8_t head[SIZE_SIZE + TYPE_SIZE];
    const uint32_t size = big_get32(cut->head) & PACKET_BODY_MAX;

    if (size > FRAME16_SAID_MAX) {
        return false;
    }
    big_put16(head, (uint16_t)(size + TYPE_SIZE));
    head[SIZE_SIZE] = cut->head[0];
    buffer_put(out, head, sizeof head);
    cut->head_size = 0;
    cut->left = size;
    return true;
}

bool frame16_put_packets(struct buffer *out, struct frame16_cut *cut, struct bytes packets)
{
    size_t at = 0;

    while (at < packets.size) {
        if (cut->left > 0) {
            const size_t here = packets.size - at;
            const size_t size = here < cut->left ? here : cut->left;

            buffer_put(out, packets.data + at, size);
            cut->left -= size;
            at += size;
            continue;
        }
        cut->head[cut->head_size++] = packets.data[at++];
        if (cut->head_size == PACKET_HEADER && !put_head(out, cut)) {
            return false;
        }
    }
    return true;
}

void frame16_put_half(struct buffer *out, const struct frame16_cut *cut)
{
    buffer_put(out, "", cut->head_size > 0 ? 1 : 0);
}

size_t frame16_next(struct bytes in, struct packet *out)
{
    if (in.size < SIZE_SIZE) {
        return 0;
    }
    const size_t size = big_get16(in.data);
    if (size == 0) {
        return SIZE_MAX;
    }
    if (in.size - SIZE_SIZE < size) {
        return 0;
    }
    *out = (struct packet){.type = in.data[SIZE_SIZE],
                           .body = bytes_of(in.data + SIZE_SIZE + TYPE_SIZE, size - TYPE_SIZE)};
    return SIZE_SIZE + size;
}
