/* SPDX-License-Identifier: Apache-2.0
 *
 * Two and more link layers in one process, over real sockets on loopback. The
 * clock is the real one plus what run_on() adds, so that no test waits for a
 * timer; until() runs all sides until what the test is about has happened.
 *
 * All of it runs with each side's streams on nng, and on a uv loop of its own; what needs no
 * peer without a link layer by TLS, too.
 */
#include "wire/link.h"

#include "base/log.h"
#include "base/mem.h"
#include "wire/address.h"
#include "wire/cursor.h"
#include "wire/hello.h"
#include "wire/record.h"
#include "wire/refusals.h"

#include "cli/authority.h"
#include "tests/folder.h"
#include "tests/hex.h"
#include "tests/test.h"

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

/* Which body carries the links of which side. */
static const struct carrier {
    const char *name;
    bool uv[SIDES_MAX];
    bool tls;
} carriers[] = {
    {"links over nng", {false, false, false}, false},
    {"links over uv", {true, true, true}, false},
    {"nng dials uv", {true, false, false}, false},
    {"uv dials nng", {false, true, true}, false},
    {"links over nng by TLS", {false, false, false}, true},
    {"links over uv by TLS", {true, true, true}, true},
    {"nng dials uv by TLS", {true, false, false}, true},
    {"uv dials nng by TLS", {false, true, true}, true},
};
static const struct carrier *carrier;
static uv_loop_t loops[SIDES_MAX];
static bool loop_runs[SIDES_MAX];

static char lines[LINES_MAX][512];
static size_t line_count;

static void on_line(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    if (line_count < LINES_MAX) {
        (void)snprintf(lines[line_count++], sizeof lines[0], "%s", line);
    }
}

static size_t lines_with(const char *part)
{
    size_t count = 0;

    for (size_t i = 0; i < line_count; i++) {
        count += strstr(lines[i], part) != NULL;
    }
    return count;
}

static const char *on_hello(void *context, const struct hello *peer)
{
    const struct side *side = context;

    (void)peer;
    if (side->reborn_on_hello != 0) {
        links_set_incarnation(side->links, side->reborn_on_hello);
    }
    return side->refuse;
}

static void on_up(void *context, struct link *link)
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

static void on_down(void *context, struct link *link, const char *reason)
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

static void on_refused(void *context, struct link *link, const char *reason)
{
    struct side *side = context;

    (void)link;
    side->refusals++;
    (void)snprintf(side->refused, sizeof side->refused, "%s", reason);
}

static void on_frame(void *context, struct link *link, const struct frame *frame)
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
    if (frame->type == FRAME_CONTROL && frame->body.size >= 8) {
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

static void on_wake(void *context)
{
    (void)context;
    (void)!write(wake_pipe[1], "", 1);
}

static void *loop_of(size_t index)
{
    if (!carrier->uv[index]) {
        return NULL;
    }
    if (!loop_runs[index]) {
        assert_int_equal(uv_loop_init(&loops[index]), 0);
        loop_runs[index] = true;
    }
    return &loops[index];
}

static struct side *side_prepare(size_t index, enum link_role role, const char *name)
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
static void side_certify(struct side *side)
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

static void side_open(struct side *side)
{
    if (carrier->tls) {
        side_certify(side);
    }
    assert_int_equal(links_open(&side->links, &side->config, &side->events), ERR_OK);
}

static struct side *side_start(size_t index, enum link_role role, const char *name)
{
    struct side *side = side_prepare(index, role, name);

    side_open(side);
    return side;
}

static uint64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000 + skipped_us;
}

static void poll_side(struct side *side)
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
static void await_wake(void)
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

static void until_at(condition holds, int line)
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

/* Let the clock run on by `ms`, in steps that are no gap to the link layer. */
static void run_on(uint64_t ms)
{
    for (uint64_t at = 0; at < ms; at += 100) {
        skipped_us += 100000;
        for (size_t i = 0; i < SIDES_MAX; i++) {
            poll_side(&sides[i]);
        }
        await_wake();
    }
}

static int setup(void **state)
{
    (void)state;
    line_count = 0;
    log_set_sink(on_line, NULL);
    return 0;
}

static int teardown(void **state)
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

static bool both_up(void)
{
    return sides[0].up_count == 1 && sides[1].up_count == 1;
}

static bool second_up(void)
{
    return sides[1].up_count >= 1;
}

static bool first_down(void)
{
    return sides[0].downs >= 1;
}

static bool second_down(void)
{
    return sides[1].downs >= 1;
}

static bool refused_once(void)
{
    return sides[1].refusals >= 1;
}

static bool one_side_refused_and_the_other_knows(void)
{
    return sides[1].refusals >= 1 && links_counts(sides[0].links).refused >= 1;
}

static bool two_refusals(void)
{
    return sides[1].refusals >= 2;
}

static bool first_of_first_up(void)
{
    return sides[0].up_count == 1;
}

static char bound[160];

/* Sides 0 (listens) and 1 (dials), linked. */
static struct link *start_pair(void)
{
    struct side *listening = side_start(0, ROLE_COORDINATOR, "1");
    struct side *dialling = side_start(1, ROLE_NODE, "n1");

