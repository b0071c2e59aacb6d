/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold config`: checks or prints a configuration file with the daemons' own
 * option tables.
 */
#include "cli/commands.h"
#include "daemon/options.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

static const struct role {
    const char *name;
    int (*run)(int argc, char **argv);
} roles[] = {{"coordinator", cmd_coordinator}, {"node", cmd_node}, {"gateway", cmd_gateway}};

enum { ROLES = sizeof roles / sizeof roles[0], PATH_SIZE = 4096 };

struct sections {
    bool has[ROLES];
    char unknown[64]; /* the first that no daemon reads */
};

// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): the parameters are libinih's
static int on_line(void *user, const char *section, const char *name, const char *value)
{
    struct sections *s = user;

    (void)name;
    (void)value;
    for (size_t i = 0; i < ROLES; i++) {
        if (strcmp(section, roles[i].name) == 0) {
            s->has[i] = true;
            return 1;
        }
    }
    if (strcmp(section, "tls") == 0) {
        return 1; // each of them looks at it
    }
    if (s->unknown[0] == '\0') {
        (void)snprintf(s->unknown, sizeof s->unknown, "unknown section [%s]", section);
    }
    return 0;
}

/* The daemons that `path` has sections for. False after printing what is wrong. */
static bool find_sections(const char *path, struct sections *s)
{
    const int line = ini_parse(path, on_line, s);

    if (line < 0) {
        (void)fprintf(stderr, "ringhold config: can't read %s: %s\n", path, strerror(errno));
        return false;
    }
    if (line > 0) {
        (void)fprintf(
            stderr,
            "ringhold config: %s:%d: %s; daemons read [coordinator], [node], [gateway] and [tls]\n",
            path,
            line,
            s->unknown[0] == '\0' ? "neither [section] nor key = value" : s->unknown);
        return false;
    }
    for (size_t i = 0; i < ROLES; i++) {
        if (s->has[i]) {
            return true;
        }
    }
    (void)fprintf(stderr, "ringhold config: %s: it sets no key\n", path);
    return false;
}

/* As the daemons would be started; all of them, also after one that would not. */
static int ask_each(const char *path, const struct sections *s, const char *mode)
{
    int code = 0;

    for (size_t i = 0; i < ROLES; i++) {
        char flag[] = "--config";
        char file[PATH_SIZE];
        char last[32];
        char *words[] = {flag, file, last, NULL};

        (void)snprintf(file, sizeof file, "%s", path);
        (void)snprintf(last, sizeof last, "%s", mode);
        if (s->has[i] && roles[i].run(3, words) != 0) {
            code = 1;
        }
    }
    return code;
}

static int run(const struct command *command, int argc, char **argv, const char *mode)
{
    struct sections s = {0};
    const char *arguments[8];
    int count = 0;
    const int code = options_parse(command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    return find_sections(arguments[0], &s) ? ask_each(arguments[0], &s, mode) : 1;
}

int cmd_config(int argc, char **argv)
{
    static const struct option none[] = {{0}};
    static const struct command check = {
        .name = "config check",
        .summary = "Check that the daemons would start with the sections of this file.",
        .arguments = "FILE",
        .details = "Each fault is reported with its line, and the exit code is then 1. Environment "
                   "variables\ncount as they do for the daemon (RINGHOLD_NODE_NAME=… and so on).",
        .options = none,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    static const struct command print = {
        .name = "config print",
        .summary = "Print every option of the daemons that this file has sections for: its value, "
                   "and whether the file, the environment or the default set it.",
        .arguments = "FILE",
        .options = none,
        .arguments_min = 1,
        .arguments_max = 1,
    };

    if (argc > 0 && strcmp(argv[0], "check") == 0) {
        return run(&check, argc - 1, argv + 1, "--check-config");
    }
    if (argc > 0 && strcmp(argv[0], "print") == 0) {
        return run(&print, argc - 1, argv + 1, "--print-config");
    }
    (void)fprintf(stderr, "usage: ringhold config check | print FILE\n");
    return 1;
}
