/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds and reads WebSocket frames as a client does, forbidden ones too.
 */
#include "conform/wsframe.h"

#include "base/big.h"

enum {
    MASKED = 0x80,
    RESERVED = 0x70,
    OPCODE = 0x0F,
    CONTROL = 0x08,
    SMALL_MAX = 125,
    LENGTH_16 = 126,
    LENGTH_64 = 127,
};

void wsframe_put(struct buffer *out, uint8_t first, const uint8_t *mask, struct bytes payload)
{
    const uint8_t bit = mask == NULL ? 0 : MASKED;
    uint8_t head[10];
    uint8_t *at = big_put8(head, first);

    if (payload.size <= SMALL_MAX) {
        at = big_put8(at, (uint8_t)(bit | payload.size));
    } else if (payload.size <= UINT16_MAX) {
        at = big_put16(big_put8(at, bit | LENGTH_16), (uint16_t)payload.size);
    } else {
        at = big_put64(big_put8(at, bit | LENGTH_64), payload.size);
    }
    buffer_put(out, head, (size_t)(at - head));
    if (mask == NULL) {
        buffer_put(out, payload.data, payload.size);
        return;
    }
    buffer_put(out, mask, 4);
    uint8_t *const to = buffer_reserve(out, payload.size);

    for (size_t i = 0; i < payload.size; i++) {
        to[i] = payload.data[i] ^ mask[i % 4];
    }
    out->size += payload.size;
}

/* Bytes of the packet: its header, until that says more. */
static size_t whole_size(const struct wsframe_cut *cut)
{
    return cut->sent < PACKET_HEADER ? PACKET_HEADER : PACKET_HEADER + big_get24(cut->head + 1);
}

/* How many bytes at the front of the stream are the packet's. */
static size_t take_part(struct wsframe_cut *cut, struct bytes stream)
{
    size_t at = 0;

    while (at < stream.size && cut->sent < PACKET_HEADER) {
        cut->head[cut->sent++] = stream.data[at++];
    }
    if (cut->sent >= PACKET_HEADER) {
        const size_t left = whole_size(cut) - cut->sent;
        const size_t count = left < stream.size - at ? left : stream.size - at;

        cut->sent += count;
        at += count;
    }
    return at;
}

void wsframe_put_packets(struct buffer *out, struct wsframe_cut *cut, const uint8_t mask[4],
                         struct bytes packets)
{
    while (packets.size > 0) {
        const uint8_t opcode = cut->sent == 0 ? WSFRAME_BINARY : WSFRAME_CONTINUED;
        const size_t size = take_part(cut, packets);
        const bool whole = cut->sent >= PACKET_HEADER && cut->sent == whole_size(cut);
        const uint8_t first = (uint8_t)(opcode | (whole ? WSFRAME_FINAL : 0));

        wsframe_put(out, first, mask, bytes_of(packets.data, size));
        packets = bytes_of(packets.data + size, packets.size - size);
        if (whole) {
            *cut = (struct wsframe_cut){.sent = 0};
        }
    }
}

enum wsframe_result wsframe_next(struct bytes in, struct wsframe *out, const char **why)
{
    size_t head = 2;

    if (in.size < head) {
        return WSFRAME_MORE;
    }
    const uint8_t small = in.data[1];
    uint64_t size = small;

    *why = (in.data[0] & RESERVED) != 0                       ? "a frame with reserved bits"
           : (small & MASKED) != 0                            ? "a masked frame"
           : (in.data[0] & WSFRAME_FINAL) == 0                ? "a fragment"
           : (in.data[0] & OPCODE) == WSFRAME_CONTINUED       ? "the rest of no message"
           : (in.data[0] & CONTROL) != 0 && small > SMALL_MAX ? "a control frame that is too long"
                                                              : NULL;
    if (*why != NULL) {
        return WSFRAME_WRONG;
    }
    if (small >= LENGTH_16) {
        const size_t more = small == LENGTH_16 ? 2 : 8;

        if (in.size < head + more) {
            return WSFRAME_MORE;
        }
        size = more == 2 ? big_get16(in.data + head) : big_get64(in.data + head);
        head += more;
        if (size <= (more == 2 ? SMALL_MAX : UINT16_MAX)) {
            *why = "a frame whose length isn't the shortest";
            return WSFRAME_WRONG;
        }
        if (size > PACKET_HEADER + PACKET_BODY_MAX) {
            *why = "a message that is longer than any packet";
            return WSFRAME_WRONG;
        }
    }
    if (in.size - head < size) {
        return WSFRAME_MORE;
    }
    *out = (struct wsframe){.opcode = in.data[0] & OPCODE,
                            .payload = bytes_of(in.data + head, (size_t)size),
                            .size = head + (size_t)size};
    return WSFRAME_WHOLE;
}
