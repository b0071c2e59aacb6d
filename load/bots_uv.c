/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects bots to a gateway, over TCP on one loop.
 */
#include "load/bots_uv.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "wire/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

enum {
    TICK_MS = 5,
    SLOT_US = TICK_MS * 1000,
    SLOTS = 4096, /* of the wheel: 20 s; who is due later is looked at once more */
    READ_SIZE = 64 * 1024,
    LINGER_US = 12 * 1000 * 1000, /* for answers after the end */
    FILES_ELSE = 32,              /* of the process: its loop, its output */
    SECOND_US = 1000 * 1000,
    CONNECTS_A_TURN = 256, /* then those that are connected have a turn: to say hello in time */
};

struct crowd;

struct line {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    struct buffer writing; /* owned: what the write under way sends */
    struct bot_seat *seat; /* NULL once it is closing */
    struct crowd *crowd;
    bool writes;
};

/* A bot, its line, and when it is looked at. */
struct bot_seat {
    struct bot *bot;
    struct line *line; /* or NULL */
    struct list_link due;
    struct list_link queued; /* it waits for a file */
};

struct crowd {
    const struct bots_plan *plan;
    struct bots *bots;
    struct bot_seat *seat; /* owned */
    struct list wheel[SLOTS];
    uint64_t slot; /* looked at last */
    struct list queue;
    uint32_t open;
    uint32_t open_max;
    uint32_t connects; /* begun since the last tick */
    uint32_t sources_used;
    struct sockaddr_storage address[BOTS_ADDRESSES_MAX];
    uv_loop_t loop;
    uv_timer_t tick;
    uint64_t begun_us;
    uint64_t told_us;
    uint64_t now_us;
    bool stopping;
    bool ended;
    uint64_t stop_us;
    uint8_t *input; /* owned: one read buffer for all */
    char reason[128];
};

static void attend(struct crowd *c, struct bot_seat *s);
static void connect_some(struct crowd *c);

/* ---- time ---- */

static void set_due(struct crowd *c, struct bot_seat *s)
{
    const uint64_t due_us = bot_due_us(s->bot);
    const uint64_t soonest = c->slot + 1;
    const uint64_t latest = c->slot + SLOTS - 1;
    uint64_t slot = due_us / SLOT_US + 1; // not before it is due

    if (list_linked(&s->due)) {
        list_remove(&s->due);
    }
    if (due_us == UINT64_MAX) {
        return;
    }
    slot = slot < soonest ? soonest : slot;
    slot = slot > latest ? latest : slot;
    list_push_back(&c->wheel[slot % SLOTS], &s->due);
}

/* ---- lines ---- */

static void on_closed(uv_handle_t *handle)
{
    struct line *l = handle->data;
    struct crowd *c = l->crowd;

    buffer_fini(&l->writing);
    mem_free(l);
    c->open--;
    connect_some(c);
}

static void close_line(struct line *l)
{
    if (l->seat != NULL) {
        l->seat->line = NULL;
        l->seat = NULL;
        uv_close((uv_handle_t *)&l->tcp, on_closed);
    }
}

/* Closed, by whom ever. */
static void lose(struct bot_seat *s)
{
    struct crowd *c = s->line->crowd;

    close_line(s->line);
    bot_on_closed(s->bot, c->now_us);
    attend(c, s);
}

static void on_written(uv_write_t *request, int status)
{
    struct line *l = request->data;

    buffer_fini(&l->writing);
    l->writes = false;
    if (l->seat == NULL) {
        return;
    }
    if (status < 0) {
        lose(l->seat);
    } else {
        attend(l->crowd, l->seat);
    }
}

