/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs many seeds on all cores and reports the first that breaks a rule.
 */
#include "sim/campaign.h"

#include "base/mem.h"
#include "sim/campaign_inside.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_NS = 50000000, LOOKS_PER_LINE = 10, FAILED_MAX = 64 };

/* What one worker tells the parent, in memory that both see. */
struct campaign_worker {
    uint64_t seed; /* at work on */
    struct totals totals;
};

struct board {
    uint64_t next; /* of the list, to take */
    bool stop;
    struct campaign_worker worker[CAMPAIGN_JOBS_MAX];
};

/* Seeds that broke a rule. One, or all where the run goes on. */
struct violations {
    uint64_t seed[FAILED_MAX + CAMPAIGN_JOBS_MAX]; // those that are at work fail after the last
    size_t count;
};

static char abort_line[160]; /* printed when an ASSERT of a core fails */

static void on_abort(int signal_number)
{
    (void)signal_number;
    (void)!write(STDERR_FILENO, abort_line, strlen(abort_line));
    _exit(1);
}

static const char *replay(const struct campaign *c)
{
    static const char *const streams[] = {"", " --streams never", " --streams always"};
    static char text[96];

    (void)snprintf(text,
                   sizeof text,
                   "fleet_sim%s%s%s%s%s",
                   streams[c->fleet.streams],
                   c->fleet.maintained ? " --maintenance" : "",
                   c->fleet.serves ? " --serve" : "",
                   c->fleet.profile == PROFILE_DRAWN ? "" : " --profile ",
                   c->fleet.profile == PROFILE_DRAWN ? "" : profile_name(c->fleet.profile));
    return text;
}

static void print_end(const struct campaign *c, const struct world *w, bool lines)
{
    const uint64_t kept = w->line_count < WORLD_LINES_KEPT ? w->line_count : WORLD_LINES_KEPT;

    for (uint64_t i = w->line_count - kept; lines && i < w->line_count; i++) {
        (void)puts(w->line[i % WORLD_LINES_KEPT]);
    }
    (void)printf("seed %" PRIu64 ": VIOLATION %s at %" PRIu64 ".%06" PRIu64 " s: %s\n",
                 w->seed,
                 w->checker,
                 w->violation_us / 1000000,
                 w->violation_us % 1000000,
                 w->violation);
    (void)printf("replay: %s --seed %" PRIu64 " --trace\n", replay(c), w->seed);
}

/* The history of this seed alone, from its beginning. */
static void open_history(const struct campaign *c, struct fleet *f)
{
    if (c->history == NULL) {
        return;
    }
    (void)!truncate(c->history, 0); // of an earlier run, if any
    if (history_open(&f->history, c->history) != ERR_OK) {
        (void)fprintf(stderr, "fleet_sim: can't write %s\n", c->history);
        exit(2);
    }
}

/* Each profile has its share of a run of seeds that draw theirs. */
static bool has_shares(const struct campaign *c)
{
    return c->fleet.profile == PROFILE_DRAWN && c->seeds > 1;
}

/* Three have a profile that no seed draws: some of the mixed ones are run as that. */
static enum profile runs_as(const struct campaign *c, uint64_t seed)
{
    const bool mixed = has_shares(c) && profile_of_seed(seed) == PROFILE_MIXED;

    return mixed && seed % 3 == 0   ? PROFILE_SESSIONS
           : mixed && seed % 6 == 1 ? PROFILE_OPERATOR
           : mixed && seed % 6 == 4 ? PROFILE_DURABLE
                                    : c->fleet.profile;
}

const char *campaign_seed(const struct campaign *campaign, uint64_t seed, enum show show,
                          struct totals *t)
{
    struct campaign own = *campaign;
    const struct campaign *c = &own;
    struct fleet *f = mem_new(1, sizeof *f);
    const char *checker;

    own.fleet.profile = runs_as(campaign, seed);

