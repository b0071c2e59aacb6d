/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a command's options, and the order of their sources: flags,
 * environment, file.
 */
#include "daemon/options_inside.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

struct option *options_add(struct options *t, struct option row)
{
    ASSERT(t->count < OPTIONS_MAX);
    t->row[t->count] = row;
    return &t->row[t->count++];
}

const struct option *options_find(const struct command *command, const char *key)
{
    for (const struct option *o = command->options; o->key != NULL; o++) {
        if (strcmp(o->key, key) == 0 || (o->alias != NULL && strcmp(o->alias, key) == 0)) {
            return o;
        }
    }
    return NULL;
}

/* --check-config and --print-config, of daemons. */
static bool take_mode(struct options_parse *p, const char *key)
{
    p->check |= p->command->daemon && strcmp(key, "check-config") == 0;
    p->print |= p->command->daemon && strcmp(key, "print-config") == 0;
    return p->command->daemon &&
           (strcmp(key, "check-config") == 0 || strcmp(key, "print-config") == 0);
}

/* One flag at argv[0]. Returns how many words it took, or 0 after printing an error. */
static int take_flag(struct options_parse *p, int argc, char **argv)
{
    char key[64];
    const char *name = argv[0] + 2;
    const char *equals = strchr(name, '=');
    const size_t size = equals == NULL ? strlen(name) : (size_t)(equals - name);
    const char *value = equals == NULL ? (argc > 1 ? argv[1] : NULL) : equals + 1;
    int words = equals == NULL ? 2 : 1;
    const char *why = NULL;

    (void)snprintf(key, sizeof key, "%.*s", (int)size, name);
    const struct option *o = options_find(p->command, key);
    if (strcmp(key, "config") == 0 && value != NULL) {
        (void)snprintf(p->config, sizeof p->config, "%s", value);
        return words;
    }
    if (take_mode(p, key)) {
        return 1;
    }
    if (o == NULL) {
        why = "unknown flag (see --help)";
    } else if (o->kind == OPTION_SWITCH && equals == NULL) {
        words = 1;
        why = option_set(o, "yes");
    } else if (value == NULL) {
        why = "needs a value";
    } else if (p->origin[o - p->command->options] == ORIGIN_FLAG && o->kind != OPTION_LIST) {
        why = "is given twice";
    } else {
        why = option_set(o, value);
    }
    if (why != NULL) {
        (void)fprintf(stderr, "ringhold %s: --%s: %s\n", p->command->name, key, why);
        return 0;
    }
    p->origin[o - p->command->options] = ORIGIN_FLAG;
    return words;
}

bool options_want_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

/* All words. Returns how many arguments there were, -1 after printing an error. */
static int take_words(struct options_parse *p, int argc, char **argv, const char *arguments[8])
{
    static char output[] = "--output";
    static char follow[] = "--follow";
    int count = 0;

    for (int i = 0; i < argc;) {
        if (strcmp(argv[i], "-o") == 0) {
            argv[i] = output;
        } else if (strcmp(argv[i], "-f") == 0) {
            argv[i] = follow;
        }
        if (strncmp(argv[i], "--", 2) == 0) {
            const int words = take_flag(p, argc - i, argv + i);

            if (words == 0) {
                return -1;
            }
            i += words;
        } else if (count < p->command->arguments_max && count < 8) {
            arguments[count++] = argv[i++];
        } else {
            (void)fprintf(stderr,
                          "ringhold %s: unexpected argument '%s' (see --help)\n",
                          p->command->name,
                          argv[i]);
            return -1;
        }
    }
    return count;
}

int options_parse(const struct command *command, int argc, char **argv, const char *arguments[8],
                  int *argument_count)
{
    struct options_parse p = {.command = command};

    if (options_want_help(argc, argv)) { // before a flag changes what it says of the defaults
        options_print_help(command);
        return 0;
    }
    const int count = take_words(&p, argc, argv, arguments);
    if (count < 0) {
        return 1;
    }
    if (command->places != NULL) {
        command->places->options = command->options;
        (void)snprintf(command->places->file, sizeof command->places->file, "%s", p.config);
    }
    if (!options_read_environment(&p) || (p.config[0] != '\0' && !options_read_file(&p))) {
        return 1;
    }
    if (p.print) {
        options_print_config(&p);
        return 0;
    }
    if (count < command->arguments_min) {
        (void)fprintf(
            stderr, "usage: ringhold %s [options] %s\n", command->name, command->arguments);
        return 1;
    }
    *argument_count = count;
    return p.check ? OPTIONS_CHECK : OPTIONS_RUN;
}

int options_checked(const struct command *command)
{
    (void)printf("[%s] is fine\n", command->name);
    return 0;
}