    assert_int_equal(links_listen(listening->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(dialling->links, bound);
    assert_non_null(link);
    until(both_up);
    return link;
}

/* ---- a peer without a link layer */

/* It speaks no TLS, either: what such a peer does to links is not tried with it. */
static void plain_only(void)
{
    if (carrier->tls) {
        skip();
    }
}

static int plain_connect(void)
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

static void plain_send(int fd, struct bytes bytes)
{
    assert_int_equal(send(fd, bytes.data, bytes.size, MSG_NOSIGNAL), bytes.size);
}

static int plain_fd;
static struct buffer plain_in;

/* Take in what has come; true once the other side has closed. */
static bool plain_closed(void)
{
    uint8_t *at = buffer_reserve(&plain_in, 4096);
    const ssize_t size = recv(plain_fd, at, 4096, MSG_DONTWAIT);

    if (size > 0) {
        plain_in.size += (size_t)size;
        return false;
    }
    return size == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static bool plain_got_something(void)
{
    return plain_closed() || plain_in.size > 0;
}

static void plain_end(void)
{
    (void)close(plain_fd);
    buffer_fini(&plain_in);
}

static void plain_hello(struct buffer *out, enum link_role role)
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

static size_t open_files(void)
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

static bool files_are_closed(void)
{
    return open_files() <= files_wanted;
}

/* ---- cases */

static void a_hello_brings_a_link_up_on_both_sides(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");

    (void)state;
    strcpy(b->config.self.address, "127.0.0.1:9");
    b->config.self.identity = 42;
    side_open(b);
    links_set_incarnation(b->links, 77);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(b->links, bound);
    assert_false(link_is_up(link));
    assert_int_equal(link_send(link, FRAME_CONTROL, text("x")), ERR_STOPPED);
    until(both_up);

    assert_ptr_equal(b->up[0], link);
    assert_true(link_dialled(link));
    assert_false(link_dialled(a->up[0]));
    assert_string_equal(link_address(link), bound);
    assert_string_equal(link_peer(link)->name, "1");
    assert_int_equal(link_peer(link)->role, ROLE_COORDINATOR);
    assert_string_equal(link_peer(link)->product, "ringhold " RINGHOLD_VERSION);
    assert_string_equal(link_peer(a->up[0])->name, "n1");
    assert_string_equal(link_peer(a->up[0])->address, "127.0.0.1:9");
    assert_int_equal(link_peer(a->up[0])->incarnation, 77);
    assert_int_equal(link_peer(a->up[0])->identity, 42);
    assert_null(link_user(link));
    link_set_user(link, a);
    assert_ptr_equal(link_user(link), a);
    assert_int_equal(a->ups, 1);
    assert_int_equal(b->ups, 1);
}

static bool who_dialled_knows_the_incarnation(void)
{
    const struct side *dialler = &sides[1];

    return both_up() && link_is_up(dialler->up[0]) &&
           link_peer(dialler->up[0])->incarnation == sides[0].reborn_on_hello;
}

/* A node registers while a gateway's hello and its own cross: after the restore of a backup which
 * did not know it, gateways dial it in that very moment. */
static void a_hello_of_the_incarnation_before_is_said_again(void **state)
{
    struct side *node = side_start(0, ROLE_NODE, "n1");
    struct side *gateway = side_start(1, ROLE_GATEWAY, "g1");

    (void)state;
    node->reborn_on_hello = 78;
    assert_int_equal(links_listen(node->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    (void)links_dial(gateway->links, bound);
    until(who_dialled_knows_the_incarnation);
}

static bool thousand_back(void)
{
    return sides[1].frames == 1000;
}

/* The other side may have read it before this side is told that it is sent. */
static bool all_is_sent(void)
{
    return link_queued(sides[1].up[0]) == 0;
}

static void frames_arrive_in_order_both_ways(void **state)
{
    struct link *link = start_pair();

    (void)state;
    sides[0].echo = true;
    for (uint64_t i = 0; i < 1000; i++) {
        uint8_t body[200] = {0};
        struct writer w = {.at = body, .left = sizeof body};

        put_u64(&w, i);
        assert_int_equal(link_send(link, FRAME_CONTROL, bytes_of(body, 8 + i % 192)), ERR_OK);
    }
    assert_true(link_queued(link) > 0);
    until(thousand_back);
    assert_int_equal(sides[0].frames, 1000);
    assert_false(sides[0].disorder);
    assert_false(sides[1].disorder);
    assert_int_equal(sides[0].frame_bytes, sides[1].frame_bytes);
    until(all_is_sent);
}

static bool seven_records(void)
{
    return sides[0].records == 7;
}

static void records_of_one_turn_travel_in_one_frame(void **state)
{
    struct link *link = start_pair();

    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(link_send_record(link, FRAME_REQUEST, text("abc")), ERR_OK);
    }
    assert_int_equal(link_send_record(link, FRAME_ANSWER, text("d")), ERR_OK);
    assert_int_equal(link_send_record(link, FRAME_ANSWER, text("e")), ERR_OK);
    until(seven_records);
    assert_int_equal(sides[0].frames, 2);
    assert_int_equal(sides[0].last_type, FRAME_ANSWER);
    assert_int_equal(sides[0].last_count, 2);
    assert_int_equal(sides[0].last_size, 2);
    assert_memory_equal(sides[0].last, "de", 2);
    assert_int_equal(sides[0].frame_bytes, 17);
}

static bool one_frame_came(void)
{
    return sides[0].frames == 1;
}

static bool two_frames_came(void)
{
    return sides[0].frames == 2;
}

static bool three_frames_came(void)
{
    return sides[0].frames == 3;
}

static void records_wait_at_a_closed_gate_and_nothing_else_does(void **state)
{
    struct link *link = start_pair();

    (void)state;
    links_set_gate(sides[1].links, 1); // That is over.
    assert_int_equal(link_send(link, FRAME_CONTROL, text("c")), ERR_OK);
    until(one_frame_came);
    assert_int_equal(link_send_record(link, FRAME_ANSWER, text("late")), ERR_OK);
    assert_int_equal(link_send(link, FRAME_CONTROL, text("d")), ERR_OK); // It keeps its place.
    run_on(100);
    assert_int_equal(sides[0].frames, 1);
    assert_true(link_queued(link) > 0);
    links_set_gate(sides[1].links, UINT64_MAX);
    until(three_frames_came);
    assert_int_equal(sides[0].records, 3);
    assert_memory_equal(sides[0].last, "d", 1);
    until(all_is_sent);
}

static bool cut_in_the_middle(void)
{
    const size_t left = link_queued(sides[1].up[0]);

    return left > 0 && left < 30000000;
}

static bool big_ones_came(void)
{
    return sides[0].records == 30;
}

static void the_gate_closes_on_what_is_half_out(void **state)
{
    enum { PIECE = 1000000, COUNT = 30 };
    struct link *link = start_pair();
    uint8_t *piece = mem_new(1, PIECE);
    size_t left = 0;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(link_send_record(link, FRAME_STATE, bytes_of(piece, PIECE)), ERR_OK);
    }
    until(cut_in_the_middle);
    links_set_gate(sides[1].links, 1);
    do { // What nng has of it, it may still hand on, at its pace: all that is queued it has not.
        left = link_queued(link);
        run_on(200);
    } while (left != link_queued(link));
    assert_true(left > 0);
    links_set_gate(sides[1].links, UINT64_MAX);
    until(big_ones_came);
    mem_free(piece);
}

static bool both_big_ones_came(void)
{
    return sides[1].records == 2;
}

static void what_gathers_behind_a_write_that_was_cut_short_follows_by_itself(void **state)
{
    enum { PIECE = 6000000 }; // More than a socket takes at once.
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");
    uint8_t *piece = mem_new(1, PIECE);

    (void)state;
    a->config.ping_ms = b->config.ping_ms = 60000; // No ping must be needed to push it out.
    side_open(a);
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(both_up);
    for (int i = 0; i < 5; i++) {
        b->records = 0;
        assert_int_equal(link_send(a->up[0], FRAME_RAFT, bytes_of(piece, PIECE)), ERR_OK);
        links_flush(a->links);
        assert_int_equal(link_send(a->up[0], FRAME_RAFT, bytes_of(piece, PIECE)), ERR_OK);
        links_flush(a->links);
        until(both_big_ones_came);
    }
    mem_free(piece);
}

static bool many_records(void)
{
    return sides[0].records == 70000;
}

static void more_records_than_a_frame_takes_go_in_several(void **state)
{
    struct link *link = start_pair();

    (void)state;
    for (int i = 0; i < 70000; i++) {
        assert_int_equal(link_send_record(link, FRAME_STATE_ACK, text("a")), ERR_OK);
    }
    until(many_records);
    assert_int_equal(sides[0].frames, 2);
    assert_int_equal(sides[0].last_count, 70000 - FRAME_RECORDS_MAX);
}

static const struct request_record pushed = {.gateway = 1, .id = {(const uint8_t *)"bob", 3}};

static bool thousand_records(void)
{
    return sides[0].records == 1001;
}

static void a_body_that_many_records_have_is_in_a_frame_once(void **state)
{
    static uint8_t body[1000];
    struct link *link = start_pair();
    struct buffer same = {0};

    (void)state;
    request_put_same(&same, &pushed);
    const struct bytes brief = buffer_bytes(&same);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(link_send_common(link, brief, bytes_of(body, sizeof body), 1), ERR_OK);
    }
    // Something else comes between them, then another body.
    assert_int_equal(link_send_record(link, FRAME_REQUEST, text("abc")), ERR_OK);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(link_send_common(link, brief, bytes_of(body, 10), 1 + (uint64_t)i / 250),
                         ERR_OK);
    }
    until(thousand_records);
    assert_int_equal(links_counts(sides[1].links).same, 1000 - 3);
    assert_int_equal(sides[0].frames, 1);
    assert_int_equal(sides[0].frame_bytes, 1000 * brief.size + sizeof body + 20 + 3);
    buffer_fini(&same);
}

static void each_frame_has_the_body_again(void **state)
{
    static uint8_t body[1000];
    struct link *link = start_pair();
    struct buffer same = {0};
    const size_t in_one = (256 * 1024 - FRAME_HEADER_SIZE - sizeof body) / 78;

    (void)state;
    request_put_same(&same, &pushed);
    const struct bytes brief = buffer_bytes(&same);
    assert_int_equal(brief.size, 78);
    for (size_t i = 0; i < in_one + 1; i++) {
        assert_int_equal(link_send_common(link, brief, bytes_of(body, sizeof body), 1), ERR_OK);
    }
    until(two_frames_came);
    assert_int_equal(sides[0].last_count, 1);
    assert_int_equal(sides[0].last_size, brief.size + sizeof body);
    assert_int_equal(links_counts(sides[1].links).same, in_one - 1);
    buffer_fini(&same);
}

static void another_cluster_is_refused_and_both_sides_log_why_once(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");

    (void)state;
    plain_only();
    strcpy(b->config.self.cluster, "prod");
    b->config.retry_max_ms = 20;
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(two_refusals);
    assert_string_equal(b->refused, "cluster is 'test' there, 'prod' here");
    assert_int_equal(lines_with("reason=\"cluster is 'test' there, 'prod' here\""), 1);
    assert_int_equal(lines_with("reason=\"cluster is 'prod' there, 'test' here\""), 1);
    assert_int_equal(lines_with("peer=n1 role=node"), 1);
    assert_int_equal(a->ups + b->ups + a->downs + b->downs, 0);
}

static void no_protocol_in_common_is_refused_and_counted(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");
    const uint64_t newer = refusals_of(REFUSAL_PEER_NEWER);
    const uint64_t older = refusals_of(REFUSAL_PEER_OLDER);

    (void)state;
    b->config.self.protocol = (struct versions){9, 9};
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(one_side_refused_and_the_other_knows);
    assert_int_equal(lines_with("protocol is 9..9 there, 4.."), 1);
    assert_int_equal(lines_with("there, 9..9 here: upgrade coordinator 1"), 1);
    assert_true(refusals_of(REFUSAL_PEER_NEWER) > newer);
    assert_true(refusals_of(REFUSAL_PEER_OLDER) > older);
}

static void a_link_of_two_versions_speaks_the_older_and_the_log_says_so(void **state)
{
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");

    (void)state;
    a->config.self.protocol = (struct versions){4, 6};
    b->config.self.protocol = (struct versions){3, 4};
    side_open(a);
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(b->links, bound);
    assert_non_null(link);
    until(both_up);
    assert_int_equal(link_protocol(link), 4);
    assert_int_equal(link_protocol(a->up[0]), 4);
    assert_int_equal(lines_with("link mixed peer=n1 role=node"), 1);
    assert_int_equal(lines_with("link mixed peer=1 role=coordinator"), 1);
}

static bool one_record_came(void)
{
    return sides[0].records == 1;
}

static void two_of_the_next_protocol_speak_that(void **state)
{
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");

    (void)state;
    a->config.self.protocol.newest = b->config.self.protocol.newest = LINK_PROTOCOL_TODAY + 1;
    side_open(a);
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(b->links, bound);
    assert_non_null(link);
    until(both_up);
    assert_int_equal(link_protocol(link), LINK_PROTOCOL_TODAY + 1);
    assert_int_equal(link_send_record(link, FRAME_ANSWER, text("marked")), ERR_OK);
    until(one_record_came);
}

static void one_that_welcomes_another_protocol_than_was_chosen_is_cut(void **state)
{
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");
    struct buffer hello = {0};

    (void)state;
    plain_only();
    a->config.self.protocol.newest = LINK_PROTOCOL_TODAY + 1;
    side_open(a);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    plain_hello(&hello, ROLE_NODE);
    hello.size -= FRAME_HEADER_SIZE; // its welcome
    frame_put(&hello, FRAME_WELCOME, 1, bytes_of("\5\0\0\0", 4));
    plain_fd = plain_connect();
    plain_send(plain_fd, buffer_bytes(&hello));
    until(plain_closed);
    assert_int_equal(lines_with("welcome to another protocol than was chosen"), 1);
    assert_int_equal(a->ups, 0);
    plain_end();
    buffer_fini(&hello);
}

static void the_owner_may_refuse_with_a_reason_of_its_own(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_start(1, ROLE_NODE, "n1");

    (void)state;
    a->refuse = "name n1 is taken";
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(refused_once);
    assert_string_equal(b->refused, "name n1 is taken");
    assert_int_equal(lines_with("by=us reason=\"name n1 is taken\""), 1);
    assert_int_equal(lines_with("by=peer reason=\"name n1 is taken\""), 1);
    // It may be accepted later: the dialling side goes on trying.
    a->refuse = NULL;
    run_on(1500);
    until(both_up);
}

static void the_dialling_side_may_refuse_too(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_start(1, ROLE_NODE, "n1");

    (void)state;
    b->refuse = "not that coordinator";
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(one_side_refused_and_the_other_knows);
    assert_int_equal(lines_with("by=us reason=\"not that coordinator\""), 1);
    assert_int_equal(lines_with("by=peer reason=\"not that coordinator\""), 1);
    assert_int_equal(a->ups, 0);
}

static bool all_numbered_came(void)
{
    return sides[0].frames == sides[1].records;
}

static void a_full_queue_is_busy_and_drains_without_loss(void **state)
{
    enum { PIECE = 1024 * 1024, QUEUE = 8 };
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");
    uint8_t *body = mem_new(1, PIECE);
    enum err e = ERR_OK;

    (void)state;
    b->config.queue_size_max = (size_t)QUEUE * PIECE;
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(b->links, bound);
    until(both_up);
    // Side 0 is not polled, so it does not read: what the kernel takes is bounded.
    for (b->records = 0; b->records < 64; b->records++) {
        struct writer w = {.at = body, .left = PIECE};

        put_u64(&w, b->records);
        e = link_send(link, FRAME_CONTROL, bytes_of(body, PIECE));
        if (e != ERR_OK) {
            break;
        }
        poll_side(b);
    }
    assert_int_equal(e, ERR_BUSY);
    assert_int_equal(links_counts(b->links).busy, 1);
    assert_true(link_queued(link) <= (size_t)QUEUE * PIECE);
    assert_true(link_is_up(link));
    until(all_numbered_came);
    assert_false(a->disorder);
    assert_int_equal(link_send(link, FRAME_CONTROL, bytes_of(body, 4)), ERR_OK);
    mem_free(body);
}

static bool one_frame(void)
{
    return sides[1].frames == 1;
}

static void only_a_coordinator_may_send_what_is_huge(void **state)
{
    enum { HUGE_SIZE = 20 * 1024 * 1024 };
    struct link *link = start_pair();
    uint8_t *body = mem_new(1, HUGE_SIZE);

    (void)state;
    assert_int_equal(link_send(link, FRAME_CONTROL, bytes_of(body, (size_t)4 * 1024 * 1024)),
                     ERR_TOO_BIG);
    assert_int_equal(link_send(sides[0].up[0], FRAME_RAFT, bytes_of(body, FRAME_SIZE_MAX)),
                     ERR_TOO_BIG);
    assert_int_equal(link_send(sides[0].up[0], FRAME_RAFT, bytes_of(body, HUGE_SIZE)), ERR_OK);
    until(one_frame);
    assert_int_equal(sides[1].frame_bytes, HUGE_SIZE);
    mem_free(body);
}

static void a_link_comes_back_when_the_listener_does(void **state)
{
    struct link *link = start_pair();
    struct side *a = &sides[0];

    (void)state;
    links_close(a->links);
    a->links = NULL;
    until(second_down);
    assert_false(link_is_up(link));
    assert_int_equal(sides[1].downs, 1);
    run_on(3000);
    assert_int_equal(lines_with("unreachable"), 1);
    side_start(0, ROLE_COORDINATOR, "1");
    assert_int_equal(links_listen(a->links, bound, NULL, 0), ERR_OK);
    until(second_up);
    assert_ptr_equal(sides[1].up[0], link);
    assert_int_equal(sides[1].ups, 2);
    until(both_up);
}

static void a_dropped_link_goes_down_once_and_is_dialled_again(void **state)
{
    struct link *link = start_pair();

    (void)state;
    link_drop(link, "dropped by the test");
    assert_false(link_is_up(link));
    assert_int_equal(link_send(link, FRAME_CONTROL, text("x")), ERR_STOPPED);
    assert_int_equal(sides[1].downs, 0);
    until(second_down);
    assert_string_equal(sides[1].down_reason, "dropped by the test");
    until(first_down);
    until(both_up);
    assert_int_equal(sides[1].downs, 1);
    assert_int_equal(sides[0].downs, 1);
}

static void a_link_may_be_dropped_while_its_frames_are_delivered(void **state)
{
    struct link *link = start_pair();

    (void)state;
    sides[0].drop_on_frame = true;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(link_send(link, FRAME_RAFT, text("x")), ERR_OK);
    }
    until(first_down);
    assert_int_equal(sides[0].frames, 1);
    sides[0].drop_on_frame = false;
    until(both_up);
}

