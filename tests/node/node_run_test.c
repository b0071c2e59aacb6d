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
#include "link/link.h"
#include "node/node_uv.h"
#include "ring/view.h"
#include "tests/folder.h"
#include "txn/state/delta.h"
#include "wire/args.h"
#include "wire/control.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { PATIENCE_US = 20 * 1000 * 1000, VERSION = 100, TXN = 101, AFTER = 102, NODES = 2 };

/* ---- the nodes */

struct node {
    char name[8];
    uint64_t incarnation;
    char data[300];
    struct node_options options;
    pthread_t thread;
    char address[VIEW_ADDRESS_MAX + 1];
    struct link *control; /* of the coordinator, while up */
    size_t registered;
    int exit_code;
    uint16_t slot;
    atomic_bool ready;
    atomic_bool ended;
    bool prepared;
    bool said_bye;
};

static char outer[256];
static char join[64];
static struct node nodes[NODES];
static struct node *const first = &nodes[0];
static struct node *const second = &nodes[1];

static void on_ready(void *context, uint64_t incarnation, const char *address)
{
    struct node *n = context;

    assert_int_equal(incarnation, n->incarnation);
    (void)snprintf(n->address, sizeof n->address, "%s", address);
    atomic_store(&n->ready, true);
}

static void *run_node(void *argument)
{
    struct node *n = argument;

    n->exit_code = node_run(&n->options);
    atomic_store(&n->ended, true);
    return NULL;
}

static void start_node(struct node *n)
{
    assert_int_equal(pthread_create(&n->thread, NULL, run_node, n), 0);
}

static struct node *node_named(const char *name)
{
    return strcmp(name, first->name) == 0 ? first : second;
}

/* ---- the coordinator and the gateway */

static struct links *coordinator;
static struct links *gateway;
static struct link *to_node; /* of the gateway, while up */
static uint16_t owner;       /* slot that the whole ring belongs to */
static size_t gateway_downs;
static uint64_t lease_us;     /* what a Grant says; 0 = leases are not in force */
static bool withheld;         /* nothing is granted any more */
static size_t renewals_since; /* came while withheld */
static char registered_at[VIEW_ADDRESS_MAX + 1];
static struct answer_record answer;
static char answer_text[64];
static size_t answers;
static size_t asked;

static void tell(struct link *link, Rh__Control *c)
{
    struct buffer bytes = {0};

    control_put(&bytes, c);
    assert_int_equal(link_send(link, FRAME_CONTROL, buffer_bytes(&bytes)), ERR_OK);
    buffer_fini(&bytes);
}

static void make_view(struct view *v)
{
    view_init(v, 14);
    ring_create(&v->ring, 64, owner, VERSION);
    v->key = (struct ring_key){1, 2};
    v->era = 1;
    v->member = mem_new(NODES, sizeof *v->member);
    v->member_count = NODES;
    for (size_t i = 0; i < NODES; i++) {
        const struct node *n = &nodes[i];
        struct view_member *m = &v->member[i];

        *m = (struct view_member){.slot = n->slot, .incarnation = n->incarnation, .weight = 1};
        (void)snprintf(m->name, sizeof m->name, "%.7s", n->name);
        (void)snprintf(m->address,
                       sizeof m->address,
                       "%s",
                       atomic_load(&nodes[i].ready) ? n->address : "127.0.0.1:1");
    }
}

