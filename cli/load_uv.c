/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/load_uv.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/prng.h"
#include "gateway/packet.h"
#include "wire/address.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

enum {
    READ_SIZE = 256 * 1024,
    OPEN_DEPTH_MAX = 1024, /* open loop: requests of a connection under way */
    PERIOD_US = 100,       /* open loop: between two looks at the schedule */
    GREET_US = 5 * 1000 * 1000,
    LINGER_US = 2 * 1000 * 1000, /* for answers after the end */
};

enum stage { GREETING, WARMING, COUNTING, LINGERING };

struct run;

struct conn {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    struct run *run;
    struct list_link touched;
    struct buffer in;
    struct buffer out;
    struct buffer writing;
    uint64_t *since_us; /* owned; of request number i: when it was due; 0 = it is not under way */
    uint32_t *free;     /* owned: numbers that are not under way */
    uint32_t free_count;
    uint32_t depth;
    double due_us; /* open loop: of the next request */
    bool writes;   /* a write is under way */
    bool greeted;
    bool gone;
};

struct run {
    const struct fleet_load *load;
    struct fleet_load_result *result;
    uv_loop_t loop;
    uv_prepare_t prepare;
    uv_poll_t poll;
    uv_timer_t tick; /* for stages */
    struct conn *conn;
    struct list touched;
    struct prng random;
    enum stage stage;
    uint64_t now_us;
    uint64_t stage_us; /* since when */
    uint64_t counted_from_us;
    uint32_t greeted;
    uint8_t *input; /* owned: one read buffer for all */
    uint8_t *payload;
    int timer; /* timerfd, or -1 */
};

static void touch(struct conn *c)
{
    if (!c->gone && !list_linked(&c->touched)) {
        list_push_back(&c->run->touched, &c->touched);
    }
}

static void lose(struct conn *c, const char *why)
{
    struct run *r = c->run;

    if (c->gone) {
        return;
    }
    c->gone = true;
    if (list_linked(&c->touched)) {
        list_remove(&c->touched);
    }
    if (r->result->closed++ == 0) {
        (void)snprintf(r->result->reason, sizeof r->result->reason, "%s", why);
    }
    uv_close((uv_handle_t *)&c->tcp, NULL);
}

/* ---- requests ---- */

static void ask(struct conn *c, uint64_t since_us)
{
    struct run *r = c->run;
    const uint32_t number = c->free[--c->free_count];
    char id[16];
    const int size =
        snprintf(id, sizeof id, "b%u", (unsigned)prng_between(&r->random, 1, r->load->ids));

    c->since_us[number] = since_us;
    packet_put_request(&c->out,
                       PACKET_REQUEST,
                       &(struct request_packet){.request = number,
                                                .kind = (uint16_t)r->load->kind,
                                                .id = bytes_of(id, (size_t)size),
                                                .payload = bytes_of(r->payload, r->load->size)});
    touch(c);
}

/* To the next arrival of this connection's share. */
static double gap_us(struct run *r)
{
    const double mean = 1e6 * r->load->connections / r->load->rate;
    const double uniform = ((double)(prng_u64(&r->random) >> 11) + 0.5) / 9007199254740992.0;

    return r->load->poisson ? -mean * log(uniform) : mean;
}

static void ask_what_is_due(struct conn *c)
{
    struct run *r = c->run;

    while (c->due_us <= (double)r->now_us && c->free_count > 0) {
        const uint64_t since_us = (uint64_t)c->due_us;
        const uint64_t late_us = r->now_us - since_us;

        ask(c, since_us);
        if (r->stage == COUNTING && late_us > r->result->late_max_us) {
            r->result->late_max_us = late_us;
        }
        c->due_us += gap_us(r);
    }
}

static void ask_all(struct run *r)
{
    for (uint32_t i = 0; i < r->load->connections; i++) {
        struct conn *c = &r->conn[i];

        if (c->gone) {
            continue;
        }
        if (r->load->rate > 0) {
            ask_what_is_due(c);
        } else {
            while (c->free_count > 0) {
                ask(c, r->now_us);
            }
        }
    }
}