static void a_link_may_be_forgotten_at_any_moment(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_start(1, ROLE_NODE, "n1");

    (void)state;
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    links_forget(b->links, links_dial(b->links, bound)); // while it dials
    struct link *link = links_dial(b->links, bound);
    until(both_up);
    links_forget(b->links, link);
    until(first_down);
    b->up_count = 0;
    a->forget_on_up = true; // on the accepting side, within the callback
    link = links_dial(b->links, bound);
    until(second_down);
    links_forget(b->links, link);
    assert_int_equal(b->downs, 1);
}

static pid_t child;

static bool flooded(void)
{
    return sides[0].frames > 100;
}

static void a_killed_peer_is_down_and_nothing_else_is_hurt(void **state)
{
    char self[] = "/proc/self/exe";
    char word[] = "peer";
    char which[] = {(char)('0' + (carrier - carriers)), '\0'};
    char *argv[] = {self, word, bound, which, NULL};
    char *envp[] = {NULL};

    (void)state;
    plain_only();
    struct link *link = start_pair();
    sides[0].echo = true;
    for (int round = 0; round < 3; round++) {
        sides[0].frames = 0;
        sides[0].downs = 0;
        assert_int_equal(posix_spawn(&child, self, NULL, NULL, argv, envp), 0);
        until(flooded);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        until(first_down);
    }
    sides[0].frames = sides[1].frames = 0;
    assert_int_equal(link_send(link, FRAME_RAFT, text("still here")), ERR_OK);
    until(one_frame);
    assert_int_equal(sides[1].downs, 0);
}

