/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold check`: asks every process for its state and prints what is wrong.
 */
#include "cli/commands.h"
#include "cli/sampling.h"

#include <stdio.h>

enum { SETTLE_MS = 3000, SETTLE_MAX_MS = 600000 };

int cmd_check(int argc, char **argv)
{
    uint32_t settle_ms = SETTLE_MS;
    struct query q;
    struct sampling sampling;
    const struct option settle = option_number("settle-ms",
                                               &settle_ms,
                                               (struct option_range){0, SETTLE_MAX_MS},
                                               "report a finding when it has lasted this long (%)");
    const struct command command = {
        .name = "check",
        .summary = "Ask every process for its state; say what is wrong and what to do about it.",
        .arguments = "",
        .details = "Asks all coordinators, and through them every node and gateway.\n"
                   "Exit code: 0 all is well, 2 problems found, 1 no process could be asked.\n"
                   "`ringhold fix --dry-run` shows which of the problems it can repair.",
        .options = query_options(&q, &settle),
    };
    const int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    if (!sampling_run(&sampling, &q, settle_ms)) {
        sampling_fini(&sampling);
        return 1;
    }
    if (q.json) {
        sampling_print_json(&sampling);
    } else {
        sampling_print(&sampling, &q);
    }
    const int result = sampling.findings.count == 0 ? 0 : 2;
    sampling_fini(&sampling);
    return result;
}
