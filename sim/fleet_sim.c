/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs whole fleets in virtual time, one history a seed, and judges them.
 *
 *     fleet_sim --seeds 200 [--from 1]      many seeds; stops at the first violation
 *     fleet_sim --seed 42 [--trace]         one seed; --trace prints every event
 *     fleet_sim --mutants                   each planted bug must be caught (MUTANTS=1 builds)
 *     fleet_sim --mutant M_NODRAIN          one of them
 *     also: --seconds S of faults, --nodes N at most, --calm no faults, --quiet
 *
 * Exit: 0 no violation, 1 violation or a mutant survived, 2 wrong usage.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "sim/fleet.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct options {
    struct fleet_options fleet;
    uint64_t seeds;
    uint64_t from;
    bool one; /* --seed */
    bool trace;
    bool quiet;
    bool mutants;
    const char *mutant;
};

struct totals {
    uint64_t seeds;
    uint64_t virtual_us;
    uint64_t events;
    uint64_t moves;
    uint64_t commits;
    uint64_t aborts;
    uint64_t crashes;
    uint64_t leader_changes;
    uint64_t resets;
    uint64_t requests;
    uint64_t answers[REPLY_NO_KIND + 1];
};

static char abort_line[128]; /* printed when an ASSERT of a core fails */

static void on_abort(int signal_number)
{
    (void)signal_number;
    (void)!write(STDERR_FILENO, abort_line, strlen(abort_line));
    _exit(1);
}

static void no_log(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

static void count(struct totals *t, const struct fleet *f)
{
    t->seeds++;
    t->virtual_us += f->world.now_us;
    t->events += f->world.events;
    t->moves += f->ledger.moves;
    t->commits += f->ledger.commits;
    t->aborts += f->ledger.aborts;
    t->crashes += f->crashes;
    t->leader_changes += f->raft.changes;
    t->resets += f->network.resets;
    t->requests += f->ledger.ask_count;
    for (size_t i = 0; i <= REPLY_NO_KIND; i++) {
        t->answers[i] += f->ledger.answers[i];
    }
}

/* What the run shows: nothing; all of it; the last lines when it failed. */
enum show { SHOW_NOTHING, SHOW_ALL, SHOW_END };

static const char *run_seed(const struct options *o, uint64_t seed, enum show show,
                            struct totals *t)
{
    struct fleet *f = mem_new(1, sizeof *f);
    const char *checker;

    (void)snprintf(abort_line,
                   sizeof abort_line,
                   "seed %" PRIu64 ": an ASSERT failed; replay: fleet_sim --seed %" PRIu64
                   " --trace\n",
                   seed,
                   seed);
    sim_fleet_init(f, seed, &o->fleet);
    f->world.print = show == SHOW_ALL;
    f->world.keep = show == SHOW_END;
    sim_fleet_run(f);
    checker = f->world.checker;
    count(t, f);
    if (checker != NULL && show != SHOW_NOTHING) {
        const uint64_t kept =
            f->world.line_count < WORLD_LINES_KEPT ? f->world.line_count : WORLD_LINES_KEPT;

        for (uint64_t i = f->world.line_count - kept; show == SHOW_END && i < f->world.line_count;
             i++) {
            (void)puts(f->world.line[i % WORLD_LINES_KEPT]);
        }
        (void)printf("seed %" PRIu64 ": VIOLATION %s at %" PRIu64 ".%06" PRIu64 " s: %s\n",
                     seed,
                     checker,
                     f->world.violation_us / 1000000,
                     f->world.violation_us % 1000000,
                     f->world.violation);
        (void)printf("replay: fleet_sim --seed %" PRIu64 " --trace\n", seed);
    }
    sim_fleet_fini(f);
    mem_free(f);
    return checker;
}

static double seconds_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void print_totals(const struct totals *t, double seconds)
{
    const double hours = (double)t->virtual_us / 3.6e9;
    const uint64_t all = t->requests == 0 ? 1 : t->requests;

    (void)printf("simulated %.2f h in %.1f s (%.1f h a minute), %" PRIu64 " events\n",
                 hours,
                 seconds,
                 hours / (seconds / 60),
                 t->events);
    (void)printf("moves %" PRIu64 ", commits %" PRIu64 ", aborts %" PRIu64 ", node crashes %" PRIu64
                 ", leader changes %" PRIu64 ", link resets %" PRIu64 "\n",
                 t->moves,
                 t->commits,
                 t->aborts,
                 t->crashes,
                 t->leader_changes,
                 t->resets);
    (void)printf("requests %" PRIu64 ": OK %" PRIu64 ", UNKNOWN %" PRIu64
                 " (%.3f %%), TIMEOUT %" PRIu64 ", REJECTED %" PRIu64 "\n",
                 t->requests,
                 t->answers[REPLY_OK] + t->answers[REPLY_APP_ERROR],
                 t->answers[REPLY_UNKNOWN],
                 100.0 * (double)t->answers[REPLY_UNKNOWN] / (double)all,
                 t->answers[REPLY_TIMEOUT],
                 t->answers[REPLY_REJECTED]);
}

static int run_many(const struct options *o)
{
    struct totals t = {0};
    const double start = seconds_now();

    for (uint64_t seed = o->from; seed < o->from + o->seeds; seed++) {
        if (run_seed(o, seed, o->trace ? SHOW_ALL : SHOW_NOTHING, &t) != NULL) {
            struct totals again = {0};

            if (!o->trace) {
                (void)run_seed(o, seed, SHOW_END, &again);
            }
            return 1;
        }
    }
    if (!o->quiet) {
        print_totals(&t, seconds_now() - start);
    }
    (void)printf("ok - %" PRIu64 " seed%s, 0 violations\n", o->seeds, o->seeds == 1 ? "" : "s");
    return 0;
}

/* ---- mutants ---- */

#ifdef RINGHOLD_MUTANTS

/* In a child: until a checker speaks, or an ASSERT ends it. Writes "SEED CHECKER" to `fd`. */
static void hunt(const struct options *o, int fd)
{
    struct totals t = {0};

    (void)signal(SIGABRT, SIG_DFL);
    (void)freopen("/dev/null", "w", stderr);
    for (uint64_t seed = o->from; seed < o->from + o->seeds; seed++) {
        const char *checker;

        (void)dprintf(fd, "%" PRIu64 " assert\n", seed);
        checker = run_seed(o, seed, SHOW_NOTHING, &t);
        if (checker != NULL) {
            (void)dprintf(fd, "%" PRIu64 " %s\n", seed, checker);
            _exit(1);
        }
    }
    _exit(0);
}

static bool run_mutant(const struct options *o, enum mutant m)
{
    char line[64];
    uint64_t seed = 0;
    char checker[32] = "";
    int fd[2];
    int status = 0;
    pid_t child;
    FILE *in;

    mutant_planted = m;
    (void)fflush(stdout);
    if (pipe(fd) != 0) {
        return false;
    }
    child = fork();
    if (child == 0) {
        (void)close(fd[0]);
        hunt(o, fd[1]);
    }
    (void)close(fd[1]);
    in = fdopen(fd[0], "r");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        (void)sscanf(line, "%" SCNu64 " %31s", &seed, checker); // the last one stays
    }
    (void)waitpid(child, &status, 0);
    if (in != NULL) {
        (void)fclose(in);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        (void)printf("not ok - %-14s SURVIVED %" PRIu64 " seeds: %s\n",
                     mutant_name(m),
                     o->seeds,
                     mutant_text(m));
        return false;
    }
    (void)printf("ok - %-14s caught in %3" PRIu64 " seeds by %-10s %s\n",
                 mutant_name(m),
                 seed - o->from + 1,
                 checker,
                 mutant_text(m));
    return true;
}

