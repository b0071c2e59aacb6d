/* SPDX-License-Identifier: Apache-2.0
 *
 * The hunt for planted bugs: each takes one rule away, and a checker, or an
 * ASSERT of the core itself, must say so. A child each, for an ASSERT ends it.
 */
#include "base/mem.h"
#include "sim/campaign.h"
#include "sim/campaign_inside.h"
#include "wire/frame.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef RINGHOLD_MUTANTS

/* What a child tells; the last that it said stays when an ASSERT ends it. */
struct prey {
    uint64_t seed;
    char checker[32];
    pid_t child;
    bool over;
    bool caught;
};

static const enum mutant all[] = {
#define X(name, text) name,
    MUTANT_LIST(X) MUTANT_STORAGE_LIST(X) MUTANT_PROMISE_LIST(X) MUTANT_SESSION_LIST(X)
        MUTANT_PLAYER_LIST(X)
#undef X
    // Of durable actors, those that are of the simulated ones.
    M_ANSWERFIRST,
    M_NOFENCESTORE,
    M_OUTBOXLOST,
    M_SENDTWICE,
    M_ALARMLOST,
    M_ALARMEARLY,
    M_ALARMAPART,
    M_ALARMASLEEP,
    M_NOSAVEDANSWER,
    M_ANSWERAPART,
    M_ANSWERGONE,
    M_LATECOMMIT,
    M_TAKENLOST,
    M_ALARMSTAYS,
    // Of streams, those that 200 seeds show; tests/stream/judge_test.c has all.
    M_NOFENCE,
    M_NOLANE,
    M_NOSEQ,
    M_NOLOG,
    M_REROUTE,
    M_DEADSEND,
    M_RELAY,
    M_FWAFTER,
    M_NOTAGAIN,
    M_NAMEDANEW,
};

enum { COUNT = sizeof all / sizeof all[0] };

