/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets in skynet's frames (u16 size, u8 type, body) as a client cuts them, also half of one.
 * Nothing of the gateway's own: what is wrong there must not be right here. Pure.
 */
#ifndef CONFORM_FRAME16_H
#define CONFORM_FRAME16_H

#include "base/bytes.h"
#include "gateway/protocol/packet.h"

enum { FRAME16_SAID_MAX = UINT16_MAX - 1 /* bytes of a body */ };

/* Of the packet that is being sent; all 0 = none is. */
struct frame16_cut {
    uint8_t head[PACKET_HEADER];
    size_t head_size; /* bytes of it that came */
    size_t left;      /* of the body */
};

/* Append a stream of packets, or the next part of it. False: one has a body over FRAME16_SAID_MAX;
 * nothing of it, nor behind it, was appended. */
bool frame16_put_packets(struct buffer *out, struct frame16_cut *cut, struct bytes packets);

/* End the stream of packets: a packet whose head is not whole becomes half a size. */
void frame16_put_half(struct buffer *out, const struct frame16_cut *cut);

/* The next frame, in `out`: how many bytes it has; 0 = it is not whole; SIZE_MAX = it has no type.
 */
size_t frame16_next(struct bytes in, struct packet *out);

#endif
