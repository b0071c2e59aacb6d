/* SPDX-License-Identifier: Apache-2.0
 *
 * libraft under our raft_io in virtual time, over many seeds (sim/raft/world.h).
 *
 *     raft_sim --seeds 1000 --seconds 60       0 violations, or exit 1
 *     raft_sim --seed 17 --verbose             one seed again, with its trace
 *     raft_sim --change --seeds 1000           an operator changes the voters all the time
 *     raft_sim --guards                        each rule off must be caught
 *
 * A seed runs in a process of its own, so that a broken rule may also show as
 * a crash of libraft.
 */
#include "sim/raft/world.h"

#include "raft/guard.h"
#include "raft/io.h"
#include "raft/reconfiguration.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_FOUND = 1, EXIT_USAGE = 2, JOBS_MAX = 64, SCENARIO_SEEDS = 20 };

struct raft_totals {
    struct raft_world_result sum;
    uint64_t seeds;
    uint64_t bad_seeds;
    uint64_t crashed_seeds; /* of the process: libraft corrupted its memory */
    uint64_t first_bad;
    char why[160];
};

struct raft_campaign {
    struct raft_world_options options;
    uint64_t first_seed;
    uint64_t seeds;
    unsigned jobs;
    bool stop_at_first;
    bool isolate; /* a process for each seed, not for each job */
};

/* What a child writes to its parent, whole: below PIPE_BUF. */
struct report {
    uint64_t seeds;
    uint64_t bad_seeds;
    uint64_t first_bad;
    struct raft_world_result sum;
};

static void drop_line(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

static void add(struct raft_world_result *sum, const struct raft_world_result *one)
{
    sum->virtual_us += one->virtual_us;
    sum->events += one->events;
    sum->messages += one->messages;
    sum->elections += one->elections;
    sum->crashes += one->crashes;
    sum->power_losses += one->power_losses;
    sum->partitions += one->partitions;
    sum->installs += one->installs;
    sum->acked += one->acked;
    sum->reads += one->reads;
    sum->changes += one->changes;
    sum->grown += one->grown;
    sum->replaced += one->replaced;
    sum->refused += one->refused;
    if (sum->violations == 0 && one->violations > 0) {
        memcpy(sum->first_violation, one->first_violation, sizeof sum->first_violation);
    }
    sum->violations += one->violations;
    sum->trace ^= one->trace;
    for (unsigned i = 0; i < 4; i++) {
        sum->cuts[i] += one->cuts[i];
    }
}

struct raft_child {
    pid_t process;
    int in; /* its report comes here */
};

/* Run every `stride`th seed from `seed` on; in the child. */
static void run_seeds(const struct raft_campaign *c, uint64_t seed, uint64_t stride, int pipe_end)
{
    struct report report = {0};

    for (; seed < c->first_seed + c->seeds; seed += stride) {
        struct raft_world_options options = c->options;
        struct raft_world_result one;
        options.seed = seed;
        raft_world_run(&options, &one);
        report.seeds++;
        if (one.violations > 0 && report.bad_seeds++ == 0) {
            report.first_bad = seed;
        }
        add(&report.sum, &one);
        if (c->isolate || (c->stop_at_first && report.bad_seeds > 0)) {
            break;
        }
    }
    (void)fflush(stdout);
    if (write(pipe_end, &report, sizeof report) != (ssize_t)sizeof report) {
        _exit(EXIT_USAGE);
    }
}

static struct raft_child spawn(const struct raft_campaign *c, uint64_t seed, uint64_t stride)
{
    int ends[2];

    (void)fflush(stdout);
    if (pipe(ends) != 0) {
        perror("pipe");
        exit(EXIT_USAGE);
    }
    const pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        run_seeds(c, seed, stride, ends[1]);
        _exit(0);
    }
    (void)close(ends[1]);
    return (struct raft_child){.process = child, .in = ends[0]};
}

