/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_uv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "node/disk.h"
#include "node/shell_uv.h"
#include "wire/address.h"
#include "wire/control.h"
#include "wire/hello.h"
#include "wire/inject.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TICK_MS = 10, COMPLAIN_US = 5 * 1000 * 1000, JOIN_SIZE = 1024 };

/* Counted up by node_stop_any(), which a signal handler may call. */
static atomic_uint stops_asked;

/* ---- links ---- */

static const char *on_hello(void *context, const struct hello *peer)
{
    (void)context;
    return peer->role == ROLE_CLI ? "a node takes no commands: ask a coordinator" : NULL;
}

static int coordinator_index(const struct shell *s, const struct link *link)
{
    for (size_t i = 0; i < s->coordinator_count; i++) {
        if (s->coordinator[i] == link) {
            return (int)i;
        }
    }
    return -1;
}

static void on_up(void *context, struct link *link)
{
    struct shell *s = context;
    const struct hello *hello = link_peer(link);
    const int coordinator = coordinator_index(s, link);

    if ((coordinator >= 0) != (hello->role == ROLE_COORDINATOR)) {
        link_drop(link, coordinator >= 0 ? "it is no coordinator" : "I did not call a coordinator");
        return;
    }
    struct peer *p = mem_new(1, sizeof *p);
    p->id = ++s->last_peer;
    p->link = link;
    p->coordinator = coordinator;
    backlog_init(&p->backlog);
    table_put(&s->peers, &p->by_id, table_mix(p->id));
    link_set_user(link, p);
    struct host_event event = {
        .type = coordinator >= 0 ? HOST_COORDINATOR_UP : HOST_PEER_UP,
        .coordinator = coordinator,
        .peer = coordinator >= 0 ? 0 : p->id,
        .role = (int)hello->role,
        .name = hello->name,
        .incarnation = hello->incarnation,
    };
    s->coordinators_up += coordinator >= 0 ? 1 : 0;
    if (hello->role == ROLE_NODE) {
        calls_up(s->calls, p->id, hello->incarnation, s->now_us);
    }
    shell_feed(s, &event);
}

static void on_down(void *context, struct link *link, const char *reason)
{
    struct shell *s = context;
    struct peer *p = link_user(link);

    (void)reason; // The links log it.
    if (p == NULL) {
        return;
    }
    struct host_event event = {
        .type = p->coordinator >= 0 ? HOST_COORDINATOR_DOWN : HOST_PEER_DOWN,
        .coordinator = p->coordinator,
        .peer = p->coordinator >= 0 ? 0 : p->id,
    };
    if (p->coordinator >= 0 && --s->coordinators_up == 0) {
        s->complained_us = s->now_us;
    }
    table_remove(&s->peers, &p->by_id);
    link_set_user(link, NULL);
    calls_down(s->calls, p->id, s->now_us);
    shell_free_peer(s, p);
    shell_feed(s, &event);
}

/* A peer that sends what does not decode is not listened to any longer. */
static void on_bad_bytes(struct shell *s, struct link *link, const char *why)
{
    s->bad_frames++;
    log_warn("node",
             "bad_bytes",
             "peer=%s why=\"%s\" so_far=%" PRIu64,
             link_peer(link)->name,
             why,
             s->bad_frames);
    link_drop(link, why);
}

static void on_control(struct shell *s, struct link *link, const struct frame *frame)
{
    const struct peer *p = link_user(link);
    Rh__Control *message = control_get(frame->body);

    if (message == NULL) {
        on_bad_bytes(s, link, "it sent a control message that does not decode");
        return;
    }
    struct host_event event = {
        .type = p->coordinator >= 0 ? HOST_CONTROL : HOST_PEER_CONTROL,
        .coordinator = p->coordinator,
        .peer = p->coordinator >= 0 ? 0 : p->id,
        .message = message,
    };
    if (message->body_case == RH__CONTROL__BODY_INSPECT) {
        glance_feed(s, &event);
    } else {
        shell_feed(s, &event);
    }
    control_free(message);
}

union record {
    struct request_record request;
    struct answer_record answer;
    struct state_record state;
    struct state_ack_record state_ack;
};

