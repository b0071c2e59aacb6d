/* SPDX-License-Identifier: Apache-2.0
 *
 * What two hops cost at the least: the peer of bench/frames.
 *
 *     clients ==(packets)==> relay --(one connection: u32 client, packet)--> echo
 *
 * The same packets as a gateway's, libuv and sockets as there, and nothing of what
 * a gateway is for: no ring, no order, no copies, no deadlines, no limits. The relay
 * looks at a packet's size and says whose it is; the echo answers hellos and
 * requests. Each makes one write for a connection and turn of the loop.
 *
 *     relay_uv echo HOST:PORT          relay_uv relay HOST:PORT BACK:PORT
 *
 * Prints "ready frames=HOST:PORT"; ends by a signal.
 */
#include "base/bytes.h"
#include "base/list.h"
#include "base/mem.h"
#include "gateway/protocol/packet.h"
#include "wire/address.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

enum { READ_SIZE = 256 * 1024, TAG = 4, CLIENTS_MAX = 16384, BACKLOG = 1024 };

struct peer {
    uv_tcp_t tcp;
    uv_write_t write;
    struct list_link touched;
    struct buffer in;
    struct buffer out;
    struct buffer writing;
    uint32_t number; /* of a client of the relay */
    bool writes;
    bool gone;
};

static struct {
    uv_loop_t loop;
    uv_tcp_t server;
    uv_prepare_t prepare;
    uv_connect_t connect;
    struct list touched;
    struct peer back;                 /* of the relay: to the echo */
    struct peer *client[CLIENTS_MAX]; /* of the relay; NULL = gone */
    uint32_t clients;
    /* Takes what is whole at the front; returns its size. */
    size_t (*take)(struct peer *p, struct bytes in);
    char input[READ_SIZE];
} all;

static void touch(struct peer *p)
{
    if (!p->gone && !list_linked(&p->touched)) {
        list_push_back(&all.touched, &p->touched);
    }
}

static void put_tag(struct buffer *out, uint32_t number)
{
    const uint32_t tag = htonl(number);

    buffer_put(out, &tag, sizeof tag);
}

/* The packet that stands `at` bytes into the input. */
static bool next(struct bytes in, size_t at, struct packet *p)
{
    return in.size >= at &&
           packet_next(bytes_of(in.data + at, in.size - at), PACKET_BODY_MAX, p) == PACKET_WHOLE;
}

static size_t take_of_client(struct peer *p, struct bytes in)
{
    struct packet packet;
    size_t at = 0;

    while (next(in, at, &packet)) {
        put_tag(&all.back.out, p->number);
        buffer_put(&all.back.out, in.data + at, PACKET_HEADER + packet.body.size);
        at += PACKET_HEADER + packet.body.size;
    }
    touch(&all.back);
    return at;
}

static uint32_t tag_at(struct bytes in, size_t at)
{
    uint32_t tag = 0;

    memcpy(&tag, in.data + at, sizeof tag);
    return ntohl(tag);
}

static size_t take_of_echo(struct bytes in)
{
    struct packet packet;
    size_t at = 0;

    while (next(in, at + TAG, &packet)) {
        const uint32_t number = tag_at(in, at);
        struct peer *client = number < CLIENTS_MAX ? all.client[number] : NULL;
        const size_t size = PACKET_HEADER + packet.body.size;

        if (client != NULL) {
            buffer_put(&client->out, in.data + at + TAG, size);
            touch(client);
        }
        at += TAG + size;
    }
    return at;
}

static size_t take_in_relay(struct peer *p, struct bytes in)
{
    return p == &all.back ? take_of_echo(in) : take_of_client(p, in);
}

static size_t take_in_echo(struct peer *p, struct bytes in)
{
    struct packet packet;
    struct request_packet r;
    size_t at = 0;

    while (next(in, at + TAG, &packet)) {
        if (packet.type == PACKET_HELLO) {
            put_tag(&p->out, tag_at(in, at));
            packet_put_hello_ack(&p->out,
                                 &(struct hello_ack_packet){.version = PACKET_VERSION,
                                                            .packet_size_max = PACKET_BODY_MAX,
                                                            .requests_max = 1024});
        } else if (packet.type == PACKET_REQUEST && packet_get_request(packet.body, &r) == ERR_OK) {
            put_tag(&p->out, tag_at(in, at));
            packet_put_response(
                &p->out, &(struct response_packet){.request = r.request, .payload = r.payload});
        }
        at += TAG + PACKET_HEADER + packet.body.size;
    }
    touch(p);
    return at;
}

/* ---- sockets ---- */

static void on_closed(uv_handle_t *handle)
{
    struct peer *p = handle->data;

    buffer_fini(&p->in);
    buffer_fini(&p->out);
    buffer_fini(&p->writing);
    if (p != &all.back) {
        mem_free(p);
    }
}

static void lose(struct peer *p)
{
    if (p->gone) {
        return;
    }
    p->gone = true;
    if (list_linked(&p->touched)) {
        list_remove(&p->touched);
    }
    all.client[p->number] = NULL;
    uv_close((uv_handle_t *)&p->tcp, on_closed);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(all.input, sizeof all.input);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct peer *p = stream->data;

    if (size < 0) {
        lose(p);
    } else if (p->in.size == 0) {
        const size_t used = all.take(p, bytes_of(buf->base, (size_t)size));

        buffer_put(&p->in, buf->base + used, (size_t)size - used);
    } else {
        buffer_put(&p->in, buf->base, (size_t)size);
        buffer_consume(&p->in, all.take(p, buffer_bytes(&p->in)));
    }
}

