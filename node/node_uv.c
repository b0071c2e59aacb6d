/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's life as a process: loop, timers, signals, drain and end.
 */
#include "node/node_uv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/exemplar.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "daemon/page_uv.h"
#include "link/inject.h"
#include "node/metrics.h"
#include "node/outside_uv.h"
#include "node/shell_uv.h"
#include "stream/sendlog.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { REST_MS = 250, COMPLAIN_US = 5 * 1000 * 1000, DRAIN_MS = 10 * 60 * 1000 };

/* Counted up by node_stop_any(), which a signal handler may call. */
static atomic_uint stops_asked;

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
    outside_leave(s);
    s->leaving = true;
    s->leave_us = s->now_us;
    shell_feed(s, &event);
}

static void on_signal(uv_signal_t *handle, int number)
{
    leave(handle->data, 128 + number);
}

/* A drain that has taken so long isn't waited for any more. */
static void look_at_drain(struct shell *s)
{
    const uint64_t drain_us = (uint64_t)s->options->drain_ms * 1000;

    if (drain_us != 0 && s->leaving && !s->exiting && s->now_us - s->leave_us >= drain_us) {
        leave(s, 128 + SIGTERM);
    }
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

void shell_poll(struct shell *s)
{
    s->now_us = clock_boottime_us();
    s->fresh = 0;
    dispatcher_take(s);
    links_poll(s->links, s->now_us);
    shell_look_for_room(s);
}

static void on_completed(uv_poll_t *handle, int status, int events)
{
    struct shell *s = handle->data;
    uint64_t rung = 0;

    (void)status;
    (void)events;
    (void)!read(s->completed_fd, &rung, sizeof rung); // first: what comes from here on rings again
    s->now_us = clock_boottime_us();
    s->fresh = 0;
    dispatcher_take(s);
    dispatcher_wake(s);
    dispatcher_take_due(s);
}

static void on_wake(uv_async_t *handle)
{
    shell_poll(handle->data);
    outside_take(handle->data);
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

static void tick(struct shell *s)
{
    struct host_event event = {.type = HOST_TICK};

    shell_poll(s);
    outside_tick(s);
    pace_ticked(&s->pace, s->now_us);
    plant(s);
    calls_tick(s->calls, s->now_us);
    shell_pushes_tick(s);
    dispatcher_recall(s);
    dispatcher_complain(s);
    lister_tick(s->lister, s->now_us);
    trim_tick(s);
    dispatcher_wake(s);
    dispatcher_take_due(s);
    host_set_busy_time(s->host, worker_stats_busy_us(s));
    shell_feed(s, &event);
    look_for_stops(s);
    look_at_drain(s);
    complain_if_alone(s);
}

static void on_tick(uv_timer_t *handle)
{
    struct shell *s = handle->data;

    tick(s);
}

static void on_go_on(uv_timer_t *handle)
{
    struct shell *s = handle->data;
    struct host_event go_on = {.type = HOST_GO_ON};

    shell_feed(s, &go_on);
}

/* When the next tick is due at the latest, if all that it would look after rests; else 0. */
static uint64_t rests_until_us(const struct shell *s)
{
    const uint64_t most_us = s->pace.ticked_us + (uint64_t)REST_MS * 1000;
    const uint64_t host_us = host_rests_until_us(s->host);
    const uint64_t links_us = links_rest_until_us(s->links);
    const uint64_t due_us = links_us < host_us ? links_us : host_us;

    if (host_us == 0 || links_us == 0 || s->leaving || s->exiting || s->coordinators_up == 0 ||
        s->backlog_size > 0 || !calls_rest(s->calls)) {
        return 0;
    }
    return due_us < most_us ? due_us : most_us;
}

/* What the tick would look after again makes it go by its usual pace, as of this turn. */
static void pace(struct shell *s)
{
    const uint64_t until_us = pace_is_open(&s->pace) ? rests_until_us(s) : 0;

    if (pace_is_open(&s->pace) && pace_is_to_set(&s->pace, until_us)) {
        uv_update_time(&s->loop);
        (void)uv_timer_start(
            &s->tick, on_tick, pace_delay_ms(&s->pace, until_us, clock_boottime_us()), 0);
    }
    if ((host_is_paced(s->host) || dispatcher_has_departed(s)) &&
        uv_is_active((uv_handle_t *)&s->go_on) == 0) {
        uv_update_time(&s->loop);
        (void)uv_timer_start(&s->go_on, on_go_on, 1, 0);
    }
}

static bool all_sent(const struct shell *s)
{
    struct table_walk at = {0};

    for (struct table_link *l = table_walk(&s->peers, &at); l != NULL;
         l = table_walk(&s->peers, &at)) {
        const struct shell_peer *p = CONTAINER_OF(l, struct shell_peer, by_id);

        struct sendlog *log = host_log(s->host, p->id);

        if (link_queued(p->link) > 0 || !backlog_is_empty(&p->backlog) ||
            (log != NULL && sendlog_unsent(log).size > 0)) {
            return false;
        }
    }
    return true;
}

static void on_turn_end(uv_prepare_t *handle)
{
    struct shell *s = handle->data;

    if (pace_is_along(&s->pace, clock_boottime_us())) {
        tick(s); // awake as it is, it need not wake again for that
    }
    dispatcher_send(s);
    dispatcher_end_turn(s);
    shell_drop_peers(s);
    pace(s);
    shell_feed_links(s);
    links_flush(s->links);
    // Who was fenced has nothing left to say.
    if (s->exiting && (s->exit_code != 0 || all_sent(s) || clock_boottime_us() >= s->exit_by_us)) {
        uv_stop(&s->loop);
    }
}

static void start_loop(struct shell *s)
{
    ASSERT(uv_loop_init(&s->loop) == 0);
    s->wake.data = s->completed.data = s->tick.data = s->before_sleep.data = s;
    s->go_on.data = s;
    s->on_term.data = s->on_int.data = s;
    (void)uv_async_init(&s->loop, &s->wake, on_wake);
    s->completed_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ASSERT(s->completed_fd >= 0);
    (void)uv_poll_init(&s->loop, &s->completed, s->completed_fd);
    (void)uv_poll_start(&s->completed, UV_READABLE, on_completed);
    (void)uv_timer_init(&s->loop, &s->tick);
    (void)uv_timer_init(&s->loop, &s->go_on);
    (void)uv_prepare_init(&s->loop, &s->before_sleep);
    (void)uv_signal_init(&s->loop, &s->on_term);
    (void)uv_signal_init(&s->loop, &s->on_int);
    (void)uv_timer_start(&s->tick, on_tick, PACE_MS, 0);
    (void)uv_prepare_start(&s->before_sleep, on_turn_end);
    if (s->options->node.keep_signals == 0) {
        (void)uv_signal_start(&s->on_term, on_signal, SIGTERM);
        (void)uv_signal_start(&s->on_int, on_signal, SIGINT);
    }
}

/* ---- pages ---- */

static void put_store_metrics(struct dispatcher *d, struct metrics *m)
{
    const struct alarm_counts *alarms = &d->alarm_counts;
    const struct alarm_figures figures = {.set = atomic_load(&alarms->set),
                                          .cancelled = atomic_load(&alarms->cancelled),
                                          .fired = atomic_load(&alarms->fired),
                                          .late = atomic_load(&alarms->late),
                                          .failed = atomic_load(&alarms->failed)};
    const _Atomic uint64_t *of = d->figures.of;
    const struct kept_figures kept = {.answers = atomic_load(&of[FIGURE_ANSWERS]),
                                      .answer_bytes = atomic_load(&of[FIGURE_ANSWER_BYTES]),
                                      .sends = atomic_load(&of[FIGURE_SENDS]),
                                      .send_bytes = atomic_load(&of[FIGURE_SEND_BYTES]),
                                      .alarms = atomic_load(&of[FIGURE_ALARMS]),
                                      .alarms_due = atomic_load(&of[FIGURE_DUE])};
    struct committer_stats stored;

    committer_stats(d->committer, &stored);
    node_store_metrics(&stored, &figures, &kept, m);
}

static void put_latencies(const struct shell *s, struct metrics *m)
{
    const struct tracing *tracing = s->options->tracing;
    struct latencies *handlers = mem_new(1, sizeof *handlers);
    struct exemplars *of_requests = exemplars_copy(tracing, m, false);
    struct exemplars *of_calls = exemplars_copy(tracing, m, true);
    const struct node_latencies all = {.requests = host_latencies(s->host),
                                       .handlers = handlers,
                                       .calls = calls_latencies(s->calls),
                                       .of_requests = of_requests,
                                       .of_calls = of_calls};

    for (size_t i = 0; i < s->dispatcher.worker_count; i++) {
        latencies_merge(handlers, worker_handlers(s->dispatcher.worker[i])); // each writes its own
    }
    node_latency_metrics(&all, m);
    mem_free(of_calls);
    mem_free(of_requests);
    mem_free(handlers);
}

static void put_metrics(void *owner, struct metrics *m)
{
    struct shell *s = owner;
    struct host_stats host;
    struct router_stats calls;
    struct broadcast_stats told;

    host_stats(s->host, &host);
    calls_stats(s->calls, &calls);
    calls_broadcasts(s->calls, &told);
    told.refused = atomic_load(&s->dispatcher.broadcasting.refused);
    node_metrics(&host, host_vnodes(s->host), &calls, &told, m);
    if (s->options->host_figures != NULL) {
        s->options->host_figures(m);
    }
    if (s->options->tracing != NULL) {
        s->options->tracing->figures(s->options->tracing->context, m);
    }
    put_latencies(s, m);
    if (s->dispatcher.committer != NULL) {
        put_store_metrics(&s->dispatcher, m);
    }
}

static const char *why_not_ready(const struct shell *s, char text[64])
{
    struct host_stats host;

    host_stats(s->host, &host);
    if (s->leaving || s->exiting) {
        (void)snprintf(
            text, 64, "the node is leaving, %zu vnodes are still here", host_vnodes(s->host));
        return text;
    }
    if (!host.serving) {
        return "the node is not registered";
    }
    if (host.draining) {
        (void)snprintf(
            text, 64, "the node is drained, %zu vnodes are still here", host_vnodes(s->host));
        return text;
    }
    return host.lease_in_force && host.lease != LEASE_ACTIVE ? "the node has no lease" : NULL;
}

static bool write_page(void *owner, enum page page, struct buffer *out)
{
    struct shell *s = owner;
    char text[64];
    const struct page_who who = {.role = "node",
                                 .name = s->options->node.name,
                                 .cluster = s->options->node.cluster,
                                 .fleet = s->folder.fleet,
                                 .not_ready = why_not_ready(s, text)};

    return page_render(page, &who, put_metrics, s, out);
}

/* ---- end ---- */

static void on_walk(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle)) { // those of the links are
        uv_close(handle, NULL);
    }
}

