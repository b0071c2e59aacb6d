/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection comes: whose it is, and whether it is let in.
 */
#include "gateway/listener_inside_uv.h"

#include "base/mem.h"
#include "gateway/port_uv.h"

#include <unistd.h>

enum { KEEPALIVE_S = 60 };

static void get_peer(const struct connection *c, struct sockaddr_storage *storage)
{
    int length = sizeof *storage;

    *storage = (struct sockaddr_storage){0};
    (void)uv_tcp_getpeername(&c->tcp, (struct sockaddr *)storage, &length);
}

void connection_name(const struct connection *c, char peer[CONNECTION_PEER_SIZE])
{
    struct sockaddr_storage storage;

    get_peer(c, &storage);
    port_text(&storage, peer, CONNECTION_PEER_SIZE);
}

bool connection_address(const struct connection *c, uint8_t address[16])
{
    struct sockaddr_storage storage;

    get_peer(c, &storage);
    return port_address(&storage, address);
}

/* A connection without a socket yet, or NULL. */
static struct connection *begin(struct gateway_listener *l, uv_loop_t *loop)
{
    struct connection *c = mem_new(1, sizeof *c);

    (void)listener_now(l);
    c->listener = l;
    c->tcp.data = c;
    if (uv_tcp_init(loop, &c->tcp) != 0) {
        mem_free(c);
        listener_count_left(l);
        return NULL;
    }
    return c;
}

void connection_admit(struct connection *c, enum entry entry, const char *peer, struct bytes in)
{
    const enum client_speech speech = entry_shape(entry).speech;
    struct gateway_listener *l = c->listener;
    struct admission_result admission_result;

    c->transport = transport_new(entry, &l->transports, l->now_us);
    if (!clients_admit(l->clients, speech, peer, l->now_us, &admission_result)) {
        listener_count_left(l);
        turned_away(c, admission_result.refusal, in);
        return;
    }
    (void)uv_tcp_nodelay(&c->tcp, 1);
    (void)uv_tcp_keepalive(&c->tcp, 1, KEEPALIVE_S);
    c->client = client_new(l->clients, speech, peer, l->now_us);
    client_let_in(c->client, admission_result.client_address);
    client_set_user(c->client, c);
    list_push_back(&l->connections, &c->link);
    connection_touch(c);
    if (in.size > 0) {
        connection_take_bytes(c, in);
    }
}

/* It has its socket, or not. */
static void admit(struct connection *c, enum entry entry, int failed)
{
    char peer[CONNECTION_PEER_SIZE];

    if (failed != 0) {
        listener_count_left(c->listener);
        uv_close((uv_handle_t *)&c->tcp, connection_closed);
    } else if (arrival_wanted(c->listener, entry, c)) {
        arrival_begin(c, entry);
    } else {
        connection_name(c, peer);
        connection_admit(c, entry, peer, bytes_of(NULL, 0));
    }
}

void listener_accept(struct gateway_listener *l, struct port *port)
{
    struct connection *c = begin(l, port->tcp.loop);

    if (c != NULL) {
        admit(c, port->entry, uv_accept((uv_stream_t *)&port->tcp, (uv_stream_t *)&c->tcp));
    }
}

void listener_take(struct gateway_listener *l, uv_loop_t *loop, enum entry entry, int fd)
{
    struct connection *c = begin(l, loop);
    const int failed = c == NULL ? UV_ENOMEM : uv_tcp_open(&c->tcp, fd);

    if (failed != 0) {
        (void)close(fd);
    }
    if (c != NULL) {
        admit(c, entry, failed);
    }
}
