/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold conform HOST:PORT`: does what answers there speak the clients'
 * protocol? One line of TAP for each vector.
 */
#include "cli/commands.h"
#include "cli/conform.h"
#include "cli/options.h"
#include "wire/hello.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 512, TIMEOUT_MIN_MS = 100, TIMEOUT_MAX_MS = 600000 };

struct conform_words {
    struct conform_target target;
    char keys[PATH_SIZE];
    char id[UINT8_MAX + 1];
    char only[128];
    uint32_t kind;
    bool list;
};

static void list(void)
{
    for (size_t i = 0; i < conform_vector_count; i++) {
        (void)printf("# %s\n%s\n", conform_vectors[i].name, conform_vectors[i].script);
    }
}

/* A token from the first line of stdin, where it is in no list of processes. */
static void read_token(struct conform_target *t)
{
    if (strcmp(t->token, "-") == 0 && fgets(t->token, sizeof t->token, stdin) == NULL) {
        t->token[0] = '\0';
    }
    t->token[strcspn(t->token, "\r\n")] = '\0';
}

/* False after printing why. */
static bool settle(struct conform_words *w)
{
    struct conform_target *t = &w->target;
    char why[KEYRING_WHY_SIZE];

    t->kind = (uint16_t)w->kind;
    t->id_size = strlen(w->id);
    memcpy(t->id, w->id, t->id_size);
    read_token(t);
    if (t->id_size == 0) {
        (void)fprintf(stderr, "ringhold conform: --id has 1 to 255 bytes\n");
        return false;
    }
    if (!hello_name_is_valid(t->cluster)) {
        (void)fprintf(stderr, "ringhold conform: --cluster: '%s' is no name\n", t->cluster);
        return false;
    }
    if (w->keys[0] != '\0' && !keyring_load(w->keys, &t->keys, why)) {
        (void)fprintf(stderr, "ringhold conform: %s\n", why);
        return false;
    }
    return true;
}

/* Its exit code. */
static int run(struct conform_words *w)
{
    struct play p;
    unsigned failed = 0;
    unsigned skipped = 0;

    if (!conform_probe(&p, &w->target)) {
        (void)printf("Bail out! %s\n", p.why);
        return 1;
    }
    (void)printf("TAP version 13\n1..%zu\n", conform_vector_count);
    for (size_t i = 0; i < conform_vector_count; i++) {
        const struct vector *v = &conform_vectors[i];
        const char *skip = w->only[0] != '\0' && strstr(v->name, w->only) == NULL
                               ? "not asked for"
                               : conform_skips(&w->target, v);

        if (skip != NULL) {
            (void)printf("ok %zu - %s # SKIP %s\n", i + 1, v->name, skip);
            skipped++;
        } else if (conform_play(&p, &w->target, v)) {
            (void)printf("ok %zu - %s\n", i + 1, v->name);
        } else {
            (void)printf("not ok %zu - %s\n# %s\n", i + 1, v->name, p.why);
            failed++;
        }
        (void)fflush(stdout);
    }
    (void)printf("# %zu passed, %u failed, %u skipped\n",
                 conform_vector_count - failed - skipped,
                 failed,
                 skipped);
    return failed == 0 ? 0 : 2;
}

static const char details[] =
    "Plays each vector on a connection of its own and prints a line of TAP for it. Some ask an\n"
    "entity of yours: its actor gets a few hundred requests, and a bind. Where the gateway wants\n"
    "an auth, give --token, or the --keys that it was given: then --id and --kind are the "
    "token's.\n"
    "Exit code: 0 all right, 2 a vector failed, 1 it could not begin.";

int cmd_conform(int argc, char **argv)
{
    static struct conform_words w;

    w = (struct conform_words){.target = {.timeout_ms = 15000, .cluster = "ringhold"},
                               .id = "conform"};
    const struct option options[] = {
        option_text("token",
                    "TOKEN",
                    w.target.token,
                    sizeof w.target.token,
                    "shown in an auth; - reads it from stdin"),
        option_text("keys",
                    "FILE",
                    w.keys,
                    sizeof w.keys,
                    "the gateway's secrets: tokens are made here, bad ones too"),
        option_text("cluster",
                    "NAME",
                    w.target.cluster,
                    sizeof w.target.cluster,
                    "whose gateway it is, for tokens (ringhold)"),
        option_text("id", "ID", w.id, sizeof w.id, "the entity that is asked (conform)"),
        option_number("kind", &w.kind, (struct option_range){0, UINT16_MAX}, "its kind (0)"),
        option_time("timeout",
                    &w.target.timeout_ms,
                    (struct option_range){TIMEOUT_MIN_MS, TIMEOUT_MAX_MS},
                    "how long an answer may take (15s)"),
        option_switch("slow", &w.target.slow, "also what takes the gateway's own times: minutes"),
        option_text("only", "TEXT", w.only, sizeof w.only, "vectors with this in their name"),
        option_switch("list", &w.list, "print the vectors, ask nobody"),
        {0},
    };
    const struct command command = {
        .name = "conform",
        .summary = "Try what the clients' protocol says, on a live gateway's --frames.",
        .arguments = "HOST:PORT",
        .details = details,
        .options = options,
        .arguments_min = 0,
        .arguments_max = 1,
    };
    const char *arguments[8];
    int count = 0;
    const int code = options_parse(&command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    if (w.list) {
        list();
        return 0;
    }
    if (count != 1) {
        (void)fprintf(stderr,
                      "ringhold conform: HOST:PORT is missing (see ringhold conform --help)\n");
        return 1;
    }
    w.target.address = arguments[0];
    return settle(&w) ? run(&w) : 1;
}
