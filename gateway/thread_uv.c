/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread of a gateway: its loop, its router and clients, and the order of
 * work in a turn.
 */
#include "gateway/thread_uv.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "link/inject.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { REST_MS = 250, SWEEP_MS = 1000 };

static void on_act(struct gateway_listener *l)
{
    thread_do_requests(CONTAINER_OF(l, struct thread, listener));
}

/* For INFO at another thread. */
static void put_stats(const struct thread *t)
{
    struct gateway_stats stats;

    if (t->config.shared_stats != NULL) {
        gateway_stats_own(t->clients, &stats);
        thread_stats_put(t->config.shared_stats, t->config.index, &stats);
    }
}

static void say_ready(struct thread *t)
{
    if (!t->ready && router_view(t->router)->member_count > 0) {
        t->ready = true;
        put_stats(t);
        t->config.tell(t->config.context, THREAD_READY);
    }
}

/* ---- time ---- */

/* Faults that tests name, in a build for them. */
static void plant(struct thread *t)
{
#ifdef RINGHOLD_INJECT
    if (inject_asked("spoil-ring")) {
        router_spoil(t->router);
    }
#else
    (void)t;
#endif
}

/* When clients are to be looked at that say nothing. */
static uint64_t sweep_us(const struct thread *t)
{
    return t->swept_us + (uint64_t)SWEEP_MS * 1000;
}

static void tick(struct thread *t)
{
    pace_ticked(&t->pace, thread_now(t));
    links_poll(t->links, thread_now(t));
    plant(t);
    router_step(t->router,
                &(struct router_event){.type = ROUTER_TICK, .now_us = thread_now(t)},
                &t->effects);
    listener_tick(&t->listener);
    auth_tick(&t->auth);
    if (thread_now(t) >= sweep_us(t)) {
        t->swept_us = thread_now(t);
        listener_sweep(&t->listener);
    }
    put_stats(t);
}

static void on_tick(uv_timer_t *timer)
{
    struct thread *t = timer->data;

    tick(t);
}

/* When the next tick is due at the latest, if all that it would look after rests; else 0. */
static uint64_t rests_until_us(const struct thread *t)
{
    const uint64_t most_us = t->pace.ticked_us + (uint64_t)REST_MS * 1000;
    const uint64_t router_us = router_rests_until_us(t->router);
    const uint64_t links_us = links_rest_until_us(t->links);
    const uint64_t own_us = sweep_us(t) < most_us ? sweep_us(t) : most_us;
    const uint64_t due_us = links_us < router_us ? links_us : router_us;

    if (!t->ready || t->draining || router_us == 0 || links_us == 0 ||
        !listener_rests(&t->listener)) {
        return 0;
    }
    return due_us < own_us ? due_us : own_us;
}

/* What the tick would look after again makes it go by its usual pace, as of this turn. */
static void pace(struct thread *t)
{
    if (!pace_is_open(&t->pace) || t->stopping) {
        return;
    }
    const uint64_t until_us = rests_until_us(t);
    if (pace_is_to_set(&t->pace, until_us)) {
        uv_update_time(&t->loop);
        (void)uv_timer_start(
            &t->tick, on_tick, pace_delay_ms(&t->pace, until_us, clock_boottime_us()), 0);
    }
}

static void stop(struct thread *t)
{
    if (t->stopping) {
        return;
    }
    t->stopping = true;
    (void)pthread_mutex_lock(&t->post.lock);
    t->post.closed = true;
    for (size_t i = 0; i < t->post.hands.count; i++) {
        (void)close(t->post.hands.item[i].fd);
    }
    t->post.hands.count = 0;
    (void)pthread_mutex_unlock(&t->post.lock);
    links_close(t->links);
    t->links = NULL;
    listener_close(&t->listener);
    uv_close((uv_handle_t *)&t->prepare, NULL);
    uv_close((uv_handle_t *)&t->tick, NULL);
    uv_close((uv_handle_t *)&t->wake, NULL);
    t->config.tell(t->config.context, THREAD_ENDED);
}