static void tell_registered(struct link *link, const Rh__Register *r)
{
    struct node *n = node_named(r->name);
    Rh__Control c = RH__CONTROL__INIT;
    Rh__RegOk ok = RH__REG_OK__INIT;
    Rh__Config config;
    struct view v;

    n->registered++;
    (void)snprintf(registered_at, sizeof registered_at, "%s", r->address);
    make_view(&v);
    view_config(&v, &config);
    ok.nonce = r->nonce;
    ok.slot = n->slot;
    ok.incarnation = n->incarnation;
    ok.floor = VERSION;
    ok.config = &config;
    ok.lease_us = lease_us;
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
    node_named(link_peer(link)->name)->control = link;
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

    struct node *n = node_named(link_peer(link)->name);

    (void)context;
    assert_non_null(in);
    if (in->body_case == RH__CONTROL__BODY_REGISTER_) {
        tell_registered(link, in->register_);
    } else if (in->body_case == RH__CONTROL__BODY_RENEW && withheld) {
        renewals_since++;
    } else if (in->body_case == RH__CONTROL__BODY_RENEW) {
        grant.lease_us = lease_us;
        grant.seq = in->renew->seq;
        grant.version = in->renew->version;
        grant.leave = in->renew->stopping && owner != n->slot;
        out.body_case = RH__CONTROL__BODY_GRANT;
        out.grant = &grant;
        tell(link, &out);
    } else if (in->body_case == RH__CONTROL__BODY_BYE) {
        n->said_bye = true;
        out.body_case = RH__CONTROL__BODY_BARRED;
        out.barred = &barred;
        tell(link, &out);
    } else if (in->body_case == RH__CONTROL__BODY_PREPARED) {
        n->prepared = true;
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

static void join_node(struct node *n, int expected_code)
{
    UNTIL(atomic_load(&n->ended));
    assert_int_equal(pthread_join(n->thread, NULL), 0);
    assert_int_equal(n->exit_code, expected_code);
}

static void set_up_node(struct node *n, uint16_t slot)
{
    *n = (struct node){.slot = slot, .incarnation = VERSION - slot};
    (void)snprintf(n->name, sizeof n->name, "n%u", slot);
    (void)snprintf(n->data, sizeof n->data, "%.250s/%.7s", outer, n->name);
    n->options = node_options_default();
    n->options.limits.renew_ms = 20;
    n->options.node = (struct rh_node_options){.abi = RH_ABI,
                                               .size = sizeof n->options.node,
                                               .name = n->name,
                                               .join = join,
                                               .data = n->data,
                                               .keep_signals = 1,
                                               .ready = on_ready,
                                               .context = n};
}

static int set_up(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    folder_make(outer, sizeof outer);
    coordinator = open_side(ROLE_COORDINATOR, "1");
    gateway = open_side(ROLE_GATEWAY, "g1");
    assert_int_equal(links_listen(coordinator, "127.0.0.1:0", join, sizeof join), ERR_OK);
    set_up_node(first, 1);
    set_up_node(second, 2);
    owner = first->slot;
    answers = asked = gateway_downs = 0;
    lease_us = 0;
    withheld = false;
    renewals_since = 0;
    to_node = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    links_close(coordinator);
    links_close(gateway);
    for (size_t i = 0; i < NODES; i++) {
        if (access(nodes[i].data, F_OK) == 0) {
            folder_remove(nodes[i].data);
        }
    }
    folder_remove(outer);
    return 0;
}

/* ---- requests */

static void send_request(uint8_t flags, struct bytes body)
{
    static uint64_t seq;
    static uint64_t base; // What is below was answered.
    struct buffer bytes = {0};

    seq++;
    base = answers == asked ? seq : base;
    asked++;
    const struct request_record r = {
        .gateway = 77,
        .session = 5,
        .seq = seq,
        .prev = seq - 1,
        .base = base,
        .first = VERSION,
        .version = VERSION,
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
    start_node(first);
    UNTIL(atomic_load(&first->ready));
    assert_non_null(links_dial(gateway, first->address));
    UNTIL(to_node != NULL);
    assert_int_equal(link_peer(to_node)->incarnation, first->incarnation);
}

static void cut_short(void)
{
    rh_node_stop(NULL);
    rh_node_stop(NULL);
}

/* ---- a move */

static void tell_prepare(struct node *n, const struct ring_vnode *v, uint32_t end)
{
    const struct node *peer = n == first ? second : first;
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Prepare prepare = RH__PREPARE__INIT;
    Rh__Arc arc = RH__ARC__INIT;
    Rh__Arc *arcs[] = {&arc};

    arc.from = v->from;
    arc.to = end;
    arc.vnode = v->id;
    arc.out = n == first;
    arc.peer = peer->slot;
    arc.peer_incarnation = peer->incarnation;
    prepare.txn = TXN;
    prepare.base_version = VERSION;
    prepare.arcs = arcs;
    prepare.n_arcs = 1;
    prepare.deadline_ms = 10000;
    c.era = 1;
    c.body_case = RH__CONTROL__BODY_PREPARE;
    c.prepare = &prepare;
    tell(n->control, &c);
}

static void tell_commit(const struct ring *before, uint32_t vnode)
{
    const struct ring_op op = {
        .kind = RING_MOVE, .vnode = vnode, .from = first->slot, .to = second->slot};
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Commit commit = RH__COMMIT__INIT;
    Rh__Delta *delta = delta_new(AFTER, TXN);
    struct ring after;

    ring_copy(&after, before);
    ring_apply(&after, &op, 1, AFTER, TXN);
    delta_ops(delta, &op, 1);
    delta->prev_version = VERSION;
    delta->digest0 = after.digest[0];
    delta->digest1 = after.digest[1];
    commit.txn = TXN;
    commit.delta = delta;
    c.era = 1;
    c.body_case = RH__CONTROL__BODY_COMMIT;
    c.commit = &commit;
    tell(first->control, &c);
    tell(second->control, &c);
    ring_fini(&after);
    delta_free(delta);
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
    assert_int_equal(answer.fence, VERSION);
    command("GET");
    UNTIL(answers == 101);
    assert_string_equal(answer_text, "b100");
    cut_short(); // Its vnodes can't go anywhere.
    join_node(first, 128 + 15);
}

static void an_actor_moves_with_its_state(void **state)
{
    struct view v;

    (void)state;
    start_node(second);
    UNTIL(atomic_load(&second->ready));
    start_serving();
    for (int i = 0; i < 5; i++) {
        call("INCR");
    }
    UNTIL(answers == 5);
    make_view(&v);
    const ring_hit hit = view_lookup(&v, 0, bytes_of("k", 1));
    const struct ring_vnode *vnode = ring_find(&v.ring, ring_hit_vnode(hit));
    tell_prepare(second, vnode, ring_end(&v.ring, vnode));
    tell_prepare(first, vnode, ring_end(&v.ring, vnode));
    UNTIL(first->prepared && second->prepared);
    call("INCR"); // It is held, and then forwarded.
    for (int i = 0; i < 50; i++) {
        turn();
    }
    assert_int_equal(answers, 5);
    tell_commit(&v.ring, vnode->id);
    UNTIL(answers == 6);
    assert_int_equal(answer.code, ANSWER_OK);
    assert_string_equal(answer_text, "6");
    assert_int_equal(answer.fence, AFTER); // A new owner, a higher fence.
    view_fini(&v);
    cut_short();
    join_node(first, 128 + 15);
    join_node(second, 128 + 15);
}

static void it_says_bye_when_it_owns_nothing(void **state)
{
    (void)state;
    owner = second->slot;
    start_serving();
    rh_node_stop(NULL);
    join_node(first, 0);
    assert_true(first->said_bye);
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
    assert_int_equal(link_send(to_node, FRAME_RAFT, bytes_of("x", 1)), ERR_OK); // nobody hears it
    call("SET v");
    UNTIL(answers == 1);
    assert_int_equal(gateway_downs, 2);
    assert_string_equal(answer_text, "OK");
    cut_short();
    join_node(first, 128 + 15);
}

static void it_may_stop_before_it_is_registered(void **state)
{
    char number[400];

    (void)state;
    first->options.node.join = "127.0.0.1:1, 127.0.0.1:2";
    (void)snprintf(number, sizeof number, "%s/number", first->data);
    start_node(first);
    UNTIL(access(number, F_OK) == 0);
    assert_false(atomic_load(&first->ended));
    rh_node_stop(NULL);
    join_node(first, 0);
    assert_int_equal(first->registered, 0);
}

static void a_folder_has_one_node(void **state)
{
    struct node_options other;

    (void)state;
    start_serving();
    other = first->options;
    assert_int_equal(node_run(&other), 1);
    other.node.name = "n2";
    assert_int_equal(node_run(&other), 1);
    cut_short();
    join_node(first, 128 + 15);
}

static void bad_options_are_refused(void **state)
{
    const struct rh_node_options good = first->options.node;
    struct rh_node_options bad[13];
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
    bad[count++].data = "/proc/no/such/folder";
    bad[count++].listen = join; // The coordinator is there.
    bad[count++].listen = "nonsense";
    bad[count++].advertise = "host:0";
    bad[count++].actor = "nonsense";
    bad[count++].abi = RH_ABI + 1;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rh_node_run(&bad[i]), 1);
    }
    assert_int_equal(first->registered, 0);
}

/* ---- the lease */

enum { LEASE_MS = 600 };

static char begun[340]; /* a file that says that the handler runs, also to another process */
static atomic_bool released;

/* A handler that blocks its worker until it is released; in a process of its own nobody does. */
static void on_block(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    const int file = open(begun, O_WRONLY | O_CREAT, 0600);

    (void)instance;
    (void)message;
    (void)close(file);
    while (!atomic_load(&released)) {
        (void)nanosleep(&moment, NULL);
    }
    (void)rh_reply(actor, rh_text("late"));
}

static int on_blocker_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                               void **instance)
{
    (void)state;
    assert_int_equal(rh_fence(actor), fence);
    *instance = NULL;
    return RH_OK;
}

