/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold events`: lists or follows the audit history.
 */
#include "cli/commands.h"
#include "cli/event_text.h"
#include "cli/query.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { EVENTS_SHOWN_MAX = 1000, LOOK_AGAIN_MS = 500 };

static void begin_rows(struct rows *r)
{
    static const char *const columns[] = {"ID",
                                          "TIME",
                                          "+LEADER",
                                          "-COMMAND",
                                          "-ACCEPTED",
                                          "NUMBER",
                                          "-SUBJECT",
                                          "-WHY",
                                          "-BY",
                                          "-REASON",
                                          "WHAT",
                                          NULL};

    rows_init(r, columns);
}

static void put_event(const Rh__EventRow *e, const Rh__AdminReply *history, struct rows *r)
{
    char text[EVENT_TEXT_SIZE];
    char time[48];

    rows_number(r, e->id);
    rows_text(r, "%s", wall_text(e->time_us, time, sizeof time));
    rows_number(r, e->proposer);
    rows_text(r, "%s", e->command);
    rows_text(r, "%s", e->accepted ? "yes" : "no");
    rows_stamp(r, e->stamp);
    rows_text(r, "%s", e->subject);
    rows_text(r, "%s", e->why);
    rows_text(r, "%s", e->by);
    rows_text(r, "%s", e->reason);
    rows_text(r, "%s", event_text(e, history, text));
}

/* All that may be shown: older ones name the nodes that newer ones are about. */
static Rh__AdminReply *ask(struct admin *a, uint32_t timeout_ms)
{
    Rh__AdminEvents what = RH__ADMIN_EVENTS__INIT;

    what.limit = EVENTS_SHOWN_MAX;
    return admin_ask(a, &what.base, timeout_ms);
}

static size_t at_most(size_t count, uint32_t limit)
{
    return count < limit ? count : limit;
}

/* One event as a line: of text, or of JSON. */
static void print_line(const Rh__EventRow *e, const Rh__AdminReply *history, bool json)
{
    char text[EVENT_TEXT_SIZE];
    char time[48];

    if (json) {
        struct rows r;

        begin_rows(&r);
        put_event(e, history, &r);
        rows_print(&r, ROWS_JSON);
        rows_fini(&r);
        (void)printf("\n");
    } else {
        (void)printf(
            "%s  %s\n", wall_text(e->time_us, time, sizeof time), event_text(e, history, text));
    }
}

/* Those that were not shown, oldest first; `seen` is the last one that was, 0: show the newest
 * `limit`. */
static void print_newer(const Rh__AdminReply *reply, uint32_t limit, bool json, uint64_t *seen)
{
    const uint64_t oldest = reply->n_events == 0 ? 0 : reply->events[reply->n_events - 1]->id;

    if (*seen != 0 && oldest > *seen + 1) {
        (void)fprintf(stderr,
                      "ringhold events: %" PRIu64 " events came too fast to show\n",
                      oldest - *seen - 1);
    }
    for (size_t i = *seen == 0 ? at_most(reply->n_events, limit) : reply->n_events; i-- > 0;) {
        if (reply->events[i]->id > *seen) {
            *seen = reply->events[i]->id;
            print_line(reply->events[i], reply, json);
        }
    }
    (void)fflush(stdout);
}

/* True: nobody reads the output any more. Waits for it, but not for long. */
static bool is_over(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};

    return poll(&output, 1, LOOK_AGAIN_MS) > 0;
}

/* Until somebody ends it, or the output. A coordinator that is away is asked again. */
static int follow(const struct query *q, uint32_t limit)
{
    const struct admin_where where = query_where(q);
    struct admin *a = admin_open(&where);
    uint64_t seen = 0;

    if (a == NULL) {
        return 1;
    }
    do {
        Rh__AdminReply *reply = ask(a, q->timeout_ms);

        if (reply != NULL) {
            print_newer(reply, limit, q->json, &seen);
        }
        admin_free(reply);
    } while (ferror(stdout) == 0 && !is_over());
    admin_close(a);
    return 1;
}

int cmd_events(int argc, char **argv)
{
    struct query q;
    uint32_t limit = 32;
    bool on = false;
    const struct option more[] = {
        option_number("limit",
                      &limit,
                      (struct option_range){1, EVENTS_SHOWN_MAX},
                      "how many of the newest events to show (%)"),
        option_switch("follow", &on, "keep printing new events as they come; also -f"),
    };
    const struct command command = {
        .name = "events",
        .summary = "Show the audit history: the commands of the coordinators' log, oldest first.",
        .arguments = "",
        .options = query_options_more(&q, more, sizeof more / sizeof more[0]),
    };
    const int code = query_parse(&q, &command, argc, argv);
    struct rows rows;

    if (code >= 0) {
        return code;
    }
    if (on) {
        return follow(&q, limit);
    }
    Rh__AdminEvents what = RH__ADMIN_EVENTS__INIT;
    what.limit = EVENTS_SHOWN_MAX; // as in ask()
    Rh__AdminReply *reply = query_ask(&q, &what.base);
    if (reply == NULL) {
        return 1;
    }
    begin_rows(&rows);
    for (size_t i = at_most(reply->n_events, limit); i-- > 0;) { // they come newest first
        put_event(reply->events[i], reply, &rows);
    }
    query_print(&q, &rows);
    admin_free(reply);
    return 0;
}
