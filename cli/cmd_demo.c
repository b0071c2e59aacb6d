/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "cli/admin.h"
#include "cli/demo_fleet.h"
#include "cli/demo_judge.h"
#include "cli/demo_load_uv.h"
#include "cli/options.h"
#include "cli/rows.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    ASK_MS = 15000,
    SETTLE_MS = 60000,
    CALM_PERCENT = 35,    /* of --seconds: before the changes, and after them */
    BETWEEN_PERCENT = 15, /* between the join and the drain */
    KILLS_MAX = 8,
    SLOW_MS = 250,
};

struct demo {
    uint32_t seconds;
    uint32_t ids;
    uint32_t rate;
    uint32_t seed;
    bool keep;
    char history_path[4096]; /* "" = none */
    struct history *history;
    uint64_t start_us;
    struct fleet fleet;
    struct admin *admin;
    struct load *load;
    uint64_t held; /* requests, ever, of all nodes */
    uint64_t hold_us_max;
    uint64_t joined; /* ids that the joining node took over */
    bool killed_in_prepare;
    uint64_t killed_txn;
    char killed_what[128];
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static double since_start(const struct demo *d)
{
    return (double)(clock_boottime_us() - d->start_us) / 1e6;
}

static void say(const struct demo *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(const struct demo *d, const char *format, ...)
{
    va_list args;

    (void)printf("%6.1fs  ", since_start(d));
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)printf("\n");
    (void)fflush(stdout);
}

/* ---- questions to the leader ---- */

static Rh__AdminReply *ask_status(struct demo *d)
{
    Rh__AdminStatus what = RH__ADMIN_STATUS__INIT;
    Rh__Admin request = RH__ADMIN__INIT;

    request.what_case = RH__ADMIN__WHAT_STATUS;
    request.status = &what;
    return admin_try(d->admin, &request, ASK_MS);
}

static Rh__AdminReply *ask_txns(struct demo *d, uint32_t limit)
{
    Rh__AdminTxns what = RH__ADMIN_TXNS__INIT;
    Rh__Admin request = RH__ADMIN__INIT;

    what.limit = limit;
    request.what_case = RH__ADMIN__WHAT_TXNS;
    request.txns = &what;
    return admin_try(d->admin, &request, ASK_MS);
}

static Rh__AdminReply *ask_txn(struct demo *d, uint64_t number)
{
    Rh__AdminTxn what = RH__ADMIN_TXN__INIT;
    Rh__Admin request = RH__ADMIN__INIT;

    what.txn = number;
    request.what_case = RH__ADMIN__WHAT_TXN;
    request.txn = &what;
    return admin_try(d->admin, &request, ASK_MS);
}

static void note_holds(struct demo *d, const Rh__AdminReply *reply)
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

static bool healthy(struct demo *d)
{
    const char *dead = NULL;

    if (interrupted) {
        (void)fprintf(stderr, "interrupted\n");
        return false;
    }
    if (!fleet_alive(&d->fleet, &dead)) {
        (void)fprintf(stderr,
                      "ringhold demo: %s ended by itself (exit %d); see %s/%s.log\n",
                      dead,
                      fleet_child(&d->fleet, dead)->exit_code,
                      d->fleet.folder,
                      dead);
        d->keep = true;
        return false;
    }
    return true;
}

static void progress(struct demo *d, const char *what)
{
    struct load_figures figures;

    load_figures(d->load, &figures);
    if (isatty(STDOUT_FILENO)) {
        (void)printf("\r%6.1fs  %-28s %" PRIu64 " requests answered, %" PRIu64 " errors ",
                     since_start(d),
                     what,
                     figures.answered,
                     figures.errors);
        (void)fflush(stdout);
    }
}

static void end_progress(void)
{
    if (isatty(STDOUT_FILENO)) {
        (void)printf("\r%78s\r", "");
    }
}

/* Let the load run. */
static bool run_for(struct demo *d, uint32_t ms, const char *what)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)ms * 1000;
    const struct timespec pause = {.tv_nsec = 100000000};

    while (clock_boottime_us() < end_us) {
        if (!healthy(d)) {
            return false;
        }
        progress(d, what);
        (void)nanosleep(&pause, NULL);
    }
    end_progress();
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

