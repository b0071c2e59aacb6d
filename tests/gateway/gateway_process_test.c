/* SPDX-License-Identifier: Apache-2.0
 *
 * A real gateway process against a coordinator and a node that this test plays
 * over real links. Nothing waits for time: every wait is for an event, with a
 * limit that only a hang would reach.
 */
#define _DEFAULT_SOURCE 1

#include "base/clock.h"
#include "base/mem.h"
#include "gateway/gateway_uv.h"
#include "tests/test.h"
#include "wire/args.h"
#include "wire/control.h"
#include "wire/gateway_id.h"
#include "wire/record.h"

#include "ring/view.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANG_MS = 30000, CONNECTIONS_MAX = 8, ASKERS_MAX = 8 };

/* ---- the fleet that the test plays ---- */

struct fleet {
    struct links *coordinator;
    struct links *node;
    char coordinator_address[128];
    char node_address[128];
    int wake[2];
    struct view view;
    bool hold;            /* the node keeps what comes */
    struct buffer held;   /* request records */
    struct link *gateway; /* that asked last */
    uint64_t requests;
    uint64_t asker[ASKERS_MAX]; /* gateways' ids, of requests */
    size_t asker_count;
    uint64_t adopter[ASKERS_MAX]; /* gateways' ids, that told the node of the view's version */
    size_t adopter_count;
};

static struct fleet fleet;
static unsigned threads = 1; /* of the gateway */

static void on_wake(void *context)
{
    (void)context;
    ssize_t wrote = write(fleet.wake[1], "x", 1);
    (void)wrote; // a full pipe is awake enough
}

static enum refusal on_hello(void *context, const struct link *link, const struct hello *peer,
                             const char **why)
{
    (void)context;
    (void)link;
    *why = "gateways only";
    return peer->role == ROLE_GATEWAY ? REFUSAL_NONE : REFUSAL_OWNER;
}

static void on_up(void *context, struct link *link)
{
    (void)context;
    (void)link;
}

static void on_down(void *context, struct link *link, const char *reason)
{
    (void)context;
    (void)reason;
    if (link == fleet.gateway) {
        fleet.gateway = NULL;
    }
}

static void send_control(struct link *link, const Rh__Control *control)
{
    struct buffer out = {0};

    control_put(&out, control);
    assert_int_equal(link_send(link, FRAME_CONTROL, buffer_bytes(&out)), ERR_OK);
    buffer_fini(&out);
}

static void on_coordinator_frame(void *context, struct link *link, const struct frame *frame)
{
    Rh__Control *asked = control_get(frame->body);
    Rh__Config config;
    Rh__ConfigAnswer answer = RH__CONFIG_ANSWER__INIT;
    Rh__Control control = RH__CONTROL__INIT;

    (void)context;
    assert_non_null(asked);
    assert_int_equal(asked->body_case, RH__CONTROL__BODY_GET_CONFIG);
    view_config(&fleet.view, &config);
    answer.version = config.version;
    answer.config = asked->get_config->have_version < config.version ? &config : NULL;
    control.body_case = RH__CONTROL__BODY_CONFIG;
    control.config = &answer;
    send_control(link, &control);
    view_config_fini(&config);
    control_free(asked);
}

/* The node's actor: a command is answered with its arguments, a payload with itself. */
static void answer_request(struct link *link, const struct request_record *q)
{
    struct answer_record answer = {.gateway = q->gateway,
                                   .session = q->session,
                                   .seq = q->seq,
                                   .copy = q->copy,
                                   .fence = 1,
                                   .version = q->version};
    struct buffer value = {0};
    struct buffer out = {0};
    struct args args;

    if ((q->flags & REQUEST_COMMAND) != 0) {
        assert_int_equal(args_get(q->body, &args), ERR_OK);
        value_put(&value, &(struct value){.type = VALUE_BULK, .text = args.arg[args.count - 1]});
        answer.body = buffer_bytes(&value);
    } else {
        answer.body = q->body;
    }
    answer_put(&out, &answer);
    assert_int_equal(link_send_record(link, FRAME_ANSWER, buffer_bytes(&out)), ERR_OK);
    buffer_fini(&out);
    buffer_fini(&value);
}

