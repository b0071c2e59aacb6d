/* SPDX-License-Identifier: Apache-2.0
 *
 * Client connections on a uv loop: reads, writes, pauses, and frees them.
 */
#include "gateway/listener_inside_uv.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"

enum { OVER_US = 2000 * 1000 }; // for what was said last, if it does not go out at once

void connection_touch(struct connection *c)
{
    if (c->client != NULL && !list_linked(&c->touched)) {
        list_push_back(&c->listener->touched, &c->touched);
    }
}

static void set_paused(struct connection *c, bool paused)
{
    struct gateway_listener *l = c->listener;

    if (paused && !list_linked(&c->paused)) {
        list_push_back(client_rests(c->client) ? &l->resting : &l->paused, &c->paused);
    } else if (!paused && list_linked(&c->paused)) {
        list_remove(&c->paused);
    }
}

/* ---- end ---- */

void connection_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;

    buffer_fini(&c->writing);
    transport_free(c->transport);
    arrival_free(c->arrival);
    mem_free(c);
}

/* It is no client any more. */
static void take_off(struct connection *c)
{
    client_free(c->client, c->listener->now_us, c->listener->effects);
    c->client = NULL;
    listener_count_left(c->listener);
    list_remove(&c->link);
    set_paused(c, false);
    if (list_linked(&c->touched)) {
        list_remove(&c->touched);
    }
}

static void close_connection(struct connection *c)
{
    if (c->client != NULL) {
        take_off(c);
        uv_close((uv_handle_t *)&c->tcp, connection_closed);
    }
}

/* ---- input ---- */

void connection_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    const struct connection *c = handle->data;

    (void)suggested;
    *buf = uv_buf_init((char *)c->listener->input, CLIENT_READ_MAX);
}

void connection_stop_reading(struct connection *c)
{
    if (c->reading) {
        uv_read_stop((uv_stream_t *)&c->tcp);
        c->reading = false;
    }
}

/* Bytes of a socket whose client's bytes don't go as they are. */
static void carried_bytes(struct connection *c, struct bytes in)
{
    struct gateway_listener *l = c->listener;
    const bool opening = transport_state(c->transport) == TRANSPORT_OPENING;

    buffer_clear(&l->plain);
    transport_on_bytes(c->transport, in, &l->plain);
    if (opening && transport_state(c->transport) != TRANSPORT_OPENING) {
        client_on_open(c->client, l->now_us);
    }
    connection_touch(c);
    if (l->plain.size > 0) {
        client_on_bytes(c->client, buffer_bytes(&l->plain), l->now_us, l->effects);
        l->act(l);
    }
    if (transport_has_left(c->transport)) {
        connection_stop_reading(c);
        client_on_end(c->client);
    }
}

void connection_take_bytes(struct connection *c, struct bytes in)
{
    struct gateway_listener *l = c->listener;

    if (c->transport != NULL) {
        carried_bytes(c, in);
        return;
    }
    client_on_bytes(c->client, in, l->now_us, l->effects);
    connection_touch(c);
    l->act(l);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct connection *c = stream->data;

    (void)listener_now(c->listener);
    if (size > 0) {
        connection_take_bytes(c, bytes_of(buf->base, (size_t)size));
    } else if (size == UV_EOF && c->transport == NULL) {
        connection_stop_reading(c);
        client_on_end(c->client);
        connection_touch(c);
    } else if (size < 0) {
        if (c->transport != NULL) {
            transport_on_end(
                c->transport); // nothing can be answered any more, not even a half-close
        }
        close_connection(c);
    }
}

static void set_reading(struct connection *c, bool wanted)
{
    if (wanted == c->reading) {
        return;
    }
    if (!wanted) {
        connection_stop_reading(c);
    } else if (uv_read_start((uv_stream_t *)&c->tcp, connection_alloc, on_read) == 0) {
        c->reading = true;
    }
}

/* ---- output ---- */

static void on_written(uv_write_t *request, int status)
{
    struct connection *c = request->data;

    buffer_fini(&c->writing);
    if (c->client == NULL) {
        return; // closed meanwhile
    }
    (void)listener_now(c->listener);
    if (status < 0) {
        close_connection(c);
        return;
    }
    client_wrote(c->client, c->listener->now_us);
    connection_touch(c);
}

