/* SPDX-License-Identifier: Apache-2.0
 *
 * The common part of all commands that ask coordinators: options, the question,
 * the output.
 */
#include "cli/query.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/plain.h"
#include "base/random.h"
#include "base/stamp.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OWN_OPTIONS = 8, OPTIONS_MORE_MAX = 8, TIMEOUT_MS = 5000, TIMEOUT_MAX_MS = 600000 };

const struct option *query_options(struct query *q, const struct option *extra)
{
    return query_options_more(q, extra, extra == NULL ? 0 : 1);
}

const struct option *query_options_more(struct query *q, const struct option *more, size_t count)
{
    static struct option table[OWN_OPTIONS + OPTIONS_MORE_MAX + 1];

    ASSERT(count <= OPTIONS_MORE_MAX);
    *q = (struct query){.timeout_ms = TIMEOUT_MS};
    (void)snprintf(q->coordinators, sizeof q->coordinators, ADMIN_HERE);
    (void)snprintf(q->cluster, sizeof q->cluster, "ringhold");
    (void)snprintf(q->output, sizeof q->output, "table");
    table[0] = option_text("coordinators",
                           "HOST:PORT,...",
                           q->coordinators,
                           sizeof q->coordinators,
                           "the coordinators' addresses (RINGHOLD_COORDINATORS; " ADMIN_HERE ")");
    table[1] = option_text("cluster",
                           "NAME",
                           q->cluster,
                           sizeof q->cluster,
                           "the cluster's name (RINGHOLD_CLUSTER; ringhold)");
    table[2] = option_text("output",
                           "table|wide|tsv|json",
                           q->output,
                           sizeof q->output,
                           "output format; also -o (table: no wider than 100 columns)");
    table[3] = option_number("timeout-ms",
                             &q->timeout_ms,
                             (struct option_range){1, TIMEOUT_MAX_MS},
                             "how long to wait for an answer (5000)");
    table[4] = link_ca_option(&q->tls);
    table[5] = link_certificate_option(&q->tls);
    table[6] = link_key_option(&q->tls);
    table[7] = option_text("context",
                           "NAME",
                           q->context,
                           sizeof q->context,
                           "the fleet of that context (RINGHOLD_CONTEXT, `ringhold context use`)");
    // The table ends with an empty row.
    for (size_t i = 0; i <= OPTIONS_MORE_MAX; i++) {
        table[OWN_OPTIONS + i] = i < count ? more[i] : (struct option){0};
    }
    return table;
}

struct option query_reason(struct query *q)
{
    return option_text("reason",
                       "TEXT",
                       q->reason,
                       sizeof q->reason,
                       "the reason, for the audit history; at most 200 bytes");
}

bool query_number(const char *command, const char *name, const char *word,
                  struct option_range range, uint32_t *out)
{
    char *end = NULL;
    const unsigned long number = strtoul(word, &end, 10);

    if (word[0] < '0' || word[0] > '9' || *end != '\0' || number < range.min ||
        number > range.max) {
        (void)fprintf(stderr,
                      "ringhold %s: %s must be a number from %" PRIu32 " to %" PRIu32 "\n",
                      command,
                      name,
                      range.min,
                      range.max);
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

/* ---- the context ---- */

/* The value of a flag, "" without one; NULL: it is not given. */
static const char *flag_of(int argc, char **argv, const char *key)
{
    const size_t size = strlen(key);

    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0 && strncmp(argv[i] + 2, key, size) == 0) {
            const char *end = argv[i] + 2 + size;

            if (*end == '=') {
                return end + 1;
            }
            if (*end == '\0') {
                return i + 1 < argc ? argv[i + 1] : "";
            }
        }
    }
    return NULL;
}

static bool is_tls(int key)
{
    return key == CONTEXT_TLS_CA || key == CONTEXT_TLS_CERTIFICATE || key == CONTEXT_TLS_KEY;
}

/* The files of TLS are one value: who gives one of them gives all. */
static bool is_given(int argc, char **argv, int key)
{
    return is_tls(key) ? flag_of(argc, argv, "link-ca") != NULL ||
                             flag_of(argc, argv, "link-certificate") != NULL ||
                             flag_of(argc, argv, "link-key") != NULL
                       : flag_of(argc, argv, context_key_name((enum context_key)key)) != NULL;
}

static bool has_tls_environment(void)
{
    return getenv("RINGHOLD_TLS_CA") != NULL || getenv("RINGHOLD_TLS_CERTIFICATE") != NULL ||
           getenv("RINGHOLD_TLS_KEY") != NULL;
}

/* All commands that ask coordinators have that option. */
static bool is_of_all(int key)
{
    return key != CONTEXT_GATEWAY && key != CONTEXT_TOKEN;
}

