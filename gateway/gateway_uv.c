/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/gateway_uv.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "gateway/shell_uv.h"
#include "wire/address.h"
#include "wire/control.h"
#include "wire/finder.h"
#include "wire/inject.h"
#include "wire/record.h"
#include "wire/session.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

enum { TICK_MS = 10, SWEEP_MS = 1000, EFFECTS_AT_ONCE = 64 };

/* Who is at the other end of a link. */
struct remote {
    struct link *link;
    int coordinator; /* its index, or -1 */
    uint16_t slot;   /* of a node */
};

struct gateway {
    const struct gateway_options *options;
    uv_loop_t loop;
    uv_prepare_t prepare;
    uv_timer_t tick;
    uv_timer_t sweep;
    uv_timer_t drain;
    uv_signal_t terminate;
    uv_signal_t interrupt;
    struct links *links;
    struct remote coordinator[FINDER_MAX];
    struct remote *node[RING_NODES_MAX + 1]; /* owned; NULL = no link kept */
    struct router *router;
    struct clients *clients;
    struct router_effects effects;
    size_t done; /* effects of this turn that are done */
    struct listener listener;
    char bound[2][BOUND_SIZE]; /* by enum client_speech */
    bool ready;
    bool draining;
    bool stopping; /* handles are being closed */
};

struct gateway_options gateway_options_default(void)
{
    return (struct gateway_options){
        .listen = "127.0.0.1:6380",
        .drain_ms = 3000,
        .router = router_config_default(),
        .clients = clients_config_default(),
    };
}

static uint64_t now_us(struct gateway *g)
{
    return listener_now(&g->listener);
}

static void step(struct gateway *g, struct router_event event)
{
    event.now_us = now_us(g);
    router_step(g->router, &event, &g->effects);
}

static void do_requests(struct gateway *g);

/* ---- links ---- */

static const char *on_hello(void *context, const struct hello *peer)
{
    (void)context;
    return peer->role == ROLE_COORDINATOR || peer->role == ROLE_NODE
               ? NULL
               : "a gateway speaks to coordinators and nodes only";
}

static void on_up(void *context, struct link *link)
{
    struct gateway *g = context;
    const struct remote *remote = link_user(link);
    const struct hello *peer = link_peer(link);

    if (remote->coordinator >= 0 && peer->role == ROLE_COORDINATOR) {
        step(g,
             (struct router_event){.type = ROUTER_COORDINATOR_UP,
                                   .coordinator = remote->coordinator});
    } else if (remote->coordinator < 0 && peer->role == ROLE_NODE) {
        step(g,
             (struct router_event){
                 .type = ROUTER_NODE_UP, .slot = remote->slot, .incarnation = peer->incarnation});
        clients_on_node_up(g->clients, remote->slot, g->listener.now_us);
    } else {
        link_drop(link, "not who was expected at this address");
    }
}

static void on_down(void *context, struct link *link, const char *reason)
{
    struct gateway *g = context;
    const struct remote *remote = link_user(link);

    (void)reason; // the link has logged it
    if (remote->coordinator >= 0) {
        step(g,
             (struct router_event){.type = ROUTER_COORDINATOR_DOWN,
                                   .coordinator = remote->coordinator});
    } else {
        step(g, (struct router_event){.type = ROUTER_NODE_DOWN, .slot = remote->slot});
    }
}

static void on_control_frame(struct gateway *g, struct link *link, const struct frame *frame)
{
    const struct remote *remote = link_user(link);
    Rh__Control *control = control_get(frame->body);

    if (control == NULL) {
        link_drop(link, "control message does not decode");
        return;
    }
    step(g,
         (struct router_event){
             .type = ROUTER_CONTROL, .coordinator = remote->coordinator, .message = control});
    control_free(control);
}

static void on_answer_frame(struct gateway *g, struct link *link, const struct frame *frame)
{
    const struct remote *remote = link_user(link);
    struct reader in = {.at = frame->body.data, .left = frame->body.size};
    struct answer_record answer;
    const struct router_event event = {
        .type = ROUTER_ANSWER, .now_us = now_us(g), .slot = remote->slot, .answer = &answer};

    for (uint16_t i = 0; i < frame->count; i++) {
        if (answer_get(&in, &answer) != ERR_OK) {
            link_drop(link, "answer record does not decode");
            return;
        }
        router_step(g->router, &event, &g->effects);
        if (g->effects.count - g->done >= EFFECTS_AT_ONCE) {
            do_requests(g);
        }
    }
    do_requests(g);
}

