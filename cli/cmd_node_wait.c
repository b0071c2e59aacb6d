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

enum { WAIT_S = 60, WAIT_MAX_S = 86400, LOOK_AGAIN_MS = 200, TEXT_SIZE = 160 };

/* What there is still to wait for; "" = nothing. */
static void what_lacks(const Rh__AdminReply *reply, const char *name, uint64_t above,
                       char out[TEXT_SIZE])
{
    const Rh__NodeRow *row = NULL;

    out[0] = '\0';
    for (size_t i = 0; i < reply->n_nodes; i++) {
        if (strcmp(reply->nodes[i]->member->name, name) == 0) {
            row = reply->nodes[i];
        }
    }
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

int node_wait(const struct query *q, const char *name, uint64_t above, uint32_t wait_s)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)wait_s * 1000000;
    const struct timespec pause = {.tv_nsec = (long)LOOK_AGAIN_MS * 1000000};
    const struct admin_where where = query_where(q);
    struct admin *admin = admin_open(&where);
    char lacks[TEXT_SIZE] = "no coordinator answers";

    while (admin != NULL && lacks[0] != '\0' && clock_boottime_us() < end_us) {
        Rh__AdminStatus what = RH__ADMIN_STATUS__INIT;

        Rh__AdminReply *reply = admin_ask(admin, &what.base, q->timeout_ms);
        if (reply != NULL) {
            what_lacks(reply, name, above, lacks);
            admin_free(reply);
        }
        if (lacks[0] != '\0') {
            if (isatty(STDERR_FILENO)) {
                (void)fprintf(stderr, "\r\033[K%s", lacks);
            }
            (void)nanosleep(&pause, NULL);
        }
    }
    if (isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\r\033[K");
    }
    if (admin != NULL && lacks[0] != '\0') {
        (void)fprintf(stderr, "ringhold: after %u s: %s\n", wait_s, lacks);
    }
    admin_close(admin);
    return admin == NULL ? 1 : (lacks[0] == '\0' ? 0 : 3);
}

int cmd_node_wait(int argc, char **argv)
{
    struct query q;
    uint32_t wait_s = WAIT_S;
    const struct option wait_option = {.key = "wait",
                                       .value = "SECONDS",
                                       .help = "time limit; exit code 3 if it is not done by then",
                                       .kind = OPTION_NUMBER,
                                       .target = &wait_s,
                                       .min = 1,
                                       .max = WAIT_MAX_S};
    const struct command command = {
        .name = "node wait",
        .summary = "Wait until a node serves its share and nothing moves any more.",
        .arguments = "NAME",
        .details =
            "For rolling restarts: stop a node, start it, wait for it, continue with the next one.",
        .options = query_options(&q, &wait_option),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int code = query_parse(&q, &command, argc, argv);

    return code >= 0 ? code : node_wait(&q, q.arguments[0], 0, wait_s);
}
