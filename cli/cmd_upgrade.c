/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold upgrade`: which versions run, and the end of an upgrade.
 */
#include "cli/builds.h"
#include "cli/commands.h"
#include "cli/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *role_word(uint32_t role)
{
    static const char *const words[] = {"?", "coordinator", "node", "gateway"};

    return role < sizeof words / sizeof words[0] ? words[role] : "?";
}

void builds_rows(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {
        "PROCESS", "NAME", "VERSION", "LINK PROTOCOL", "FORMAT FROM", "FORMAT TO", NULL};

    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_builds; i++) {
        const Rh__BuildRow *b = reply->builds[i];

        rows_text(r, "%s", role_word(b->role));
        rows_text(r, "%s", b->name);
        rows_text(r, "%s", b->linked ? b->product : "not linked");
        rows_number(r, b->protocol);
        rows_number(r, b->format_min);
        rows_number(r, b->format);
    }
}

bool builds_mixed(const Rh__AdminReply *reply)
{
    for (size_t i = 1; i < reply->n_builds; i++) {
        if (strcmp(reply->builds[i]->product, reply->builds[0]->product) != 0) {
            return true;
        }
    }
    return false;
}

static void print_table(const struct query *q, const Rh__AdminReply *reply, const struct rows *r)
{
    rows_print(r, q->format);
    if (query_bare(q)) {
        return;
    }
    (void)printf("\n");
    if (reply->format_next != 0) {
        text_printf(2,
                    "The fleet's format is %" PRIu32 "; all processes read %" PRIu32
                    ": `ringhold upgrade --finish` switches the fleet to it, and from then on no "
                    "older version can join",
                    reply->format,
                    reply->format_next);
    } else {
        text_printf(2, "The fleet's format is %" PRIu32 ": %s", reply->format, reply->format_why);
    }
}

static void print_json(const Rh__AdminReply *reply, const struct rows *r)
{
    (void)printf("{\"format\":%" PRIu32 ",\"format_next\":%" PRIu32 ",\"why\":",
                 reply->format,
                 reply->format_next);
    json_print_string(reply->format_why);
    (void)printf(",\"builds\":");
    rows_print(r, ROWS_JSON);
    (void)printf("}\n");
}

int cmd_upgrade(int argc, char **argv)
{
    struct query q;
    bool finish = false;
    const struct option more[] = {
        option_switch(
            "finish", &finish, "raise the fleet's format: older versions are refused from then on"),
        query_reason(&q),
    };
    const struct command command = {
        .name = "upgrade",
        .summary = "Show each process's version, and finish an upgrade.",
        .arguments = "",
        .details = "Processes of neighbouring versions work together, so you replace them one by\n"
                   "one, and may go back. When all are new, --finish lets the coordinators store\n"
                   "what only the new version reads; from then on older versions are refused.",
        .options = query_options_more(&q, more, 2),
    };
    const int code = query_parse(&q, &command, argc, argv);
    Rh__AdminUpgrade what = RH__ADMIN_UPGRADE__INIT;
    struct rows r;

    if (code >= 0) {
        return code;
    }
    what.finish = finish;
    what.by = query_who();
    what.reason = q.reason;
    Rh__AdminReply *reply = query_ask(&q, &what.base);
    if (reply == NULL) {
        return 1;
    }
    builds_rows(reply, &r);
    if (q.json) {
        print_json(reply, &r);
    } else {
        print_table(&q, reply, &r);
    }
    if (finish) {
        query_next(&q, "no older version can join any more; `ringhold upgrade` shows the format");
    }
    rows_fini(&r);
    admin_free(reply);
    return 0;
}
