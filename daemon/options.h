/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of one subcommand: a table of keys that a flag (`--key value` or
 * `--key=value`), a variable (RINGHOLD_NODE_KEY; of daemons) or a line of the
 * INI file's section (`key = value`) may set; the first of these that does wins.
 * An unknown key, a bad value, or a repeated single value is an error that names
 * where it stands.
 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_TEXT,   /* char[size] */
    OPTION_NUMBER, /* uint32_t, min..max */
    OPTION_TIME,   /* uint32_t milliseconds, min..max; said as 300ms, 3s, 5min, 1h or 2d */
    OPTION_LIST,   /* char[size]; may come several times: the values, one a line */
    OPTION_SWITCH, /* bool; a flag takes no value, the file takes yes/no */
};

struct option {
    const char *key;   /* without "--"; NULL ends the table */
    const char *value; /* how --help names the value; NULL for a switch */
    const char *help;  /* a '%' in it stands for the default */
    enum option_kind kind;
    void *target; /* holds the default until a value is set */
    size_t size;  /* TEXT: of the array */
    uint32_t min;
    uint32_t max;
    const char *alias; /* another name of the same, or NULL */
    bool reloads;      /* SIGHUP takes its new value over (daemon/reload_options.h) */
    bool veiled;       /* its value may hold a secret: no log line shows it */
};

/* Rows of a command's table. */
static inline struct option option_text(const char *key, const char *value, char *target,
                                        size_t size, const char *help)
{
    return (struct option){.key = key,
                           .value = value,
                           .help = help,
                           .kind = OPTION_TEXT,
                           .target = target,
                           .size = size};
}
static inline struct option option_list(const char *key, const char *value, char *target,
                                        size_t size, const char *help)
{
    return (struct option){.key = key,
                           .value = value,
                           .help = help,
                           .kind = OPTION_LIST,
                           .target = target,
                           .size = size};
}
/* `range` is {least, greatest}. */
struct option_range {
    uint32_t min;
    uint32_t max;
};
static inline struct option option_number(const char *key, uint32_t *target,
                                          struct option_range range, const char *help)
{
    return (struct option){.key = key,
                           .value = "N",
                           .help = help,
                           .kind = OPTION_NUMBER,
                           .target = target,
                           .min = range.min,
                           .max = range.max};
}
static inline struct option option_time(const char *key, uint32_t *target,
                                        struct option_range range, const char *help)
{
    return (struct option){.key = key,
                           .value = "TIME",
                           .help = help,
                           .kind = OPTION_TIME,
                           .target = target,
                           .min = range.min,
                           .max = range.max};
}
static inline struct option option_switch(const char *key, bool *target, const char *help)
{
    return (struct option){.key = key, .help = help, .kind = OPTION_SWITCH, .target = target};
}

/* The row of a key that a daemon takes over at SIGHUP. */
static inline struct option option_reloads(struct option row)
{
    row.reloads = true;
    return row;
}
/* … and of one whose value may hold a secret, as the argument of a plugin may. */
static inline struct option option_veiled(struct option row)
{
    row.veiled = true;
    return row;
}

/* A table that grows row by row; zeroed, it is empty. */
enum { OPTIONS_MAX = 64 };
struct options {
    struct option row[OPTIONS_MAX + 1];
    size_t count;
};

/* Write the option's value as a file would have it, or "" if nothing set it; the values of a list
 * are separated by '\n'. Cut at `size`. */
void option_format(const struct option *o, char *out, size_t size);
/* Take the value over from the same row of another table. */
void option_copy(const struct option *to, const struct option *from);

/* The row's place, for what it needs more. A table of more than OPTIONS_MAX is a fault of ours. */
struct option *options_add(struct options *t, struct option row);

/* The lines of the file that set the rows of a table; 0 = another one did, or none. */
enum { OPTIONS_PATH_SIZE = 4096 };
struct option_places {
    const struct option *options; /* borrowed */
    char file[OPTIONS_PATH_SIZE];
    uint32_t line[OPTIONS_MAX];
};

struct command {
    const char *name;      /* "coordinator", "node drain" */
    const char *summary;   /* one line for `ringhold --help` */
    const char *arguments; /* "NAME", "" = none */
    const char *details;   /* more for `--help`, or NULL */
    const struct option *options;
    int arguments_min;
    int arguments_max;
    bool daemon; /* its options may be in the environment; --check-config, --print-config */
    struct option_places *places; /* filled in; or NULL */
};

/* Results of options_parse() that are no exit code: run, or end after all checks. */
enum { OPTIONS_RUN = -1, OPTIONS_CHECK = -2 };

/* Parse argv[0..argc): flags, then the environment, then `--config FILE`'s section named like the
 * command, each where none before it did say otherwise. Positional arguments go to `arguments` (at
 * most 8). Returns OPTIONS_RUN, OPTIONS_CHECK (below 0 both), else the exit code: 0 after --help or
 * --print-config, 1 after an error, which it printed. Any thread, if nobody changes the
 * environment. */
int options_parse(const struct command *command, int argc, char **argv, const char *arguments[8],
                  int *argument_count);

/* True if one of the words is --help or -h. */
bool options_want_help(int argc, char **argv);

/* "300ms", "2s", "5min", "1h", "1d". False: it is none, and `ms` is untouched. */
bool options_duration(const char *text, uint64_t *ms);

/* Exit code of a daemon that was started to check its options only and found them good: prints so,
 * returns 0. */
int options_checked(const struct command *command);

#endif
