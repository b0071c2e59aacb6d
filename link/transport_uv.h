/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the streams over sockets on a uv loop (link/stream.h).
 *
 * libuv says when a socket is ready, uv_poll_t, and we make the call: a read
 * goes straight into the conn's buffer, and a write happens when conn.c says so
 * and never behind its back, for the gate's sake (hole 30: uv_write()
 * would send what is left over whenever the peer reads on). What is done waits
 * as a task; a check handle wakes the owner once a turn, after all input.
 */
#ifndef LINK_TRANSPORT_UV_H
#define LINK_TRANSPORT_UV_H

#include "base/list.h"
#include "link/stream.h"

#include <sys/socket.h>
#include <uv.h>

struct transport_uv {
    struct transport base;
    struct links *links;
    uv_loop_t *loop;
    uv_check_t check;
    struct list done; /* tasks */
};

/* Something that is done, to be told from poll(). Embedded where that is known. */
struct transport_task {
    struct list_link done; /* transport->done */
    struct transport_uv *transport;
    void (*tell)(struct transport_task *task);
};
void task_done(struct transport_task *task);
void task_forget(struct transport_task *task);

struct socket {
    struct stream base;
    struct transport_task task;
    uv_poll_t poll;
    int fd;
    int events;              /* polled for */
    struct dialler *dialler; /* while it connects */

    void *to; /* where to read, and how much */
    size_t room;
    bool reading;   /* polled for input: until some comes that nobody asked for */
    bool read_done; /* to be told: these two */
    size_t count;
    int error;
    bool blocked;  /* a write was cut short */
    bool writable; /* to be told */

    bool freed;  /* by its owner */
    bool closed; /* by libuv */
};

/* Takes `fd`, also when it fails: NULL, with a uv error. */
struct socket *socket_new(struct transport_uv *t, int fd, int *error);
/* Connect; dialler_on_connect() follows. Returns a uv error. */
int socket_connect(struct socket *s, struct dialler *dialler, const struct sockaddr *to,
                   socklen_t size);
void socket_read(struct stream *stream, void *to, size_t size);
int socket_write(struct stream *stream, struct bytes bytes, size_t *count);
void socket_close(struct stream *stream);
bool socket_free(struct stream *stream, bool force);
void socket_peer(struct stream *stream, struct address *address);
/* "127.0.0.1" or "::1" and a port to an address. Returns its size, 0 if `from` is a name. */
socklen_t socket_address(const struct address *from, struct sockaddr_storage *to);
/* The present errno as a libuv error. */
int socket_errno(void);

struct dialler *dialler_uv_new(struct transport *t, const char *address, struct link *link);
void dialler_uv_dial(struct dialler *d);
void dialler_uv_stop(struct dialler *d);
void dialler_uv_free(struct dialler *d);
void dialler_on_connect(struct dialler *d, int error);

int acceptor_uv_new(struct transport *t, struct address *address, struct listener *listener,
                    struct acceptor **out);
enum err acceptor_uv_error(int error);
void acceptor_uv_accept(struct acceptor *a);
void acceptor_uv_free(struct acceptor *a);

#endif
