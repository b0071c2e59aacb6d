/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold node add` and `node replace`: a node is started, and waited for.
 */
#include "base/clock.h"
#include "cli/cmd_nodes.h"
#include "cli/drain_watch.h"
#include "cli/query.h"
#include "cli/shell_command.h"
#include "ring/view.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DEADLINE_S = 600, DEADLINE_MAX_S = 86400, LOOK_AGAIN_MS = 200, EXIT_NOT_YET = 3 };

struct coming {
    struct query q;
    char template[SHELL_COMMAND_MAX];
    char host[VIEW_ADDRESS_MAX + 1];
    uint32_t deadline_s;
};

/* What is to be known of a node; `there` false: it is no member. */
struct member_row {
    bool there;
    bool live;
    char role[64];
};

/* False after printing why. */
static bool look(const struct query *q, const char *name, struct member_row *out)
{
    Rh__AdminNodes what = RH__ADMIN_NODES__INIT;

    Rh__AdminReply *reply = query_ask(q, &what.base);
    *out = (struct member_row){.there = false};
    for (size_t i = 0; reply != NULL && i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        if (strcmp(n->member->name, name) == 0) {
            out->there = true;
            out->live = strcmp(n->state, "live") == 0;
            (void)snprintf(out->role, sizeof out->role, "%s", n->member->role);
        }
    }
    admin_free(reply);
    return reply != NULL;
}

/* By the command, if there is one: else somebody else starts it. 0, or the exit code. */
static int start(const struct coming *c, const char *name)
{
    char command[SHELL_COMMAND_MAX];
    char address[VIEW_ADDRESS_MAX + 8];
    char why[SHELL_COMMAND_MAX];

    if (c->template[0] == '\0') {
        (void)printf("start %s now, if it does not run yet\n", name);
        (void)fflush(stdout);
        return 0;
    }
    (void)snprintf(address, sizeof address, "%s:0", c->host[0] == '\0' ? name : c->host);
    const struct shell_words words = {.node = name, .address = address};
    if (!shell_command_fill(c->template, &words, command, why, sizeof why)) {
        (void)fprintf(stderr, "ringhold: --command: %s\n", why);
        return 1;
    }
    (void)printf("%s: %s\n", name, command);
    (void)fflush(stdout);
    const int code = shell_command_run(command, c->deadline_s);
    if (code > 0) {
        (void)fprintf(stderr, "ringhold: the command ended with exit code %d\n", code);
    }
    return code == 0 ? 0 : 1;
}

/* Until it is a live member; its share may come later. */
static int wait_there(const struct coming *c, const char *name, struct member_row *out)
{
    const struct timespec pause = {.tv_nsec = (long)LOOK_AGAIN_MS * 1000000};
    const uint64_t end_us = clock_boottime_us() + (uint64_t)c->deadline_s * 1000000;

    for (;;) {
        if (!look(&c->q, name, out)) {
            return 1;
        }
        if (out->live) {
            return 0;
        }
        if (clock_boottime_us() >= end_us) {
            (void)fprintf(stderr,
                          "ringhold: after %u s: %s %s\n",
                          c->deadline_s,
                          name,
                          out->there ? "is not live" : "has not registered");
            return EXIT_NOT_YET;
        }
        (void)nanosleep(&pause, NULL);
    }
}

static int add(struct coming *c, const char *name)
{
    struct member_row node;

    if (!look(&c->q, name, &node)) {
        return 1;
    }
    if (node.live) {
        (void)printf("%s exists already\n", name);
    }
    const int code = node.live ? 0 : start(c, name);
    return code != 0 ? code : node_wait(&c->q, name, 0, c->deadline_s, c->deadline_s);
}

/* The leader plans anew when the old one is to leave: what has not gone to the new one by then goes
 * there from the old one, whose share that is. */
static int replace(struct coming *c, const char *old, const char *new)
{
    struct member_row former;
    struct member_row latter;

    if (strcmp(old, new) == 0) {
        (void)fprintf(stderr,
                      "ringhold node replace: %s can't replace itself; `ringhold node remove` "
                      "removes it, `ringhold rolling-restart` restarts it\n",
                      old);
        return 1;
    }
    if (!look(&c->q, old, &former) || !look(&c->q, new, &latter)) {
        return 1;
    }
    if (!former.there) {
        (void)fprintf(stderr,
                      "ringhold node replace: unknown node '%s': `ringhold node list` lists them\n",
                      old);
        return 1;
    }
    int code = latter.live ? 0 : start(c, new);
    code = code != 0 ? code : wait_there(c, new, &latter);
    if (code != 0) {
        return code;
    }
    if (strcmp(former.role, latter.role) != 0) {
        (void)fprintf(stderr,
                      "ringhold node replace: %s has the role %s, %s has %s; nothing was removed\n",
                      old,
                      role_text(former.role),
                      new,
                      role_text(latter.role));
        return 1;
    }
    if (!node_remove_wish(&c->q, old, new)) {
        return 1;
    }
    code = drain_exit_code(drain_watch(&c->q, old, c->deadline_s));
    return code != 0 ? code : node_wait(&c->q, new, 0, c->deadline_s, c->deadline_s);
}

static int run(int argc, char **argv, bool replaces)
{
    struct coming c = {.deadline_s = DEADLINE_S};
    struct option deadline = option_number("deadline",
                                           &c.deadline_s,
                                           (struct option_range){1, DEADLINE_MAX_S},
                                           "time limit of each step (%)");
    deadline.value = "SECONDS";
    const struct option more[] = {
        option_text(
            "command",
            "TEMPLATE",
            c.template,
            sizeof c.template,
            "command that starts the new node: {node} and {host} are the new node's, quoted"),
        option_text(
            "host", "HOST", c.host, sizeof c.host, "host of the new node, for {host} (its name)"),
        deadline,
        query_reason(&c.q),
    };
    const struct command command = {
        .name = replaces ? "node replace" : "node add",
        .summary = replaces ? "Start a node and remove another one, whose share it takes."
                            : "Start a node, and wait until it has its share of the ids.",
        .arguments = replaces ? "OLD NEW" : "NAME",
        .details = replaces ? "OLD is removed as soon as NEW has registered, so most of its ids go "
                              "to NEW at once. Both must have\nthe same role. Exit code: 0 OLD is "
                              "empty and NEW has its share, 3 not in time, 130 ^C, 1 an error."
                            : "Without --command you start the node yourself. `ringhold ring "
                              "--diff add NAME` shows what will move.\nExit code: 0 the node has "
                              "its share, 3 not in time, 1 an error.",
        // Nothing of the fleet is changed by hand where a node is only started.
        .options = query_options_more(&c.q, more, sizeof more / sizeof more[0] - !replaces),
        .arguments_min = replaces ? 2 : 1,
        .arguments_max = replaces ? 2 : 1,
    };
    const int code = query_parse(&c.q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    return replaces ? replace(&c, c.q.arguments[0], c.q.arguments[1]) : add(&c, c.q.arguments[0]);
}

int cmd_node_add(int argc, char **argv)
{
    return run(argc, argv, false);
}

int cmd_node_replace(int argc, char **argv)
{
    return run(argc, argv, true);
}
