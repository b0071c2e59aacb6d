/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options_inside.h"

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
        return "it is set twice";
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

bool options_read_file(struct options_parse *p)
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
                      p->fault[0] == '\0' ? "neither [section] nor key = value" : p->fault);
        return false;
    }
    if (p->command->daemon && !p->has_section) {
        (void)fprintf(stderr, "ringhold %s: %s: no key in a section [%s]\n", name, p->config, name);
        return false;
    }
    return true;
}
