/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold quarantine list | clear | add`: actors that killed their process.
 */
#include "cli/cmd_quarantine.h"

#include "cli/actor_word.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/subcommand.h"

#include <stdio.h>

enum { TIME_SIZE = 48 };

void quarantine_rows(const Rh__AdminReply *reply, bool suspects, struct rows *r)
{
    static const char *const columns[] = {
        "ACTOR", "KIND", "IN QUARANTINE", "STRIKES", "LAST NODE", "LAST STRIKE", NULL};
    char name[ACTOR_NAME_SIZE];
    char text[TIME_SIZE];

    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_quarantine; i++) {
        const Rh__QuarantineRow *row = reply->quarantine[i];

        if (row->actor == NULL || (row->since_us == 0 && !suspects)) {
            continue;
        }
        rows_text(r, "%s", proto_actor(row->actor, name));
        rows_text(r, "%s", row->name);
        rows_text(r, "%s", wall_text(row->since_us, text, sizeof text));
        rows_number(r, row->strikes);
        rows_text(r, "%s", row->node[0] == '\0' ? "-" : row->node);
        rows_text(r, "%s", wall_text(row->struck_us, text, sizeof text));
    }
}

static int list(int argc, char **argv)
{
    struct query q;
    const struct command command = {
        .name = "quarantine list",
        .summary = "List the actors in quarantine, and those that ran when a process died.",
        .arguments = "",
        .details =
            "An actor that ran when its node's process died gets a strike. With three strikes,\n"
            "each within 10 minutes of the one before, it is in quarantine: no node activates\n"
            "it, and its requests are answered with -QUARANTINED.",
        .options = query_options(&q, NULL),
    };
    const int code = query_parse(&q, &command, argc, argv);
    Rh__AdminStatus what = RH__ADMIN_STATUS__INIT;
    struct rows r;

    if (code >= 0) {
        return code;
    }
    Rh__AdminReply *reply = query_ask(&q, &what.base);
    if (reply == NULL) {
        return 1;
    }
    quarantine_rows(reply, true, &r);
    query_print(&q, &r);
    admin_free(reply);
    return 0;
}

static int change(int argc, char **argv, bool add)
{
    struct query q;
    const struct option reason = query_reason(&q);
    const struct command command = {
        .name = add ? "quarantine add" : "quarantine clear",
        .summary = add ? "Put an actor into quarantine: no node activates it until it is cleared."
                       : "Take an actor out of the quarantine, and forget its strikes.",
        .arguments = "KIND/ID",
        .details = "As `ringhold quarantine list` shows it: 0/boss-7.",
        .options = query_options(&q, &reason),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int code = query_parse(&q, &command, argc, argv);
    Rh__AdminQuarantine what = RH__ADMIN_QUARANTINE__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;
    uint8_t id[ACTOR_ID_MAX];

    if (code >= 0) {
        return code;
    }
    if (!actor_read(&q, command.name, q.arguments[0], &actor, id)) {
        return 1;
    }
    what.actor = &actor;
    what.add = add;
    what.by = query_who();
    what.reason = q.reason;
    char name[ACTOR_NAME_SIZE];
    char text[ACTOR_NAME_SIZE + 64];
    (void)snprintf(text,
                   sizeof text,
                   "%s %s",
                   proto_actor(&actor, name),
                   add ? "is in quarantine" : "is served again");
    if (!query_do(&q, &what.base, text)) {
        return 1;
    }
    if (add) {
        query_next(
            &q,
            "its requests are answered with -QUARANTINED until `ringhold quarantine clear %s`",
            name);
    } else {
        query_next(&q, "its next request starts it; `ringhold where %s` shows it then", name);
    }
    return 0;
}

static int clear(int argc, char **argv)
{
    return change(argc, argv, false);
}

static int put(int argc, char **argv)
{
    return change(argc, argv, true);
}

int cmd_quarantine(int argc, char **argv)
{
    static const struct subcommand table[] = {
        {"list", list, "[options]"},
        {"clear", clear, "[options] KIND/ID"},
        {"add", put, "[options] KIND/ID"},
        {0},
    };

    return subcommand_run("quarantine", table, argc, argv);
}