/* Until nothing moves or is planned, and `name` owns something (or nothing). */
static bool wait_settled(struct demo *d, const char *name, bool owns, const char *what)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)SETTLE_MS * 1000;
    const struct timespec pause = {.tv_nsec = 50000000};

    while (clock_boottime_us() < end_us && healthy(d)) {
        Rh__AdminReply *reply = ask_status(d);
        bool settled = false;

        if (reply != NULL) {
            note_holds(d, reply);
            settled =
                reply->pending == 0 && reply->planned == 0 && (vnodes_of(reply, name) > 0) == owns;
            admin_free(reply);
        }
        if (settled) {
            end_progress();
            return true;
        }
        if (d->load != NULL) {
            progress(d, what);
        }
        (void)nanosleep(&pause, NULL);
    }
    end_progress();
    (void)fprintf(stderr, "ringhold demo: '%s' did not settle in %d s\n", what, SETTLE_MS / 1000);
    d->keep = true;
    return false;
}

/* ---- the story ---- */

/* A new file: another run's clients number their requests from 1 as well. */
static bool open_history(struct demo *d)
{
    if (d->history_path[0] == '\0') {
        return true;
    }
    if (access(d->history_path, F_OK) == 0) {
        (void)fprintf(stderr, "ringhold demo: %s is there already\n", d->history_path);
        return false;
    }
    if (history_open(&d->history, d->history_path) != ERR_OK) {
        (void)fprintf(stderr, "ringhold demo: can't write %s\n", d->history_path);
        return false;
    }
    return true;
}

static bool start_fleet(struct demo *d)
{
    if (!fleet_init(&d->fleet)) {
        return false;
    }
    d->fleet.history = d->history == NULL ? NULL : d->history_path;
    say(d, "folder %s", d->fleet.folder);
    for (unsigned id = 1; id <= FLEET_COORDINATORS; id++) {
        if (!fleet_start_coordinator(&d->fleet, id)) {
            return false;
        }
    }
    say(d, "3 coordinators at %s", d->fleet.coordinators);
    d->admin = admin_open(
        &(struct admin_where){.cluster = "ringhold", .coordinators = d->fleet.coordinators});
    if (d->admin == NULL || !fleet_start_node(&d->fleet, "n1") ||
        !fleet_start_node(&d->fleet, "n2") || !fleet_start_node(&d->fleet, "n3")) {
        return false;
    }
    if (!wait_settled(d, "n3", true, "first shares") || !fleet_start_gateway(&d->fleet, "g1")) {
        return false;
    }
    say(d, "3 nodes share the ring; gateway at %s (try redis-cli)", d->fleet.gateway);
    return true;
}

static bool start_load(struct demo *d)
{
    const struct load_options options = {
        .gateway = d->fleet.gateway,
        .ids = d->ids,
        .rate = d->rate,
        .slow_ms = SLOW_MS,
        .seed = d->seed,
        .history = d->history,
    };

    d->load = load_start(&options);
    if (d->load == NULL) {
        return false;
    }
    say(d, "load: %u requests/s over %u ids from %d clients", d->rate, d->ids, LOAD_CLIENTS);
    return true;
}

static bool join(struct demo *d)
{
    say(d, "node n4 joins");
    load_phase(d->load, LOAD_JOIN);
    if (!fleet_start_node(&d->fleet, "n4") || !wait_settled(d, "n4", true, "n4 joins")) {
        return false;
    }
    say(d, "n4 has its share of the ring");
    load_phase(d->load, LOAD_BETWEEN);
    return true;
}

static bool ask_drain(struct demo *d, char *name)
{
    Rh__AdminDrain what = RH__ADMIN_DRAIN__INIT;
    Rh__Admin request = RH__ADMIN__INIT;

    what.name = name;
    request.what_case = RH__ADMIN__WHAT_DRAIN;
    request.drain = &what;
    Rh__AdminReply *reply = admin_ask(d->admin, &request, ASK_MS);
    const bool done = reply != NULL && reply->error[0] == '\0';
    if (reply != NULL && !done) {
        (void)fprintf(stderr, "ringhold demo: %s\n", reply->error);
    }
    admin_free(reply);
    return done;
}

/* A pending transaction that has a vote; 0 = none. Describes it in `what`. */
static uint64_t prepared_txn(struct demo *d, uint32_t *leader, bool *any_pending, char *what,
                             size_t size)
{
    Rh__AdminReply *reply = ask_txns(d, 16);
    uint64_t found = 0;

    *any_pending = false;
    for (size_t i = 0; reply != NULL && found == 0 && i < reply->n_txns; i++) {
        const Rh__TxnRow *t = reply->txns[i];

        *any_pending = *any_pending || strcmp(t->state, "pending") == 0;
        for (size_t v = 0; strcmp(t->state, "pending") == 0 && v < t->n_votes; v++) {
            if (strcmp(t->votes[v]->vote, "prepared") == 0 && t->n_moves > 0) {
                found = t->txn;
                *leader = reply->leader;
                (void)snprintf(what,
                               size,
                               "%zu vnodes %s -> %s, prepared by %s",
                               t->n_moves,
                               t->moves[0]->from,
                               t->moves[0]->to,
                               t->votes[v]->node);
                break;
            }
        }
    }
    admin_free(reply);
    return found;
}

