/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold token make | check`: what a login server does for a player, by hand.
 */
#include "base/clock.h"
#include "base/history.h"
#include "cli/commands.h"
#include "cli/rows.h"
#include "cli/subcommand.h"
#include "daemon/options.h"
#include "gateway/access/token.h"
#include "wire/hello.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 512, TTL_MIN_MS = 1000, TTL_MAX_MS = 24 * 86400000, LINE_SIZE = 1024 };
enum { EXIT_REFUSED = 2 };
static const uint64_t YEAR_9999_S = 253402300799;

struct token_args {
    char keys[PATH_SIZE];
    char cluster[TOKEN_CLUSTER_MAX + 1];
    char id[TOKEN_ID_MAX + 1];
    char key[KEYRING_NAME_MAX + 1];
    uint32_t kind;
    uint32_t ttl_ms;
};

static const struct token_args words_default = {.cluster = "ringhold", .ttl_ms = 3600000};

static struct option keys_option(struct token_args *w)
{
    return option_text("keys",
                       "FILE",
                       w->keys,
                       sizeof w->keys,
                       "file of secrets: lines NAME hex:… or NAME base64:…");
}

static struct option cluster_option(struct token_args *w)
{
    return option_text("cluster",
                       "NAME",
                       w->cluster,
                       sizeof w->cluster,
                       "the cluster whose gateways the token is for (%)");
}

static bool load(const char *command, const struct token_args *w, struct keyring *keys)
{
    char why[KEYRING_WHY_SIZE];

    if (w->keys[0] == '\0') {
        (void)fprintf(stderr, "ringhold %s: --keys FILE is missing\n", command);
        return false;
    }
    if (!hello_name_is_valid(w->cluster)) {
        (void)fprintf(
            stderr, "ringhold %s: --cluster: '%s' is not a valid name\n", command, w->cluster);
        return false;
    }
    if (!keyring_load(w->keys, keys, why)) {
        (void)fprintf(stderr, "ringhold %s: %s\n", command, why);
        return false;
    }
    return true;
}

/* ---- make ---- */

/* The key that --key names, or the first. NULL after printing why. */
static const struct keyring_key *signer(const struct token_args *w, const struct keyring *keys)
{
    if (w->key[0] == '\0') {
        return &keys->key[0];
    }
    const struct keyring_key *key = keyring_find(keys, bytes_of(w->key, strlen(w->key)));

    if (key == NULL) {
        (void)fprintf(stderr, "ringhold token make: %s has no key '%s'\n", w->keys, w->key);
    }
    return key;
}

static int print_token(const struct token_args *w, const struct keyring_key *key)
{
    struct token t = {.kind = (uint16_t)w->kind,
                      .expires_s = clock_wall_us() / 1000000 + w->ttl_ms / 1000,
                      .id_size = (uint8_t)strlen(w->id)};
    struct buffer text = {0};

    memcpy(t.id, w->id, t.id_size);
    memcpy(t.cluster, w->cluster, sizeof t.cluster);
    if (token_put(&text, &t, key) != ERR_OK) {
        (void)fprintf(stderr, "ringhold token make: --id: an id has 1 to 255 bytes\n");
        buffer_fini(&text);
        return 1;
    }
    (void)printf("%.*s\n", (int)text.size, (const char *)text.data);
    buffer_fini(&text);
    return 0;
}

static int make(int argc, char **argv)
{
    struct token_args w = words_default;
    const struct option options[] = {
        keys_option(&w),
        option_text(
            "id", "ID", w.id, sizeof w.id, "the entity that the client may send requests to"),
        option_number(
            "kind", &w.kind, (struct option_range){0, UINT16_MAX}, "the entity's kind (%)"),
        option_time("ttl",
                    &w.ttl_ms,
                    (struct option_range){TTL_MIN_MS, TTL_MAX_MS},
                    "how long the token is valid (%)"),
        cluster_option(&w),
        option_text("key", "NAME", w.key, sizeof w.key, "sign with this key (the file's first)"),
        {0},
    };
    const struct command command = {
        .name = "token make",
        .summary = "Print a token for a client of a gateway with --auth-keys.",
        .arguments = "",
        .details =
            "For tests and scripts. A game's login server makes its own tokens: "
            "docs/protocol-client.md\ndescribes every byte; a dozen lines in any language do it.",
        .options = options,
    };
    const char *arguments[8];
    struct keyring keys;
    int count = 0;
    const int code = options_parse(&command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    if (!load("token make", &w, &keys)) {
        return 1;
    }
    const struct keyring_key *key = signer(&w, &keys);
    const int made = key == NULL ? 1 : print_token(&w, key);

    hmac_wipe(&keys, sizeof keys);
    return made;
}

/* ---- check ---- */

static void print_checked(const struct token *t, enum token_verdict verdict)
{
    char word[HISTORY_WORD_SIZE];
    char expires[48];
    const uint64_t shown_s = t->expires_s < YEAR_9999_S ? t->expires_s : YEAR_9999_S;

    (void)printf(
        "%s: %s\n", verdict == TOKEN_GOOD ? "good" : "refused", token_verdict_text(verdict));
    if (t->id_size > 0) {
        (void)printf("key      %s\ncluster  %s\nkind     %u\nid       %s\nexpires  %s\n",
                     t->key,
                     t->cluster,
                     t->kind,
                     history_word(token_id(t), word),
                     wall_text(shown_s * 1000000, expires, sizeof expires));
    }
}

/* The word on the command line, or the first line of stdin: there it is in no list of processes. */
static struct bytes shown(const char *argument, char line[LINE_SIZE])
{
    if (strcmp(argument, "-") == 0) {
        argument = fgets(line, LINE_SIZE, stdin) == NULL ? "" : line;
    }
    return bytes_of(argument, strcspn(argument, "\r\n"));
}

static int check(int argc, char **argv)
{
    struct token_args w = words_default;
    const struct option options[] = {keys_option(&w), cluster_option(&w), {0}};
    const struct command command = {
        .name = "token check",
        .summary = "Show what a token says, and whether a gateway would take it now.",
        .arguments = "TOKEN",
        .details = "TOKEN - reads the token from stdin. Exit code 2: a gateway would refuse it.",
        .options = options,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[8];
    char line[LINE_SIZE];
    struct keyring keys;
    struct token token;
    int count = 0;
    const int code = options_parse(&command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    if (!load("token check", &w, &keys)) {
        return 1;
    }
    const enum token_verdict verdict =
        token_check(&keys, shown(arguments[0], line), w.cluster, clock_wall_us() / 1000000, &token);

    hmac_wipe(&keys, sizeof keys);
    print_checked(&token, verdict);
    return verdict == TOKEN_GOOD ? 0 : EXIT_REFUSED;
}

int cmd_token(int argc, char **argv)
{
    static const struct subcommand table[] = {
        {"make", make, "--keys FILE --id ID [options]"},
        {"check", check, "--keys FILE [options] TOKEN"},
        {0},
    };

    return subcommand_run("token", table, argc, argv);
}
