/* SPDX-License-Identifier: Apache-2.0
 *
 * Load by the clients' binary protocol, for people and for bench/frames.
 */
#include "cli/rows.h"
#include "daemon/options.h"
#include "gateway/protocol/packet.h"
#include "load/commands.h"
#include "load/load_uv.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    CONNECTIONS_MAX = 10000,
    DEPTH_MAX = 65536,
    RATE_MAX = 100000000,
    BATCH_MAX = 1024,
    IDS_MAX = 100000000,
    SIZE_MAX_BYTES = 1024 * 1024,
    SECONDS_MAX = 3600,
    KIND_MAX = 65535,
    WARM_UP_MAX_MS = 3600 * 1000,
};

static const struct {
    const char *name;
    const char *key; /* of JSON */
    unsigned per_mille;
} percentiles[] = {
    {"p50", "p50_us", 500},
    {"p90", "p90_us", 900},
    {"p99", "p99_us", 990},
    {"p99.9", "p999_us", 999},
};
enum { PERCENTILES = sizeof percentiles / sizeof percentiles[0] };

static double rate_of(const struct fleet_load_result *result)
{
    return (double)result->status[STATUS_OK] / result->seconds;
}

/* Of our own processor time. */
static double used_us(const struct fleet_load_result *result)
{
    return result->status[STATUS_OK] > 0
               ? 1e6 * result->used_seconds / (double)result->status[STATUS_OK]
               : 0;
}

static void print_text(const struct fleet_load *load, const struct fleet_load_result *result)
{
    char text[48];

    (void)printf("%.0f requests/s answered OK in %.1f s: %" PRIu32 " connections, ",
                 rate_of(result),
                 result->seconds,
                 load->connections);
    if (load->rate > 0) {
        (void)printf("%" PRIu32 "/s due, %s", load->rate, load->poisson ? "at random" : "evenly");
    } else {
        (void)printf("%" PRIu32 " under way of each", load->depth);
    }
    (void)printf(", %" PRIu32 " ids, %" PRIu32 " bytes\n", load->ids, load->size);
    for (size_t i = 0; i < PERCENTILES; i++) {
        (void)printf("  %-6s %s\n",
                     percentiles[i].name,
                     duration_text(histogram_at(&result->latency, percentiles[i].per_mille),
                                   text,
                                   sizeof text));
    }
    (void)printf("  %-6s %s\n", "max", duration_text(result->latency.max_us, text, sizeof text));
    if (load->rate > 0) {
        (void)printf("  sent at most %s late\n",
                     duration_text(result->late_max_us, text, sizeof text));
    }
    (void)printf("  the load itself took %.2f us of processor time a request, %.0f %% of a core\n",
                 used_us(result),
                 100 * result->used_seconds / result->seconds);
    for (int i = 1; i < LOAD_STATUSES; i++) {
        if (result->status[i] > 0) {
            (void)printf("  %s: %" PRIu64 "\n", packet_status_name((uint8_t)i), result->status[i]);
        }
    }
    if (result->unanswered > 0) {
        (void)printf("  unanswered: %" PRIu64 "\n", result->unanswered);
    }
    if (result->closed > 0) {
        (void)printf(
            "  connections closed: %" PRIu64 ", the first: %s\n", result->closed, result->reason);
    }
}

static void print_json(const struct fleet_load_result *result)
{
    bool first = true;

    (void)printf("{\"rate\":%.1f,\"seconds\":%.3f,\"ok\":%" PRIu64 ",\"answered\":%" PRIu64,
                 rate_of(result),
                 result->seconds,
                 result->status[STATUS_OK],
                 result->answered);
    for (size_t i = 0; i < PERCENTILES; i++) {
        (void)printf(",\"%s\":%" PRIu64,
                     percentiles[i].key,
                     histogram_at(&result->latency, percentiles[i].per_mille));
    }
    (void)printf(",\"max_us\":%" PRIu64 ",\"late_max_us\":%" PRIu64
                 ",\"cpu_seconds\":%.6f,\"unanswered\":%" PRIu64 ",\"closed\":%" PRIu64
                 ",\"errors\":{",
                 result->latency.max_us,
                 result->late_max_us,
                 result->used_seconds,
                 result->unanswered,
                 result->closed);
    for (int i = 1; i < LOAD_STATUSES; i++) {
        if (result->status[i] > 0) {
            (void)printf("%s\"%s\":%" PRIu64,
                         first ? "" : ",",
                         packet_status_name((uint8_t)i),
                         result->status[i]);
            first = false;
        }
    }
    (void)printf("}}\n");
}

int cmd_bench(int argc, char **argv)
{
    struct fleet_load load = {.connections = 64,
                              .depth = 16,
                              .batch = 1,
                              .ids = 10000,
                              .size = 64,
                              .seconds = 5,
                              .warm_up_ms = 1000,
                              .seed = 1};
    static struct fleet_load_result result; // some 40 KiB
    const char *arguments[8];
    bool json = false;
    int count = 0;
    const struct option options[] = {
        option_number("connections",
                      &load.connections,
                      (struct option_range){1, CONNECTIONS_MAX},
                      "number of clients (%)"),
        option_number("depth",
                      &load.depth,
                      (struct option_range){1, DEPTH_MAX},
                      "closed loop: requests in flight per client (%)"),
        option_number("rate",
                      &load.rate,
                      (struct option_range){1, RATE_MAX},
                      "open loop: send this many requests a second, however slow the answers are; "
                      "latency counts from when a request was due"),
        option_number("batch",
                      &load.batch,
                      (struct option_range){1, BATCH_MAX},
                      "requests that a client sends at once, in one write (%); open loop: "
                      "requests that fall due together"),
        option_switch(
            "poisson", &load.poisson, "open loop: random (Poisson) instead of even intervals"),
        option_number("ids",
                      &load.ids,
                      (struct option_range){1, IDS_MAX},
                      "number of entities, chosen at random (%)"),
        option_number(
            "size", &load.size, (struct option_range){0, SIZE_MAX_BYTES}, "payload's bytes (%)"),
        option_number("kind",
                      &load.kind,
                      (struct option_range){0, KIND_MAX},
                      "kind of the actors (%); it should take any payload, as `echo` does"),
        option_number(
            "seconds", &load.seconds, (struct option_range){1, SECONDS_MAX}, "measured time (%)"),
        option_time("warm-up",
                    &load.warm_up_ms,
                    (struct option_range){0, WARM_UP_MAX_MS},
                    "unmeasured time before it (%)"),
        option_switch("json", &json, "print one JSON object; latencies in microseconds"),
        {0},
    };
    const struct command command = {
        .name = "bench",
        .summary =
            "Load a gateway's --frames address with requests and report how fast it answers.",
        .arguments = "HOST:PORT",
        .options = options,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int code = options_parse(&command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    load.address = arguments[0];
    if (!fleet_load_run(&load, &result)) {
        (void)fprintf(stderr, "ringhold bench: %s: %s\n", load.address, result.reason);
        return 1;
    }
    if (json) {
        print_json(&result);
    } else {
        print_text(&load, &result);
    }
    return result.closed == 0 && result.unanswered == 0 ? 0 : 2;
}
