/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes connections from other processes in, and makes room when there are too
 * many strangers.
 */
#include "link/links.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { ACCEPT_RETRY_US = 20 * 1000 }; /* out of descriptors, for one: not in a busy loop */

/* Close the oldest connection that has not greeted yet: strangers that say nothing must not keep
 * out those who would. */
static bool make_room(struct links *links)
{
    struct list_link *at = list_front(&links->conns);

    for (; at != NULL; at = list_next(&links->conns, at)) {
        struct conn *conn = CONTAINER_OF(at, struct conn, in_links);

        if (!conn->link->dialled && !conn->link->up) {
            conn_close(conn, "closed to make room for a newer connection");
            return true;
        }
    }
    return false;
}

static void admit(struct links *links, struct stream *stream)
{
    const struct transport_ops *ops = links->transport->ops;
    char address[ADDRESS_SIZE_MAX + 8];
    struct address peer;

    ops->peer(stream, &peer);
    address_format(&peer, address, sizeof address);
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
            ops->close(stream);
            (void)ops->stream_free(stream, true);
            return;
        }
    }
    conn_new(links, link_new(links, address, false), stream);
}

void listener_on_accept(struct listener *listener, struct stream *stream, int error)
{
    struct links *links = listener->links;

    if (error == 0) {
        admit(links, stream);
        return;
    }
    listener->paused = true;
    listener->retry_at_us = links->now_us + ACCEPT_RETRY_US;
    if (links_may_log(links)) {
        log_warn("link",
                 "accept",
                 "address=%s reason=\"%s\"",
                 listener->address,
                 links->transport->ops->error_text(error));
    }
}

void listener_on_timer(struct listener *listener)
{
    if (listener->paused && listener->links->now_us >= listener->retry_at_us) {
        listener->paused = false;
        listener->links->transport->ops->accept(listener->acceptor);
    }
}

void listener_free(struct listener *listener)
{
    listener->links->transport->ops->acceptor_free(listener->acceptor);
    list_remove(&listener->in_links);
    mem_free(listener);
}

enum err links_listen(struct links *links, const char *address, char *bound, size_t bound_size)
{
    const struct transport_ops *ops = links->transport->ops;
    struct address parsed;

    if (address_parse(address, &parsed) != ERR_OK) {
        log_error("link", "listen", "address=%s reason=\"not host:port\"", address);
        return ERR_INVALID;
    }
    struct listener *listener = mem_new(1, sizeof *listener);
    const int error = ops->acceptor_new(links->transport, &parsed, listener, &listener->acceptor);
    if (error != 0) {
        log_error("link", "listen", "address=%s reason=\"%s\"", address, ops->error_text(error));
        mem_free(listener);
        return ops->listen_error(error);
    }
    listener->links = links;
    address_format(&parsed, listener->address, sizeof listener->address);
    if (bound != NULL) {
        (void)snprintf(bound, bound_size, "%s", listener->address);
    }
    list_push_back(&links->listeners, &listener->in_links);
    ops->accept(listener->acceptor);
    return ERR_OK;
}
