/* SPDX-License-Identifier: Apache-2.0
 *
 * Where `ringhold conform` goes, and through what: "HOST:PORT", or a URL. Pure.
 *
 *     HOST:PORT, tcp://HOST:PORT     packets, one behind the other
 *     tls://HOST:PORT                the same, encrypted
 *     ws://HOST[:PORT][/PATH]        packets, each a message of a WebSocket
 *     wss://HOST[:PORT][/PATH]       the same, encrypted
 *     skynet://HOST:PORT             packets in frames of a u16 size
 */
#ifndef CONFORM_WHERE_H
#define CONFORM_WHERE_H

#include "base/err.h"
#include "wire/address.h"

#include <stdbool.h>

enum { WHERE_PATH_SIZE = 512, WHERE_HOST_SIZE = ADDRESS_SIZE_MAX + 8 };

struct conform_where {
    bool encrypted;
    bool websocket;
    bool skynet;
    struct address to;
    char host[WHERE_HOST_SIZE]; /* as it stood there: what a WebSocket's Host says */
    char path[WHERE_PATH_SIZE]; /* of a WebSocket, with what follows a "?" */
};

/* ERR_INVALID: it is none of these. */
MUST_CHECK enum err where_parse(const char *text, struct conform_where *out);

#endif
