/* SPDX-License-Identifier: Apache-2.0
 *
 * A TCP socket on a uv loop, non-blocking, for link/stream.h.
 */
#include "link/transport_uv.h"

#include "base/assert.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

static struct socket *of(struct stream *stream)
{
    return CONTAINER_OF(stream, struct socket, base);
}

int socket_errno(void)
{
    return uv_translate_sys_error(errno);
}

static void take(struct socket *s)
{
    if (s->room == 0 || s->read_done) {
        s->reading = false; // nobody asked
        return;
    }
    const ssize_t count = recv(s->fd, s->to, s->room, 0);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return;
    }
    s->read_done = true;
    s->count = count < 0 ? 0 : (size_t)count;
    s->error = count < 0 ? socket_errno() : 0;
    task_done(&s->task);
}

static void on_poll(uv_poll_t *handle, int status, int events);

/* Only a change costs a call into the kernel. */
static void watch(struct socket *s)
{
    const int wanted =
        (s->reading ? UV_READABLE : 0) | (s->blocked || s->dialler != NULL ? UV_WRITABLE : 0);

    if (wanted == s->events) {
        return;
    }
    s->events = wanted;
    const int rc = wanted == 0 ? uv_poll_stop(&s->poll) : uv_poll_start(&s->poll, wanted, on_poll);
    ASSERT(rc == 0);
}

static void on_connect(struct socket *s)
{
    struct dialler *d = s->dialler;
    int error = 0;
    socklen_t size = sizeof error;

    (void)getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    s->dialler = NULL;
    watch(s);
    dialler_on_connect(d, uv_translate_sys_error(error));
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct socket *s = handle->data;

    if (status < 0) {
        // libuv has stopped the handle; the call itself says what is wrong.
        s->events = 0;
        events = UV_READABLE | UV_WRITABLE;
    }
    if (s->dialler != NULL) {
        on_connect(s);
        return;
    }
    if ((events & UV_READABLE) != 0) {
        take(s);
    }
    if ((events & UV_WRITABLE) != 0 && s->blocked) {
        s->blocked = false;
        s->writable = true;
        task_done(&s->task);
    }
    watch(s);
}

static void tell(struct transport_task *task)
{
    struct socket *s = CONTAINER_OF(task, struct socket, task);

    if (s->read_done) {
        s->read_done = false;
        s->room = 0;
        conn_on_read(s->base.conn, s->count, s->error);
    }
    // A closed one has neither.
    if (s->writable) {
        s->writable = false;
        conn_on_write(s->base.conn, 0, 0);
    }
}

struct socket *socket_new(struct transport_uv *t, int fd, int *error)
{
    struct socket *s = mem_new(1, sizeof *s);
    const int on = 1;

    *error = uv_poll_init(t->loop, &s->poll, fd); // makes it non-blocking
    if (*error != 0) {
        (void)close(fd);
        mem_free(s);
        return NULL;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    s->fd = fd;
    s->poll.data = s;
    s->task = (struct transport_task){.transport = t, .tell = tell};
    return s;
}

int socket_connect(struct socket *s, struct dialler *dialler, const struct sockaddr *to,
                   socklen_t size)
{
    if (connect(s->fd, to, size) != 0 && errno != EINPROGRESS && errno != EINTR) {
        return socket_errno();
    }
    s->dialler = dialler; // on_connect() finds it connected, or not
    watch(s);
    return 0;
}

void socket_read(struct stream *stream, void *to, size_t size)
{
    struct socket *s = of(stream);

    ASSERT(s->room == 0 && size > 0);
    s->to = to;
    s->room = size;
    s->reading = true;
    watch(s);
}

int socket_write(struct stream *stream, struct bytes bytes, size_t *count)
{
    struct socket *s = of(stream);
    ssize_t sent;

    ASSERT(!s->blocked && bytes.size > 0);
    do {
        sent = send(s->fd, bytes.data, bytes.size, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        return socket_errno();
    }
    *count = sent < 0 ? 0 : (size_t)sent;
    s->blocked = *count < bytes.size;
    watch(s);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct socket *s = handle->data;

    s->closed = true;
    if (s->freed) {
        mem_free(s);
    }
}

void socket_close(struct stream *stream)
{
    struct socket *s = of(stream);

    task_forget(&s->task);
    s->writable = false;
    uv_close((uv_handle_t *)&s->poll, on_closed);
    (void)close(s->fd);
}

bool socket_free(struct stream *stream, bool force)
{
    struct socket *s = of(stream);

    (void)force;
    s->freed = true;
    if (s->closed) {
        mem_free(s);
    }
    return true;
}

void socket_peer(struct stream *stream, struct address *address)
{
    struct sockaddr_storage peer = {0};
    socklen_t size = sizeof peer;

    *address = (struct address){.host = "?"};
    if (getpeername(of(stream)->fd, (struct sockaddr *)&peer, &size) != 0) {
        return;
    }
    if (peer.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&peer;

        (void)inet_ntop(AF_INET, &in->sin_addr, address->host, sizeof address->host);
        address->port = ntohs(in->sin_port);
    } else if (peer.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&peer;

        (void)inet_ntop(AF_INET6, &in->sin6_addr, address->host, sizeof address->host);
        address->port = ntohs(in->sin6_port);
    }
}

socklen_t socket_address(const struct address *from, struct sockaddr_storage *to)
{
    struct sockaddr_in *in = (struct sockaddr_in *)to;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

    *to = (struct sockaddr_storage){0};
    if (inet_pton(AF_INET, from->host, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(from->port);
        return sizeof *in;
    }
    if (inet_pton(AF_INET6, from->host, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(from->port);
        return sizeof *in6;
    }
    return 0;
}
