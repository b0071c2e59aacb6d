/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold fix`: looks as `ringhold check` does and asks for each repair; only
 * prints the repairs without --yes.
 */
#include "cli/commands.h"
#include "cli/sampling.h"

#include "wire/repair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SETTLE_MS = 3000, SETTLE_MAX_MS = 600000, TEXT_SIZE = 320 };

struct fix {
    struct query q;
    uint32_t settle_ms;
    bool yes;
    bool dry_run;
    size_t done;
    size_t failed;
};

/* ---- asking for one repair ---- */

static uint32_t task_of(enum repair repair)
{
    switch (repair) {
    case REPAIR_FETCH:
        return REPAIR_TASK_FETCH;
    case REPAIR_OUTCOME:
        return REPAIR_TASK_OUTCOME;
    case REPAIR_STRAYS:
        return REPAIR_TASK_STRAYS;
    case REPAIR_EXIT:
        return REPAIR_TASK_EXIT;
    case REPAIR_NONE:
    case REPAIR_ABORT:
    case REPAIR_REMOVE:
        break;
    }
    return 0;
}

/* What the history says of why. */
static char *reason_of(struct fix *f, const struct finding *finding, char out[ADMIN_REASON_MAX + 1])
{
    if (f->q.reason[0] != '\0') {
        return f->q.reason;
    }
    (void)snprintf(out, ADMIN_REASON_MAX + 1, "ringhold fix: %s", finding->subject);
    return out;
}

static Rh__AdminReply *ask_repair(struct fix *f, const struct finding *finding)
{
    Rh__AdminRepair what = RH__ADMIN_REPAIR__INIT;
    char name[sizeof finding->plan.name];
    char text[ADMIN_REASON_MAX + 1];

    memcpy(name, finding->plan.name, sizeof name);
    what.role = finding->plan.role;
    what.name = name;
    what.incarnation = finding->plan.incarnation;
    what.what = task_of(finding->plan.repair);
    what.txn = finding->plan.txn;
    what.by = query_who();
    what.why = reason_of(f, finding, text);
    return query_ask(&f->q, &what.base);
}

static Rh__AdminReply *ask_abort(struct fix *f, const struct finding *finding)
{
    Rh__AdminResolve what = RH__ADMIN_RESOLVE__INIT;
    char text[ADMIN_REASON_MAX + 1];

    what.txn = finding->plan.txn;
    what.choice = RH__RESOLVE_CHOICE__RESOLVE_ABORT;
    what.by = query_who();
    what.reason = reason_of(f, finding, text);
    return query_ask(&f->q, &what.base);
}

static Rh__AdminReply *ask_removal(struct fix *f, const struct finding *finding)
{
    Rh__AdminRemove what = RH__ADMIN_REMOVE__INIT;
    char name[sizeof finding->plan.name];
    char text[ADMIN_REASON_MAX + 1];

    memcpy(name, finding->plan.name, sizeof name);
    what.name = name;
    what.by = query_who();
    what.reason = reason_of(f, finding, text);
    return query_number_wish(&f->q, &what.wish, &what.seen) ? query_ask(&f->q, &what.base) : NULL;
}

static Rh__AdminReply *ask(struct fix *f, const struct finding *finding)
{
    switch (finding->plan.repair) {
    case REPAIR_FETCH:
    case REPAIR_OUTCOME:
    case REPAIR_STRAYS:
    case REPAIR_EXIT:
        return ask_repair(f, finding);
    case REPAIR_ABORT:
        return ask_abort(f, finding);
    case REPAIR_REMOVE:
        return ask_removal(f, finding);
    case REPAIR_NONE:
        break;
    }
    return NULL;
}

/* ---- all of them ---- */

static bool same_plan(const struct repair_plan *a, const struct repair_plan *b)
{
    return a->repair == b->repair && a->role == b->role && a->incarnation == b->incarnation &&
           a->txn == b->txn && strcmp(a->name, b->name) == 0;
}

/* An earlier finding has the same repair. */
static bool is_repeated(const struct findings *all, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (same_plan(&all->item[i].plan, &all->item[at].plan)) {
            return true;
        }
    }
    return false;
}

/* One line for people; programs get the findings, each with its repair. */
static void say(const struct fix *f, const char *what, const char *text)
{
    if (!f->q.json) {
        text_printf(9, "%-8s %s", what, text);
    }
}

static void do_one(struct fix *f, const struct finding *finding, const char *repair)
{
    Rh__AdminReply *reply = NULL;

    if (!f->yes) {
        say(f, "would", repair);
        return;
    }
    reply = ask(f, finding); // says why not
    say(f, reply == NULL ? "failed" : "done", repair);
    f->done += reply == NULL ? 0 : 1;
    f->failed += reply == NULL ? 1 : 0;
    admin_free(reply);
}

/* How many can be repaired. */
static size_t go_through(struct fix *f, const struct findings *all)
{
    size_t repairable = 0;

    for (size_t i = 0; i < all->count; i++) {
        const struct finding *finding = &all->item[i];
        char repair[TEXT_SIZE];

        say(f, "problem", finding->what);
        if (finding->plan.repair == REPAIR_NONE) {
            say(f, "by hand", finding->todo);
            continue;
        }
        repairable++;
        (void)repair_text(&finding->plan, repair, sizeof repair);
        if (!is_repeated(all, i)) {
            do_one(f, finding, repair);
        }
    }
    return repairable;
}

/* What is left, after what was done. */
static int look_again(struct fix *f)
{
    struct sampling sampling;
    int code = 1;

    say(f, "", "");
    (void)fflush(stdout);
    if (sampling_run(&sampling, &f->q, f->settle_ms)) {
        if (f->q.json) {
            sampling_print_json(&sampling);
        } else {
            sampling_print(&sampling, &f->q);
        }
        code = sampling.findings.count == 0 ? 0 : 2;
    }
    sampling_fini(&sampling);
    return code;
}

static int fix(struct fix *f)
{
    struct sampling sampling;
    size_t repairable = 0;
    size_t count = 0;

    if (!sampling_run(&sampling, &f->q, f->settle_ms)) {
        sampling_fini(&sampling);
        return 1;
    }
    count = sampling.findings.count;
    repairable = go_through(f, &sampling.findings);
    const bool done = f->yes && f->done > 0;
    if (f->q.json && !done) {
        sampling_print_json(&sampling);
    }
    sampling_fini(&sampling);
    if (count == 0) {
        say(f, "ok", "nothing to repair");
        return 0;
    }
    if (f->dry_run) {
        return 0; // it was asked what would be done, and said
    }
    if (!f->yes && repairable > 0) {
        say(f, "note", "nothing was done; ringhold fix --yes does it");
    }
    return done ? look_again(f) : 2;
}

int cmd_fix(int argc, char **argv)
{
    struct fix f = {.settle_ms = SETTLE_MS};
    const struct option more[] = {
        option_switch("dry-run", &f.dry_run, "only print what would be done (the default)"),
        option_switch("yes", &f.yes, "do it"),
        query_reason(&f.q),
        option_number("settle-ms",
                      &f.settle_ms,
                      (struct option_range){0, SETTLE_MAX_MS},
                      "act on a finding when it has lasted this long (%)"),
    };
    const struct command command = {
        .name = "fix",
        .summary = "Repair what `ringhold check` finds, by the protocol, never by hand.",
        .arguments = "",
        .details = "Prints the repair of each finding; with --yes it does them, checks again and\n"
                   "prints what is left. The coordinators' history keeps who did what and why.\n"
                   "For what must be done by hand, the command is named.\n"
                   "Exit code: 0 all is well (now), or --dry-run has said what it would do; 2 "
                   "problems are\n"
                   "left, 1 no process could be asked.",
        .options = query_options_more(&f.q, more, sizeof more / sizeof *more),
    };
    f.q.prose = true;
    const int code = query_parse(&f.q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    if (f.yes && f.dry_run) {
        (void)fprintf(stderr, "ringhold fix: give --yes or --dry-run, not both\n");
        return 1;
    }
    return fix(&f);
}
