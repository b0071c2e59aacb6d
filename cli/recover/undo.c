/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold recover undo`: puts the files back that a restore moved away.
 */
#include "cli/recover/recover.h"

#include "daemon/options.h"
#include "storage/state/bootstrap.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

static void complain(const char *what, const char *why)
{
    (void)fprintf(stderr, "ringhold recover undo: %s: %s\n", what, why);
}

int cmd_recover_undo(int argc, char **argv)
{
    bool yes = false;
    const char *arguments[8];
    int count = 0;
    char folder[PATH_SIZE];
    char now_replaced[ATOMIC_REPLACE_NAME_MAX] = "";
    char why[BOOTSTRAP_WHY_MAX] = "";
    const struct option options[] = {
        option_switch("yes", &yes, "do it; without --yes: only print what would be done"), {0}};
    const struct command command = {
        .name = "recover undo",
        .summary = "Put back the files that a restore or a new cluster replaced.",
        .arguments = "DIR/replaced-TIME",
        .details = "Undo it on all coordinators, or on none. Nodes that have seen the new era "
                   "refuse the old one: after that,\nrestore again instead.",
        .options = options,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int code = options_parse(&command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    (void)snprintf(folder, sizeof folder, "%s", arguments[0]);
    for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/'; end--) {
        folder[end - 1] = '\0';
    }
    char *slash = strrchr(folder, '/');
    const char *name = slash == NULL ? folder : slash + 1;
    if (strncmp(name, "replaced-", 9) != 0 || strlen(name) >= ATOMIC_REPLACE_NAME_MAX) {
        complain(arguments[0], "the folder's name is not DIR/replaced-TIME");
        return 1;
    }
    char replaced[ATOMIC_REPLACE_NAME_MAX];
    (void)snprintf(replaced, sizeof replaced, "%.*s", ATOMIC_REPLACE_NAME_MAX - 1, name);
    if (slash == NULL) {
        (void)snprintf(folder, sizeof folder, ".");
    } else {
        *slash = '\0';
    }
    if (!yes) {
        (void)printf("would move the files of %s into %s/replaced-TIME and put those of %s back\n"
                     "nothing was changed: --yes does it\n",
                     folder,
                     folder,
                     arguments[0]);
        return 1;
    }
    if (bootstrap_undo(folder, replaced, now_replaced, why) != ERR_OK) {
        complain(arguments[0], why);
        return 1;
    }
    (void)printf("%s: as before; to undo this: ringhold recover undo %s/%s --yes\n",
                 folder,
                 folder,
                 now_replaced);
    return 0;
}