/* Which kind of seed shows a mutant: a rule about clocks shows in none without drift. */
static enum profile hunting_ground(enum mutant m)
{
    static const enum profile ground[M_ALARMSTAYS + 1] = {
        [M_SAMELIFE] = PROFILE_SESSIONS,
        [M_NOCONF] = PROFILE_LEASE,
        [M_NOSTOP] = PROFILE_LEASE,
        [M_NOWAIT] = PROFILE_LEASE,
        [M_EAGER] = PROFILE_LEASE,
        [M_NEWLEAD] = PROFILE_LEASE,
        [M_DRIFT] = PROFILE_LEASE,
        [M_RECV] = PROFILE_LEASE,
        [M_ENDCHK] = PROFILE_LEASE,
        [M_RUNOVER] = PROFILE_LEASE,
        [M_MONO] = PROFILE_LEASE,
        [M_FENCEPEND] = PROFILE_PAUSES,
        [M_AHEAD] = PROFILE_PAUSES,
        [M_NOTOKEN] = PROFILE_CLOCKS,
        [M_READ1ST] = PROFILE_CLOCKS,
        [M_ATT1] = PROFILE_COPIES,
        [M_REPLAY] = PROFILE_CHANGES,
        [M_LATE] = PROFILE_LEASE,
        [M_NOTIMER] = PROFILE_CHANGES,
        [M_NORETRY] = PROFILE_CALM,
        [M_RESTORE] = PROFILE_RESTORE,
        [M_ERAMSG] = PROFILE_RESTORE,
        [M_NOCHAIN] = PROFILE_CALM,
        [M_NOCIRCLE] = PROFILE_CALM,
        [M_EACHREFUSES] = PROFILE_CALM,
        [M_BARRIER] = PROFILE_CHANGES,
        [M_ROLE] = PROFILE_ROLES,
        [M_YOUNGEST] = PROFILE_ROLES,
        [M_ASLEEP] = PROFILE_ROLES,
        [M_ONESTRIKE] = PROFILE_LEASE,
        [M_POISON] = PROFILE_LEASE,
        [M_THIRDDEATH] = PROFILE_MIXED,
        [M_STRIKETWICE] = PROFILE_LEASE,
        [M_NOREMEMBER] = PROFILE_MIXED,
        [M_RETURNLOST] = PROFILE_CHANGES,
        [M_WAKELOST] = PROFILE_CALM,
        [M_STALEIMAGE] = PROFILE_CHANGES,
        [M_FIRSTIMAGE] = PROFILE_CHANGES,
        [M_FORMERIMAGE] = PROFILE_MIXED,
        [M_NEWERSTATE] = PROFILE_CHANGES,
        [M_RUNENDED] = PROFILE_SESSIONS,
        [M_CONVOY] = PROFILE_CALM,
        [M_BASE] = PROFILE_CHANGES,
        [M_REGRESS] = PROFILE_CHANGES,
        [M_TWOBOUND] = PROFILE_SESSIONS,
        [M_AWAYPUSH] = PROFILE_SESSIONS,
        [M_UNSEENSTAYS] = PROFILE_SESSIONS,
        [M_OLDLOST] = PROFILE_SESSIONS,
        [M_OLDROUND] = PROFILE_SESSIONS,
        [M_ANYKEY] = PROFILE_SESSIONS,
        [M_STALERETURN] = PROFILE_PAUSES,
        [M_OWNNUMBER] = PROFILE_SESSIONS,
        [M_ACKALL] = PROFILE_SESSIONS,
        [M_BONDSTAYS] = PROFILE_SESSIONS,
        [M_OLDKEY] = PROFILE_SESSIONS,
        [M_FENCELESS] = PROFILE_SESSIONS,
        [M_EACHOTHER] = PROFILE_SESSIONS,
        [M_FIRSTPUSHED] = PROFILE_SESSIONS,
        [M_FIRSTMOVES] = PROFILE_SESSIONS,
        [M_TOOMANY] = PROFILE_SESSIONS,
        [M_JOINTWICE] = PROFILE_SESSIONS,
        [M_CASTLANE] = PROFILE_SESSIONS,
        [M_GROUPSTAYS] = PROFILE_SESSIONS,
        [M_UNVOUCHED] = PROFILE_COPIES,
        [M_CASTMOVED] = PROFILE_SESSIONS,
        [M_CASTSHORT] = PROFILE_CALM,
        [M_NEWESTGONE] = PROFILE_SESSIONS,
        [M_SEALEDON] = PROFILE_COORDINATORS,
        [M_OLDLEADS] = PROFILE_COORDINATORS,
        [M_OLDSTATE] = PROFILE_COORDINATORS,
        [M_TERMSANEW] = PROFILE_COORDINATORS,
        [M_UNFOUNDED] = PROFILE_COORDINATORS,
        [M_LEASELOST] = PROFILE_LEASE,
        [M_ERALOST] = PROFILE_RESTORE,
        [M_KEEPLINKS] = PROFILE_PAUSES,
        [M_KEPTLATE] = PROFILE_PAUSES,
        [M_ERAKEPT] = PROFILE_RESTORE,
        [M_WAITLONG] = PROFILE_LEASE,
        [M_ANYCOLD] = PROFILE_LEASE,
        [M_GIVEUP] = PROFILE_COPIES,
        [M_LOGSYNC] = PROFILE_COORDINATORS,
        [M_TAILFIRST] = PROFILE_COORDINATORS,
        [M_OLDFOLDER] = PROFILE_LEASE,
        [M_OLDCOPY] = PROFILE_RESTORE,
        [M_FORCED] = PROFILE_OPERATOR,
        [M_STRAYOWN] = PROFILE_OPERATOR,
        [M_UNKEPT] = PROFILE_COPIES,
        [M_EXITANY] = PROFILE_OPERATOR,
        [M_LATEGATE] = PROFILE_LEASE,
        [M_DRAINOVER] = PROFILE_OPERATOR,
        [M_OLDWISH] = PROFILE_OPERATOR,
        [M_LASTDRAINS] = PROFILE_OPERATOR,
        [M_PINMOVES] = PROFILE_OPERATOR,
        [M_UNTOLD] = PROFILE_OPERATOR,
        [M_NORECALL] = PROFILE_OPERATOR,
        [M_FWAFTER] = PROFILE_CHANGES,
        [M_LEFTCOLD] = PROFILE_MIXED,
        [M_SOFTBEGINS] = PROFILE_LEASE,
        [M_FIRSTHEARD] = PROFILE_LEASE,
        [M_NONCETWICE] = PROFILE_CHANGES,
        [M_DIRECTONLY] = PROFILE_CALM,
        [M_NOACQUIT] = PROFILE_LEASE,
        [M_AWAYANEW] = PROFILE_SESSIONS,
        [M_KEPTONCE] = PROFILE_PAUSES,
        [M_ANYGENERATION] = PROFILE_COORDINATORS,
        [M_LOWERED] = PROFILE_LEASE,
        [M_LACKED] = PROFILE_RESTORE,
        [M_SHORTMARGIN] = PROFILE_LEASE,
        [M_EXTENDEARLY] = PROFILE_LEASE,
        [M_EXTENDTRUSTED] = PROFILE_LEASE,
        [M_EXTENDIGNORED] = PROFILE_LEASE,
        [M_EXTENDDROPPED] = PROFILE_LEASE,
        [M_SPLITWARM] = PROFILE_MIXED,
        [M_BASEGONE] = PROFILE_COPIES,
        [M_RETIREFORGETS] = PROFILE_COPIES,
        [M_GAVEUP] = PROFILE_COPIES,
        [M_SETSTAYS] = PROFILE_ROLES,
        [M_TAGSPLIT] = PROFILE_ROLES,
        [M_ANYZONE] = PROFILE_ROLES,
        [M_NOTHOST] = PROFILE_ROLES,
        [M_OLDESTDRAINS] = PROFILE_ROLES,
        [M_STOPSTAYS] = PROFILE_OPERATOR,
        [M_LATECALL] = PROFILE_CALM,
        [M_AWAYTAKEN] = PROFILE_SESSIONS,
        [M_GAPLOST] = PROFILE_SESSIONS,
        [M_ANSWERFIRST] = PROFILE_MIXED,
        [M_NOFENCESTORE] = PROFILE_CLOCKS,
        [M_OUTBOXLOST] = PROFILE_DURABLE,
        [M_SENDTWICE] = PROFILE_DURABLE,
        [M_ALARMLOST] = PROFILE_DURABLE,
        [M_ALARMEARLY] = PROFILE_DURABLE,
        [M_ALARMAPART] = PROFILE_DURABLE,
        [M_ALARMASLEEP] = PROFILE_DURABLE,
        [M_NOSAVEDANSWER] = PROFILE_DURABLE,
        [M_ANSWERAPART] = PROFILE_DURABLE,
        [M_ANSWERGONE] = PROFILE_DURABLE,
        [M_LATECOMMIT] = PROFILE_DURABLE,
        [M_TAKENLOST] = PROFILE_DURABLE,
        [M_ALARMSTAYS] = PROFILE_DURABLE,
        [M_NOTAGAIN] = PROFILE_DURABLE,
        [M_NAMEDANEW] = PROFILE_DURABLE,
    };

