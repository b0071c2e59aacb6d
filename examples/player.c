/* SPDX-License-Identifier: Apache-2.0
 *
 * A player's client in a loop of its own: what is typed goes to an actor, and what
 * the actor pushes is shown. It stays in its session while lines drop and gateways
 * come and go.
 *
 *     cc $(pkg-config --cflags ringhold-client) player.c \
 *         $(pkg-config --libs ringhold-client) -o player
 *     ./player HOST:PORT,HOST:PORT KIND ID [TOKEN]
 *
 * Each line of input is a request; "!TEXT" is a notify. At the end of the input it
 * waits for its answers, and goes.
 */
#include <poll.h>
#include <ringhold_client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 100 * 1024 };

struct player {
    struct rhc_tcp *tcp;
    uint16_t kind;
    struct rhc_bytes id;
    char now[255];        /* the id, if it was rebound */
    char line[LINE_SIZE]; /* typed, not whole yet */
    size_t line_size;
    unsigned waiting; /* for answers */
    int leaving;
};

static void show(const char *what, struct rhc_bytes text)
{
    (void)printf("%s %.*s\n", what, (int)text.size, (const char *)text.data);
    (void)fflush(stdout);
}

static void on_answer(void *context, unsigned status, struct rhc_bytes payload, uint32_t retry_ms)
{
    struct player *p = context;

    (void)retry_ms;
    p->waiting--;
    // One of a later version of the protocol is as good as UNKNOWN.
    (void)printf("answer %s ", rhc_status_name(status > RHC_RATE_LIMITED ? RHC_UNKNOWN : status));
    show("", payload);
}

static void on_event(void *context, const struct rhc_event *e)
{
    struct player *p = context;

    switch (e->type) {
    case RHC_EVENT_READY:
        show("ready", e->payload);
        break;
    case RHC_EVENT_BOUND:
        show("bound", e->fresh ? (struct rhc_bytes){"afresh", 6} : (struct rhc_bytes){"again", 5});
        break;
    case RHC_EVENT_PUSH:
        (void)printf(
            "push %llu lost %llu ", (unsigned long long)e->sequence, (unsigned long long)e->lost);
        show("", e->payload);
        break;
    case RHC_EVENT_GOAWAY:
        show("goaway", e->payload);
        break;
    case RHC_EVENT_LOST:
        show("lost", e->payload);
        break;
    case RHC_EVENT_REFUSED:
        show("refused", e->payload);
        break;
    case RHC_EVENT_BEGUN:
        show("begun", e->payload);
        break;
    case RHC_EVENT_KICKED:
        (void)printf("kicked %u ", (unsigned)e->code);
        show("", e->payload);
        p->leaving = 1;
        break;
    case RHC_EVENT_REBOUND: // what is typed goes to that one from here on
        (void)printf("rebound %u ", (unsigned)e->code);
        show("", e->payload);
        p->kind = (uint16_t)e->code;
        memcpy(p->now, e->payload.data, e->payload.size);
        p->id = (struct rhc_bytes){p->now, e->payload.size};
        break;
    case RHC_EVENT_KNOWN:
        (void)printf("known %u ", (unsigned)e->code);
        show("", e->payload);
        break;
    case RHC_EVENT_UNBOUND:
    case RHC_EVENT_RESPONSE: // ours have callbacks
        break;
    }
}

static void ask(struct player *p, const char *text, size_t size)
{
    const int told = size > 0 && text[0] == '!';
    const struct rhc_request r = {
        .kind = p->kind,
        .id = p->id,
        .payload = {text + told, size - (size_t)told},
        .done = on_answer,
        .context = p,
    };
    struct rhc *c = rhc_tcp_client(p->tcp);

    int result = RHC_FULL;

    for (;;) {
        result = told ? rhc_tell(c, &r, rhc_now_ms()) : rhc_ask(c, &r, rhc_now_ms(), NULL);
        if (result != RHC_FULL) {
            break;
        }
        rhc_tcp_poll(p->tcp, 100); // answers make room
    }
    if (result == RHC_TOO_LARGE && !told) {
        show("answer BAD_REQUEST ", (struct rhc_bytes){"larger than the gateway takes", 29});
    }
    p->waiting += result == RHC_DONE && !told;
}

/* What was typed, as far as there are whole lines. */
static void read_lines(struct player *p)
{
    const ssize_t got = read(STDIN_FILENO, p->line + p->line_size, LINE_SIZE - p->line_size);
    char *end = NULL;

    if (got <= 0) {
        p->leaving = 1;
        return;
    }
    p->line_size += (size_t)got;
    while ((end = memchr(p->line, '\n', p->line_size)) != NULL) {
        const size_t size = (size_t)(end - p->line);

        ask(p, p->line, size);
        p->line_size -= size + 1;
        memmove(p->line, end + 1, p->line_size);
    }
    if (p->line_size == LINE_SIZE) {
        p->line_size = 0; // too long for a line
    }
}

static void run(struct player *p)
{
    while (!p->leaving || p->waiting > 0) {
        struct pollfd fd[] = {
            {.fd = rhc_tcp_fd(p->tcp),
             .events = (short)(POLLIN | (rhc_tcp_wants_write(p->tcp) ? POLLOUT : 0))},
            {.fd = p->leaving ? -1 : STDIN_FILENO, .events = POLLIN},
        };

        (void)poll(fd, 2, rhc_tcp_wait_ms(p->tcp));
        if (fd[1].revents != 0) {
            read_lines(p);
        }
        rhc_tcp_poll(p->tcp, 0);
    }
}

int main(int argc, char **argv)
{
    struct player p = {0};

    if (argc != 4 && argc != 5) {
        (void)fprintf(stderr, "usage: player HOST:PORT,HOST:PORT KIND ID [TOKEN]\n");
        return 2;
    }
    const struct rhc_options options = {
        .abi = RHC_ABI,
        .size = sizeof options,
        .token = argc == 5 ? argv[4] : NULL,
        .seed = (uint64_t)getpid() * 1000003 + rhc_now_ms(),
    };

    p.kind = (uint16_t)strtoul(argv[2], NULL, 10);
    p.id = (struct rhc_bytes){argv[3], strlen(argv[3])};
    p.tcp = rhc_tcp_new(argv[1], &options, on_event, &p);
    if (p.tcp == NULL || rhc_bind(rhc_tcp_client(p.tcp), p.kind, p.id) != RHC_DONE) {
        (void)fprintf(stderr, "player: gateways, id or token make no sense\n");
        return 1;
    }
    (void)rhc_start(rhc_tcp_client(p.tcp), rhc_now_ms());
    run(&p);
    rhc_stop(rhc_tcp_client(p.tcp));
    rhc_tcp_poll(p.tcp, 0);
    rhc_tcp_free(p.tcp);
    return 0;
}