/* False: the line is broken. */
static bool flush(struct line *l, struct buffer *out)
{
    if (out->size == 0 || l->writes) {
        return true;
    }
    uv_buf_t buf = uv_buf_init((char *)out->data, (unsigned)out->size);
    const int sent = uv_try_write((uv_stream_t *)&l->tcp, &buf, 1);
    if (sent < 0 && sent != UV_EAGAIN) {
        return false;
    }
    buffer_consume(out, sent > 0 ? (size_t)sent : 0);
    if (out->size == 0) {
        return true;
    }
    l->writing = *out;
    *out = (struct buffer){0};
    l->writes = true;
    l->write.data = l;
    buf = uv_buf_init((char *)l->writing.data, (unsigned)l->writing.size);
    return uv_write(&l->write, (uv_stream_t *)&l->tcp, &buf, 1, on_written) == 0;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    const struct line *l = handle->data;

    (void)suggested;
    *buf = uv_buf_init((char *)l->crowd->input, READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct line *l = stream->data;

    if (l->seat == NULL) {
        return;
    }
    l->crowd->now_us = clock_boottime_us();
    if (size < 0) {
        lose(l->seat);
    } else if (size > 0) {
        bot_on_bytes(l->seat->bot, bytes_of(buf->base, (size_t)size), l->crowd->now_us);
        attend(l->crowd, l->seat);
    }
}

static void complain(struct crowd *c, const char *address, int failed)
{
    if (c->reason[0] == '\0') {
        (void)snprintf(c->reason, sizeof c->reason, "%s: %s", address, uv_strerror(failed));
    }
}

static void on_connected(uv_connect_t *request, int status)
{
    struct line *l = request->data;

    if (l->seat == NULL) {
        return;
    }
    l->crowd->now_us = clock_boottime_us();
    if (status < 0 || uv_read_start((uv_stream_t *)&l->tcp, on_alloc, on_read) != 0) {
        complain(l->crowd, l->crowd->plan->address[bot_address(l->seat->bot)], status);
        lose(l->seat);
        return;
    }
    (void)uv_tcp_nodelay(&l->tcp, 1);
    bot_on_connected(l->seat->bot, l->crowd->now_us);
    attend(l->crowd, l->seat);
}

/* The next source, by turns. */
static int bind_source(struct crowd *c, uv_tcp_t *tcp)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET};

    if (c->plan->sources == 0) {
        return 0;
    }
    in4.sin_addr.s_addr = htonl(0x7F000101u + c->sources_used++ % c->plan->sources);
    return uv_tcp_bind(tcp, (const struct sockaddr *)&in4, 0);
}

static void connect_bot(struct crowd *c, struct bot_seat *s)
{
    struct line *l = mem_new(1, sizeof *l);
    const uint32_t to = bot_address(s->bot);

    l->crowd = c;
    l->seat = s;
    s->line = l;
    l->tcp.data = l->connect.data = l;
    bot_on_connecting(s->bot, c->now_us);
    c->open++;
    int failed = uv_tcp_init(&c->loop, &l->tcp);
    if (failed == 0) {
        failed = bind_source(c, &l->tcp);
    }
    if (failed == 0) {
        failed = uv_tcp_connect(
            &l->connect, &l->tcp, (const struct sockaddr *)&c->address[to], on_connected);
    }
    if (failed != 0) {
        complain(c, c->plan->address[to], failed);
        close_line(l);
        bot_on_closed(s->bot, c->now_us);
    }
}

static void connect_some(struct crowd *c)
{
    while (c->open < c->open_max && c->connects < CONNECTS_A_TURN && !c->ended) {
        struct list_link *next = list_pop_front(&c->queue);

        if (next == NULL) {
            return;
        }
        struct bot_seat *s = CONTAINER_OF(next, struct bot_seat, queued);

        if (bot_wish(s->bot) == BOT_CONNECT) { // it may have changed its mind
            c->connects++;
            connect_bot(c, s);
            set_due(c, s);
        }
    }
}

/* Do what the bot wants. */
static void attend(struct crowd *c, struct bot_seat *s)
{
    if (bot_wish(s->bot) == BOT_CLOSE) {
        if (s->line != NULL) {
            close_line(s->line);
        }
        bot_on_closed(s->bot, c->now_us);
    } else if (bot_wish(s->bot) == BOT_CONNECT && s->line == NULL) {
        if (!list_linked(&s->queued)) {
            list_push_back(&c->queue, &s->queued);
        }
    } else if (s->line != NULL && !flush(s->line, bot_output(s->bot))) {
        close_line(s->line);
        bot_on_closed(s->bot, c->now_us);
    }
    set_due(c, s);
}

/* ---- the run ---- */

static void outcome_of(const struct crowd *c, struct bots_outcome *out)
{
    const struct bot_ledger *l = bots_ledger(c->bots);

    *out = (struct bots_outcome){.ledger = l,
                                 .seconds = (double)(c->now_us - c->begun_us) / SECOND_US,
                                 .waiting = bots_waiting(c->bots),
                                 .open_max = c->open_max};
    if (l->last_login_us > c->begun_us) {
        out->in_seconds = (double)(l->last_login_us - c->begun_us) / SECOND_US;
    }
    (void)snprintf(out->reason, sizeof out->reason, "%s", c->reason);
}

static void tell_progress(struct crowd *c)
{
    struct bots_outcome so_far;

    if (c->plan->progress != NULL && c->now_us - c->told_us >= SECOND_US) {
        c->told_us = c->now_us;
        outcome_of(c, &so_far);
        c->plan->progress(&so_far, c->plan->context);
    }
}