static void what_is_not_ours_is_cut_off_with_one_line(void **state)
{
    const struct {
        struct bytes bytes;
        const char *line;
    } strangers[] = {
        {text("GET / HTTP/1.1\r\n\r\n"), "not a ringhold link: no frame\" bytes=\"GET / HTTP/1.1"},
        {text("*1\r\n$4\r\nPING\r\n"), "bytes=\"*1\\x0d\\x0a$4"},
        {bytes_of("\x16\x03\x01\x02\0\1\0", 7), "bytes=\"\\x16\\x03\\x01\\x02"},
        {bytes_of("\x08\0\0\0\x04\0\1\0", 8), "not a ringhold link: no hello first"},
        {bytes_of("\x08\0\0\0\x01\0\1\0", 8), "not a ringhold link: no valid hello"},
        {bytes_of("\x08\0\0\0\x02\0\1\0", 8), "not a ringhold link: welcome before hello"},
        {bytes_of("\1\0\1\0\1", 5), "not a ringhold link: no frame"}, // over 64 KiB
    };

    (void)state;
    plain_only();
    struct link *link = start_pair();
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        line_count = 0;
        plain_fd = plain_connect();
        plain_send(plain_fd, strangers[i].bytes);
        until(plain_closed);
        assert_int_equal(line_count, 1);
        assert_int_equal(lines_with(strangers[i].line), 1);
        assert_int_equal(links_counts(sides[0].links).garbage, i + 1);
        plain_end();
    }
    assert_true(link_is_up(link));
    assert_int_equal(sides[0].downs, 0);
}