static void finish(struct shell *s)
{
    struct table_link *l;
    struct table_walk at = {0};

    bool all_ended = false;

    s->exiting = true; // Nothing is a step any more.
    outside_close(s);
    // What is left when a drain is cut short is flushed. Who was barred has nothing left.
    dispatcher_stop(s, true);
    while (s->persist.busy) {
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    }
    links_close(s->links);
    while ((l = table_walk(&s->peers, &at)) != NULL) {
        struct shell_peer *p = CONTAINER_OF(l, struct shell_peer, by_id);

        table_remove(&s->peers, l);
        shell_free_peer(s, p);
    }
    table_fini(&s->peers);
    all_ended = dispatcher_close(s);
    if (all_ended) {
        crash_record_close(&s->crash_record);
        watchdog_free(s->watchdog); // Until here: an actor may still run past the lease.
        kinds_fini(&s->kinds);
    }
    calls_free(s->calls);
    presence_fini(&s->presence);
    if (s->host != NULL) {
        host_free(s->host);
    }
    host_effects_fini(&s->effects);
    buffer_fini(&s->answer);
    persist_fini(&s->persist);
    folder_close(&s->folder);
    uv_walk(&s->loop, on_walk, NULL);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    ASSERT(uv_loop_close(&s->loop) == 0);
    mem_free(s->queued.event);
    mem_free(s->wanted);
    if (all_ended) { // else a thread of it may ring yet
        (void)close(s->completed_fd);
        mem_free(s);
    }
}

struct node_options node_options_default(void)
{
    return (struct node_options){.limits = host_config_default(), .drain_ms = DRAIN_MS};
}

static struct calls *new_calls(const char *name, const struct tracing *tracing)
{
    struct router_config config = router_config_default();

    (void)snprintf(config.name, sizeof config.name, "%s", name == NULL ? "" : name);
    config.tracing = tracing;
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
    s->calls = new_calls(options->node.name, options->tracing);
    calls_count_down(s->calls, &s->dispatcher.broadcasting.size);
    start_loop(s);
    if (asks->outside != NULL) {
        asks->outside->wake = &s->wake;
    }
    if (shell_start(s)) {
        s->exit_code = 0;
        return s;
    }
    finish(s);
    return NULL;
}

struct worker *node_worker(const struct shell *s)
{
    return s->dispatcher.worker[0];
}

int node_serve(struct shell *s)
{
    outside_serve(s);
    pages_attach(s->options->pages, &s->loop, write_page, s);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    pages_detach(s->options->pages);
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
