/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo's load: numbered requests over several connections, on a thread of
 * its own.
 */
#include "demo/load_uv.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/prng.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

enum {
    TURN_MS = 1,
    IN_FLIGHT_MAX = 1024, /* of one client; a power of two */
    READ_SIZE = 65536,
};

struct sent {
    uint32_t id;
    uint32_t seq;
    uint64_t at_us;
};

struct load_client {
    struct load *load;
    uint32_t number; /* from 1: what the payload says */
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    bool connected;
    bool writing;
    struct buffer out;    /* next to write */
    struct buffer flying; /* being written */
    struct buffer in;
    struct sent ring[IN_FLIGHT_MAX];
    uint32_t head; /* next answer is for this one */
    uint32_t tail; /* next request goes here */
    uint32_t *seq; /* owned; by id: the last sent */
    double owed;   /* requests that the rate allows now */
    uint64_t paid_us;
};

struct load {
    struct load_options options;
    uv_loop_t loop;
    uv_timer_t timer;
    uv_thread_t thread;
    struct load_client client[LOAD_CLIENTS];
    bool slow_flying[LOAD_SLOW_IDS];
    struct prng prng;
    atomic_uint phase;
    atomic_uint slow;
    atomic_bool finishing;
    atomic_bool ended;
    uv_mutex_t lock; /* guards stats */
    struct load_stats stats;
};

uint32_t load_id_count(const struct load *l)
{
    return l->options.ids + LOAD_SLOW_IDS;
}

void load_id_name(const struct load *l, uint32_t id, char *out, size_t size)
{
    if (id < l->options.ids) {
        (void)snprintf(out, size, "p%" PRIu32, id);
    } else {
        (void)snprintf(out, size, "slow%" PRIu32, id - l->options.ids);
    }
}

uint32_t load_sent_to(const struct load *l, uint32_t client, uint32_t id)
{
    return client == 0 || client > LOAD_CLIENTS ? 0 : l->client[client - 1].seq[id];
}

static void note_error(struct load *l, const char *text, size_t size)
{
    uv_mutex_lock(&l->lock);
    l->stats.errors++;
    if (l->stats.first_error[0] == '\0') {
        (void)snprintf(l->stats.first_error, sizeof l->stats.first_error, "%.*s", (int)size, text);
    }
    uv_mutex_unlock(&l->lock);
}

static bool is_slow(const struct load *l, uint32_t id)
{
    return id >= l->options.ids;
}

static void tell(const struct load_client *c, const struct sent *s, enum history_event_type type,
                 const char *code)
{
    char name[24];

    if (c->load->options.history == NULL) {
        return;
    }
    load_id_name(c->load, s->id, name, sizeof name);
    history_write(c->load->options.history,
                  clock_boottime_us(),
                  "demo",
                  type,
                  "session=c%u entity=%s seq=%u%s%s",
                  c->number,
                  name,
                  s->seq,
                  code == NULL ? "" : " code=",
                  code == NULL ? "" : code);
}

/* An error reply's code in histories. */
static const char *code_of(const char *text, size_t size)
{
    static const struct {
        const char *reply;
        const char *code;
    } codes[] = {
        {"-UNKNOWN ", "UNKNOWN"},
        {"-TIMEOUT ", "TIMEOUT"},
        {"-OVERLOADED ", "REJECTED"},
        {"-MOVING ", "REJECTED"},
        {"-NOKIND ", "NOKIND"},
    };

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        const size_t length = strlen(codes[i].reply);

        if (size >= length && memcmp(text, codes[i].reply, length) == 0) {
            return codes[i].code;
        }
    }
    return "APPERR";
}

static void request(struct load_client *c, uint32_t id)
{
    struct load *l = c->load;
    char name[24];
    char payload[48];
    char command[128];

    load_id_name(l, id, name, sizeof name);
    const uint32_t seq = ++c->seq[id];
    if (is_slow(l, id)) {
        l->slow_flying[id - l->options.ids] = true;
        (void)snprintf(payload, sizeof payload, "%u %u %u", c->number, seq, l->options.slow_ms);
    } else {
        (void)snprintf(payload, sizeof payload, "%u %u", c->number, seq);
    }
    const int size = snprintf(command,
                              sizeof command,
                              "*3\r\n$4\r\nCALL\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
                              strlen(name),
                              name,
                              strlen(payload),
                              payload);
    const struct sent sent = {id, seq, clock_boottime_us()};
    tell(c, &sent, HISTORY_SEND, NULL);
    buffer_put(&c->out, command, (size_t)size);
    c->ring[c->tail++ % IN_FLIGHT_MAX] = sent;
    uv_mutex_lock(&l->lock);
    l->stats.sent++;
    uv_mutex_unlock(&l->lock);
}

