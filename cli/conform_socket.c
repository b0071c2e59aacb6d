/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/conform_socket.h"

#include "base/clock.h"
#include "wire/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { READ_SIZE = 65536 };

static int dial(const struct addrinfo *to, uint32_t timeout_ms)
{
    const struct timeval timeout = {.tv_sec = timeout_ms / 1000,
                                    .tv_usec = (suseconds_t)(timeout_ms % 1000) * 1000};
    const int one = 1;
    const int fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC, to->ai_protocol);

    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout); // of connect(), too
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, to->ai_addr, to->ai_addrlen) != 0) {
        const int error = errno;

        (void)close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

bool conform_open(struct conform_socket *s, const char *address, uint32_t timeout_ms)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct address to_dial;
    char port[8];

    *s = (struct conform_socket){.fd = -1};
    if (address_parse(address, &to_dial) != ERR_OK) {
        (void)snprintf(s->why, sizeof s->why, "'%s' is not HOST:PORT", address);
        return false;
    }
    (void)snprintf(port, sizeof port, "%u", to_dial.port);
    const int failed = getaddrinfo(to_dial.host, port, &hints, &found);

    if (failed != 0) {
        (void)snprintf(s->why, sizeof s->why, "%s: %s", address, gai_strerror(failed));
        return false;
    }
    for (const struct addrinfo *to = found; to != NULL && s->fd < 0; to = to->ai_next) {
        s->fd = dial(to, timeout_ms);
    }
    if (s->fd < 0) {
        char text[64] = "";

        (void)strerror_r(errno, text, sizeof text);
        (void)snprintf(s->why, sizeof s->why, "%s: %s", address, text);
    }
    freeaddrinfo(found);
    return s->fd >= 0;
}

void conform_send(struct conform_socket *s, struct bytes bytes)
{
    size_t at = 0;

    while (at < bytes.size) {
        const ssize_t sent = send(s->fd, bytes.data + at, bytes.size - at, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR) {
            return;
        }
        at += sent > 0 ? (size_t)sent : 0;
    }
}

void conform_end(struct conform_socket *s)
{
    (void)shutdown(s->fd, SHUT_WR);
}

/* More bytes, or the end. False if nothing came until then. */
static bool more(struct conform_socket *s, uint64_t until_us)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    const uint64_t now_us = clock_boottime_us();
    const uint64_t left_ms = now_us >= until_us ? 0 : (until_us - now_us + 999) / 1000;

    if (poll(&p, 1, (int)left_ms) <= 0) {
        return clock_boottime_us() < until_us; // a signal
    }
    const ssize_t got = recv(s->fd, buffer_reserve(&s->in, READ_SIZE), READ_SIZE, 0);

    if (got > 0) {
        s->in.size += (size_t)got;
    } else if (got == 0 || errno != EINTR) {
        s->ended = true; // a reset as well: what a gateway hadn't read yet makes one of its close
    }
    return true;
}

enum socket_result conform_packet(struct conform_socket *s, uint32_t timeout_ms, struct packet *out)
{
    const uint64_t until_us = clock_boottime_us() + (uint64_t)timeout_ms * 1000;

    buffer_consume(&s->in, s->taken);
    s->taken = 0;
    for (;;) {
        if (packet_next(buffer_bytes(&s->in), PACKET_BODY_MAX, out) == PACKET_WHOLE) {
            s->taken = PACKET_HEADER + out->body.size;
            return SOCKET_GOT;
        }
        if (s->ended) {
            return s->in.size > 0 ? SOCKET_HALF : SOCKET_CLOSED;
        }
        if (!more(s, until_us)) {
            return SOCKET_SILENT;
        }
    }
}

void conform_close(struct conform_socket *s)
{
    if (s->fd >= 0) {
        (void)close(s->fd);
    }
    buffer_fini(&s->in);
    s->fd = -1;
    s->taken = 0;
}
