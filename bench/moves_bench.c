/* SPDX-License-Identifier: Apache-2.0
 *
 * Steady load on many ids, for bench/moves:
 *
 *     moves_bench HOST PORT IDS RATE FILE
 *
 * Asks ids "0" to IDS-1, at random, RATE times a second in all, over many
 * connections with one request in flight each: an answer that is late keeps no
 * other one back. Until standard input ends. FILE gets of each request its id
 * and what it took, and when it was sent: two u32 (id, microseconds) and a u64
 * (nanoseconds of CLOCK_MONOTONIC), as the machine has them. An error as
 * answer ends it with 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 512, REQUEST_MAX = 64, ANSWER_MAX = 256 };

static const uint64_t second_ns = UINT64_C(1000000000);

struct sample {
    uint32_t id;
    uint32_t took_us;
    uint64_t sent_ns;
};

struct connection {
    int fd;
    struct sample asked;
    size_t got; /* bytes of the answer so far */
    char answer[ANSWER_MAX];
};

struct load {
    uint32_t ids;
    uint64_t period_ns;
    uint64_t next_ns; /* when the next request is due */
    uint64_t seed;
    FILE *file;
    size_t idle_count;
    struct connection *idle[CONNECTIONS];
    struct connection connection[CONNECTIONS];
};

static _Noreturn void fail(const char *what)
{
    (void)fprintf(stderr, "moves_bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

/* xorshift64: which id is next */
static uint32_t draw(struct load *l)
{
    l->seed ^= l->seed << 13;
    l->seed ^= l->seed >> 7;
    l->seed ^= l->seed << 17;
    return (uint32_t)((l->seed >> 16) % l->ids);
}

static int connect_to(const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const int on = 1;

    if (getaddrinfo(host, port, &hints, &found) != 0) {
        fail(host);
    }
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
        fail("connect");
    }
    freeaddrinfo(found);
    return fd;
}

static void ask(struct load *l, struct connection *c)
{
    char id[16];
    char text[REQUEST_MAX];

    c->asked = (struct sample){.id = draw(l), .sent_ns = now_ns()};
    c->got = 0;
    const int size = snprintf(id, sizeof id, "%" PRIu32, c->asked.id);
    const int all = snprintf(text, sizeof text, "*2\r\n$6\r\nSTRLEN\r\n$%d\r\n%s\r\n", size, id);
    if (send(c->fd, text, (size_t)all, MSG_NOSIGNAL) != all) {
        fail("send");
    }
}

/* ":1024\r\n" */
static void take(struct load *l, struct connection *c)
{
    const ssize_t more = recv(c->fd, c->answer + c->got, ANSWER_MAX - c->got, MSG_DONTWAIT);

    if (more <= 0) {
        fail("the gateway hung up");
    }
    c->got += (size_t)more;
    if (c->answer[0] != ':') {
        (void)fprintf(stderr, "moves_bench: answered %.*s", (int)c->got, c->answer);
        exit(1);
    }
    if (c->answer[c->got - 1] == '\n') {
        c->asked.took_us = (uint32_t)((now_ns() - c->asked.sent_ns) / 1000);
        if (fwrite(&c->asked, sizeof c->asked, 1, l->file) != 1) {
            fail("write");
        }
        l->idle[l->idle_count++] = c;
    }
}

/* What is due is asked; what found no connection free isn't made up for. */
static void ask_due(struct load *l)
{
    const uint64_t now = now_ns();

    while (l->next_ns <= now) {
        l->next_ns += l->period_ns;
        if (l->idle_count > 0) {
            ask(l, l->idle[--l->idle_count]);
        }
    }
}

static void serve(struct load *l, int poll)
{
    struct epoll_event event[CONNECTIONS];
    bool ending = false;

    l->next_ns = now_ns();
    while (!ending || l->idle_count < CONNECTIONS) {
        const int count = epoll_wait(poll, event, CONNECTIONS, 1);

        for (int i = 0; i < count; i++) {
            if (event[i].data.ptr != NULL) {
                take(l, event[i].data.ptr);
                continue;
            }
            ending = true;
            (void)epoll_ctl(poll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
        }
        if (!ending) {
            ask_due(l);
        }
    }
}

int main(int argc, char **argv)
{
    static struct load l = {.seed = 88172645463325252U};

    if (argc != 6) {
        (void)fprintf(stderr, "usage: moves_bench HOST PORT IDS RATE FILE\n");
        return 2;
    }
    l.ids = (uint32_t)strtoul(argv[3], NULL, 10);
    l.period_ns = second_ns / strtoul(argv[4], NULL, 10);
    l.file = fopen(argv[5], "wb");
    const int poll = epoll_create1(0);
    if (l.file == NULL || poll < 0) {
        fail(argv[5]);
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        struct connection *c = &l.connection[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};

        c->fd = connect_to(argv[1], argv[2]);
        l.idle[l.idle_count++] = c;
        (void)epoll_ctl(poll, EPOLL_CTL_ADD, c->fd, &event);
    }
    struct epoll_event input = {.events = EPOLLIN};
    (void)epoll_ctl(poll, EPOLL_CTL_ADD, STDIN_FILENO, &input);
    serve(&l, poll);
    return fclose(l.file) == 0 ? 0 : 1;
}
