/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cmd_nodes.h"

#include "base/clock.h"
#include "cli/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MAX_S = 86400, LOOK_AGAIN_MS = 250 };

static void ask_for_nodes(Rh__Admin *request, Rh__AdminNodes *what)
{
    *what = (Rh__AdminNodes)RH__ADMIN_NODES__INIT;
    request->what_case = RH__ADMIN__WHAT_NODES;
    request->nodes = what;
}

int cmd_node_list(int argc, char **argv)
{
    static const char *const columns[] = {"NODE",
                                          "ROLE",
                                          "SLOT",
                                          "ADDRESS",
                                          "STATE",
                                          "WEIGHT",
                                          "VNODES",
                                          "ACTORS",
                                          "INCARNATION",
                                          "HEARD MS AGO",
                                          "LEASE MS LEFT",
                                          "LEAST MS",
                                          "GATED",
                                          "PARKED",
                                          "UNSAID",
                                          NULL};
    struct query q;
    const struct command command = {
        .name = "node list",
        .summary = "Every node: address, state, weight, vnodes, actors, lease.",
        .arguments = "",
        .options = query_options(&q, NULL),
    };
    const int code = query_parse(&q, &command, argc, argv);
    struct rows r;

    if (code >= 0) {
        return code;
    }
    Rh__Admin request = RH__ADMIN__INIT;
    Rh__AdminNodes what;
    ask_for_nodes(&request, &what);
    Rh__AdminReply *reply = query_ask(&q, &request);
    if (reply == NULL) {
        return 1;
    }
    rows_init(&r, columns);
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        rows_text(&r, "%s", n->member->name);
        rows_text(&r, "%s", role_text(n->member->role));
        rows_number(&r, n->member->slot);
        rows_text(&r, "%s", n->member->address);
        rows_text(&r, "%s", n->state);
        rows_number(&r, n->member->weight);
        rows_number(&r, n->vnodes);
        rows_number(&r, n->actors);
        rows_number(&r, n->member->incarnation);
        rows_number(&r, n->heard_us_ago / 1000);
        rows_number(&r, n->lease_us_left / 1000);
        rows_number(&r, n->lease_least_us / 1000);
        rows_number(&r, n->lease_gated);
        rows_number(&r, n->leaseless_total);
        rows_number(&r, n->gate_dropped);
    }
    query_print(&q, &r);
    admin_free(reply);
    return 0;
}

static const Rh__NodeRow *row_named(const Rh__AdminReply *reply, const char *name)
{
    for (size_t i = 0; i < reply->n_nodes; i++) {
        if (strcmp(reply->nodes[i]->member->name, name) == 0) {
            return reply->nodes[i];
        }
    }
    return NULL;
}

static void draw_progress(const char *name, uint32_t left, uint32_t start, uint64_t actors)
{
    enum { WIDTH = 30 };
    const uint32_t done = start == 0 ? WIDTH : WIDTH * (start - left) / start;
    char bar[WIDTH + 1];

    if (!isatty(STDERR_FILENO)) {
        return;
    }
    memset(bar, '-', WIDTH);
    memset(bar, '#', done > WIDTH ? WIDTH : done);
    bar[WIDTH] = '\0';
    (void)fprintf(stderr,
                  "\r%s [%s] %u of %u vnodes left, %" PRIu64 " actors ",
                  name,
                  bar,
                  left,
                  start,
                  actors);
    if (left == 0) {
        (void)fprintf(stderr, "\n");
    }
}

/* Watch until the node owns nothing or is gone. 0, 1 (no answer), 3 (time ran out). */
static int wait_until_empty(const struct query *q, const char *name, uint32_t wait_s)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)wait_s * 1000000;
    const struct timespec pause = {.tv_nsec = (long)LOOK_AGAIN_MS * 1000000};
    struct admin *admin = admin_open(q->cluster, q->coordinators);
    uint32_t start = 0;
    int code = 3;

    while (admin != NULL && clock_boottime_us() < end_us) {
        Rh__Admin request = RH__ADMIN__INIT;
        Rh__AdminNodes what;

        ask_for_nodes(&request, &what);
        Rh__AdminReply *reply = admin_ask(admin, &request, q->timeout_ms);
        if (reply == NULL) {
            code = 1;
            break;
        }
        const Rh__NodeRow *row = row_named(reply, name);
        const uint32_t left = row == NULL ? 0 : row->vnodes;
        const uint64_t actors = row == NULL ? 0 : row->actors;
        admin_free(reply);
        start = left > start ? left : start;
        draw_progress(name, left, start, actors);
        if (left == 0) {
            code = 0;
            break;
        }
        (void)nanosleep(&pause, NULL);
    }
    admin_close(admin);
    return admin == NULL ? 1 : code;
}

int cmd_node_drain(int argc, char **argv)
{
    struct query q;
    uint32_t wait_s = 0;
    const struct option wait_option = {.key = "wait",
                                       .value = "SECONDS",
                                       .help =
                                           "wait until it is empty; exit 3 if it is not by then",
                                       .kind = OPTION_NUMBER,
                                       .target = &wait_s,
                                       .min = 1,
                                       .max = WAIT_MAX_S};
    const struct command command = {
        .name = "node drain",
        .summary = "Move everything off a node. Its process goes on, empty, until it is stopped.",
        .arguments = "NAME [cancel]",
        .details = "`ringhold node drain NAME cancel` takes it back, also after it is empty.",
        .options = query_options(&q, &wait_option),
        .arguments_min = 1,
        .arguments_max = 2,
    };
    const int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    if (q.argument_count == 2 && strcmp(q.arguments[1], "cancel") != 0) {
        (void)fprintf(stderr, "ringhold node drain: what is '%s'?\n", q.arguments[1]);
        return 1;
    }
    Rh__AdminDrain what = RH__ADMIN_DRAIN__INIT;
    Rh__Admin request = RH__ADMIN__INIT;
    char name[64];
    (void)snprintf(name, sizeof name, "%s", q.arguments[0]);
    what.name = name;
    what.cancel = q.argument_count == 2;
    char by[128];
    (void)query_who(by, sizeof by);
    what.by = by;
    request.what_case = RH__ADMIN__WHAT_DRAIN;
    request.drain = &what;
    Rh__AdminReply *reply =
        query_number_wish(&q, &what.wish, &what.seen) ? query_ask(&q, &request) : NULL;
    if (reply == NULL) {
        return 1;
    }
    (void)printf("%s\n", reply->text);
    admin_free(reply);
    return wait_s == 0 || what.cancel ? 0 : wait_until_empty(&q, name, wait_s);
}

int cmd_node_remove(int argc, char **argv)
{
    struct query q;
    const struct command command = {
        .name = "node remove",
        .summary = "Take a node out of the fleet: a live one is drained first, then it exits.",
        .arguments = "NAME",
        .options = query_options(&q, NULL),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    Rh__AdminRemove what = RH__ADMIN_REMOVE__INIT;
    Rh__Admin request = RH__ADMIN__INIT;
    char name[64];
    (void)snprintf(name, sizeof name, "%s", q.arguments[0]);
    what.name = name;
    char by[128];
    (void)query_who(by, sizeof by);
    what.by = by;
    request.what_case = RH__ADMIN__WHAT_REMOVE;
    request.remove = &what;
    Rh__AdminReply *reply =
        query_number_wish(&q, &what.wish, &what.seen) ? query_ask(&q, &request) : NULL;
    if (reply == NULL) {
        return 1;
    }
    (void)printf("%s\n", reply->text);
    admin_free(reply);
    return 0;
}
