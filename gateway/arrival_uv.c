/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections that a trusted proxy hands on: first comes a header that says whose they are
 * (proxy.h), and only then can they be judged.
 *
 *     ARRIVING -the header is whole-> admitted, or turned away, as the address that it names
 *              -no header, too late, its end, too many of them-> closed without a word
 */
#include "gateway/listener_inside_uv.h"

#include "base/log.h"
#include "base/mem.h"
#include "gateway/access/proxy.h"

#include <string.h>

enum { ARRIVING_MAX = 1024 };

struct proxy_arrival {
    enum entry entry;
    uint64_t since_us;
    struct buffer head; /* what came of the header, and maybe behind it */
};

void arrival_free(struct proxy_arrival *a)
{
    if (a != NULL) {
        buffer_fini(&a->head);
        mem_free(a);
    }
}

static void count(struct gateway_listener *l, enum transport_event event)
{
    l->transports.stats->count[event]++;
}

static void leave(struct connection *c)
{
    list_remove(&c->link);
    c->listener->arriving_count--;
    connection_stop_reading(c);
}

static void end(struct connection *c, enum transport_event why)
{
    count(c->listener, why);
    leave(c);
    listener_count_left(c->listener);
    uv_close((uv_handle_t *)&c->tcp, connection_closed);
}

/* The header is whole: whoever it names comes in now, or the proxy itself. */
static void pass(struct connection *c, const struct proxy_header *header, bool named)
{
    struct proxy_arrival *a = c->arrival;
    char peer[CONNECTION_PEER_SIZE];

    count(c->listener, named ? TRANSPORT_PROXY_NAMED : TRANSPORT_PROXY_UNNAMED);
    leave(c);
    c->arrival = NULL;
    if (named) {
        port_name(header->address, header->port, peer, sizeof peer);
    } else {
        connection_name(c, peer);
    }
    connection_admit(
        c, a->entry, peer, bytes_of(a->head.data + header->size, a->head.size - header->size));
    arrival_free(a);
}

static void on_arrival_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct connection *c = stream->data;
    struct proxy_header header;

    (void)listener_now(c->listener);
    if (size < 0) {
        end(c, TRANSPORT_PROXY_GAVE_UP);
        return;
    }
    buffer_put(&c->arrival->head, buf->base, (size_t)size);
    switch (proxy_parse(buffer_bytes(&c->arrival->head), &header)) {
    case PROXY_MORE:
        break;
    case PROXY_NAMED:
        pass(c, &header, true);
        break;
    case PROXY_UNNAMED:
        pass(c, &header, false);
        break;
    case PROXY_BAD:
        end(c, TRANSPORT_PROXY_BAD);
        break;
    }
}

bool arrival_wanted(const struct gateway_listener *l, enum entry entry, const struct connection *c)
{
    uint8_t address[PROXY_ADDRESS_SIZE];

    return l->proxies.count > 0 && entry_shape(entry).speech != CLIENT_RESP &&
           connection_address(c, address) && ranges_have(&l->proxies, address);
}

void arrival_begin(struct connection *c, enum entry entry)
{
    struct gateway_listener *l = c->listener;

    c->arrival = mem_new(1, sizeof *c->arrival);
    c->arrival->entry = entry;
    c->arrival->since_us = l->now_us;
    list_push_back(&l->arriving, &c->link);
    l->arriving_count++;
    if (l->arriving_count > ARRIVING_MAX) {
        end(c, TRANSPORT_PROXY_FULL);
        return;
    }
    c->reading = uv_read_start((uv_stream_t *)&c->tcp, connection_alloc, on_arrival_read) == 0;
    if (!c->reading) {
        end(c, TRANSPORT_PROXY_GAVE_UP);
    }
}

/* The oldest are in front. */
void arrival_sweep(struct gateway_listener *l)
{
    const uint64_t opening_us = (uint64_t)l->transports.opening_ms * 1000;

    while (!list_empty(&l->arriving)) {
        struct connection *c = CONTAINER_OF(list_front(&l->arriving), struct connection, link);

        if (l->now_us - c->arrival->since_us <= opening_us) {
            return;
        }
        end(c, TRANSPORT_PROXY_TIMEOUT);
    }
}

void arrival_close(struct gateway_listener *l)
{
    while (!list_empty(&l->arriving)) {
        end(CONTAINER_OF(list_front(&l->arriving), struct connection, link),
            TRANSPORT_PROXY_GAVE_UP);
    }
}
