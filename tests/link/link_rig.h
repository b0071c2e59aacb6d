/* SPDX-License-Identifier: Apache-2.0
 *
 * Two and more link layers in one process, over real sockets on loopback. The
 * clock is the real one plus what run_on() adds, so that no test waits for a
 * timer; until() runs all sides until what the test is about has happened.
 *
 * All of it runs with each side's streams on nng, and on a uv loop of its own; what needs no
 * peer without a link layer by TLS, too.
 */
#ifndef TESTS_LINK_LINK_RIG_H
#define TESTS_LINK_LINK_RIG_H

/* SPDX-License-Identifier: Apache-2.0
 *
 * Two and more link layers in one process, over real sockets on loopback. The
 * clock is the real one plus what run_on() adds, so that no test waits for a
 * timer; until() runs all sides until what the test is about has happened.
 *
 * All of it runs with each side's streams on nng, and on a uv loop of its own; what needs no
 * peer without a link layer by TLS, too.
 */
#include "base/log.h"
#include "base/mem.h"
#include "cli/authority.h"
#include "link/link.h"
#include "tests/folder.h"
#include "tests/hex.h"
#include "tests/test.h"
#include "wire/address.h"
#include "wire/cursor.h"
#include "wire/hello.h"
#include "wire/record.h"
#include "wire/refusals.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

enum { SIDES_MAX = 3, LINES_MAX = 64, PATIENCE_MS = 20000, LINKS_SEEN_MAX = 8 };

/* ---- one side: a link layer and what it was told */

struct side {
    struct links *links;
    char pair[500]; /* files of TLS */
    char certificate[500];
    char key[500];
    struct links_config config;
    struct link_events events;
    struct link *up[LINKS_SEEN_MAX]; /* links that are up */
    size_t up_count;
    size_t ups;
    size_t downs;
    size_t refusals;
    char refused[256];
    char down_reason[256];
    const char *refuse; /* what the hello callback answers */
    uint64_t frames;
    uint64_t records;
    uint64_t frame_bytes;
    uint64_t next; /* number that the next numbered frame must carry */
    bool disorder;
    bool echo;         /* send frames back */
    bool forget_on_up; /* and on frame, and on down: inside the callback */
    bool drop_on_frame;
    uint64_t reborn_on_hello; /* if not 0: its incarnation from then on */
    enum frame_type last_type;
    uint16_t last_count;
    uint8_t last[16];
    size_t last_size;
};

static struct side sides[SIDES_MAX];
static uint64_t skipped_us;

static int wake_pipe[2]; /* what nng's threads write to */

/* Transport that carries the links of each side. */
static const struct client_transport {
    const char *name;
    bool uv[SIDES_MAX];
    bool tls;
} transports[] = {
    {"links over nng", {false, false, false}, false},
    {"links over uv", {true, true, true}, false},
    {"nng dials uv", {true, false, false}, false},
    {"uv dials nng", {false, true, true}, false},
    {"links over nng by TLS", {false, false, false}, true},
    {"links over uv by TLS", {true, true, true}, true},
    {"nng dials uv by TLS", {true, false, false}, true},
    {"uv dials nng by TLS", {false, true, true}, true},
};
static const struct client_transport *transport;
static uv_loop_t loops[SIDES_MAX];
static bool loop_runs[SIDES_MAX];

static char lines[LINES_MAX][512];
static size_t line_count;

static inline void on_line(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    if (line_count < LINES_MAX) {
        (void)snprintf(lines[line_count++], sizeof lines[0], "%s", line);
    }
}

static inline size_t lines_with(const char *part)
{
    size_t count = 0;

    for (size_t i = 0; i < line_count; i++) {
        count += strstr(lines[i], part) != NULL;
    }
    return count;
}

