/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's shell over real sockets, against a coordinator of a few lines and a
 * gateway of fewer. The node has a thread of its own; until() runs the others
 * until what the test is about has happened.
 */
#include "tests/test.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "node/node_uv.h"
#include "ring/view.h"
#include "tests/folder.h"
#include "wire/args.h"
#include "wire/control.h"
#include "wire/link.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_US = 20 * 1000 * 1000, INCARNATION = 100, ME = 1, OTHER = 2 };

/* ---- the node */

static char outer[256];
static char data[300];
static char join[64];
static struct node_options options;
static pthread_t thread;
static int exit_code;
static atomic_bool is_ready;
static atomic_bool has_ended;
static char node_address[VIEW_ADDRESS_MAX + 1];

static void on_ready(void *context, uint64_t incarnation, const char *address)
{
    (void)context;
    assert_int_equal(incarnation, INCARNATION);
    (void)snprintf(node_address, sizeof node_address, "%s", address);
    atomic_store(&is_ready, true);
}

static void *run_node(void *argument)
{
    (void)argument;
    exit_code = node_run(&options);
    atomic_store(&has_ended, true);
    return NULL;
}

static void start_node(void)
{
    assert_int_equal(pthread_create(&thread, NULL, run_node, NULL), 0);
}

/* ---- the coordinator and the gateway */

static struct links *coordinator;
static struct links *gateway;
static struct link *to_node; /* of the gateway, while up */
static uint16_t owner;       /* slot that the whole ring belongs to */
static bool said_bye;
static size_t registered;
static size_t gateway_downs;
static struct answer_record answer;
static char answer_text[64];
static size_t answers;

static void tell(struct link *link, Rh__Control *c)
{
    struct buffer bytes = {0};

    control_put(&bytes, c);
    assert_int_equal(link_send(link, FRAME_CONTROL, buffer_bytes(&bytes)), ERR_OK);
    buffer_fini(&bytes);
}

static void tell_registered(struct link *link, const Rh__Register *r)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__RegOk ok = RH__REG_OK__INIT;
    Rh__Config config;
    struct view v;

    view_init(&v, 14);
    ring_create(&v.ring, 64, owner, INCARNATION);
    v.key = (struct ring_key){1, 2};
    v.era = 1;
    v.member = mem_new(2, sizeof *v.member);
    v.member_count = 2;
    v.member[0] = (struct view_member){.slot = ME, .incarnation = INCARNATION, .weight = 1};
    (void)snprintf(v.member[0].name, sizeof v.member[0].name, "%s", r->name);
    (void)snprintf(v.member[0].address, sizeof v.member[0].address, "%s", r->address);
    v.member[1] = (struct view_member){
        .slot = OTHER, .name = "n2", .address = "127.0.0.1:1", .incarnation = 50, .weight = 1};
    view_config(&v, &config);
    ok.nonce = r->nonce;
    ok.slot = ME;
    ok.incarnation = INCARNATION;
    ok.floor = INCARNATION;
    ok.config = &config;
    c.era = 1;
    c.body_case = RH__CONTROL__BODY_REG_OK;
    c.reg_ok = &ok;
    tell(link, &c);
    view_config_fini(&config);
    view_fini(&v);
}

static void on_coordinator_up(void *context, struct link *link)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Leader leader = RH__LEADER__INIT;

    (void)context;
    leader.leading = true;
    leader.term = 1;
    leader.id = 1;
    c.body_case = RH__CONTROL__BODY_LEADER;
    c.leader = &leader;
    tell(link, &c);
}

static void on_coordinator_frame(void *context, struct link *link, const struct frame *frame)
{
    Rh__Control *in = control_get(frame->body);
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Grant grant = RH__GRANT__INIT;
    Rh__Barred barred = RH__BARRED__INIT;

    (void)context;
    assert_non_null(in);
    if (in->body_case == RH__CONTROL__BODY_REGISTER_) {
        registered++;
        tell_registered(link, in->register_);
    } else if (in->body_case == RH__CONTROL__BODY_RENEW) {
        grant.seq = in->renew->seq;
        grant.version = INCARNATION;
        grant.leave = in->renew->stopping && owner != ME;
        out.body_case = RH__CONTROL__BODY_GRANT;
        out.grant = &grant;
        tell(link, &out);
    } else if (in->body_case == RH__CONTROL__BODY_BYE) {
        said_bye = true;
        out.body_case = RH__CONTROL__BODY_BARRED;
        out.barred = &barred;
        tell(link, &out);
    }
    control_free(in);
}

