/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold daemons`: changes how many actors a set of daemons has.
 */
#include "cli/commands.h"
#include "cli/query.h"

#include <inttypes.h>
#include <stdio.h>

enum { DAEMONS_MAX = 1000 };

int cmd_daemons(int argc, char **argv)
{
    struct query q;
    const struct option reason = query_reason(&q);
    const struct command command = {
        .name = "daemons",
        .summary = "Change how many actors a set of daemons has, while the fleet runs.",
        .arguments = "NAME COUNT",
        .details = "NAME is the kind's name: `ringhold status` lists it. New actors start at once; "
                   "when COUNT is\nlower, the actors with the highest numbers end.",
        .options = query_options(&q, &reason),
        .arguments_min = 2,
        .arguments_max = 2,
    };
    const int code = query_parse(&q, &command, argc, argv);
    char name[64];
    Rh__AdminDaemons what = RH__ADMIN_DAEMONS__INIT;

    if (code >= 0) {
        return code;
    }
    if (!query_number("daemons",
                      "COUNT",
                      q.arguments[1],
                      (struct option_range){0, DAEMONS_MAX},
                      &what.count)) {
        return 1;
    }
    (void)snprintf(name, sizeof name, "%s", q.arguments[0]);
    what.name = name;
    what.by = query_who();
    what.reason = q.reason;
    char text[128];
    (void)snprintf(text, sizeof text, "%s: %" PRIu32, name, what.count);
    if (!query_do(&q, &what.base, text)) {
        return 1;
    }
    query_next(&q, "the nodes start or end the others; `ringhold status` counts them");
    return 0;
}
