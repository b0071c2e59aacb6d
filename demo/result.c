/* SPDX-License-Identifier: Apache-2.0
 *
 * What the demo prints at its end, and whether it passed.
 */
#include "demo/demo.h"

#include "cli/rows.h"
#include "demo/judge.h"

#include <inttypes.h>
#include <stdio.h>

static void print_latency(const char *name, const struct histogram *h)
{
    char p50[24];
    char p99[24];
    char max[24];

    (void)printf("latency %-22s p50 %-9s p99 %-9s max %-9s (%" PRIu64 " requests)\n",
                 name,
                 duration_text(histogram_at(h, 500), p50, sizeof p50),
                 duration_text(histogram_at(h, 990), p99, sizeof p99),
                 duration_text(h->max_us, max, sizeof max),
                 h->count);
}

static void print_latencies(const struct load_stats *stats)
{
    struct histogram during = stats->latency[LOAD_JOIN];

    histogram_merge(&during, &stats->latency[LOAD_DRAIN]);
    print_latency("before", &stats->latency[LOAD_BEFORE]);
    print_latency("during", &during);
    print_latency("  the join", &stats->latency[LOAD_JOIN]);
    print_latency("  drain and leader kill", &stats->latency[LOAD_DRAIN]);
    print_latency("after", &stats->latency[LOAD_AFTER]);
}

int demo_result(struct demo *d, bool played, uint64_t load_us)
{
    const bool answered = d->load != NULL && load_finish(d->load, DEMO_ASK_MS);
    struct load_stats stats = {0};
    struct verdict v = {0};
    char longest[24];

    if (d->load == NULL || !answered) {
        (void)fprintf(stderr,
                      "ringhold demo: %s\n",
                      d->load == NULL ? "the load did not start" : "requests are still unanswered");
        d->keep = d->keep || d->load != NULL;
        (void)printf("RESULT FAIL\n");
        return 1;
    }
    load_stats(d->load, &stats);
    Rh__AdminReply *reply = demo_ask_status(d);
    if (reply != NULL) {
        demo_note_holds(d, reply);
        admin_free(reply);
    }
    if (!judge(d->fleet.ledger, d->load, &v)) {
        return 1;
    }
    print_latencies(&stats);
    (void)printf("held %" PRIu64 " requests, the longest for %s; the join moved %" PRIu64
                 " of %" PRIu64 " ids, all changes %" PRIu64 "; %.0f requests/s\n",
                 d->held,
                 duration_text(d->hold_us_max, longest, sizeof longest),
                 d->joined,
                 v.ids,
                 v.moved,
                 (double)stats.answered * 1e6 / (double)(load_us + 1));
    const uint64_t lost = v.lost + stats.wrong;
    const bool pass = played && d->killed_in_prepare && stats.errors == 0 && lost == 0 &&
                      v.duplicated == 0 && v.out_of_order == 0 && v.live_twice == 0;
    if (stats.errors > 0 || stats.wrong > 0) {
        (void)printf("errors %" PRIu64 " wrong %" PRIu64 ", first: %s\n",
                     stats.errors,
                     stats.wrong,
                     stats.first_error);
    }
    if (v.first[0] != '\0') {
        (void)printf("violation: %s\n", v.first);
    }
    (void)printf("RESULT sent %" PRIu64 "  answered %" PRIu64 "  errors %" PRIu64 "  lost %" PRIu64
                 "  duplicated %" PRIu64 "  out-of-order %" PRIu64 "  live-twice %" PRIu64 "  %s\n",
                 stats.sent,
                 stats.answered,
                 stats.errors,
                 lost,
                 v.duplicated,
                 v.out_of_order,
                 v.live_twice,
                 pass ? "PASS" : "FAIL");
    d->keep = d->keep || !pass;
    return pass ? 0 : 1;
}