/* Among those, once. */
static void note(uint64_t gateway, uint64_t *ids, size_t *count)
{
    for (size_t i = 0; i < *count; i++) {
        if (ids[i] == gateway) {
            return;
        }
    }
    assert_true(*count < ASKERS_MAX);
    ids[(*count)++] = gateway;
}

static void on_node_frame(void *context, struct link *link, const struct frame *frame)
{
    struct reader in = {.at = frame->body.data, .left = frame->body.size};

    (void)context;
    fleet.gateway = link;
    if (frame->type == FRAME_CONTROL) {
        Rh__Control *control = control_get(frame->body);

        assert_int_equal(control->body_case, RH__CONTROL__BODY_ADOPTED);
        if (control->adopted->version == fleet.view.ring.version) {
            note(control->source_incarnation, fleet.adopter, &fleet.adopter_count);
        }
        control_free(control);
        return;
    }
    for (uint16_t i = 0; i < frame->count; i++) {
        struct request_record q;

        assert_int_equal(request_get(&in, &q), ERR_OK);
        fleet.requests++;
        note(q.gateway, fleet.asker, &fleet.asker_count);
        if (fleet.hold) {
            request_put(&fleet.held, &q);
        } else {
            answer_request(link, &q);
        }
    }
}

static void release_held(void)
{
    struct reader in = {.at = fleet.held.data, .left = fleet.held.size};

    fleet.hold = false;
    while (in.left > 0) {
        struct request_record q;

        assert_int_equal(request_get(&in, &q), ERR_OK);
        answer_request(fleet.gateway, &q);
    }
    buffer_clear(&fleet.held);
}

static struct links *open_links(enum link_role role,
                                void (*frame)(void *, struct link *, const struct frame *),
                                char *bound)
{
    struct links_config config = links_config_default();
    const struct link_events events = {
        .hello = on_hello, .up = on_up, .down = on_down, .frame = frame, .wake = on_wake};
    struct links *links = NULL;

    (void)snprintf(config.self.product, sizeof config.self.product, "ringhold test");
    (void)snprintf(config.self.cluster, sizeof config.self.cluster, "test");
    (void)snprintf(config.self.name, sizeof config.self.name, "%s", role == ROLE_NODE ? "n1" : "1");
    config.self.role = role;
    config.self.incarnation = role == ROLE_NODE ? 5 : 0;
    config.self.identity = 1;
    config.self.protocol.newest = LINK_PROTOCOL_STREAMS - 1; // it takes records alone
    assert_int_equal(links_open(&links, &config, &events), ERR_OK);
    assert_int_equal(links_listen(links, "127.0.0.1:0", bound, 128), ERR_OK);
    return links;
}

static void pump(void)
{
    char drop[64];

    while (read(fleet.wake[0], drop, sizeof drop) > 0) {
    }
    links_poll(fleet.coordinator, clock_boottime_us());
    links_poll(fleet.node, clock_boottime_us());
    links_flush(fleet.coordinator);
    links_flush(fleet.node);
}

/* Serve the fleet, until it has more to do or for 10 ms. */
static void wait_woken(void)
{
    struct pollfd woken = {.fd = fleet.wake[0], .events = POLLIN};

    pump();
    (void)poll(&woken, 1, 10);
}

/* Serve the fleet until `fd` has something to read, or the other side is gone. */
static void wait_readable(int fd)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = fleet.wake[0], .events = POLLIN}};

    for (int waited = 0; waited < HANG_MS; waited += 10) {
        pump();
        assert_true(poll(fds, 2, 10) >= 0 || errno == EINTR);
        if (fds[0].revents != 0) {
            return;
        }
    }
    fail_msg("nothing came");
}

/* ---- the gateway under test ---- */