static void on_blocker_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)instance;
    (void)why;
}

static const struct rh_actor_ops blocker = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "blocker",
    .activate = on_blocker_activate,
    .message = on_block,
    .deactivate = on_blocker_deactivate,
};
static const struct rh_kind blocker_kind = {.ops = &blocker};

static void host_blocker(struct node *n)
{
    (void)snprintf(begun, sizeof begun, "%s/begun", n->options.node.data);
    atomic_store(&released, false);
    n->options.node.kinds = &blocker_kind;
    n->options.node.kind_count = 1;
}

/* argv: "blocked" JOIN DATA. The first node again, as a process that may die. */
static int run_blocked(char **argv)
{
    const struct rlimit no_core = {0};

    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)snprintf(join, sizeof join, "%s", argv[2]);
    set_up_node(first, 1);
    first->options.node.data = argv[3];
    host_blocker(first);
    first->options.node.ready = NULL;
    return node_run(&first->options);
}

static pid_t start_blocked(const char *program, const char *log)
{
    const pid_t child = fork();

    if (child == 0) {
        const int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        (void)dup2(out, STDERR_FILENO);
        (void)execl(program, program, "blocked", join, first->data, (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    return child;
}

static bool has_ended(pid_t child, int *status)
{
    return waitpid(child, status, WNOHANG) == child;
}

static void read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    (void)fclose(file);
    (void)unlink(path);
}

static void a_task_past_the_lease_ends_the_process(void **state)
{
    char log[300];
    char text[4096];
    int status = 0;

    (void)state;
    lease_us = (uint64_t)LEASE_MS * 1000;
    (void)snprintf(log, sizeof log, "%s/log", outer);
    (void)snprintf(begun, sizeof begun, "%s/begun", first->data);
    const pid_t child = start_blocked("/proc/self/exe", log);
    UNTIL(first->registered == 1 && first->control != NULL);
    assert_non_null(links_dial(gateway, registered_at));
    UNTIL(to_node != NULL);
    call("x");
    UNTIL(access(begun, F_OK) == 0);
    withheld = true; // A blocked actor keeps no node from renewing its lease: this does.
    UNTIL(has_ended(child, &status));
    read_file(log, text, sizeof text);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(text, "the lease has ended and actor 0/k still runs"));
    assert_int_equal(answers, 0);
}

static void a_late_answer_waits_for_the_next_grant(void **state)
{
    (void)state;
    lease_us = (uint64_t)LEASE_MS * 1000;
    host_blocker(first);
    first->options.node.on_lease_overrun = RH_OVERRUN_GATE;
    start_serving();
    call("x");
    UNTIL(access(begun, F_OK) == 0);
    withheld = true;
    // The actor is still blocked when the lease ends, and answers then.
    const uint64_t over_us = clock_boottime_us() + lease_us;
    UNTIL(clock_boottime_us() > over_us);
    atomic_store(&released, true);
    const size_t renewed = renewals_since;
    UNTIL(renewals_since > renewed + 3);
    assert_int_equal(answers, 0);
    withheld = false;
    UNTIL(answers == 1);
    assert_string_equal(answer_text, "late");
    cut_short();
    join_node(first, 128 + 15);
}

static void a_fenced_node_exits_to_be_started_again(void **state)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Barred barred = RH__BARRED__INIT;

    (void)state;
    lease_us = (uint64_t)LEASE_MS * 1000;
    start_serving();
    call("INCR");
    UNTIL(answers == 1);
    barred.why = proto_text("fenced");
    c.era = 1;
    c.body_case = RH__CONTROL__BODY_BARRED;
    c.barred = &barred;
    tell(first->control, &c);
    join_node(first, 75);
}