/* Kill the leader with -9 the moment it shows a transaction that somebody has prepared. */
static bool kill_in_prepare(struct demo *d)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)SETTLE_MS * 1000;
    uint32_t leader = 0;
    bool pending = false;
    char name[32];

    while (clock_boottime_us() < end_us && healthy(d)) {
        const uint64_t txn =
            prepared_txn(d, &leader, &pending, d->killed_what, sizeof d->killed_what);

        if (txn == 0 || leader == 0) {
            continue;
        }
        (void)snprintf(name, sizeof name, "c%u", leader);
        fleet_kill(&d->fleet, fleet_child(&d->fleet, name));
        say(d,
            "kill -9 of leader %s while transaction %" PRIu64 " was prepared (%s)",
            name,
            txn,
            d->killed_what);
        const uint64_t killed_us = clock_boottime_us();
        Rh__AdminReply *reply = ask_txn(d, txn);
        const char *state = reply == NULL || reply->n_txns == 0 ? "unknown" : reply->txns[0]->state;
        say(d,
            "a new leader answers after %.1f s: transaction %" PRIu64 " is %s%s%s",
            (double)(clock_boottime_us() - killed_us) / 1e6,
            txn,
            state,
            reply == NULL || reply->n_txns == 0 || reply->txns[0]->outcome_why[0] == '\0' ? ""
                                                                                          : ": ",
            reply == NULL || reply->n_txns == 0 ? "" : reply->txns[0]->outcome_why);
        d->killed_in_prepare =
            reply != NULL && reply->n_txns > 0 && strcmp(state, "committed") != 0;
        d->killed_txn = txn;
        admin_free(reply);
        return fleet_start_coordinator(&d->fleet, leader);
    }
    return false;
}

static bool drain(struct demo *d)
{
    char name[] = "n2";

    say(d, "node n2 drains");
    load_phase(d->load, LOAD_DRAIN);
    load_slow(d->load, LOAD_SLOW_IDS);
    if (!run_for(d, 500, "slow handlers start") || !ask_drain(d, name)) {
        return false;
    }
    for (int i = 0; i < KILLS_MAX && !d->killed_in_prepare; i++) {
        if (!kill_in_prepare(d)) {
            return false;
        }
    }
    load_slow(d->load, 0);
    if (!wait_settled(d, "n2", false, "n2 drains")) {
        return false;
    }
    say(d, "n2 is empty");
    load_phase(d->load, LOAD_AFTER);
    return true;
}

static bool count_moved(struct demo *d)
{
    d->joined = judge_activated(d->fleet.ledger, "n4");
    say(d, "n4 has taken over %" PRIu64 " ids", d->joined);
    return true;
}

static bool play(struct demo *d)
{
    const uint32_t calm_ms = d->seconds * 1000 / 100 * CALM_PERCENT;
    const uint32_t between_ms = d->seconds * 1000 / 100 * BETWEEN_PERCENT;

    return start_load(d) && run_for(d, calm_ms, "before") && join(d) &&
           run_for(d, between_ms, "between") && count_moved(d) && drain(d) &&
           run_for(d, calm_ms, "after");
}

/* ---- the result ---- */

static void print_latency(const char *name, const struct histogram *h)
{
    char p50[24];
    char p99[24];
    char max[24];

    (void)printf("latency %-22s p50 %-9s p99 %-9s max %-9s (%" PRIu64 " requests)\n",
                 name,
                 duration_text(histogram_at(h, 500), p50, sizeof p50),
                 duration_text(histogram_at(h, 990), p99, sizeof p99),
                 duration_text(h->max_us, max, sizeof max),
                 h->count);
}

static void print_latencies(const struct load_figures *figures)
{
    struct histogram during = figures->latency[LOAD_JOIN];

    histogram_merge(&during, &figures->latency[LOAD_DRAIN]);
    print_latency("before", &figures->latency[LOAD_BEFORE]);
    print_latency("during", &during);
    print_latency("  the join", &figures->latency[LOAD_JOIN]);
    print_latency("  drain and leader kill", &figures->latency[LOAD_DRAIN]);
    print_latency("after", &figures->latency[LOAD_AFTER]);
}

