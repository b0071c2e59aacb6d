/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads options from the command's section of an INI file.
 */
#include "daemon/options_inside.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

/* NULL or what is wrong. */
static const char *take_line(struct options_parse *p, const char *name, const char *value,
                             enum option_origin from)
{
    const struct option *o = options_find(p->command, name);

    if (o == NULL) {
        return "unknown key";
    }
    uint8_t *origin = &p->origin[o - p->command->options];
    if (*origin == ORIGIN_FLAG || *origin == ORIGIN_ENVIRONMENT ||
        (*origin == ORIGIN_FILE && from == ORIGIN_COMMON)) {
        return NULL;
    }
    if (*origin == from && o->kind != OPTION_LIST) {
        return "is set twice";
    }
    if (p->command->places != NULL && *origin != from) {
        p->command->places->line[o - p->command->options] = p->line;
    }
    *origin = (uint8_t)from;
    return option_set(o, value);
}

/* A line of [tls]: `ca` is what commands that have links call --link-ca. */
static const char *take_tls(struct options_parse *p, const char *name, const char *value)
{
    static const char *const keys[] = {"ca", "certificate", "key"};
    char key[32];

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(name, keys[i]) == 0) {
            (void)snprintf(key, sizeof key, "link-%s", name);
            return options_find(p->command, key) == NULL ? NULL
                                                         : take_line(p, key, value, ORIGIN_COMMON);
        }
    }
    return "unknown key";
}

/* Returns 0 for a bad line: ini_parse() then tells the first one's number. */
// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): the parameters are libinih's
static int on_line(void *user, const char *section, const char *name, const char *value)
{
    struct options_parse *p = user;

    const bool tls = strcmp(section, "tls") == 0;

    if (!tls && strcmp(section, p->command->name) != 0) {
        return 1;
    }
    p->has_section |= !tls;
    const char *why = tls ? take_tls(p, name, value) : take_line(p, name, value, ORIGIN_FILE);
    if (why != NULL && p->fault[0] == '\0') {
        (void)snprintf(p->fault, sizeof p->fault, "%s: %s", name, why);
    }
    return why == NULL;
}

/* ini_parse_stream()'s fgets, which counts lines as that does. */
static char *next_line(char *text, int size, void *stream)
{
    struct options_parse *p = stream;

    p->line++;
    return fgets(text, size, p->file);
}

/* As ini_parse(): below 0 = can't be read (errno), else the first bad line, or 0. */
static int read_lines(struct options_parse *p)
{
    p->file = fopen(p->config, "re");
    if (p->file == NULL) {
        return -1;
    }
    const int line = ini_parse_stream(next_line, p, on_line, p);
    (void)fclose(p->file);
    return line;
}

bool options_read_file(struct options_parse *p)
{
    const int line = read_lines(p);
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
                      p->fault[0] == '\0' ? "neither [section] nor key = value" : p->fault);
        return false;
    }
    if (p->command->daemon && !p->has_section) {
        (void)fprintf(stderr, "ringhold %s: %s: section [%s] sets no key\n", name, p->config, name);
        return false;
    }
    return true;
}
