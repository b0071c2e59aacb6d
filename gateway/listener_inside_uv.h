/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the listener share. Nobody else includes this.
 */
#ifndef GATEWAY_LISTENER_INSIDE_UV_H
#define GATEWAY_LISTENER_INSIDE_UV_H

#include "gateway/shell_uv.h"

enum { CONNECTION_PEER_SIZE = ADDRESS_SIZE_MAX + 8 };

struct proxy_arrival;

/* One client's connection. It is in one of the listener's lists at a time, by `link`: arriving,
 * connections, parting or refused. */
struct connection {
    uv_tcp_t tcp;
    uv_write_t write;
    struct gateway_listener *listener;
    struct client_transport *transport; /* owned; NULL = the client's bytes go as they are */
    struct proxy_arrival *arrival;      /* owned; NULL: it needs no header, or had it */
    struct client *client;              /* NULL: it isn't let in, or is being closed */
    struct list_link link;
    struct list_link touched;
    struct list_link paused;
    struct buffer writing; /* owned: what the write under way sends */
    bool reading;
    uint64_t refused_us; /* when it was turned away; else 0 */
    size_t refused_size; /* bytes that it said since */
    uint64_t over_us;    /* since when its transport has ended; else 0 */
};

/* View `bytes` as libuv's buffer. libuv uses that type for reads too, so it is not const; a write
 * only reads it. */
static inline uv_buf_t buf_of(struct bytes bytes)
{
    const union {
        const uint8_t *in;
        char *out;
    } base = {.in = bytes.data};

    return uv_buf_init(base.out, (unsigned)bytes.size);
}

/* ---- listener_uv.c */

/* The last callback: frees it. */
void connection_closed(uv_handle_t *handle);
void connection_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf);
void connection_stop_reading(struct connection *c);
/* Have the connection's output written at the end of the turn. */
void connection_touch(struct connection *c);
/* Handle bytes that arrived on the connection. */
void connection_take_bytes(struct connection *c, struct bytes in);

/* ---- listener_admit_uv.c */

/* The other end of its socket: "host:port"; IPv6, or IPv4 as ::ffff:a.b.c.d, false if it has none.
 */
void connection_name(const struct connection *c, char peer[CONNECTION_PEER_SIZE]);
bool connection_address(const struct connection *c, uint8_t address[16]);
/* Admit the connection from `peer`, of which the bytes `in` were read already, or turn it away. */
void connection_admit(struct connection *c, enum entry entry, const char *peer, struct bytes in);

/* ---- arrival_uv.c */

/* True if the connection must first show a proxy's header. */
bool arrival_wanted(const struct gateway_listener *l, enum entry entry, const struct connection *c);
/* Let it say so; then connection_admit() it. Takes it. */
void arrival_begin(struct connection *c, enum entry entry);
/* Close the connections whose header is late, about once a second; close all of them. */
void arrival_sweep(struct gateway_listener *l);
void arrival_close(struct gateway_listener *l);
/* Takes NULL. */
void arrival_free(struct proxy_arrival *a);

/* ---- turned_away_uv.c */

/* Refuse the connection with these words: at once, or behind the handshakes of its transport, of
 * which `in` was read already. Takes the connection. */
void turned_away(struct connection *c, struct bytes words, struct bytes in);
/* Read and drop for a while what a connection still sends that was told all and has no client any
 * more. Takes it. */
void turned_away_see_off(struct connection *c);
/* Do what is due every 10 ms; about once a second; close all of them. */
void turned_away_tick(struct gateway_listener *l);
void turned_away_sweep(struct gateway_listener *l);
void turned_away_close(struct gateway_listener *l);

#endif
