/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams over nng_stream. nng's callbacks do one thing: put their op into the
 * queue of finished ones and wake the loop. An op is in flight (`busy`) from its
 * start until the loop has taken it off the queue, and what it belongs to waits
 * for it before it is freed: no callback can find it gone.
 */
#include "link/stream.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <nng/nng.h>
#include <pthread.h>
#include <stdio.h>

enum op_kind { OP_ACCEPT, OP_DIAL, OP_READ, OP_WRITE };

struct op {
    struct list_link done; /* in transport->done, under its lock */
    enum op_kind kind;
    bool busy; /* loop thread only */
    struct transport_nng *transport;
    void *owner; /* acceptor, dialler or stream, by kind */
    nng_aio *aio;
};

struct transport_nng {
    struct transport base;
    struct links *links;
    pthread_mutex_t lock;
    struct list done; /* under lock */
};

struct stream_nng {
    struct stream base;
    nng_stream *stream;
    struct op read;
    struct op write;
    bool closed;
};

struct dialler {
    struct link *link;
    nng_stream_dialer *dialer;
    struct op dial;
};

struct acceptor {
    struct listener *listener;
    nng_stream_listener *stream;
    struct op accept;
};

/* ---- ops ---- */

// Runs on a thread of nng's. It must not stop, wait for or free anything of
// nng's, and needs none of it.
static void on_done(void *context)
{
    struct op *op = context;
    struct transport_nng *t = op->transport;

    (void)pthread_mutex_lock(&t->lock);
    const bool first = list_empty(&t->done);
    list_push_back(&t->done, &op->done);
    (void)pthread_mutex_unlock(&t->lock);
    if (first) {
        links_wake(t->links);
    }
}

static void op_init(struct op *op, struct transport_nng *t, enum op_kind kind, void *owner)
{
    *op = (struct op){.kind = kind, .transport = t, .owner = owner};
    const int rc = nng_aio_alloc(&op->aio, on_done, op);
    ASSERT(rc == 0);
    // nng scans all timed aios on each wake-up: none of ours is.
    nng_aio_set_timeout(op->aio, NNG_DURATION_INFINITE);
}

/* Wait for its callback's end, take it off the queue, free the aio. */
static void op_fini(struct op *op)
{
    nng_aio_stop(op->aio);
    (void)pthread_mutex_lock(&op->transport->lock);
    if (list_linked(&op->done)) {
        list_remove(&op->done);
    }
    (void)pthread_mutex_unlock(&op->transport->lock);
    nng_aio_free(op->aio);
    op->aio = NULL;
}

/* Count it as in flight; the caller hands op->aio to nng next. */
static void op_start(struct op *op)
{
    ASSERT(!op->busy);
    op->busy = true;
}

/* ---- streams ---- */

static struct stream_nng *of(struct stream *s)
{
    return CONTAINER_OF(s, struct stream_nng, base);
}

static struct stream *stream_new(struct transport_nng *t, nng_stream *stream)
{
    struct stream_nng *s = mem_new(1, sizeof *s);

    s->stream = stream;
    op_init(&s->read, t, OP_READ, s);
    op_init(&s->write, t, OP_WRITE, s);
    return &s->base;
}

static void stream_read(struct stream *stream, void *to, size_t size)
{
    struct stream_nng *s = of(stream);
    nng_iov iov = {.iov_buf = to, .iov_len = size};

    (void)nng_aio_set_iov(s->read.aio, 1, &iov);
    op_start(&s->read);
    nng_stream_recv(s->stream, s->read.aio);
}

static int stream_write(struct stream *stream, struct bytes bytes, size_t *count)
{
    struct stream_nng *s = of(stream);
    union {
        const uint8_t *in;
        uint8_t *out;
    } cast = {.in = bytes.data}; // nng only reads it
    nng_iov iov = {.iov_buf = cast.out, .iov_len = bytes.size};

    *count = 0;
    (void)nng_aio_set_iov(s->write.aio, 1, &iov);
    op_start(&s->write);
    nng_stream_send(s->stream, s->write.aio);
    return 0;
}

static void stream_close(struct stream *stream)
{
    struct stream_nng *s = of(stream);

    s->closed = true;
    nng_stream_close(s->stream);
}

