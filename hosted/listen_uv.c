/* SPDX-License-Identifier: Apache-2.0
 *
 * Sockets of hosts, on a thread of their own: what comes goes into links, what links have to say
 * leaves in one write a turn of the loop.
 */
#include "hosted/inside.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <uv.h>

enum { TICK_MS = 100, ROOM = 256 * 1024, BACKLOG = 64, GOODBYE_MS = 1000 };

struct hosted_listener {
    struct hosted *hosted;
    uv_loop_t loop;
    uv_thread_t thread;
    union {
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } socket;
    uv_async_t wake;
    uv_timer_t tick;
    struct list peers; /* struct hosted_peer */
    _Atomic bool stops;
    uint64_t stops_us; /* 0 = not yet; until when goodbyes may leave */
    bool is_closed;
    uint8_t room[ROOM]; /* for what is read */
};

/* A socket, and its link. */
struct hosted_peer {
    struct hosted_listener *listener;
    struct list_link in_listener;
    struct hosted_link *link; /* owned */
    union {
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } socket;
    uv_write_t write;
    struct buffer out; /* being written */
    bool writes;
    bool reads;
    bool over; /* when this is written it is closed */
};

/* ---- closing */

static void on_closed(uv_handle_t *handle)
{
    struct hosted_peer *p = handle->data;

    hosted_link_free(p->link);
    buffer_fini(&p->out);
    list_remove(&p->in_listener);
    mem_free(p);
}

static void close_peer(struct hosted_peer *p)
{
    if (!uv_is_closing((uv_handle_t *)&p->socket)) {
        hosted_link_end(p->link, RH__HOST__REASON__REASON_NONE, "the host closed");
        uv_close((uv_handle_t *)&p->socket, on_closed);
    }
}

/* ---- writing */

static void flush(struct hosted_peer *p);

static void on_written(uv_write_t *write, int status)
{
    struct hosted_peer *p = write->data;

    p->writes = false;
    buffer_clear(&p->out);
    if (status < 0) {
        close_peer(p);
    } else {
        flush(p);
    }
}

/* Write what the link has to say, if nothing is being written. */
static void flush(struct hosted_peer *p)
{
    if (p->writes || uv_is_closing((uv_handle_t *)&p->socket)) {
        return;
    }
    p->over = hosted_link_take(p->link, &p->out);
    if (p->out.size == 0) {
        if (p->over) {
            close_peer(p);
        }
        return;
    }
    const uv_buf_t all = uv_buf_init((char *)p->out.data, (unsigned)p->out.size);
    p->write.data = p;
    p->writes = uv_write(&p->write, &p->socket.stream, &all, 1, on_written) == 0;
    if (!p->writes) {
        close_peer(p);
    }
}

/* ---- reading */

static void on_room(uv_handle_t *handle, size_t hint, uv_buf_t *room)
{
    const struct hosted_peer *p = handle->data;

    (void)hint;
    *room = uv_buf_init((char *)p->listener->room, sizeof p->listener->room);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *room)
{
    struct hosted_peer *p = stream->data;

    if (size < 0) {
        close_peer(p);
        return;
    }
    hosted_link_receive(p->link, bytes_of(room->base, (size_t)size));
    if (hosted_is_full(p->listener->hosted)) {
        (void)uv_read_stop(stream);
        p->reads = false;
    }
}

static void read_on(struct hosted_peer *p)
{
    if (!p->reads && !uv_is_closing((uv_handle_t *)&p->socket)) {
        p->reads = uv_read_start(&p->socket.stream, on_room, on_read) == 0;
    }
}

static void on_connection(uv_stream_t *server, int status)
{
    struct hosted_listener *l = server->data;

    if (status < 0) {
        return;
    }
    struct hosted_peer *p = mem_new(1, sizeof *p);
    p->listener = l;
    if (server->type == UV_TCP) {
        (void)uv_tcp_init(&l->loop, &p->socket.tcp);
    } else {
        (void)uv_pipe_init(&l->loop, &p->socket.pipe, 0);
    }
    p->socket.stream.data = p;
    p->link = hosted_link_new(l->hosted);
    list_push_back(&l->peers, &p->in_listener);
    if (uv_accept(server, &p->socket.stream) != 0) {
        close_peer(p);
        return;
    }
    if (server->type == UV_TCP) {
        (void)uv_tcp_nodelay(&p->socket.tcp, 1);
    }
    read_on(p);
    flush(p);
}