/* Take one record of a type that has them into `record`, and point the event at it. */
static enum err take_record(struct reader *in, enum frame_type type, union record *record,
                            struct host_event *event)
{
    if (type == FRAME_REQUEST) {
        event->type = HOST_REQUEST;
        event->request = &record->request;
        return request_get(in, &record->request);
    }
    if (type == FRAME_ANSWER) {
        event->type = HOST_ANSWER;
        event->answer = &record->answer;
        return answer_get(in, &record->answer);
    }
    if (type == FRAME_STATE) {
        event->type = HOST_STATE;
        event->state = &record->state;
        return state_get(in, &record->state);
    }
    event->type = HOST_STATE_ACK;
    event->state_ack = &record->state_ack;
    return state_ack_get(in, &record->state_ack);
}

static void on_records(struct shell *s, struct link *link, const struct frame *frame)
{
    struct reader in = {.at = frame->body.data, .left = frame->body.size};
    const struct peer *p = link_user(link);
    const uint64_t peer = p->id;

    for (size_t i = 0; i < frame->count; i++) {
        struct host_event event = {.peer = peer};
        union record record;

        if (take_record(&in, frame->type, &record, &event) != ERR_OK) {
            on_bad_bytes(s, link, "it sent a record that does not decode");
            return;
        }
        if (event.type == HOST_ANSWER && calls_answer(s->calls, peer, event.answer, s->now_us)) {
            shell_settle(s);
        } else {
            shell_feed(s, &event);
        }
        if (shell_peer(s, peer) == NULL) {
            return; // That record made the host let go of the link.
        }
    }
    if (in.left != 0) {
        on_bad_bytes(s, link, "it sent bytes after the last record");
    }
}

static void on_frame(void *context, struct link *link, const struct frame *frame)
{
    struct shell *s = context;
    const struct peer *p = link_user(link);

    if (p == NULL) {
        return; // It is on its way out.
    }
    if (frame->type == FRAME_CONTROL) {
        on_control(s, link, frame);
    } else if (frame_type_has_records((uint8_t)frame->type) && p->coordinator < 0) {
        on_records(s, link, frame);
    } else {
        on_bad_bytes(s, link, "it sent a frame that a node does not take");
    }
}

static void on_links_wake(void *context)
{
    struct shell *s = context;

    (void)uv_async_send(&s->wake);
}

/* ---- the loop ---- */

static void leave(struct shell *s, int exit_code)
{
    struct host_event event = {.type = HOST_LEAVE};

    if (s->leaving) {
        log_warn("node", "stopped", "the drain was cut short");
        s->exit_code = exit_code;
        uv_stop(&s->loop);
        return;
    }
    log_info("node", "leaving", "node=%s", s->options->node.name);
    s->leaving = true;
    shell_feed(s, &event);
}

static void on_signal(uv_signal_t *handle, int number)
{
    leave(handle->data, 128 + number);
}

static void look_for_stops(struct shell *s)
{
    const unsigned asked = atomic_load(&stops_asked);

    while (s->stops_seen != asked) {
        s->stops_seen++;
        leave(s, 128 + SIGTERM);
    }
    for (unsigned n = atomic_exchange(&s->asks->stops, 0); n > 0; n--) {
        leave(s, 128 + SIGTERM);
    }
    if (atomic_load(&s->asks->drain) && !s->leaving) {
        leave(s, 0);
    }
}

static void complain_if_alone(struct shell *s)
{
    if (s->coordinators_up == 0 && !s->exiting && s->now_us - s->complained_us >= COMPLAIN_US) {
        s->complained_us = s->now_us;
        log_warn("node", "no_coordinator", "join=%s, still trying", s->options->node.join);
    }
}

static void poll_now(struct shell *s)
{
    s->now_us = clock_boottime_us();
    stage_take(s);
    links_poll(s->links, s->now_us);
    shell_look_for_room(s);
}

static void on_told(uv_async_t *handle)
{
    struct shell *s = handle->data;

    s->now_us = clock_boottime_us();
    stage_take(s);
    stage_wake(s);
}

static void on_wake(uv_async_t *handle)
{
    poll_now(handle->data);
}