/* ---- what the program around a node asks */

static struct {
    struct rh_node *node;
    pthread_t thread; /* on which it was told last */
    int status;
    char text[64];
    size_t again; /* so many more calls are made from its answers */
    atomic_size_t told;
} program;

static void on_told(struct rh_node *node, const struct rh_answer *told, void *argument)
{
    const char *payload = argument;

    program.node = node;
    program.thread = pthread_self();
    program.status = told->status;
    (void)snprintf(program.text,
                   sizeof program.text,
                   "%.*s",
                   (int)told->payload.size,
                   (const char *)told->payload.data);
    if (program.again > 0) {
        program.again--;
        assert_int_equal(rh_node_call(node,
                                      0,
                                      (struct rh_bytes){"k", 1},
                                      (struct rh_bytes){payload, strlen(payload)},
                                      10000,
                                      0,
                                      on_told,
                                      argument),
                         RH_OK);
    }
    (void)atomic_fetch_add(&program.told, 1);
}

static int ask(struct rh_node *node, char *payload, uint32_t timeout_ms)
{
    return rh_node_call(node,
                        0,
                        (struct rh_bytes){"k", 1},
                        (struct rh_bytes){payload, strlen(payload)},
                        timeout_ms,
                        0,
                        on_told,
                        payload);
}

