/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold tls init | coordinator | node | gateway | operator | check`: the
 * certificates by which the processes of a fleet know each other.
 */
#include "cli/authority.h"
#include "cli/commands.h"
#include "cli/credential.h"
#include "cli/rows.h"
#include "daemon/options.h"
#include "wire/hello.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DAYS_MAX = 36500, CA_DAYS = 3650, DAYS = 365, EXIT_WRONG = 2, VOTER_MAX = 255 };

struct tls_args {
    char folder[AUTHORITY_PATH_SIZE];
    char cluster[LINK_NAME_MAX + 1];
    char ca[CREDENTIAL_PATH_SIZE];
    char key[CREDENTIAL_PATH_SIZE];
    uint32_t days;
    bool renew;
};

static struct option folder_option(struct tls_args *w)
{
    return option_text(
        "dir", "DIR", w->folder, sizeof w->folder, "the authority's folder (ringhold-tls)");
}

static struct option days_option(struct tls_args *w, uint32_t least, const char *help)
{
    return option_number("days", &w->days, (struct option_range){least, DAYS_MAX}, help);
}

static int failed(const char *command, const char *why)
{
    (void)fprintf(stderr, "ringhold %s: %s\n", command, why);
    return 1;
}

/* ---- init ---- */

static int init(int argc, char **argv)
{
    struct tls_args w = {.folder = "ringhold-tls", .cluster = "ringhold", .days = CA_DAYS};
    const struct option options[] = {
        folder_option(&w),
        option_text(
            "cluster", "NAME", w.cluster, sizeof w.cluster, "the cluster that it signs for (%)"),
        days_option(&w, 1, "how long the authority is valid (3650)"),
        {0},
    };
    const struct command command = {
        .name = "tls init",
        .summary = "Make a certificate authority for the links of a fleet: DIR/ca.pem and ca.key.",
        .arguments = "",
        .details = "Every process gets a copy of ca.pem. Whoever has ca.key can pose as any "
                   "process: keep it off\nthe fleet's machines. Existing files are not changed.",
        .options = options,
    };
    const char *arguments[8];
    char why[PEM_WHY_SIZE];
    int count = 0;
    const int code = options_parse(&command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    if (!hello_name_is_valid(w.cluster)) {
        return failed("tls init", "--cluster: a name is 1 to 63 letters, digits, '.', '_' or '-'");
    }
    if (!authority_create(w.folder, w.cluster, w.days, why)) {
        return failed("tls init", why);
    }
    (void)printf("%s/ca.pem  for every process of cluster %s\n"
                 "%s/ca.key  signs certificates: keep it off the fleet's machines\n",
                 w.folder,
                 w.cluster,
                 w.folder);
    return 0;
}

/* ---- coordinator, node, gateway, operator ---- */

static bool name_is_valid(enum link_role role, const char *name)
{
    char again[8];
    char *end = NULL;
    const unsigned long number = strtoul(name, &end, 10);

    if (role != ROLE_COORDINATOR) {
        return hello_name_is_valid(name);
    }
    (void)snprintf(again, sizeof again, "%lu", number);
    return number >= 1 && number <= VOTER_MAX && strcmp(again, name) == 0; // its --id
}

static int issue(const char *title, enum link_role role, const struct tls_args *w, const char *name)
{
    struct subject subject = {.role = role};
    char why[PEM_WHY_SIZE];

    if (!name_is_valid(role, name)) {
        return failed(title,
                      role == ROLE_COORDINATOR
                          ? "a coordinator's name is its --id: 1 to 255"
                          : "a name is 1 to 63 letters, digits, '.', '_' or '-'");
    }
    struct authority *a = authority_open(w->folder, why);
    if (a == NULL) {
        return failed(title, why);
    }
    memcpy(subject.cluster, authority_cluster(a), sizeof subject.cluster);
    (void)snprintf(subject.name, sizeof subject.name, "%s", name);
    const bool good = authority_issue(a, &subject, w->days, w->renew, why);
    authority_free(a);
    if (!good) {
        return failed(title, why);
    }
    const char *word = subject_role_name(role);
    (void)printf("%s/%s-%s.pem\n%s/%s-%s.key\n", w->folder, word, name, w->folder, word, name);
    return 0;
}

static int make(enum link_role role, int argc, char **argv)
{
    struct tls_args w = {.folder = "ringhold-tls", .days = DAYS};
    char title[32];
    const struct option options[] = {
        folder_option(&w),
        days_option(
            &w, 1, "how long the certificate is valid, at most until the authority's end (365)"),
        option_switch("renew", &w.renew, "replace existing files"),
        {0},
    };
    struct command command = {
        .name = title,
        .summary = "Make a key, and a certificate that names its owner: DIR/ROLE-NAME.pem, .key.",
        .arguments = "NAME",
        .details = "ROLE is coordinator (NAME is its --id), node, gateway or operator (a person "
                   "who gives commands).\nA process uses the pair as certificate and key of [tls]; "
                   "SIGHUP makes it read them again.",
        .options = options,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[8];
    int count = 0;

    (void)snprintf(title, sizeof title, "tls %s", subject_role_name(role));
    const int code = options_parse(&command, argc, argv, arguments, &count);
    return code >= 0 ? code : issue(title, role, &w, arguments[0]);
}

/* ---- check ---- */

static void print_credential(const char *path, const struct credential *c)
{
    char ends[48];

    (void)printf("%s: %s%s\n", path, c->wrong[0] == '\0' ? "good" : "wrong: ", c->wrong);
    if (c->is_authority) {
        (void)printf("  is       an authority: %s\n", c->name);
    } else if (c->has_subject) {
        (void)printf("  of       %s %s of cluster %s\n  may      %s\n",
                     subject_role_name(c->subject.role),
                     c->subject.name,
                     c->subject.cluster,
                     credential_use(c->subject.role));
    }
    if (c->is_read) {
        (void)printf("  expires  %s, in %ld days\n",
                     wall_text(c->ends_s * 1000000, ends, sizeof ends),
                     c->days_left);
    }
}

static int check_all(const struct tls_args *w, const char *const *path, int count)
{
    int code = 0;

    for (int i = 0; i < count; i++) {
        struct credential c;

        credential_check(path[i], w->ca, w->key, &c);
        if (c.wrong[0] == '\0' && c.days_left < (long)w->days) {
            (void)snprintf(c.wrong, sizeof c.wrong, "it expires in %ld days", c.days_left);
        }
        print_credential(path[i], &c);
        code = c.wrong[0] == '\0' ? code : EXIT_WRONG;
    }
    return code;
}

static int check(int argc, char **argv)
{
    struct tls_args w = {.days = 0};
    const struct option options[] = {
        option_text("ca",
                    "FILE",
                    w.ca,
                    sizeof w.ca,
                    "the authority that must have signed it (ca.pem beside it)"),
        option_text("key", "FILE", w.key, sizeof w.key, "its key (the same name with .key)"),
        days_option(&w, 0, "also report it when it is valid for fewer days (0)"),
        {0},
    };
    const struct command command = {
        .name = "tls check",
        .summary =
            "Show what certificates allow, how long they are valid, and whether the key fits.",
        .arguments = "FILE...",
        .details = "Judges as a process does when it starts with them. Exit code 2: at least one "
                   "is wrong.",
        .options = options,
        .arguments_min = 1,
        .arguments_max = 8,
    };
    const char *arguments[8];
    int count = 0;
    const int code = options_parse(&command, argc, argv, arguments, &count);

    return code >= 0 ? code : check_all(&w, arguments, count);
}

int cmd_tls(int argc, char **argv)
{
    const char *word = argc >= 1 ? argv[0] : "";
    enum link_role role;

    if (strcmp(word, "init") == 0) {
        return init(argc - 1, argv + 1);
    }
    if (strcmp(word, "check") == 0) {
        return check(argc - 1, argv + 1);
    }
    if (subject_role_parse(word, &role)) {
        return make(role, argc - 1, argv + 1);
    }
    const bool asked = strcmp(word, "--help") == 0;
    (void)fprintf(asked ? stdout : stderr,
                  "usage: ringhold tls init [--cluster NAME] [options]\n"
                  "       ringhold tls coordinator | node | gateway | operator NAME [options]\n"
                  "       ringhold tls check FILE... [options]\n");
    return asked ? 0 : 1;
}