/* What could not be written at once. False: the connection is broken. */
static bool write_rest(struct connection *c)
{
    const uv_buf_t buf = uv_buf_init((char *)c->writing.data, (unsigned)c->writing.size);

    c->write.data = c;
    return uv_write(&c->write, (uv_stream_t *)&c->tcp, &buf, 1, on_written) == 0;
}

/* False: the connection is broken. */
static bool send_output(struct connection *c)
{
    const struct bytes out = client_output(c->client);

    if (out.size == 0) {
        return true;
    }
    const uv_buf_t buf = buf_of(out);
    const int sent = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);
    if (sent < 0 && sent != UV_EAGAIN) {
        return false;
    }
    client_sent(c->client, sent > 0 ? (size_t)sent : 0, c->listener->now_us);
    if (client_output(c->client).size == 0) {
        return true;
    }
    client_take_output(c->client, &c->writing);
    return write_rest(c);
}

/* Move what the client has to say into its transport. */
static void load_transport(struct connection *c)
{
    struct buffer plain = {0};

    if (transport_state(c->transport) == TRANSPORT_OPEN && client_output(c->client).size > 0) {
        client_take_output(c->client, &plain);
        transport_put(c->transport, buffer_bytes(&plain));
        buffer_fini(&plain);
    }
}

/* False: the connection is broken. */
static bool send_carried(struct connection *c)
{
    struct buffer *out = transport_output(c->transport);

    if (c->writing.size > 0) {
        return true; // a write is under way: it goes on when that is over
    }
    load_transport(c);
    if (out->size == 0) {
        return true;
    }
    const uv_buf_t buf = buf_of(buffer_bytes(out));
    const int sent = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);
    if (sent < 0 && sent != UV_EAGAIN) {
        return false;
    }
    buffer_consume(out, sent > 0 ? (size_t)sent : 0);
    if (out->size == 0) {
        buffer_fini(out); // an idle connection keeps none
        client_wrote(c->client, c->listener->now_us);
        return true;
    }
    c->writing = *out;
    *out = (struct buffer){0};
    return write_rest(c);
}

static void read_on(struct connection *c, bool wanted)
{
    set_reading(c, wanted);
    set_paused(c, !c->reading);
}

static void flush_carried(struct connection *c)
{
    struct gateway_listener *l = c->listener;
    bool good = send_carried(c);

    if (good && client_is_done(c->client)) {
        transport_close(c->transport, client_is_leaving(c->client));
        good = send_carried(c);
    }
    if (!good || client_is_stuck(c->client, l->now_us)) {
        close_connection(c);
    } else if (transport_state(c->transport) != TRANSPORT_ENDED) {
        read_on(
            c, transport_state(c->transport) == TRANSPORT_OPENING || client_wants_input(c->client));
    } else if (c->writing.size == 0 && transport_output(c->transport)->size == 0) {
        take_off(c);
        turned_away_see_off(c);
    } else {
        c->over_us = c->over_us == 0 ? l->now_us : c->over_us;
        connection_stop_reading(c);
    }
}

static void end_connection(struct connection *c)
{
    if (client_lingers(c->client)) {
        take_off(c);
        turned_away_see_off(c);
    } else {
        close_connection(c);
    }
}

void listener_flush(struct gateway_listener *l)
{
    for (struct list_link *i = list_pop_front(&l->touched); i != NULL;
         i = list_pop_front(&l->touched)) {
        struct connection *c = CONTAINER_OF(i, struct connection, touched);

        if (c->transport != NULL) {
            flush_carried(c);
            continue;
        }
        if (!send_output(c) || client_is_stuck(c->client, l->now_us)) {
            close_connection(c);
            continue;
        }
        if (client_is_done(c->client)) {
            end_connection(c);
            continue;
        }
        read_on(c, client_wants_input(c->client));
    }
}

bool listener_resume(struct gateway_listener *l)
{
    struct list_link *next = NULL;

    for (struct list_link *i = list_front(&l->paused); i != NULL; i = next) {
        struct connection *c = CONTAINER_OF(i, struct connection, paused);

        next = list_next(&l->paused, i);
        client_wake(c->client, l->now_us);
        if (client_rests(c->client)) {
            list_remove(i);
            list_push_back(&l->resting, i);
            continue;
        }
        if (client_has_input(c->client)) {
            client_resume(c->client, l->now_us, l->effects);
        } else if (!client_wants_input(c->client)) {
            continue;
        }
        // It goes to the end of the queue if it still has to wait, so that all have their turn.
        list_remove(&c->paused);
        connection_touch(c);
    }
    return l->effects->count > 0;
}

