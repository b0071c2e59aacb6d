/* SPDX-License-Identifier: Apache-2.0
 *
 * A raw connection for conformance checks: it sends any bytes, whole or in
 * pieces, and waits for an answer with a deadline.
 */
#include "conform/socket.h"

#include "base/big.h"
#include "base/clock.h"
#include "base/random.h"

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
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout); // of TLS
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, to->ai_addr, to->ai_addrlen) != 0) {
        const int error = errno;

        (void)close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

bool conform_open(struct conform_socket *s, const struct conform_where *where,
                  struct ssl_ctx_st *trust, uint32_t timeout_ms)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char port[8];

    *s = (struct conform_socket){.fd = -1, .skynet = where->skynet};
    (void)snprintf(port, sizeof port, "%u", where->to.port);
    const int failed = getaddrinfo(where->to.host, port, &hints, &found);

    if (failed != 0) {
        (void)snprintf(s->why, sizeof s->why, "%s: %s", where->host, gai_strerror(failed));
        return false;
    }
    for (const struct addrinfo *to = found; to != NULL && s->fd < 0; to = to->ai_next) {
        s->fd = dial(to, timeout_ms);
    }
    if (s->fd < 0) {
        char text[64] = "";

        (void)strerror_r(errno, text, sizeof text);
        (void)snprintf(s->why, sizeof s->why, "%s: %s", where->host, text);
    }
    freeaddrinfo(found);
    if (s->fd >= 0 && where->encrypted) {
        s->tls = conform_tls_open(trust, s->fd, where, s->why);
        return s->tls != NULL;
    }
    return s->fd >= 0;
}

void conform_send(struct conform_socket *s, struct bytes bytes)
{
    size_t at = 0;

    if (s->tls != NULL) {
        (void)conform_tls_send(s->tls, bytes.data, bytes.size);
        return;
    }
    while (at < bytes.size) {
        const ssize_t sent = send(s->fd, bytes.data + at, bytes.size - at, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR) {
            return;
        }
        at += sent > 0 ? (size_t)sent : 0;
    }
}

void conform_framed(struct conform_socket *s)
{
    s->framed = true;
}

void conform_send_packets(struct conform_socket *s, struct bytes packets)
{
    struct buffer out = {0};
    uint8_t mask[4];

    if (!s->framed && !s->skynet) {
        conform_send(s, packets);
        return;
    }
    if (s->skynet) {
        s->too_large = !frame16_put_packets(&out, &s->cut16, packets);
    } else {
        random_fill(mask, sizeof mask);
        wsframe_put_packets(&out, &s->cut, mask, packets);
    }
    conform_send(s, buffer_bytes(&out));
    buffer_fini(&out);
}

void conform_send_frame(struct conform_socket *s, uint8_t first, bool masked, struct bytes payload)
{
    struct buffer out = {0};
    uint8_t mask[4];

    random_fill(mask, sizeof mask);
    wsframe_put(&out, first, masked ? mask : NULL, payload);
    conform_send(s, buffer_bytes(&out));
    buffer_fini(&out);
}

void conform_end(struct conform_socket *s)
{
    struct buffer half = {0};

    frame16_put_half(&half, &s->cut16);
    conform_send(s, buffer_bytes(&half));
    buffer_fini(&half);
    if (s->tls != NULL) {
        conform_tls_end(s->tls);
    }
    (void)shutdown(s->fd, SHUT_WR);
}

static bool more_of_tls(struct conform_socket *s)
{
    const int got = conform_tls_receive(s->tls, buffer_reserve(&s->in, READ_SIZE), READ_SIZE);

    s->in.size += got > 0 ? (size_t)got : 0;
    s->ended = got < 0;
    return true;
}

/* More bytes, or the end. False if nothing came until then. */
static bool more(struct conform_socket *s, uint64_t until_us)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    const uint64_t now_us = clock_boottime_us();
    const uint64_t left_ms = now_us >= until_us ? 0 : (until_us - now_us + 999) / 1000;

    if (s->tls != NULL && conform_tls_has(s->tls)) {
        return more_of_tls(s);
    }
    if (poll(&p, 1, (int)left_ms) <= 0) {
        return clock_boottime_us() < until_us; // a signal
    }
    if (s->tls != NULL) {
        return more_of_tls(s);
    }
    const ssize_t got = recv(s->fd, buffer_reserve(&s->in, READ_SIZE), READ_SIZE, 0);

    if (got > 0) {
        s->in.size += (size_t)got;
    } else if (got == 0 || errno != EINTR) {
        s->ended = true; // a reset as well: what a gateway hadn't read yet makes one of its close
    }
    return true;
}

static uint64_t until(uint32_t timeout_ms)
{
    return clock_boottime_us() + (uint64_t)timeout_ms * 1000;
}