/* Faults that tests name, in a build for them. */
static void plant(struct shell *s)
{
#ifdef RINGHOLD_INJECT
    if (inject_asked("stray")) {
        host_plant_stray(s->host);
    }
#else
    (void)s;
#endif
}

static void on_tick(uv_timer_t *handle)
{
    struct shell *s = handle->data;
    struct host_event event = {.type = HOST_TICK};

    poll_now(s);
    plant(s);
    calls_tick(s->calls, s->now_us);
    stage_recall(s);
    lister_tick(s->lister, s->now_us);
    stage_wake(s);
    shell_feed(s, &event);
    look_for_stops(s);
    complain_if_alone(s);
}

static bool all_sent(const struct shell *s)
{
    struct table_walk at = {0};

    for (struct table_link *l = table_walk(&s->peers, &at); l != NULL;
         l = table_walk(&s->peers, &at)) {
        const struct peer *p = CONTAINER_OF(l, struct peer, by_id);

        if (link_queued(p->link) > 0 || !backlog_is_empty(&p->backlog)) {
            return false;
        }
    }
    return true;
}

static void on_turn_end(uv_prepare_t *handle)
{
    struct shell *s = handle->data;

    stage_send(s);
    shell_drop_peers(s);
    links_flush(s->links);
    // Who was fenced has nothing left to say.
    if (s->exiting && (s->exit_code != 0 || all_sent(s) || clock_boottime_us() >= s->exit_by_us)) {
        uv_stop(&s->loop);
    }
}

/* ---- start ---- */

static bool complain(const char *what, const char *value)
{
    (void)fprintf(stderr, "ringhold node: %s%s\n", what, value);
    return false;
}

/* First of all after the folder: identity and number come and go together. */
static bool open_number(struct shell *s)
{
    struct buffer payload = {0};
    char path[VIEW_ADDRESS_MAX + 4096];

    (void)snprintf(path, sizeof path, "%s/number", s->options->node.data);
    if (!s->folder.fresh && access(path, F_OK) != 0 && errno == ENOENT) {
        return complain(path,
                        ": it is gone, and with it the numbers that this node has seen; start in a "
                        "new folder under another name (docs/recovery.md#a-nodes-folder)");
    }
    enum err error = number_open(&s->persist.number, path, &payload);
    if (error == ERR_OK) {
        error = disk_get(buffer_bytes(&payload), &s->disk);
    }
    buffer_fini(&payload);
    if (error != ERR_OK) {
        (void)fprintf(stderr,
                      "ringhold node: can't use %s: %s: look with `ringhold recover inspect %s` "
                      "(docs/recovery.md#a-nodes-folder)\n",
                      path,
                      err_text(error),
                      s->options->node.data);
    }
    return error == ERR_OK;
}

static bool make_host(struct shell *s)
{
    struct host_config config = s->options->limits;
    const struct rh_node_options *o = &s->options->node;
    (void)snprintf(config.name, sizeof config.name, "%s", o->name);
    (void)snprintf(config.zone, sizeof config.zone, "%s", o->zone == NULL ? "" : o->zone);
    if (o->role != NULL && strcmp(o->role, "default") != 0) {
        (void)snprintf(config.role, sizeof config.role, "%s", o->role);
    }
    memcpy(config.address, s->address, sizeof config.address);
    memcpy(config.boot_id, s->folder.boot_id, sizeof config.boot_id);
    memcpy(config.data_uuid, s->folder.data_uuid, sizeof config.data_uuid);
    config.weight = o->weight == 0 ? 1 : o->weight;
    config.serve = o->on_lease_loss == RH_LOSS_SERVE;
    config.actors_max = o->actors_max;
    config.nonce = random_u64();
    config.disk = s->disk;
    config.kinds = s->kinds.hosted;
    config.kind_count = s->kinds.count;
    if (config.serve) {
        log_warn("node",
                 "serves_without_lease",
                 "--on-lease-loss serve: cut off from the coordinators it goes on, and two nodes "
                 "may run one actor");
    }
    s->host = host_new(&config);
    return stage_open(s);
}