static struct rh_node *start_program(bool embedded)
{
    program.status = -1;
    program.again = 0;
    atomic_store(&program.told, 0);
    first->options.node.embedded = embedded ? 1 : 0;
    struct rh_node *node = rh_node_start(&first->options.node);
    assert_non_null(node);
    return node;
}

static void a_program_asks_an_actor_of_the_fleet(void **state)
{
    static char payload[] = "INCR";
    const struct rh_bytes k = {"k", 1};
    char name[RH_NODE_NAME];

    (void)state;
    struct rh_node *node = start_program(false);
    assert_int_equal(ask(node, payload, 20000), RH_OK); // It is not registered yet.
    UNTIL(atomic_load(&program.told) == 1);
    assert_int_equal(program.status, RH_OK);
    assert_string_equal(program.text, "1");
    assert_ptr_equal(program.node, node);
    assert_false(pthread_equal(program.thread, pthread_self()));
    assert_int_equal(rh_node_owner(node, 0, k, name), RH_OK);
    assert_string_equal(name, "n1");
    for (size_t i = 0; i < 99; i++) {
        assert_int_equal(ask(node, payload, 20000), RH_OK);
    }
    UNTIL(atomic_load(&program.told) == 100);
    assert_string_equal(program.text, "100");
    program.again = 10;
    assert_int_equal(ask(node, payload, 20000), RH_OK);
    UNTIL(atomic_load(&program.told) == 111);
    assert_string_equal(program.text, "111");
    assert_int_equal(rh_node_call(node, 9, k, k, 20000, 0, on_told, payload), RH_OK);
    UNTIL(atomic_load(&program.told) == 112);
    assert_int_equal(program.status, RH_NO_KIND);
    assert_memory_equal(program.text, "NOKIND", 6);
    rh_node_stop(node);
    UNTIL(ask(node, payload, 20000) == RH_GONE);
    assert_int_equal(rh_node_owner(node, 0, k, name), RH_OK); // It has not left yet.
    rh_node_stop(node);
    assert_int_equal(rh_node_wait(node), 128 + 15);
}

static void who_asks_a_node_that_never_registers_is_told(void **state)
{
    static char payload[] = "INCR";
    const struct rh_bytes k = {"k", 1};
    char name[RH_NODE_NAME] = "?";

    (void)state;
    first->options.node.join = "127.0.0.1:1";
    struct rh_node *node = start_program(false);
    assert_int_equal(rh_node_owner(node, 0, k, name), RH_REJECTED);
    assert_string_equal(name, "");
    assert_int_equal(ask(node, payload, 1), RH_OK);
    UNTIL(atomic_load(&program.told) == 1);
    assert_int_equal(program.status, RH_REJECTED);
    assert_memory_equal(program.text, "REJECTED", 8);
    program.status = -1;
    for (size_t i = 0; i < 1024; i++) {
        assert_int_equal(ask(node, payload, 60000), RH_OK);
    }
    assert_int_equal(ask(node, payload, 60000), RH_OVERLOADED);
    rh_node_stop(node);
    assert_int_equal(rh_node_wait(node), 0);
    assert_int_equal(atomic_load(&program.told), 1025);
    assert_int_equal(program.status, RH_REJECTED);
}