static inline enum refusal on_hello(void *context, const struct link *link,
                                    const struct hello *peer, const char **why)
{
    const struct side *side = context;

    (void)link;
    (void)peer;
    if (side->reborn_on_hello != 0) {
        links_set_incarnation(side->links, side->reborn_on_hello);
    }
    *why = side->refuse;
    return side->refuse == NULL ? REFUSAL_NONE : REFUSAL_OWNER;
}

static inline void on_up(void *context, struct link *link)
{
    struct side *side = context;

    side->ups++;
    if (side->forget_on_up) {
        links_forget(side->links, link);
        return;
    }
    assert_true(side->up_count < LINKS_SEEN_MAX);
    side->up[side->up_count++] = link;
}

static inline void on_down(void *context, struct link *link, const char *reason)
{
    struct side *side = context;

    side->downs++;
    (void)snprintf(side->down_reason, sizeof side->down_reason, "%s", reason);
    for (size_t i = 0; i < side->up_count; i++) {
        if (side->up[i] == link) {
            side->up[i] = side->up[--side->up_count];
        }
    }
}

static inline void on_refused(void *context, struct link *link, const char *reason)
{
    struct side *side = context;

    (void)link;
    side->refusals++;
    (void)snprintf(side->refused, sizeof side->refused, "%s", reason);
}

static inline void on_frame(void *context, struct link *link, const struct frame *frame)
{
    struct side *side = context;
    struct reader r = {.at = frame->body.data, .left = frame->body.size};

    side->frames++;
    side->records += frame->count;
    side->frame_bytes += frame->body.size;
    side->last_type = frame->type;
    side->last_count = frame->count;
    side->last_size = frame->body.size;
    memcpy(side->last,
           frame->body.data,
           frame->body.size < sizeof side->last ? frame->body.size : sizeof side->last);
    if (frame->type == FRAME_STATE && frame->body.size >= 8) {
        side->disorder = side->disorder || get_u64(&r) != side->next++;
    }
    if (side->echo) {
        (void)!link_send(link, frame->type, frame->body);
    }
    if (side->drop_on_frame) {
        link_drop(link, "dropped by the test");
        assert_false(link_is_up(link));
    }
}

static inline void on_wake(void *context)
{
    (void)context;
    (void)!write(wake_pipe[1], "", 1);
}

static inline void *loop_of(size_t index)
{
    if (!transport->uv[index]) {
        return NULL;
    }
    if (!loop_runs[index]) {
        assert_int_equal(uv_loop_init(&loops[index]), 0);
        loop_runs[index] = true;
    }
    return &loops[index];
}

static inline struct side *side_prepare(size_t index, enum link_role role, const char *name)
{
    struct side *side = &sides[index];

    *side = (struct side){.config = links_config_default()};
    side->config.loop = loop_of(index);
    side->config.self.role = role;
    (void)snprintf(side->config.self.name, sizeof side->config.self.name, "%s", name);
    (void)snprintf(side->config.self.cluster, sizeof side->config.self.cluster, "test");
    side->events = (struct link_events){.context = side,
                                        .hello = on_hello,
                                        .up = on_up,
                                        .down = on_down,
                                        .refused = on_refused,
                                        .frame = on_frame,
                                        .wake = on_wake};
    return side;
}

static struct authority *authority; /* of all, while TLS is tried */
static char authority_folder[400];

/* A certificate that says of the side what its hello says. */
static inline void side_certify(struct side *side)
{
    static char ca[500];
    const struct hello *self = &side->config.self;
    struct subject subject = {.role = self->role};
    char why[PEM_WHY_SIZE];

    memcpy(subject.cluster, self->cluster, sizeof subject.cluster);
    memcpy(subject.name, self->name, sizeof subject.name);
    assert_true(authority_issue(authority, &subject, 1, true, why));
    (void)snprintf(ca, sizeof ca, "%s/ca.pem", authority_folder);
    (void)snprintf(side->pair,
                   sizeof side->pair,
                   "%s/%s-%s",
                   authority_folder,
                   subject_role_name(self->role),
                   self->name);
    (void)snprintf(side->certificate, sizeof side->certificate, "%.480s.pem", side->pair);
    (void)snprintf(side->key, sizeof side->key, "%.480s.key", side->pair);
    side->config.tls =
        (struct link_files){.ca = ca, .certificate = side->certificate, .key = side->key};
}

