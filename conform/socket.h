/* SPDX-License-Identifier: Apache-2.0
 *
 * A client's connection as `ringhold conform` wants it: raw, so that it can say
 * what no client would. Blocking, each wait with an end.
 *
 * Where it goes through a WebSocket, that one begins with conform_framed().
 */
#ifndef CONFORM_SOCKET_H
#define CONFORM_SOCKET_H

#include "base/bytes.h"
#include "conform/frame16.h"
#include "conform/tls.h"
#include "conform/where.h"
#include "conform/wsframe.h"
#include "gateway/protocol/packet.h"

#include <stdbool.h>
#include <stdint.h>

struct conform_socket {
    int fd;                   /* -1 = none */
    struct ssl_st *tls;       /* owned; NULL: what is said is in the clear */
    struct buffer in;         /* received */
    size_t taken;             /* of it: what was read last, still borrowed from it */
    bool ended;               /* the other side closed */
    bool framed;              /* packets are messages of a WebSocket */
    struct wsframe_cut cut;   /* of the one that is being sent */
    bool skynet;              /* packets are in skynet's frames */
    struct frame16_cut cut16; /* of the one that is being sent */
    bool too_large;           /* a packet is none that a frame of skynet's holds: it was not sent */
    uint16_t close_code;      /* of a WebSocket's close that came; 0 = none did */
    char why[256];            /* the last that went wrong */
};

enum socket_result {
    SOCKET_GOT,    /* what was asked for */
    SOCKET_CLOSED, /* by the gateway, and all that came before was read */
    SOCKET_SILENT, /* nothing came in time */
    SOCKET_HALF,   /* closed within a packet */
    SOCKET_WRONG,  /* what came is nothing that a gateway may say: `why` */
};

/* Connect; `trust` is for those that are encrypted. False: `why` says why not. */
bool conform_open(struct conform_socket *s, const struct conform_where *where,
                  struct ssl_ctx_st *trust, uint32_t timeout_ms);

/* From here on it is a WebSocket. */
void conform_framed(struct conform_socket *s);

/* Send these bytes as they are; what a gateway that has closed doesn't take is dropped, for the
 * next read shows that. Reads nothing meanwhile, so that what is sent must be less than what the
 * kernel's buffers hold, or the gateway must read on. */
void conform_send(struct conform_socket *s, struct bytes bytes);

/* Send a stream of packets, or the next part of it: as it is, or in messages. */
void conform_send_packets(struct conform_socket *s, struct bytes packets);

/* Send a frame, with a mask or bare. */
void conform_send_frame(struct conform_socket *s, uint8_t first, bool masked, struct bytes payload);

/* Say that no more will come. */
void conform_end(struct conform_socket *s);

/* Wait until `in` has this many bytes behind those that are taken. SOCKET_HALF: the end came within
 * them. */
enum socket_result conform_wait(struct conform_socket *s, uint32_t timeout_ms, size_t size);

/* The next packet; `out` borrows until the next call. */
enum socket_result conform_packet(struct conform_socket *s, uint32_t timeout_ms,
                                  struct packet *out);

/* The next frame of a WebSocket, likewise; pings are answered. SOCKET_CLOSED: `close_code` may be
 * that of a close before the end. */
enum socket_result conform_next_frame(struct conform_socket *s, uint32_t timeout_ms,
                                      struct wsframe *out);

/* Close it, and free what it held. Harmless if it is closed. */
void conform_close(struct conform_socket *s);

#endif
