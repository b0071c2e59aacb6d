/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold coordinators list | set | add | replace | remove`: who votes. The
 * wish is always the whole set; the others are made from the present one.
 * `maintenance` is in cmd_maintenance.c.
 */
#include "cli/cmd_maintenance.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "raft/generation.h"
#include "wire/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WISHES_MAX = 2 * GENERATION_VOTERS_MAX };

struct wishes {
    struct generation_wish wish[WISHES_MAX];
    size_t count;
};

static const char with_new[] =
    "Start a new coordinator first, with an id that was never used, an empty folder and\n"
    "--join-group. A majority of the new set must be running. Leadership moves to the new\n"
    "set within about a second. docs/operating.md has the procedures.";

static const char without[] =
    "A majority of those that stay must be running. Leadership moves to them within about a\n"
    "second. docs/operating.md has the procedures.";

/* Ask with this set; none: only look. Owned reply; NULL after printing why not. */
static Rh__AdminReply *ask(const struct query *q, const struct wishes *w)
{
    Rh__AdminCoordinators what = RH__ADMIN_COORDINATORS__INIT;
    Rh__VoterRow row[WISHES_MAX];
    Rh__VoterRow *rows[WISHES_MAX];

    for (size_t i = 0; i < w->count; i++) {
        row[i] = (Rh__VoterRow)RH__VOTER_ROW__INIT;
        row[i].id = (uint32_t)w->wish[i].id;
        row[i].address = proto_text(w->wish[i].address);
        rows[i] = &row[i];
    }
    what.voters = rows;
    what.n_voters = w->count;
    what.by = query_who();
    what.reason = proto_text(q->reason);
    return query_ask(q, &what.base);
}

static bool take_present(const struct query *q, struct wishes *w)
{
    const struct wishes none = {.count = 0};
    Rh__AdminReply *reply = ask(q, &none);

    if (reply == NULL) {
        return false;
    }
    w->count = 0;
    for (size_t i = 0; i < reply->n_voters && i < GENERATION_VOTERS_MAX; i++) {
        struct generation_wish *wish = &w->wish[w->count++];
        *wish = (struct generation_wish){.id = reply->voters[i]->id};
        (void)snprintf(wish->address, sizeof wish->address, "%s", reply->voters[i]->address);
    }
    admin_free(reply);
    return true;
}

static bool complain(const char *text, const char *what)
{
    (void)fprintf(stderr, "ringhold coordinators: '%s' is not %s\n", text, what);
    return false;
}

static bool add(struct wishes *w, const char *text)
{
    struct generation_wish more[GENERATION_VOTERS_MAX];
    size_t count = 0;

    if (!generation_parse(text, more, &count)) {
        return complain(text, "ID=HOST:PORT[,ID=HOST:PORT…], at most 5");
    }
    memcpy(w->wish + w->count, more, count * sizeof *more);
    w->count += count;
    return true;
}

/* Ids, separated by commas. */
static bool remove_ids(struct wishes *w, const char *text)
{
    const char *at = text;

    while (*at != '\0') {
        char *end = NULL;
        const unsigned long id = strtoul(at, &end, 10);
        size_t found = 0;

        while (found < w->count && w->wish[found].id != id) {
            found++;
        }
        if (end == at || (*end != ',' && *end != '\0') || found == w->count) {
            return complain(at, "the id of a coordinator: see ringhold coordinators list");
        }
        w->wish[found] = w->wish[--w->count];
        at = end + (*end == ',');
    }
    return true;
}

static int list(int argc, char **argv)
{
    static const char *const columns[] = {"ID", "ADDRESS", "LEADER", "LINKED", "GENERATION", NULL};
    const struct wishes none = {.count = 0};
    struct query q;
    struct rows r;
    const struct command command = {
        .name = "coordinators list",
        .summary = "List the coordinators that vote, as their leader sees them.",
        .arguments = "",
        .options = query_options(&q, NULL),
    };
    const int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    Rh__AdminReply *reply = ask(&q, &none);
    if (reply == NULL) {
        return 1;
    }
    rows_init(&r, columns);
    for (size_t i = 0; i < reply->n_voters; i++) {
        rows_number(&r, reply->voters[i]->id);
        rows_text(&r, "%s", reply->voters[i]->address);
        rows_text(&r, "%s", reply->voters[i]->leader ? "yes" : "no");
        rows_text(&r, "%s", reply->voters[i]->linked ? "yes" : "no");
        rows_number(&r, reply->generation);
    }
    query_print(&q, &r);
    admin_free(reply);
    return 0;
}

struct coordinators_verb {
    const char *name;
    const char *full;
    const char *summary;
    const char *arguments;
    int count;
    const char *details;
};

static const struct coordinators_verb verbs[] = {
    {"set",
     "coordinators set",
     "Make these coordinators, and no others, the group.",
     "ID=HOST:PORT,...",
     1,
     with_new},
    {"add",
     "coordinators add",
     "Add coordinators: from 1 to 3, from 3 to 5.",
     "ID=HOST:PORT,...",
     1,
     with_new},
    {"replace",
     "coordinators replace",
     "Put a new coordinator in the place of one that is lost.",
     "OLD-ID NEW-ID=HOST:PORT",
     2,
     with_new},
    {"remove",
     "coordinators remove",
     "Remove coordinators: from 5 to 3, from 3 to 1.",
     "ID,...",
     1,
     without},
};

static bool make(const struct query *q, const struct coordinators_verb *verb, struct wishes *w)
{
    if (strcmp(verb->name, "set") == 0) {
        return add(w, q->arguments[0]);
    }
    if (!take_present(q, w)) {
        return false;
    }
    if (strcmp(verb->name, "add") == 0) {
        return add(w, q->arguments[0]);
    }
    return remove_ids(w, q->arguments[0]) &&
           (strcmp(verb->name, "remove") == 0 || add(w, q->arguments[1]));
}

static int change(int argc, char **argv, const struct coordinators_verb *verb)
{
    struct query q;
    const struct option reason = query_reason(&q);
    struct wishes w = {.count = 0};
    const struct command command = {
        .name = verb->full,
        .summary = verb->summary,
        .arguments = verb->arguments,
        .details = verb->details,
        .options = query_options(&q, &reason),
        .arguments_min = verb->count,
        .arguments_max = verb->count,
    };
    const int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    if (!make(&q, verb, &w)) {
        return 1;
    }
    if (w.count == 0) {
        (void)fprintf(
            stderr,
            "ringhold coordinators: this would remove all coordinators; at least 1 must stay\n");
        return 1;
    }
    Rh__AdminReply *reply = ask(&q, &w);
    if (reply == NULL) {
        return 1;
    }
    (void)printf("the coordinators are");
    for (size_t i = 0; i < w.count; i++) {
        (void)printf(" %" PRIu64 "=%s", w.wish[i].id, w.wish[i].address);
    }
    (void)printf("\n");
    query_next(
        &q,
        "new ones catch up by themselves, and those that left may be stopped; `ringhold "
        "coordinators list` shows who is linked. Give the new addresses to all processes that "
        "start from now on (--join, --coordinators)");
    admin_free(reply);
    return 0;
}

int cmd_coordinators(int argc, char **argv)
{
    const int asked = argc > 0 && strcmp(argv[0], "--help") == 0;

    if (argc > 0 && strcmp(argv[0], "list") == 0) {
        return list(argc - 1, argv + 1);
    }
    if (argc > 0 && strcmp(argv[0], "maintenance") == 0) {
        return coordinators_maintenance(argc - 1, argv + 1);
    }
    for (size_t i = 0; argc > 0 && i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(argv[0], verbs[i].name) == 0) {
            return change(argc - 1, argv + 1, &verbs[i]);
        }
    }
    FILE *to = asked ? stdout : stderr;
    (void)fprintf(to,
                  "usage: ringhold coordinators list [options]\n"
                  "       ringhold coordinators maintenance [options]\n");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        (void)fprintf(to, "       ringhold %s [options] %s\n", verbs[i].full, verbs[i].arguments);
    }
    return asked ? 0 : 1;
}
