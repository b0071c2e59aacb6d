/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold coordinators maintenance`: nodes serve for a while without coordinators,
 * so that all of these can be stopped. Looks until each live node has its lease.
 */
#include "cli/cmd_maintenance.h"
#include "base/clock.h"
#include "cli/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    FOR_MS = 60000,
    FOR_MS_MIN = 1000,
    FOR_MS_MAX = 120000,
    LOOK_AGAIN_MS = 200,
    RENEWS_MS = 3000, /* a node renews its lease twice a second */
    REASON_SIZE = 128,
};

static bool is_extended(const Rh__AdminReply *reply, const Rh__NodeRow *n)
{
    return n->live && n->lease_own_us > reply->lease_us;
}

static const char *why_not(const Rh__NodeRow *n)
{
    if (!n->live) {
        return n->state;
    }
    if (n->lease_length_us == 0) {
        return "older version: upgrade it";
    }
    return n->clock_parts != 0 ? "its clock runs away" : "has not renewed its lease yet";
}

/* Who needs no coordinator now; who is not live has nothing that could be served. */
static bool all_extended(const Rh__AdminReply *reply)
{
    for (size_t i = 0; i < reply->n_nodes; i++) {
        if (reply->nodes[i]->live && !is_extended(reply, reply->nodes[i])) {
            return false;
        }
    }
    return true;
}

static void put_nodes(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {"NODE", "EXTENDED", "LEASE MS", "WHY NOT", NULL};

    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        rows_text(r, "%s", n->member->name);
        rows_text(r, "%s", is_extended(reply, n) ? "yes" : "no");
        rows_number(r, n->lease_own_us / 1000);
        rows_text(r, "%s", is_extended(reply, n) ? "" : why_not(n));
    }
}

static void print(const struct query *q, const Rh__AdminReply *reply, uint64_t left_ms)
{
    struct rows r;

    put_nodes(reply, &r);
    if (q->json) {
        (void)printf("{\"for_ms\":%" PRIu64 ",\"longest_ms\":%" PRIu64 ",\"takeover_ms\":%" PRIu64
                     ",\"nodes\":",
                     left_ms,
                     reply->lease_longest_us / 1000,
                     reply->lease_wait_us / 1000);
        rows_print_json(&r);
        (void)printf("}\n");
    } else {
        rows_print_table(&r);
        (void)printf(
            "\n"
            "for %" PRIu64 ".%" PRIu64 " s from now these nodes need no coordinator: have "
            "all coordinators back by then\n"
            "until these leases are over, the ids of a node that dies are served by others "
            "only after up to %" PRIu64 " s\n"
            "a restore of a backup of before needs --lease %" PRIu64 "s\n",
            left_ms / 1000,
            left_ms % 1000 / 100,
            (reply->lease_wait_us + 999999) / 1000000,
            (reply->lease_longest_us + 999999) / 1000000);
    }
    rows_fini(&r);
}

/* Look at the nodes until all have it, or would have renewed. NULL after printing why. */
static Rh__AdminReply *await_nodes(const struct query *q)
{
    const uint64_t end_us = clock_boottime_us() + (uint64_t)RENEWS_MS * 1000;
    const struct timespec pause = {.tv_nsec = (long)LOOK_AGAIN_MS * 1000000};
    Rh__AdminReply *reply = NULL;

    do {
        Rh__AdminNodes what = RH__ADMIN_NODES__INIT;

        if (reply != NULL) {
            admin_free(reply);
            (void)nanosleep(&pause, NULL);
        }
        reply = query_ask(q, &what.base);
    } while (reply != NULL && !all_extended(reply) && clock_boottime_us() < end_us);
    return reply;
}

int coordinators_maintenance(int argc, char **argv)
{
    struct query q;
    uint32_t for_ms = FOR_MS;
    char reason[REASON_SIZE] = "";
    const struct option more[] = {
        option_time("for",
                    &for_ms,
                    (struct option_range){FOR_MS_MIN, FOR_MS_MAX},
                    "so long nodes serve without coordinators, from now on (%)"),
        option_text("reason", "TEXT", reason, sizeof reason, "the reason, for the audit history"),
    };
    const struct command command = {
        .name = "coordinators maintenance",
        .summary = "Have nodes serve for a while without coordinators, before you stop them all.",
        .arguments = "",
        .details =
            "Extends each node's lease. When it returns 0, stop and start the coordinators, all "
            "at\n"
            "once or one after the other. Until the extended leases are over, a node that dies is\n"
            "replaced only then, and while no coordinator runs nothing moves. It returns 1 and "
            "says\n"
            "which nodes have no such lease: these pause as they always do.",
        .options = query_options_more(&q, more, 2),
    };
    const int code = query_parse(&q, &command, argc, argv);
    Rh__AdminMaintenance what = RH__ADMIN_MAINTENANCE__INIT;
    char by[128];

    if (code >= 0) {
        return code;
    }
    (void)query_who(by, sizeof by);
    what.for_ms = for_ms;
    what.by = by;
    what.reason = reason;
    const uint64_t begun_us = clock_boottime_us();
    Rh__AdminReply *reply = query_ask(&q, &what.base);
    if (reply == NULL) {
        return 1;
    }
    admin_free(reply);
    reply = await_nodes(&q);
    if (reply == NULL) {
        return 1;
    }
    const uint64_t gone_ms = (clock_boottime_us() - begun_us) / 1000;
    const bool all = all_extended(reply);

    print(&q, reply, gone_ms < for_ms ? for_ms - gone_ms : 0);
    admin_free(reply);
    return all ? 0 : 1;
}