static void a_broken_frame_on_a_good_link_ends_it(void **state)
{
    const struct bytes broken[] = {
        bytes_of("\1\0\x40\0", 4),           // one byte over 4 MiB
        bytes_of("\x08\0\0\0\x08\1\1\0", 8), // flags
        bytes_of("\x08\0\0\0\x02\0\1\0", 8), // a second welcome
        bytes_of("\x08\0\0\0\x10\0\0\0", 8), // no records
        bytes_of("\x08\0\0\0\x10\1\1\0", 8), // records of the next protocol
        bytes_of("\xff\xff\xff\xff\x08", 5), //
    };

    (void)state;
    plain_only();
    struct link *link = start_pair();
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        struct buffer hello = {0};

        sides[0].downs = 0;
        line_count = 0;
        plain_hello(&hello, ROLE_NODE);
        plain_fd = plain_connect();
        plain_send(plain_fd, buffer_bytes(&hello));
        plain_send(plain_fd, broken[i]);
        until(plain_closed);
        until(first_down);
        assert_int_equal(lines_with("broken frame"), 1);
        plain_end();
        buffer_fini(&hello);
    }
    assert_true(link_is_up(link));
}

static bool second_of_first_up(void)
{
    return sides[0].up_count == 2;
}

static void a_hello_may_come_byte_by_byte(void **state)
{
    struct buffer bytes = {0};

    (void)state;
    plain_only();
    start_pair();
    plain_hello(&bytes, ROLE_GATEWAY);
    plain_fd = plain_connect();
    for (size_t i = 0; i < bytes.size; i++) {
        plain_send(plain_fd, bytes_of(bytes.data + i, 1));
        poll_side(&sides[0]);
    }
    until(second_of_first_up);
    until(plain_got_something);
    plain_end();
    until(first_down);
    buffer_fini(&bytes);
}

