/* SPDX-License-Identifier: Apache-2.0
 *
 * What a gateway has once: the addresses that clients come to, signals, and the
 * threads that do the rest (gateway/thread_uv.h). All of it is on the loop of the
 * first thread.
 *
 * One of them accepts and gives each connection to the thread with the most room:
 * players stay for hours, and what the kernel spreads by a hash stays uneven for
 * as long. A port that is shared by option (SO_REUSEPORT) would moreover let a
 * second gateway take it by mistake, and lose who waits in the queue of a thread
 * that ends.
 */
#include "gateway/gateway_uv.h"

#include "base/assert.h"
#include "base/exemplar.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "daemon/page_uv.h"
#include "gateway/access/unauthenticated.h"
#include "gateway/client/metrics.h"
#include "gateway/thread_uv.h"
#include "wire/gateway_id.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

enum {
    ACCEPTS_A_TURN = 8, /* of the loop: some hundred microseconds */
    PORTS_SIZE = ENTRY_COUNT * (PORT_BOUND_SIZE + 16),
};

struct thread_seat {
    struct thread *thread; /* owned */
    pthread_t id;          /* not of the first, which runs where gateway_run() was called */
    bool running;          /* it has one */
    uint64_t given;        /* connections */
};

struct gateway {
    const struct gateway_options *options;
    struct port port[ENTRY_COUNT];
    struct thread_seat seat[GATEWAY_THREADS_MAX];
    unsigned count;  /* of threads that are open */
    unsigned cursor; /* the seat after the one that was given a connection last */
    struct thread_stats *shared_stats;
    struct unauthenticated *unauthenticated;
    struct admission_control *admission;
    uv_loop_t *loop; /* of the first */
    uv_prepare_t turn;
    unsigned accepted; /* connections in this turn of the loop */
    uv_async_t told;   /* some thread has told something */
    uv_timer_t drain;
    uv_signal_t terminate;
    uv_signal_t interrupt;
    struct reload reload;
    bool said_ready;
    bool draining;
    pthread_mutex_t lock; /* the next two */
    unsigned ready;       /* threads that know a ring */
    unsigned ended;       /* threads */
};

struct gateway_options gateway_options_default(void)
{
    return (struct gateway_options){
        .at = {[ENTRY_RESP] = "127.0.0.1:6380"},
        .threads = 1,
        .drain_ms = 3000,
        .router = router_config_default(),
        .clients = clients_config_default(),
        .transports = transport_rules_default(),
    };
}

static int complain(const char *what, const char *which, const char *why)
{
    (void)fprintf(stderr, "ringhold gateway: %s %s: %s\n", what, which, why);
    return 1;
}

/* ---- clients ---- */

/* How many more it may have. What left is told by another thread, never too early. */
static int64_t room_of(const struct gateway *g, const struct thread_seat *seat)
{
    const size_t most = thread_share(&seat->thread->config, g->options->clients.connections_max);
    const uint64_t left = atomic_load_explicit(&seat->thread->listener.left, memory_order_relaxed);

    return (int64_t)most - (int64_t)(seat->given - left);
}

static struct thread_seat *most_room(struct gateway *g)
{
    struct thread_seat *best = NULL;

    for (unsigned i = 0; i < g->count; i++) {
        struct thread_seat *seat = &g->seat[(g->cursor + i) % g->count];

        best = best == NULL || room_of(g, seat) > room_of(g, best) ? seat : best;
    }
    g->cursor = (unsigned)(best - g->seat) + 1;
    return best;
}

static void accept_one(struct gateway *g, struct port *port)
{
    struct thread_seat *seat = most_room(g);

    if (seat == &g->seat[0]) {
        seat->given++;
        listener_accept(&seat->thread->listener, port);
        return;
    }
    const int fd = port_pass(port);
    if (fd >= 0) {
        seat->given++;
        thread_hand(seat->thread, port->entry, fd);
    }
}

/* What is over the turn's share waits, with libuv's one socket for it; the port is not looked at
 * meanwhile. So a storm takes its part of each turn, and who is in the rest. */
static void on_client(struct port *port)
{
    struct gateway *g = port->user;

    if (g->accepted == ACCEPTS_A_TURN) {
        port->waits = true;
        return;
    }
    g->accepted++;
    accept_one(g, port);
}

/* Before the loop blocks, which it doesn't when more wait. */
static void on_turn(uv_prepare_t *turn)
{
    struct gateway *g = turn->data;

    g->accepted = 0;
    for (size_t i = 0; i < sizeof g->port / sizeof g->port[0]; i++) {
        if (g->port[i].open && g->port[i].waits) {
            g->port[i].waits = false;
            g->accepted++;
            accept_one(g, &g->port[i]);
        }
    }
}