static void on_gateway_up(void *context, struct link *link)
{
    (void)context;
    to_node = link;
}

static void on_gateway_frame(void *context, struct link *link, const struct frame *frame)
{
    struct reader in = {.at = frame->body.data, .left = frame->body.size};

    (void)context;
    (void)link;
    assert_int_equal(frame->type, FRAME_ANSWER);
    for (size_t i = 0; i < frame->count; i++) {
        assert_int_equal(answer_get(&in, &answer), ERR_OK);
        assert_true(answer.body.size < sizeof answer_text);
        memcpy(answer_text, answer.body.data, answer.body.size);
        answer_text[answer.body.size] = '\0';
        answers++;
    }
}

static void on_gateway_down(void *context, struct link *link, const char *reason)
{
    (void)context;
    (void)link;
    (void)reason;
    to_node = NULL;
    gateway_downs++;
}

static void on_nothing_down(void *context, struct link *link, const char *reason)
{
    (void)context;
    (void)link;
    (void)reason;
}

static void on_wake(void *context)
{
    (void)context; // until() looks again soon.
}

static struct links *open_side(enum link_role role, const char *name)
{
    const bool leads = role == ROLE_COORDINATOR;
    const struct link_events events = {
        .up = leads ? on_coordinator_up : on_gateway_up,
        .down = leads ? on_nothing_down : on_gateway_down,
        .frame = leads ? on_coordinator_frame : on_gateway_frame,
        .wake = on_wake,
    };
    struct links_config config = links_config_default();
    struct links *links = NULL;

    config.self.role = role;
    config.self.incarnation = leads ? 0 : 77;
    (void)snprintf(config.self.cluster, sizeof config.self.cluster, "ringhold");
    (void)snprintf(config.self.name, sizeof config.self.name, "%s", name);
    assert_int_equal(links_open(&links, &config, &events), ERR_OK);
    return links;
}

static void turn(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    links_poll(coordinator, clock_boottime_us());
    links_poll(gateway, clock_boottime_us());
    (void)nanosleep(&moment, NULL);
}

#define UNTIL(condition)                                           \
    do {                                                           \
        const uint64_t end_us = clock_boottime_us() + PATIENCE_US; \
        while (!(condition)) {                                     \
            assert_true(clock_boottime_us() < end_us);             \
            turn();                                                \
        }                                                          \
    } while (0)

static void join_node(int expected_code)
{
    UNTIL(atomic_load(&has_ended));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(exit_code, expected_code);
}

static int set_up(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    folder_make(outer, sizeof outer);
    (void)snprintf(data, sizeof data, "%s/n1", outer);
    coordinator = open_side(ROLE_COORDINATOR, "1");
    gateway = open_side(ROLE_GATEWAY, "g1");
    assert_int_equal(links_listen(coordinator, "127.0.0.1:0", join, sizeof join), ERR_OK);
    options = node_options_default();
    options.limits.renew_ms = 20;
    options.node = (struct rh_node_options){.abi = RH_ABI,
                                            .size = sizeof options.node,
                                            .name = "n1",
                                            .join = join,
                                            .data = data,
                                            .keep_signals = 1,
                                            .ready = on_ready};
    atomic_store(&is_ready, false);
    atomic_store(&has_ended, false);
    owner = ME;
    said_bye = false;
    registered = answers = gateway_downs = 0;
    to_node = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    links_close(coordinator);
    links_close(gateway);
    folder_remove(data);
    folder_remove(outer);
    return 0;
}

/* ---- requests */

static void send_request(uint8_t flags, struct bytes body)
{
    static uint64_t seq;
    struct buffer bytes = {0};

    seq++;
    const struct request_record r = {
        .gateway = 77,
        .session = 5,
        .seq = seq,
        .prev = seq - 1,
        .base = seq,
        .first = INCARNATION,
        .version = INCARNATION,
        .ttl_ms = 10000,
        .copy = 1,
        .flags = flags,
        .id = bytes_of("k", 1),
        .body = body,
    };

    request_put(&bytes, &r);
    assert_int_equal(link_send_record(to_node, FRAME_REQUEST, buffer_bytes(&bytes)), ERR_OK);
    buffer_fini(&bytes);
}

