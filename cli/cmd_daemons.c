/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold daemons`: changes how many actors a set of daemons has.
 */
#include "cli/commands.h"
#include "cli/query.h"

#include <stdio.h>
#include <stdlib.h>

enum { DAEMONS_MAX = 1000 };

int cmd_daemons(int argc, char **argv)
{
    struct query q;
    const struct command command = {
        .name = "daemons",
        .summary = "Change how many actors a set of daemons has, while the fleet runs.",
        .arguments = "NAME COUNT",
        .details = "NAME is the kind's name: `ringhold status` lists it. New actors start at once; "
                   "when COUNT is\nlower, the actors with the highest numbers end.",
        .options = query_options(&q, NULL),
        .arguments_min = 2,
        .arguments_max = 2,
    };
    const int code = query_parse(&q, &command, argc, argv);
    char name[64];
    char by[128];
    char *end = NULL;

    if (code >= 0) {
        return code;
    }
    const unsigned long count = strtoul(q.arguments[1], &end, 10);
    if (q.arguments[1][0] < '0' || q.arguments[1][0] > '9' || *end != '\0' || count > DAEMONS_MAX) {
        (void)fprintf(
            stderr, "ringhold daemons: COUNT must be a number from 0 to %d\n", DAEMONS_MAX);
        return 1;
    }
    Rh__AdminDaemons what = RH__ADMIN_DAEMONS__INIT;
    (void)snprintf(name, sizeof name, "%s", q.arguments[0]);
    what.name = name;
    what.count = (uint32_t)count;
    (void)query_who(by, sizeof by);
    what.by = by;
    char text[128];
    (void)snprintf(text, sizeof text, "%s: %lu", name, count);
    return query_do(&q, &what.base, text) ? 0 : 1;
}