static inline void side_open(struct side *side)
{
    if (transport->tls) {
        side_certify(side);
    }
    assert_int_equal(links_open(&side->links, &side->config, &side->events), ERR_OK);
}

static inline struct side *side_start(size_t index, enum link_role role, const char *name)
{
    struct side *side = side_prepare(index, role, name);

    side_open(side);
    return side;
}

static inline uint64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000 + skipped_us;
}

static inline void poll_side(struct side *side)
{
    if (side->config.loop != NULL) {
        (void)uv_run(side->config.loop, UV_RUN_NOWAIT);
    }
    if (side->links != NULL) {
        links_poll(side->links, now_us());
        links_flush(side->links);
    }
}

/* Sleep until there is something for us, or a moment: timers want to run. */
static inline void await_wake(void)
{
    struct pollfd fds[1 + SIDES_MAX] = {{.fd = wake_pipe[0], .events = POLLIN}};
    char bytes[64];

    for (size_t i = 0; i < SIDES_MAX; i++) {
        fds[1 + i].fd = loop_runs[i] ? uv_backend_fd(&loops[i]) : -1;
        fds[1 + i].events = POLLIN;
    }
    (void)poll(fds, 1 + SIDES_MAX, 5);
    (void)!read(wake_pipe[0], bytes, sizeof bytes);
}

typedef bool (*condition)(void);

static inline void until_at(condition holds, int line)
{
    const uint64_t patience_us = now_us() - skipped_us + (uint64_t)PATIENCE_MS * 1000;

    while (!holds()) {
        for (size_t i = 0; i < SIDES_MAX; i++) {
            poll_side(&sides[i]);
        }
        if (now_us() - skipped_us > patience_us) {
            fail_msg("line %d: it did not happen", line);
        }
        if (!holds()) {
            await_wake();
        }
    }
}
#define until(holds) until_at(holds, __LINE__)

/* Let the clock run on by `ms`, in steps that are no gap to the link layer. The time that a step
 * really takes is part of `ms`. If it came on top, a slow machine would pass limits that the test
 * does not mean to pass. */
static inline void run_on(uint64_t ms)
{
    const uint64_t begin_us = now_us();

    for (uint64_t at = 100; at <= ms; at += 100) {
        const uint64_t due_us = begin_us + at * 1000;
        const uint64_t is_us = now_us();

        skipped_us += due_us > is_us ? due_us - is_us : 0;
        for (size_t i = 0; i < SIDES_MAX; i++) {
            poll_side(&sides[i]);
        }
        await_wake();
    }
}

static inline int setup(void **state)
{
    (void)state;
    line_count = 0;
    log_set_sink(on_line, NULL);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIDES_MAX; i++) {
        links_close(sides[i].links);
        sides[i] = (struct side){0};
        if (loop_runs[i]) {
            (void)uv_run(&loops[i], UV_RUN_DEFAULT);
            assert_int_equal(uv_loop_close(&loops[i]), 0); // no handle is left
            loop_runs[i] = false;
        }
    }
    log_set_sink(NULL, NULL);
    return 0;
}

/* ---- conditions */

static inline bool both_up(void)
{
    return sides[0].up_count == 1 && sides[1].up_count == 1;
}

static inline bool second_up(void)
{
    return sides[1].up_count >= 1;
}

static inline bool first_down(void)
{
    return sides[0].downs >= 1;
}

static inline bool second_down(void)
{
    return sides[1].downs >= 1;
}

static inline bool refused_once(void)
{
    return sides[1].refusals >= 1;
}

static inline bool one_side_refused_and_the_other_knows(void)
{
    return sides[1].refusals >= 1 && links_counts(sides[0].links).refused >= 1;
}

