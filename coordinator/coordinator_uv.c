/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's loop: timers, signals, the order of work in a turn, start and
 * stop.
 */
#include "coordinator/daemon.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "txn/admin/metrics.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

enum { STATE_MS = 50, INDEX_MS = 1000, RECONFIGURATION_MS = 300 };

void daemon_wake(void *context)
{
    struct daemon *d = context;

    if (pthread_equal(pthread_self(), d->thread) != 0) {
        d->due = true; // no need to wake it
    } else {
        (void)uv_async_send(&d->wake);
    }
}

/* Take what came from the links and from the disk. */
static void daemon_poll(struct daemon *d)
{
    const uint64_t now_us = clock_boottime_us();

    d->due = false;
    links_poll(d->links, now_us);
    replica_poll(d->replica, now_us);
}

/* The disk is done. What the links bring in the same turn is heard first, in on_prepare(): votes
 * that are here already go into the log ahead of what the leader begins when it learns of an
 * outcome. */
static void on_async(uv_async_t *handle)
{
    struct daemon *d = handle->data;

    d->due = true;
}

/* When the next tick is due at the latest, if all that it would look after rests; else 0. */
static uint64_t rests_until_us(const struct daemon *d)
{
    const uint32_t rests_ms = coordinator_rests_ms(d->machine);
    const uint64_t replica_us = replica_due_us(d->replica);
    const uint64_t most_us = d->pace.ticked_us + (uint64_t)rests_ms * 1000;

    if (rests_ms == 0 || replica_us == 0 || d->stop_us != 0 || d->wish.peer != 0 ||
        d->refused_count > 0 || links_rest_until_us(d->links) == 0) {
        return 0;
    }
    return replica_us < most_us ? replica_us : most_us;
}

static void tick(struct daemon *d)
{
    const uint64_t now_us = clock_boottime_us();
    struct coordinator_event event = {.type = COORDINATOR_TICK};

    pace_ticked(&d->pace, now_us);
    links_set_pristine(d->links, replica_pristine(d->replica));
    links_poll(d->links, now_us);
    replica_poll(d->replica, now_us);
    replica_tick(d->replica, now_us);
    daemon_step(d, &event);
    daemon_heed_state(d);
    daemon_drive_wish(d);
    daemon_note_generation(d);
    if (now_us - d->committed_us >= (uint64_t)(d->changed ? STATE_MS : INDEX_MS) * 1000) {
        d->committed_us = now_us;
        daemon_commit_state(d);
    }
    if (d->stop_us != 0 && (!d->leading || now_us >= d->stop_us)) {
        uv_stop(&d->loop);
    }
}

static void on_tick(uv_timer_t *handle)
{
    struct daemon *d = handle->data;

    tick(d);
}

/* What the tick would look after again makes it go by its usual pace, as of this turn. */
static void pace(struct daemon *d)
{
    const uint64_t until_us = pace_is_open(&d->pace) ? rests_until_us(d) : 0;

    if (until_us == 0 && d->pace.rests) {
        pace_stirs(&d->pace, clock_boottime_us()); // more comes: nodes renew at the same moment
    }
    if (pace_is_open(&d->pace) && pace_is_to_set(&d->pace, until_us)) {
        uv_update_time(&d->loop);
        (void)uv_timer_start(
            &d->tick, on_tick, pace_delay_ms(&d->pace, until_us, clock_boottime_us()), 0);
    }
}

/* Awake as it is, it need not wake again for the next tick. */
static bool tick_along(struct daemon *d)
{
    const bool along = pace_is_along(&d->pace, clock_boottime_us()) && rests_until_us(d) != 0;

    if (along) {
        tick(d);
    }
    return along;
}

static void on_prepare(uv_prepare_t *handle)
{
    struct daemon *d = handle->data;

    do {
        daemon_tell_refusals(d);
        while (d->due) {
            daemon_poll(d);
        }
    } while (tick_along(d));
    pace(d);
    links_flush(d->links);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct daemon *d = handle->data;

    log_info("coordinator", "stopping", "signal=%d leading=%d", number, d->leading);
    if (d->leading && replica_generation(d->replica)->voter_count > 1 && d->stop_us == 0) {
        // Others need not wait for an election time-out; the loop sends the hand-over.
        replica_transfer(d->replica);
        d->stop_us = clock_boottime_us() + (uint64_t)RECONFIGURATION_MS * 1000;
        return;
    }
    uv_stop(&d->loop);
}

static void start_loop(struct daemon *d)
{
    (void)uv_loop_init(&d->loop);
    d->wake.data = d->tick.data = d->before_sleep.data = d;
    d->on_term.data = d->on_int.data = d;
    (void)uv_async_init(&d->loop, &d->wake, on_async);
    (void)uv_timer_init(&d->loop, &d->tick);
    (void)uv_prepare_init(&d->loop, &d->before_sleep);
    (void)uv_signal_init(&d->loop, &d->on_term);
    (void)uv_signal_init(&d->loop, &d->on_int);
    (void)uv_timer_start(&d->tick, on_tick, PACE_MS, 0);
    (void)uv_prepare_start(&d->before_sleep, on_prepare);
    (void)uv_signal_start(&d->on_term, on_signal, SIGTERM);
    (void)uv_signal_start(&d->on_int, on_signal, SIGINT);
}

/* ---- pages ---- */

uint64_t daemon_leader(const struct daemon *d)
{
    struct replica_status status;

    replica_status(d->replica, &status);
    return status.leader;
}

static void put_metrics(void *owner, struct metrics *m)
{
    struct daemon *d = owner;

    coordinator_metrics(d->machine, daemon_leader(d), clock_wall_us(), m);
}

static bool write_page(void *owner, enum page page, struct buffer *out)
{
    struct daemon *d = owner;
    char name[24];
    const struct page_who who = {.role = "coordinator",
                                 .name = name,
                                 .cluster = d->options->cluster,
                                 .fleet = d->state.view.fleet,
                                 .not_ready = d->stop_us != 0         ? "it stops"
                                              : daemon_leader(d) == 0 ? "no leader"
                                                                      : NULL};

    (void)snprintf(name, sizeof name, "%" PRIu32, d->options->id);
    return page_render(page, &who, put_metrics, d, out);
}

/* SIGHUP, and the options are good. */
static void on_reload(void *owner)
{
    struct daemon *d = owner;

    coordinator_configure(d->machine, &d->options->machine);
    links_reload(d->links);
}

int coordinator_run(const struct coordinator_options *options)
{
    struct daemon *d = mem_new(1, sizeof *d);

    d->options = options;
    d->thread = pthread_self();
    if (options->adopt) {
        mem_free(d);
        return daemon_adopt(options);
    }
    start_loop(d);
    if (!daemon_open_storage(d)) {
        return 1; // The process ends: nothing to unwind is worth the code.
    }
    daemon_make_machine(d);
    if (!daemon_open_links(d)) {
        return 1;
    }
    reload_start(&d->reload, &d->loop, options->source, on_reload, d);
    pages_attach(options->pages, &d->loop, write_page, d);
    (void)uv_run(&d->loop, UV_RUN_DEFAULT);
    pages_detach(options->pages);
    links_flush(d->links);
    links_close(d->links);
    replica_close(d->replica);
    daemon_commit_state(d);
    watermark_close(d->watermark);
    state_db_close(d->db);
    return 0;
}
