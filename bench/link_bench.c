/* SPDX-License-Identifier: Apache-2.0
 *
 * What a link carries: batches of records go to another process and come back,
 * a few in flight. Prints records a second, for each batch size and for either
 * body that a link may have (link/stream.h), each driven by a uv loop as a
 * node's is. No figure of it is a promise; the command line is [seconds a figure].
 *
 *     link_bench ping COUNT DEPTH
 *
 * Records sent one by one, DEPTH of them in flight, which the link gathers into
 * frames as it does for a node: prints records a second, p50 and p99 of their way
 * there and back in microseconds.
 * What bench/calls is measured against.
 *
 *     link_bench hop uv|nng COUNT DEPTH
 *
 * The same over that body, and after it what a record's way there and back took
 * of both processes: microseconds of CPU, and voluntary context switches.
 *
 *     link_bench copy COUNT SIZE
 *
 * Records of SIZE bytes go one way, at most 1 MiB of them unacknowledged:
 * prints bytes a second. What bench/moves is measured against.
 */
#include "base/bytes.h"
#include "link/link.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

enum {
    RECORD_SIZE = 64,
    IN_FLIGHT = 4,
    TICK_MS = 10,
    COPY_SIZE_MAX = 1024 * 1024,
    COPY_WINDOW = 1024 * 1024,
};

struct bench {
    uv_loop_t loop;
    uv_prepare_t prepare;
    uv_timer_t tick;
    uv_async_t wake;
    bool over_uv;
    struct links *links;
    struct link *link;
    uint32_t batch;
    uint64_t back;
    struct ping *ping; /* NULL = not that */
    struct copy *copy; /* NULL = not that */
};

/* Records come back in the order they were sent. */
struct ping {
    uint64_t count;
    uint64_t sent;
    uint64_t back;
    uint64_t *at_ns; /* owned: sent, then how long it took */
};

struct copy {
    uint64_t count;
    uint64_t sent;
    uint64_t there;
    size_t size; /* of a record */
};

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
    static uint64_t copied;

    (void)context;
    if (frame->type == FRAME_STATE) {
        copied += frame->count;
        if (link_send_record(link, FRAME_ANSWER, bytes_of(&copied, sizeof copied)) != ERR_OK) {
            exit(1);
        }
        return;
    }
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

static void send_copies(struct link *link, struct copy *c)
{
    static const uint8_t record[COPY_SIZE_MAX];
    const uint64_t window = COPY_WINDOW / c->size;

    while (c->sent < c->count && c->sent < c->there + window) {
        if (link_send_record(link, FRAME_STATE, bytes_of(record, c->size)) != ERR_OK) {
            exit(1);
        }
        c->sent++;
    }
}

