/* SPDX-License-Identifier: Apache-2.0
 *
 * A client over TCP: does what the protocol wishes, with one socket that never
 * blocks.
 */
#include "client/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { GATEWAYS_MAX = 64, NAME_SIZE = 256 };

struct rhc_tcp {
    struct rhc *client; /* in `memory` */
    void *memory;
    char *words; /* the gateways, cut into words */
    const char *host[GATEWAYS_MAX];
    const char *port[GATEWAYS_MAX];
    uint32_t count;
    int fd; /* -1 = none */
    bool connecting;
    struct addrinfo *found; /* of the gateway that is dialled */
    struct addrinfo *at;    /* the next to try */
    rhc_on_event *on_event;
    void *context;
};

uint64_t rhc_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* "[::1]:7" and "host:7" into two words. */
static bool split(char *word, const char **host, const char **port)
{
    char *colon = strrchr(word, ':');

    if (colon == NULL || colon == word || colon[1] == '\0') {
        return false;
    }
    *colon = '\0';
    if (word[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        word++;
    }
    *host = word;
    *port = colon + 1;
    return word[0] != '\0';
}

static bool split_all(struct rhc_tcp *t)
{
    char *rest = NULL;

    for (char *w = strtok_r(t->words, ", ", &rest); w != NULL; w = strtok_r(NULL, ", ", &rest)) {
        if (t->count == GATEWAYS_MAX || !split(w, &t->host[t->count], &t->port[t->count])) {
            return false;
        }
        t->count++;
    }
    return t->count > 0;
}

struct rhc_tcp *rhc_tcp_new(const char *gateways, const struct rhc_options *options,
                            rhc_on_event *on_event, void *context)
{
    const size_t size = gateways == NULL ? 0 : rhc_size(options);
    struct rhc_tcp *t = size == 0 ? NULL : calloc(1, sizeof *t);

    if (t == NULL) {
        return NULL;
    }
    t->fd = -1;
    t->on_event = on_event;
    t->context = context;
    t->words = strdup(gateways);
    t->memory = malloc(size);
    if (t->words == NULL || t->memory == NULL || !split_all(t)) {
        rhc_tcp_free(t);
        return NULL;
    }
    t->client = rhc_init(t->memory, options);
    return t;
}

struct rhc *rhc_tcp_client(struct rhc_tcp *t)
{
    return t == NULL ? NULL : t->client;
}

static void hang_up(struct rhc_tcp *t)
{
    if (t->fd >= 0) {
        (void)close(t->fd);
    }
    t->fd = -1;
    t->connecting = false;
}

static void forget_found(struct rhc_tcp *t)
{
    if (t->found != NULL) {
        freeaddrinfo(t->found);
    }
    t->found = NULL;
    t->at = NULL;
}

void rhc_tcp_free(struct rhc_tcp *t)
{
    if (t != NULL) {
        hang_up(t);
        forget_found(t);
        free(t->memory);
        free(t->words);
        free(t);
    }
}

static void lose(struct rhc_tcp *t, const char *why)
{
    hang_up(t);
    forget_found(t);
    rhc_disconnected(t->client, why, rhc_now_ms());
}

/* ---- dialling ---- */

static void be_connected(struct rhc_tcp *t)
{
    t->connecting = false;
    forget_found(t);
    rhc_connected(t->client, rhc_now_ms());
}

/* The next address of this gateway. */
static void dial_next(struct rhc_tcp *t)
{
    const int one = 1;

    while (t->at != NULL) {
        const struct addrinfo *to = t->at;

        t->at = to->ai_next;
        t->fd = socket(to->ai_family, to->ai_socktype, to->ai_protocol);
        if (t->fd < 0) {
            continue;
        }
        (void)fcntl(t->fd, F_SETFD, FD_CLOEXEC);
        (void)fcntl(t->fd, F_SETFL, O_NONBLOCK);
        (void)setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (connect(t->fd, to->ai_addr, to->ai_addrlen) == 0) {
            be_connected(t);
            return;
        }
        if (errno == EINPROGRESS) {
            t->connecting = true;
            return;
        }
        hang_up(t);
    }
    lose(t, "the gateway can't be reached");
}

static void dial(struct rhc_tcp *t)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    const uint32_t i = rhc_gateway(t->client) % t->count;

    if (getaddrinfo(t->host[i], t->port[i], &hints, &t->found) != 0) {
        t->found = NULL;
        lose(t, "the gateway's name can't be resolved");
        return;
    }
    t->at = t->found;
    dial_next(t);
}

