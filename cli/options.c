/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 64, PATH_SIZE = 4096 };

struct parse {
    const struct command *command;
    bool set[OPTIONS_MAX]; /* by a flag: the file does not override it */
    bool from_file[OPTIONS_MAX];
    char config[PATH_SIZE];
    char file_error[160]; /* of the first bad line */
};

static void print_help(const struct command *command)
{
    (void)printf("usage: ringhold %s [options]%s%s\n\n%s\n",
                 command->name,
                 command->arguments[0] == '\0' ? "" : " ",
                 command->arguments,
                 command->summary);
    if (command->details != NULL) {
        (void)printf("\n%s\n", command->details);
    }
    (void)printf("\noptions (as a flag, or in the file's section [%s]):\n", command->name);
    for (const struct option *o = command->options; o->key != NULL; o++) {
        char flag[96];

        (void)snprintf(flag,
                       sizeof flag,
                       "--%s%s%s",
                       o->key,
                       o->value == NULL ? "" : " ",
                       o->value == NULL ? "" : o->value);
        (void)printf("  %-28s %s\n", flag, o->help);
    }
    (void)printf("  %-28s %s\n", "--config FILE", "read options from an INI file");
    (void)printf("  %-28s %s\n", "--help", "this text");
}

static const struct option *find(const struct command *command, const char *key)
{
    for (const struct option *o = command->options; o->key != NULL; o++) {
        if (strcmp(o->key, key) == 0 || (o->alias != NULL && strcmp(o->alias, key) == 0)) {
            return o;
        }
    }
    return NULL;
}

/* Returns NULL or what is wrong with the value. */
static const char *set_number(const struct option *o, const char *value)
{
    static char why[96];
    char *end = NULL;

    errno = 0;
    const unsigned long long number = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || number < o->min ||
        number > o->max) {
        (void)snprintf(why, sizeof why, "it takes a whole number from %u to %u", o->min, o->max);
        return why;
    }
    *(uint32_t *)o->target = (uint32_t)number;
    return NULL;
}

/* Milliseconds in a unit, 0 = no such unit. */
static uint32_t unit_ms(const char *unit)
{
    return strcmp(unit, "ms") == 0    ? 1
           : strcmp(unit, "s") == 0   ? 1000
           : strcmp(unit, "min") == 0 ? 60000
           : strcmp(unit, "h") == 0   ? 3600000
           : strcmp(unit, "d") == 0   ? 86400000
                                      : 0;
}

/* Returns NULL or what is wrong with the value. */
static const char *set_time(const struct option *o, const char *value)
{
    static char why[96];
    char *end = NULL;

    errno = 0;
    const unsigned long long number = strtoull(value, &end, 10);
    const uint32_t unit = unit_ms(end);
    if (value[0] < '0' || value[0] > '9' || errno != 0 || unit == 0 || number > UINT32_MAX ||
        number * unit < o->min || number * unit > o->max) {
        (void)snprintf(why,
                       sizeof why,
                       "it takes a time as 300ms, 3s or 5min, also h and d, from %ums to %us",
                       o->min,
                       o->max / 1000);
        return why;
    }
    *(uint32_t *)o->target = (uint32_t)(number * unit);
    return NULL;
}

static const char *set_text(const struct option *o, const char *value)
{
    if (strlen(value) >= o->size) {
        return "it is too long";
    }
    (void)snprintf(o->target, o->size, "%s", value);
    return NULL;
}

static const char *set_list(const struct option *o, const char *value)
{
    char *text = o->target;
    const size_t used = strlen(text);

    if (strlen(value) + 2 > o->size - used || strchr(value, '\n') != NULL) {
        return "it is too long";
    }
    (void)snprintf(text + used, o->size - used, "%s%s", used == 0 ? "" : "\n", value);
    return NULL;
}

static const char *set_switch(const struct option *o, const char *value)
{
    if (strcmp(value, "yes") == 0 || strcmp(value, "true") == 0) {
        *(bool *)o->target = true;
    } else if (strcmp(value, "no") == 0 || strcmp(value, "false") == 0) {
        *(bool *)o->target = false;
    } else {
        return "it takes yes or no";
    }
    return NULL;
}

