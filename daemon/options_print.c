/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints a table of options: as --help, and as --print-config.
 */
#include "daemon/options_inside.h"

#include <stdio.h>
#include <string.h>

/* Of keys that a daemon takes over while it runs. */
#define RELOADS_MARK " [SIGHUP]"

static void print_flag(const char *key, const char *value, const char *help)
{
    char flag[96];

    (void)snprintf(
        flag, sizeof flag, "--%s%s%s", key, value == NULL ? "" : " ", value == NULL ? "" : value);
    (void)printf("  %-28s %s\n", flag, help);
}

static void print_option(const struct option *o)
{
    char standard[256];
    char help[1024];
    const int size = (int)strcspn(o->help, "%");
    const bool shows = o->help[size] == '%';

    option_format(o, standard, sizeof standard);
    (void)snprintf(help,
                   sizeof help,
                   "%.*s%s%s%s",
                   size,
                   o->help,
                   shows ? standard : "",
                   shows ? o->help + size + 1 : "",
                   o->reloads ? RELOADS_MARK : "");
    print_flag(o->key, o->value, help);
}

void options_print_help(const struct command *command)
{
    (void)printf("usage: ringhold %s [options]%s%s\n\n%s\n",
                 command->name,
                 command->arguments[0] == '\0' ? "" : " ",
                 command->arguments,
                 command->summary);
    if (command->details != NULL) {
        (void)printf("\n%s\n", command->details);
    }
    (void)printf("\noptions (as a flag%s, or in the file's section [%s]):\n",
                 command->daemon ? ", as RINGHOLD_ROLE_KEY in the environment" : "",
                 command->name);
    for (const struct option *o = command->options; o->key != NULL; o++) {
        print_option(o);
    }
    print_flag("config", "FILE", "read options from an INI file");
    if (command->daemon) {
        print_flag("check-config", NULL, "check the options, then exit");
        print_flag("print-config", NULL, "print every option, its value and its origin, then exit");
    }
    print_flag("help", NULL, "this text");
}

static void print_value(const struct option *o, const char *value, size_t size, const char *origin)
{
    (void)printf("%-26s = %-30.*s ; %s%s\n",
                 o->key,
                 (int)size,
                 value,
                 origin,
                 o->reloads ? RELOADS_MARK : "");
}

void options_print_config(const struct options_parse *p)
{
    static const char *const origin[] = {[ORIGIN_DEFAULT] = "default",
                                         [ORIGIN_FLAG] = "flag",
                                         [ORIGIN_ENVIRONMENT] = "environment",
                                         [ORIGIN_FILE] = "file",
                                         [ORIGIN_COMMON] = "file, [tls]"};

    (void)printf("[%s]\n", p->command->name);
    for (const struct option *o = p->command->options; o->key != NULL; o++) {
        char text[16384];
        const char *value = text;
        const char *from = origin[p->origin[o - p->command->options]];

        option_format(o, text, sizeof text);
        if (text[0] == '\0') {
            (void)printf("; %s is not set\n", o->key);
        }
        for (size_t size; value[0] != '\0'; value += size + (value[size] == '\n')) {
            size = strcspn(value, "\n");
            print_value(o, value, size, from);
        }
    }
}
