/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways in for clients: what is spoken on each of a gateway's addresses, and
 * through what.
 */
#ifndef GATEWAY_ENTRY_H
#define GATEWAY_ENTRY_H

#include "gateway/client.h"

enum entry {
    ENTRY_RESP,   /* Redis' protocol */
    ENTRY_FRAMES, /* packets */
    ENTRY_WS,     /* packets, each a message of a WebSocket */
    ENTRY_COUNT
};

struct entry_shape {
    const char *name; /* its option, and its word of the "ready" line */
    enum client_speech speech;
    bool websocket;
};

static inline struct entry_shape entry_shape(enum entry entry)
{
    static const struct entry_shape shapes[ENTRY_COUNT] = {
        [ENTRY_RESP] = {"resp", CLIENT_RESP, false},
        [ENTRY_FRAMES] = {"frames", CLIENT_PACKETS, false},
        [ENTRY_WS] = {"ws", CLIENT_PACKETS, true},
    };

    return shapes[entry];
}

#endif
