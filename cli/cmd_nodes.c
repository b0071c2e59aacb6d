/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold node list`, `drain`, `remove` and `weight`.
 */
#include "cli/cmd_nodes.h"

#include "cli/drain_watch.h"
#include "cli/query.h"
#include "ring/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MAX_S = 86400 };

/* "3 0.1, 5 0": of which kinds it takes less than by its weight. */
static void parts_text(const Rh__NodeRow *n, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < n->n_parts && used < size; i++) {
        const int more = snprintf(text + used,
                                  size - used,
                                  "%s%u %g",
                                  used == 0 ? "" : ", ",
                                  n->parts[i]->kind,
                                  n->parts[i]->permille / 1000.0);

        used += more < 0 ? size : (size_t)more;
    }
}

int cmd_node_list(int argc, char **argv)
{
    static const char *const columns[] = {"NODE",
                                          "STATE",
                                          "ROLE",
                                          "ZONE",
                                          "+SLOT",
                                          "WEIGHT",
                                          "VNODES",
                                          "ACTORS",
                                          "+REQUESTS=requests_s",
                                          "P99=p99_us",
                                          "+QUEUE=waiting",
                                          "LEASE=lease_ms_left",
                                          "+LEAST LEASE=least_ms",
                                          "HEARD=heard_ms_ago",
                                          "+GATED",
                                          "+PARKED",
                                          "+UNSAID",
                                          "+CLOCK",
                                          "+INCARNATION",
                                          "PARTS",
                                          "ADDRESS",
                                          NULL};
    struct query q;
    const struct command command = {
        .name = "node list",
        .summary = "List every node: address, state, weight, vnodes, actors, lease.",
        .arguments = "",
        .details = "P99: as `ringhold status` tells it.",
        .options = query_options(&q, NULL),
    };
    const int code = query_parse(&q, &command, argc, argv);
    char parts[512];
    char ago[32];
    struct rows r;

    if (code >= 0) {
        return code;
    }
    Rh__AdminNodes what = RH__ADMIN_NODES__INIT;
    Rh__AdminReply *reply = query_ask(&q, &what.base);
    if (reply == NULL) {
        return 1;
    }
    rows_init(&r, columns);
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        rows_text(&r, "%s", n->member->name);
        rows_text(&r, "%s", n->state);
        rows_text(&r, "%s", role_text(n->member->role));
        rows_text(&r, "%s", n->zone);
        rows_number(&r, n->member->slot);
        rows_number(&r, n->member->weight);
        rows_number(&r, n->vnodes);
        rows_number(&r, n->actors);
        rows_rate(&r, n->requests_known, n->requests_s);
        rows_us_known(&r, n->p99_us);
        rows_number(&r, n->waiting);
        rows_ms(&r, n->lease_us_left / 1000);
        rows_ms(&r, n->lease_least_us / 1000);
        rows_figure(
            &r, n->heard_us_ago / 1000, "%s ago", ms_text(n->heard_us_ago / 1000, ago, sizeof ago));
        rows_number(&r, n->lease_gated);
        rows_number(&r, n->leaseless_total);
        rows_number(&r, n->gate_dropped);
        rows_text(&r, "%+.1f%%", n->clock_parts / 10.0);
        rows_stamp(&r, n->member->incarnation);
        parts_text(n, parts, sizeof parts);
        rows_text(&r, "%s", parts);
        rows_text(&r, "%s", n->member->address);
    }
    query_print(&q, &r);
    admin_free(reply);
    return 0;
}

/* The exit code. `deadline`: who isn't empty by then keeps what it has. */
static int watch_drain(const struct query *q, char *name, uint32_t wait_s, bool deadline)
{
    const enum drain_end end = drain_watch(q, name, wait_s);

    if (end == DRAIN_NOT_YET && deadline) {
        (void)fprintf(stderr, "%s isn't empty after %u s: the drain is cancelled\n", name, wait_s);
        if (!drain_wish(q, name, true)) {
            return 1;
        }
    }
    return drain_exit_code(end);
}

static struct option seconds_option(const char *key, uint32_t *seconds, const char *help)
{
    struct option o = option_number(key, seconds, (struct option_range){1, WAIT_MAX_S}, help);

    o.value = "SECONDS";
    return o;
}

int cmd_node_drain(int argc, char **argv)
{
    struct query q;
    uint32_t wait_s = 0;
    uint32_t deadline_s = 0;
    bool watch = false;
    const struct option more[] = {
        option_switch(
            "watch", &watch, "show the drain until the node is empty; ^C only stops showing it"),
        seconds_option(
            "wait",
            &wait_s,
            "like --watch, for at most this long; exit code 3 if it is not empty by then"),
        seconds_option(
            "deadline", &deadline_s, "like --wait, but cancel the drain then; also exit code 3"),
        query_reason(&q),
    };
    const struct command command = {
        .name = "node drain",
        .summary = "Move everything off a node. Its process goes on, empty, until it is stopped.",
        .arguments = "NAME [cancel]",
        .details = "`ringhold node drain NAME cancel` cancels the drain, also when the node is "
                   "already empty. A\n"
                   "second `ringhold node drain NAME` changes nothing: with --watch it shows the "
                   "drain in progress.\n"
                   "Exit code: 0 done, 3 not in time, 130 watching was stopped by ^C, 1 an error.",
        .options = query_options_more(&q, more, sizeof more / sizeof more[0]),
        .arguments_min = 1,
        .arguments_max = 2,
    };
    const int code = query_parse(&q, &command, argc, argv);
    char name[64];

    if (code >= 0) {
        return code;
    }
    const bool cancel = q.argument_count == 2;
    if (cancel && strcmp(q.arguments[1], "cancel") != 0) {
        (void)fprintf(
            stderr,
            "ringhold node drain: unknown argument '%s'; only `cancel` may follow the name\n",
            q.arguments[1]);
        return 1;
    }
    if (wait_s != 0 && deadline_s != 0) {
        (void)fprintf(stderr, "ringhold node drain: give --wait or --deadline, not both\n");
        return 1;
    }
    (void)snprintf(name, sizeof name, "%s", q.arguments[0]);
    if (!drain_wish(&q, name, cancel)) {
        return 1;
    }
    if (cancel) {
        query_next(
            &q,
            "it gets its share again, as far as that has gone: `ringhold node wait %s` waits "
            "for it",
            name);
        return 0;
    }
    if (!watch && wait_s == 0 && deadline_s == 0) {
        query_next(&q,
                   "others take what it has; `ringhold node drain %s --watch` shows it, `ringhold "
                   "node drain %s cancel` undoes it",
                   name,
                   name);
        return 0;
    }
    return watch_drain(&q, name, deadline_s != 0 ? deadline_s : wait_s, deadline_s != 0);
}