static bool asks(const struct run *r)
{
    return r->stage == WARMING || r->stage == COUNTING;
}

/* ---- answers ---- */

static void on_response(struct conn *c, const struct response_packet *p)
{
    struct run *r = c->run;

    if (p->request >= c->depth || c->since_us[p->request] == 0) {
        lose(c, "an answer to what was not asked");
        return;
    }
    const uint64_t since_us = c->since_us[p->request];

    c->since_us[p->request] = 0;
    r->result->answered++;
    c->free[c->free_count++] = p->request;
    // Open loop: what was due in the time that counts, however late its answer is.
    const bool counts = r->load->rate > 0 ? r->stage >= COUNTING && since_us >= r->counted_from_us
                                          : r->stage == COUNTING;
    if (counts) {
        r->result->status[p->status]++;
        if (p->status == STATUS_OK) {
            histogram_add(&r->result->latency, r->now_us > since_us ? r->now_us - since_us : 0);
        }
    }
    if (!asks(r)) {
        return;
    }
    if (r->load->rate > 0) {
        ask_what_is_due(c);
    } else {
        ask(c, r->now_us);
    }
}

static void on_hello_ack(struct conn *c, const struct hello_ack_packet *ack)
{
    struct run *r = c->run;

    c->greeted = true;
    r->greeted++;
    c->depth = c->depth < ack->requests_max ? c->depth : ack->requests_max;
    for (uint32_t i = 0; i < c->depth; i++) {
        c->free[i] = c->depth - 1 - i;
    }
    c->free_count = c->depth;
}

static void on_packet(struct conn *c, const struct packet *p)
{
    struct hello_ack_packet ack;
    struct response_packet response;
    struct notice_packet notice;
    char why[128];

    if (p->type == PACKET_RESPONSE && packet_get_response(p->body, &response) == ERR_OK) {
        on_response(c, &response);
    } else if (p->type == PACKET_HELLO_ACK && !c->greeted &&
               packet_get_hello_ack(p->body, &ack) == ERR_OK && ack.requests_max > 0) {
        on_hello_ack(c, &ack);
    } else if (p->type == PACKET_PING && p->body.size <= PACKET_PING_MAX) {
        packet_put_ping(&c->out, PACKET_PONG, p->body);
        touch(c);
    } else if ((p->type == PACKET_KICK || p->type == PACKET_GOAWAY) &&
               packet_get_notice(p->body, &notice) == ERR_OK) {
        (void)snprintf(why,
                       sizeof why,
                       "%s %u: %.*s",
                       p->type == PACKET_KICK ? "kicked," : "sent away,",
                       (unsigned)notice.number,
                       (int)(notice.text.size < 80 ? notice.text.size : 80),
                       (const char *)notice.text.data);
        lose(c, why);
    }
}

/* Returns how many bytes of `in` were whole packets. */
static size_t take(struct conn *c, struct bytes in)
{
    size_t at = 0;
    struct packet p;

    while (!c->gone &&
           packet_next(bytes_of(in.data + at, in.size - at), PACKET_BODY_MAX, &p) == PACKET_WHOLE) {
        at += PACKET_HEADER + p.body.size;
        on_packet(c, &p);
    }
    return at;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    const struct conn *c = handle->data;

    (void)suggested;
    *buf = uv_buf_init((char *)c->run->input, READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct conn *c = stream->data;

    if (size < 0) {
        lose(c, size == UV_EOF ? "the gateway closed it" : uv_strerror((int)size));
        return;
    }
    c->run->now_us = clock_boottime_us();
    if (c->in.size == 0) {
        const struct bytes in = bytes_of(buf->base, (size_t)size);
        const size_t used = take(c, in);

        buffer_put(&c->in, in.data + used, in.size - used);
    } else {
        buffer_put(&c->in, buf->base, (size_t)size);
        buffer_consume(&c->in, take(c, buffer_bytes(&c->in)));
    }
}

/* ---- output ---- */

static void on_written(uv_write_t *request, int status)
{
    struct conn *c = request->data;

    c->writes = false;
    buffer_clear(&c->writing);
    if (status < 0) {
        lose(c, uv_strerror(status));
    } else if (c->out.size > 0) {
        touch(c);
    }
}

static void flush(struct conn *c)
{
    uv_buf_t buf = uv_buf_init((char *)c->out.data, (unsigned)c->out.size);

    if (c->writes || c->out.size == 0) {
        return;
    }
    const int sent = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);

    if (sent < 0 && sent != UV_EAGAIN) {
        lose(c, uv_strerror(sent));
        return;
    }
    if (sent == (int)c->out.size) {
        buffer_clear(&c->out);
        return;
    }
    buffer_consume(&c->out, sent > 0 ? (size_t)sent : 0);
    const struct buffer empty = c->writing;

    c->writing = c->out;
    c->out = empty;
    buf = uv_buf_init((char *)c->writing.data, (unsigned)c->writing.size);
    c->writes = true;
    c->write.data = c;
    if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &buf, 1, on_written) != 0) {
        c->writes = false;
        lose(c, "cannot write");
    }
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct run *r = prepare->data;
    struct list_link *l = NULL;

    while ((l = list_pop_front(&r->touched)) != NULL) {
        flush(CONTAINER_OF(l, struct conn, touched));
    }
}

