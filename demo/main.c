/* SPDX-License-Identifier: Apache-2.0
 *
 * ringhold-demo, `ringhold demo`: the story that it plays.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "daemon/options.h"
#include "daemon/program.h"
#include "demo/demo.h"
#include "demo/judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    CALM_PERCENT = 35,    /* of --seconds: before the changes, and after them */
    BETWEEN_PERCENT = 15, /* between the join and the drain */
    KILLS_MAX = 8,
    SLOW_MS = 250,
};

/* ---- the story ---- */

/* A new file: another run's clients number their requests from 1 as well. */
static bool open_history(struct demo *d)
{
    if (d->history_path[0] == '\0') {
        return true;
    }
    if (access(d->history_path, F_OK) == 0) {
        (void)fprintf(
            stderr, "ringhold demo: %s exists already: choose another folder\n", d->history_path);
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
    demo_say(d, "folder %s", d->fleet.folder);
    for (unsigned id = 1; id <= FLEET_COORDINATORS; id++) {
        if (!fleet_start_coordinator(&d->fleet, id)) {
            return false;
        }
    }
    demo_say(d, "3 coordinators at %s", d->fleet.coordinators);
    d->admin = admin_open(
        &(struct admin_where){.cluster = "ringhold", .coordinators = d->fleet.coordinators});
    if (d->admin == NULL || !fleet_start_node(&d->fleet, "n1") ||
        !fleet_start_node(&d->fleet, "n2") || !fleet_start_node(&d->fleet, "n3")) {
        return false;
    }
    if (!demo_wait_settled(d, "n3", true, "first shares") ||
        !fleet_start_gateway(&d->fleet, "g1")) {
        return false;
    }
    demo_say(d, "3 nodes share the ring; gateway at %s (try redis-cli)", d->fleet.gateway);
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
    demo_say(d, "load: %u requests/s over %u ids from %d clients", d->rate, d->ids, LOAD_CLIENTS);
    return true;
}

static bool join(struct demo *d)
{
    demo_say(d, "node n4 joins");
    load_phase(d->load, LOAD_JOIN);
    if (!fleet_start_node(&d->fleet, "n4") || !demo_wait_settled(d, "n4", true, "n4 joins")) {
        return false;
    }
    demo_say(d, "n4 has its share of the ring");
    load_phase(d->load, LOAD_BETWEEN);
    return true;
}

static bool ask_drain(struct demo *d, char *name)
{
    Rh__AdminDrain what = RH__ADMIN_DRAIN__INIT;

    what.name = name;
    Rh__AdminReply *reply = admin_ask(d->admin, &what.base, DEMO_ASK_MS);
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
    Rh__AdminReply *reply = demo_ask_txns(d, 16);
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
    const uint64_t end_us = clock_boottime_us() + (uint64_t)DEMO_SETTLE_MS * 1000;
    uint32_t leader = 0;
    bool pending = false;
    char name[32];

    while (clock_boottime_us() < end_us && demo_healthy(d)) {
        const uint64_t txn =
            prepared_txn(d, &leader, &pending, d->killed_what, sizeof d->killed_what);

        if (txn == 0 || leader == 0) {
            continue;
        }
        (void)snprintf(name, sizeof name, "c%u", leader);
        fleet_kill(&d->fleet, fleet_child(&d->fleet, name));
        demo_say(d,
                 "kill -9 of leader %s while transaction %" PRIu64 " was prepared (%s)",
                 name,
                 txn,
                 d->killed_what);
        const uint64_t killed_us = clock_boottime_us();
        Rh__AdminReply *reply = demo_ask_txn(d, txn);
        const char *state = reply == NULL || reply->n_txns == 0 ? "unknown" : reply->txns[0]->state;
        demo_say(d,
                 "a new leader answers after %.1f s: transaction %" PRIu64 " is %s%s%s",
                 (double)(clock_boottime_us() - killed_us) / 1e6,
                 txn,
                 state,
                 reply == NULL || reply->n_txns == 0 || reply->txns[0]->outcome_why[0] == '\0'
                     ? ""
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

    demo_say(d, "node n2 drains");
    load_phase(d->load, LOAD_DRAIN);
    load_slow(d->load, LOAD_SLOW_IDS);
    if (!demo_run_for(d, 500, "slow handlers start") || !ask_drain(d, name)) {
        return false;
    }
    for (int i = 0; i < KILLS_MAX && !d->killed_in_prepare; i++) {
        if (!kill_in_prepare(d)) {
            return false;
        }
    }
    load_slow(d->load, 0);
    if (!demo_wait_settled(d, "n2", false, "n2 drains")) {
        return false;
    }
    demo_say(d, "n2 is empty");
    load_phase(d->load, LOAD_AFTER);
    return true;
}

static bool count_moved(struct demo *d)
{
    d->joined = judge_activated(d->fleet.ledger, "n4");
    demo_say(d, "n4 has taken over %" PRIu64 " ids", d->joined);
    return true;
}

static bool play(struct demo *d)
{
    const uint32_t calm_ms = d->seconds * 1000 / 100 * CALM_PERCENT;
    const uint32_t between_ms = d->seconds * 1000 / 100 * BETWEEN_PERCENT;

    return start_load(d) && demo_run_for(d, calm_ms, "before") && join(d) &&
           demo_run_for(d, between_ms, "between") && count_moved(d) && drain(d) &&
           demo_run_for(d, calm_ms, "after");
}

static int cmd_demo(int argc, char **argv)
{
    struct demo d = {.seconds = 70, .ids = 6000, .rate = 25000, .seed = 0};
    const char *arguments[8];
    int count = 0;
    const struct option options[] = {
        option_number("seconds",
                      &d.seconds,
                      (struct option_range){10, 3600},
                      "how long the load runs, approximately (%)"),
        option_number("ids", &d.ids, (struct option_range){1, 1000000}, "distinct ids (%)"),
        option_number("rate", &d.rate, (struct option_range){1, 1000000}, "requests a second (%)"),
        option_number("seed",
                      &d.seed,
                      (struct option_range){0, UINT32_MAX},
                      "seed of the load; 0 = choose one"),
        option_text("history",
                    "FILE",
                    d.history_path,
                    sizeof d.history_path,
                    "write the history of all requests to this file, for ringhold-history"),
        option_switch("keep", &d.keep, "keep the folder with logs, data and journals"),
        {0},
    };
    const struct command command = {
        .name = "demo",
        .summary = "Run a whole fleet on loopback under load: a node joins, one drains, the leader "
                   "is killed.",
        .arguments = "",
        .details = "3 coordinators, 3 nodes and a gateway run as separate processes. Clients "
                   "number their\n"
                   "requests per id; the actors keep journals; a judge compares both. Exit code 1: "
                   "a request\n"
                   "was lost, doubled or reordered, or an id lived twice.",
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
    demo_catch_interrupts();
    if (!open_history(&d)) {
        return 1;
    }
    d.start_us = clock_boottime_us();
    demo_say(&d,
             "ringhold demo --seconds %u --ids %u --rate %u --seed %u",
             d.seconds,
             d.ids,
             d.rate,
             d.seed);
    const bool started = start_fleet(&d);
    const uint64_t load_us = clock_boottime_us();
    const bool played = started && play(&d);
    const int exit_code = demo_result(&d, played, clock_boottime_us() - load_us);
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

int main(int argc, char **argv)
{
    static const struct verb verb = {"demo", cmd_demo, NULL, ""};

    return program_main(&verb, 1, argc, argv);
}