static void a_frame_cut_short_is_just_a_lost_link(void **state)
{
    struct buffer bytes = {0};

    (void)state;
    plain_only();
    struct link *link = start_pair();
    plain_hello(&bytes, ROLE_NODE);
    buffer_put(&bytes, "\x20\0\0\0\x08\0\1\0half", 12);
    plain_fd = plain_connect();
    plain_send(plain_fd, buffer_bytes(&bytes));
    until(second_of_first_up);
    plain_end();
    until(first_down);
    assert_int_equal(sides[0].frames, 0);
    assert_int_equal(links_counts(sides[0].links).garbage, 0);
    assert_true(link_is_up(link));
    buffer_fini(&bytes);
}

static void who_says_nothing_is_cut_off(void **state)
{
    (void)state;
    struct link *link = start_pair();
    plain_fd = plain_connect();
    run_on(2000); // And what the machine takes for it.
    assert_false(plain_closed());
    run_on(1200);
    until(plain_closed);
    assert_int_equal(links_counts(sides[0].links).silent, 1);
    assert_true(link_is_up(link));
    plain_end();
}

static bool plain_was_pinged(void)
{
    (void)plain_closed();
    for (size_t at = 0; at < plain_in.size;) {
        struct frame frame;
        size_t size;

        if (frame_decode(
                bytes_of(plain_in.data + at, plain_in.size - at), FRAME_SIZE_MAX, &frame, &size) !=
            ERR_OK) {
            return false; // the rest of it is still to come
        }
        if (frame.type == FRAME_PING) {
            return true;
        }
        at += size;
    }
    return false;
}

static void who_falls_silent_is_pinged_and_then_dropped(void **state)
{
    struct buffer hello = {0};

    (void)state;
    plain_only();
    struct link *link = start_pair();
    plain_hello(&hello, ROLE_NODE);
    plain_fd = plain_connect();
    plain_send(plain_fd, buffer_bytes(&hello));
    until(second_of_first_up);
    run_on(1500);
    until(plain_was_pinged);
    run_on(4000);
    until(plain_closed);
    until(first_down);
    assert_string_equal(sides[0].down_reason, "peer is silent");
    // The other link was as idle, but pings were answered.
    assert_true(link_is_up(link));
    assert_int_equal(sides[1].downs, 0);
    plain_end();
    buffer_fini(&hello);
}

static void who_never_reads_is_dropped_with_all_that_waits_for_it(void **state)
{
    enum { PIECE = 1024 * 1024 };
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");
    struct buffer hello = {0};

    (void)state;
    plain_only();
    uint8_t *body = mem_new(1, PIECE);
    a->config.queue_size_max = (size_t)4 * PIECE;
    side_open(a);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    files_wanted = open_files();
    plain_hello(&hello, ROLE_NODE);
    plain_fd = plain_connect();
    plain_send(plain_fd, buffer_bytes(&hello));
    until(first_of_first_up);
    while (link_send(a->up[0], FRAME_RAFT, bytes_of(body, PIECE)) == ERR_OK) {
        poll_side(a);
    }
    // Pings that are never read earn no pongs beyond the same bound.
    for (int i = 0; i < 1000; i++) {
        plain_send(plain_fd, bytes_of("\x08\0\0\0\x04\0\1\0", 8));
    }
    run_on(200);
    assert_true(link_queued(a->up[0]) <= (size_t)4 * PIECE + FRAME_HEADER_SIZE);
    run_on(6000);
    until(first_down);
    assert_string_equal(a->down_reason, "peer is silent");
    plain_end();
    until(files_are_closed);
    mem_free(body);
    buffer_fini(&hello);
}

static void our_own_sleep_is_no_silence_of_the_peer(void **state)
{
    (void)state;
    struct link *link = start_pair();
    skipped_us += 60000000;
    poll_side(&sides[0]);
    poll_side(&sides[1]);
    run_on(200);
    assert_true(link_is_up(link));
    assert_int_equal(sides[0].downs + sides[1].downs, 0);
}

static uint64_t accepted_wanted;

static bool all_accepted(void)
{
    return links_counts(sides[0].links).accepted >= accepted_wanted;
}

