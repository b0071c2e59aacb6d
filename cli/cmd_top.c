/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold top`: the actors that are slow, busy or have most requests waiting.
 */
#include "base/clock.h"
#include "cli/actor_word.h"
#include "cli/check/collector.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/top_kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHOWN_MAX = 1000 };

/* One row of one node. */
struct hot_row {
    const Rh__InspectAnswer *node;
    const Rh__HotRow *row;
};

static int rank(const char *what)
{
    static const char *const order[] = {"runs", "deferred", "busy", "waiting"};
    int at = 0;

    while (at < 4 && strcmp(what, order[at]) != 0) {
        at++;
    }
    return at;
}

/* By what it is, the greatest first. */
static int compare(const void *left, const void *right)
{
    const Rh__HotRow *a = ((const struct hot_row *)left)->row;
    const Rh__HotRow *b = ((const struct hot_row *)right)->row;
    const int by = rank(a->what) - rank(b->what);

    if (by != 0) {
        return by;
    }
    if (a->us != b->us) {
        return a->us > b->us ? -1 : 1;
    }
    return a->count == b->count ? 0 : a->count > b->count ? -1 : 1;
}

static size_t collect(const struct collection *s, struct hot_row out[SHOWN_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < s->process_count; i++) {
        const Rh__InspectAnswer *p = s->process[i];

        for (size_t j = 0; j < p->n_hot && count < SHOWN_MAX; j++) {
            out[count++] = (struct hot_row){p, p->hot[j]};
        }
    }
    qsort(out, count, sizeof *out, compare);
    return count;
}

static void print_hot(const struct query *q, const struct hot_row *hot, size_t count)
{
    static const char *const columns[] = {
        "WHAT", "NODE", "WORKER", "ACTOR", "TIME=us", "COUNT", NULL};
    static const char *const json_columns[] = {
        "WHAT", "NODE", "WORKER", "ACTOR", "KIND", "ID", "TIME=us", "COUNT", NULL};
    struct rows r;

    rows_init(&r, q->json ? json_columns : columns);
    for (size_t i = 0; i < count; i++) {
        const Rh__HotRow *row = hot[i].row;

        rows_text(&r, "%s", row->what);
        rows_text(&r, "%s", hot[i].node->name);
        rows_number(&r, row->worker);
        actor_cells(&r, q->json, row->kind, bytes_of(row->id.data, row->id.len));
        rows_us(&r, row->us);
        rows_number(&r, row->count);
    }
    query_print(q, &r);
}

static void print_calls(const struct query *q, const struct collection *s)
{
    static const char *const columns[] = {"NODE",
                                          "REQUESTS",
                                          "IN FLIGHT",
                                          "WAITING",
                                          "RESENT",
                                          "REPLIED",
                                          "UNKNOWN",
                                          "TIMEOUT",
                                          "REJECTED",
                                          "OVERLOADED",
                                          NULL};
    struct rows r;

    rows_init(&r, columns);
    for (size_t i = 0; i < s->process_count; i++) {
        const Rh__CallsRow *c = s->process[i]->calls;

        if (c != NULL) {
            rows_text(&r, "%s", s->process[i]->name);
            rows_number(&r, c->requests);
            rows_number(&r, c->in_flight);
            rows_number(&r, c->waiting);
            rows_number(&r, c->resent);
            rows_number(&r, c->replied);
            rows_number(&r, c->unknown);
            rows_number(&r, c->timeout);
            rows_number(&r, c->rejected);
            rows_number(&r, c->overloaded);
        }
    }
    query_print(q, &r);
}

/* The slowest first. */
static int compare_nodes(const void *left, const void *right)
{
    const Rh__NodeRow *a = *(Rh__NodeRow *const *)left;
    const Rh__NodeRow *b = *(Rh__NodeRow *const *)right;

    if (a->p99_us != b->p99_us) {
        return a->p99_us > b->p99_us ? -1 : 1;
    }
    if (a->waiting != b->waiting) {
        return a->waiting > b->waiting ? -1 : 1;
    }
    return strcmp(a->member->name, b->member->name);
}

/* As the leader knows them. */
static int show_nodes(const struct query *q)
{
    static const char *const columns[] = {"NODE",
                                          "STATE",
                                          "REQUESTS=requests_s",
                                          "P99=p99_us",
                                          "QUEUE=waiting",
                                          "HELD",
                                          "ACTORS",
                                          "ROLE",
                                          NULL};
    Rh__AdminNodes what = RH__ADMIN_NODES__INIT;
    Rh__AdminReply *reply = query_ask(q, &what.base);
    struct rows r;

    if (reply == NULL) {
        return 1;
    }
    if (reply->n_nodes > 1) {
        qsort(reply->nodes, reply->n_nodes, sizeof(Rh__NodeRow *), compare_nodes);
    }
    rows_init(&r, columns);
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        rows_text(&r, "%s", n->member->name);
        rows_text(&r, "%s", n->state);
        rows_rate(&r, n->requests_known, n->requests_s);
        rows_us_known(&r, n->p99_us);
        rows_number(&r, n->waiting);
        rows_number(&r, n->held);
        rows_number(&r, n->actors);
        rows_text(&r, "%s", role_text(n->member->role));
    }
    query_print(q, &r);
    admin_free(reply);
    return 0;
}

static bool any_answered(const struct collection *s)
{
    for (size_t i = 0; i < s->coordinator_count; i++) {
        if (s->coordinator[i].reply != NULL) {
            return true;
        }
    }
    return false;
}

/* All processes twice, so long apart. */
static int show_kinds(const struct query *q, uint32_t for_ms)
{
    const struct timespec pause = {for_ms / 1000, (long)(for_ms % 1000) * 1000000};
    const struct admin_where where = query_where(q);
    struct collector *v = collector_new(&where);
    struct collection before = {0};
    struct collection after = {0};

    if (v == NULL) {
        return 1;
    }
    collector_ask(v, q->timeout_ms, &before);
    const uint64_t from_us = clock_boottime_us();
    if (any_answered(&before)) {
        (void)nanosleep(&pause, NULL);
        collector_ask(v, q->timeout_ms, &after);
    }
    const bool answered = any_answered(&after);
    if (answered) {
        top_kinds_print(q, &before, &after, clock_boottime_us() - from_us);
    } else {
        (void)fprintf(stderr, "ringhold top: no coordinator answers at %s\n", q->coordinators);
    }
    collection_fini(&before);
    collection_fini(&after);
    collector_free(v);
    return answered ? 0 : 1;
}

static int ask(const struct query *q, bool calls)
{
    static struct hot_row hot[SHOWN_MAX];
    const struct admin_where where = query_where(q);
    struct collector *v = collector_new(&where);
    struct collection s = {0};

    if (v == NULL) {
        return 1;
    }
    collector_ask(v, q->timeout_ms, &s);
    const bool answered = any_answered(&s);
    if (answered && calls) {
        print_calls(q, &s);
    } else if (answered) {
        print_hot(q, hot, collect(&s, hot));
    } else {
        (void)fprintf(stderr, "ringhold top: no coordinator answers at %s\n", q->coordinators);
    }
    collection_fini(&s);
    collector_free(v);
    return answered ? 0 : 1;
}

int cmd_top(int argc, char **argv)
{
    bool hot = false;
    bool calls = false;
    bool nodes = false;
    bool kinds = false;
    uint32_t for_ms = 5000;
    struct query q;
    const struct option views[] = {
        option_switch("hot", &hot, "the actors that cost most; this is the default"),
        option_switch(
            "calls", &calls, "the calls that the actors of each node made to other actors"),
        option_switch("nodes", &nodes, "the nodes, the slowest first"),
        option_switch("kinds", &kinds, "how long requests of each kind take, in all nodes"),
        option_time(
            "for", &for_ms, (struct option_range){100, 60000}, "with --kinds: look so long (5s)"),
    };
    const struct command command = {
        .name = "top",
        .summary = "Which actors, or nodes, are slow, busy, or have most requests waiting?",
        .arguments = "",
        .details =
            "--hot:\n"
            "runs      its handler has been running for TIME\n"
            "deferred  COUNT messages are answered later, the oldest has waited TIME\n"
            "busy      took TIME of its worker's last 5 to 10 seconds, in COUNT tasks\n"
            "waiting   COUNT requests are in its mailbox\n"
            "--calls, for each node since it registered:\n"
            "WAITING of those IN FLIGHT have no owner or link yet; RESENT are copies after\n"
            "the first. REPLIED have ended: UNKNOWN to OVERLOADED of them without an answer.\n"
            "--nodes, as the leader knows it, of the last five seconds:\n"
            "REQUESTS came to the node in a second; 99 of 100 that its actors answered took P99 "
            "at\n"
            "most there. QUEUE wait now, for their actors or for a move; HELD are those for a "
            "move.\n"
            "--kinds, of the time --for:\n"
            "REQUESTS were answered by actors in a second; half of them took P50 at most from when "
            "they\n"
            "came to a node, and 99 of 100 P99. \"other\" are the kinds beyond a node's first 16.",
        .options = query_options_more(&q, views, 5),
    };
    const int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    if (hot + calls + nodes + kinds > 1) {
        (void)fprintf(stderr, "ringhold top: give one of --hot, --calls, --nodes and --kinds\n");
        return 1;
    }
    if (kinds) {
        return show_kinds(&q, for_ms);
    }
    return nodes ? show_nodes(&q) : ask(&q, calls);
}