static void on_back(void *context, struct link *link, const struct frame *frame)
{
    struct bench *b = context;

    if (b->copy != NULL) {
        // Several may have come together: the last one counts.
        memcpy(&b->copy->there,
               frame->body.data + frame->body.size - sizeof b->copy->there,
               sizeof b->copy->there);
        send_copies(link, b->copy);
        return;
    }

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

static void on_wake(void *context)
{
    struct bench *b = context;

    if (b->over_uv) {
        links_poll(b->links, now_us());
    } else {
        (void)uv_async_send(&b->wake);
    }
}

static void on_async(uv_async_t *handle)
{
    struct bench *b = handle->data;

    links_poll(b->links, now_us());
}

static void on_tick(uv_timer_t *handle)
{
    struct bench *b = handle->data;

    links_poll(b->links, now_us());
}

static void on_prepare(uv_prepare_t *handle)
{
    struct bench *b = handle->data;

    links_flush(b->links);
}

static void turn(struct bench *b)
{
    (void)uv_run(&b->loop, UV_RUN_ONCE);
}

static void start_loop(struct bench *b)
{
    (void)uv_loop_init(&b->loop);
    (void)uv_async_init(&b->loop, &b->wake, on_async);
    (void)uv_timer_init(&b->loop, &b->tick);
    (void)uv_prepare_init(&b->loop, &b->prepare);
    b->wake.data = b->tick.data = b->prepare.data = b;
    (void)uv_timer_start(&b->tick, on_tick, TICK_MS, TICK_MS);
    (void)uv_prepare_start(&b->prepare, on_prepare);
}

static void start(struct bench *b, const char *name, bool echo)
{
    struct links_config config = links_config_default();
    const struct link_events events = {.context = b,
                                       .up = on_up,
                                       .down = on_down,
                                       .frame = echo ? on_echo : on_back,
                                       .wake = on_wake};

    start_loop(b);
    config.loop = b->over_uv ? &b->loop : NULL;
    config.self.role = ROLE_NODE;
    (void)snprintf(config.self.name, sizeof config.self.name, "%s", name);
    (void)snprintf(config.self.cluster, sizeof config.self.cluster, "bench");
    if (links_open(&b->links, &config, &events) != ERR_OK) {
        exit(1);
    }
}

static _Noreturn void echo_process(int address_fd, bool over_uv)
{
    struct bench b = {.over_uv = over_uv};
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
    while (p.back < count) {
        turn(b);
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

static void run_copy(struct bench *b, uint64_t count, size_t size)
{
    struct copy c = {.count = count, .size = size};

    b->copy = &c;
    const uint64_t start_ns = now_ns();
    send_copies(b->link, &c);
    while (c.there < count) {
        turn(b);
    }
    b->copy = NULL;
    printf("%.0f\n", (double)(count * size) / ((double)(now_ns() - start_ns) / 1e9));
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
        echo_process(pipes[1], b->over_uv);
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

static double seconds_of(const struct rusage *r)
{
    return (double)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) +
           (double)(r->ru_utime.tv_usec + r->ru_stime.tv_usec) / 1e6;
}

static void ping(bool over_uv, uint64_t count, uint64_t depth, bool costs)
{
    struct bench b = {.over_uv = over_uv};
    const pid_t echo = meet(&b);
    struct rusage ours;
    struct rusage theirs;

    run_ping(&b, count, depth);
    end(echo);
    if (costs) {
        (void)getrusage(RUSAGE_SELF, &ours);
        (void)getrusage(RUSAGE_CHILDREN, &theirs);
        printf("%.2f %.2f\n",
               (seconds_of(&ours) + seconds_of(&theirs)) / (double)count * 1e6,
               (double)(ours.ru_nvcsw + theirs.ru_nvcsw) / (double)count);
    }
}

/* In a process of its own: nng may not be used on both sides of a fork. */
static void batches_of(bool over_uv, uint32_t batch, uint64_t us)
{
    const pid_t runner = fork();

    if (runner == 0) {
        struct bench b = {.over_uv = over_uv};
        const pid_t echo = meet(&b);

        printf("link over %-3s: batches of %4" PRIu32
               " x %d bytes, %d in flight: %10.0f records/s each way\n",
               over_uv ? "uv" : "nng",
               batch,
               RECORD_SIZE,
               IN_FLIGHT,
               run(&b, batch, us));
        end(echo);
        _exit(0);
    }
    (void)waitpid(runner, NULL, 0);
}

int main(int argc, char **argv)
{
    const uint32_t batches[] = {1, 16, 256, 1024};

    if (argc == 4 && strcmp(argv[1], "ping") == 0) {
        ping(true, strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), false);
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "hop") == 0) {
        ping(strcmp(argv[2], "nng") != 0,
             strtoull(argv[3], NULL, 10),
             strtoull(argv[4], NULL, 10),
             true);
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "copy") == 0) {
        struct bench b = {.over_uv = true};
        const size_t size = strtoull(argv[3], NULL, 10);

        if (size == 0 || size > COPY_SIZE_MAX) { // before there is a process that would be left
            (void)fprintf(stderr, "link_bench: SIZE is 1 to %d\n", COPY_SIZE_MAX);
            return 2;
        }
        const pid_t echo = meet(&b);

        run_copy(&b, strtoull(argv[2], NULL, 10), size);
        end(echo);
        return 0;
    }
    const uint64_t us = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 1000000;
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        batches_of(false, batches[i], us);
        batches_of(true, batches[i], us);
    }
    return 0;
}
