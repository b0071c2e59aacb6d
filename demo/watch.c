/* SPDX-License-Identifier: Apache-2.0
 *
 * What the demo asks the leader, and how it waits, with a line of progress.
 */
#include "demo/demo.h"

#include "base/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

void demo_catch_interrupts(void)
{
    (void)signal(SIGINT, on_interrupt);
    (void)signal(SIGTERM, on_interrupt);
}

static double since_start(const struct demo *d)
{
    return (double)(clock_boottime_us() - d->start_us) / 1e6;
}

void demo_say(const struct demo *d, const char *format, ...)
{
    va_list args;

    (void)printf("%6.1fs  ", since_start(d));
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)printf("\n");
    (void)fflush(stdout);
}

Rh__AdminReply *demo_ask_status(struct demo *d)
{
    Rh__AdminStatus what = RH__ADMIN_STATUS__INIT;

    return admin_try(d->admin, &what.base, DEMO_ASK_MS);
}

Rh__AdminReply *demo_ask_txns(struct demo *d, uint32_t limit)
{
    Rh__AdminTxns what = RH__ADMIN_TXNS__INIT;

    what.limit = limit;
    return admin_try(d->admin, &what.base, DEMO_ASK_MS);
}

Rh__AdminReply *demo_ask_txn(struct demo *d, uint64_t number)
{
    Rh__AdminTxn what = RH__ADMIN_TXN__INIT;

    what.txn = number;
    return admin_try(d->admin, &what.base, DEMO_ASK_MS);
}

void demo_note_holds(struct demo *d, const Rh__AdminReply *reply)
{
    static uint64_t last[FLEET_CHILDREN_MAX];
    uint64_t held = 0;

    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        if (n->member->slot < FLEET_CHILDREN_MAX && n->held_total > last[n->member->slot]) {
            last[n->member->slot] = n->held_total;
        }
        d->hold_us_max = n->hold_us_max > d->hold_us_max ? n->hold_us_max : d->hold_us_max;
    }
    for (size_t i = 0; i < FLEET_CHILDREN_MAX; i++) {
        held += last[i];
    }
    d->held = held;
}

/* ---- waiting, with a line of progress ---- */

bool demo_healthy(struct demo *d)
{
    const char *dead = NULL;

    if (interrupted) {
        (void)fprintf(stderr, "interrupted\n");
        return false;
    }
    if (!fleet_alive(&d->fleet, &dead)) {
        (void)fprintf(stderr,
                      "ringhold demo: %s ended unexpectedly (exit code %d); see %s/%s.log\n",
                      dead,
                      fleet_child(&d->fleet, dead)->exit_code,
                      d->fleet.folder,
                      dead);
        d->keep = true;
        return false;
    }
    return true;
}

void demo_progress(struct demo *d, const char *what)
{
    struct load_stats stats;

    load_stats(d->load, &stats);
    if (isatty(STDOUT_FILENO)) {
        (void)printf("\r%6.1fs  %-28s %" PRIu64 " requests answered, %" PRIu64 " errors ",
                     since_start(d),
                     what,
                     stats.answered,
                     stats.errors);
        (void)fflush(stdout);
    }
}

void demo_end_progress(void)
{
    if (isatty(STDOUT_FILENO)) {
        (void)printf("\r%78s\r", "");
    }
}

bool demo_run_for(struct demo *d, uint32_t ms, const char *what)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)ms * 1000;
    const struct timespec pause = {.tv_nsec = 100000000};

    while (clock_boottime_us() < end_us) {
        if (!demo_healthy(d)) {
            return false;
        }
        demo_progress(d, what);
        (void)nanosleep(&pause, NULL);
    }
    demo_end_progress();
    return true;
}

static uint32_t vnodes_of(const Rh__AdminReply *reply, const char *name)
{
    for (size_t i = 0; i < reply->n_nodes; i++) {
        if (strcmp(reply->nodes[i]->member->name, name) == 0) {
            return reply->nodes[i]->vnodes;
        }
    }
    return 0;
}

bool demo_wait_settled(struct demo *d, const char *name, bool owns, const char *what)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)DEMO_SETTLE_MS * 1000;
    const struct timespec pause = {.tv_nsec = 50000000};

    while (clock_boottime_us() < end_us && demo_healthy(d)) {
        Rh__AdminReply *reply = demo_ask_status(d);
        bool settled = false;

        if (reply != NULL) {
            demo_note_holds(d, reply);
            settled = reply->pending == 0 && reply->planned == 0 && !reply->planning &&
                      (vnodes_of(reply, name) > 0) == owns;
            admin_free(reply);
        }
        if (settled) {
            demo_end_progress();
            return true;
        }
        if (d->load != NULL) {
            demo_progress(d, what);
        }
        (void)nanosleep(&pause, NULL);
    }
    demo_end_progress();
    (void)fprintf(
        stderr, "ringhold demo: '%s' did not settle in %d s\n", what, DEMO_SETTLE_MS / 1000);
    d->keep = true;
    return false;
}