static void collect(struct raft_totals *t, struct raft_child child, uint64_t seed)
{
    struct report report;
    int status = 0;
    const ssize_t size = read(child.in, &report, sizeof report);

    (void)close(child.in);
    (void)waitpid(child.process, &status, 0);
    if (size != (ssize_t)sizeof report) {
        t->seeds++;
        t->crashed_seeds++;
        if (t->bad_seeds++ == 0) {
            t->first_bad = seed;
            (void)snprintf(t->why, sizeof t->why, "the process died: signal %d", WTERMSIG(status));
        }
        return;
    }
    if (report.bad_seeds > 0 && t->bad_seeds == 0) {
        t->first_bad = report.first_bad;
        memcpy(t->why, report.sum.first_violation, sizeof t->why);
    }
    t->seeds += report.seeds;
    t->bad_seeds += report.bad_seeds;
    add(&t->sum, &report.sum);
}

/* A share of the seeds for each job. */
static void run_shared(const struct raft_campaign *c, struct raft_totals *t)
{
    struct raft_child child[JOBS_MAX];

    for (unsigned j = 0; j < c->jobs; j++) {
        child[j] = spawn(c, c->first_seed + j, c->jobs);
    }
    for (unsigned j = 0; j < c->jobs; j++) {
        collect(t, child[j], c->first_seed + j);
    }
}

/* One seed a process, until one is bad. */
static void run_isolated(const struct raft_campaign *c, struct raft_totals *t)
{
    for (uint64_t i = 0; i < c->seeds; i += c->jobs) {
        struct raft_child child[JOBS_MAX];
        for (unsigned j = 0; j < c->jobs; j++) {
            child[j] = spawn(c, c->first_seed + i + j, 1);
        }
        for (unsigned j = 0; j < c->jobs; j++) {
            collect(t, child[j], c->first_seed + i + j);
        }
        if (c->stop_at_first && t->bad_seeds > 0) {
            return;
        }
    }
}

static double seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_totals(const struct raft_totals *t, double took)
{
    const struct raft_world_result *s = &t->sum;
    const double hours = (double)s->virtual_us / 3.6e9;

    printf("seeds %" PRIu64 "  simulated %.1f h  elections %" PRIu64 "  crashes %" PRIu64
           "  power losses %" PRIu64 "  partitions %" PRIu64 "  snapshots installed %" PRIu64
           "  acked %" PRIu64 "  read %" PRIu64 "\n",
           t->seeds,
           hours,
           s->elections,
           s->crashes,
           s->power_losses,
           s->partitions,
           s->installs,
           s->acked,
           s->reads);
    printf("guards acted: G1 %" PRIu64 "  G2 %" PRIu64 "  G3 %" PRIu64 "  G6/G7 %" PRIu64
           "   events %.1f M  messages %.1f M  trace %016" PRIx64 "\n",
           s->cuts[0],
           s->cuts[1],
           s->cuts[2],
           s->cuts[3],
           (double)s->events / 1e6,
           (double)s->messages / 1e6,
           s->trace);
    if (s->changes > 0) {
        printf("changes of voters %" PRIu64 ": %" PRIu64 " grew, %" PRIu64 " replaced one; %" PRIu64
               " refused at once\n",
               s->changes,
               s->grown,
               s->replaced,
               s->refused);
    }
    printf("violations %" PRIu64 " in %" PRIu64 " seeds  (%.1f s, %.0f simulated s per s)\n",
           s->violations + t->crashed_seeds,
           t->bad_seeds,
           took,
           hours * 3600 / took);
    if (t->bad_seeds > 0) {
        printf("first: seed %" PRIu64 ": %s\n", t->first_bad, t->why);
    }
}

static int run_campaign(const struct raft_campaign *c)
{
    struct raft_totals totals = {0};
    const double start = seconds_now();

    printf("raft_sim: seeds %" PRIu64 "..%" PRIu64 ", %" PRIu64 " s each, %u voters, disks "
           "%u-%u ms, loss %u ppm, rules off %u\n",
           c->first_seed,
           c->first_seed + c->seeds - 1,
           c->options.seconds,
           c->options.voters,
           c->options.disk_min_ms,
           c->options.disk_max_ms,
           c->options.loss_ppm,
           c->options.rules_off);
    run_shared(c, &totals);
    print_totals(&totals, seconds_now() - start);
    return totals.bad_seeds > 0 ? EXIT_FOUND : EXIT_SUCCESS;
}