    (void)snprintf(abort_line,
                   sizeof abort_line,
                   "seed %" PRIu64 ": an ASSERT failed; replay: %s --seed %" PRIu64 " --trace\n",
                   seed,
                   replay(c),
                   seed);
    sim_fleet_init(f, seed, &c->fleet);
    open_history(c, f);
    f->world.print = show == SHOW_ALL;
    f->world.keep = show == SHOW_END;
    sim_fleet_run(f);
    checker = f->world.checker;
    totals_count(t, f);
    if (checker != NULL && show != SHOW_NOTHING) {
        print_end(c, &f->world, show == SHOW_END);
    }
    history_close(f->history);
    f->history = NULL;
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

void *campaign_shared(size_t size)
{
    // Shared pages of /dev/zero are POSIX; MAP_ANONYMOUS is not.
    const int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    (void)close(fd);
    return p == MAP_FAILED ? NULL : p;
}

/* ---- which seeds ---- */

/* From `from` on, without those that would be more than their profile's share. A seed means the
 * same in each run. Owned by the caller. */
static uint64_t *list_seeds(const struct campaign *c)
{
    uint64_t *list = mem_new(c->seeds, sizeof *list);
    uint64_t room[PROFILES] = {[PROFILE_MIXED] = c->seeds};
    uint64_t seed = c->from;

    for (size_t i = 0; i < PROFILES; i++) {
        const uint64_t share = c->seeds * profile_share((enum profile)i) / 1000;

        room[i] += share;
        room[PROFILE_MIXED] -= share;
    }
    for (uint64_t i = 0; i < c->seeds; seed++) {
        const enum profile other = has_shares(c) ? runs_as(c, seed) : PROFILE_DRAWN;
        uint64_t *left = &room[other == PROFILE_DRAWN ? profile_of_seed(seed) : other];

        if (*left > 0 || !has_shares(c)) {
            *left -= has_shares(c);
            list[i++] = seed;
        }
    }
    return list;
}

/* ---- workers ---- */

static void work(const struct campaign *c, const uint64_t *list, struct board *b,
                 struct campaign_worker *w)
{
    while (!__atomic_load_n(&b->stop, __ATOMIC_RELAXED)) {
        const uint64_t at = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);

        if (at >= c->seeds) {
            break;
        }
        const uint64_t seed = list[at];

        __atomic_store_n(&w->seed, seed, __ATOMIC_RELAXED);
        if (campaign_seed(c, seed, c->trace ? SHOW_ALL : SHOW_NOTHING, &w->totals) != NULL) {
            _exit(1);
        }
    }
    _exit(0);
}

static void progress(const struct campaign *c, const struct board *b, double start)
{
    const uint64_t next = __atomic_load_n(&b->next, __ATOMIC_RELAXED);
    const uint64_t done = next < c->seeds ? next : c->seeds;
    const double gone = seconds_now() - start;

    (void)fprintf(stderr,
                  "\r%" PRIu64 " of %" PRIu64 " seeds, %.0f s left   ",
                  done,
                  c->seeds,
                  done == 0 ? 0.0 : gone / (double)done * (double)(c->seeds - done));
}

static pid_t start_worker(const struct campaign *c, const uint64_t *list, struct board *b,
                          struct campaign_worker *w)
{
    const pid_t pid = fork();

    if (pid == 0) {
        work(c, list, b, w);
    }
    return pid;
}

/* The worker ended with its seed, by a violation or an ASSERT. The others end after theirs, but
 * where the run goes on: another worker takes over then. Returns whether that is so. */
static bool on_failure(const struct campaign *c, struct board *b, uint64_t seed,
                       struct violations *out)
{
    out->seed[out->count++] = seed;
    if (c->keep_going && out->count < FAILED_MAX) {
        return true;
    }
    __atomic_store_n(&b->stop, true, __ATOMIC_RELAXED);
    return false;
}