/* Before the loop blocks: everything that came of this turn goes out, in few large pieces. */
static void on_prepare(uv_prepare_t *prepare)
{
    struct thread *t = prepare->data;

    (void)thread_now(t);
    if (pace_is_along(&t->pace, t->listener.now_us)) {
        tick(t); // awake as it is, it need not wake again for that
    }
    do {
        thread_do_effects(t);
    } while (listener_resume(&t->listener));
    thread_feed_links(t);
    links_flush(t->links);
    listener_flush(&t->listener);
    say_ready(t);
    pace(t);
    if (t->draining && listener_is_drained(&t->listener)) {
        stop(t);
    }
    t->listener.clocked = false; // the loop may sleep now
}

/* ---- limits ---- */

size_t thread_share(const struct thread_config *config, size_t total)
{
    return total / config->count + (config->index < total % config->count ? 1 : 0);
}

/* What of the process's limits is its own. */
static struct router_config router_of(const struct thread *t, const struct gateway_options *o)
{
    struct router_config router = o->router;

    router.tracing = o->clients.tracing;

    router.in_flight_max = (uint32_t)thread_share(&t->config, router.in_flight_max);
    router.waiting_size_max = thread_share(&t->config, router.waiting_size_max);
    return router;
}

static struct clients_config clients_of(const struct thread *t, const struct gateway_options *o)
{
    struct clients_config clients = o->clients;
    const size_t logins = thread_share(&t->config, clients.login.at_once_max);

    clients.deadline_ms = o->router.deadline_ms;
    clients.connections_max = (uint32_t)thread_share(&t->config, clients.connections_max);
    clients.buffers_max = thread_share(&t->config, clients.buffers_max);
    clients.login.at_once_max = logins == 0 ? 1 : (uint32_t)logins;
    return clients;
}

static void reload(struct thread *t, const struct gateway_options *o)
{
    const struct router_config router = router_of(t, o);
    const struct clients_config clients = clients_of(t, o);

    router_configure(t->router, &router);
    clients_configure(t->clients, &clients);
    t->listener.transports.opening_ms = o->transports.opening_ms;
    t->listener.proxies = o->proxies;
    auth_reload(&t->auth);
    certificate_reload(&t->certificate);
    links_reload(t->links);
}

/* ---- post ---- */

static void drain(struct thread *t)
{
    t->draining = true;
    (void)thread_now(t);
    listener_drain(&t->listener);
}

static void on_post(uv_async_t *handle)
{
    struct thread *t = handle->data;
    const struct hands spare = t->taking;

    (void)pthread_mutex_lock(&t->post.lock);
    t->taking = t->post.hands;
    t->post.hands = spare;
    const bool drains = t->post.drain;
    const bool stops = t->post.stop;
    const bool reloads = t->post.reload;
    const struct gateway_options again = t->post.again;
    t->post.reload = false;
    (void)pthread_mutex_unlock(&t->post.lock);
    for (size_t i = 0; i < t->taking.count; i++) {
        listener_take(&t->listener, &t->loop, t->taking.item[i].entry, t->taking.item[i].fd);
    }
    t->taking.count = 0;
    if (reloads && !t->stopping) {
        reload(t, &again);
    }
    if (stops) {
        stop(t);
    } else if (drains && !t->draining) {
        drain(t);
    }
}

void thread_hand(struct thread *t, enum entry entry, int fd)
{
    struct hands *hands = &t->post.hands;

    (void)pthread_mutex_lock(&t->post.lock);
    if (t->post.closed) {
        (void)close(fd);
    } else {
        if (hands->count == hands->cap) {
            hands->cap = hands->cap == 0 ? 16 : hands->cap * 2;
            hands->item = mem_resize(hands->item, hands->cap * sizeof *hands->item);
        }
        hands->item[hands->count++] = (struct handed){entry, fd};
        (void)uv_async_send(&t->wake);
    }
    (void)pthread_mutex_unlock(&t->post.lock);
}

void thread_reload(struct thread *t)
{
    (void)pthread_mutex_lock(&t->post.lock);
    if (!t->post.closed) {
        t->post.again = *t->config.options;
        t->post.reload = true;
        (void)uv_async_send(&t->wake);
    }
    (void)pthread_mutex_unlock(&t->post.lock);
}

static void ask(struct thread *t, bool *what)
{
    (void)pthread_mutex_lock(&t->post.lock);
    if (!t->post.closed) {
        *what = true;
        (void)uv_async_send(&t->wake);
    }
    (void)pthread_mutex_unlock(&t->post.lock);
}