/* ---- stages ---- */

static void enter(struct run *r, enum stage stage)
{
    r->stage = stage;
    r->stage_us = r->now_us;
}

static uint64_t under_way(const struct run *r)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < r->load->connections; i++) {
        for (uint32_t n = 0; n < r->conn[i].depth; n++) {
            const uint64_t since_us = r->conn[i].greeted ? r->conn[i].since_us[n] : 0;

            count += since_us >= r->counted_from_us && since_us != 0;
        }
    }
    return count;
}

static void end(struct run *r)
{
    r->result->unanswered = under_way(r);
    uv_stop(&r->loop);
}

static void begin_load(struct run *r)
{
    enter(r, WARMING);
    for (uint32_t i = 0; i < r->load->connections; i++) {
        // Evenly: each a part of the period behind the one before.
        r->conn[i].due_us = (double)r->now_us + 1e6 * i / (r->load->rate > 0 ? r->load->rate : 1);
    }
    ask_all(r);
}

static void on_tick(uv_timer_t *timer)
{
    struct run *r = timer->data;

    r->now_us = clock_boottime_us();
    const uint64_t passed_us = r->now_us - r->stage_us;

    if (r->result->closed == r->load->connections) {
        end(r);
        return;
    }
    switch (r->stage) {
    case GREETING:
        if (r->greeted == r->load->connections) {
            begin_load(r);
        } else if (passed_us > GREET_US) {
            (void)snprintf(r->result->reason, sizeof r->result->reason, "no hello-ack came");
            end(r);
        }
        break;
    case WARMING:
        if (passed_us >= (uint64_t)r->load->warm_up_ms * 1000) {
            enter(r, COUNTING);
            r->counted_from_us = r->now_us;
        }
        break;
    case COUNTING:
        if (passed_us >= (uint64_t)r->load->seconds * 1000000) {
            r->result->seconds = (double)passed_us / 1e6;
            enter(r, LINGERING);
        }
        break;
    case LINGERING:
        if (passed_us > LINGER_US || under_way(r) == 0) {
            end(r);
        }
        break;
    }
}

static void on_period(uv_poll_t *poll, int status, int events)
{
    struct run *r = poll->data;
    uint64_t expirations = 0;

    (void)status;
    (void)events;
    if (read(r->timer, &expirations, sizeof expirations) < 0) {
        return; // it was not for us; the next one will be
    }
    r->now_us = clock_boottime_us();
    if (asks(r)) {
        ask_all(r);
    }
}

/* ---- life ---- */

static void on_connected(uv_connect_t *connect, int status)
{
    struct conn *c = connect->data;

    if (status < 0) {
        lose(c, uv_strerror(status));
        return;
    }
    (void)uv_tcp_nodelay(&c->tcp, 1);
    packet_put_hello(
        &c->out,
        &(struct hello_packet){.version_min = PACKET_VERSION, .version_max = PACKET_VERSION});
    touch(c);
    if (uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) != 0) {
        lose(c, "cannot read");
    }
}