static void close_ports(struct gateway *g)
{
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        port_close(&g->port[i]);
    }
}

/* False: it said why not. NULL = not wanted. */
static bool listen_on(struct gateway *g, enum entry entry)
{
    const char *address = g->options->at[entry];
    struct port *port = &g->port[entry];

    port->come = on_client;
    port->user = g;
    const int failed = address == NULL ? 0 : port_open(port, g->loop, entry, address);
    return failed == 0 || complain("cannot listen on", address, uv_strerror(failed)) == 0;
}

/* ---- pages ---- */

static void put_metrics(void *owner, struct metrics *m)
{
    const struct gateway *g = owner;
    struct gateway_stats stats;

    gateway_stats_all(g->seat[0].thread->clients, &stats);
    gateway_metrics(&stats, m);
    struct latencies *sum = mem_new(1, sizeof *sum);
    for (unsigned i = 0; i < g->count; i++) {
        latencies_merge(sum, router_latencies(g->seat[i].thread->router)); // each writes its own
    }
    const struct tracing *tracing = g->options->clients.tracing;
    struct exemplars *exemplars = exemplars_copy(tracing, m, false);
    gateway_latency_metrics(sum, exemplars, m);
    mem_free(exemplars);
    mem_free(sum);
    if (tracing != NULL) {
        tracing->figures(tracing->context, m);
    }
}

static const char *why_not_ready(const struct gateway *g)
{
    struct thread *first = g->seat[0].thread;

    if (g->draining) {
        return "it drains";
    }
    if (!g->said_ready) {
        return "the gateway has no ring yet";
    }
    return clients_ready(first->clients, thread_now(first)) ? NULL
                                                            : "the gateway turns clients away";
}

static bool write_page(void *owner, enum page page, struct buffer *out)
{
    struct gateway *g = owner;
    const struct page_who who = {.role = "gateway",
                                 .name = g->options->name,
                                 .cluster = g->options->cluster,
                                 .fleet = router_view(g->seat[0].thread->router)->fleet,
                                 .not_ready = why_not_ready(g)};

    return page_render(page, &who, put_metrics, g, out);
}

/* ---- threads ---- */

/* In the thread that tells. Under the lock: when all have ended, `told` is closed. */
static void on_news(void *context, enum thread_news news)
{
    struct gateway *g = context;

    (void)pthread_mutex_lock(&g->lock);
    g->ready += news == THREAD_READY ? 1 : 0;
    g->ended += news == THREAD_ENDED ? 1 : 0;
    (void)uv_async_send(&g->told);
    (void)pthread_mutex_unlock(&g->lock);
}

/* " resp=HOST:PORT frames=…" */
static const char *name_ports(const struct gateway *g, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < ENTRY_COUNT && used < size; i++) {
        if (g->options->at[i] != NULL) {
            used += (size_t)snprintf(text + used,
                                     size - used,
                                     " %s=%s",
                                     entry_shape((enum entry)i).name,
                                     g->port[i].bound);
        }
    }
    return text;
}

static void say_ready(struct gateway *g)
{
    char ports[PORTS_SIZE];

    g->said_ready = true;
    printf("ready%s\n", name_ports(g, ports, sizeof ports));
    (void)fflush(stdout);
}

static void on_told(uv_async_t *handle)
{
    struct gateway *g = handle->data;

    (void)pthread_mutex_lock(&g->lock);
    const bool ready = g->ready == g->count;
    const bool over = g->ended == g->count;
    (void)pthread_mutex_unlock(&g->lock);
    if (ready && !g->said_ready) {
        say_ready(g);
    }
    if (over) {
        close_ports(g);
        uv_close((uv_handle_t *)&g->turn, NULL);
        pages_detach(g->options->pages);
        uv_close((uv_handle_t *)&g->told, NULL);
        uv_close((uv_handle_t *)&g->drain, NULL);
        uv_close((uv_handle_t *)&g->terminate, NULL);
        uv_close((uv_handle_t *)&g->interrupt, NULL);
        reload_stop(&g->reload);
    }
}