    return ground[m];
}

/* Rules of the models that no code here could lose, or of threads. */
static const struct {
    const char *name;
    const char *why;
} elsewhere[] = {
    {"NOFSYNC",
     "REGISTER aborts what the disk does not know: each covers the other (specification §9.2)"},
    {"M_CANARYWHOLE", "how much a canary gets is no matter of the protocol: ring_hosts_test"},
    {"M_CANCEL", "with a new number at each attempt harmless: M_SAMENUM_CANCEL plants the pair"},
    {"M_SAMENUM", "with outcomes sent on apply harmless: M_SAMENUM_CANCEL plants the pair"},
    {"M_TIMEOUT", "custody (8.4) is not shipped: a new owner waits for COMMIT, never for a time"},
    {"M_NOMARK", "custody is not shipped: no arc is ever half settled"},
    {"M_BUSYREL", "stragglers (8.3) are not shipped: PREPARED waits for every actor (M_NODRAIN)"},
    {"M_NOFLUSH", "stragglers are not shipped: an image is complete before PREPARED (M_NODRAIN)"},
    {"M_NOLEASE", "custody is not shipped: M_NOWAIT takes the same rule from reassignment"},
    {"M_STALEREL", "custody is not shipped: there is no RELEASE"},
    {"M_RECALL", "of worker threads: tests/node/node_threads_test.c plants it"},
    {"M_STARTCHK", "of worker threads: tests/node/node_threads_test.c plants it"},
    {"M_CALLAHEAD", "of worker threads: tests/node/node_threads_test.c plants it"},
    {"M_ANYROLE", "all here are honest: tests/wire/access_test.c plants it"},
    {"M_ELDERAGAIN",
     "an answer to REGISTER is seldom lost before a restore: coordinator_story_test.c plants it"},
    {"M_TOOSURE",
     "who knows more is seldom late, and with a lease: coordinator_story_test.c plants it"},
    {"M_BACKUPLEASE",
     "a coordinator that restarts waits for the nodes, too: coordinator_story_test.c plants it"},
    {"M_STOPFORGOTTEN", "no checker asks who is listed: coordinator_story_test.c plants it"},
    {"M_JUDGEDLATE", "a number is seldom drawn meanwhile: coordinator_story_test.c plants it"},
    {"M_DRAWNTWICE", "a number is seldom drawn twice: tests/node/host_story_test.c plants it"},
    {"M_SECONDWISH", "no operator here has a rival: coordinator_story_test.c plants it"},
    {"M_NAME", "nobody lies about itself here: tests/node/host_story_test.c plants it"},
    {"M_ANYSOURCE", "nobody lies about itself here: tests/node/host_story_test.c plants it"},
    {"M_LISTEDPART", "a list is seldom cut short here: tests/node/host_story_test.c plants it"},
    {"M_ENDEDIMAGE",
     "who ends so leaves records, which are its newest image: host_story_test.c plants it"},
    {"M_ORPHANRUNS", "one seed in thousands shows it: tests/node/host_story_test.c plants it"},
    {"M_CASTPASS", "no broadcast waits for the few members here: the test of broadcasts plants it"},
    {"M_CASTEDGE", "no broadcast pauses, likewise: the test of broadcasts plants it"},
    {"M_OLDLINE",
     "who is back asks again for what it hears too soon: the story router/resume plants it"},
    {"M_REBINDONCE",
     "it is lost in the one moment in which its gateway goes, too: runtime_keep_test.c plants it"},
    {"M_PROBEONCE",
     "by chance the probe that is lost is not the one that counts: waits_test.c plants it"},
    {"M_LATELOST", "one seed in some thousand shows it: host_story_test.c plants it"},
    {"M_LATERUNS", "likewise: runtime_durable_test.c plants it"},
    {"M_LATEREFUSED", "likewise: host_story_test.c plants it"},
    {"M_COPYUNSEEN", "no copy comes a minute later here: host_story_test.c plants it"},
    {"M_PROBESAGAIN", "few circles have that many who wait outside: waits_test.c plants it"},
    {"M_RELAY", "one seed in some hundred shows it: judge_test.c plants it"},
    {"M_NOTETWICE", "one seed in some hundred shows it: client_bind_test.c plants it"},
    {"M_SEENUNTOLD", "few hold what old files forgot: the stories of both ends plant it"},
    {"M_UNASKED", "old files have mostly a node: coordinator_story_test.c plants it"},
    {"M_COLDLOST", "few answers come over a restore: router_story_test.c plants it"},
    {"M_LATEREFUSAL", "it takes a NotLeader that is late by an election: finder_test.c plants it"},
    {"M_SLEEPERASKED",
     "it takes a death and then an actor that sleeps: router_story_test.c and others plant it"},
    {"M_PUTOFFRUNS",
     "a full link or a long hold at the victim of a circle is rare: host_story_test.c plants it"},
    {"M_EARLIERCOUNTS",
     "a grant is seldom later than an election and the next one: tests/txn/lease_test.c plants it"},
    {"M_DOUBTPASSED", "one seed in some hundred shows it: judge_test.c plants it"},
    {"M_TAKENEARLY",
     "no account here waits before it has changed anything: runtime_sends_test.c plants it"},
    {"M_HALFBATCH", "no operator here asks for values: operate_test.c plants it"},
    {"M_NOTALONE", "no store here is a file: store_tools_test.c plants it"},
    {"M_HALFCOPY", "no store here is a file: store_tools_test.c plants it"},
    {"M_OLDSTORE", "the store here has no line: remote_store_test.c plants it"},
    {"M_NOPOLL", "one seed in some hundred shows it: host_story_test.c plants it"},
    {"M_RESTLESS",
     "a leader that stays long enough is rare here: tests/txn/coordinator_test.c plants it"},
    {"M_UNFOUNDED",
     "it takes a crash between two writes: raft_sim --change takes the same rule off"},
};