/* One row of the table: what must be caught, or must not be there. */
static bool run_guard_row(const struct raft_campaign *all, const char *name, unsigned rules_off,
                          enum raft_scenario scenario)
{
    struct raft_campaign c = *all;
    struct raft_totals totals = {0};
    const double start = seconds_now();

    c.options.rules_off = rules_off;
    c.options.scenario = scenario;
    c.isolate = rules_off != 0;
    c.stop_at_first = rules_off != 0;
    c.seeds = scenario == RANDOM_FAULTS ? c.seeds : SCENARIO_SEEDS;
    if (c.isolate) {
        run_isolated(&c, &totals);
    } else {
        run_shared(&c, &totals);
    }
    const bool bad = totals.bad_seeds > 0;
    const bool wanted = rules_off != 0;
    printf("%-26s %6" PRIu64 " seeds %7.1f s  %-12s %s%s\n",
           name,
           totals.seeds,
           seconds_now() - start,
           bad ? "violated" : "clean",
           bad == wanted ? "as it must be" : "WRONG",
           bad ? "" : " (0 violations)");
    if (bad) {
        printf("    seed %" PRIu64 ": %s\n", totals.first_bad, totals.why);
    } else if (scenario == RANDOM_FAULTS) {
        print_totals(&totals, seconds_now() - start);
    }
    (void)fflush(stdout);
    return bad == wanted;
}

static int run_guards(const struct raft_campaign *c)
{
    bool good = true;

    good = run_guard_row(c, "all rules", 0, RANDOM_FAULTS) && good;
    good = run_guard_row(c, "all rules, figure 8", 0, FIGURE_8) && good;
    good = run_guard_row(c, "all rules, foreign tail", 0, FOREIGN_TAIL) && good;
    good = run_guard_row(c, "all rules, whole log", 0, WHOLE_LOG) && good;
    good = run_guard_row(c, "all rules, old answers", 0, OLD_ANSWERS) && good;
    good = run_guard_row(c, "without G1, figure 8", GUARD_G1, FIGURE_8) && good;
    good = run_guard_row(c, "without G2, foreign tail", GUARD_G2, FOREIGN_TAIL) && good;
    good = run_guard_row(c, "without G2", GUARD_G2, RANDOM_FAULTS) && good;
    good = run_guard_row(c, "without G3, whole log", GUARD_G3, WHOLE_LOG) && good;
    good = run_guard_row(c, "any answer, old answers", REPLICA_IO_ROUNDS, OLD_ANSWERS) && good;
    struct raft_campaign changes = *c;
    changes.options.change = true;
    good = run_guard_row(&changes, "all rules, other voters", 0, RANDOM_FAULTS) && good;
    good =
        run_guard_row(&changes, "on after the SEAL", RECONFIGURATION_STOPS, RANDOM_FAULTS) && good;
    good =
        run_guard_row(&changes, "begun before written", RECONFIGURATION_DURABLE, RANDOM_FAULTS) &&
        good;
    good =
        run_guard_row(&changes, "terms begin anew", RECONFIGURATION_TERMS, RANDOM_FAULTS) && good;
    printf("%s\n", good ? "RESULT PASS" : "RESULT FAIL");
    return good ? EXIT_SUCCESS : EXIT_FOUND;
}

static int usage(const char *bad)
{
    (void)fprintf(
        stderr,
        "raft_sim: %s\n"
        "usage: raft_sim [--seeds N] [--seed K] [--seconds S] [--voters 3|5] [--disk-min-ms N]\n"
        "                [--disk-max-ms N] [--loss-ppm N] [--no-g1] [--no-g2] [--no-g3]\n"
        "                [--no-rounds] [--change] [--no-seal] [--no-found] [--no-terms]\n"
        "                [--figure8] [--foreign-tail] [--whole-log] [--old-answers]\n"
        "                [--guards] [--jobs N] [--verbose]\n",
        bad);
    return EXIT_USAGE;
}