static void call(const char *payload)
{
    send_request(0, bytes_of(payload, strlen(payload)));
}

static void command(const char *name)
{
    const struct args args = {.count = 2, .arg = {bytes_of(name, strlen(name)), bytes_of("k", 1)}};
    struct buffer body = {0};

    args_put(&body, &args);
    send_request(REQUEST_COMMAND, buffer_bytes(&body));
    buffer_fini(&body);
}

static void start_serving(void)
{
    start_node();
    UNTIL(atomic_load(&is_ready));
    assert_non_null(links_dial(gateway, node_address));
    UNTIL(to_node != NULL);
    assert_int_equal(link_peer(to_node)->incarnation, INCARNATION);
}

/* ---- cases */

static void it_registers_and_runs_requests(void **state)
{
    (void)state;
    start_serving();
    for (int i = 0; i < 100; i++) {
        call("INCR");
    }
    UNTIL(answers == 100);
    assert_int_equal(answer.code, ANSWER_OK);
    assert_string_equal(answer_text, "100");
    assert_int_equal(answer.token, INCARNATION);
    command("GET");
    UNTIL(answers == 101);
    assert_string_equal(answer_text, "b100");
    // Its vnodes can't go anywhere: the second call cuts the drain short.
    rh_node_stop();
    rh_node_stop();
    join_node(128 + 15);
}

static void it_says_bye_when_it_owns_nothing(void **state)
{
    (void)state;
    owner = OTHER;
    start_serving();
    rh_node_stop();
    join_node(0);
    assert_true(said_bye);
}

static void bad_bytes_cost_the_link(void **state)
{
    (void)state;
    start_serving();
    assert_int_equal(link_send_record(to_node, FRAME_REQUEST, bytes_of("\xff\xff", 2)), ERR_OK);
    UNTIL(gateway_downs == 1);
    UNTIL(to_node != NULL); // It may come again.
    assert_int_equal(link_send(to_node, FRAME_CONTROL, bytes_of("\xff\xff", 2)), ERR_OK);
    UNTIL(gateway_downs == 2);
    UNTIL(to_node != NULL);
    assert_int_equal(link_send(to_node, FRAME_RAFT, bytes_of("x", 1)), ERR_OK);
    UNTIL(gateway_downs == 3);
    UNTIL(to_node != NULL);
    call("SET v");
    UNTIL(answers == 1);
    assert_string_equal(answer_text, "OK");
    rh_node_stop();
    rh_node_stop();
    join_node(128 + 15);
}

static void it_may_stop_before_it_is_registered(void **state)
{
    char number[400];

    (void)state;
    options.node.join = "127.0.0.1:1, 127.0.0.1:2";
    (void)snprintf(number, sizeof number, "%s/number", data);
    start_node();
    UNTIL(access(number, F_OK) == 0);
    assert_false(atomic_load(&has_ended));
    rh_node_stop();
    join_node(0);
    assert_int_equal(registered, 0);
}

static void a_folder_has_one_node(void **state)
{
    struct node_options second;

    (void)state;
    start_serving();
    second = options;
    assert_int_equal(node_run(&second), 1);
    second.node.name = "n2";
    assert_int_equal(node_run(&second), 1);
    rh_node_stop();
    rh_node_stop();
    join_node(128 + 15);
}

static void bad_options_are_refused(void **state)
{
    const struct rh_node_options good = options.node;
    struct rh_node_options bad[12];
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bad[i] = good;
    }
    bad[count++].name = NULL;
    bad[count++].name = "a name";
    bad[count++].cluster = "";
    bad[count++].join = NULL;
    bad[count++].join = "";
    bad[count++].join = "nonsense";
    bad[count++].data = NULL;
    bad[count++].data = "/no/such/folder";
    bad[count++].listen = join; // The coordinator is there.
    bad[count++].listen = "nonsense";
    bad[count++].actor = "nonsense";
    bad[count++].abi = RH_ABI + 1;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rh_node_run(&bad[i]), 1);
    }
    assert_int_equal(registered, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_registers_and_runs_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_says_bye_when_it_owns_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_bytes_cost_the_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_may_stop_before_it_is_registered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_has_one_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_options_are_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
