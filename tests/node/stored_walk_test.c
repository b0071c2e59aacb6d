/* SPDX-License-Identifier: Apache-2.0
 *
 * examples/stores/stored.c over a database that is late, silent, away, or takes a write after its
 * sender died: random walks. The database keeps its contract (stored.h); threads and time are the
 * test's, so one seed is one history.
 *
 * What must hold: a count that was answered is in the row for ever, none is counted twice, and the
 * answers climb. That the judge can say no is shown by two that break the contract.
 */
#include "tests/test.h"

#include "base/prng.h"
// Its request_free() is what a crash needs.
#include "examples/stores/stored.c" // NOLINT(bugprone-suspicious-include)

#include <fcntl.h>
#include <unistd.h>

enum { PROCESSES = 2, ACTORS = 64, LATE = 256, STEPS = 3000, WALKS = 300, JOBS = 64 };

enum breach { BREACH_NONE, BREACH_ANY_TOKEN, BREACH_ANY_VERSION };

/* ---- the row, and what is on its way to it */

static struct {
    enum breach breach;
    uint64_t token;
    int64_t version;
    int64_t count;
    struct late {
        struct stored_row row;
        int64_t count;
        bool claims;
    } late[LATE];
    size_t late_count;
} base;

static struct prng prng;

static enum store_end do_claim(struct stored_row *row)
{
    if (base.token > row->token && base.breach != BREACH_ANY_TOKEN) {
        return STORE_FENCED;
    }
    base.token = row->token;
    base.version++;
    row->version = base.version;
    row->count = base.count;
    return STORE_OK;
}

static enum store_end do_write(const struct stored_row *row, int64_t count)
{
    if (base.token > row->token && base.breach != BREACH_ANY_TOKEN) {
        return STORE_FENCED;
    }
    if (base.version != row->version && base.breach != BREACH_ANY_VERSION) {
        return STORE_CHANGED;
    }
    base.count = count;
    base.version = row->version + 1;
    return STORE_OK;
}

static void arrive(size_t at)
{
    struct late l = base.late[at];

    base.late[at] = base.late[--base.late_count];
    if (l.claims) {
        (void)do_claim(&l.row);
    } else {
        (void)do_write(&l.row, l.count);
    }
}

/* Nobody is told how it ends: it got lost, or the answer does, or it comes later. */
static enum store_end unheard(struct stored_row row, int64_t count, bool claims)
{
    const uint64_t how = prng_between(&prng, 0, 3);

    if (how > 0 && base.late_count < LATE) {
        base.late[base.late_count++] = (struct late){row, count, claims};
    }
    if (how == 1) {
        arrive(base.late_count - 1);
    }
    return STORE_UNKNOWN;
}

static bool fails(enum store_end *end)
{
    *end = STORE_ERROR;
    return prng_chance(&prng, 5);
}

static enum store_end claim(void *connection, struct stored_row *row)
{
    enum store_end end;

    (void)connection;
    return fails(&end) ? end : prng_chance(&prng, 15) ? unheard(*row, 0, true) : do_claim(row);
}

static enum store_end write_row(void *connection, const struct stored_row *row, int64_t count)
{
    enum store_end end;

    (void)connection;
    return fails(&end)              ? end
           : prng_chance(&prng, 25) ? unheard(*row, count, false)
                                    : do_write(row, count);
}

static void *open_base(void *store, int64_t until_ms, char why[JOBS_WHY_SIZE])
{
    (void)until_ms;
    why[0] = '\0';
    return store;
}

static void close_base(void *connection)
{
    (void)connection;
}

static bool is_alive(const void *connection)
{
    (void)connection;
    return true;
}

static void note(void *connection, const struct stored_row *row, const char *node)
{
    (void)connection;
    (void)row;
    (void)node;
}

static const struct stored_ops ops = {.name = "base",
                                      .open = open_base,
                                      .close = close_base,
                                      .is_alive = is_alive,
                                      .claim = claim,
                                      .write = write_row,
                                      .note = note};

/* ---- threads and time: jobs.h */

struct jobs {
    const struct jobs_ops *ops;
    void *context;
    struct job *waiting[JOBS];
    size_t count;
};

static int64_t now_ms;

int64_t jobs_now_ms(void)
{
    return now_ms;
}

struct jobs *jobs_start(const struct jobs_ops *what, void *context, unsigned threads)
{
    struct jobs *j = calloc(1, sizeof *j);

    (void)threads;
    assert_non_null(j);
    j->ops = what;
    j->context = context;
    return j;
}

bool jobs_put(struct jobs *jobs, struct job *job)
{
    if (jobs->count == JOBS) {
        return false;
    }
    jobs->waiting[jobs->count++] = job;
    return true;
}

