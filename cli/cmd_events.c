/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/query.h"

#include <inttypes.h>
#include <stdio.h>

enum { EVENTS_SHOWN_MAX = 1000 };

static void put_events(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {"ID",
                                          "TIME",
                                          "LEADER",
                                          "COMMAND",
                                          "ACCEPTED",
                                          "NUMBER",
                                          "SUBJECT",
                                          "WHY",
                                          "BY",
                                          "REASON",
                                          NULL};

    rows_init(r, columns);
    for (size_t i = reply->n_events; i-- > 0;) {
        const Rh__EventRow *e = reply->events[i];
        char time[48];

        rows_number(r, e->id);
        rows_text(r, "%s", wall_text(e->time_us, time, sizeof time));
        rows_number(r, e->proposer);
        rows_text(r, "%s", e->command);
        rows_text(r, "%s", e->accepted ? "yes" : "no");
        rows_number(r, e->stamp);
        rows_text(r, "%s", e->subject);
        rows_text(r, "%s", e->why);
        rows_text(r, "%s", e->by);
        rows_text(r, "%s", e->reason);
    }
}

int cmd_events(int argc, char **argv)
{
    struct query q;
    uint32_t limit = 32;
    const struct option limit_option = option_number(
        "limit", &limit, (struct option_range){1, EVENTS_SHOWN_MAX}, "the newest so many (32)");
    const struct command command = {
        .name = "events",
        .summary = "The audit history: each command of the coordinators' log, oldest first.",
        .arguments = "",
        .options = query_options(&q, &limit_option),
    };
    const int code = query_parse(&q, &command, argc, argv);
    Rh__AdminEvents what = RH__ADMIN_EVENTS__INIT;
    Rh__Admin request = RH__ADMIN__INIT;
    struct rows rows;

    if (code >= 0) {
        return code;
    }
    what.limit = limit;
    request.what_case = RH__ADMIN__WHAT_EVENTS;
    request.events = &what;
    Rh__AdminReply *reply = query_ask(&q, &request);
    if (reply == NULL) {
        return 1;
    }
    put_events(reply, &rows);
    query_print(&q, &rows);
    admin_free(reply);
    return 0;
}