struct process {
    pid_t pid;
    int out;    /* its stdout */
    int errors; /* its stderr */
    uint16_t port;
};

static struct process start_gateway(const char *listen_at)
{
    struct process p = {0};
    int out[2];
    int errors[2];

    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(errors), 0);
    p.pid = fork();
    assert_true(p.pid >= 0);
    if (p.pid == 0) {
        (void)dup2(out[1], STDOUT_FILENO);
        (void)dup2(errors[1], STDERR_FILENO);
        (void)close(out[0]);
        (void)close(errors[0]);
        char count[8];

        (void)snprintf(count, sizeof count, "%u", threads);
        execl(
            "/proc/self/exe", "gateway", listen_at, fleet.coordinator_address, count, (char *)NULL);
        _exit(127);
    }
    (void)close(out[1]);
    (void)close(errors[1]);
    p.out = out[0];
    p.errors = errors[0];
    return p;
}

static void wait_ready(struct process *p)
{
    char line[128] = "";
    unsigned port = 0;

    wait_readable(p->out);
    assert_true(read(p->out, line, sizeof line - 1) > 0);
    assert_int_equal(sscanf(line, "ready resp=127.0.0.1:%u", &port), 1); // NOLINT(cert-err34-c)
    p->port = (uint16_t)port;
}

static int wait_exit(struct process *p)
{
    int status = 0;

    wait_readable(p->out); // its end closes the pipe
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    (void)close(p->out);
    (void)close(p->errors);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int dial(const struct process *p)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(p->port)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* Read exactly what is wanted. */
static void expect(int fd, const char *want)
{
    const size_t size = strlen(want);
    char *got = mem_new(size + 1, 1);

    for (size_t at = 0; at < size;) {
        wait_readable(fd);
        const ssize_t n = read(fd, got + at, size - at);
        assert_true(n > 0);
        at += (size_t)n;
    }
    assert_string_equal(got, want);
    mem_free(got);
}

static void expect_end(int fd)
{
    char byte = 0;

    wait_readable(fd);
    assert_true(read(fd, &byte, 1) <= 0);
    (void)close(fd);
}

/* Hang up and wait until the gateway has, too. */
static void hang_up(int fd)
{
    char timer_wheel[512];

    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    do {
        wait_readable(fd);
    } while (read(fd, timer_wheel, sizeof timer_wheel) > 0);
    (void)close(fd);
}

/* ---- the tests ---- */

static struct process gateway;

static void commands_are_answered_in_order(void **state)
{
    const int fd = dial(&gateway);
    struct buffer in = {0};
    struct buffer want = {0};
    char text[64];

    (void)state;
    say(fd, "PING\r\n");
    expect(fd, "+PONG\r\n");
    say(fd, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n");
    expect(fd, "$5\r\nvalue\r\n");
    say(fd, "CALL k \"pay load\"\r\nTELL k x\r\nWHERE k\r\n");
    expect(fd, "$8\r\npay load\r\n+OK\r\n*10\r\n$4\r\nnode\r\n$2\r\nn1\r\n$5\r\nvnode\r\n");
    hang_up(fd);

    const int other = dial(&gateway);
    for (int i = 0; i < 1000; i++) {
        const int size = snprintf(text, sizeof text, "CALL key%d v%d\r\nPING %d\r\n", i, i, i);
        buffer_put(&in, text, (size_t)size);
        char v[16];
        const int vsize = snprintf(v, sizeof v, "v%d", i);
        const int wsize =
            snprintf(text, sizeof text, "$%d\r\n%s\r\n$%d\r\n%d\r\n", vsize, v, vsize - 1, i);
        buffer_put(&want, text, (size_t)wsize);
    }
    buffer_put(&in, "", 1);
    buffer_put(&want, "", 1);
    say(other, (char *)in.data);
    expect(other, (char *)want.data);
    hang_up(other);
    buffer_fini(&in);
    buffer_fini(&want);
}

static void a_client_that_hangs_up_its_half_still_gets_its_replies(void **state)
{
    const int fd = dial(&gateway);

    (void)state;
    say(fd, "SET k one\r\nSET k two\r\n");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    expect(fd, "$3\r\none\r\n$3\r\ntwo\r\n");
    expect_end(fd);
}

static void garbage_is_named_and_the_connection_closed(void **state)
{
    const int fd = dial(&gateway);

    (void)state;
    say(fd, "*1\r\n$536870913\r\n");
    expect(fd, "-ERR Protocol error: invalid bulk length\r\n");
    expect_end(fd);

    const int http = dial(&gateway);
    say(http, "POST / HTTP/1.1\r\nHost: x\r\n\r\nSET a b\r\n");
    expect_end(http);
}

static void one_connection_too_many_is_told_so(void **state)
{
    int fd[CONNECTIONS_MAX];

    (void)state;
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        fd[i] = dial(&gateway);
        say(fd[i], "PING\r\n");
        expect(fd[i], "+PONG\r\n");
    }
    const int more = dial(&gateway);
    expect(more, "-ERR max number of clients reached\r\n");
    expect_end(more);
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        say(fd[i], "QUIT\r\n");
        expect(fd[i], "+OK\r\n");
        expect_end(fd[i]);
    }
}