void listener_reply(struct gateway_listener *l, const struct router_effect *reply,
                    struct bytes body)
{
    struct client *client = clients_find(l->clients, reply->session);

    if (client != NULL) {
        client_on_reply(client, reply, body, l->now_us);
        connection_touch(client_user(client));
    }
}

size_t listener_replies(struct gateway_listener *l, const struct router_effects *effects,
                        size_t from)
{
    struct client *client = clients_find(l->clients, effects->item[from].session);
    size_t count = 1;

    if (client != NULL) {
        count = client_on_replies(client, effects, from, l->now_us);
        connection_touch(client_user(client));
    }
    return count;
}

void listener_vouch(struct gateway_listener *l, const struct router_effect *e)
{
    struct client *client = clients_find(l->clients, e->session);

    if (client != NULL) {
        client_vouch(client, e->version, l->now_us);
        connection_touch(client_user(client));
    }
}

void listener_push(struct gateway_listener *l, const struct push_record *push)
{
    struct client *client = clients_on_push(l->clients, push, l->now_us);

    if (client != NULL) {
        connection_touch(client_user(client));
    }
}

bool listener_rests(const struct gateway_listener *l)
{
    return list_empty(&l->refused) && list_empty(&l->paused) && list_empty(&l->resting) &&
           clients_rest(l->clients);
}

void listener_tick(struct gateway_listener *l)
{
    struct client *client = NULL;

    turned_away_tick(l);
    list_splice_back(&l->paused, &l->resting); // are asked again, in turn
    while ((client = clients_go_on(l->clients, l->now_us, l->effects)) != NULL) {
        connection_touch(client_user(client));
    }
}

/* ---- start ---- */

void listener_init(struct gateway_listener *l)
{
    list_init(&l->connections);
    list_init(&l->touched);
    list_init(&l->refused);
    list_init(&l->parting);
    list_init(&l->arriving);
    list_init(&l->paused);
    list_init(&l->resting);
    l->input = mem_new(1, CLIENT_READ_MAX);
}

/* ---- the whole ---- */

static void sweep_carried(struct connection *c)
{
    const struct gateway_listener *l = c->listener;

    transport_tick(c->transport, l->now_us);
    if (transport_state(c->transport) == TRANSPORT_OPEN) {
        client_tick(c->client, l->now_us);
    }
    if (client_is_stuck(c->client, l->now_us) ||
        (c->over_us != 0 && l->now_us - c->over_us > OVER_US)) {
        close_connection(c);
    } else {
        connection_touch(c);
    }
}

void listener_sweep(struct gateway_listener *l)
{
    arrival_sweep(l);
    turned_away_sweep(l);
    for (struct list_link *i = list_front(&l->connections); i != NULL;) {
        struct connection *c = CONTAINER_OF(i, struct connection, link);

        i = list_next(&l->connections, i);
        if (c->transport != NULL) {
            sweep_carried(c);
            continue;
        }
        client_tick(c->client, l->now_us);
        if (client_is_stuck(c->client, l->now_us)) {
            close_connection(c);
        } else if (client_output(c->client).size > 0) {
            connection_touch(c);
        }
    }
}

void listener_drain(struct gateway_listener *l)
{
    arrival_close(l); // they have nothing that could be answered
    for (struct list_link *i = list_front(&l->connections); i != NULL;
         i = list_next(&l->connections, i)) {
        struct connection *c = CONTAINER_OF(i, struct connection, link);

        client_drain(c->client, l->now_us);
        connection_touch(c);
    }
}

bool listener_is_drained(const struct gateway_listener *l)
{
    return list_empty(&l->connections);
}

void listener_close(struct gateway_listener *l)
{
    arrival_close(l);
    turned_away_close(l);
    while (!list_empty(&l->connections)) {
        close_connection(CONTAINER_OF(list_front(&l->connections), struct connection, link));
    }
}

void listener_fini(struct gateway_listener *l)
{
    ASSERT(list_empty(&l->connections));
    mem_free(l->input);
    l->input = NULL;
    buffer_fini(&l->plain);
}
