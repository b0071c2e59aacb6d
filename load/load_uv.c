/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold bench`'s load: connections, requests under way, and the times of
 * their answers.
 */
#include "load/inside_uv.h"

#include "base/clock.h"
#include "base/mem.h"
#include "wire/address.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    OPEN_DEPTH_MAX = 1024, /* open loop: requests of a connection under way */
    LOOK_US = 100,         /* open loop: at least between two looks at the schedule */
    GREET_US = 5 * 1000 * 1000,
    LINGER_US = 2 * 1000 * 1000, /* for answers after the end */
};

/* ---- stages ---- */

static void enter(struct run *r, enum stage stage)
{
    r->stage = stage;
    r->stage_us = r->now_us;
}

/* Our processor time so far. */
static uint64_t used_us(void)
{
    struct rusage use;

    (void)getrusage(RUSAGE_SELF, &use);
    return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
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
    load_count_same(r);
    r->result->unanswered = under_way(r);
    uv_stop(&r->loop);
}

/* Open loop: look at the schedule when the next is due. libuv's timers count milliseconds, which is
 * too coarse. */
static void look_next(struct run *r, double due_us)
{
    const uint64_t soonest_us = r->now_us + LOOK_US;
    const uint64_t at_us = due_us > (double)soonest_us ? (uint64_t)due_us : soonest_us;
    const struct itimerspec at = {
        .it_value = {(time_t)(at_us / 1000000), (long)(at_us % 1000000) * 1000}};

    (void)timerfd_settime(r->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static void begin_load(struct run *r)
{
    enter(r, WARMING);
    for (uint32_t i = 0; i < r->load->connections; i++) {
        // Evenly: each a part of the period behind the one before.
        r->conn[i].due_us =
            (double)r->now_us + 1e6 * i * r->load->batch / (r->load->rate > 0 ? r->load->rate : 1);
    }
    const double due_us = load_ask_all(r);

    if (r->load->rate > 0) {
        look_next(r, due_us);
    }
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
            (void)snprintf(r->result->reason, sizeof r->result->reason, "no hello-ack arrived");
            end(r);
        }
        break;
    case WARMING:
        if (passed_us >= (uint64_t)r->load->warm_up_ms * 1000) {
            enter(r, COUNTING);
            r->counted_from_us = r->now_us;
            r->used_us = used_us();
        }
        break;
    case COUNTING:
        if (passed_us >= (uint64_t)r->load->seconds * 1000000) {
            r->result->seconds = (double)passed_us / 1e6;
            r->result->used_seconds = (double)(used_us() - r->used_us) / 1e6;
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

static void on_look(uv_poll_t *poll, int status, int events)
{
    struct run *r = poll->data;

    (void)status;
    (void)events;
    r->now_us = clock_boottime_us();
    // Setting it anew forgets that it was due.
    look_next(r, load_asks(r) ? load_ask_all(r) : (double)r->now_us + 1e6);
}

/* ---- life ---- */

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
        struct load_conn *c = &r->conn[i];

        c->run = r;
        c->depth = r->load->rate > 0 ? OPEN_DEPTH_MAX : r->load->depth;
        c->since_us = mem_new(c->depth, sizeof *c->since_us);
        c->free = mem_new(c->depth, sizeof *c->free);
        (void)uv_tcp_init(&r->loop, &c->tcp);
        c->tcp.data = c;
        c->connect.data = c;
        const int failed =
            uv_tcp_connect(&c->connect, &c->tcp, (const struct sockaddr *)to, conn_on_connected);
        if (failed != 0) {
            conn_lose(c, uv_strerror(failed));
        }
    }
}

static void start_timers(struct run *r)
{
    (void)uv_prepare_init(&r->loop, &r->prepare);
    (void)uv_timer_init(&r->loop, &r->tick);
    r->prepare.data = r->tick.data = r;
    (void)uv_prepare_start(&r->prepare, load_on_prepare);
    (void)uv_timer_start(&r->tick, on_tick, 1, 5);
    r->timer = r->load->rate > 0 ? timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC) : -1;
    if (r->timer >= 0) {
        (void)uv_poll_init(&r->loop, &r->poll, r->timer);
        r->poll.data = r;
        (void)uv_poll_start(&r->poll, UV_READABLE, on_look);
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
        struct load_conn *c = &r->conn[i];

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
    mould_fini(&r->mould);
}

bool fleet_load_run(const struct fleet_load *load, struct fleet_load_result *out)
{
    struct run r = {.load = load, .result = out, .random = {load->seed}, .timer = -1};
    struct sockaddr_storage to = {0};

    *out = (struct fleet_load_result){0};
    if (uv_loop_init(&r.loop) != 0) {
        (void)snprintf(out->reason, sizeof out->reason, "can't start the event loop");
        return false;
    }
    list_init(&r.touched);
    r.conn = mem_new(load->connections, sizeof *r.conn);
    r.input = mem_new(1, LOAD_READ_SIZE);
    mould_init(
        &r.mould,
        &(struct mould_config){.ids = load->ids, .size = load->size, .kind = (uint16_t)load->kind});
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