bool node_remove_wish(const struct query *q, const char *node, const char *successor)
{
    Rh__AdminRemove what = RH__ADMIN_REMOVE__INIT;
    char name[64];

    (void)snprintf(name, sizeof name, "%s", node);
    what.name = name;
    what.by = query_who();
    what.reason = proto_text(q->reason);
    what.successor = proto_text(successor);
    return query_number_wish(q, &what.wish, &what.seen) && query_do(q, &what.base, NULL);
}

int cmd_node_remove(int argc, char **argv)
{
    struct query q;
    const struct option reason = query_reason(&q);
    const struct command command = {
        .name = "node remove",
        .summary = "Take a node out of the fleet: a live one is drained first, then it exits.",
        .arguments = "NAME",
        .details = "If it dies before it is empty, other nodes get its ids once its lease has "
                   "ended, and it is\n"
                   "forgotten then; `ringhold events` tells what became of it.",
        .options = query_options(&q, &reason),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    if (!node_remove_wish(&q, q.arguments[0], "")) {
        return 1;
    }
    query_next(
        &q,
        "a live node is drained and its process ends, a dead one's name is forgotten at once; "
        "`ringhold status --watch` shows it");
    return 0;
}

int cmd_node_weight(int argc, char **argv)
{
    struct query q;
    const struct option reason = query_reason(&q);
    const struct command command = {
        .name = "node weight",
        .summary = "Change a node's share of the ids, relative to the others, while it runs.",
        .arguments = "NAME WEIGHT",
        .details =
            "WEIGHT is 1 to 1000. The process brings its own `weight` when it starts again: change "
            "that too.\n`ringhold ring --diff weight NAME WEIGHT` shows first what would move.",
        .options = query_options(&q, &reason),
        .arguments_min = 2,
        .arguments_max = 2,
    };
    const int code = query_parse(&q, &command, argc, argv);
    Rh__AdminWeight what = RH__ADMIN_WEIGHT__INIT;
    char name[64];

    if (code >= 0) {
        return code;
    }
    if (!query_number("node weight",
                      "WEIGHT",
                      q.arguments[1],
                      (struct option_range){1, VIEW_WEIGHT_MAX},
                      &what.weight)) {
        return 1;
    }
    (void)snprintf(name, sizeof name, "%s", q.arguments[0]);
    what.name = name;
    what.by = query_who();
    what.reason = q.reason;
    char text[128];
    (void)snprintf(text, sizeof text, "%s has weight %" PRIu32, name, what.weight);
    if (!query_number_wish(&q, &what.wish, &what.seen) || !query_do(&q, &what.base, text)) {
        return 1;
    }
    query_next(&q,
               "vnodes move until each node has its share; `ringhold node wait %s` waits for it, "
               "`ringhold txn list` shows the moves",
               name);
    return 0;
}
