/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold context add | use | list | show | remove`: fleets by name.
 */
#include "base/assert.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/rows.h"
#include "cli/subcommand.h"
#include "daemon/admin.h"
#include "daemon/link_args.h"
#include "daemon/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a gateway's address may be; several with commas between. */
static bool are_addresses(const char *text)
{
    char addresses[ADMIN_COORDINATORS_MAX][128];
    size_t count;

    return admin_split(text, addresses, ADMIN_COORDINATORS_MAX, &count) == ERR_OK;
}

static bool complain(const char *key, const char *why)
{
    (void)fprintf(stderr, "ringhold context add: --%s: %s\n", key, why);
    return false;
}

/* A path is good wherever the command is called that uses it. */
static bool make_whole(struct context *c, enum context_key key)
{
    char *value = c->value[key];
    char folder[CONTEXT_PATH_SIZE];
    char whole[CONTEXT_PATH_SIZE + CONTEXT_VALUE_SIZE];

    if (value[0] == '\0') {
        return true;
    }
    if (access(value, R_OK) != 0 || getcwd(folder, sizeof folder) == NULL) {
        return complain(context_key_name(key), strerror(errno));
    }
    if (value[0] != '/') {
        (void)snprintf(whole, sizeof whole, "%s/%s", folder, value);
        const size_t size = strlen(whole) + 1;
        if (size > CONTEXT_VALUE_SIZE) {
            return complain(context_key_name(key), "its whole path is too long");
        }
        memcpy(value, whole, size);
    }
    return true;
}

static bool is_sound(struct context *c)
{
    const int given = (c->value[CONTEXT_TLS_CA][0] != '\0') +
                      (c->value[CONTEXT_TLS_CERTIFICATE][0] != '\0') +
                      (c->value[CONTEXT_TLS_KEY][0] != '\0');

    if (!context_is_name(c->name)) {
        (void)fprintf(stderr,
                      "ringhold context add: '%s' can't be a name: 1 to 64 of a-z A-Z 0-9 . _ -\n",
                      c->name);
        return false;
    }
    if (!are_addresses(c->value[CONTEXT_COORDINATORS])) {
        return complain("coordinators", "must be HOST:PORT, or several with commas between");
    }
    if (c->value[CONTEXT_GATEWAY][0] != '\0' && !are_addresses(c->value[CONTEXT_GATEWAY])) {
        return complain("gateway", "must be HOST:PORT, or several with commas between");
    }
    if (given != 0 && given != 3) {
        return complain("link-ca, --link-certificate, --link-key", "give all three or none");
    }
    return make_whole(c, CONTEXT_TLS_CA) && make_whole(c, CONTEXT_TLS_CERTIFICATE) &&
           make_whole(c, CONTEXT_TLS_KEY) && make_whole(c, CONTEXT_TOKEN);
}

static struct option key_option(struct context *c, enum context_key key, const char *value,
                                const char *help)
{
    return option_text(context_key_name(key), value, c->value[key], CONTEXT_VALUE_SIZE, help);
}

static int add(int argc, char **argv)
{
    struct context c = {.name = ""};
    const char *arguments[8];
    int count = 0;
    const struct option options[] = {
        key_option(&c, CONTEXT_COORDINATORS, "HOST:PORT,...", "the coordinators' addresses"),
        key_option(&c, CONTEXT_CLUSTER, "NAME", "the cluster's name (ringhold)"),
        key_option(&c,
                   CONTEXT_GATEWAY,
                   "HOST:PORT,...",
                   "gateways' addresses for packets, for `ringhold call`"),
        key_option(&c, CONTEXT_TLS_CA, "FILE", "TLS: the authority of the fleet (PEM)"),
        key_option(&c, CONTEXT_TLS_CERTIFICATE, "FILE", "TLS: the operator's certificate (PEM)"),
        key_option(&c, CONTEXT_TLS_KEY, "FILE", "TLS: its key (PEM)"),
        key_option(&c, CONTEXT_TOKEN, "FILE", "a file with the token for gateways"),
        {0},
    };
    const struct command command = {
        .name = "context add",
        .summary = "Name a fleet, or change what a name stands for.",
        .arguments = "NAME",
        .details = "Files are kept as paths; nothing is copied out of them.",
        .options = options,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int code = options_parse(&command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    if (strlen(arguments[0]) >= sizeof c.name) {
        (void)fprintf(stderr, "ringhold context add: the name has more than 64 characters\n");
        return 1;
    }
    (void)snprintf(c.name, sizeof c.name, "%s", arguments[0]);
    if (!is_sound(&c) || !context_save(&c)) {
        return 1;
    }
    (void)printf("context %s is kept\nnext: `ringhold context use %s` makes it the default, "
                 "`--context %s` asks it once\n",
                 c.name,
                 c.name,
                 c.name);
    return 0;
}

/* The one argument of a command without options: -1, else the exit code. */
static int take(int argc, char **argv, const struct command *form, const char **argument)
{
    static const struct option none[] = {{0}};
    struct command command = *form;
    const char *arguments[8];
    int count = 0;

    command.options = none;
    const int code = options_parse(&command, argc, argv, arguments, &count);
    *argument = code < 0 && count > 0 ? arguments[0] : NULL;
    return code;
}

static int use(int argc, char **argv)
{
    const struct command command = {
        .name = "context use",
        .summary = "Have commands ask this fleet, unless they are told otherwise.",
        .arguments = "NAME|none",
        .arguments_min = 1,
        .arguments_max = 1,
    };
    struct context c;
    const char *name;
    const int code = take(argc, argv, &command, &name);

    if (code >= 0) {
        return code;
    }
    ASSERT(name != NULL); // arguments_min
    if (strcmp(name, "none") == 0) {
        if (!context_use("")) {
            return 1;
        }
        (void)printf("no context is in use\n");
        return 0;
    }
    if (!context_load(name, &c) || !context_use(name)) {
        return 1;
    }
    (void)printf("context %s is in use: %s\n", name, c.value[CONTEXT_COORDINATORS]);
    return 0;
}

struct context_listing {
    struct rows rows;
    char current[CONTEXT_NAME_SIZE];
    bool good;
};

static void add_row(void *context, const char *name)
{
    struct context_listing *l = context;
    struct context c;

    l->good = context_load(name, &c) && l->good;
    rows_text(&l->rows, "%s", name);
    rows_text(&l->rows, "%s", strcmp(name, l->current) == 0 ? "yes" : "no");
    rows_text(&l->rows, "%s", c.value[CONTEXT_CLUSTER]);
    rows_text(&l->rows, "%s", c.value[CONTEXT_COORDINATORS]);
    rows_text(&l->rows, "%s", c.value[CONTEXT_GATEWAY]);
}

static int list(int argc, char **argv)
{
    static const char *const columns[] = {
        "CONTEXT", "IN USE", "CLUSTER", "COORDINATORS", "GATEWAY", NULL};
    const struct command command = {
        .name = "context list",
        .summary = "List the contexts.",
        .arguments = "",
    };
    struct context_listing l = {.good = true};
    const char *none;
    const int code = take(argc, argv, &command, &none);

    if (code >= 0) {
        return code;
    }
    rows_init(&l.rows, columns);
    l.good = context_current(l.current) && context_list(add_row, &l) && l.good;
    rows_print(&l.rows, ROWS_TABLE);
    rows_fini(&l.rows);
    return l.good ? 0 : 1;
}

static int show(int argc, char **argv)
{
    const struct command command = {
        .name = "context show",
        .summary = "Show a context; without NAME the one that a command would have.",
        .arguments = "[NAME]",
        .arguments_max = 1,
    };
    struct context c;
    const char *name;
    const int code = take(argc, argv, &command, &name);

    if (code >= 0) {
        return code;
    }
    if (name == NULL ? !context_default(&c) : !context_load(name, &c)) {
        return 1;
    }
    if (c.name[0] == '\0') {
        (void)fprintf(stderr, "ringhold context show: no context is in use\n");
        return 1;
    }
    (void)printf("context %s\n", c.name);
    for (int key = 0; key < CONTEXT_KEYS; key++) {
        if (c.value[key][0] != '\0') {
            (void)printf("%s = %s\n", context_key_name((enum context_key)key), c.value[key]);
        }
    }
    return 0;
}

static int drop(int argc, char **argv)
{
    const struct command command = {
        .name = "context remove",
        .summary = "Forget a context.",
        .arguments = "NAME",
        .details = "If it is in use, none is afterwards. The files that it names stay.",
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *name;
    const int code = take(argc, argv, &command, &name);

    if (code >= 0) {
        return code;
    }
    ASSERT(name != NULL); // arguments_min
    if (!context_remove(name)) {
        return 1;
    }
    (void)printf("context %s is removed\n", name);
    return 0;
}

int cmd_context(int argc, char **argv)
{
    static const struct subcommand table[] = {
        {"add", add, "[options] NAME"},
        {"use", use, "NAME|none"},
        {"list", list, ""},
        {"show", show, "[NAME]"},
        {"remove", drop, "NAME"},
        {0},
    };

    return subcommand_run("context", table, argc, argv);
}
