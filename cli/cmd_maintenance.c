/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold coordinators maintenance`: nodes serve for a while without coordinators,
 * so that all of these can be stopped. Looks until each live node has its lease; with
 * `--end` until no lease is longer than usual.
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
};

uint64_t maintenance_alone_us(const Rh__AdminReply *reply, const Rh__NodeRow *n)
{
    enum { SOFT_PART = 5 }; // node/books/lease.h
    const uint64_t gone_us = n->heard_us_ago + n->lease_length_us / SOFT_PART;

    return !n->live || n->lease_own_us <= reply->lease_us || n->lease_own_us <= gone_us
               ? 0
               : n->lease_own_us - gone_us;
}

/* So long; 0: for a while. An extended lease of before may be too short. */
static bool is_extended(const Rh__AdminReply *reply, const Rh__NodeRow *n, uint64_t for_us)
{
    const uint64_t alone_us = maintenance_alone_us(reply, n);

    return alone_us > 0 && alone_us >= for_us;
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

static bool all_are_usual(const Rh__AdminReply *reply)
{
    return reply->lease_longest_us <= reply->lease_us;
}

/* Who needs no coordinator now; who is not live has nothing that could be served. */
static bool all_extended(const Rh__AdminReply *reply, uint64_t for_us)
{
    for (size_t i = 0; i < reply->n_nodes; i++) {
        if (reply->nodes[i]->live && !is_extended(reply, reply->nodes[i], for_us)) {
            return false;
        }
    }
    return true;
}

static void put_nodes(const Rh__AdminReply *reply, uint64_t for_us, struct rows *r)
{
    static const char *const columns[] = {"NODE", "EXTENDED", "LEASE=lease_ms", "WHY NOT", NULL};

    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        rows_text(r, "%s", n->member->name);
        rows_text(r, "%s", is_extended(reply, n, for_us) ? "yes" : "no");
        rows_ms(r, n->lease_own_us / 1000);
        rows_text(r, "%s", is_extended(reply, n, for_us) || for_us == 0 ? "" : why_not(n));
    }
}

static void print_extended(const Rh__AdminReply *reply, uint64_t left_ms)
{
    (void)printf("\n"
                 "for %" PRIu64 ".%" PRIu64 " s from now these nodes need no coordinator: have "
                 "all coordinators back by then\n"
                 "until these leases are over, the ids of a node that dies are served by others "
                 "only after up to %" PRIu64 " s\n"
                 "a restore of a backup of before needs --lease %" PRIu64 "s\n"
                 "when all are back: ringhold coordinators maintenance --end\n",
                 left_ms / 1000,
                 left_ms % 1000 / 100,
                 (reply->lease_wait_us + 999999) / 1000000,
                 (reply->lease_longest_us + 999999) / 1000000);
}

static void print_ended(const Rh__AdminReply *reply)
{
    if (all_are_usual(reply)) {
        (void)printf("\nall leases are as usual: nodes need the coordinators\n");
    } else {
        (void)printf("\n"
                     "not yet: a lease of up to %" PRIu64 " s may last, and until it is over the "
                     "ids of a node that dies are served by others only after up to %" PRIu64
                     " s: ringhold status\n",
                     (reply->lease_longest_us + 999999) / 1000000,
                     (reply->lease_wait_us + 999999) / 1000000);
    }
}

/* `left_ms` 0: it is over. */
static void print(const struct query *q, const Rh__AdminReply *reply, uint64_t left_ms)
{
    struct rows r;

    put_nodes(reply, left_ms * 1000, &r);
    if (q->json) {
        (void)printf("{\"for_ms\":%" PRIu64 ",\"longest_ms\":%" PRIu64 ",\"takeover_ms\":%" PRIu64
                     ",\"nodes\":",
                     left_ms,
                     reply->lease_longest_us / 1000,
                     reply->lease_wait_us / 1000);
        rows_print(&r, ROWS_JSON);
        (void)printf("}\n");
    } else {
        rows_print(&r, q->format);
        if (query_bare(q)) {
            // rows alone
        } else if (left_ms > 0) {
            print_extended(reply, left_ms);
        } else {
            print_ended(reply);
        }
    }
    rows_fini(&r);
}

/* What he wants the nodes to be like. */
struct maintenance_wish {
    uint32_t for_ms; /* 0 = as usual */
    uint64_t begun_us;
};

static uint64_t left_us(const struct maintenance_wish *w)
{
    const uint64_t gone_us = clock_boottime_us() - w->begun_us;
    const uint64_t for_us = (uint64_t)w->for_ms * 1000;

    return gone_us < for_us ? for_us - gone_us : 0;
}

static bool is_done(const Rh__AdminReply *reply, const struct maintenance_wish *w)
{
    return w->for_ms == 0 ? all_are_usual(reply) : all_extended(reply, left_us(w));
}

/* Look at the nodes until it is done, or they would have renewed. NULL after printing why. */
static Rh__AdminReply *await_nodes(const struct query *q, const struct maintenance_wish *w)
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
    } while (reply != NULL && !is_done(reply, w) && clock_boottime_us() < end_us);
    return reply;
}

/* Ask, then look. Returns the exit code. */
static int ask(const struct query *q, Rh__AdminMaintenance *what)
{
    const struct maintenance_wish w = {what->for_ms, clock_boottime_us()};
    Rh__AdminReply *reply = query_ask(q, &what->base);

    if (reply == NULL) {
        return 1;
    }
    admin_free(reply);
    reply = await_nodes(q, &w);
    if (reply == NULL) {
        return 1;
    }
    const bool done = is_done(reply, &w);

    print(q, reply, left_us(&w) / 1000);
    admin_free(reply);
    return done ? 0 : 1;
}

int coordinators_maintenance(int argc, char **argv)
{
    struct query q;
    uint32_t for_ms = FOR_MS;
    bool end = false;
    const struct option more[] = {
        option_time("for",
                    &for_ms,
                    (struct option_range){FOR_MS_MIN, FOR_MS_MAX},
                    "so long nodes serve without coordinators, from now on (%)"),
        option_switch("end", &end, "it is over: take the extended leases back, and wait for that"),
        query_reason(&q),
    };
    const struct command command = {
        .name = "coordinators maintenance",
        .summary = "Have nodes serve for a while without coordinators, before you stop them all.",
        .arguments = "",
        .details =
            "Extends each node's lease. When it returns 0, stop and start the coordinators, all "
            "at\n"
            "once or one after the other, as often as you like until the time is over. It returns\n"
            "1 and says which nodes have no such lease: these pause as they always do. As long as\n"
            "extended leases last, nobody else serves the ids of a node that dies, and while no\n"
            "coordinator runs nothing moves. So say --end when you are through.",
        .options = query_options_more(&q, more, sizeof more / sizeof *more),
    };
    const int code = query_parse(&q, &command, argc, argv);
    Rh__AdminMaintenance what = RH__ADMIN_MAINTENANCE__INIT;

    if (code >= 0) {
        return code;
    }
    what.for_ms = end ? 0 : for_ms;
    what.by = query_who();
    what.reason = q.reason;
    return ask(&q, &what);
}