static int result(struct demo *d, bool played, uint64_t load_us)
{
    const bool answered = d->load != NULL && load_finish(d->load, ASK_MS);
    struct load_figures figures = {0};
    struct verdict v = {0};
    char longest[24];

    if (d->load == NULL || !answered) {
        (void)fprintf(stderr,
                      "ringhold demo: %s\n",
                      d->load == NULL ? "it did not start" : "requests are still unanswered");
        d->keep = d->keep || d->load != NULL;
        (void)printf("RESULT FAIL\n");
        return 1;
    }
    load_figures(d->load, &figures);
    Rh__AdminReply *reply = ask_status(d);
    if (reply != NULL) {
        note_holds(d, reply);
        admin_free(reply);
    }
    if (!judge(d->fleet.ledger, d->load, &v)) {
        return 1;
    }
    print_latencies(&figures);
    (void)printf("held %" PRIu64 " requests, the longest for %s; the join moved %" PRIu64
                 " of %" PRIu64 " ids, all changes %" PRIu64 "; %.0f requests/s\n",
                 d->held,
                 duration_text(d->hold_us_max, longest, sizeof longest),
                 d->joined,
                 v.ids,
                 v.moved,
                 (double)figures.answered * 1e6 / (double)(load_us + 1));
    const uint64_t lost = v.lost + figures.wrong;
    const bool pass = played && d->killed_in_prepare && figures.errors == 0 && lost == 0 &&
                      v.duplicated == 0 && v.out_of_order == 0 && v.live_twice == 0;
    if (figures.errors > 0 || figures.wrong > 0) {
        (void)printf("errors %" PRIu64 " wrong %" PRIu64 ", first: %s\n",
                     figures.errors,
                     figures.wrong,
                     figures.first_error);
    }
    if (v.first[0] != '\0') {
        (void)printf("violation: %s\n", v.first);
    }
    (void)printf("RESULT sent %" PRIu64 "  answered %" PRIu64 "  errors %" PRIu64 "  lost %" PRIu64
                 "  duplicated %" PRIu64 "  out-of-order %" PRIu64 "  live-twice %" PRIu64 "  %s\n",
                 figures.sent,
                 figures.answered,
                 figures.errors,
                 lost,
                 v.duplicated,
                 v.out_of_order,
                 v.live_twice,
                 pass ? "PASS" : "FAIL");
    d->keep = d->keep || !pass;
    return pass ? 0 : 1;
}

int cmd_demo(int argc, char **argv)
{
    struct demo d = {.seconds = 70, .ids = 6000, .rate = 25000, .seed = 0};
    const char *arguments[8];
    int count = 0;
    const struct option options[] = {
        option_number("seconds",
                      &d.seconds,
                      (struct option_range){10, 3600},
                      "how long the load runs, about (70)"),
        option_number("ids", &d.ids, (struct option_range){1, 1000000}, "distinct ids (6000)"),
        option_number(
            "rate", &d.rate, (struct option_range){1, 1000000}, "requests a second (25000)"),
        option_number(
            "seed", &d.seed, (struct option_range){0, UINT32_MAX}, "of the load; 0 = draw one"),
        option_text("history",
                    "FILE",
                    d.history_path,
                    sizeof d.history_path,
                    "write what happens down, for ringhold-history"),
        option_switch("keep", &d.keep, "keep the folder with logs, data and journals"),
        {0},
    };
    const struct command command = {
        .name = "demo",
        .summary =
            "A whole fleet on loopback under load: a node joins, one drains, the leader is killed.",
        .arguments = "",
        .details =
            "3 coordinators, 3 nodes, a gateway, all processes of their own. Clients number their\n"
            "requests per id; the actors keep journals; a judge compares both. Exit 1 on any\n"
            "violation.",
        .options = options,
    };
    const int code = options_parse(&command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    if (d.seed == 0) {
        d.seed = (uint32_t)random_u64();
    }
    log_set_level(LOG_ERROR); // links that break when a leader dies are no news here
    (void)signal(SIGINT, on_interrupt);
    (void)signal(SIGTERM, on_interrupt);
    if (!open_history(&d)) {
        return 1;
    }
    d.start_us = clock_boottime_us();
    say(&d,
        "ringhold demo --seconds %u --ids %u --rate %u --seed %u",
        d.seconds,
        d.ids,
        d.rate,
        d.seed);
    const bool started = start_fleet(&d);
    const uint64_t load_us = clock_boottime_us();
    const bool played = started && play(&d);
    const int exit_code = result(&d, played, clock_boottime_us() - load_us);
    admin_close(d.admin);
    fleet_stop(&d.fleet, d.keep);
    if (d.load != NULL && exit_code == 0) {
        load_free(d.load);
    }
    history_close(d.history);
    if (d.history != NULL) {
        (void)printf("history: ringhold-history %s\n", d.history_path);
    }
    return exit_code;
}
