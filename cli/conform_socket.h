/* SPDX-License-Identifier: Apache-2.0
 *
 * A client's connection as `ringhold conform` wants it: raw, so that it can say
 * what no client would. Blocking, each wait with an end.
 */
#ifndef CLI_CONFORM_SOCKET_H
#define CLI_CONFORM_SOCKET_H

#include "base/bytes.h"
#include "gateway/packet.h"

#include <stdbool.h>
#include <stdint.h>

struct conform_socket {
    int fd;           /* -1 = none */
    struct buffer in; /* received */
    size_t taken;     /* of it: the last packet that was read, still borrowed from it */
    bool ended;       /* the other side closed */
    char why[128];    /* the last that went wrong */
};

enum socket_result {
    SOCKET_GOT,    /* a packet */
    SOCKET_CLOSED, /* by the gateway, and all that came before was read */
    SOCKET_SILENT, /* nothing came in time */
    SOCKET_HALF,   /* closed within a packet */
};

/* Connect to "HOST:PORT". False: `why` says why not. */
bool conform_open(struct conform_socket *s, const char *address, uint32_t timeout_ms);

/* Send them all; what a gateway that has closed doesn't take is dropped, for the next read shows
 * that. Reads nothing meanwhile, so that what is sent must be less than what the kernel's buffers
 * hold, or the gateway must read on. */
void conform_send(struct conform_socket *s, struct bytes bytes);

/* Say that no more will come. */
void conform_end(struct conform_socket *s);

/* The next packet; `out` borrows until the next call. */
enum socket_result conform_packet(struct conform_socket *s, uint32_t timeout_ms,
                                  struct packet *out);

/* Close it, and free what it held. */
void conform_close(struct conform_socket *s);

#endif
