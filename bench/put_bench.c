/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts to etcd, over keep-alive connections to its JSON gateway:
 *
 *     put_bench load MS DEPTH HOST:PORT
 *     put_bench load2 MS DEPTH HOST:PORT
 *     put_bench watch MS DEPTH HOST:PORT...
 *
 * What commit_bench does with coordinators. `load`: a closed loop of DEPTH
 * connections to one member; `load2` asks its older API, which has no gateway to
 * gRPC behind it and keeps no history. `watch`: each member is asked every WATCH_MS, over
 * DEPTH connections, without waiting for earlier answers: a put that died with
 * a leader would be waited for 7 s. Prints what commit_bench prints.
 */
#include "bench/took.h"
#include "wire/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MEMBERS_MAX = 5,
    CONNECTIONS_MAX = 1024,
    WATCH_MS = 10,
    GIVE_UP_MS = 2000,
    NS_PER_MS = 1000000,
    ANSWER_MAX = 4096,
    SAMPLES_MAX = 4000000
};

struct connection {
    int fd; /* -1 = closed */
    size_t member;
    uint64_t sent_ns; /* 0 = nothing under way */
    size_t size;
    char answer[ANSWER_MAX];
};

struct bench {
    struct sockaddr_in address[MEMBERS_MAX];
    size_t members;
    struct connection connection[CONNECTIONS_MAX];
    size_t count;
    bool watch;
    bool older; /* API */
    uint64_t asked_ns[MEMBERS_MAX];
    uint64_t *took_ns; /* owned */
    size_t done;
};

static void hang_up(struct connection *c)
{
    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    c->fd = -1;
    c->sent_ns = 0;
    c->size = 0;
}

static bool dial(const struct bench *b, struct connection *c)
{
    const int one = 1;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd >= 0 && connect(c->fd,
                              (const struct sockaddr *)&b->address[c->member],
                              sizeof b->address[c->member]) == 0) {
        (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        (void)fcntl(c->fd, F_SETFL, O_NONBLOCK);
        return true;
    }
    hang_up(c);
    return false;
}

/* "bench-NNNN" and 16 bytes, in base64 for the gateway. */
static void ask(const struct bench *b, struct connection *c)
{
    static const char digit[] = "ABCDEFGHIJ";
    const size_t at = (size_t)(c - b->connection);
    char body[128];
    char request[512];

    if (c->fd < 0 && !dial(b, c)) {
        return;
    }
    (void)snprintf(body,
                   sizeof body,
                   b->older
                       ? "value=0123456789ab%c%c%c%c"
                       : "{\"key\":\"YmVuY2gt%c%c%c%c\",\"value\":\"MDEyMzQ1Njc4OWFiY2RlZg==\"}",
                   digit[at / 1000 % 10],
                   digit[at / 100 % 10],
                   digit[at / 10 % 10],
                   digit[at % 10]);
    const int size = snprintf(request,
                              sizeof request,
                              "%s HTTP/1.1\r\nHost: etcd\r\nContent-Type: application/%s\r\n"
                              "Content-Length: %zu\r\n\r\n%s",
                              b->older ? "PUT /v2/keys/bench" : "POST /v3/kv/put",
                              b->older ? "x-www-form-urlencoded" : "json",
                              strlen(body),
                              body);
    c->sent_ns = now_ns();
    c->size = 0;
    if (write(c->fd, request, (size_t)size) != size) {
        hang_up(c);
    }
}

/* True when the answer is whole; `*good`: it was put. */
static bool is_whole(const struct connection *c, bool *good)
{
    const char *body = strstr(c->answer, "\r\n\r\n");
    const char *length = strstr(c->answer, "Content-Length: ");

    *good = strncmp(c->answer, "HTTP/1.1 20", 11) == 0; // 201: there was none yet
    if (body == NULL) {
        return false;
    }
    if (length != NULL && length < body) {
        return c->size >= (size_t)(body + 4 - c->answer) + strtoul(length + 16, NULL, 10);
    }
    return strstr(body, "\r\n0\r\n\r\n") != NULL; // in chunks
}