static void a_port_in_use_is_one_clear_line(void **state)
{
    char address[64];
    char line[512] = "";

    (void)state;
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", gateway.port);
    struct process second = start_gateway(address);
    wait_readable(second.errors);
    assert_true(read(second.errors, line, sizeof line - 1) > 0);
    assert_non_null(strstr(line, "ringhold gateway: cannot listen on 127.0.0.1:"));
    assert_non_null(strstr(line, ": address already in use\n"));
    assert_int_equal(wait_exit(&second), 1);
}

/* The value of that line of INFO, asked through `fd`. */
static unsigned long info(int fd, const char *name)
{
    char text[8192] = "";
    size_t size = 0;
    size_t want = 1;

    say(fd, "INFO\r\n");
    while (size < want) {
        wait_readable(fd);
        const ssize_t n = read(fd, text + size, sizeof text - 1 - size);
        assert_true(n > 0);
        size += (size_t)n;
        const char *body = strstr(text, "\r\n");
        want = body == NULL ? size + 1
                            : (size_t)(body - text) + 4 + strtoul(text + 1, NULL, 10); // "$size"
    }
    const char *line = strstr(text, name);
    assert_non_null(line);
    return strtoul(line + strlen(name), NULL, 10);
}

/* Each is a gateway of its own to the node, and the process's clients are spread evenly. */
static void every_thread_has_its_clients(void **state)
{
    int fd[CONNECTIONS_MAX];

    (void)state;
    fleet.asker_count = 0;
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        fd[i] = dial(&gateway);
        say(fd[i], "SET k v\r\n");
        expect(fd[i], "$1\r\nv\r\n");
    }
    assert_int_equal(fleet.asker_count, threads);
    for (size_t i = 1; i < fleet.asker_count; i++) {
        assert_int_equal(gateway_id_process(fleet.asker[i]), gateway_id_process(fleet.asker[0]));
    }
    // Any of them tells what all have counted.
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        for (int asked = 0; info(fd[i], "connected_clients:") != CONNECTIONS_MAX; asked++) {
            assert_true(asked < HANG_MS);
        }
        assert_int_equal(info(fd[i], "maxclients:"), CONNECTIONS_MAX);
        assert_int_equal(info(fd[i], "threads:"), threads);
    }
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        hang_up(fd[i]);
    }
}

/* A node that leaves waits for every gateway that is linked to it (hole 59): so it hears of
 * each thread. */
static void every_thread_tells_who_leaves_what_it_routes_by(void **state)
{
    (void)state;
    fleet.adopter_count = 0;
    fleet.view.member[0].leaving = true;
    fleet.view.ring.version++;
    for (int waited = 0; fleet.adopter_count < threads && waited < HANG_MS; waited += 10) {
        wait_woken();
    }
    assert_int_equal(fleet.adopter_count, threads);
}