/* ---- its loop */

static void say_goodbye(struct hosted_listener *l)
{
    l->stops_us = clock_boottime_us() + GOODBYE_MS * 1000ull;
    for (struct list_link *at = list_front(&l->peers); at != NULL; at = list_next(&l->peers, at)) {
        hosted_link_end(CONTAINER_OF(at, struct hosted_peer, in_listener)->link,
                        RH__HOST__REASON__REASON_STOPS,
                        "the node stops");
    }
    uv_close((uv_handle_t *)&l->socket, NULL);
}

/* When all is said, or it takes too long. */
static void close_all(struct hosted_listener *l)
{
    const bool late = clock_boottime_us() >= l->stops_us;
    struct list_link *next = NULL;

    for (struct list_link *at = list_front(&l->peers); late && at != NULL; at = next) {
        next = list_next(&l->peers, at);
        close_peer(CONTAINER_OF(at, struct hosted_peer, in_listener));
    }
    if ((late || list_empty(&l->peers)) && !l->is_closed) {
        l->is_closed = true;
        uv_close((uv_handle_t *)&l->wake, NULL);
        uv_close((uv_handle_t *)&l->tick, NULL);
    }
}

static void look(struct hosted_listener *l)
{
    const bool full = hosted_is_full(l->hosted);
    struct list_link *next = NULL;

    if (atomic_load(&l->stops) && l->stops_us == 0) {
        say_goodbye(l);
    }
    for (struct list_link *at = list_front(&l->peers); at != NULL; at = next) {
        struct hosted_peer *p = CONTAINER_OF(at, struct hosted_peer, in_listener);

        next = list_next(&l->peers, at);
        flush(p);
        if (!full) {
            read_on(p);
        }
    }
    if (l->stops_us != 0) {
        close_all(l);
    }
}

static void on_wake(uv_async_t *wake)
{
    look(wake->data);
}

static void on_tick(uv_timer_t *timer)
{
    struct hosted_listener *l = timer->data;

    hosted_tick(l->hosted, clock_boottime_us());
    look(l);
}

/* From any thread. */
static void on_output(void *context)
{
    struct hosted_listener *l = context;

    (void)uv_async_send(&l->wake);
}

static void run(void *argument)
{
    struct hosted_listener *l = argument;

    (void)uv_run(&l->loop, UV_RUN_DEFAULT);
}

static bool open_socket(struct hosted_listener *l)
{
    const int fd = l->hosted->options.listener;
    const bool is_pipe = uv_guess_handle(fd) == UV_NAMED_PIPE;
    int error = is_pipe ? uv_pipe_init(&l->loop, &l->socket.pipe, 0)
                        : uv_tcp_init(&l->loop, &l->socket.tcp);

    l->socket.stream.data = l;
    if (error == 0) {
        error = is_pipe ? uv_pipe_open(&l->socket.pipe, fd) : uv_tcp_open(&l->socket.tcp, fd);
    }
    if (error == 0) {
        error = uv_listen(&l->socket.stream, BACKLOG, on_connection);
    }
    if (error != 0) {
        (void)fprintf(stderr, "ringhold node: --host: %s\n", uv_strerror(error));
    }
    return error == 0;
}

struct hosted_listener *hosted_listener_new(struct hosted *h)
{
    struct hosted_listener *l = mem_new(1, sizeof *l);

    l->hosted = h;
    list_init(&l->peers);
    (void)uv_loop_init(&l->loop);
    (void)uv_async_init(&l->loop, &l->wake, on_wake);
    (void)uv_timer_init(&l->loop, &l->tick);
    l->wake.data = l;
    l->tick.data = l;
    (void)uv_timer_start(&l->tick, on_tick, TICK_MS, TICK_MS);
    const bool opened = open_socket(l);
    h->context = l;
    h->on_output = on_output;
    if (!opened || uv_thread_create(&l->thread, run, l) != 0) {
        mem_free(l); // and the process ends
        return NULL;
    }
    return l;
}

void hosted_listener_free(struct hosted_listener *l)
{
    atomic_store(&l->stops, true);
    (void)uv_async_send(&l->wake);
    (void)uv_thread_join(&l->thread);
    (void)uv_loop_close(&l->loop);
    mem_free(l);
}