static bool stream_free(struct stream *stream, bool force)
{
    struct stream_nng *s = of(stream);

    if (!force && (s->read.busy || s->write.busy)) {
        return false;
    }
    op_fini(&s->read);
    op_fini(&s->write);
    nng_stream_free(s->stream);
    mem_free(s);
    return true;
}

static void stream_peer(struct stream *stream, struct address *address)
{
    const struct stream_nng *s = of(stream);
    nng_sockaddr peer;

    *address = (struct address){.host = "?"};
    if (nng_stream_get_addr(s->stream, NNG_OPT_REMADDR, &peer) != 0) {
        return;
    }
    if (peer.s_family == NNG_AF_INET) {
        (void)inet_ntop(AF_INET, &peer.s_in.sa_addr, address->host, sizeof address->host);
        address->port = ntohs(peer.s_in.sa_port);
    } else if (peer.s_family == NNG_AF_INET6) {
        (void)inet_ntop(AF_INET6, peer.s_in6.sa_addr, address->host, sizeof address->host);
        address->port = ntohs(peer.s_in6.sa_port);
    }
}

/* ---- diallers ---- */

static struct dialler *dialler_new(struct transport *t, const char *address, struct link *link)
{
    char url[ADDRESS_SIZE_MAX + 16];
    nng_stream_dialer *dialer;

    (void)snprintf(url, sizeof url, "tcp://%s", address);
    if (nng_stream_dialer_alloc(&dialer, url) != 0) {
        return NULL;
    }
    (void)nng_stream_dialer_set_bool(dialer, NNG_OPT_TCP_NODELAY, true);
    (void)nng_stream_dialer_set_bool(dialer, NNG_OPT_TCP_KEEPALIVE, true);
    struct dialler *d = mem_new(1, sizeof *d);
    d->link = link;
    d->dialer = dialer;
    op_init(&d->dial, CONTAINER_OF(t, struct transport_nng, base), OP_DIAL, d);
    return d;
}

static void dial(struct dialler *d)
{
    op_start(&d->dial);
    nng_stream_dialer_dial(d->dialer, d->dial.aio);
}

static void dial_stop(struct dialler *d)
{
    if (d->dial.busy) {
        nng_aio_abort(d->dial.aio, NNG_ETIMEDOUT);
    }
}

static void dialler_free(struct dialler *d)
{
    nng_stream_dialer_close(d->dialer);
    nng_aio_stop(d->dial.aio);
    // A dial that succeeded and was not looked at yet left us a stream.
    if (d->dial.busy && nng_aio_result(d->dial.aio) == 0) {
        nng_stream_free(nng_aio_get_output(d->dial.aio, 0));
    }
    op_fini(&d->dial);
    nng_stream_dialer_free(d->dialer);
    mem_free(d);
}

/* ---- acceptors ---- */

static int acceptor_new(struct transport *t, struct address *address, struct listener *listener,
                        struct acceptor **out)
{
    char text[ADDRESS_SIZE_MAX + 8];
    char url[ADDRESS_SIZE_MAX + 16];
    nng_stream_listener *stream;
    int port = 0;

    address_format(address, text, sizeof text);
    (void)snprintf(url, sizeof url, "tcp://%s", text);
    int rc = nng_stream_listener_alloc(&stream, url);
    if (rc != 0) {
        return rc;
    }
    (void)nng_stream_listener_set_bool(stream, NNG_OPT_TCP_NODELAY, true);
    (void)nng_stream_listener_set_bool(stream, NNG_OPT_TCP_KEEPALIVE, true);
    rc = nng_stream_listener_listen(stream);
    if (rc == 0) {
        rc = nng_stream_listener_get_int(stream, NNG_OPT_TCP_BOUND_PORT, &port);
    }
    if (rc != 0) {
        nng_stream_listener_free(stream);
        return rc;
    }
    struct acceptor *a = mem_new(1, sizeof *a);
    a->listener = listener;
    a->stream = stream;
    op_init(&a->accept, CONTAINER_OF(t, struct transport_nng, base), OP_ACCEPT, a);
    address->port = (uint16_t)port;
    *out = a;
    return 0;
}