/* Where the value of such a key goes. */
static char *place_of(struct query *q, int key, size_t *size)
{
    static const size_t sizes[CONTEXT_KEYS] = {
        [CONTEXT_COORDINATORS] = sizeof q->coordinators,
        [CONTEXT_CLUSTER] = sizeof q->cluster,
        [CONTEXT_TLS_CA] = sizeof q->tls.ca,
        [CONTEXT_TLS_CERTIFICATE] = sizeof q->tls.certificate,
        [CONTEXT_TLS_KEY] = sizeof q->tls.key,
    };
    char *const places[CONTEXT_KEYS] = {
        [CONTEXT_COORDINATORS] = q->coordinators,
        [CONTEXT_CLUSTER] = q->cluster,
        [CONTEXT_TLS_CA] = q->tls.ca,
        [CONTEXT_TLS_CERTIFICATE] = q->tls.certificate,
        [CONTEXT_TLS_KEY] = q->tls.key,
    };

    *size = sizes[key];
    return places[key];
}

/* As if the flags had been given that the words lack, so that a context that is named on the
 * command line goes before the environment. Returns how many. */
static int add_flags(const struct context *c, int argc, char **argv, char *flags[CONTEXT_KEYS])
{
    int count = 0;

    for (int key = 0; key < CONTEXT_KEYS; key++) {
        const char *name = context_key_name((enum context_key)key);

        if (c->value[key][0] != '\0' && is_of_all(key) && !is_given(argc, argv, key)) {
            const size_t length = strlen(name) + strlen(c->value[key]) + 4;

            flags[count] = mem_new(1, length);
            (void)snprintf(flags[count++], length, "--%s=%s", name, c->value[key]);
        }
    }
    return count;
}

/* Below the environment: as defaults. False after printing. */
static bool set_defaults(struct query *q, const struct context *c, int argc, char **argv)
{
    for (int key = 0; key < CONTEXT_KEYS; key++) {
        size_t size = 0;
        char *place = place_of(q, key, &size);
        const bool skip =
            is_tls(key) && (has_tls_environment() || is_given(argc, argv, CONTEXT_TLS_CA));

        if (place == NULL || c->value[key][0] == '\0' || skip) {
            continue;
        }
        if (strlen(c->value[key]) >= size) {
            (void)fprintf(stderr, "ringhold: context %s: a value is too long\n", c->name);
            return false;
        }
        (void)snprintf(place, size, "%s", c->value[key]);
    }
    return true;
}

/* options_parse(), with the words of `flags` behind those of the user. */
static int parse_with(struct query *q, const struct command *command, int argc, char **argv,
                      char *const *flags, int count)
{
    char **words = mem_new((size_t)argc + (size_t)count + 1, sizeof *words);

    memcpy(words, argv, (size_t)argc * sizeof *words);
    for (int i = 0; i < count; i++) {
        words[argc + i] = flags[i];
    }
    const int code = options_parse(command, argc + count, words, q->arguments, &q->argument_count);
    mem_free(words);
    return code;
}

static int parse_in_context(struct query *q, const struct command *command, int argc, char **argv)
{
    const char *asked = flag_of(argc, argv, "context");
    char *flags[CONTEXT_KEYS];
    struct context c;
    int count = 0;

    if (asked == NULL ? !context_default(&c) : !context_load(asked, &c)) {
        return 1;
    }
    (void)snprintf(q->gateway, sizeof q->gateway, "%s", c.value[CONTEXT_GATEWAY]);
    (void)snprintf(q->token, sizeof q->token, "%s", c.value[CONTEXT_TOKEN]);
    if (asked != NULL) {
        count = add_flags(&c, argc, argv, flags);
    } else if (!set_defaults(q, &c, argc, argv)) {
        return 1;
    }
    const int code = parse_with(q, command, argc, argv, flags, count);
    for (int i = 0; i < count; i++) {
        mem_free(flags[i]);
    }
    return code;
}

bool query_stamp(const char *command, const char *word, uint64_t *out)
{
    if (!stamp_parse(word, out)) {
        (void)fprintf(stderr,
                      "ringhold %s: '%s' is not a number such as 1.76 or 1099511627852\n",
                      command,
                      word);
        return false;
    }
    return true;
}

static bool parse_output(struct query *q, const char *command)
{
    static const char *const words[] = {
        [ROWS_TABLE] = "table", [ROWS_WIDE] = "wide", [ROWS_TSV] = "tsv", [ROWS_JSON] = "json"};
    size_t format = 0;

    while (format < sizeof words / sizeof words[0] && strcmp(q->output, words[format]) != 0) {
        format++;
    }
    if (format == sizeof words / sizeof words[0]) {
        (void)fprintf(stderr, "ringhold %s: --output: must be table, wide, tsv or json\n", command);
        return false;
    }
    if (format == ROWS_TSV && q->prose) {
        (void)fprintf(stderr,
                      "ringhold %s: --output: this command prints no table, so it has no tsv; take "
                      "json\n",
                      command);
        return false;
    }
    q->format = (enum rows_format)format;
    q->json = format == ROWS_JSON;
    return true;
}

