/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold node wait`: returns when a node has its share of the ids.
 */
#include "base/clock.h"
#include "cli/cmd_nodes.h"
#include "cli/query.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    WAIT_S = 60,
    REGISTER_S = 15,
    WAIT_MAX_S = 86400,
    LOOK_AGAIN_MS = 200,
    TEXT_SIZE = 160,
    EXIT_NOT_YET = 3
};

/* NULL: no node of that name has ever registered, or it was removed. */
static const Rh__NodeRow *find(const Rh__AdminReply *reply, const char *name)
{
    const Rh__NodeRow *row = NULL;

    for (size_t i = 0; i < reply->n_nodes; i++) {
        if (strcmp(reply->nodes[i]->member->name, name) == 0) {
            row = reply->nodes[i];
        }
    }
    return row;
}

/* What there is still to wait for; "" = nothing. */
static void what_lacks(const Rh__AdminReply *reply, const char *name, uint64_t above,
                       char out[TEXT_SIZE])
{
    const Rh__NodeRow *row = find(reply, name);

    out[0] = '\0';
    if (row == NULL) {
        (void)snprintf(out, TEXT_SIZE, "%s has not registered", name);
    } else if (row->member->incarnation <= above) {
        (void)snprintf(out, TEXT_SIZE, "%s is still the former process, and %s", name, row->state);
    } else if (strcmp(row->state, "live") != 0) {
        (void)snprintf(out, TEXT_SIZE, "%s is %s", name, row->state);
    } else if (row->vnodes == 0) {
        (void)snprintf(out, TEXT_SIZE, "%s has no vnodes yet", name);
    } else if (reply->pending + reply->planned > 0) {
        (void)snprintf(out,
                       TEXT_SIZE,
                       "%u transactions are in progress, %u planned",
                       reply->pending,
                       reply->planned);
    } else if (reply->planning) {
        (void)snprintf(out, TEXT_SIZE, "the moves are not planned yet");
    }
}

/* What the waiting has come to. */
struct node_waiting {
    const struct query *q;
    const char *name;
    uint64_t above;
    uint32_t wait_s;
    bool known;            /* the fleet has such a node */
    bool told;             /* that it has none */
    char lacks[TEXT_SIZE]; /* "" = it is done */
};

static void show(const struct node_waiting *w)
{
    if (isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\r\033[K%s", w->lacks);
    }
}

/* Once, at the first look: a name that nobody has may be a typing error. */
static void tell_unknown(struct node_waiting *w, const Rh__AdminReply *reply, uint32_t register_s)
{
    if (w->known || w->told || register_s >= w->wait_s) {
        return;
    }
    w->told = true;
    (void)fprintf(stderr,
                  "ringhold: waiting for node '%s' to register, for %u s at most; known are",
                  w->name,
                  register_s);
    for (size_t i = 0; i < reply->n_nodes; i++) {
        (void)fprintf(stderr, " %s", reply->nodes[i]->member->name);
    }
    (void)fprintf(stderr, reply->n_nodes == 0 ? " none\n" : "\n");
}

static void look(struct node_waiting *w, struct admin *admin, uint32_t register_s)
{
    Rh__AdminStatus what = RH__ADMIN_STATUS__INIT;

    Rh__AdminReply *reply = admin_ask(admin, &what.base, w->q->timeout_ms);
    if (reply != NULL) {
        w->known = w->known || find(reply, w->name) != NULL;
        what_lacks(reply, w->name, w->above, w->lacks);
        tell_unknown(w, reply, register_s);
        admin_free(reply);
    }
}

/* The exit code, after saying what is still missing. */
static int end(const struct node_waiting *w, uint32_t register_s)
{
    if (isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\r\033[K");
    }
    if (w->lacks[0] == '\0') {
        return 0;
    }
    if (w->told && !w->known) {
        (void)fprintf(stderr,
                      "ringhold: no node '%s' has registered within %u s: check its name, or start "
                      "it; --register SECONDS waits longer\n",
                      w->name,
                      register_s);
        return 1;
    }
    (void)fprintf(stderr, "ringhold: after %u s: %s\n", w->wait_s, w->lacks);
    return EXIT_NOT_YET;
}

int node_wait(const struct query *q, const char *name, uint64_t above, uint32_t wait_s,
              uint32_t register_s)
{
    const uint64_t begin_us = clock_boottime_us();
    const struct timespec pause = {.tv_nsec = (long)LOOK_AGAIN_MS * 1000000};
    const struct admin_where where = query_where(q);
    struct admin *admin = admin_open(&where);
    struct node_waiting w = {
        .q = q, .name = name, .above = above, .wait_s = wait_s, .lacks = "no coordinator answers"};

    if (admin == NULL) {
        return 1;
    }
    for (;;) {
        look(&w, admin, register_s);
        const uint64_t gone_us = clock_boottime_us() - begin_us;
        const bool hopeless = w.told && !w.known && gone_us >= (uint64_t)register_s * 1000000;

        if (w.lacks[0] == '\0' || hopeless || gone_us >= (uint64_t)wait_s * 1000000) {
            break;
        }
        show(&w);
        (void)nanosleep(&pause, NULL);
    }
    admin_close(admin);
    return end(&w, register_s);
}

int cmd_node_wait(int argc, char **argv)
{
    struct query q;
    uint32_t wait_s = WAIT_S;
    uint32_t register_s = REGISTER_S;
    char text[TEXT_SIZE];
    const struct option_range range = {1, WAIT_MAX_S};
    struct option more[] = {
        option_number(
            "wait", &wait_s, range, "time limit (%); exit code 3 if it is not done by then"),
        option_number("register",
                      &register_s,
                      range,
                      "time limit for a node that the fleet does not know (%); then exit code 1"),
    };
    more[0].value = "SECONDS";
    more[1].value = "SECONDS";
    const struct command command = {
        .name = "node wait",
        .summary = "Wait until a node serves its share and nothing moves any more.",
        .arguments = "NAME",
        .details = "For rolling restarts: stop a node, start it, wait for it, continue with the "
                   "next one.\n"
                   "A node that the fleet knows, a dead one too, is waited for until --wait is "
                   "over; a name "
                   "that\nno node has must be registered by a process within --register.",
        .options = query_options_more(&q, more, 2),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    const int waited = node_wait(&q, q.arguments[0], 0, wait_s, register_s);
    if (waited == 0) {
        (void)snprintf(text, sizeof text, "%.64s has its share, and nothing moves", q.arguments[0]);
        query_say(&q, text);
    }
    return waited;
}
