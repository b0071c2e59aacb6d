/* SPDX-License-Identifier: Apache-2.0
 *
 * What a daemon runs with: the keys of its table, from flags, environment and file,
 * and what follows from them. Read once at start, and by the same way again at
 * SIGHUP (daemon/reload_options.h).
 */
#ifndef DAEMON_SETTINGS_H
#define DAEMON_SETTINGS_H

#include "daemon/options.h"

/* A daemon's own struct begins with it; its table points into that struct. */
struct settings {
    const struct settings_kind *kind;
    struct options table;
    struct command command; /* `options` and `places` are filled in */
    struct option_places places;
};

struct settings_kind {
    size_t size; /* of the daemon's own struct */
    /* Of a zeroed one: defaults, table and command. */
    void (*init)(struct settings *s);
    /* Fill in what follows from the values, and see that they go together. False after printing
     * what is wrong. It may be called again. */
    bool (*derive)(struct settings *s);
    /* Run derive() and every other check of a start, files included. Returns OPTIONS_RUN, or the
     * exit code after printing something. */
    int (*check)(struct settings *s);
    /* Run until it ends: the exit code. */
    int (*run)(struct settings *s, int argc, char **argv);
};

/* Read the settings into a zeroed struct of that kind. Returns OPTIONS_RUN, OPTIONS_CHECK or an
 * exit code, as options_parse(). Nothing outside `s` changes. */
int settings_read(struct settings *s, const struct settings_kind *kind, int argc, char **argv);

/* Run a daemon's command: read its settings, then run it, or say what `config check` is told.
 * Returns the exit code. */
int settings_run(const struct settings_kind *kind, int argc, char **argv);

/* The value of `log-level`. */
const char *settings_level(const struct settings *s);

#endif