static void on_push_frame(struct gateway *g, struct link *link, const struct frame *frame)
{
    struct reader in = {.at = frame->body.data, .left = frame->body.size};

    (void)now_us(g);
    for (uint16_t i = 0; i < frame->count; i++) {
        struct push_record push;

        if (push_get(&in, &push) != ERR_OK) {
            link_drop(link, "push record does not decode");
            return;
        }
        listener_push(&g->listener, &push);
    }
    if (in.left != 0) {
        link_drop(link, "bytes after the last push record");
    }
}

static void on_frame(void *context, struct link *link, const struct frame *frame)
{
    const struct remote *remote = link_user(link);

    if (frame->type == FRAME_CONTROL && remote->coordinator >= 0) {
        on_control_frame(context, link, frame);
    } else if (frame->type == FRAME_ANSWER && remote->coordinator < 0) {
        on_answer_frame(context, link, frame);
    } else if (frame->type == FRAME_PUSH && remote->coordinator < 0) {
        on_push_frame(context, link, frame);
    } else if (frame->type != FRAME_CONTROL) {
        link_drop(link, "frame of a type that is not for gateways");
    }
}

static void on_wake(void *context)
{
    struct gateway *g = context;

    links_poll(g->links, now_us(g));
}

/* ---- effects ---- */

static struct bytes effect_bytes(const struct gateway *g, const struct router_effect *e)
{
    return bytes_of(g->effects.bytes.data + e->at, e->size);
}

/* The link took it not: it surely did not run, so the router gets it back. */
static void give_back(struct gateway *g, uint16_t slot, struct bytes record)
{
    struct reader in = {.at = record.data, .left = record.size};
    struct request_record request;

    if (request_get(&in, &request) != ERR_OK) {
        UNREACHABLE();
    }
    const struct answer_record busy = {.gateway = request.gateway,
                                       .session = request.session,
                                       .seq = request.seq,
                                       .copy = request.copy,
                                       .code = ANSWER_BUSY,
                                       .aux = TICK_MS};
    step(g, (struct router_event){.type = ROUTER_ANSWER, .slot = slot, .answer = &busy});
}

static void send_request(struct gateway *g, const struct router_effect *e)
{
    const struct remote *node = g->node[e->slot];

    if (node == NULL || link_send_record(node->link, FRAME_REQUEST, effect_bytes(g, e)) != ERR_OK) {
        give_back(g, e->slot, effect_bytes(g, e));
    }
}

/* Control messages are repeated by their own timers: one that is not taken is not missed. */
static void send_control(struct gateway *g, const struct remote *to, const struct router_effect *e)
{
    if (to != NULL && to->link != NULL &&
        link_send(to->link, FRAME_CONTROL, effect_bytes(g, e)) != ERR_OK) {
        log_debug("gateway", "control_not_sent", "slot=%u", e->slot);
    }
}

static void connect_node(struct gateway *g, const struct router_effect *e)
{
    ASSERT(g->node[e->slot] == NULL);
    struct remote *node = mem_new(1, sizeof *node);

    node->coordinator = -1;
    node->slot = e->slot;
    node->link = links_dial(g->links, e->address);
    link_set_user(node->link, node);
    g->node[e->slot] = node;
}

static void disconnect_node(struct gateway *g, uint16_t slot)
{
    links_forget(g->links, g->node[slot]->link);
    mem_free(g->node[slot]);
    g->node[slot] = NULL;
}

static void do_effect(struct gateway *g, const struct router_effect *e)
{
    switch (e->type) {
    case ROUTER_SEND_NODE:
        send_request(g, e);
        break;
    case ROUTER_TELL_NODE:
        send_control(g, g->node[e->slot], e);
        break;
    case ROUTER_SEND_COORDINATOR:
        send_control(g, &g->coordinator[e->coordinator], e);
        break;
    case ROUTER_REPLY:
        listener_reply(&g->listener, e, effect_bytes(g, e));
        break;
    case ROUTER_CONNECT:
        connect_node(g, e);
        break;
    case ROUTER_DISCONNECT:
        disconnect_node(g, e->slot);
        break;
    }
}