/* Any of them: there are several threads. */
static struct job *take(struct jobs *j)
{
    const size_t at = prng_between(&prng, 0, j->count - 1);
    struct job *job = j->waiting[at];

    j->waiting[at] = j->waiting[--j->count];
    return job;
}

void jobs_stop(struct jobs *jobs)
{
    while (jobs->count > 0) {
        (void)jobs->ops->work(jobs->context, NULL, take(jobs));
    }
    free(jobs);
}

/* ---- actors: ringhold.h */

struct rh_actor {
    struct stored *stored;
    void *instance;
    uint64_t defers; /* the callback that is not finished; 0 = none */
    bool asked;      /* it is a message */
    bool counts;     /* INCR */
    bool gone;
};

static struct rh_actor actors[ACTORS];
static size_t actor_count;
static uint64_t defers;

/* What was told. */
static struct {
    int64_t counted; /* INCR, answered */
    int64_t unsure;  /* UNKNOWN, or their process died */
    int64_t added;   /* ADD, answered: a crash takes it along, or does not */
    int64_t highest;
    bool went_back; /* a count that was answered was there already */
} told;

static void answer(struct rh_actor *a, struct rh_value v)
{
    if (a->counts && v.type == RH_INTEGER) {
        told.counted++;
        told.went_back = told.went_back || v.integer <= told.highest;
        told.highest = v.integer > told.highest ? v.integer : told.highest;
    } else if (a->counts && v.type == RH_ERROR && strncmp(v.bytes.data, "UNKNOWN", 7) == 0) {
        told.unsure++;
    }
    a->counts = false;
}

struct rh_value rh_error(const char *text)
{
    return (struct rh_value){RH_ERROR, 0, {text, strlen(text)}};
}

void *rh_shared(const struct rh_actor *actor)
{
    return actor->stored;
}

struct rh_bytes rh_id(const struct rh_actor *actor)
{
    (void)actor;
    return (struct rh_bytes){"id", 2};
}

int rh_reply(struct rh_actor *actor, struct rh_value value)
{
    answer(actor, value);
    return RH_OK;
}

int rh_deposed(struct rh_actor *actor, const char *text)
{
    answer(actor, rh_error(text));
    return RH_OK;
}

uint64_t rh_timer_start(struct rh_actor *actor, uint32_t ms, uint32_t every_ms, void *argument)
{
    (void)actor;
    (void)ms;
    (void)every_ms;
    (void)argument;
    return 1;
}

struct rh_token rh_defer(struct rh_actor *actor)
{
    actor->defers = ++defers;
    return (struct rh_token){actor, defers};
}

static struct rh_actor *named(struct rh_token token)
{
    struct rh_actor *a = token.scene;

    return !a->gone && a->defers == token.number ? a : NULL;
}

int rh_reply_later(struct rh_token token, struct rh_value value)
{
    struct rh_actor *a = named(token);

    if (a == NULL) {
        return RH_GONE;
    }
    assert_true(a->asked);
    a->asked = false;
    a->defers = 0;
    answer(a, value);
    return RH_OK;
}

int rh_done(struct rh_token token, int result)
{
    struct rh_actor *a = named(token);

    assert_int_not_equal(result, RH_PENDING);
    if (a == NULL) {
        return RH_GONE;
    }
    assert_false(a->asked);
    a->defers = 0;
    return RH_OK;
}

/* ---- the walk */

static struct stored *process[PROCESSES];
static struct rh_actor *owner; /* the newest; older ones may not know */

static void start(struct stored *s)
{
    assert_true(actor_count < ACTORS);
    owner = &actors[actor_count];
    *owner = (struct rh_actor){.stored = s};
    assert_int_not_equal(stored_activate(owner, NULL, ++actor_count, &owner->instance), RH_FAILED);
}

static void ask(struct rh_actor *a, const char *text)
{
    const struct rh_message m = {.payload = {text, strlen(text)}};

    if (a->gone || a->defers != 0) {
        return;
    }
    a->asked = true;
    a->counts = strcmp(text, "INCR") == 0;
    told.added += strcmp(text, "ADD") == 0;
    stored_message(a, a->instance, &m);
    a->asked = a->defers != 0;
}

static void flush(struct rh_actor *a)
{
    if (!a->gone && a->defers == 0 && a->instance != NULL) {
        (void)stored_flush(a, a->instance, RH_PERIODIC, 0);
    }
}

static void stop(struct rh_actor *a, enum rh_why why)
{
    if (!a->gone) {
        told.unsure += a->counts;
        a->gone = true;
        stored_deactivate(a, a->instance, why);
    }
}

