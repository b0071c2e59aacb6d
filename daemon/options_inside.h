/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the options share: flags first, then the environment, then
 * the file; each sets only what those before it did not.
 */
#ifndef DAEMON_OPTIONS_INSIDE_H
#define DAEMON_OPTIONS_INSIDE_H

#include "daemon/options.h"

#include <stdio.h>

/* ORIGIN_COMMON: of the file's section [tls], which all roles share; their own sections win. */
enum option_origin { ORIGIN_DEFAULT, ORIGIN_FLAG, ORIGIN_ENVIRONMENT, ORIGIN_FILE, ORIGIN_COMMON };

struct options_parse {
    const struct command *command;
    uint8_t origin[OPTIONS_MAX]; /* enum option_origin */
    char config[OPTIONS_PATH_SIZE];
    char fault[160]; /* of the file's first bad line */
    FILE *file;      /* while it is read */
    uint32_t line;
    bool has_section;
    bool check; /* --check-config */
    bool print; /* --print-config */
};

/* The option of that name or alias; NULL if there is none. */
const struct option *options_find(const struct command *command, const char *key);

/* Take a value. NULL, or what is wrong with it: a text that is good until the next call. */
const char *option_set(const struct option *o, const char *value);

/* RINGHOLD_NODE_LISTEN of key `listen` of the command `node`. False after printing a fault. */
bool options_read_environment(struct options_parse *p);

/* The command's section of p->config. False after printing a fault. */
bool options_read_file(struct options_parse *p);

void options_print_help(const struct command *command);

/* Every key with its value and where it comes from, as a section that --config would take. */
void options_print_config(const struct options_parse *p);

#endif