static void say_elsewhere(void)
{
    (void)printf("\nof the models alone, or of threads:\n");
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        (void)printf("   %-13s %s\n", elsewhere[i].name, elsewhere[i].why);
    }
}

/* In a child: until a checker speaks. */
static void hunt(const struct campaign *c, struct prey *p)
{
    struct totals *t = mem_new(1, sizeof *t);

    (void)signal(SIGABRT, SIG_DFL);
    if (freopen("/dev/null", "w", stderr) == NULL) {
        _exit(0); // it says that nothing was caught: no bug counts as found for that
    }
    for (uint64_t seed = c->from; seed < c->from + c->seeds; seed++) {
        const char *checker;

        p->seed = seed;
        (void)snprintf(p->checker, sizeof p->checker, "assert");
        checker = campaign_seed(c, seed, SHOW_NOTHING, t);
        if (checker != NULL) {
            (void)snprintf(p->checker, sizeof p->checker, "%s", checker);
            _exit(1);
        }
    }
    _exit(0);
}

/* Of sessions, of a restore or of a rare moment, and 200 seeds don't show it; or one of six hundred
 * does, and raft_sim. */
static bool is_elsewhere(enum mutant m)
{
    return m == M_CANARYWHOLE || m == M_UNFOUNDED || m == M_CASTPASS || m == M_CASTEDGE ||
           m == M_ELDERAGAIN || m == M_TOOSURE || m == M_BACKUPLEASE || m == M_OLDLINE ||
           m == M_REBINDONCE || m == M_PROBEONCE || m == M_PROBESAGAIN || m == M_RELAY ||
           m == M_EARLIERCOUNTS || m == M_NOTETWICE || m == M_SEENUNTOLD || m == M_UNASKED ||
           m == M_COLDLOST || m == M_LATEREFUSAL || m == M_SLEEPERASKED || m == M_PUTOFFRUNS ||
           m == M_JUDGEDLATE || m == M_SECONDWISH || m == M_STOPFORGOTTEN || m == M_NOPOLL ||
           m == M_RESTLESS;
}