static const char *set(const struct option *o, const char *value)
{
    switch (o->kind) {
    case OPTION_TEXT:
        return set_text(o, value);
    case OPTION_NUMBER:
        return set_number(o, value);
    case OPTION_TIME:
        return set_time(o, value);
    case OPTION_LIST:
        return set_list(o, value);
    case OPTION_SWITCH:
        return set_switch(o, value);
    }
    return "it is of no known kind";
}

/* Returns 0 for a bad line: ini_parse() then tells the first one's number. */
// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): the parameters are libinih's
static int on_line(void *user, const char *section, const char *name, const char *value)
{
    struct parse *p = user;
    const char *why = NULL;

    if (strcmp(section, p->command->name) != 0) {
        return 1;
    }
    const struct option *o = find(p->command, name);
    if (o == NULL) {
        why = "unknown key";
    } else if (p->from_file[o - p->command->options] && o->kind != OPTION_LIST) {
        why = "it is set twice";
    } else if (!p->set[o - p->command->options]) {
        why = set(o, value);
    }
    if (why != NULL && p->file_error[0] == '\0') {
        (void)snprintf(p->file_error, sizeof p->file_error, "%s: %s", name, why);
    }
    if (why != NULL) {
        return 0;
    }
    p->from_file[o - p->command->options] = true;
    return 1;
}

static bool read_file(struct parse *p)
{
    const int line = ini_parse(p->config, on_line, p);
    const char *name = p->command->name;

    if (line < 0) {
        (void)fprintf(stderr, "ringhold %s: can't read %s: %s\n", name, p->config, strerror(errno));
        return false;
    }
    if (line > 0) {
        (void)fprintf(stderr,
                      "ringhold %s: %s:%d: %s\n",
                      name,
                      p->config,
                      line,
                      p->file_error[0] == '\0' ? "neither [section] nor key = value"
                                               : p->file_error);
        return false;
    }
    return true;
}

/* One flag at argv[0]. Returns how many words it took, or 0 after printing an error. */
static int take_flag(struct parse *p, int argc, char **argv)
{
    char key[64];
    const char *name = argv[0] + 2;
    const char *equals = strchr(name, '=');
    const size_t size = equals == NULL ? strlen(name) : (size_t)(equals - name);
    const char *value = equals == NULL ? (argc > 1 ? argv[1] : NULL) : equals + 1;
    int words = equals == NULL ? 2 : 1;
    const char *why = NULL;

    (void)snprintf(key, sizeof key, "%.*s", (int)size, name);
    const struct option *o = find(p->command, key);
    if (strcmp(key, "config") == 0 && value != NULL) {
        (void)snprintf(p->config, sizeof p->config, "%s", value);
        return words;
    }
    if (o == NULL) {
        why = "unknown flag (see --help)";
    } else if (o->kind == OPTION_SWITCH && equals == NULL) {
        words = 1;
        why = set_switch(o, "yes");
    } else if (value == NULL) {
        why = "it takes a value";
    } else if (p->set[o - p->command->options] && o->kind != OPTION_LIST) {
        why = "it is given twice";
    } else {
        why = set(o, value);
    }
    if (why != NULL) {
        (void)fprintf(stderr, "ringhold %s: --%s: %s\n", p->command->name, key, why);
        return 0;
    }
    p->set[o - p->command->options] = true;
    return words;
}

int options_parse(const struct command *command, int argc, char **argv, const char *arguments[8],
                  int *argument_count)
{
    struct parse p = {.command = command};
    int count = 0;

    for (int i = 0; i < argc;) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(command);
            return 0;
        }
        char output[] = "--output";
        if (strcmp(argv[i], "-o") == 0) {
            argv[i] = output;
        }
        if (strncmp(argv[i], "--", 2) == 0) {
            const int words = take_flag(&p, argc - i, argv + i);

            if (words == 0) {
                return 1;
            }
            i += words;
        } else if (count < command->arguments_max && count < 8) {
            arguments[count++] = argv[i++];
        } else {
            (void)fprintf(stderr, "ringhold %s: what is '%s'?\n", command->name, argv[i]);
            return 1;
        }
    }
    if (p.config[0] != '\0' && !read_file(&p)) {
        return 1;
    }
    if (count < command->arguments_min) {
        (void)fprintf(
            stderr, "usage: ringhold %s [options] %s\n", command->name, command->arguments);
        return 1;
    }
    *argument_count = count;
    return -1;
}
