/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways in for clients: what is spoken on each of a gateway's addresses, and
 * through what.
 */
#ifndef GATEWAY_PROTOCOL_ENTRY_H
#define GATEWAY_PROTOCOL_ENTRY_H

#include <stdbool.h>

/* Protocol that is spoken inside the transport. */
enum client_speech { CLIENT_RESP, CLIENT_PACKETS, CLIENT_HTTP };

enum entry {
    ENTRY_RESP,   /* Redis' protocol */
    ENTRY_FRAMES, /* packets */
    ENTRY_WS,     /* packets, each a message of a WebSocket */
    ENTRY_RESP_TLS,
    ENTRY_FRAMES_TLS,
    ENTRY_WSS,
    ENTRY_SKYNET, /* packets, in frames as skynet's clients cut them */
    ENTRY_HTTP,   /* HTTP for back ends */
    ENTRY_HTTPS,
    ENTRY_COUNT
};

struct entry_shape {
    const char *name; /* its option, and its word of the "ready" line */
    enum client_speech speech;
    bool websocket;
    bool tls;     /* below all that */
    bool frame16; /* frame16.h */
};

static inline struct entry_shape entry_shape(enum entry entry)
{
    static const struct entry_shape shapes[ENTRY_COUNT] = {
        [ENTRY_RESP] = {"resp", CLIENT_RESP, false, false, false},
        [ENTRY_FRAMES] = {"frames", CLIENT_PACKETS, false, false, false},
        [ENTRY_WS] = {"ws", CLIENT_PACKETS, true, false, false},
        [ENTRY_RESP_TLS] = {"resp-tls", CLIENT_RESP, false, true, false},
        [ENTRY_FRAMES_TLS] = {"frames-tls", CLIENT_PACKETS, false, true, false},
        [ENTRY_WSS] = {"wss", CLIENT_PACKETS, true, true, false},
        [ENTRY_SKYNET] = {"skynet", CLIENT_PACKETS, false, false, true},
        [ENTRY_HTTP] = {"http", CLIENT_HTTP, false, false, false},
        [ENTRY_HTTPS] = {"https", CLIENT_HTTP, false, true, false},
    };

    return shapes[entry];
}

#endif
