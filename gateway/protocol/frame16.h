/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets in frames as skynet's gate and its clients cut them:
 *
 *     u16 size, u8 type, body                       big endian; the size counts type and body
 *
 * So a frame is a packet (packet.h) whose size stands in front of its type, and has two bytes. A
 * body has at most FRAME16_BODY_MAX.
 *
 * Pure. What a frame brings is handed on as it comes, so half a frame waits in the client's
 * buffer, where it is counted, and nowhere else.
 */
#ifndef GATEWAY_PROTOCOL_FRAME16_H
#define GATEWAY_PROTOCOL_FRAME16_H

#include "base/bytes.h"

#include <stdbool.h>

enum { FRAME16_HEADER = 3, FRAME16_BODY_MAX = UINT16_MAX - 1 };

/* All 0 = nothing came yet. */
struct frame16 {
    uint8_t head[FRAME16_HEADER]; /* of the next frame */
    size_t head_size;             /* bytes of it that came */
    size_t left;                  /* of the body that is coming */
};

/* Bytes came. Appends packets, the last one not yet whole maybe, to `packets`. False: a frame of
 * size 0, which has no type; behind it nothing more is to be read. */
bool frame16_on_bytes(struct frame16 *f, struct bytes in, struct buffer *packets);

/* Append whole packets as frames. False: one of them doesn't fit; those before it were appended. */
bool frame16_put(struct bytes packets, struct buffer *out);

#endif