/* Is it there, or refused? Neither: wait on. */
static void see_connecting(struct rhc_tcp *t)
{
    struct pollfd p = {.fd = t->fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;

    if (poll(&p, 1, 0) != 1) {
        return;
    }
    if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0) {
        be_connected(t);
    } else {
        hang_up(t);
        dial_next(t);
    }
}

/* ---- bytes ---- */

static void call_back(struct rhc_tcp *t)
{
    struct rhc_event event;

    while (rhc_next(t->client, &event) != 0) {
        if (event.type == RHC_EVENT_RESPONSE && event.done != NULL) {
            event.done(event.context, event.status, event.payload, event.retry_ms);
        } else if (t->on_event != NULL) {
            t->on_event(t->context, &event);
        }
    }
}

static bool may_pass(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* False: the connection is gone. */
static bool read_some(struct rhc_tcp *t)
{
    for (;;) {
        size_t size = 0;
        void *room = rhc_room(t->client, &size);

        if (size == 0) {
            return true;
        }
        const ssize_t got = recv(t->fd, room, size, 0);

        if (got <= 0) {
            return got < 0 && may_pass();
        }
        rhc_received(t->client, (size_t)got, rhc_now_ms());
        call_back(t);
        if ((size_t)got < size) {
            return true;
        }
    }
}

static bool write_some(struct rhc_tcp *t)
{
    for (;;) {
        const struct rhc_bytes out = rhc_output(t->client);

        if (out.size == 0) {
            return true;
        }
        const ssize_t sent = send(t->fd, out.data, out.size, MSG_NOSIGNAL);

        if (sent < 0) {
            return may_pass();
        }
        rhc_sent(t->client, (size_t)sent, rhc_now_ms());
        if ((size_t)sent < out.size) {
            return true;
        }
    }
}

/* ---- the loop's turn ---- */

static void tend(struct rhc_tcp *t)
{
    rhc_tick(t->client, rhc_now_ms());
    call_back(t);
    if (t->connecting) {
        see_connecting(t);
    }
    if (t->fd >= 0 && !t->connecting) {
        // Read first: a kick that has come says more than a write that fails.
        const bool open = read_some(t) && write_some(t);

        if (!open) {
            lose(t, "the gateway closed the connection");
        }
    }
    if (rhc_wishes(t->client) == RHC_HANG_UP) {
        lose(t, NULL);
    }
    if (rhc_wishes(t->client) == RHC_DIAL && t->fd < 0) {
        dial(t);
    }
    call_back(t);
    if (t->fd >= 0 && !t->connecting && !write_some(t)) {
        lose(t, "the gateway closed the connection");
        call_back(t);
    }
}

int rhc_tcp_fd(const struct rhc_tcp *t)
{
    return t == NULL ? -1 : t->fd;
}

int rhc_tcp_wants_write(struct rhc_tcp *t)
{
    return t != NULL && t->fd >= 0 && (t->connecting || rhc_output(t->client).size > 0);
}

int rhc_tcp_wait_ms(struct rhc_tcp *t)
{
    if (t == NULL) {
        return -1;
    }
    const uint64_t wake_ms = rhc_wake_ms(t->client);
    const uint64_t now_ms = rhc_now_ms();
    const enum rhc_wish wish = rhc_wishes(t->client);

    if (wish == RHC_HANG_UP || (wish == RHC_DIAL && t->fd < 0)) {
        return 0; // what it wishes is done in rhc_tcp_poll()
    }
    if (wake_ms == UINT64_MAX) {
        return -1;
    }
    if (wake_ms <= now_ms) {
        return 0;
    }
    return wake_ms - now_ms < INT_MAX ? (int)(wake_ms - now_ms) : INT_MAX;
}

void rhc_tcp_poll(struct rhc_tcp *t, int wait_ms)
{
    if (t == NULL) {
        return;
    }
    tend(t);
    if (wait_ms != 0) {
        struct pollfd p = {.fd = t->fd, // poll() passes over a negative one
                           .events = (short)(POLLIN | (rhc_tcp_wants_write(t) ? POLLOUT : 0))};
        const int own_ms = rhc_tcp_wait_ms(t);
        const bool sooner = own_ms >= 0 && (wait_ms < 0 || own_ms < wait_ms);

        (void)poll(&p, 1, sooner ? own_ms : wait_ms);
        tend(t);
    }
}