void thread_drain(struct thread *t)
{
    ask(t, &t->post.drain);
}

void thread_stop(struct thread *t)
{
    ask(t, &t->post.stop);
}

/* ---- life ---- */

static void open_cores(struct thread *t, uint16_t port)
{
    const struct gateway_options *options = t->config.options;
    struct router_config router = router_of(t, options);
    struct clients_config clients = clients_of(t, options);

    router.gateway = thread_id(t);
    router.seed = random_u64(); // ids of two threads are too much alike
    clients.trace_seed = random_u64();
    router.threads = t->config.count;
    router.streams = true;
    (void)snprintf(router.name, sizeof router.name, "%s", options->name);
    t->router = router_new(&router);
    random_fill(&clients.secret, sizeof clients.secret);
    clients.version = RINGHOLD_VERSION;
    clients.thread = t->config.index;
    clients.threads = t->config.count;
    clients.shared_stats = t->config.shared_stats;
    clients.unauthenticated = t->config.unauthenticated;
    clients.shared_admission = t->config.admission;
    (void)snprintf(clients.cluster, sizeof clients.cluster, "%s", options->cluster);
    (void)snprintf(clients.name, sizeof clients.name, "%s", options->name);
    clients.port = port;
    t->clients = clients_new(&clients, t->router, thread_now(t));
    t->listener.clients = t->clients;
    t->listener.effects = &t->effects;
    t->listener.act = on_act;
    t->listener.transports = options->transports;
    t->listener.proxies = options->proxies;
    t->listener.transports.packet_size_max = clients.packet_size_max;
    t->listener.transports.stats = clients_transports(t->clients);
}

struct thread *thread_open(const struct thread_config *config)
{
    struct thread *t = mem_new(1, sizeof *t);

    t->config = *config;
    if (uv_loop_init(&t->loop) != 0 || uv_async_init(&t->loop, &t->wake, on_post) != 0) {
        mem_free(t); // the process ends
        return NULL;
    }
    (void)pthread_mutex_init(&t->post.lock, NULL);
    listener_init(&t->listener);
    uv_prepare_init(&t->loop, &t->prepare);
    uv_timer_init(&t->loop, &t->tick);
    t->prepare.data = t->tick.data = t->wake.data = t;
    return t;
}

/* False: it said why not. */
static bool open_files(struct thread *t)
{
    const struct gateway_options *options = t->config.options;
    char why_keys[KEYRING_WHY_SIZE];
    char why[TLS_WHY_SIZE];

    if (!auth_open(&t->auth, options->auth_keys, t->clients, why_keys)) {
        (void)fprintf(stderr, "ringhold gateway: cannot take --auth-keys: %s\n", why_keys);
        return false;
    }
    if (!certificate_open(
            &t->certificate, options->tls_cert, options->tls_key, &t->listener.transports, why)) {
        (void)fprintf(stderr, "ringhold gateway: cannot take --tls-cert, --tls-key: %s\n", why);
        return false;
    }
    return true;
}

bool thread_start(struct thread *t, uint16_t port)
{
    open_cores(t, port);
    if (!open_files(t)) {
        return false;
    }
    const enum err failed = thread_links_open(t);
    if (failed != ERR_OK) {
        (void)fprintf(stderr,
                      "ringhold gateway: cannot open links of %s: %s\n",
                      t->config.options->name,
                      err_text(failed));
        return false;
    }
    uv_prepare_start(&t->prepare, on_prepare);
    uv_timer_start(&t->tick, on_tick, PACE_MS, 0);
    return true;
}

void thread_run(struct thread *t)
{
    uv_run(&t->loop, UV_RUN_DEFAULT);
    const int busy = uv_loop_close(&t->loop);
    ASSERT(busy == 0);
}

void thread_free(struct thread *t)
{
    if (t == NULL) {
        return;
    }
    for (size_t slot = 0; slot <= RING_NODES_MAX; slot++) {
        mem_free(t->node[slot]);
    }
    listener_fini(&t->listener);
    certificate_fini(&t->certificate);
    clients_free(t->clients);
    router_free(t->router);
    router_effects_fini(&t->effects);
    mem_free(t->taking.item);
    mem_free(t->post.hands.item);
    (void)pthread_mutex_destroy(&t->post.lock);
    mem_free(t);
}