static int resolve(struct run *r, struct sockaddr_storage *out)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct address address;
    uv_getaddrinfo_t request;
    char port[8];

    if (address_parse(r->load->address, &address) != ERR_OK) {
        return UV_EINVAL;
    }
    (void)snprintf(port, sizeof port, "%u", address.port);
    const int failed = uv_getaddrinfo(&r->loop, &request, NULL, address.host, port, &hints);
    if (failed == 0) {
        memcpy(out, request.addrinfo->ai_addr, request.addrinfo->ai_addrlen);
        uv_freeaddrinfo(request.addrinfo);
    }
    return failed;
}

static void dial_all(struct run *r, const struct sockaddr_storage *to)
{
    for (uint32_t i = 0; i < r->load->connections; i++) {
        struct conn *c = &r->conn[i];

        c->run = r;
        c->depth = r->load->rate > 0 ? OPEN_DEPTH_MAX : r->load->depth;
        c->since_us = mem_new(c->depth, sizeof *c->since_us);
        c->free = mem_new(c->depth, sizeof *c->free);
        (void)uv_tcp_init(&r->loop, &c->tcp);
        c->tcp.data = c;
        c->connect.data = c;
        const int failed =
            uv_tcp_connect(&c->connect, &c->tcp, (const struct sockaddr *)to, on_connected);
        if (failed != 0) {
            lose(c, uv_strerror(failed));
        }
    }
}

static void start_timers(struct run *r)
{
    // libuv's timers count milliseconds: too coarse for a schedule.
    const struct itimerspec period = {.it_interval = {.tv_nsec = PERIOD_US * 1000L},
                                      .it_value = {.tv_nsec = PERIOD_US * 1000L}};

    (void)uv_prepare_init(&r->loop, &r->prepare);
    (void)uv_timer_init(&r->loop, &r->tick);
    r->prepare.data = r->tick.data = r;
    (void)uv_prepare_start(&r->prepare, on_prepare);
    (void)uv_timer_start(&r->tick, on_tick, 1, 5);
    r->timer = r->load->rate > 0 ? timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC) : -1;
    if (r->timer >= 0) {
        (void)timerfd_settime(r->timer, 0, &period, NULL);
        (void)uv_poll_init(&r->loop, &r->poll, r->timer);
        r->poll.data = r;
        (void)uv_poll_start(&r->poll, UV_READABLE, on_period);
    }
}

static void close_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

static void free_all(struct run *r)
{
    uv_walk(&r->loop, close_handle, NULL);
    (void)uv_run(&r->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&r->loop);
    for (uint32_t i = 0; i < r->load->connections; i++) {
        struct conn *c = &r->conn[i];

        buffer_fini(&c->in);
        buffer_fini(&c->out);
        buffer_fini(&c->writing);
        mem_free(c->since_us);
        mem_free(c->free);
    }
    if (r->timer >= 0) {
        (void)close(r->timer);
    }
    mem_free(r->conn);
    mem_free(r->input);
    mem_free(r->payload);
}

bool fleet_load_run(const struct fleet_load *load, struct fleet_load_result *out)
{
    struct run r = {.load = load, .result = out, .random = {load->seed}, .timer = -1};
    struct sockaddr_storage to = {0};

    *out = (struct fleet_load_result){0};
    if (uv_loop_init(&r.loop) != 0) {
        (void)snprintf(out->reason, sizeof out->reason, "no event loop");
        return false;
    }
    list_init(&r.touched);
    r.conn = mem_new(load->connections, sizeof *r.conn);
    r.input = mem_new(1, READ_SIZE);
    r.payload = mem_new(1, load->size + 1);
    memset(r.payload, 'x', load->size);
    r.now_us = clock_boottime_us();
    r.stage_us = r.now_us;
    const int failed = resolve(&r, &to);

    if (failed != 0) {
        (void)snprintf(out->reason, sizeof out->reason, "%s", uv_strerror(failed));
    } else {
        dial_all(&r, &to);
        start_timers(&r);
        (void)uv_run(&r.loop, UV_RUN_DEFAULT);
    }
    free_all(&r);
    return out->seconds > 0;
}