static void on_written(uv_write_t *request, int status)
{
    struct peer *p = request->data;

    p->writes = false;
    buffer_clear(&p->writing);
    if (status < 0) {
        lose(p);
    } else if (p->out.size > 0) {
        touch(p);
    }
}

static void flush(struct peer *p)
{
    uv_buf_t buf = uv_buf_init((char *)p->out.data, (unsigned)p->out.size);

    if (p->writes || p->out.size == 0) {
        return;
    }
    const int sent = uv_try_write((uv_stream_t *)&p->tcp, &buf, 1);

    if (sent == (int)p->out.size) {
        buffer_clear(&p->out);
        return;
    }
    if (sent < 0 && sent != UV_EAGAIN) {
        lose(p);
        return;
    }
    buffer_consume(&p->out, sent > 0 ? (size_t)sent : 0);
    const struct buffer empty = p->writing;

    p->writing = p->out;
    p->out = empty;
    buf = uv_buf_init((char *)p->writing.data, (unsigned)p->writing.size);
    p->writes = true;
    p->write.data = p;
    if (uv_write(&p->write, (uv_stream_t *)&p->tcp, &buf, 1, on_written) != 0) {
        lose(p);
    }
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct list_link *l = NULL;

    (void)prepare;
    while ((l = list_pop_front(&all.touched)) != NULL) {
        flush(CONTAINER_OF(l, struct peer, touched));
    }
}

static void on_connection(uv_stream_t *server, int status)
{
    struct peer *p = mem_new(1, sizeof *p);

    p->number = ++all.clients; // 0 is the echo's
    p->tcp.data = p;
    (void)uv_tcp_init(server->loop, &p->tcp);
    if (status < 0 || p->number >= CLIENTS_MAX || uv_accept(server, (uv_stream_t *)&p->tcp) != 0) {
        p->number = 0;
        uv_close((uv_handle_t *)&p->tcp, on_closed);
        return;
    }
    all.client[p->number] = p;
    (void)uv_tcp_nodelay(&p->tcp, 1);
    (void)uv_read_start((uv_stream_t *)&p->tcp, on_alloc, on_read);
}

/* ---- start ---- */

/* 127.0.0.1:PORT, as the script gives it. */
static struct sockaddr_in read_address(const char *text)
{
    struct address address = {.host = "127.0.0.1"};
    struct sockaddr_in out = {0};

    if (address_parse(text, &address) == ERR_OK) {
        (void)uv_ip4_addr(address.host, address.port, &out);
    }
    return out;
}

static void on_connected(uv_connect_t *connect, int status)
{
    (void)connect;
    if (status < 0) {
        (void)fprintf(stderr, "relay_uv: the echo: %s\n", uv_strerror(status));
        uv_stop(&all.loop);
        return;
    }
    (void)uv_tcp_nodelay(&all.back.tcp, 1);
    (void)uv_read_start((uv_stream_t *)&all.back.tcp, on_alloc, on_read);
    touch(&all.back);
}

static void dial_echo(const char *text)
{
    const struct sockaddr_in to = read_address(text);

    all.back.tcp.data = &all.back;
    (void)uv_tcp_init(&all.loop, &all.back.tcp);
    (void)uv_tcp_connect(&all.connect, &all.back.tcp, (const struct sockaddr *)&to, on_connected);
}

static int serve(const char *text)
{
    struct sockaddr_in at = read_address(text);
    int size = sizeof at;

    (void)uv_tcp_init(&all.loop, &all.server);
    (void)uv_prepare_init(&all.loop, &all.prepare);
    (void)uv_prepare_start(&all.prepare, on_prepare);
    if (uv_tcp_bind(&all.server, (const struct sockaddr *)&at, 0) != 0 ||
        uv_listen((uv_stream_t *)&all.server, BACKLOG, on_connection) != 0 ||
        uv_tcp_getsockname(&all.server, (struct sockaddr *)&at, &size) != 0) {
        (void)fprintf(stderr, "relay_uv: cannot listen on %s\n", text);
        return 1;
    }
    (void)printf("ready frames=127.0.0.1:%u\n", ntohs(at.sin_port));
    (void)fflush(stdout);
    return uv_run(&all.loop, UV_RUN_DEFAULT);
}

int main(int argc, char **argv)
{
    const bool relays = argc == 4 && strcmp(argv[1], "relay") == 0;

    if (!relays && !(argc == 3 && strcmp(argv[1], "echo") == 0)) {
        (void)fprintf(stderr, "usage: relay_uv echo HOST:PORT | relay HOST:PORT ECHO:PORT\n");
        return 1;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    if (uv_loop_init(&all.loop) != 0) {
        return 1;
    }
    list_init(&all.touched);
    all.take = relays ? take_in_relay : take_in_echo;
    if (relays) {
        dial_echo(argv[3]);
    }
    return serve(argv[2]);
}
