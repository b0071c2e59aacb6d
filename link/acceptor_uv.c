/* SPDX-License-Identifier: Apache-2.0
 *
 * Listens on a TCP address on a uv loop and hands over each accepted socket.
 */
#include "link/transport_uv.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    ACCEPTS_MAX = 64, /* a turn: links that are up have theirs too */
};

struct acceptor {
    struct transport_task task;
    struct listener *listener;
    uv_poll_t poll;
    int fd;
};

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct acceptor *a = handle->data;

    (void)status;
    (void)events;
    task_done(&a->task);
}

static int accept_one(struct acceptor *a, struct stream **stream)
{
    int error = 0;
    const int fd = accept(a->fd, NULL, NULL);

    if (fd < 0) {
        return socket_errno();
    }
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    struct socket *s = socket_new(a->task.transport, fd, &error);
    *stream = s == NULL ? NULL : &s->base;
    return error;
}

static void tell(struct transport_task *task)
{
    struct acceptor *a = CONTAINER_OF(task, struct acceptor, task);

    for (int i = 0; i < ACCEPTS_MAX; i++) {
        struct stream *stream = NULL;
        const int error = accept_one(a, &stream);

        if (error == UV_EAGAIN || error == UV_EINTR || error == UV_ECONNABORTED) {
            return; // libuv says when there are more
        }
        if (error != 0) {
            (void)uv_poll_stop(&a->poll);
        }
        listener_on_accept(a->listener, stream, error);
        if (error != 0) {
            return;
        }
    }
}

/* A name is looked up here and now: it is our own, at the start. */
static int resolve(const struct address *address, struct sockaddr_storage *to, socklen_t *size)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    char port[8];

    *size = socket_address(address, to);
    if (*size != 0) {
        return 0;
    }
    (void)snprintf(port, sizeof port, "%u", (unsigned)address->port);
    if (getaddrinfo(address->host, port, &hints, &found) != 0) {
        return UV_EADDRNOTAVAIL;
    }
    *size = found->ai_addrlen;
    memcpy(to, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

static int bind_to(int fd, const struct sockaddr *to, socklen_t size)
{
    const int on = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return bind(fd, to, size) != 0 || listen(fd, BACKLOG) != 0 ? socket_errno() : 0;
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;

    (void)getsockname(fd, (struct sockaddr *)&bound, &size);
    return ntohs(bound.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&bound)->sin6_port
                                             : ((const struct sockaddr_in *)&bound)->sin_port);
}

int acceptor_uv_new(struct transport *t, struct address *address, struct listener *listener,
                    struct acceptor **out)
{
    struct transport_uv *transport = CONTAINER_OF(t, struct transport_uv, base);
    struct sockaddr_storage to;
    socklen_t size;
    int error = resolve(address, &to, &size);

    if (error != 0) {
        return error;
    }
    const int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return socket_errno();
    }
    struct acceptor *a = mem_new(1, sizeof *a);
    error = bind_to(fd, (const struct sockaddr *)&to, size);
    if (error == 0) {
        error = uv_poll_init(transport->loop, &a->poll, fd);
    }
    if (error != 0) {
        (void)close(fd);
        mem_free(a);
        return error;
    }
    address->port = bound_port(fd);
    a->task = (struct transport_task){.transport = transport, .tell = tell};
    a->listener = listener;
    a->poll.data = a;
    a->fd = fd;
    *out = a;
    return 0;
}

enum err acceptor_uv_error(int error)
{
    if (error == UV_EADDRINUSE) {
        return ERR_CONFLICT;
    }
    return error == UV_EADDRNOTAVAIL || error == UV_EINVAL ? ERR_INVALID : ERR_IO;
}

void acceptor_uv_accept(struct acceptor *a)
{
    (void)uv_poll_start(&a->poll, UV_READABLE, on_poll);
}

static void on_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

void acceptor_uv_free(struct acceptor *a)
{
    task_forget(&a->task);
    uv_close((uv_handle_t *)&a->poll, on_closed);
    (void)close(a->fd);
}
