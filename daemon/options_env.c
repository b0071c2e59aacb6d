/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads options from environment variables, RINGHOLD_ROLE_KEY.
 */
#include "daemon/options_inside.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIABLE_MAX = 96, VALUE_MAX = 4096 };

extern char **environ;

/* What kubelet puts into each container for a Service that is called ringhold-node:
 * RINGHOLD_NODE_SERVICE_HOST, RINGHOLD_NODE_PORT_7501_TCP_ADDR and so on. */
static bool is_of_kubernetes(const char *key)
{
    return strncmp(key, "service-", 8) == 0 || strcmp(key, "port") == 0 ||
           strncmp(key, "port-", 5) == 0;
}

/* "LEASE_MARGIN" to "lease-margin". */
static void key_of(const char *name, size_t size, char key[VARIABLE_MAX])
{
    (void)snprintf(key, VARIABLE_MAX, "%.*s", (int)size, name);
    for (char *c = key; *c != '\0'; c++) {
        if (*c == '_') {
            *c = '-';
        } else {
            *c = (char)tolower((unsigned char)*c);
        }
    }
}

/* "RINGHOLD_NODE_" of the command `node`. */
static size_t prefix_of(const struct command *command, char prefix[VARIABLE_MAX])
{
    (void)snprintf(prefix, VARIABLE_MAX, "RINGHOLD_%s_", command->name);
    for (char *c = prefix; *c != '\0'; c++) {
        *c = (char)toupper((unsigned char)*c);
    }
    return strlen(prefix);
}

static bool refuse(const struct options_parse *p, const char *variable, const char *why)
{
    (void)fprintf(stderr,
                  "ringhold %s: environment variable %.*s: %s\n",
                  p->command->name,
                  (int)strcspn(variable, "="),
                  variable,
                  why);
    return false;
}

/* A list has its values on lines of their own. NULL, or what is wrong with one. */
static const char *set_lines(const struct option *o, const char *text)
{
    const char *why = NULL;

    while (text[0] != '\0' && why == NULL) {
        char line[VALUE_MAX];
        const size_t size = strcspn(text, "\n");

        if (size >= sizeof line) {
            return "the value is too long";
        }
        (void)snprintf(line, sizeof line, "%.*s", (int)size, text);
        why = size == 0 ? NULL : option_set(o, line);
        text += size + (text[size] == '\n');
    }
    return why;
}

static bool take(struct options_parse *p, const struct option *o, const char *variable)
{
    uint8_t *origin = &p->origin[o - p->command->options];
    const char *value = strchr(variable, '=') + 1;

    if (*origin != ORIGIN_DEFAULT) {
        return true;
    }
    *origin = ORIGIN_ENVIRONMENT;
    const char *why = o->kind == OPTION_LIST ? set_lines(o, value) : option_set(o, value);
    return why == NULL || refuse(p, variable, why);
}

/* Every RINGHOLD_NODE_…: one that no key has is a typing error, and is said. */
static bool read_own(struct options_parse *p)
{
    char prefix[VARIABLE_MAX];
    const size_t size = prefix_of(p->command, prefix);

    for (char **e = environ; *e != NULL; e++) {
        char key[VARIABLE_MAX];
        const size_t name_size = strcspn(*e, "=");

        if (strncmp(*e, prefix, size) != 0 || (*e)[name_size] != '=') {
            continue;
        }
        key_of(*e + size, name_size - size, key);
        const struct option *o = options_find(p->command, key);
        if (o == NULL && !is_of_kubernetes(key)) {
            return refuse(p, *e, "unknown key");
        }
        if (o != NULL && !take(p, o, *e)) {
            return false;
        }
    }
    return true;
}

/* What all processes of a fleet, and who looks at it, have in common. */
static bool read_common(struct options_parse *p)
{
    static const char *const common[][2] = {{"RINGHOLD_CLUSTER=", "cluster"},
                                            {"RINGHOLD_COORDINATORS=", "coordinators"},
                                            {"RINGHOLD_TLS_CA=", "link-ca"},
                                            {"RINGHOLD_TLS_CERTIFICATE=", "link-certificate"},
                                            {"RINGHOLD_TLS_KEY=", "link-key"}};

    for (char **e = environ; *e != NULL; e++) {
        for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
            const struct option *o = options_find(p->command, common[i][1]);

            if (o != NULL && strncmp(*e, common[i][0], strlen(common[i][0])) == 0 &&
                !take(p, o, *e)) {
                return false;
            }
        }
    }
    return true;
}

bool options_read_environment(struct options_parse *p)
{
    return (!p->command->daemon || read_own(p)) && read_common(p);
}