/* A rule of the path that ships: through a gateway only the simulator's actors ask. */
static bool needs_node_calls(enum mutant m)
{
    return m == M_NOCHAIN || m == M_CONVOY || m == M_NOCIRCLE || m == M_DIRECTONLY ||
           m == M_EACHREFUSES || m == M_LATECALL;
}

/* A busy device meets it sooner: a resume comes late, a client is away while its actor moves. */
static bool needs_players(enum mutant m)
{
    return m == M_STALERETURN || m == M_CASTMOVED || m == M_AWAYANEW;
}

/* What has to come late: by chance few answers are held back for longer than a lease. */
static int held_back(enum mutant m)
{
    return m == M_LATE ? FRAME_ANSWER : 0;
}

static bool is_of_streams(enum mutant m)
{
    return m == M_NOFENCE || m == M_NOLANE || m == M_NOSEQ || m == M_NOLOG || m == M_REROUTE ||
           m == M_DEADSEND || m == M_AHEAD || m == M_RELAY || m == M_FWAFTER || m == M_NOTAGAIN;
}

static bool needs_maintenance(enum mutant m)
{
    return m == M_EXTENDEARLY || m == M_EXTENDIGNORED || m == M_EXTENDDROPPED ||
           m == M_EXTENDTRUSTED || m == M_LACKED;
}

