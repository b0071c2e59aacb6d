/* SPDX-License-Identifier: Apache-2.0
 *
 * What the threads of a call between two nodes cost if the call itself costs nothing: what calls
 * are compared with. There are two processes; in each a thread that waits for its socket and for
 * its workers, and these, which wait for it. A message for all calls that are open goes from the
 * one worker of the first process to both workers of the second, and back. So a round passes six
 * wake-ups one after the other, as bench/calls has them with actors of a kind that is not brief.
 *
 *     wakes_bench COUNT DEPTH
 *
 * COUNT calls, DEPTH of them open: prints calls a second.
 */
#include "bench/took.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CALL_SIZE = 64, WORKERS_MAX = 2, DEPTH_MAX = 1024 };

struct worker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool given;
};

struct side {
    struct worker worker[WORKERS_MAX];
    int workers;
    int socket;
    int rung; /* eventfd */
    int epoll;
    size_t size; /* of a message */
    atomic_int done;
};

static void check(bool good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static struct side side;

static void *work(void *argument)
{
    struct worker *w = argument;
    const uint64_t one = 1;

    for (;;) {
        (void)pthread_mutex_lock(&w->mutex);
        while (!w->given) {
            (void)pthread_cond_wait(&w->wake, &w->mutex);
        }
        w->given = false;
        (void)pthread_mutex_unlock(&w->mutex);
        (void)atomic_fetch_add(&side.done, 1);
        check(write(side.rung, &one, sizeof one) == sizeof one, "write");
    }
    return NULL;
}

static void give(struct worker *w)
{
    (void)pthread_mutex_lock(&w->mutex);
    w->given = true;
    (void)pthread_mutex_unlock(&w->mutex);
    (void)pthread_cond_signal(&w->wake);
}

static void send_message(void)
{
    static const uint8_t message[DEPTH_MAX * CALL_SIZE];

    check(send(side.socket, message, side.size, MSG_NOSIGNAL) == (ssize_t)side.size, "send");
}

/* Its socket, the number of its workers and the size of a message are set. */
static void side_open(void)
{
    side.rung = eventfd(0, EFD_NONBLOCK);
    side.epoll = epoll_create1(0);
    for (int i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = i == 0 ? side.socket : side.rung};

        check(epoll_ctl(side.epoll, EPOLL_CTL_ADD, event.data.fd, &event) == 0, "epoll_ctl");
    }
    for (int i = 0; i < side.workers; i++) {
        struct worker *w = &side.worker[i];

        (void)pthread_mutex_init(&w->mutex, NULL);
        (void)pthread_cond_init(&w->wake, NULL);
        check(pthread_create(&w->thread, NULL, work, w) == 0, "pthread_create");
    }
}

/* Take the next message, hand it to the workers, and wait for them. False: the peer has gone. */
static bool turn(void)
{
    static uint8_t bytes[DEPTH_MAX * CALL_SIZE];
    size_t came = 0;

    for (;;) {
        struct epoll_event event;
        uint64_t rings = 0;

        if (epoll_wait(side.epoll, &event, 1, -1) != 1) {
            continue;
        }
        if (event.data.fd == side.rung) {
            (void)!read(side.rung, &rings, sizeof rings);
            if (atomic_load(&side.done) == side.workers) {
                atomic_store(&side.done, 0);
                return true;
            }
            continue;
        }
        const ssize_t some = recv(side.socket, bytes, side.size - came, 0);
        if (some <= 0) {
            return false;
        }
        came += (size_t)some;
        for (int i = 0; i < side.workers && came == side.size; i++) {
            give(&side.worker[i]);
        }
    }
}

/* Two ends of a connection over loopback, as a link is. */
static void connect_pair(int pair[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *address = (struct sockaddr *)&at;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;
    socklen_t size = sizeof at;

    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    check(bind(listener, address, size) == 0 && listen(listener, 1) == 0, "listen");
    check(getsockname(listener, address, &size) == 0, "getsockname");
    check(connect(pair[0], address, size) == 0, "connect");
    pair[1] = accept(listener, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        check(setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "setsockopt");
    }
    (void)close(listener);
}

int main(int argc, char **argv)
{
    const size_t depth = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    const size_t rounds = depth == 0 ? 0 : strtoul(argv[1], NULL, 10) / depth;
    int pair[2];

    if (rounds == 0 || depth > DEPTH_MAX) {
        (void)fprintf(stderr, "usage: wakes_bench COUNT DEPTH (COUNT >= DEPTH, DEPTH 1 to 1024)\n");
        return 2;
    }
    connect_pair(pair);
    const pid_t child = fork();
    check(child >= 0, "fork");
    (void)close(pair[child == 0 ? 0 : 1]);
    side.socket = pair[child == 0 ? 1 : 0];
    side.workers = child == 0 ? WORKERS_MAX : 1;
    side.size = depth * CALL_SIZE;
    side_open();
    while (child == 0) {
        if (!turn()) {
            _exit(0);
        }
        send_message();
    }
    const uint64_t start_ns = now_ns();
    for (size_t i = 0; i < rounds; i++) {
        send_message();
        check(turn(), "the second process has gone");
    }
    (void)printf("%.0f\n", (double)(rounds * depth) * 1e9 / (double)(now_ns() - start_ns));
    return 0;
}
