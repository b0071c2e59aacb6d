/* SPDX-License-Identifier: Apache-2.0
 *
 * A WebSocket behind its handshake (RFC 6455), the server's side: packets of the
 * client, one a binary message, to and from frames.
 *
 * Pure: bytes in, bytes out. Input is read by wslay; what a message brings is
 * handed on as it comes, so half a message waits in the client's buffer, where
 * it is counted, and nowhere else.
 *
 *     OPEN  -close of the peer-> ENDED, answered
 *           -what may not be-> ENDED, with a close that says why
 *           -websocket_close()-> ENDED
 *
 * Behind that nothing comes or goes: the connection is to be closed.
 */
#ifndef GATEWAY_PROTOCOL_WEBSOCKET_H
#define GATEWAY_PROTOCOL_WEBSOCKET_H

#include "base/bytes.h"

enum {
    WEBSOCKET_PINGS_MAX = 64, /* between two of websocket_rest() */
    WEBSOCKET_NORMAL = 1000,
    WEBSOCKET_GOING_AWAY = 1001,
    WEBSOCKET_TRY_AGAIN = 1013, /* later */
};

/* Why it has ended. */
enum websocket_end {
    WEBSOCKET_OPEN,     /* it has not */
    WEBSOCKET_LEFT,     /* the peer closed it, or websocket_close() */
    WEBSOCKET_PROTOCOL, /* 1002: no frame, unmasked, reserved bits or opcodes, bad fragments … */
    WEBSOCKET_TEXT,     /* 1003 */
    WEBSOCKET_BAD_UTF8, /* 1007: the reason of a close */
    WEBSOCKET_BAD_MESSAGE, /* 1008: a message that is not one packet */
    WEBSOCKET_PINGS,       /* 1008: more pings than it may send */
    WEBSOCKET_TOO_LARGE,   /* 1009 */
};

struct websocket;

/* `message_max`: bytes of a message that comes in, its packet's header among them. */
struct websocket *websocket_new(size_t message_max);
/* Takes NULL. */
void websocket_free(struct websocket *ws);

enum websocket_end websocket_end(const struct websocket *ws);

/* Bytes came. Appends packets, the last one not yet whole maybe, to `packets`, and what is to be
 * answered at once to `out`. */
void websocket_on_bytes(struct websocket *ws, struct bytes in, struct buffer *packets,
                        struct buffer *out);
/* Let the client ping again; about once a second. */
void websocket_rest(struct websocket *ws);
/* Append whole packets as messages. Nothing once it is not open. */
void websocket_put(const struct websocket *ws, struct bytes packets, struct buffer *out);
/* End it, with this code. Nothing once it is not open. */
void websocket_close(struct websocket *ws, uint16_t code, struct buffer *out);

#endif