/* All that are left. By index: what is given back appends to the list, and may move it. */
static void do_effects(struct gateway *g)
{
    for (; g->done < g->effects.count; g->done++) {
        const struct router_effect e = g->effects.item[g->done];

        do_effect(g, &e);
    }
    g->done = 0;
    router_effects_clear(&g->effects);
}

/* What is sent and replied, as far as nothing else stands before it: links may come and go at the
 * end of a turn only. In the middle of one the bytes are still in the cache. */
static void do_requests(struct gateway *g)
{
    for (; g->done < g->effects.count; g->done++) {
        const struct router_effect *e = &g->effects.item[g->done];

        if (e->type == ROUTER_SEND_NODE) {
            send_request(g, e);
        } else if (e->type == ROUTER_REPLY) {
            listener_reply(&g->listener, e, effect_bytes(g, e));
        } else {
            return;
        }
    }
    g->done = 0;
    router_effects_clear(&g->effects);
}

static void on_act(struct listener *l)
{
    do_requests(CONTAINER_OF(l, struct gateway, listener));
}

static void say_ready(struct gateway *g)
{
    if (!g->ready && router_view(g->router)->member_count > 0) {
        g->ready = true;
        printf("ready resp=%s", g->bound[CLIENT_RESP]);
        if (g->options->frames != NULL) {
            printf(" frames=%s", g->bound[CLIENT_PACKETS]);
        }
        printf("\n");
        (void)fflush(stdout);
    }
}

static void stop(struct gateway *g);

/* Before the loop blocks: everything that came of this turn goes out, in few large pieces. */
static void on_prepare(uv_prepare_t *prepare)
{
    struct gateway *g = prepare->data;

    (void)now_us(g);
    do {
        do_effects(g);
    } while (listener_resume(&g->listener));
    links_flush(g->links);
    listener_flush(&g->listener);
    say_ready(g);
    if (g->draining && listener_is_drained(&g->listener)) {
        stop(g);
    }
    g->listener.clocked = false; // the loop may sleep now
}

/* ---- time and signals ---- */

/* Faults that tests name, in a build for them. */
static void plant(struct gateway *g)
{
#ifdef RINGHOLD_INJECT
    if (inject_asked("spoil-ring")) {
        router_spoil(g->router);
    }
#else
    (void)g;
#endif
}

static void on_tick(uv_timer_t *timer)
{
    struct gateway *g = timer->data;

    links_poll(g->links, now_us(g));
    plant(g);
    step(g, (struct router_event){.type = ROUTER_TICK});
    listener_tick(&g->listener);
}

static void on_sweep(uv_timer_t *timer)
{
    struct gateway *g = timer->data;

    (void)now_us(g);
    listener_sweep(&g->listener);
}

static void close_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

static void stop(struct gateway *g)
{
    if (!g->stopping) {
        g->stopping = true;
        links_close(g->links);
        g->links = NULL;
        listener_close(&g->listener);
        uv_walk(&g->loop, close_handle, NULL);
    }
}

static void on_drained(uv_timer_t *timer)
{
    stop(timer->data);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct gateway *g = handle->data;

    if (g->draining) {
        stop(g);
        return;
    }
    log_info("gateway", "stopping", "signal=%d drain_ms=%" PRIu32, number, g->options->drain_ms);
    g->draining = true;
    (void)now_us(g);
    listener_drain(&g->listener);
    (void)uv_timer_start(&g->drain, on_drained, g->options->drain_ms, 0);
}

/* ---- life ---- */

static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int complain(const char *what, const char *which, const char *why)
{
    (void)fprintf(stderr, "ringhold gateway: %s %s: %s\n", what, which, why);
    return 1;
}

static void open_cores(struct gateway *g, uint64_t id)
{
    struct router_config router = g->options->router;
    struct clients_config clients = g->options->clients;
    struct address address;

    router.gateway = id;
    (void)snprintf(router.name, sizeof router.name, "%s", g->options->name);
    g->router = router_new(&router);
    clients.version = RINGHOLD_VERSION;
    clients.deadline_ms = router.deadline_ms;
    (void)snprintf(clients.name, sizeof clients.name, "%s", g->options->name);
    clients.port = address_parse(g->bound[CLIENT_RESP], &address) == ERR_OK ? address.port : 0;
    g->clients = clients_new(&clients, g->router, now_us(g));
    g->listener.clients = g->clients;
    g->listener.effects = &g->effects;
    g->listener.act = on_act;
}

