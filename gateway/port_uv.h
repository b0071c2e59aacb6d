/* SPDX-License-Identifier: Apache-2.0
 *
 * An address that clients come to: bound once for the process, on the loop of
 * its first thread. Whose a new connection is to be is the owner's to say.
 */
#ifndef GATEWAY_PORT_UV_H
#define GATEWAY_PORT_UV_H

#include "gateway/protocol/entry.h"
#include "wire/address.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <uv.h>

enum { PORT_BOUND_SIZE = ADDRESS_SIZE_MAX + 8 };

struct port {
    uv_tcp_t tcp;
    enum entry entry;
    bool open;
    bool waits;                  /* the owner let one wait: it is accepted later */
    char bound[PORT_BOUND_SIZE]; /* "host:port" */
    /* A client waits to be accepted: listener_accept() or port_pass(). Until then no other comes.
     */
    void (*come)(struct port *port);
    void *user;
};

/* Bind and listen for clients that come in so. 0, or a libuv error; port_close() it either way. */
int port_open(struct port *port, uv_loop_t *loop, enum entry entry, const char *address);
/* Accept, for a loop of another thread. The socket, owned by the caller, or -1. */
int port_pass(struct port *port);
void port_close(struct port *port);

/* Write a socket's address as "host:port". IPv4 is IPv4, also where it comes as ::ffff:a.b.c.d. */
void port_text(const struct sockaddr_storage *storage, char *text, size_t size);
/* Like port_text(), for an address as port_address() returns it. */
void port_name(const uint8_t address[16], uint16_t port, char *text, size_t size);
/* Return a socket's address as IPv6, or IPv4 as ::ffff:a.b.c.d. False: it is neither. */
bool port_address(const struct sockaddr_storage *storage, uint8_t address[16]);

#endif