static enum err listen_error(int rc)
{
    if (rc == NNG_EADDRINUSE) {
        return ERR_CONFLICT;
    }
    return rc == NNG_EADDRINVAL || rc == NNG_EINVAL ? ERR_INVALID : ERR_IO;
}

static void acceptor_accept(struct acceptor *a)
{
    op_start(&a->accept);
    nng_stream_listener_accept(a->stream, a->accept.aio);
}

static void acceptor_free(struct acceptor *a)
{
    nng_stream_listener_close(a->stream);
    nng_aio_stop(a->accept.aio);
    if (a->accept.busy && nng_aio_result(a->accept.aio) == 0) {
        nng_stream_free(nng_aio_get_output(a->accept.aio, 0));
    }
    op_fini(&a->accept);
    nng_stream_listener_free(a->stream);
    mem_free(a);
}

/* ---- what is done ---- */

static void tell_accept(struct acceptor *a, int rc)
{
    struct transport_nng *t = a->accept.transport;

    if (rc != 0) {
        listener_on_accept(a->listener, NULL, rc);
        return;
    }
    nng_stream *stream = nng_aio_get_output(a->accept.aio, 0);
    acceptor_accept(a);
    listener_on_accept(a->listener, stream_new(t, stream), 0);
}

static void tell_dial(struct dialler *d, int rc)
{
    nng_stream *stream = rc == 0 ? nng_aio_get_output(d->dial.aio, 0) : NULL;

    link_on_dial(d->link, rc == 0 ? stream_new(d->dial.transport, stream) : NULL, rc);
}

static void tell_read(struct stream_nng *s, int rc)
{
    const bool ended = rc == NNG_ECONNSHUT || rc == NNG_ECLOSED;

    if (!s->closed) {
        conn_on_read(s->base.conn, rc == 0 ? nng_aio_count(s->read.aio) : 0, ended ? 0 : rc);
    }
}

static void tell_write(struct stream_nng *s, int rc)
{
    if (!s->closed) {
        conn_on_write(s->base.conn, rc == 0 ? nng_aio_count(s->write.aio) : 0, rc);
    }
}

static void tell(struct op *op)
{
    const int rc = nng_aio_result(op->aio);

    op->busy = false;
    switch (op->kind) {
    case OP_ACCEPT:
        tell_accept(op->owner, rc);
        return;
    case OP_DIAL:
        tell_dial(op->owner, rc);
        return;
    case OP_READ:
        tell_read(op->owner, rc);
        return;
    case OP_WRITE:
        tell_write(op->owner, rc);
        return;
    }
    UNREACHABLE();
}

static void transport_poll(struct transport *transport)
{
    struct transport_nng *t = CONTAINER_OF(transport, struct transport_nng, base);
    struct list done;
    struct list_link *at;

    list_init(&done);
    (void)pthread_mutex_lock(&t->lock);
    list_splice_back(&done, &t->done);
    (void)pthread_mutex_unlock(&t->lock);
    while ((at = list_pop_front(&done)) != NULL) {
        tell(CONTAINER_OF(at, struct op, done));
    }
}

static void transport_free(struct transport *transport)
{
    struct transport_nng *t = CONTAINER_OF(transport, struct transport_nng, base);

    (void)pthread_mutex_destroy(&t->lock);
    mem_free(t);
}

struct transport *transport_nng(struct links *links)
{
    static const struct transport_ops ops = {
        .poll = transport_poll,
        .free = transport_free,
        .error_text = nng_strerror,
        .dialler_new = dialler_new,
        .dial = dial,
        .dial_stop = dial_stop,
        .dialler_free = dialler_free,
        .acceptor_new = acceptor_new,
        .listen_error = listen_error,
        .accept = acceptor_accept,
        .acceptor_free = acceptor_free,
        .read = stream_read,
        .write = stream_write,
        .close = stream_close,
        .stream_free = stream_free,
        .peer = stream_peer,
    };
    struct transport_nng *t = mem_new(1, sizeof *t);

    t->base.ops = &ops;
    t->links = links;
    list_init(&t->done);
    (void)pthread_mutex_init(&t->lock, NULL);
    return &t->base;
}