static struct campaign hunt_of(const struct campaign *c, enum mutant m)
{
    struct campaign own = *c;

    own.fleet.node_calls = needs_node_calls(m);
    own.fleet.poisoned = m == M_THIRDDEATH || m == M_NOACQUIT || m == M_STRIKETWICE;
    own.fleet.played = needs_players(m);
    own.fleet.held_back = held_back(m);
    own.fleet.past = m == M_OLDCOPY || m == M_LACKED;
    own.fleet.maintained = needs_maintenance(m);
    own.fleet.streams = is_of_streams(m) ? STREAMS_ALWAYS : STREAMS_NEVER;
    if (own.fleet.profile == PROFILE_DRAWN) {
        own.fleet.profile = hunting_ground(m);
    }
    return own;
}

static void start(const struct campaign *c, enum mutant m, struct prey *p)
{
    const struct campaign own = hunt_of(c, m);
    pid_t child;

    mutant_planted = m;
    (void)fflush(stdout);
    child = fork();
    if (child == 0) {
        hunt(&own, p);
    }
    p->child = child; // the child sees the same memory: it must not write its own 0 here
}

static void say(const struct campaign *c, enum mutant m, const struct prey *p)
{
    if (p->caught) {
        (void)printf("ok - %-13s caught in %3" PRIu64 " seeds by %-10s %s\n",
                     mutant_name(m),
                     p->seed - c->from + 1,
                     p->checker,
                     mutant_text(m));
    } else {
        (void)printf("not ok - %-13s SURVIVED %" PRIu64 " seeds: %s\n",
                     mutant_name(m),
                     c->seeds,
                     mutant_text(m));
    }
    (void)fflush(stdout);
}

static void await_one(struct prey *prey)
{
    int status = 0;
    const pid_t child = wait(&status);

    for (size_t i = 0; i < COUNT; i++) {
        if (child > 0 && prey[i].child == child) {
            prey[i].over = true;
            prey[i].caught = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        }
    }
}

int campaign_mutants(const struct campaign *c, enum mutant only)
{
    struct prey *prey = campaign_shared(COUNT * sizeof *prey);
    size_t running = 0;
    size_t said = 0;
    size_t next = 0;
    bool caught = true;

    while (prey != NULL && said < COUNT) {
        const bool skips = next < COUNT && (all[next] == M_NONE || is_elsewhere(all[next]) ||
                                            (only != M_NONE && all[next] != only));

        if (skips) {
            prey[next++].over = true;
        } else if (next < COUNT && running < (c->jobs > 0 ? c->jobs : 1)) {
            start(c, all[next], &prey[next]);
            next++;
            running++;
        } else {
            await_one(prey);
            running--;
        }
        for (; said < next && prey[said].over; said++) {
            if (prey[said].child != 0) {
                say(c, all[said], &prey[said]);
                caught = caught && prey[said].caught;
            }
        }
    }
    if (only == M_NONE) {
        say_elsewhere();
    }
    (void)munmap(prey, COUNT * sizeof *prey);
    return prey != NULL && caught ? 0 : 1;
}

int campaign_mutant_seed(const struct campaign *c, enum mutant m)
{
    struct campaign own = hunt_of(c, m);

    mutant_planted = m;
    own.jobs = 1;
    return campaign_run(&own);
}

#else

int campaign_mutant_seed(const struct campaign *c, enum mutant m)
{
    return campaign_mutants(c, m);
}

int campaign_mutants(const struct campaign *c, enum mutant only)
{
    (void)c;
    (void)only;
    (void)fprintf(stderr, "fleet_sim: no bugs are planted in this build: make MUTANTS=1\n");
    return 2;
}

#endif
