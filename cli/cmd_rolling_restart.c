/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold rolling-restart`: nodes are drained, restarted and waited for, one
 * after the other.
 *
 *     for each node whose process is older than --since:
 *         drain it, with the bar    -not in time: taken back-> stop, exit 3
 *         run the command           -it fails: taken back-> stop, exit 1
 *         a new process registers, its drain is taken back, it has its share again
 *                                   -not in time-> stop, exit 3
 *
 * Nothing is written down: incarnations come from the fleet's one counter, so
 * what has started since a number is known to it.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "cli/cmd_nodes.h"
#include "cli/commands.h"
#include "cli/drain_watch.h"
#include "cli/query.h"
#include "cli/shell_command.h"
#include "ring/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DEADLINE_S = 600, DEADLINE_MAX_S = 86400, LOOK_AGAIN_MS = 200, EXIT_NOT_YET = 3 };

struct rollout {
    struct query q;
    char template[SHELL_COMMAND_MAX];
    char role[RING_ROLE_MAX + 1];
    char since[24];
    uint64_t since_number;
    uint32_t deadline_s;
    bool systemd;
    bool dry_run;
};

/* One node, as it was at first. */
struct restart_target {
    char name[VIEW_NAME_MAX + 1];
    char address[VIEW_ADDRESS_MAX + 1];
    char command[SHELL_COMMAND_MAX];
    uint64_t incarnation;
    uint64_t actors;
    uint32_t vnodes;
    const char *skipped; /* why; NULL = it is to be restarted */
};

/* ---- what is to be done ---- */

static Rh__AdminReply *ask_nodes(const struct query *q)
{
    Rh__AdminNodes what = RH__ADMIN_NODES__INIT;

    return query_ask(q, &what.base);
}

static const Rh__NodeRow *find(const Rh__AdminReply *reply, const char *name)
{
    for (size_t i = 0; i < reply->n_nodes; i++) {
        if (strcmp(reply->nodes[i]->member->name, name) == 0) {
            return reply->nodes[i];
        }
    }
    return NULL;
}

static bool is_wanted(const struct rollout *r, const Rh__NodeRow *n)
{
    if (r->role[0] != '\0' && strcmp(role_text(n->member->role), r->role) != 0) {
        return false;
    }
    for (int i = 0; i < r->q.argument_count; i++) {
        if (strcmp(r->q.arguments[i], n->member->name) == 0) {
            return true;
        }
    }
    return r->q.argument_count == 0;
}

static const char *why_skipped(const struct rollout *r, const Rh__NodeRow *n)
{
    if (n->member->incarnation > r->since_number) {
        return "restarted since";
    }
    return strcmp(n->state, "live") == 0 || strcmp(n->state, "leaving") == 0
               ? NULL
               : "it is not live: see `ringhold node list`";
}

/* False after printing what is wrong with the command. */
static bool take(const struct rollout *r, const Rh__NodeRow *n, struct restart_target *t)
{
    char why[SHELL_COMMAND_MAX];

    *t = (struct restart_target){.incarnation = n->member->incarnation,
                                 .actors = n->actors,
                                 .vnodes = n->vnodes,
                                 .skipped = why_skipped(r, n)};
    (void)snprintf(t->name, sizeof t->name, "%s", n->member->name);
    (void)snprintf(t->address, sizeof t->address, "%s", n->member->address);
    const struct shell_words words = {.node = t->name, .address = t->address};
    if (!shell_command_fill(r->template, &words, t->command, why, sizeof why)) {
        (void)fprintf(stderr, "ringhold rolling-restart: --command: %s\n", why);
        return false;
    }
    return true;
}

/* Owned, mem_free(); NULL after printing why. */
static struct restart_target *choose(struct rollout *r, size_t *count)
{
    Rh__AdminReply *reply = ask_nodes(&r->q);
    bool good = reply != NULL;

    *count = 0;
    if (!good) {
        return NULL;
    }
    r->since_number = r->since[0] == '\0' ? reply->number : r->since_number;
    for (int i = 0; i < r->q.argument_count; i++) {
        if (find(reply, r->q.arguments[i]) == NULL) {
            (void)fprintf(
                stderr,
                "ringhold rolling-restart: unknown node '%s': `ringhold node list` lists them\n",
                r->q.arguments[i]);
            good = false;
        }
    }
    struct restart_target *targets = mem_new(reply->n_nodes + 1, sizeof *targets);
    for (size_t i = 0; i < reply->n_nodes && good; i++) {
        if (is_wanted(r, reply->nodes[i])) {
            good = take(r, reply->nodes[i], &targets[(*count)++]);
        }
    }
    admin_free(reply);
    if (!good) {
        mem_free(targets);
        return NULL;
    }
    return targets;
}

static void print_plan(const struct rollout *r, const struct restart_target *targets, size_t count)
{
    static const char *const columns[] = {
        "NODE", "ADDRESS", "VNODES", "ACTORS", "DO", "COMMAND", NULL};
    struct rows rows;

    rows_init(&rows, columns);
    for (size_t i = 0; i < count; i++) {
        const struct restart_target *t = &targets[i];

        rows_text(&rows, "%s", t->name);
        rows_text(&rows, "%s", t->address);
        rows_number(&rows, t->vnodes);
        rows_number(&rows, t->actors);
        rows_text(&rows, "%s", t->skipped == NULL ? "drain, restart, wait" : t->skipped);
        rows_text(&rows, "%s", t->skipped == NULL ? t->command : "");
    }
    query_print(&r->q, &rows);
}

/* ---- doing it ---- */

/* It is what it was before, as far as that can be. */
static void take_back(const struct rollout *r, const struct restart_target *t)
{
    (void)fprintf(stderr, "%s: its drain is cancelled\n", t->name);
    (void)drain_wish(&r->q, t->name, true);
}

/* 0, or the exit code. */
static int drain(const struct rollout *r, const struct restart_target *t)
{
    if (!drain_wish(&r->q, t->name, false)) {
        return 1;
    }
    const enum drain_end end = drain_watch(&r->q, t->name, r->deadline_s);

    if (end == DRAIN_NOT_YET) {
        (void)fprintf(stderr, "%s isn't empty after %u s\n", t->name, r->deadline_s);
        take_back(r, t);
    }
    return drain_exit_code(end);
}

static int restart(const struct rollout *r, const struct restart_target *t)
{
    (void)printf("%s: %s\n", t->name, t->command);
    (void)fflush(stdout);
    const int code = shell_command_run(t->command, r->deadline_s);

    if (code == 0) {
        return 0;
    }
    if (code > 0) {
        (void)fprintf(stderr, "%s: the command ended with exit code %d\n", t->name, code);
    }
    take_back(r, t);
    return 1;
}

/* A new process of it has registered. One that the old process' drain outlived is told to stay. */
static bool is_back(const struct rollout *r, const struct restart_target *t)
{
    Rh__AdminReply *reply = ask_nodes(&r->q);
    const Rh__NodeRow *n = reply == NULL ? NULL : find(reply, t->name);
    const bool back = n != NULL && n->member->incarnation > t->incarnation;
    const bool leaving = back && n->member->leaving;

    admin_free(reply);
    return back && (!leaving || drain_wish(&r->q, t->name, true));
}

/* It is still a member: what isn't can't be wished anything. */
static void give_up_on(const struct rollout *r, const struct restart_target *t)
{
    Rh__AdminReply *reply = ask_nodes(&r->q);
    const bool member = reply != NULL && find(reply, t->name) != NULL;

    (void)fprintf(
        stderr, "%s: no new process of it has registered within %u s\n", t->name, r->deadline_s);
    admin_free(reply);
    if (member) {
        take_back(r, t);
    }
}

static int wait_back(const struct rollout *r, const struct restart_target *t)
{
    const struct timespec pause = {.tv_nsec = (long)LOOK_AGAIN_MS * 1000000};
    const uint64_t end_us = clock_boottime_us() + (uint64_t)r->deadline_s * 1000000;

    while (!is_back(r, t)) {
        if (clock_boottime_us() >= end_us) {
            give_up_on(r, t);
            return EXIT_NOT_YET;
        }
        (void)nanosleep(&pause, NULL);
    }
    return node_wait(&r->q, t->name, t->incarnation, r->deadline_s, r->deadline_s);
}

static int roll(const struct rollout *r, const struct restart_target *t)
{
    int code = drain(r, t);

    code = code != 0 ? code : restart(r, t);
    code = code != 0 ? code : wait_back(r, t);
    if (code == 0) {
        (void)printf("%s: restarted, and has its share\n", t->name);
        (void)fflush(stdout);
    }
    return code;
}

static int roll_all(const struct rollout *r, const struct restart_target *targets, size_t count)
{
    size_t done = 0;
    int code = 0;

    (void)printf("since %" PRIu64 ": nodes that start from now on are not restarted again\n",
                 r->since_number);
    for (size_t i = 0; i < count && code == 0; i++) {
        if (targets[i].skipped != NULL) {
            (void)printf("%s: skipped: %s\n", targets[i].name, targets[i].skipped);
            continue;
        }
        code = roll(r, &targets[i]);
        done += code == 0;
    }
    (void)fflush(stdout);
    if (code != 0) {
        (void)fprintf(stderr,
                      "stopped after %zu nodes; the same command with --since %" PRIu64
                      " continues with the others\n",
                      done,
                      r->since_number);
    } else {
        (void)printf("%zu nodes restarted\n", done);
    }
    return code;
}

/* ---- the command ---- */

static bool check(struct rollout *r)
{
    char tail = 0;

    if (r->systemd && r->template[0] != '\0') {
        (void)fprintf(stderr,
                      "ringhold rolling-restart: --systemd stands for a --command of its own: give "
                      "one of them\n");
        return false;
    }
    if (r->systemd) {
        (void)snprintf(
            r->template, sizeof r->template, "ssh {host} systemctl restart ringhold-node.service");
    } else if (r->template[0] == '\0') {
        (void)fprintf(stderr,
                      "ringhold rolling-restart: say how to restart a node: --command 'ssh {host} "
                      "...' or --systemd\n");
        return false;
    }
    if (r->since[0] != '\0' &&
        (r->since[0] < '0' || r->since[0] > '9' ||
         sscanf(r->since, "%" SCNu64 "%c", &r->since_number, &tail) != 1)) { // NOLINT(cert-err34-c)
        (void)fprintf(
            stderr,
            "ringhold rolling-restart: --since needs the number that the first run printed\n");
        return false;
    }
    return true;
}

static int run(struct rollout *r)
{
    size_t count = 0;
    struct restart_target *targets = check(r) ? choose(r, &count) : NULL;
    int code = 1;

    if (targets != NULL && r->dry_run) {
        print_plan(r, targets, count);
        code = 0;
    } else if (targets != NULL) {
        code = roll_all(r, targets, count);
    }
    mem_free(targets);
    return code;
}

int cmd_rolling_restart(int argc, char **argv)
{
    struct rollout r = {.deadline_s = DEADLINE_S};
    struct option deadline =
        option_number("deadline",
                      &r.deadline_s,
                      (struct option_range){1, DEADLINE_MAX_S},
                      "time limit of each step of a node: drain, command, return (%)");
    deadline.value = "SECONDS";
    const struct option more[] = {
        option_text(
            "command",
            "TEMPLATE",
            r.template,
            sizeof r.template,
            "command that restarts a node: {node}, {host} and {address} are the node's, quoted"),
        option_switch("systemd",
                      &r.systemd,
                      "the same as --command 'ssh {host} systemctl restart ringhold-node.service'"),
        option_text("role", "NAME", r.role, sizeof r.role, "only nodes of this role"),
        option_text("since",
                    "NUMBER",
                    r.since,
                    sizeof r.since,
                    "continue an earlier run: skip nodes that have started since then"),
        option_switch("dry-run", &r.dry_run, "only print what would be done"),
        deadline,
        query_reason(&r.q),
    };
    const struct command command = {
        .name = "rolling-restart",
        .summary = "Restart the nodes, one after the other: drain, restart, wait until it serves.",
        .arguments = "[NODE...]",
        .details =
            "Restarts all nodes, or those named. It stops at the first node that fails; a drain "
            "that doesn't end in\n"
            "time is cancelled. ^C stops too, but the drain goes on. In each case the same command "
            "with --since\n"
            "continues. The last node of its role can't be drained: restart that one by hand.\n"
            "Exit code: 0 all restarted, 3 not in time, 130 stopped by ^C, 1 an error.",
        .options = query_options_more(&r.q, more, sizeof more / sizeof more[0]),
        .arguments_max = 8,
    };
    const int code = query_parse(&r.q, &command, argc, argv);

    if (r.q.reason[0] == '\0') {
        (void)snprintf(r.q.reason, sizeof r.q.reason, "rolling-restart");
    }
    return code >= 0 ? code : run(&r);
}