static inline bool two_refusals(void)
{
    return sides[1].refusals >= 2;
}

static inline bool first_of_first_up(void)
{
    return sides[0].up_count == 1;
}

static char bound[160];

/* Sides 0 (listens) and 1 (dials), linked. */
static inline struct link *start_pair(void)
{
    struct side *listening = side_start(0, ROLE_NODE, "n2");
    struct side *dialling = side_start(1, ROLE_NODE, "n1");

    assert_int_equal(links_listen(listening->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(dialling->links, bound);
    assert_non_null(link);
    until(both_up);
    return link;
}

/* ---- a peer without a link layer */

/* Skip cases for a peer that speaks no TLS either: what such a peer does to links is not tried with
 * TLS. */
static inline void plain_only(void)
{
    if (transport->tls) {
        skip();
    }
}

static inline int plain_connect(void)
{
    struct address address;
    struct sockaddr_in to = {.sin_family = AF_INET};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(address_parse(bound, &address), ERR_OK);
    to.sin_port = htons(address.port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static inline void plain_send(int fd, struct bytes bytes)
{
    assert_int_equal(send(fd, bytes.data, bytes.size, MSG_NOSIGNAL), bytes.size);
}

static int plain_fd;
static struct buffer plain_in;

/* Take in what has come; true once the other side has closed. */
static inline bool plain_closed(void)
{
    uint8_t *at = buffer_reserve(&plain_in, 4096);
    const ssize_t size = recv(plain_fd, at, 4096, MSG_DONTWAIT);

    if (size > 0) {
        plain_in.size += (size_t)size;
        return false;
    }
    return size == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static inline bool plain_got_something(void)
{
    return plain_closed() || plain_in.size > 0;
}

static inline void plain_end(void)
{
    (void)close(plain_fd);
    buffer_fini(&plain_in);
}

static inline void plain_hello(struct buffer *out, enum link_role role)
{
    struct hello hello = links_config_default().self;
    struct buffer body = {0};

    hello.role = role;
    hello.protocol = (struct versions){LINK_PROTOCOL_TODAY, LINK_PROTOCOL_TODAY};
    strcpy(hello.name, "plain");
    strcpy(hello.cluster, "test");
    hello_put(&body, &hello);
    frame_put(out, FRAME_HELLO, 1, buffer_bytes(&body));
    frame_put(out, FRAME_WELCOME, 1, (struct bytes){0});
    buffer_fini(&body);
}

/* ---- open descriptors */

static inline size_t open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

static size_t files_wanted;

static inline bool files_are_closed(void)
{
    return open_files() <= files_wanted;
}

/* ---- cases */

static inline bool one_frame(void)
{
    return sides[1].frames == 1;
}

static inline bool second_of_first_up(void)
{
    return sides[0].up_count == 2;
}

static inline int tls_begins(void **state)
{
    char why[PEM_WHY_SIZE];

    (void)state;
    folder_make(authority_folder, sizeof authority_folder);
    assert_true(authority_create(authority_folder, "test", 1, why));
    authority = authority_open(authority_folder, why);
    return authority == NULL;
}

static inline int tls_ends(void **state)
{
    (void)state;
    authority_free(authority);
    authority = NULL;
    folder_remove(authority_folder);
    return 0;
}

#define LINK_CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static inline void open_wake_pipe(void)
{
    assert_int_equal(pipe(wake_pipe), 0);
    assert_int_equal(fcntl(wake_pipe[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(fcntl(wake_pipe[1], F_SETFL, O_NONBLOCK), 0);
}

/* All cases, on each carrier. */
static inline int run_on_transports(const struct CMUnitTest *cases, size_t count)
{
    int failures = 0;

    open_wake_pipe();
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        transport = &transports[i];
        failures += _cmocka_run_group_tests(transport->name,
                                            cases,
                                            count,
                                            transport->tls ? tls_begins : NULL,
                                            transport->tls ? tls_ends : NULL);
    }
    return failures;
}

#endif