/* All that it was about to do is not done; what is on its way arrives. */
static void crash(size_t at)
{
    struct stored *s = process[at];

    while (s->jobs->count > 0) {
        request_free((struct request *)take(s->jobs));
    }
    for (size_t i = 0; i < actor_count; i++) {
        if (actors[i].stored == s) {
            stop(&actors[i], RH_FENCED);
        }
    }
    stored_stop(s);
    process[at] = stored_start(&ops, &base, "n");
    assert_non_null(process[at]);
}

static void work(struct stored *s)
{
    if (s->jobs->count > 0) {
        void *connection = prng_chance(&prng, 90) ? &base : NULL;

        (void)s->jobs->ops->work(s->jobs->context, connection, take(s->jobs));
    }
}

static void step(void)
{
    static const char *const text[] = {"INCR", "INCR", "ADD", "GET"};
    const size_t at = prng_between(&prng, 0, PROCESSES - 1);
    struct rh_actor *any = &actors[prng_between(&prng, 0, actor_count - 1)];
    struct rh_actor *whom = prng_chance(&prng, 80) ? owner : any;
    const uint64_t what = prng_between(&prng, 0, 999);

    now_ms += (int64_t)prng_between(&prng, 0, 100);
    if (what < 350) {
        ask(whom, text[prng_between(&prng, 0, 3)]);
    } else if (what < 800) {
        work(process[at]);
    } else if (what < 900 && base.late_count > 0) {
        arrive(prng_between(&prng, 0, base.late_count - 1));
    } else if (what < 970) {
        flush(whom);
    } else if (what < 990 && actor_count < ACTORS - 1) {
        if (prng_chance(&prng, 50)) {
            stop(owner, RH_MOVED); // else it stands still, and does not know
        }
        start(process[at]);
    } else if (what >= 995 && actor_count < ACTORS - 1) {
        crash(at);
        if (owner->gone) {
            start(process[at]);
        }
    }
}

/* Is every count there, and none twice? */
static bool is_true(void)
{
    return !told.went_back && base.count >= told.counted &&
           base.count <= told.counted + told.unsure + told.added;
}

/* It tells of each refused write; here they are thousands. */
static int silence(void)
{
    const int stderr_before = dup(STDERR_FILENO);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    assert_true(stderr_before >= 0 && nowhere >= 0);
    (void)dup2(nowhere, STDERR_FILENO);
    (void)close(nowhere);
    return stderr_before;
}

static bool walk(uint64_t seed, enum breach breach)
{
    const int stderr_before = silence();

    prng = (struct prng){.state = seed};
    memset(&base, 0, sizeof base);
    memset(&told, 0, sizeof told);
    base.breach = breach;
    actor_count = 0;
    for (size_t i = 0; i < PROCESSES; i++) {
        process[i] = stored_start(&ops, &base, "n");
        assert_non_null(process[i]);
    }
    start(process[0]);
    for (unsigned i = 0; i < STEPS; i++) {
        step();
    }
    for (size_t i = 0; i < PROCESSES; i++) {
        crash(i);
    }
    while (base.late_count > 0) {
        arrive(0);
    }
    for (size_t i = 0; i < PROCESSES; i++) {
        stored_stop(process[i]);
    }
    (void)dup2(stderr_before, STDERR_FILENO);
    (void)close(stderr_before);
    return is_true();
}

static void a_count_that_was_answered_is_there_once(void **state)
{
    int64_t counted = 0;
    int64_t unsure = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= WALKS; seed++) {
        if (!walk(seed, BREACH_NONE)) {
            fail_msg("seed %u: %lld counted, %lld unsure, %lld added: the row has %lld",
                     (unsigned)seed,
                     (long long)told.counted,
                     (long long)told.unsure,
                     (long long)told.added,
                     (long long)base.count);
        }
        counted += told.counted;
        unsure += told.unsure;
    }
    assert_true(counted > (int64_t)WALKS * 20); // else it was no walk
    assert_true(unsure > WALKS);
}

static bool is_noticed(enum breach breach)
{
    for (uint64_t seed = 1; seed <= WALKS; seed++) {
        if (!walk(seed, breach)) {
            return true;
        }
    }
    return false;
}

static void a_store_that_takes_any_token_is_noticed(void **state)
{
    (void)state;
    assert_true(is_noticed(BREACH_ANY_TOKEN));
}

static void a_store_that_takes_any_version_is_noticed(void **state)
{
    (void)state;
    assert_true(is_noticed(BREACH_ANY_VERSION));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_count_that_was_answered_is_there_once),
        cmocka_unit_test(a_store_that_takes_any_token_is_noticed),
        cmocka_unit_test(a_store_that_takes_any_version_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
