/* SPDX-License-Identifier: Apache-2.0
 *
 * What a link carries: batches of records go to another process and come back,
 * a few in flight. Prints records a second, for each batch size. No figure of
 * it is a promise; the command line is [seconds a figure].
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

static void on_back(void *context, struct link *link, const struct frame *frame)
{
    struct bench *b = context;

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

int main(int argc, char **argv)
{
    const uint32_t batches[] = {1, 16, 256, 1024};
    const uint64_t us = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 1000000;

    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        struct bench b = {0};
        char address[128];
        int pipes[2];

        // A process for each: nng may not be used on both sides of a fork.
        if (pipe(pipes) != 0) {
            return 1;
        }
        const pid_t runner = fork();
        if (runner == 0) {
            const pid_t echo = fork();
            if (echo == 0) {
                echo_process(pipes[1]);
            }
            if (read(pipes[0], address, sizeof address) != (ssize_t)sizeof address) {
                return 1;
            }
            start(&b, "bench", false);
            if (links_dial(b.links, address) == NULL) {
                return 1;
            }
            while (b.link == NULL) {
                turn(&b);
            }
            printf("link: batches of %4" PRIu32
                   " x %d bytes, %d in flight: %10.0f records/s each way\n",
                   batches[i],
                   RECORD_SIZE,
                   IN_FLIGHT,
                   run(&b, batches[i], us));
            (void)fflush(stdout);
            (void)kill(echo, SIGKILL);
            (void)waitpid(echo, NULL, 0);
            _exit(0);
        }
        (void)waitpid(runner, NULL, 0);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
    }
    return 0;
}
