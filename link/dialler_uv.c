/* SPDX-License-Identifier: Apache-2.0
 *
 * Dials one address. A host's name is looked up anew each time, off the loop,
 * and all that it stands for is tried in turn.
 */
#include "link/transport_uv.h"

#include "base/assert.h"
#include "base/mem.h"

#include <netdb.h>
#include <stdio.h>

/* Lives until libuv has called back, which no cancel hurries when it has begun. */
struct name_lookup {
    uv_getaddrinfo_t request;
    struct dialler *dialler; /* NULL = it waits no more */
};

struct dialler {
    struct transport_task task;
    struct link *link;
    struct address address;
    bool busy;
    struct name_lookup *lookup;
    struct addrinfo *found; /* owned */
    struct addrinfo *next;  /* of it, to be tried */
    struct socket *socket;  /* connecting, or connected and to be told */
    int error;
};

static void finish(struct dialler *d, int error)
{
    d->error = error;
    uv_freeaddrinfo(d->found);
    d->found = d->next = NULL;
    task_done(&d->task);
}

static void drop_socket(struct dialler *d)
{
    if (d->socket != NULL) {
        socket_close(&d->socket->base);
        (void)socket_free(&d->socket->base, true);
        d->socket = NULL;
    }
}

static int try(struct dialler *d, const struct sockaddr *to, socklen_t size)
{
    const int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error = fd < 0 ? socket_errno() : 0;

    if (error == 0) {
        d->socket = socket_new(d->task.transport, fd, &error);
    }
    if (error == 0) {
        error = socket_connect(d->socket, d, to, size);
    }
    if (error != 0) {
        drop_socket(d);
    }
    return error;
}

/* Until one is on its way, or none is left. */
static void try_next(struct dialler *d, int error)
{
    while (d->next != NULL) {
        const struct addrinfo *at = d->next;

        d->next = at->ai_next;
        error = try(d, at->ai_addr, at->ai_addrlen);
        if (error == 0) {
            return;
        }
    }
    finish(d, error);
}

void dialler_on_connect(struct dialler *d, int error)
{
    if (error == 0) {
        finish(d, 0);
        return;
    }
    drop_socket(d);
    try_next(d, error);
}

static void on_found(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct name_lookup *lookup = request->data;
    struct dialler *d = lookup->dialler;

    mem_free(lookup);
    if (d == NULL) {
        uv_freeaddrinfo(found);
        return;
    }
    d->lookup = NULL;
    d->found = d->next = found;
    try_next(d, status == 0 ? UV_EADDRNOTAVAIL : status);
}

static int look_up(struct dialler *d)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct name_lookup *lookup = mem_new(1, sizeof *lookup);
    char port[8];

    (void)snprintf(port, sizeof port, "%u", (unsigned)d->address.port);
    lookup->request.data = lookup;
    lookup->dialler = d;
    const int error = uv_getaddrinfo(
        d->task.transport->loop, &lookup->request, on_found, d->address.host, port, &hints);
    if (error != 0) {
        mem_free(lookup);
        return error;
    }
    d->lookup = lookup;
    return 0;
}

void dialler_uv_dial(struct dialler *d)
{
    struct sockaddr_storage to;
    const socklen_t size = socket_address(&d->address, &to);

    ASSERT(!d->busy);
    d->busy = true;
    const int error = size == 0 ? look_up(d) : try(d, (const struct sockaddr *)&to, size);
    if (error != 0) {
        finish(d, error);
    }
}

static void stop(struct dialler *d)
{
    if (d->lookup != NULL) {
        d->lookup->dialler = NULL;
        (void)uv_cancel((uv_req_t *)&d->lookup->request);
        d->lookup = NULL;
    }
    drop_socket(d);
    finish(d, UV_ETIMEDOUT);
}

void dialler_uv_stop(struct dialler *d)
{
    if (d->busy && !list_linked(&d->task.done)) {
        stop(d);
    }
}

static void tell(struct transport_task *task)
{
    struct dialler *d = CONTAINER_OF(task, struct dialler, task);
    struct socket *s = d->socket;

    d->busy = false;
    d->socket = NULL;
    link_on_dial(d->link, s == NULL ? NULL : &s->base, d->error);
}

struct dialler *dialler_uv_new(struct transport *t, const char *address, struct link *link)
{
    struct dialler *d = mem_new(1, sizeof *d);
    const enum err e = address_parse(address, &d->address);

    ASSERT(e == ERR_OK); // links_dial() has looked
    d->task = (struct transport_task){.transport = CONTAINER_OF(t, struct transport_uv, base),
                                      .tell = tell};
    d->link = link;
    return d;
}

void dialler_uv_free(struct dialler *d)
{
    stop(d);
    task_forget(&d->task);
    mem_free(d);
}