static bool add_kinds(struct shell *s)
{
    const struct rh_node_options *o = &s->options->node;

    for (size_t i = 0; i < o->kind_count; i++) {
        if (kinds_add(&s->kinds, &o->kinds[i]) != ERR_OK) {
            return false;
        }
    }
    if (!kinds_add_lines(&s->kinds, s->options->kinds)) {
        return false;
    }
    if ((o->actor != NULL || s->kinds.count == 0) && o->kind_count == 0 &&
        kinds_add_named(&s->kinds, 0, o->actor == NULL ? "kv" : o->actor) != ERR_OK) {
        return false;
    }
    return kinds_start(&s->kinds, o->name) == ERR_OK;
}

static const char *cluster_of(const struct rh_node_options *o)
{
    return o->cluster == NULL ? "ringhold" : o->cluster;
}

static bool listen_on(struct shell *s)
{
    const struct rh_node_options *o = &s->options->node;
    const char *address = o->listen == NULL ? "127.0.0.1:0" : o->listen;
    const enum err error = links_listen(s->links, address, s->address, sizeof s->address);

    if (error == ERR_OK && o->advertise != NULL) {
        (void)snprintf(s->address, sizeof s->address, "%s", o->advertise);
    }
    if (error == ERR_OK) {
        return true;
    }
    (void)fprintf(stderr,
                  "ringhold node: can't listen on %s: %s\n",
                  address,
                  error == ERR_CONFLICT  ? "the port is in use"
                  : error == ERR_INVALID ? "that is no HOST:PORT of this machine"
                                         : err_text(error));
    return false;
}

static bool open_links(struct shell *s)
{
    const struct rh_node_options *o = &s->options->node;
    struct links_config config = links_config_default();
    const struct link_events events = {
        .context = s,
        .hello = on_hello,
        .up = on_up,
        .down = on_down,
        .frame = on_frame,
        .wake = on_links_wake,
    };

    config.self.role = ROLE_NODE;
    (void)snprintf(config.self.cluster, sizeof config.self.cluster, "%s", cluster_of(o));
    (void)snprintf(config.self.name, sizeof config.self.name, "%s", o->name);
    if (links_open(&s->links, &config, &events) != ERR_OK) {
        return complain("can't open links as ", o->name);
    }
    return listen_on(s);
}

static bool dial_coordinators(struct shell *s)
{
    char join[JOIN_SIZE];
    char *rest = NULL;

    if (strlen(s->options->node.join) >= sizeof join) {
        return complain("the list of coordinators is too long", "");
    }
    (void)snprintf(join, sizeof join, "%s", s->options->node.join);
    for (const char *at = strtok_r(join, ", ", &rest); at != NULL;
         at = strtok_r(NULL, ", ", &rest)) {
        if (s->coordinator_count == FINDER_MAX) {
            return complain("too many coordinators to join", "");
        }
        struct link *link = links_dial(s->links, at);
        if (link == NULL) {
            return complain("a coordinator to join is HOST:PORT, not ", at);
        }
        s->coordinator[s->coordinator_count++] = link;
    }
    return s->coordinator_count > 0 || complain("no coordinator to join is named", "");
}

static bool is_reachable(const char *address)
{
    struct address parsed;

    return strlen(address) <= VIEW_ADDRESS_MAX && address_parse(address, &parsed) == ERR_OK &&
           parsed.port != 0;
}

static bool options_are_valid(const struct rh_node_options *o)
{
    if (o->name == NULL || !hello_name_is_valid(o->name)) {
        return complain("a node's name is 1 to 63 letters, digits, '.', '_' or '-', not ",
                        o->name == NULL ? "nothing" : o->name);
    }
    if (!hello_name_is_valid(cluster_of(o))) {
        return complain("a cluster's name is 1 to 63 letters, digits, '.', '_' or '-', not ",
                        cluster_of(o));
    }
    if (o->join == NULL) {
        return complain("it needs coordinators to join", "");
    }
    if (o->advertise != NULL && !is_reachable(o->advertise)) {
        return complain("what it advertises is HOST:PORT, not ", o->advertise);
    }
    if (o->data == NULL || o->data[0] == '\0') {
        return complain("it needs a data folder", "");
    }
    if (o->on_lease_loss > RH_LOSS_SERVE || o->on_lease_overrun > RH_OVERRUN_GATE) {
        return complain("what it does without a lease is none of the choices", "");
    }
    return true;
}