static void stop(struct gateway *g)
{
    for (unsigned i = 0; i < g->count; i++) {
        thread_stop(g->seat[i].thread);
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
    close_ports(g); // first: nobody is handed to a thread that has nobody left
    for (unsigned i = 0; i < g->count; i++) {
        thread_drain(g->seat[i].thread);
    }
    (void)uv_timer_start(&g->drain, on_drained, g->options->drain_ms, 0);
}

/* SIGHUP, and the options are good. */
static void on_reload(void *owner)
{
    struct gateway *g = owner;

    admission_configure(g->admission, &g->options->clients.admission);
    for (unsigned i = 0; i < g->count; i++) {
        thread_reload(g->seat[i].thread);
    }
}

static void *serve(void *thread)
{
    thread_run(thread);
    return NULL;
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

static struct admission_control *open_admission(const struct gateway_options *options)
{
    struct admission_config admission = options->clients.admission;

    admission.seed = random_u64();
    return admission_new(&admission);
}

/* As many as can be, which is seen by `count`. */
static void open_threads(struct gateway *g)
{
    const struct thread_config all = {.options = g->options,
                                      .process = gateway_id_process(random_u64()),
                                      .count = g->options->threads,
                                      .shared_stats = g->shared_stats,
                                      .unauthenticated = g->unauthenticated,
                                      .admission = g->admission,
                                      .tell = on_news,
                                      .context = g};

    for (unsigned i = 0; i < all.count; i++) {
        struct thread_config config = all;

        config.index = i;
        g->seat[i].thread = thread_open(&config);
        if (g->seat[i].thread == NULL) {
            return;
        }
        g->count++;
    }
}

static void open_handles(struct gateway *g)
{
    g->loop = &g->seat[0].thread->loop;
    uv_prepare_init(g->loop, &g->turn);
    uv_async_init(g->loop, &g->told, on_told);
    uv_timer_init(g->loop, &g->drain);
    uv_signal_init(g->loop, &g->terminate);
    uv_signal_init(g->loop, &g->interrupt);
    g->turn.data = g->told.data = g->drain.data = g;
    g->terminate.data = g->interrupt.data = g;
    uv_prepare_start(&g->turn, on_turn);
    uv_signal_start(&g->terminate, on_signal, SIGTERM);
    uv_signal_start(&g->interrupt, on_signal, SIGINT);
    reload_start(&g->reload, g->loop, g->options->source, on_reload, g);
}

static uint16_t resp_port(const struct gateway *g)
{
    struct address address;

    return address_parse(g->port[ENTRY_RESP].bound, &address) == ERR_OK ? address.port : 0;
}

/* Everything that may fail; the exit code. */
static int start(struct gateway *g)
{
    if (g->count < g->options->threads) {
        return complain("cannot start", g->options->name, "can't start the event loop");
    }
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        if (!listen_on(g, (enum entry)i)) {
            return 1;
        }
    }
    for (unsigned i = 0; i < g->count; i++) {
        if (!thread_start(g->seat[i].thread, resp_port(g))) {
            return 1;
        }
    }
    for (unsigned i = 1; i < g->count; i++) {
        struct thread_seat *seat = &g->seat[i];

        seat->running = pthread_create(&seat->id, NULL, serve, seat->thread) == 0;
        if (!seat->running) {
            return complain("cannot start", g->options->name, "no more threads");
        }
    }
    return 0;
}

/* Until all have ended. */
static void run(struct gateway *g)
{
    for (unsigned i = 1; i < g->count; i++) {
        if (!g->seat[i].running) {
            thread_run(g->seat[i].thread); // was not started: it only ends
        }
    }
    thread_run(g->seat[0].thread);
    for (unsigned i = 1; i < g->count; i++) {
        if (g->seat[i].running) {
            (void)pthread_join(g->seat[i].id, NULL);
        }
    }
}

int gateway_run(const struct gateway_options *options)
{
    struct gateway *g = mem_new(1, sizeof *g);

    ASSERT(options->coordinator_count >= 1 && options->coordinator_count <= FINDER_MAX);
    ASSERT(options->threads >= 1 && options->threads <= GATEWAY_THREADS_MAX);
    g->options = options;
    (void)pthread_mutex_init(&g->lock, NULL);
    (void)signal(SIGPIPE, SIG_IGN); // a client that hangs up is no reason to die
    raise_file_limit();
    g->shared_stats = options->threads > 1 ? thread_stats_new(options->threads) : NULL;
    g->unauthenticated = unauthenticated_new(random_u64());
    g->admission = open_admission(options);
    open_threads(g);
    int code = 1;
    if (g->count == 0) {
        (void)complain("cannot start", options->name, "can't start the event loop");
    } else {
        open_handles(g);
        code = start(g);
        if (code != 0) {
            stop(g);
        } else {
            char ports[PORTS_SIZE];

            pages_attach(options->pages, g->loop, write_page, g);
            log_info("gateway",
                     "listening",
                     "threads=%u%s",
                     g->count,
                     name_ports(g, ports, sizeof ports));
        }
        run(g);
    }
    for (unsigned i = 0; i < g->count; i++) {
        thread_free(g->seat[i].thread);
    }
    thread_stats_free(g->shared_stats);
    unauthenticated_free(g->unauthenticated);
    admission_free(g->admission);
    (void)pthread_mutex_destroy(&g->lock);
    mem_free(g);
    return code;
}
