/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the command that a command line names, in this program or in one beside it.
 */
#include "daemon/program.h"

#include "base/beside.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int usage(FILE *out, const struct verb *verb, size_t count)
{
    (void)fprintf(out,
                  "usage: ringhold COMMAND [options]\n\n"
                  "Exactly one live actor per id across a fleet of game servers.\n\n");
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(out, "  %-15s %s\n", verb[i].name, verb[i].summary);
    }
    (void)fprintf(out,
                  "\n"
                  "`ringhold COMMAND --help` describes a command.\n");
    return out == stdout ? 0 : 1;
}

/* Become that program, with the same words. */
static int start(const struct verb *verb, char **argv)
{
    char path[4096];

    if (!beside_find(verb->program, path, sizeof path)) {
        (void)fprintf(stderr,
                      "ringhold: `%s` needs the program %s, which is neither beside %s nor in "
                      "../libexec/ringhold (Debian: apt install ringhold-tools)\n",
                      verb->name,
                      verb->program,
                      path);
        return 1;
    }
    (void)execv(path, argv);
    (void)fprintf(stderr, "ringhold: can't start %s: %s\n", path, strerror(errno));
    return 1;
}

int program_main(const struct verb *verb, size_t count, int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); // a file that may not grow is a full disk: the write says so
    if (argc < 2) {
        return usage(stderr, verb, count);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        return usage(stdout, verb, count);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        (void)printf("ringhold %s\n", RINGHOLD_VERSION);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(argv[1], verb[i].name) == 0) {
            return verb[i].run == NULL ? start(&verb[i], argv) : verb[i].run(argc - 2, argv + 2);
        }
    }
    (void)fprintf(stderr, "ringhold: unknown command '%s' (see ringhold --help)\n", argv[1]);
    return 1;
}