/* What was read last is not looked at any more. */
static void forget(struct conform_socket *s)
{
    buffer_consume(&s->in, s->taken);
    s->taken = 0;
}

enum socket_result conform_wait(struct conform_socket *s, uint32_t timeout_ms, size_t size)
{
    const uint64_t until_us = until(timeout_ms);

    forget(s);
    while (s->in.size < size) {
        if (s->ended) {
            return s->in.size > 0 ? SOCKET_HALF : SOCKET_CLOSED;
        }
        if (!more(s, until_us)) {
            return SOCKET_SILENT;
        }
    }
    return SOCKET_GOT;
}

static enum socket_result wrong(struct conform_socket *s, const char *why)
{
    (void)snprintf(s->why, sizeof s->why, "%s", why);
    return SOCKET_WRONG;
}

/* How many bytes the next one has; 0 = it is not whole. */
static size_t whole_packet(const struct conform_socket *s, struct packet *out)
{
    return packet_next(buffer_bytes(&s->in), PACKET_BODY_MAX, out) == PACKET_WHOLE
               ? PACKET_HEADER + out->body.size
               : 0;
}

static enum socket_result next_packet(struct conform_socket *s, uint64_t until_us,
                                      struct packet *out)
{
    for (;;) {
        s->taken = s->skynet ? frame16_next(buffer_bytes(&s->in), out) : whole_packet(s, out);
        if (s->taken == SIZE_MAX) {
            s->taken = 0;
            return wrong(s, "a frame without a type");
        }
        if (s->taken > 0) {
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

/* A close is answered; behind it is the end. */
static enum socket_result on_close(struct conform_socket *s, struct bytes payload)
{
    if (payload.size == 1 || s->close_code != 0) {
        return wrong(s, "a close with an invalid code or text");
    }
    s->close_code = payload.size == 0 ? 1005 : (uint16_t)big_get16(payload.data);
    conform_send_frame(s, WSFRAME_CLOSE | WSFRAME_FINAL, true, payload);
    return SOCKET_GOT;
}

static enum socket_result next_frame(struct conform_socket *s, uint64_t until_us,
                                     struct wsframe *out)
{
    const char *why = NULL;

    for (;;) {
        switch (wsframe_next(buffer_bytes(&s->in), out, &why)) {
        case WSFRAME_WRONG:
            return wrong(s, why);
        case WSFRAME_WHOLE:
            s->taken = out->size;
            if (s->close_code != 0) {
                return wrong(s, "a frame behind its close");
            }
            if (out->opcode == WSFRAME_CLOSE) {
                if (on_close(s, out->payload) == SOCKET_WRONG) {
                    return SOCKET_WRONG;
                }
            } else if (out->opcode == WSFRAME_PING) {
                conform_send_frame(s, WSFRAME_PONG | WSFRAME_FINAL, true, out->payload);
            } else {
                return SOCKET_GOT;
            }
            forget(s);
            continue;
        case WSFRAME_MORE:
            break;
        }
        if (s->ended) {
            return s->in.size > 0 ? SOCKET_HALF : SOCKET_CLOSED;
        }
        if (!more(s, until_us)) {
            return SOCKET_SILENT;
        }
    }
}

enum socket_result conform_next_frame(struct conform_socket *s, uint32_t timeout_ms,
                                      struct wsframe *out)
{
    forget(s);
    return next_frame(s, until(timeout_ms), out);
}

/* The packet that the next message is. Pongs may come at any time. */
static enum socket_result next_message(struct conform_socket *s, uint64_t until_us,
                                       struct packet *out)
{
    struct wsframe frame;

    for (;;) {
        const enum socket_result result = next_frame(s, until_us, &frame);

        if (result != SOCKET_GOT) {
            return result;
        }
        if (frame.opcode == WSFRAME_BINARY) {
            break;
        }
        if (frame.opcode != WSFRAME_PONG) {
            return wrong(s, "a frame that is neither of bytes nor of control");
        }
        forget(s);
    }
    if (packet_next(frame.payload, PACKET_BODY_MAX, out) != PACKET_WHOLE ||
        PACKET_HEADER + out->body.size != frame.payload.size) {
        return wrong(s, "a message that is not exactly one packet");
    }
    return SOCKET_GOT;
}

enum socket_result conform_packet(struct conform_socket *s, uint32_t timeout_ms, struct packet *out)
{
    const uint64_t until_us = until(timeout_ms);

    forget(s);
    return s->framed ? next_message(s, until_us, out) : next_packet(s, until_us, out);
}

void conform_close(struct conform_socket *s)
{
    conform_tls_free(s->tls);
    s->tls = NULL;
    if (s->fd >= 0) {
        (void)close(s->fd);
    }
    buffer_fini(&s->in);
    s->fd = -1;
    s->taken = 0;
}