static void on_answer(struct load_client *c, const char *text, size_t size, bool error)
{
    struct load *l = c->load;
    const struct sent *s = &c->ring[c->head++ % IN_FLIGHT_MAX];
    const uint64_t took_us = clock_boottime_us() - s->at_us;
    char want[24];

    if (is_slow(l, s->id)) {
        l->slow_flying[s->id - l->options.ids] = false;
    }
    tell(c, s, HISTORY_ANSWER, error ? code_of(text, size) : "OK");
    if (error) {
        note_error(l, text, size);
        return;
    }
    const int want_size = snprintf(want, sizeof want, "OK %u", s->seq);
    uv_mutex_lock(&l->lock);
    l->stats.answered++;
    if ((size_t)want_size != size || memcmp(want, text, size) != 0) {
        l->stats.wrong++;
        if (l->stats.first_error[0] == '\0') {
            (void)snprintf(l->stats.first_error,
                           sizeof l->stats.first_error,
                           "client %u id %u wanted '%s', got '%.*s'",
                           c->number,
                           s->id,
                           want,
                           (int)size,
                           text);
        }
    }
    if (!is_slow(l, s->id)) {
        histogram_add(&l->stats.latency[atomic_load(&l->phase)], took_us);
    }
    uv_mutex_unlock(&l->lock);
}

/* Take one whole reply off the front; how many bytes it had, 0 if it is not whole. */
static size_t take_reply(struct load_client *c, const char *at, size_t size)
{
    const char *end = memchr(at, '\n', size);

    if (end == NULL) {
        return 0;
    }
    const size_t line = (size_t)(end - at) + 1;
    if (at[0] != '$') {
        on_answer(c, at, line - 2, at[0] == '-');
        return line;
    }
    const long body = strtol(at + 1, NULL, 10);
    const size_t whole = line + (size_t)(body < 0 ? 0 : body + 2);
    if (size < whole) {
        return 0;
    }
    on_answer(c, at + line, (size_t)(body < 0 ? 0 : body), false);
    return whole;
}