static void start_loop(struct shell *s)
{
    ASSERT(uv_loop_init(&s->loop) == 0);
    s->wake.data = s->told.data = s->tick.data = s->before_sleep.data = s;
    s->on_term.data = s->on_int.data = s;
    (void)uv_async_init(&s->loop, &s->wake, on_wake);
    (void)uv_async_init(&s->loop, &s->told, on_told);
    (void)uv_timer_init(&s->loop, &s->tick);
    (void)uv_prepare_init(&s->loop, &s->before_sleep);
    (void)uv_signal_init(&s->loop, &s->on_term);
    (void)uv_signal_init(&s->loop, &s->on_int);
    (void)uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
    (void)uv_prepare_start(&s->before_sleep, on_turn_end);
    if (s->options->node.keep_signals == 0) {
        (void)uv_signal_start(&s->on_term, on_signal, SIGTERM);
        (void)uv_signal_start(&s->on_int, on_signal, SIGINT);
    }
}

/* Everything that can be refused, in an order that leaves nothing half-done. */
static bool start(struct shell *s)
{
    const struct rh_node_options *o = &s->options->node;

    if (!options_are_valid(o) ||
        folder_open(&s->folder, o->data, cluster_of(o), o->name) != ERR_OK || !open_number(s) ||
        !open_links(s) || !add_kinds(s)) {
        return false;
    }
    return make_host(s) && dial_coordinators(s);
}

/* ---- end ---- */

static void on_walk(uv_handle_t *handle, void *context)
{
    (void)context;
    uv_close(handle, NULL);
}

static void finish(struct shell *s)
{
    struct table_link *l;
    struct table_walk at = {0};

    bool all_ended = false;

    s->exiting = true; // Nothing is a step any more.
    // What is left when a drain is cut short is flushed as long as the lease lasts.
    stage_stop(s, true);
    while (s->persist.busy) {
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    }
    links_close(s->links);
    while ((l = table_walk(&s->peers, &at)) != NULL) {
        struct peer *p = CONTAINER_OF(l, struct peer, by_id);

        table_remove(&s->peers, l);
        shell_free_peer(s, p);
    }
    table_fini(&s->peers);
    all_ended = stage_close(s);
    if (all_ended) {
        watchdog_free(s->watchdog); // Until here: an actor may still run past the lease.
        kinds_fini(&s->kinds);
    }
    calls_free(s->calls);
    if (s->host != NULL) {
        host_free(s->host);
    }
    host_effects_fini(&s->effects);
    persist_fini(&s->persist);
    folder_close(&s->folder);
    uv_walk(&s->loop, on_walk, NULL);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    ASSERT(uv_loop_close(&s->loop) == 0);
    mem_free(s->completions.event);
    mem_free(s->completions.at);
    buffer_fini(&s->completions.bytes);
    mem_free(s->wanted);
    if (all_ended) {
        mem_free(s);
    }
}

struct node_options node_options_default(void)
{
    return (struct node_options){.limits = host_config_default()};
}

static struct calls *new_calls(void)
{
    struct router_config config = router_config_default();

    config.seed = random_u64();
    return calls_new(&config);
}

struct shell *node_open(const struct node_options *options, struct node_asks *asks)
{
    struct shell *s = mem_new(1, sizeof *s);

    s->options = options;
    s->asks = asks;
    s->folder.lock = -1;
    s->exit_code = 1;
    s->now_us = s->complained_us = clock_boottime_us();
    s->stops_seen = atomic_load(&stops_asked);
    list_init(&s->stage.residents);
    s->calls = new_calls();
    start_loop(s);
    if (start(s)) {
        s->exit_code = 0;
        return s;
    }
    finish(s);
    return NULL;
}

struct worker *node_worker(const struct shell *s)
{
    return s->stage.worker[0];
}

int node_serve(struct shell *s)
{
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    const int exit_code = s->exit_code;
    finish(s);
    return exit_code;
}

int node_run(const struct node_options *options)
{
    struct node_asks asks = {0};
    struct shell *s = node_open(options, &asks);

    return s == NULL ? 1 : node_serve(s);
}

void node_stop_any(void)
{
    (void)atomic_fetch_add(&stops_asked, 1);
}
