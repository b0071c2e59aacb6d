/* SPDX-License-Identifier: Apache-2.0
 *
 * A steady trickle of commands over many connections, for bench/calm: SET and GET by turns, each
 * alone on its connection, evenly in time.
 *
 *     calm_bench RATE SECONDS CONNECTIONS KEYS PORT [PORT…]
 *     calm_bench RATE SECONDS CONNECTIONS KEYS packets:PORT
 *
 * Of several ports each is a master of a Redis Cluster, with an equal run of the 16,384 slots: a
 * connection asks for keys of its master alone. By packets, for the relay (relay_uv.c), each
 * command is a request with 64 bytes. Prints how many answers came; fails on an error.
 */
#include "base/bytes.h"
#include "gateway/protocol/packet.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { SLOTS = 16384, CONNECTIONS_MAX = 1024, EVENTS = 64, PATIENCE_MS = 5000, VALUE = 64 };

struct load {
    unsigned rate;
    unsigned keys;
    unsigned masters;
    bool packets;
    struct buffer request; /* a packet */
    size_t connection_count;
    int connection[CONNECTIONS_MAX];
    int epoll;
    int timer;
    size_t next; /* connection */
    uint64_t seed;
    uint64_t sent;
    uint64_t answered;
};

static _Noreturn void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* CRC-16/XMODEM, as Redis Cluster has it. */
static unsigned slot_of(const char *key)
{
    unsigned crc = 0;

    for (; *key != '\0'; key++) {
        crc ^= (unsigned)(unsigned char)*key << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc & 0x8000) != 0 ? (crc << 1 ^ 0x1021) & 0xffff : crc << 1 & 0xffff;
        }
    }
    return crc % SLOTS;
}

static void watch(struct load *l, int file, uint32_t index)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = index};

    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, file, &e) != 0) {
        fail("epoll_ctl");
    }
}

static void dial(struct load *l, size_t index, const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;

    if (file < 0 || connect(file, (struct sockaddr *)&to, sizeof to) != 0) {
        fail(port);
    }
    (void)setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    l->connection[index] = file;
    watch(l, file, (uint32_t)index);
}

/* The relay answers a hello before anything else. */
static void greet(int file)
{
    struct buffer hello = {0};
    char ack[256];

    packet_put_hello(&hello, &(struct hello_packet){PACKET_VERSION, PACKET_VERSION, 0});
    if (write(file, hello.data, hello.size) != (ssize_t)hello.size ||
        read(file, ack, sizeof ack) <= 0) {
        fail("hello");
    }
    buffer_fini(&hello);
}

static void draw_key(struct load *l, size_t connection, char key[32])
{
    do {
        l->seed = l->seed * 6364136223846793005u + 1442695040888963407u;
        (void)snprintf(key, 32, "key:%012u", (unsigned)((l->seed >> 33) % l->keys));
    } while (slot_of(key) * l->masters / SLOTS != connection % l->masters);
}

static const char value[VALUE + 1] =
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void ask_by_packet(struct load *l)
{
    char key[32];

    draw_key(l, l->next, key);
    buffer_clear(&l->request);
    packet_put_request(&l->request,
                       PACKET_REQUEST,
                       &(struct request_packet){.request = (uint32_t)++l->sent,
                                                .id = bytes_of(key, strlen(key)),
                                                .payload = bytes_of(value, VALUE)});
    if (write(l->connection[l->next], l->request.data, l->request.size) !=
        (ssize_t)l->request.size) {
        fail("write");
    }
    l->next = (l->next + 1) % l->connection_count;
}

static void ask(struct load *l)
{
    const size_t connection = l->next;
    char key[32];
    char text[256];

    draw_key(l, connection, key);
    l->next = (l->next + 1) % l->connection_count;
    const int size =
        l->sent++ % 2 == 0
            ? snprintf(text,
                       sizeof text,
                       "*3\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$%d\r\n%s\r\n",
                       strlen(key),
                       key,
                       VALUE,
                       value)
            : snprintf(text, sizeof text, "*2\r\n$3\r\nGET\r\n$%zu\r\n%s\r\n", strlen(key), key);
    if (write(l->connection[connection], text, (size_t)size) != size) {
        fail("write");
    }
}

static void ask_what_is_due(struct load *l, uint64_t total)
{
    uint64_t periods = 0;

    if (read(l->timer, &periods, sizeof periods) != sizeof periods) {
        return;
    }
    for (; periods > 0 && l->sent < total; periods--) {
        if (l->packets) {
            ask_by_packet(l);
        } else {
            ask(l);
        }
    }
}

static void take_packets(struct load *l, struct bytes in)
{
    struct packet packet;

    while (packet_next(in, PACKET_BODY_MAX, &packet) == PACKET_WHOLE) {
        l->answered += packet.type == PACKET_RESPONSE;
        in.data += PACKET_HEADER + packet.body.size;
        in.size -= PACKET_HEADER + packet.body.size;
    }
}

/* Answers come whole: they are a few bytes. "$64", a line, has another line behind it. */
static void take(struct load *l, size_t connection)
{
    char text[4096];
    const ssize_t size = read(l->connection[connection], text, sizeof text - 1);

    if (size <= 0) {
        fail("read");
    }
    if (l->packets) {
        take_packets(l, bytes_of(text, (size_t)size));
        return;
    }
    text[size] = '\0';
    for (const char *at = text, *end = NULL; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        if (*at == '-') {
            (void)fprintf(stderr, "calm_bench: %s", at);
            exit(1);
        }
        l->answered += *at == '+' || *at == '$';
    }
}

static void run(struct load *l, uint64_t total)
{
    const struct itimerspec period = {.it_interval.tv_nsec = 1000000000L / l->rate,
                                      .it_value.tv_nsec = 1000000000L / l->rate};

    (void)timerfd_settime(l->timer, 0, &period, NULL);
    while (l->answered < total) {
        struct epoll_event e[EVENTS];
        const int count = epoll_wait(l->epoll, e, EVENTS, PATIENCE_MS);

        if (count <= 0) {
            fail("no answer");
        }
        for (int i = 0; i < count; i++) {
            if (e[i].data.u32 == CONNECTIONS_MAX) {
                ask_what_is_due(l, total);
            } else {
                take(l, e[i].data.u32);
            }
        }
    }
}

int main(int argc, char **argv)
{
    static struct load l;

    if (argc < 6) {
        (void)fprintf(stderr, "usage: calm_bench RATE SECONDS CONNECTIONS KEYS PORT [PORT…]\n");
        return 2;
    }
    l.rate = (unsigned)strtoul(argv[1], NULL, 10);
    l.connection_count = strtoul(argv[3], NULL, 10);
    l.keys = (unsigned)strtoul(argv[4], NULL, 10);
    l.masters = (unsigned)argc - 5;
    if (l.rate < 2 || l.keys < 100 || l.connection_count < 1 ||
        l.connection_count > CONNECTIONS_MAX) {
        return 2;
    }
    l.epoll = epoll_create1(0);
    l.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    l.packets = strncmp(argv[5], "packets:", strlen("packets:")) == 0;
    for (size_t i = 0; i < l.connection_count; i++) {
        dial(&l, i, argv[5 + i % l.masters] + (l.packets ? strlen("packets:") : 0));
        if (l.packets) {
            greet(l.connection[i]);
        }
    }
    watch(&l, l.timer, CONNECTIONS_MAX);
    run(&l, (uint64_t)l.rate * strtoul(argv[2], NULL, 10));
    (void)printf("%llu\n", (unsigned long long)l.answered);
    return 0;
}