static bool is_over(const struct crowd *c)
{
    const struct bots_plan *p = c->plan;

    return bots_ledger(c->bots)->over == p->bots.count ||
           (p->time_ms > 0 && c->now_us - c->begun_us >= (uint64_t)p->time_ms * 1000);
}

static void end_all(struct crowd *c)
{
    c->ended = true;
    uv_close((uv_handle_t *)&c->tick, NULL);
    while (list_pop_front(&c->queue) != NULL) {
    }
    for (uint32_t i = 0; i < c->plan->bots.count; i++) {
        if (c->seat[i].line != NULL) {
            close_line(c->seat[i].line);
        }
    }
}

static void look_at(struct crowd *c, struct list *slot)
{
    struct list now;
    struct list_link *i = NULL;

    list_init(&now);
    list_splice_back(&now, slot);
    while ((i = list_pop_front(&now)) != NULL) {
        struct bot_seat *s = CONTAINER_OF(i, struct bot_seat, due);

        bot_tick(s->bot, c->now_us);
        attend(c, s);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct crowd *c = timer->data;

    c->now_us = clock_boottime_us();
    while (c->slot < c->now_us / SLOT_US) {
        c->slot++;
        look_at(c, &c->wheel[c->slot % SLOTS]);
    }
    c->connects = 0;
    connect_some(c);
    tell_progress(c);
    if (!c->stopping && is_over(c)) {
        c->stopping = true;
        c->stop_us = c->now_us;
        bots_stop(c->bots);
    }
    if (c->stopping && (bots_waiting(c->bots) == 0 || c->now_us - c->stop_us >= LINGER_US)) {
        end_all(c);
    }
}

/* ---- start ---- */

static uint32_t files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 1024 - FILES_ELSE;
    }
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur > UINT32_MAX ? UINT32_MAX : (uint32_t)limit.rlim_cur - FILES_ELSE;
}

/* Look the gateways up. */
static bool resolve(struct crowd *c, char why[128])
{
    for (uint32_t i = 0; i < c->plan->address_count; i++) {
        const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
        struct address address;
        uv_getaddrinfo_t request;
        char port[8];
        int failed = UV_EINVAL;

        if (address_parse(c->plan->address[i], &address) == ERR_OK) {
            (void)snprintf(port, sizeof port, "%u", address.port);
            failed = uv_getaddrinfo(&c->loop, &request, NULL, address.host, port, &hints);
        }
        if (failed != 0) {
            (void)snprintf(why, 128, "%s: %s", c->plan->address[i], uv_strerror(failed));
            return false;
        }
        memcpy(&c->address[i], request.addrinfo->ai_addr, request.addrinfo->ai_addrlen);
        uv_freeaddrinfo(request.addrinfo);
    }
    return true;
}

static void begin(struct crowd *c)
{
    const uint32_t most = files();
    struct bots_config config = c->plan->bots;

    config.addresses = c->plan->address_count;
    c->open_max = c->plan->open_max > 0 && c->plan->open_max < most ? c->plan->open_max : most;
    c->now_us = c->begun_us = c->told_us = clock_boottime_us();
    c->slot = c->now_us / SLOT_US;
    c->bots = bots_new(&config, c->now_us);
    c->seat = mem_new(config.count, sizeof *c->seat);
    c->input = mem_new(1, READ_SIZE);
    list_init(&c->queue);
    for (size_t i = 0; i < SLOTS; i++) {
        list_init(&c->wheel[i]);
    }
    for (uint32_t i = 0; i < config.count; i++) {
        c->seat[i].bot = bots_at(c->bots, i);
        set_due(c, &c->seat[i]);
    }
    uv_timer_init(&c->loop, &c->tick);
    c->tick.data = c;
    uv_timer_start(&c->tick, on_tick, 0, TICK_MS);
}

bool bots_run(const struct bots_plan *plan,
              void (*tell)(const struct bots_outcome *outcome, void *context), char why[128])
{
    struct crowd *c = mem_new(1, sizeof *c);
    struct bots_outcome outcome;

    c->plan = plan;
    if (uv_loop_init(&c->loop) != 0) {
        (void)snprintf(why, 128, "can't start the event loop");
        mem_free(c);
        return false;
    }
    const bool found = resolve(c, why);
    if (found) {
        begin(c);
        uv_run(&c->loop, UV_RUN_DEFAULT);
        outcome_of(c, &outcome);
        tell(&outcome, plan->context);
    }
    (void)uv_loop_close(&c->loop);
    bots_free(c->bots);
    mem_free(c->seat);
    mem_free(c->input);
    mem_free(c);
    return found;
}
