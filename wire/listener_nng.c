/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/links_nng.h"

#include "base/log.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { ACCEPT_RETRY_US = 20 * 1000 }; /* out of descriptors, for one: not in a busy loop */

static void accept_start(struct listener *listener)
{
    op_start(&listener->accept);
    nng_stream_listener_accept(listener->stream, listener->accept.aio);
}

static void remote_address(nng_stream *stream, char *text, size_t size)
{
    struct address address = {.host = "?"};
    nng_sockaddr peer;

    if (nng_stream_get_addr(stream, NNG_OPT_REMADDR, &peer) == 0) {
        if (peer.s_family == NNG_AF_INET) {
            (void)inet_ntop(AF_INET, &peer.s_in.sa_addr, address.host, sizeof address.host);
            address.port = ntohs(peer.s_in.sa_port);
        } else if (peer.s_family == NNG_AF_INET6) {
            (void)inet_ntop(AF_INET6, peer.s_in6.sa_addr, address.host, sizeof address.host);
            address.port = ntohs(peer.s_in6.sa_port);
        }
    }
    address_format(&address, text, size);
}

/* Close the oldest connection that has not greeted yet: strangers that say nothing must not keep
 * out those who would. */
static bool make_room(struct links *links)
{
    struct list_link *at = list_front(&links->conns);

    for (; at != NULL; at = list_next(&links->conns, at)) {
        struct conn *conn = CONTAINER_OF(at, struct conn, in_links);

        if (!conn->link->dialled && !conn->link->up) {
            conn_close(conn, "pushed out by a newer connection");
            return true;
        }
    }
    return false;
}

static void admit(struct links *links, nng_stream *stream)
{
    char address[ADDRESS_SIZE_MAX + 8];

    remote_address(stream, address, sizeof address);
    links->counts.accepted++;
    if (links->accepted_count >= links->config.connections_max) {
        links->counts.turned_away++;
        if (!make_room(links)) {
            if (links_may_log(links)) {
                log_warn("link",
                         "full",
                         "address=%s connections_max=%u",
                         address,
                         (unsigned)links->config.connections_max);
            }
            nng_stream_close(stream);
            nng_stream_free(stream);
            return;
        }
    }
    conn_new(links, link_new(links, address, false), stream);
}

void listener_on_accept(struct listener *listener)
{
    const int rc = nng_aio_result(listener->accept.aio);

    listener->accept.busy = false;
    if (rc == 0) {
        admit(listener->links, nng_aio_get_output(listener->accept.aio, 0));
        accept_start(listener);
        return;
    }
    listener->retry_at_us = listener->links->now_us + ACCEPT_RETRY_US;
    if (links_may_log(listener->links)) {
        log_warn("link", "accept", "address=%s reason=\"%s\"", listener->address, nng_strerror(rc));
    }
}

void listener_on_timer(struct listener *listener)
{
    if (!listener->accept.busy && listener->links->now_us >= listener->retry_at_us) {
        accept_start(listener);
    }
}

void listener_free(struct listener *listener)
{
    nng_stream_listener_close(listener->stream);
    if (listener->accept.aio != NULL) {
        nng_aio_stop(listener->accept.aio);
        if (listener->accept.busy && nng_aio_result(listener->accept.aio) == 0) {
            nng_stream_free(nng_aio_get_output(listener->accept.aio, 0));
        }
    }
    op_fini(&listener->accept);
    nng_stream_listener_free(listener->stream);
    list_remove(&listener->in_links);
    mem_free(listener);
}

static enum err listen_error(int rc)
{
    if (rc == NNG_EADDRINUSE) {
        return ERR_CONFLICT;
    }
    return rc == NNG_EADDRINVAL || rc == NNG_EINVAL ? ERR_INVALID : ERR_IO;
}

enum err links_listen(struct links *links, const char *address, char *bound, size_t bound_size)
{
    char url[ADDRESS_SIZE_MAX + 16];
    struct address parsed;
    nng_stream_listener *stream;
    int port;
    int rc;

    if (address_parse(address, &parsed) != ERR_OK) {
        log_error("link", "listen", "address=%s reason=\"not host:port\"", address);
        return ERR_INVALID;
    }
    (void)snprintf(url, sizeof url, "tcp://%s", address);
    rc = nng_stream_listener_alloc(&stream, url);
    if (rc != 0) {
        log_error("link", "listen", "address=%s reason=\"%s\"", address, nng_strerror(rc));
        return listen_error(rc);
    }
    (void)nng_stream_listener_set_bool(stream, NNG_OPT_TCP_NODELAY, true);
    (void)nng_stream_listener_set_bool(stream, NNG_OPT_TCP_KEEPALIVE, true);
    rc = nng_stream_listener_listen(stream);
    if (rc == 0) {
        rc = nng_stream_listener_get_int(stream, NNG_OPT_TCP_BOUND_PORT, &port);
    }
    if (rc != 0) {
        log_error("link", "listen", "address=%s reason=\"%s\"", address, nng_strerror(rc));
        nng_stream_listener_free(stream);
        return listen_error(rc);
    }
    struct listener *listener = mem_new(1, sizeof *listener);
    listener->links = links;
    listener->stream = stream;
    parsed.port = (uint16_t)port;
    address_format(&parsed, listener->address, sizeof listener->address);
    if (bound != NULL) {
        (void)snprintf(bound, bound_size, "%s", listener->address);
    }
    op_init(&listener->accept, links, OP_ACCEPT, listener);
    list_push_back(&links->listeners, &listener->in_links);
    accept_start(listener);
    return ERR_OK;
}