static enum err open_links(struct gateway *g, uint64_t id)
{
    struct links_config config = links_config_default();
    const struct link_events events = {.context = g,
                                       .hello = on_hello,
                                       .up = on_up,
                                       .down = on_down,
                                       .frame = on_frame,
                                       .wake = on_wake};

    (void)snprintf(
        config.self.product, sizeof config.self.product, "ringhold %s", RINGHOLD_VERSION);
    config.loop = &g->loop;
    config.self.protocol = LINK_PROTOCOL;
    config.self.protocol_min = LINK_PROTOCOL;
    (void)snprintf(config.self.cluster, sizeof config.self.cluster, "%s", g->options->cluster);
    config.self.role = ROLE_GATEWAY;
    (void)snprintf(config.self.name, sizeof config.self.name, "%s", g->options->name);
    config.self.incarnation = id;
    const enum err failed = links_open(&g->links, &config, &events);
    if (failed != ERR_OK) {
        return failed;
    }
    for (size_t i = 0; i < g->options->coordinator_count; i++) {
        struct remote *remote = &g->coordinator[i];

        remote->coordinator = (int)i;
        remote->link = links_dial(g->links, g->options->coordinators[i]);
        link_set_user(remote->link, remote);
    }
    return ERR_OK;
}

static void start_handles(struct gateway *g)
{
    uv_prepare_init(&g->loop, &g->prepare);
    uv_timer_init(&g->loop, &g->tick);
    uv_timer_init(&g->loop, &g->sweep);
    uv_timer_init(&g->loop, &g->drain);
    uv_signal_init(&g->loop, &g->terminate);
    uv_signal_init(&g->loop, &g->interrupt);
    g->prepare.data = g->tick.data = g->sweep.data = g->drain.data = g;
    g->terminate.data = g->interrupt.data = g;
    uv_prepare_start(&g->prepare, on_prepare);
    uv_timer_start(&g->tick, on_tick, TICK_MS, TICK_MS);
    uv_timer_start(&g->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    uv_signal_start(&g->terminate, on_signal, SIGTERM);
    uv_signal_start(&g->interrupt, on_signal, SIGINT);
}

static void free_all(struct gateway *g)
{
    for (size_t slot = 0; slot <= RING_NODES_MAX; slot++) {
        mem_free(g->node[slot]);
    }
    listener_fini(&g->listener);
    clients_free(g->clients);
    router_free(g->router);
    router_effects_fini(&g->effects);
    mem_free(g);
}

/* False: it said why not. NULL = not wanted. */
static bool listen_on(struct gateway *g, enum client_speech speech, const char *address)
{
    const int failed =
        address == NULL ? 0
                        : listener_open(&g->listener, &g->loop, speech, address, g->bound[speech]);

    return failed == 0 || complain("cannot listen on", address, uv_strerror(failed)) == 0;
}

/* Everything that may fail; the exit code. */
static int start(struct gateway *g)
{
    const uint64_t id = random_u64();
    const bool listening = listen_on(g, CLIENT_RESP, g->options->listen) &&
                           listen_on(g, CLIENT_PACKETS, g->options->frames);

    open_cores(g, id);
    if (!listening) {
        return 1;
    }
    const enum err linked = open_links(g, id);
    if (linked != ERR_OK) {
        return complain("cannot open links of", g->options->name, err_text(linked));
    }
    start_handles(g);
    return 0;
}

int gateway_run(const struct gateway_options *options)
{
    struct gateway *g = mem_new(1, sizeof *g);

    ASSERT(options->coordinator_count >= 1 && options->coordinator_count <= FINDER_MAX);
    g->options = options;
    listener_init(&g->listener);
    (void)signal(SIGPIPE, SIG_IGN); // a client that hangs up is no reason to die
    raise_file_limit();
    if (uv_loop_init(&g->loop) != 0) {
        listener_fini(&g->listener);
        mem_free(g);
        return complain("cannot start", options->name, "no event loop");
    }
    const int code = start(g);
    if (code != 0) {
        stop(g);
    } else {
        log_info("gateway",
                 "listening",
                 "resp=%s frames=%s",
                 g->bound[CLIENT_RESP],
                 options->frames != NULL ? g->bound[CLIENT_PACKETS] : "off");
    }
    uv_run(&g->loop, UV_RUN_DEFAULT);
    const int busy = uv_loop_close(&g->loop);
    ASSERT(busy == 0);
    free_all(g);
    return code;
}
