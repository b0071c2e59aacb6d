/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the second word of a command in that command's table.
 */
#include "cli/subcommand.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int subcommand_run(const char *command, const struct subcommand *table, int argc, char **argv)
{
    const char *word = argc > 0 ? argv[0] : "";
    const struct subcommand *found = table;

    while (found->name != NULL && strcmp(found->name, word) != 0) {
        found++;
    }
    if (found->name != NULL) {
        return found->run(argc - 1, argv + 1);
    }
    if (found->run != NULL) {
        return found->run(argc, argv);
    }
    const bool asked = strcmp(word, "--help") == 0;
    for (const struct subcommand *s = table; s < found; s++) {
        (void)fprintf(asked ? stdout : stderr,
                      "%s ringhold %s %s %s\n",
                      s == table ? "usage:" : "      ",
                      command,
                      s->name,
                      s->arguments);
    }
    return asked ? 0 : 1;
}
