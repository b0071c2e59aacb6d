/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of a WebSocket (RFC 6455), the client's side, as `ringhold conform` wants
 * them: it can also say what no client may. Pure.
 */
#ifndef CONFORM_WSFRAME_H
#define CONFORM_WSFRAME_H

#include "base/bytes.h"
#include "gateway/protocol/packet.h"

#include <stdbool.h>

enum wsframe_opcode {
    WSFRAME_CONTINUED = 0,
    WSFRAME_TEXT = 1,
    WSFRAME_BINARY = 2,
    WSFRAME_CLOSE = 8,
    WSFRAME_PING = 9,
    WSFRAME_PONG = 10,
    WSFRAME_FINAL = 0x80, /* the bit beside it */
};

/* Append a frame whose first byte is `first`. `mask` has four bytes; NULL: it is sent bare, which
 * clients must not. */
void wsframe_put(struct buffer *out, uint8_t first, const uint8_t *mask, struct bytes payload);

/* How far the packet is that is being sent. All zero: none is. */
struct wsframe_cut {
    uint8_t head[PACKET_HEADER];
    size_t sent;
};

/* Append a stream of packets, each as a message of its own; one that isn't whole yet as a fragment,
 * so that what follows is its next one. */
void wsframe_put_packets(struct buffer *out, struct wsframe_cut *cut, const uint8_t mask[4],
                         struct bytes packets);

struct wsframe {
    uint8_t opcode;
    struct bytes payload; /* borrowed from the input */
    size_t size;          /* of the whole frame */
};

enum wsframe_result { WSFRAME_WHOLE, WSFRAME_MORE, WSFRAME_WRONG };

/* The frame at the front of `in`. WSFRAME_WRONG: a gateway sends none such; `why` is a text. */
enum wsframe_result wsframe_next(struct bytes in, struct wsframe *out, const char **why);

#endif