static void await_workers(const struct campaign *c, const uint64_t *list, struct board *b,
                          pid_t *pid, unsigned jobs, struct violations *out)
{
    const double start = seconds_now();
    const bool shows = isatty(STDERR_FILENO) && !c->quiet && !c->trace;
    const struct timespec look = {.tv_nsec = LOOK_NS};
    unsigned left = jobs;
    bool gone[CAMPAIGN_JOBS_MAX] = {false};

    for (unsigned looks = 0; left > 0; looks++) {
        for (unsigned i = 0; i < jobs; i++) {
            int status = 0;

            if (gone[i] || waitpid(pid[i], &status, WNOHANG) != pid[i]) {
                continue;
            }
            if ((!WIFEXITED(status) || WEXITSTATUS(status) != 0) &&
                on_failure(c, b, b->worker[i].seed, out)) {
                pid[i] = start_worker(c, list, b, &b->worker[i]);
                continue;
            }
            gone[i] = true;
            left--;
        }
        if (shows && looks % LOOKS_PER_LINE == 0) {
            progress(c, b, start);
        }
        (void)nanosleep(&look, NULL);
    }
    if (shows) {
        (void)fprintf(stderr, "\r%40s\r", "");
    }
}

static void run_workers(const struct campaign *c, const uint64_t *list, unsigned jobs,
                        struct totals *t, struct violations *out)
{
    struct board *b = campaign_shared(sizeof *b);
    pid_t pid[CAMPAIGN_JOBS_MAX];

    if (b == NULL) {
        perror("fleet_sim: memory");
        exit(2);
    }
    (void)fflush(stdout);
    for (unsigned i = 0; i < jobs; i++) {
        pid[i] = start_worker(c, list, b, &b->worker[i]);
    }
    await_workers(c, list, b, pid, jobs, out);
    for (unsigned i = 0; i < jobs; i++) {
        totals_add(t, &b->worker[i].totals);
    }
    (void)munmap(b, sizeof *b);
}

static void run_here(const struct campaign *c, const uint64_t *list, struct totals *t,
                     struct violations *out)
{
    for (uint64_t i = 0; i < c->seeds && out->count == 0; i++) {
        if (campaign_seed(c, list[i], c->trace ? SHOW_ALL : SHOW_NOTHING, t) != NULL) {
            out->seed[out->count++] = list[i];
        }
    }
}

/* Once more for its last events, in a process of its own: an ASSERT would end this one. */
static void show_end(const struct campaign *c, uint64_t seed)
{
    int status = 0;
    pid_t pid;

    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        struct totals *again = mem_new(1, sizeof *again);

        if (campaign_seed(c, seed, SHOW_END, again) == NULL) {
            (void)printf("seed %" PRIu64 ": its worker was killed; run again it breaks no rule\n",
                         seed);
        }
        (void)fflush(stdout);
        _exit(0);
    }
    (void)waitpid(pid, &status, 0);
}

static int by_seed(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The lowest first, and only that where several workers failed before they heard of each other. */
static void show_found(const struct campaign *c, struct violations *found)
{
    qsort(found->seed, found->count, sizeof found->seed[0], by_seed);
    for (size_t i = 0; i < found->count && (i == 0 || c->keep_going); i++) {
        show_end(c, found->seed[i]);
    }
}

int campaign_run(const struct campaign *c)
{
    struct totals *t = mem_new(1, sizeof *t);
    uint64_t *list = list_seeds(c);
    struct violations found = {.count = 0};
    const double start = seconds_now();
    unsigned jobs = c->jobs < CAMPAIGN_JOBS_MAX ? c->jobs : CAMPAIGN_JOBS_MAX;

    (void)signal(SIGABRT, on_abort);
    jobs = jobs > c->seeds ? (unsigned)c->seeds : jobs;
    if ((jobs > 1 || c->keep_going) && !c->trace) {
        run_workers(c, list, jobs, t, &found);
    } else {
        run_here(c, list, t, &found);
    }
    if (!c->trace) {
        show_found(c, &found);
    }
    if ((found.count == 0 || c->keep_going) && !c->quiet) {
        totals_print(t, seconds_now() - start);
    }
    if (found.count == 0) {
        (void)printf("ok - %" PRIu64 " seed%s, 0 violations\n", c->seeds, c->seeds == 1 ? "" : "s");
    } else if (c->keep_going) {
        (void)printf("not ok - %" PRIu64 " seeds, %zu violations\n", c->seeds, found.count);
    }
    mem_free(list);
    mem_free(t);
    return found.count == 0 ? 0 : 1;
}
