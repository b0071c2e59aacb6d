/* SPDX-License-Identifier: Apache-2.0
 *
 * What a link carries: batches of records go to another process and come back,
 * a few in flight. Prints records a second, for each batch size. No figure of
 * it is a promise; the command line is [seconds a figure].
 *
 *     link_bench ping COUNT DEPTH
 *
 * Single records, each in a frame of its own, DEPTH of them in flight: prints
 * records a second, p50 and p99 of their way there and back in microseconds.
 * What bench/calls is measured against.
 */
#include "base/bytes.h"
#include "wire/link.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_SIZE = 64, IN_FLIGHT = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool woken;

struct bench {
    struct links *links;
    struct link *link;
    uint32_t batch;
    uint64_t back;
    struct ping *ping; /* NULL = not that */
};

/* Records come back in the order they were sent. */
struct ping {
    uint64_t count;
    uint64_t sent;
    uint64_t back;
    uint64_t *at_ns; /* owned: sent, then how long it took */
};

static void on_wake(void *context)
{
    (void)context;
    (void)pthread_mutex_lock(&lock);
    woken = true;
    (void)pthread_cond_signal(&cond);
    (void)pthread_mutex_unlock(&lock);
}

static void on_up(void *context, struct link *link)
{
    struct bench *b = context;

    b->link = link;
}

static void on_down(void *context, struct link *link, const char *reason)
{
    (void)context;
    (void)link;
    (void)reason;
    exit(1);
}

static void send_batch(struct link *link, const uint8_t *records, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct bytes record = bytes_of(records + (size_t)i * RECORD_SIZE, RECORD_SIZE);

        if (link_send_record(link, FRAME_REQUEST, record) != ERR_OK) {
            exit(1);
        }
    }
}

static void on_echo(void *context, struct link *link, const struct frame *frame)
{
    (void)context;
    send_batch(link, frame->body.data, frame->count);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void send_ping(struct link *link, struct ping *p)
{
    static const uint8_t record[RECORD_SIZE];

    if (p->sent < p->count) {
        p->at_ns[p->sent++] = now_ns();
        send_batch(link, record, 1);
    }
}

static void on_back(void *context, struct link *link, const struct frame *frame)
{
    struct bench *b = context;

    for (uint32_t i = 0; b->ping != NULL && i < frame->count; i++) {
        b->ping->at_ns[b->ping->back] = now_ns() - b->ping->at_ns[b->ping->back];
        b->ping->back++;
        send_ping(link, b->ping);
    }
    if (b->ping != NULL) {
        return;
    }
    b->back += frame->count;
    send_batch(link, frame->body.data, frame->count);
}

static uint64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void turn(struct bench *b)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    (void)pthread_mutex_lock(&lock);
    while (!woken && pthread_cond_timedwait(&cond, &lock, &until) == 0) {
    }
    woken = false;
    (void)pthread_mutex_unlock(&lock);
    links_poll(b->links, now_us());
}

static void start(struct bench *b, const char *name, bool echo)
{
    struct links_config config = links_config_default();
    const struct link_events events = {.context = b,
                                       .up = on_up,
                                       .down = on_down,
                                       .frame = echo ? on_echo : on_back,
                                       .wake = on_wake};

    config.self.role = ROLE_NODE;
    (void)snprintf(config.self.name, sizeof config.self.name, "%s", name);
    (void)snprintf(config.self.cluster, sizeof config.self.cluster, "bench");
    if (links_open(&b->links, &config, &events) != ERR_OK) {
        exit(1);
    }
}

static _Noreturn void echo_process(int address_fd)
{
    struct bench b = {0};
    char address[128] = "";

    start(&b, "echo", true);
    if (links_listen(b.links, "127.0.0.1:0", address, sizeof address) != ERR_OK ||
        write(address_fd, address, sizeof address) != (ssize_t)sizeof address) {
        exit(1);
    }
    for (;;) {
        turn(&b);
    }
}

static double run(struct bench *b, uint32_t batch, uint64_t us)
{
    static uint8_t records[4096 * RECORD_SIZE];

    b->batch = batch;
    for (int i = 0; i < IN_FLIGHT; i++) {
        send_batch(b->link, records, batch);
        links_flush(b->links);
    }
    const uint64_t start_us = now_us();
    const uint64_t start_back = b->back;
    while (now_us() - start_us < us) {
        turn(b);
    }
    return (double)(b->back - start_back) / (double)(now_us() - start_us) * 1e6;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void run_ping(struct bench *b, uint64_t count, uint64_t depth)
{
    struct ping p = {.count = count, .at_ns = calloc(count, sizeof(uint64_t))};

    if (p.at_ns == NULL) {
        exit(1);
    }
    b->ping = &p;
    const uint64_t start_ns = now_ns();
    for (uint64_t i = 0; i < depth; i++) {
        send_ping(b->link, &p);
    }
    links_flush(b->links);
    while (p.back < count) {
        turn(b);
        links_flush(b->links);
    }
    const double seconds = (double)(now_ns() - start_ns) / 1e9;
    const uint64_t half = count / 2;
    const uint64_t most = count * 99 / 100;
    b->ping = NULL;
    qsort(p.at_ns, count, sizeof p.at_ns[0], compare);
    printf("%.0f %.1f %.1f\n",
           (double)count / seconds,
           (double)p.at_ns[half] / 1e3,
           (double)p.at_ns[most] / 1e3);
    free(p.at_ns);
}

/* A process for each side: nng may not be used on both sides of a fork. */
static pid_t meet(struct bench *b)
{
    char address[128];
    int pipes[2];

    if (pipe(pipes) != 0) {
        exit(1);
    }
    const pid_t echo = fork();
    if (echo == 0) {
        echo_process(pipes[1]);
    }
    if (read(pipes[0], address, sizeof address) != (ssize_t)sizeof address) {
        exit(1);
    }
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    start(b, "bench", false);
    if (links_dial(b->links, address) == NULL) {
        exit(1);
    }
    while (b->link == NULL) {
        turn(b);
    }
    return echo;
}

static void end(pid_t echo)
{
    (void)fflush(stdout);
    (void)kill(echo, SIGKILL);
    (void)waitpid(echo, NULL, 0);
}

int main(int argc, char **argv)
{
    const uint32_t batches[] = {1, 16, 256, 1024};

    if (argc == 4 && strcmp(argv[1], "ping") == 0) {
        struct bench b = {0};
        const pid_t echo = meet(&b);

        run_ping(&b, strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
        end(echo);
        return 0;
    }
    const uint64_t us = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 1000000;
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        const pid_t runner = fork();

        if (runner == 0) {
            struct bench b = {0};
            const pid_t echo = meet(&b);

            printf("link: batches of %4" PRIu32
                   " x %d bytes, %d in flight: %10.0f records/s each way\n",
                   batches[i],
                   RECORD_SIZE,
                   IN_FLIGHT,
                   run(&b, batches[i], us));
            end(echo);
            _exit(0);
        }
        (void)waitpid(runner, NULL, 0);
    }
    return 0;
}
