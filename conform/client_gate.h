/* SPDX-License-Identifier: Apache-2.0
 *
 * A gateway's end of a client's connection, which says whatever it is told to: through TCP, or a
 * WebSocket. It has two addresses, and takes one connection at a time.
 */
#ifndef CONFORM_CLIENT_GATE_H
#define CONFORM_CLIENT_GATE_H

#include "base/bytes.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

enum { CLIENT_GATE_QUEUE_MAX = 4096, CLIENT_GATE_POLLS_MAX = 2 };

/* A packet of the client that was not looked at yet. */
struct client_gate_packet {
    uint8_t type;
    struct buffer body; /* owned */
};

struct client_gate {
    bool websocket;
    int listener[2];
    int at;         /* which of them the last connection came to; -1: none did */
    int fd;         /* -1: nobody is connected */
    bool over;      /* the client has ended the connection */
    bool upgraded;  /* … of a WebSocket: its handshake is done */
    bool mute;      /* pings are not answered, but told as packets */
    bool drips;     /* byte by byte */
    bool gathers;   /* what is sent waits */
    unsigned pongs; /* that were asked for by ours; others are dropped */
    struct buffer out;
    struct buffer in;      /* bytes */
    struct buffer message; /* of the WebSocket, so far */
    struct client_gate_packet queue[CLIENT_GATE_QUEUE_MAX];
    size_t first;
    size_t count;      /* packets came, of which the first were taken */
    bool acked;        /* an ack came */
    uint64_t pushes;   /* what the last one said */
    const char *wrong; /* what the client did that no client may; NULL = nothing */
};

/* Listen. False: errno says why not. */
bool client_gate_open(struct client_gate *g, bool websocket);

/* Write "URL,URL", both addresses. */
void client_gate_urls(const struct client_gate *g, char *out, size_t size);

/* Hang up, and forget what came. */
void client_gate_drop(struct client_gate *g);

/* Write what to poll for: the connection, or a new one. Returns how many. */
size_t client_gate_polls(const struct client_gate *g, struct pollfd polls[CLIENT_GATE_POLLS_MAX]);

/* Take what client_gate_polls() found. */
void client_gate_polled(struct client_gate *g, const struct pollfd *polls, size_t count);

/* The next packet, which is the caller's until the next call; NULL: none is there. */
const struct client_gate_packet *client_gate_next(struct client_gate *g);

/* Send a packet; a WebSocket's message. */
void client_gate_send(struct client_gate *g, uint8_t type, struct bytes body);

/* Send bytes that need be no packet: as a WebSocket's message, if it is one. */
void client_gate_send_message(struct client_gate *g, struct bytes bytes);

/* Send bytes as they are; what was gathered goes first. */
void client_gate_send_raw(struct client_gate *g, struct bytes bytes);

/* End our direction of the connection. */
void client_gate_half_close(struct client_gate *g);

void client_gate_fini(struct client_gate *g);

#endif