static void on_answer(struct bench *b, struct connection *c)
{
    const uint64_t now = now_ns();
    bool good = false;

    const ssize_t got = read(c->fd, c->answer + c->size, ANSWER_MAX - 1 - c->size);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN) {
            hang_up(c);
        }
        return;
    }
    c->size += (size_t)got;
    c->answer[c->size] = '\0';
    if (!is_whole(c, &good)) {
        return;
    }
    if (good && b->watch) {
        (void)printf("%" PRIu64 " %" PRIu64 "\n", c->sent_ns, now);
        (void)fflush(stdout);
    } else if (good && b->done < SAMPLES_MAX) {
        b->took_ns[b->done++] = now - c->sent_ns;
    }
    c->sent_ns = 0;
    if (!b->watch) {
        ask(b, c);
    }
}

/* One more of each member, over a connection that is free. */
static void ask_members(struct bench *b)
{
    const uint64_t now = now_ns();

    for (size_t i = 0; i < b->count; i++) {
        struct connection *c = &b->connection[i];

        if (c->sent_ns != 0 && now - c->sent_ns > (uint64_t)GIVE_UP_MS * (uint64_t)NS_PER_MS) {
            hang_up(c);
        }
        if (c->sent_ns == 0 &&
            now - b->asked_ns[c->member] >= (uint64_t)WATCH_MS * (uint64_t)NS_PER_MS) {
            b->asked_ns[c->member] = now;
            ask(b, c);
        }
    }
}

static void turn(struct bench *b)
{
    static struct pollfd wait[CONNECTIONS_MAX];

    for (size_t i = 0; i < b->count; i++) {
        if (!b->watch && b->connection[i].sent_ns == 0) {
            ask(b, &b->connection[i]);
        }
        wait[i] = (struct pollfd){.fd = b->connection[i].fd, .events = POLLIN};
    }
    if (b->watch) {
        ask_members(b);
    }
    if (poll(wait, b->count, 2) <= 0) {
        return;
    }
    for (size_t i = 0; i < b->count; i++) {
        if (wait[i].revents != 0 && b->connection[i].fd == wait[i].fd) {
            on_answer(b, &b->connection[i]);
        }
    }
}

static bool find_member(struct sockaddr_in *out, const char *text)
{
    struct address parsed;

    out->sin_family = AF_INET;
    if (address_parse(text, &parsed) != ERR_OK ||
        inet_pton(AF_INET, parsed.host, &out->sin_addr) != 1) {
        return false;
    }
    out->sin_port = htons(parsed.port);
    return true;
}

static void run(struct bench *b, uint64_t ms)
{
    const uint64_t start_ns = now_ns();

    while (now_ns() - start_ns < ms * NS_PER_MS) {
        turn(b);
    }
    if (!b->watch) {
        took_print(b->took_ns, b->done, start_ns);
    }
}

int main(int argc, char **argv)
{
    static struct bench b;

    if (argc < 5 || argc > 4 + MEMBERS_MAX) {
        (void)fprintf(stderr, "put_bench load|load2|watch MS DEPTH HOST:PORT...\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    b.watch = strcmp(argv[1], "watch") == 0;
    b.older = strcmp(argv[1], "load2") == 0;
    b.members = (size_t)argc - 4;
    b.count = b.members * strtoul(argv[3], NULL, 10);
    b.took_ns = calloc(SAMPLES_MAX, sizeof *b.took_ns);
    if (b.took_ns == NULL || b.count < 1 || b.count > CONNECTIONS_MAX) {
        return 2;
    }
    for (size_t i = 0; i < b.members; i++) {
        if (!find_member(&b.address[i], argv[4 + i])) {
            return 2;
        }
    }
    for (size_t i = 0; i < b.count; i++) {
        b.connection[i].fd = -1;
        b.connection[i].member = i % b.members;
    }
    run(&b, strtoull(argv[2], NULL, 10));
    for (size_t i = 0; i < b.count; i++) {
        hang_up(&b.connection[i]);
    }
    free(b.took_ns);
    return b.done > 0 || b.watch ? 0 : 1;
}