bool query_bare(const struct query *q)
{
    return q->format == ROWS_TSV;
}

int query_parse(struct query *q, const struct command *command, int argc, char **argv)
{
    // Help says the defaults of everybody, and needs no context.
    const int code = options_want_help(argc, argv) ? parse_with(q, command, argc, argv, NULL, 0)
                                                   : parse_in_context(q, command, argc, argv);

    if (code >= 0) {
        return code;
    }
    struct hello self = {.role = ROLE_CLI, .name = "cli"};
    (void)snprintf(self.cluster, sizeof self.cluster, "%s", q->cluster);
    if (!link_args_check(&q->tls, command->name, &self)) {
        return 1;
    }
    if (!parse_output(q, command->name)) {
        return 1;
    }
    if (!plain_is(q->reason)) {
        (void)fprintf(stderr,
                      "ringhold %s: --reason: must be UTF-8 without control characters\n",
                      command->name);
        return 1;
    }
    return -1;
}

struct admin_where query_where(const struct query *q)
{
    return (struct admin_where){
        .cluster = q->cluster, .coordinators = q->coordinators, .tls = link_args_files(&q->tls)};
}

Rh__AdminReply *query_ask(const struct query *q, ProtobufCMessage *what)
{
    log_set_level(LOG_ERROR); // what fails is told in one line below
    const struct admin_where where = query_where(q);
    struct admin *admin = admin_open(&where);

    if (admin == NULL) {
        return NULL;
    }
    Rh__AdminReply *reply = admin_ask(admin, what, q->timeout_ms);
    if (reply != NULL && reply->error[0] != '\0') {
        (void)fprintf(stderr, "ringhold: %s\n", reply->error);
        admin_free(reply);
        reply = NULL;
    }
    admin_close(admin);
    return reply;
}

Rh__AdminReply *query_try(const struct query *q, ProtobufCMessage *what, uint32_t timeout_ms)
{
    const struct admin_where where = query_where(q);
    struct admin *admin = admin_open(&where);
    Rh__AdminReply *reply = admin == NULL ? NULL : admin_try(admin, what, timeout_ms);

    admin_close(admin);
    if (reply != NULL && reply->error[0] != '\0') {
        admin_free(reply);
        reply = NULL;
    }
    return reply;
}

void query_say(const struct query *q, const char *text)
{
    if (q->json) {
        (void)printf("{\"done\":");
        json_print_string(text);
        (void)printf("}\n");
    } else {
        (void)printf("%s\n", text);
    }
    (void)fflush(stdout);
}

bool query_do(const struct query *q, ProtobufCMessage *what, const char *text)
{
    Rh__AdminReply *reply = query_ask(q, what);

    if (reply == NULL) {
        return false;
    }
    query_say(q, text == NULL ? reply->text : text);
    admin_free(reply);
    return true;
}

bool query_number_wish(const struct query *q, uint64_t *wish, uint64_t *seen)
{
    Rh__AdminNodes what = RH__ADMIN_NODES__INIT;

    Rh__AdminReply *reply = query_ask(q, &what.base);
    if (reply == NULL) {
        return false;
    }
    *seen = reply->number;
    *wish = random_u64() | 1; // 0 is none
    admin_free(reply);
    return true;
}

void query_next(const struct query *q, const char *format, ...)
{
    va_list list;

    if (!q->json) {
        va_start(list, format);
        (void)printf("next: ");
        (void)vprintf(format, list);
        (void)printf("\n");
        va_end(list);
        (void)fflush(stdout);
    }
}

const char *digest_text(uint64_t digest0, uint64_t digest1, char out[33])
{
    (void)snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, digest1, digest0);
    return out;
}

char *query_who(void)
{
    static char text[160];
    const struct passwd *account = getpwuid(geteuid());
    const char *user = getenv("SUDO_USER");
    char host[64] = "";

    if (gethostname(host, sizeof host - 1) != 0) {
        host[0] = '\0';
    }
    user = user == NULL && account != NULL ? account->pw_name : user;
    if (user == NULL) {
        (void)snprintf(text, sizeof text, "uid %u@%s", (unsigned)geteuid(), host);
    } else {
        (void)snprintf(text, sizeof text, "%.64s@%s", user, host);
    }
    return text;
}

void query_print(const struct query *q, struct rows *r)
{
    rows_print(r, q->format);
    (void)printf(q->json ? "\n" : "");
    rows_fini(r);
}