static void lose(struct load_client *c, const char *why)
{
    c->connected = false;
    while (c->head != c->tail) {
        tell(c, &c->ring[c->head++ % IN_FLIGHT_MAX], HISTORY_ANSWER, "UNKNOWN");
        note_error(c->load, why, strlen(why));
    }
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
    struct load_client *c = handle->data;

    (void)wanted;
    *out = uv_buf_init((char *)buffer_reserve(&c->in, READ_SIZE), READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct load_client *c = stream->data;
    size_t used = 0;

    (void)buf;
    if (got < 0) {
        lose(c, "the gateway closed the connection");
        uv_close((uv_handle_t *)stream, NULL);
        return;
    }
    c->in.size += (size_t)got;
    while (used < c->in.size && c->head != c->tail) {
        const size_t took = take_reply(c, (const char *)c->in.data + used, c->in.size - used);

        if (took == 0) {
            break;
        }
        used += took;
    }
    buffer_consume(&c->in, used);
}

static void flush(struct load_client *c);

static void on_written(uv_write_t *write, int status)
{
    struct load_client *c = write->data;

    c->writing = false;
    if (status == 0) {
        flush(c);
    }
}

static void flush(struct load_client *c)
{
    if (c->writing || c->out.size == 0 || !c->connected) {
        return;
    }
    const struct buffer swap = c->flying;
    c->flying = c->out;
    c->out = swap;
    buffer_clear(&c->out);
    uv_buf_t data = uv_buf_init((char *)c->flying.data, (unsigned)c->flying.size);
    c->write.data = c;
    c->writing = uv_write(&c->write, (uv_stream_t *)&c->tcp, &data, 1, on_written) == 0;
}

static void on_connect(uv_connect_t *connect, int status)
{
    struct load_client *c = connect->data;

    if (status != 0) {
        note_error(c->load, uv_strerror(status), strlen(uv_strerror(status)));
        return;
    }
    c->connected = true;
    c->paid_us = clock_boottime_us();
    (void)uv_tcp_nodelay(&c->tcp, 1);
    (void)uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
}

static void pay(struct load_client *c, uint64_t now_us)
{
    const double rate = (double)c->load->options.rate / (LOAD_CLIENTS - 1);

    c->owed += (double)(now_us - c->paid_us) * rate / 1e6;
    c->paid_us = now_us;
    // What could not be sent for long is not made up in one burst.
    c->owed = c->owed > rate / 4 ? rate / 4 : c->owed;
    while (c->owed >= 1 && c->tail - c->head < IN_FLIGHT_MAX - LOAD_SLOW_IDS) {
        c->owed -= 1;
        request(c, (uint32_t)prng_between(&c->load->prng, 0, c->load->options.ids - 1));
    }
}

/* Slow ids belong to the last client: replies come in order, and a slow one delays what follows. */
static void keep_slow_ones(struct load *l)
{
    struct load_client *c = &l->client[LOAD_CLIENTS - 1];
    const uint32_t wanted = atomic_load(&l->slow);

    for (uint32_t i = 0; i < wanted && i < LOAD_SLOW_IDS; i++) {
        if (!l->slow_flying[i] && c->tail - c->head < IN_FLIGHT_MAX) {
            request(c, l->options.ids + i);
        }
    }
}

static bool all_answered(const struct load *l)
{
    for (size_t i = 0; i < LOAD_CLIENTS; i++) {
        if (l->client[i].head != l->client[i].tail) {
            return false;
        }
    }
    return true;
}

static void on_turn(uv_timer_t *timer)
{
    struct load *l = timer->data;
    const uint64_t now_us = clock_boottime_us();
    const bool finishing = atomic_load(&l->finishing);

    for (size_t i = 0; i < LOAD_CLIENTS; i++) {
        struct load_client *c = &l->client[i];

        // The last client has the slow ids to itself.
        if (c->connected && !finishing && i + 1 < LOAD_CLIENTS) {
            pay(c, now_us);
        } else if (c->connected && !finishing) {
            keep_slow_ones(l);
        }
        flush(c);
    }
    if (finishing && all_answered(l)) {
        uv_stop(&l->loop);
    }
}

static void run(void *argument)
{
    struct load *l = argument;

    (void)uv_run(&l->loop, UV_RUN_DEFAULT);
    atomic_store(&l->ended, true);
}

static bool connect_all(struct load *l)
{
    char host[64];
    const char *colon = strrchr(l->options.gateway, ':');
    struct sockaddr_in address;

    (void)snprintf(
        host, sizeof host, "%.*s", (int)(colon - l->options.gateway), l->options.gateway);
    if (uv_ip4_addr(host, (int)strtol(colon + 1, NULL, 10), &address) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < LOAD_CLIENTS; i++) {
        struct load_client *c = &l->client[i];

        c->load = l;
        c->number = i + 1;
        c->seq = mem_new(load_id_count(l), sizeof *c->seq);
        c->tcp.data = c->connect.data = c;
        (void)uv_tcp_init(&l->loop, &c->tcp);
        if (uv_tcp_connect(&c->connect, &c->tcp, (const struct sockaddr *)&address, on_connect) !=
            0) {
            return false;
        }
    }
    return true;
}

struct load *load_start(const struct load_options *options)
{
    struct load *l = mem_new(1, sizeof *l);

    l->options = *options;
    l->prng.state = options->seed;
    (void)uv_mutex_init(&l->lock);
    (void)uv_loop_init(&l->loop);
    l->timer.data = l;
    (void)uv_timer_init(&l->loop, &l->timer);
    (void)uv_timer_start(&l->timer, on_turn, TURN_MS, TURN_MS);
    if (!connect_all(l) || uv_thread_create(&l->thread, run, l) != 0) {
        (void)fprintf(stderr, "ringhold demo: can't connect to %s\n", options->gateway);
        mem_free(l);
        return NULL;
    }
    return l;
}

void load_stats(struct load *l, struct load_stats *out)
{
    uv_mutex_lock(&l->lock);
    *out = l->stats;
    uv_mutex_unlock(&l->lock);
}

void load_phase(struct load *l, enum load_phase phase)
{
    atomic_store(&l->phase, (unsigned)phase);
}

void load_slow(struct load *l, uint32_t count)
{
    atomic_store(&l->slow, count);
}

bool load_finish(struct load *l, uint32_t timeout_ms)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)timeout_ms * 1000;
    const struct timespec pause = {.tv_nsec = 10000000};

    atomic_store(&l->finishing, true);
    while (!atomic_load(&l->ended)) {
        if (clock_boottime_us() >= end_us) {
            return false;
        }
        (void)nanosleep(&pause, NULL);
    }
    (void)uv_thread_join(&l->thread);
    return true;
}

static void close_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

void load_free(struct load *l)
{
    if (atomic_load(&l->ended)) { // else its thread still has the loop
        uv_walk(&l->loop, close_handle, NULL);
        (void)uv_run(&l->loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&l->loop);
    }
    for (size_t i = 0; i < LOAD_CLIENTS; i++) {
        mem_free(l->client[i].seq);
        buffer_fini(&l->client[i].in);
        buffer_fini(&l->client[i].out);
        buffer_fini(&l->client[i].flying);
    }
    uv_mutex_destroy(&l->lock);
    mem_free(l);
}