static void an_embedded_program_is_told_where_it_polls(void **state)
{
    static char payload[] = "INCR";
    const struct rh_bytes k = {"k", 1};
    char name[RH_NODE_NAME];

    (void)state;
    struct rh_node *node = start_program(true);
    program.again = 9;
    assert_int_equal(ask(node, payload, 20000), RH_OK);
    UNTIL(rh_node_poll(node, 0) == RH_OK && atomic_load(&program.told) == 10);
    assert_string_equal(program.text, "10");
    assert_true(pthread_equal(program.thread, pthread_self()));
    assert_int_equal(rh_node_owner(node, 0, k, name), RH_OK);
    assert_string_equal(name, "n1");
    assert_int_equal(ask(node, payload, 60000), RH_OK); // It runs yet, or is told that it did not.
    rh_node_stop(node);
    rh_node_stop(node);
    UNTIL(rh_node_poll(node, 0) == RH_GONE);
    assert_int_equal(ask(node, payload, 20000), RH_GONE);
    assert_int_equal(rh_node_owner(node, 0, k, name), RH_GONE);
    assert_int_equal(rh_node_wait(node), 128 + 15);
    assert_int_equal(atomic_load(&program.told), 11);
}

static void bad_questions_of_a_program_are_refused(void **state)
{
    static const char big[RECORD_BODY_MAX + 1];
    const struct rh_bytes k = {"k", 1};
    const struct rh_bytes none = {NULL, 0};
    const struct rh_bytes lost = {NULL, 3};
    char name[RH_NODE_NAME];

    (void)state;
    first->options.node.join = "127.0.0.1:1";
    struct rh_node *node = start_program(false);
    assert_int_equal(rh_node_call(node, 0, none, k, 10, 0, on_told, NULL), RH_INVALID);
    assert_int_equal(rh_node_call(node, 0, lost, k, 10, 0, on_told, NULL), RH_INVALID);
    assert_int_equal(rh_node_call(node, 0, (struct rh_bytes){big, 256}, k, 10, 0, on_told, NULL),
                     RH_INVALID);
    assert_int_equal(rh_node_call(node, 0, k, lost, 10, 0, on_told, NULL), RH_INVALID);
    assert_int_equal(rh_node_call(node, 0, k, k, 0, 0, on_told, NULL), RH_INVALID);
    assert_int_equal(rh_node_call(node, 0, k, k, 60001, 0, on_told, NULL), RH_INVALID);
    assert_int_equal(rh_node_call(node, 0, k, k, 10, RH_NO_REPLY, on_told, NULL), RH_INVALID);
    assert_int_equal(rh_node_call(node, 0, k, k, 10, 0, NULL, NULL), RH_INVALID);
    assert_int_equal(
        rh_node_call(node, 0, k, (struct rh_bytes){big, sizeof big}, 10, 0, on_told, NULL),
        RH_TOO_BIG);
    assert_int_equal(rh_node_owner(node, 0, none, name), RH_INVALID);
    assert_int_equal(rh_node_owner(node, 0, k, NULL), RH_INVALID);
    rh_node_stop(node);
    assert_int_equal(rh_node_wait(node), 0);
    assert_int_equal(atomic_load(&program.told), 0);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "blocked") == 0) {
        return run_blocked(argv);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_registers_and_runs_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_actor_moves_with_its_state, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_says_bye_when_it_owns_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_bytes_cost_the_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_may_stop_before_it_is_registered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_has_one_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_task_past_the_lease_ends_the_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_late_answer_waits_for_the_next_grant, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_fenced_node_exits_to_be_started_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_options_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_program_asks_an_actor_of_the_fleet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            who_asks_a_node_that_never_registers_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_embedded_program_is_told_where_it_polls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_questions_of_a_program_are_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