static int run_mutants(const struct options *o)
{
    static const enum mutant all[] = {
#define X(name, text) name,
        MUTANT_LIST(X)
#undef X
    };
    enum mutant one = M_NONE;
    bool caught = true;

    if (o->mutant != NULL && !mutant_named(o->mutant, &one)) {
        (void)fprintf(stderr, "fleet_sim: no mutant is named %s\n", o->mutant);
        return 2;
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i] != M_NONE && (o->mutant == NULL || all[i] == one)) {
            caught = run_mutant(o, all[i]) && caught;
        }
    }
    return caught ? 0 : 1;
}

#else

static int run_mutants(const struct options *o)
{
    (void)o;
    (void)fprintf(stderr, "fleet_sim: no bugs are planted in this build: make MUTANTS=1\n");
    return 2;
}

#endif

/* ---- command line ---- */

static bool number(const char *text, uint64_t *value)
{
    char *end = NULL;

    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return false;
    }
    *value = strtoull(text, &end, 10);
    return *end == '\0';
}

static bool parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        uint64_t n = 0;

        if (strcmp(a, "--trace") == 0) {
            o->trace = true;
        } else if (strcmp(a, "--quiet") == 0) {
            o->quiet = true;
        } else if (strcmp(a, "--calm") == 0) {
            o->fleet.calm = true;
        } else if (strcmp(a, "--mutants") == 0) {
            o->mutants = true;
        } else if (strcmp(a, "--mutant") == 0 && value != NULL) {
            o->mutants = true;
            o->mutant = argv[++i];
        } else if (number(value, &n)) {
            i++;
            if (strcmp(a, "--seeds") == 0) {
                o->seeds = n;
            } else if (strcmp(a, "--from") == 0) {
                o->from = n;
            } else if (strcmp(a, "--seed") == 0) {
                o->from = n;
                o->one = true;
            } else if (strcmp(a, "--seconds") == 0 && n >= 1 && n <= 3600) {
                o->fleet.seconds = n;
            } else if (strcmp(a, "--nodes") == 0 && n >= 1 && n <= FLEET_NODES_MAX) {
                o->fleet.nodes = (unsigned)n;
            } else {
                return false;
            }
        } else {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options o = {.fleet = {.seconds = 20}, .seeds = 200, .from = 1};

    if (!parse(argc, argv, &o)) {
        (void)fprintf(
            stderr,
            "usage: fleet_sim [--seeds N] [--from K] [--seed K] [--trace] [--seconds S]\n"
            "                 [--nodes N] [--calm] [--quiet] [--mutant NAME | --mutants]\n");
        return 2;
    }
    o.seeds = o.one ? 1 : o.seeds;
    log_set_sink(no_log, NULL);
    (void)signal(SIGABRT, on_abort);
    return o.mutants ? run_mutants(&o) : run_many(&o);
}
