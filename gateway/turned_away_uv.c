/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections that are not let in.
 *
 *     PARTING -its transport is open: told-> REFUSED   in time, or the transport ends it
 *     REFUSED -its end, a second, 64 KiB, too many of them-> closed
 *
 * A page can't read what HTTP says to a WebSocket that is refused, and nobody what is said before
 * TLS is there. So those that a transport carries have their handshakes first, as long as they are
 * few; they hold no client, and nothing that they say is kept.
 */
#include "gateway/listener_inside_uv.h"

enum {
    /* Who is turned away may be speaking already. Closing on what it said would make the kernel
     * drop the refusal on the way, so it is read, and dropped, for a while. */
    REFUSED_MAX = 1024,
    REFUSED_READ_MAX = 64 * 1024,
    REFUSED_US = 1000 * 1000,
    PARTING_MAX = 1024,
    PARTING_OVER_US = 2000 * 1000, // for what was said last
};

/* ---- told ---- */

static void end_refused(struct connection *c)
{
    list_remove(&c->link);
    c->listener->refused_count--;
    uv_close((uv_handle_t *)&c->tcp, connection_closed);
}

static void on_refused_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct connection *c = stream->data;

    (void)buf;
    c->refused_size += size > 0 ? (size_t)size : 0;
    if (size < 0 || c->refused_size > REFUSED_READ_MAX) {
        end_refused(c);
    }
}

/* At most `most` stay, none that was turned away before `since_us`. */
static void end_refused_but(struct gateway_listener *l, size_t most, uint64_t since_us)
{
    while (!list_empty(&l->refused)) {
        struct connection *c = CONTAINER_OF(list_front(&l->refused), struct connection, link);

        if (l->refused_count <= most && c->refused_us >= since_us) {
            return;
        }
        end_refused(c);
    }
}

void turned_away_see_off(struct connection *c)
{
    struct gateway_listener *l = c->listener;
    uv_os_fd_t fd = -1;

    connection_stop_reading(c);
    if (uv_fileno((uv_handle_t *)&c->tcp, &fd) != 0 || shutdown(fd, SHUT_WR) != 0 ||
        uv_read_start((uv_stream_t *)&c->tcp, connection_alloc, on_refused_read) != 0) {
        uv_close((uv_handle_t *)&c->tcp, connection_closed);
        return;
    }
    end_refused_but(l, REFUSED_MAX - 1, 0);
    c->refused_us = l->now_us;
    list_push_back(&l->refused, &c->link);
    l->refused_count++;
}

/* ---- to be told ---- */

static void end_parting(struct connection *c)
{
    list_remove(&c->link);
    c->listener->parting_count--;
    uv_close((uv_handle_t *)&c->tcp, connection_closed);
}

/* Send what its transport says; see it off behind the last of it. */
static void flush_parting(struct connection *c)
{
    struct buffer *out = transport_output(c->transport);

    if (out->size > 0) {
        const uv_buf_t buf = buf_of(buffer_bytes(out));
        const int sent = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);

        if (sent < 0 && sent != UV_EAGAIN) {
            end_parting(c);
            return;
        }
        buffer_consume(out, sent > 0 ? (size_t)sent : 0);
    }
    if (transport_state(c->transport) == TRANSPORT_ENDED && out->size == 0) {
        list_remove(&c->link);
        c->listener->parting_count--;
        turned_away_see_off(c);
    }
}

static void take(struct connection *c, struct bytes in)
{
    struct gateway_listener *l = c->listener;

    buffer_clear(&l->plain);
    transport_on_bytes(c->transport, in, &l->plain);
    flush_parting(c);
}

static void on_parting_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct connection *c = stream->data;

    (void)listener_now(c->listener);
    if (size < 0) {
        transport_on_end(c->transport);
        end_parting(c);
    } else if (size > 0) {
        take(c, bytes_of(buf->base, (size_t)size));
    }
}

static void part(struct connection *c, struct bytes words, struct bytes in)
{
    struct gateway_listener *l = c->listener;

    transport_part(c->transport, words);
    if (uv_read_start((uv_stream_t *)&c->tcp, connection_alloc, on_parting_read) != 0) {
        uv_close((uv_handle_t *)&c->tcp, connection_closed);
        return;
    }
    c->reading = true;
    list_push_back(&l->parting, &c->link);
    l->parting_count++;
    take(c, in);
}

/* It may not get these words, and is closed anyway. */
static void tell_at_once(struct connection *c, struct bytes words)
{
    const uv_buf_t buf = buf_of(words);

    (void)uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);
    turned_away_see_off(c);
}

void turned_away(struct connection *c, struct bytes words, struct bytes in)
{
    if (c->transport == NULL) {
        tell_at_once(c, words);
    } else if (transport_state(c->transport) == TRANSPORT_OPENING &&
               c->listener->parting_count < PARTING_MAX) {
        part(c, words, in);
    } else {
        transport_refuse(c->transport, words);
        tell_at_once(c, buffer_bytes(transport_output(c->transport)));
    }
}

/* ---- time ---- */

void turned_away_tick(struct gateway_listener *l)
{
    end_refused_but(l, REFUSED_MAX, l->now_us - REFUSED_US);
}

void turned_away_sweep(struct gateway_listener *l)
{
    for (struct list_link *i = list_front(&l->parting); i != NULL;) {
        struct connection *c = CONTAINER_OF(i, struct connection, link);

        i = list_next(&l->parting, i);
        transport_tick(c->transport, l->now_us);
        if (transport_state(c->transport) == TRANSPORT_ENDED) {
            c->over_us = c->over_us == 0 ? l->now_us : c->over_us;
        }
        if (c->over_us != 0 && l->now_us - c->over_us > PARTING_OVER_US) {
            end_parting(c);
        } else {
            flush_parting(c);
        }
    }
}

void turned_away_close(struct gateway_listener *l)
{
    while (!list_empty(&l->parting)) {
        end_parting(CONTAINER_OF(list_front(&l->parting), struct connection, link));
    }
    end_refused_but(l, 0, 0);
}
