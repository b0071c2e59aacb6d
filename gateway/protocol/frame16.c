/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts skynet's frames into packets, and puts packets into frames.
 */
#include "gateway/protocol/frame16.h"

#include "base/assert.h"
#include "base/big.h"
#include "gateway/protocol/packet.h"

static size_t take_body(struct frame16 *f, struct bytes in, struct buffer *packets)
{
    const size_t count = in.size < f->left ? in.size : f->left;

    buffer_put(packets, in.data, count);
    f->left -= count;
    return count;
}

/* False: a frame without a type. */
static bool take_head(struct frame16 *f, uint8_t byte, struct buffer *packets)
{
    f->head[f->head_size++] = byte;
    if (f->head_size < FRAME16_HEADER) {
        return f->head_size < 2 || big_get16(f->head) > 0;
    }
    uint8_t header[PACKET_HEADER];

    f->left = big_get16(f->head) - 1;
    f->head_size = 0;
    big_put32(header, (uint32_t)f->head[2] << 24 | (uint32_t)f->left);
    buffer_put(packets, header, sizeof header);
    return true;
}

bool frame16_on_bytes(struct frame16 *f, struct bytes in, struct buffer *packets)
{
    for (size_t at = 0; at < in.size;) {
        if (f->left > 0) {
            at += take_body(f, bytes_of(in.data + at, in.size - at), packets);
        } else if (!take_head(f, in.data[at++], packets)) {
            return false;
        }
    }
    return true;
}

bool frame16_put(struct bytes packets, struct buffer *out)
{
    struct packet p;

    while (packets.size > 0) {
        const enum packet_result result = packet_next(packets, PACKET_BODY_MAX, &p);
        ASSERT(result == PACKET_WHOLE);
        const size_t size = PACKET_HEADER + p.body.size;

        if (p.body.size > FRAME16_BODY_MAX) {
            return false;
        }
        uint8_t head[FRAME16_HEADER];

        *big_put16(head, (uint16_t)(1 + p.body.size)) = p.type;
        buffer_put(out, head, sizeof head);
        buffer_put(out, p.body.data, p.body.size);
        packets = bytes_of(packets.data + size, packets.size - size);
    }
    return true;
}