static bool parse_number(const char *text, uint64_t most, uint64_t *out)
{
    char *end = NULL;

    if (text == NULL || *text < '0' || *text > '9') {
        return false;
    }
    *out = strtoull(text, &end, 10);
    return *end == '\0' && *out <= most;
}

/* Flags that stand alone. False: none of them. */
static bool parse_flag(const char *name, struct raft_campaign *c, bool *guards)
{
    if (strcmp(name, "--no-g1") == 0) {
        c->options.rules_off |= GUARD_G1;
    } else if (strcmp(name, "--no-g2") == 0) {
        c->options.rules_off |= GUARD_G2;
    } else if (strcmp(name, "--no-g3") == 0) {
        c->options.rules_off |= GUARD_G3;
    } else if (strcmp(name, "--no-rounds") == 0) {
        c->options.rules_off |= REPLICA_IO_ROUNDS;
    } else if (strcmp(name, "--figure8") == 0) {
        c->options.scenario = FIGURE_8;
    } else if (strcmp(name, "--foreign-tail") == 0) {
        c->options.scenario = FOREIGN_TAIL;
    } else if (strcmp(name, "--whole-log") == 0) {
        c->options.scenario = WHOLE_LOG;
    } else if (strcmp(name, "--old-answers") == 0) {
        c->options.scenario = OLD_ANSWERS;
    } else if (strcmp(name, "--change") == 0) {
        c->options.change = true;
    } else if (strcmp(name, "--no-seal") == 0) {
        c->options.rules_off |= RECONFIGURATION_STOPS;
    } else if (strcmp(name, "--no-found") == 0) {
        c->options.rules_off |= RECONFIGURATION_DURABLE;
    } else if (strcmp(name, "--no-terms") == 0) {
        c->options.rules_off |= RECONFIGURATION_TERMS;
    } else if (strcmp(name, "--verbose") == 0) {
        c->options.verbose = true;
    } else if (strcmp(name, "--guards") == 0) {
        *guards = true;
    } else {
        return false;
    }
    return true;
}

/* Flags with a number. False: unknown, or the number is bad. */
static bool parse_option(const char *name, const char *value, struct raft_campaign *c)
{
    uint64_t n = 0;

    if (!parse_number(value, 1000000000, &n)) {
        return false;
    }
    if (strcmp(name, "--seeds") == 0) {
        c->seeds = n;
    } else if (strcmp(name, "--seed") == 0) {
        c->first_seed = n;
        c->seeds = 1;
        c->jobs = 1;
    } else if (strcmp(name, "--seconds") == 0) {
        c->options.seconds = n;
    } else if (strcmp(name, "--voters") == 0) {
        c->options.voters = (unsigned)n;
        return n == 1 || n == 3 || n == 5;
    } else if (strcmp(name, "--disk-min-ms") == 0) {
        c->options.disk_min_ms = (unsigned)n;
    } else if (strcmp(name, "--disk-max-ms") == 0) {
        c->options.disk_max_ms = (unsigned)n;
    } else if (strcmp(name, "--loss-ppm") == 0) {
        c->options.loss_ppm = (unsigned)n;
    } else if (strcmp(name, "--jobs") == 0) {
        c->jobs = (unsigned)n;
        return n >= 1 && n <= JOBS_MAX;
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    bool guards = false;
    struct raft_campaign c = {
        .options =
            {.seconds = 60, .voters = 3, .disk_min_ms = 8, .disk_max_ms = 28, .loss_ppm = 5000},
        .first_seed = 1,
        .seeds = 200,
        .jobs = 2,
    };

    for (int i = 1; i < argc; i++) {
        if (parse_flag(argv[i], &c, &guards)) {
            continue;
        }
        if (!parse_option(argv[i], i + 1 < argc ? argv[i + 1] : NULL, &c)) {
            return usage(argv[i]);
        }
        i++;
    }
    if (c.options.disk_min_ms > c.options.disk_max_ms || c.options.seconds < 5) {
        return usage("disk-min-ms is over disk-max-ms, or seconds below 5");
    }
    if (!c.options.verbose) {
        log_set_sink(drop_line, NULL);
    }
    return guards ? run_guards(&c) : run_campaign(&c);
}