static void a_flood_of_connections_does_not_stop_the_listener(void **state)
{
    (void)state;
    side_start(0, ROLE_COORDINATOR, "1");
    side_start(1, ROLE_NODE, "n1");
    assert_int_equal(links_listen(sides[0].links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    files_wanted = open_files();
    for (accepted_wanted = 50; accepted_wanted <= 200; accepted_wanted += 50) {
        // Gone before they are accepted, half of them with a reset; and no more
        // at a time than nng's backlog of 128 takes.
        for (int i = 0; i < 50; i++) {
            const struct linger reset = {.l_onoff = i % 2};
            const int fd = plain_connect();

            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
            (void)close(fd);
        }
        until(all_accepted);
    }
    until(files_are_closed);
    assert_non_null(links_dial(sides[1].links, bound));
    until(both_up);
}

static void strangers_cannot_use_up_all_connections(void **state)
{
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");
    int silent[4];

    (void)state;
    a->config.connections_max = 2;
    side_open(a);
    side_start(1, ROLE_NODE, "n1");
    side_start(2, ROLE_NODE, "n2");
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    for (int i = 0; i < 4; i++) {
        silent[i] = plain_connect();
    }
    assert_non_null(links_dial(sides[1].links, bound));
    assert_non_null(links_dial(sides[2].links, bound));
    until(second_of_first_up);
    assert_true(links_counts(a->links).turned_away >= 4);
    // Both places are taken by links that are up: now the newcomer must go.
    line_count = 0;
    plain_fd = plain_connect();
    until(plain_closed);
    assert_int_equal(lines_with("connections_max=2"), 1);
    assert_int_equal(a->downs, 0);
    plain_end();
    for (int i = 0; i < 4; i++) {
        (void)close(silent[i]);
    }
}

static void addresses_in_use_or_wrong_are_errors(void **state)
{
    char other[160];

    (void)state;
    start_pair();
    assert_int_equal(links_listen(sides[1].links, bound, other, sizeof other), ERR_CONFLICT);
    assert_int_equal(links_listen(sides[1].links, "127.0.0.1", other, sizeof other), ERR_INVALID);
    assert_int_equal(links_listen(sides[1].links, "x:99999", other, sizeof other), ERR_INVALID);
    assert_int_equal(links_listen(sides[1].links, "1.2.3.4:0", other, sizeof other), ERR_INVALID);
    assert_null(links_dial(sides[1].links, "127.0.0.1"));
    assert_null(links_dial(sides[1].links, "127.0.0.1:0"));
    assert_null(links_dial(sides[1].links, "http://127.0.0.1:1"));
}

static void a_process_may_dial_itself(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");

    (void)state;
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(a->links, bound));
    until(second_of_first_up);
}

static void ipv6_addresses_are_in_brackets(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_start(1, ROLE_NODE, "n1");
    const int probe = socket(AF_INET6, SOCK_STREAM, 0);
    const struct sockaddr_in6 loopback = {.sin6_family = AF_INET6,
                                          .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    (void)state;
    const bool have =
        probe >= 0 && bind(probe, (const struct sockaddr *)&loopback, sizeof loopback) == 0;
    (void)close(probe);
    if (!have) {
        skip(); // A machine without IPv6.
    }
    assert_int_equal(links_listen(a->links, "[::1]:0", bound, sizeof bound), ERR_OK);
    assert_int_equal(strncmp(bound, "[::1]:", 6), 0);
    assert_non_null(links_dial(b->links, bound));
    until(both_up);
}

static void a_self_that_no_peer_would_take_is_refused_at_open(void **state)
{
    struct side *a = side_prepare(0, ROLE_NODE, "not a name");

    (void)state;
    assert_int_equal(links_open(&a->links, &a->config, &a->events), ERR_INVALID);
    a->links = NULL;
}

/* The child of a_killed_peer…: floods whoever listens at `address` until it is killed. */
static _Noreturn void flood(const char *address)
{
    uint8_t body[5000] = {0};

    side_start(2, ROLE_NODE, "child");
    struct link *link = links_dial(sides[2].links, address);
    for (;;) {
        poll_side(&sides[2]);
        while (link_queued(link) < 1000000 &&
               link_send(link, FRAME_RAFT, bytes_of(body, sizeof body)) == ERR_OK) {
        }
        links_flush(sides[2].links);
        await_wake();
    }
}

static uint64_t refused_before;

static bool first_saw_plaintext(void)
{
    return refusals_of(REFUSAL_PLAINTEXT) > refused_before && plain_closed();
}

static void who_speaks_no_tls_is_refused_counted_and_logged_once(void **state)
{
    struct buffer bytes = {0};

    (void)state;
    if (!carrier->tls) {
        skip();
    }
    start_pair();
    for (int i = 0; i < 2; i++) {
        refused_before = refusals_of(REFUSAL_PLAINTEXT);
        buffer_clear(&bytes);
        plain_hello(&bytes, ROLE_NODE);
        plain_fd = plain_connect();
        plain_send(plain_fd, buffer_bytes(&bytes));
        until(first_saw_plaintext);
        assert_int_equal(refusals_of(REFUSAL_PLAINTEXT), refused_before + 1);
        plain_end();
    }
    assert_int_equal(lines_with("refusal=plaintext reason=\"it speaks no TLS\""), 1);
    assert_int_equal(sides[0].up_count, 1); // the good one
    buffer_fini(&bytes);
}

static bool second_saw_a_cluster(void)
{
    return refusals_of(REFUSAL_CLUSTER) > refused_before + 2;
}

static void a_certificate_of_another_cluster_is_refused(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_prepare(1, ROLE_NODE, "n1");

    (void)state;
    if (!carrier->tls) {
        skip();
    }
    refused_before = refusals_of(REFUSAL_CLUSTER);
    strcpy(b->config.self.cluster, "prod");
    b->config.retry_max_ms = 20;
    side_open(b);
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    assert_non_null(links_dial(b->links, bound));
    until(second_saw_a_cluster);
    assert_int_equal(lines_with("refusal=cluster"), 2); // each side once
    assert_int_equal(a->ups + b->ups, 0);
}

static void new_certificates_are_for_new_connections(void **state)
{
    struct side *a = side_start(0, ROLE_COORDINATOR, "1");
    struct side *b = side_start(1, ROLE_NODE, "n1");

    (void)state;
    if (!carrier->tls) {
        skip();
    }
    assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    struct link *link = links_dial(b->links, bound);
    until(both_up);
    side_certify(a); // other keys in the same files
    links_reload(a->links);
    assert_int_equal(chmod(b->key, 0644), 0);
    links_reload(b->links);
    assert_int_equal(lines_with("certificate_read"), 1);
    assert_int_equal(lines_with("others may read or write it"), 1);
    assert_true(link_is_up(link));
    link_drop(link, "again");
    until(first_down);
    until(both_up);
    assert_int_equal(a->ups, 2);
}

static void a_certificate_of_somebody_else_is_refused_at_open(void **state)
{
    struct side *a = side_prepare(0, ROLE_COORDINATOR, "1");

    (void)state;
    if (!carrier->tls) {
        skip();
    }
    side_certify(a);
    strcpy(a->config.self.name, "2");
    assert_int_equal(links_open(&a->links, &a->config, &a->events), ERR_INVALID);
    assert_int_equal(
        lines_with("it is of ringhold://test/coordinator/1, and this is coordinator 2"), 1);
}

static int tls_begins(void **state)
{
    char why[PEM_WHY_SIZE];

    (void)state;
    folder_make(authority_folder, sizeof authority_folder);
    assert_true(authority_create(authority_folder, "test", 1, why));
    authority = authority_open(authority_folder, why);
    return authority == NULL;
}

static int tls_ends(void **state)
{
    (void)state;
    authority_free(authority);
    authority = NULL;
    folder_remove(authority_folder);
    return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        CASE(a_hello_brings_a_link_up_on_both_sides),
        CASE(a_hello_of_the_incarnation_before_is_said_again),
        CASE(frames_arrive_in_order_both_ways),
        CASE(records_of_one_turn_travel_in_one_frame),
        CASE(records_wait_at_a_closed_gate_and_nothing_else_does),
        CASE(the_gate_closes_on_what_is_half_out),
        CASE(what_gathers_behind_a_write_that_was_cut_short_follows_by_itself),
        CASE(more_records_than_a_frame_takes_go_in_several),
        CASE(a_body_that_many_records_have_is_in_a_frame_once),
        CASE(each_frame_has_the_body_again),
        CASE(another_cluster_is_refused_and_both_sides_log_why_once),
        CASE(no_protocol_in_common_is_refused_and_counted),
        CASE(a_link_of_two_versions_speaks_the_older_and_the_log_says_so),
        CASE(two_of_the_next_protocol_speak_that),
        CASE(one_that_welcomes_another_protocol_than_was_chosen_is_cut),
        CASE(the_owner_may_refuse_with_a_reason_of_its_own),
        CASE(the_dialling_side_may_refuse_too),
        CASE(a_full_queue_is_busy_and_drains_without_loss),
        CASE(only_a_coordinator_may_send_what_is_huge),
        CASE(a_link_comes_back_when_the_listener_does),
        CASE(a_dropped_link_goes_down_once_and_is_dialled_again),
        CASE(a_link_may_be_dropped_while_its_frames_are_delivered),
        CASE(a_link_may_be_forgotten_at_any_moment),
        CASE(a_killed_peer_is_down_and_nothing_else_is_hurt),
        CASE(what_is_not_ours_is_cut_off_with_one_line),
        CASE(a_broken_frame_on_a_good_link_ends_it),
        CASE(a_hello_may_come_byte_by_byte),
        CASE(a_frame_cut_short_is_just_a_lost_link),
        CASE(who_says_nothing_is_cut_off),
        CASE(who_falls_silent_is_pinged_and_then_dropped),
        CASE(who_never_reads_is_dropped_with_all_that_waits_for_it),
        CASE(our_own_sleep_is_no_silence_of_the_peer),
        CASE(a_flood_of_connections_does_not_stop_the_listener),
        CASE(strangers_cannot_use_up_all_connections),
        CASE(addresses_in_use_or_wrong_are_errors),
        CASE(a_process_may_dial_itself),
        CASE(ipv6_addresses_are_in_brackets),
        CASE(a_self_that_no_peer_would_take_is_refused_at_open),
        CASE(who_speaks_no_tls_is_refused_counted_and_logged_once),
        CASE(a_certificate_of_another_cluster_is_refused),
        CASE(new_certificates_are_for_new_connections),
        CASE(a_certificate_of_somebody_else_is_refused_at_open),
    };

    int failures = 0;

    if (pipe(wake_pipe) != 0 || fcntl(wake_pipe[0], F_SETFL, O_NONBLOCK) != 0 ||
        fcntl(wake_pipe[1], F_SETFL, O_NONBLOCK) != 0) {
        return 1;
    }
    if (argc == 4 && strcmp(argv[1], "peer") == 0) {
        carrier = &carriers[argv[3][0] - '0'];
        flood(argv[2]);
    }
    for (size_t i = 0; i < sizeof carriers / sizeof carriers[0]; i++) {
        carrier = &carriers[i];
        if (carrier->tls) {
            failures += cmocka_run_group_tests_name(carrier->name, cases, tls_begins, tls_ends);
        } else {
            failures += cmocka_run_group_tests_name(carrier->name, cases, NULL, NULL);
        }
    }
    return failures;
}