/* Last: it ends the gateway. */
static void sigterm_lets_what_is_under_way_finish(void **state)
{
    const int fd = dial(&gateway);
    const int idle = dial(&gateway);
    const uint64_t before = fleet.requests;

    (void)state;
    fleet.hold = true;
    say(idle, "PING\r\n");
    expect(idle, "+PONG\r\n");
    say(fd, "SET k last\r\n");
    for (int waited = 0; fleet.requests == before && waited < HANG_MS; waited += 10) {
        wait_woken();
    }
    assert_true(fleet.requests > before);
    assert_int_equal(kill(gateway.pid, SIGTERM), 0);
    expect_end(idle); // it stops taking commands at once
    release_held();
    expect(fd, "$4\r\nlast\r\n");
    expect_end(fd);
    assert_int_equal(wait_exit(&gateway), 0);
    gateway.pid = 0;
}

static int set_up(void **state)
{
    (void)state;
    fleet = (struct fleet){0};
    assert_int_equal(pipe(fleet.wake), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fcntl(fleet.wake[i], F_SETFL, O_NONBLOCK), 0);
        assert_int_equal(fcntl(fleet.wake[i], F_SETFD, FD_CLOEXEC), 0);
    }
    fleet.coordinator =
        open_links(ROLE_COORDINATOR, on_coordinator_frame, fleet.coordinator_address);
    fleet.node = open_links(ROLE_NODE, on_node_frame, fleet.node_address);
    view_init(&fleet.view, RING_GRID_MIN);
    ring_create(&fleet.view.ring, 16, 1, 7);
    fleet.view.key = (struct ring_key){1, 2};
    fleet.view.member = mem_new(1, sizeof *fleet.view.member);
    fleet.view.member_count = 1;
    fleet.view.member[0] =
        (struct view_member){.slot = 1, .name = "n1", .incarnation = 5, .weight = 1};
    (void)snprintf(fleet.view.member[0].address,
                   sizeof fleet.view.member[0].address,
                   "%s",
                   fleet.node_address);
    gateway = start_gateway("127.0.0.1:0");
    wait_ready(&gateway);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (gateway.pid > 0) {
        (void)kill(gateway.pid, SIGKILL);
        (void)waitpid(gateway.pid, NULL, 0);
    }
    links_close(fleet.coordinator);
    links_close(fleet.node);
    view_fini(&fleet.view);
    buffer_fini(&fleet.held);
    (void)close(fleet.wake[0]);
    (void)close(fleet.wake[1]);
    return 0;
}

/* This program, started again, is the gateway. */
static int be_gateway(char **argv)
{
    struct gateway_options options = gateway_options_default();
    const char *coordinators[] = {argv[2]};

    options.name = "g1";
    options.cluster = "test";
    options.coordinators = coordinators;
    options.coordinator_count = 1;
    options.at[ENTRY_RESP] = argv[1];
    options.threads = (uint32_t)strtoul(argv[3], NULL, 10);
    options.drain_ms = HANG_MS;
    options.clients.connections_max = CONNECTIONS_MAX;
    return gateway_run(&options);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(commands_are_answered_in_order),
        cmocka_unit_test(a_client_that_hangs_up_its_half_still_gets_its_replies),
        cmocka_unit_test(garbage_is_named_and_the_connection_closed),
        cmocka_unit_test(one_connection_too_many_is_told_so),
        cmocka_unit_test(a_port_in_use_is_one_clear_line),
        cmocka_unit_test(every_thread_has_its_clients),
        cmocka_unit_test(every_thread_tells_who_leaves_what_it_routes_by),
        cmocka_unit_test(sigterm_lets_what_is_under_way_finish),
    };

    if (argc == 4 && strcmp(argv[0], "gateway") == 0) {
        return be_gateway(argv);
    }
    const int failed = cmocka_run_group_tests(cases, set_up, tear_down);

    threads = 3;
    return failed + cmocka_run_group_tests(cases, set_up, tear_down);
}
