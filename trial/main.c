/* SPDX-License-Identifier: Apache-2.0
 *
 * ringhold-trial: `ringhold test`.
 */
#include "daemon/options.h"
#include "daemon/program.h"
#include "lua/trial.h"

#include <stdio.h>

enum { FILES_MAX = 8 };

static int cmd_test(int argc, char **argv)
{
    static char only[256];
    const struct option options[] = {
        option_text("only", "TEXT", only, sizeof only, "only cases with this in their names"),
        {0},
    };
    const struct command command = {
        .name = "test",
        .summary = "Run tests of actors that are written in Lua, without a fleet.",
        .arguments = "FILE...",
        .details =
            "A FILE is a Lua script that requires ringhold_test: docs/testing.md. Each case "
            "is a line of\nTAP on stdout, and what fails is told with file and line. Up to 8 "
            "files.\nExit code: 0 all is well, 1 something failed.",
        .options = options,
        .arguments_min = 1,
        .arguments_max = FILES_MAX,
    };
    const char *file[FILES_MAX];
    int count = 0;
    struct trial_count counted = {0};
    bool good = true;
    const int code = options_parse(&command, argc, argv, file, &count);

    if (code != OPTIONS_RUN) {
        return code;
    }
    for (int i = 0; i < count; i++) {
        good = trial_run(file[i], only, &counted) && good;
    }
    (void)printf("1..%u\n", counted.cases);
    return good && counted.failed == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct verb verbs[] = {
        {"test", cmd_test, NULL, ""},
    };

    return program_main(verbs, sizeof verbs / sizeof verbs[0], argc, argv);
}
