/* SPDX-License-Identifier: Apache-2.0
 *
 * ringhold-conform, `ringhold conform WHERE`: does what answers there speak the clients'
 * protocol? One line of TAP for each vector.
 */
#include "conform/client.h"
#include "conform/conform.h"
#include "conform/host.h"
#include "daemon/options.h"
#include "daemon/program.h"
#include "wire/hello.h"

#include <stdio.h>
#include <string.h>

enum { CLIENT_TIMES = 4, PATH_SIZE = 512, TIMEOUT_MIN_MS = 100, TIMEOUT_MAX_MS = 600000 };

struct conform_args {
    struct conform_target target;
    char keys[PATH_SIZE];
    char id[UINT8_MAX + 1];
    char only[128];
    char ca[PATH_SIZE];
    bool insecure;
    uint32_t kind;
    bool list;
    char *const *program; /* behind "--"; NULL = none */
};

static const struct vectors *const sets[] = {
    &conform_packets, &conform_sessions, &conform_frames, &conform_skynet, &conform_closing};
enum { SETS = sizeof sets / sizeof sets[0] };

static void list(void)
{
    for (size_t i = 0; i < SETS; i++) {
        for (size_t j = 0; j < sets[i]->count; j++) {
            (void)printf("# %s\n%s\n", sets[i]->all[j].name, sets[i]->all[j].script);
        }
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
static bool settle(struct conform_args *w)
{
    struct conform_target *t = &w->target;
    char why[KEYRING_WHY_SIZE];

    t->kind = (uint16_t)w->kind;
    t->id_size = strlen(w->id);
    memcpy(t->id, w->id, t->id_size);
    read_token(t);
    if (t->id_size == 0) {
        (void)fprintf(stderr, "ringhold conform: --id: an id has 1 to 255 bytes\n");
        return false;
    }
    if (!hello_name_is_valid(t->cluster)) {
        (void)fprintf(
            stderr, "ringhold conform: --cluster: '%s' is not a valid name\n", t->cluster);
        return false;
    }
    if (t->where.encrypted) {
        char tls_why[CONFORM_TLS_WHY_SIZE];

        t->trust = conform_tls_trust(w->ca, w->insecure, tls_why);
        if (t->trust == NULL) {
            (void)fprintf(stderr, "ringhold conform: --ca: %s\n", tls_why);
            return false;
        }
    }
    if (w->keys[0] != '\0' && !keyring_load(w->keys, &t->keys, why)) {
        (void)fprintf(stderr, "ringhold conform: %s\n", why);
        return false;
    }
    return true;
}

struct conform_tally {
    size_t number; /* of the line */
    size_t passed;
    size_t failed;
    size_t skipped;
};

static void run_one(struct conform_args *w, const struct vector *v, struct conform_tally *t)
{
    static struct play p;
    const char *skip = w->only[0] != '\0' && strstr(v->name, w->only) == NULL
                           ? "not asked for"
                           : conform_skips(&w->target, v);
    const enum play_result result = skip != NULL ? PLAY_SKIPPED : conform_play(&p, &w->target, v);

    t->number++;
    switch (result) {
    case PLAY_RIGHT:
        t->passed++;
        (void)printf("ok %zu - %s\n", t->number, v->name);
        break;
    case PLAY_WRONG:
        t->failed++;
        (void)printf("not ok %zu - %s\n# %s\n", t->number, v->name, p.why);
        break;
    case PLAY_SKIPPED:
        t->skipped++;
        (void)printf("ok %zu - %s # SKIP %s\n", t->number, v->name, skip != NULL ? skip : p.why);
        break;
    }
    (void)fflush(stdout);
}

/* Its exit code. */
static int run(struct conform_args *w)
{
    struct conform_tally t = {.number = 0};
    size_t count = 0;
    struct play p;

    if (!conform_probe(&p, &w->target)) {
        (void)printf("Bail out! %s\n", p.why);
        return 1;
    }
    for (size_t i = 0; i < SETS; i++) {
        count += sets[i]->count;
    }
    (void)printf("TAP version 13\n1..%zu\n", count);
    for (size_t i = 0; i < SETS; i++) {
        for (size_t j = 0; j < sets[i]->count; j++) {
            run_one(w, &sets[i]->all[j], &t);
        }
    }
    (void)printf("# %zu passed, %zu failed, %zu skipped\n", t.passed, t.failed, t.skipped);
    return t.failed == 0 ? 0 : 2;
}

static const char details[] = "HOST:PORT is a gateway's --frames, ws://HOST:PORT/ its --ws (each "
                              "packet is then a message, and\n"
                              "frames that break the rules are tried as well), skynet:// its "
                              "--skynet. tls:// and wss:// are\n"
                              "the same over TLS. Plays each vector on a connection of its own and "
                              "prints a line of TAP for it.\n"
                              "Some vectors ask an entity of yours: its actor gets a few hundred "
                              "requests, and binds. If the\n"
                              "gateway asks for a token, give --token, or its --keys: --id and "
                              "--kind must then be the token's.\n"
                              "With `host ADDRESS`, unix:PATH or HOST:PORT, it is a node there, "
                              "waits for a host that has the kind\n"
                              "conform, and plays vectors of the protocol for hosts with it "
                              "(docs/host-protocol.md).\n"
                              "With `client -- PROGRAM` it is the gateways, honest ones and "
                              "liars, of a library for game clients:\n"
                              "it starts PROGRAM for each vector, with GATEWAY,GATEWAY KIND ID "
                              "[TOKEN] behind its words, types\n"
                              "requests, and reads what is printed (docs/clients.md).\n"
                              "Exit code: 0 all passed, 2 a vector failed, 1 it could not begin.";

/* "client [tcp|ws]", and a program behind it. */
static int conform_program(const struct conform_args *w, const char *const *words, int count)
{
    const bool websocket = count == 2 && strcmp(words[1], "ws") == 0;

    if (count == 0 || strcmp(words[0], "client") != 0 || w->program == NULL ||
        w->program[0] == NULL || (count == 2 && !websocket && strcmp(words[1], "tcp") != 0)) {
        (void)fprintf(stderr,
                      "ringhold conform: a client is tested by: client [tcp|ws] -- PROGRAM "
                      "[WORD...]\n");
        return 1;
    }
    return conform_client(&(struct client_run){.program = w->program,
                                               .websocket = websocket,
                                               .slow = w->target.slow,
                                               .timeout_ms = CLIENT_TIMES * w->target.timeout_ms,
                                               .only = w->only});
}

/* Cut off "--" and what follows it, the program; NULL: there is none. */
static char *const *cut_program(int *argc, char **argv)
{
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            *argc = i;
            return argv + i + 1;
        }
    }
    return NULL;
}

/* With the options read: what the words behind them ask for. */
static int conform(struct conform_args *w, const char *const *words, int count)
{
    const bool of_clients = count > 0 && strcmp(words[0], "client") == 0;

    if (w->list) {
        if (of_clients) {
            conform_client_list();
        } else {
            list();
        }
        return 0;
    }
    if (of_clients || w->program != NULL) {
        return conform_program(w, words, count);
    }
    if (count == 2 && strcmp(words[0], "host") == 0) {
        return conform_host(words[1]);
    }
    if (count != 1) {
        (void)fprintf(stderr,
                      "ringhold conform: HOST:PORT is missing (see ringhold conform --help)\n");
        return 1;
    }
    if (where_parse(words[0], &w->target.where) != ERR_OK) {
        (void)fprintf(
            stderr,
            "ringhold conform: '%s' is not HOST:PORT, ws://HOST:PORT/PATH or skynet://HOST:PORT\n",
            words[0]);
        return 1;
    }
    return settle(w) ? run(w) : 1;
}

static int cmd_conform(int argc, char **argv)
{
    static struct conform_args w;

    w = (struct conform_args){.target = {.timeout_ms = 15000, .cluster = "ringhold"},
                              .id = "conform"};
    const struct option options[] = {
        option_text("token",
                    "TOKEN",
                    w.target.token,
                    sizeof w.target.token,
                    "the token to log in with; - reads it from stdin"),
        option_text("keys",
                    "FILE",
                    w.keys,
                    sizeof w.keys,
                    "the gateway's --auth-keys: make tokens here, bad ones too"),
        option_text("cluster",
                    "NAME",
                    w.target.cluster,
                    sizeof w.target.cluster,
                    "the gateway's cluster, for tokens (%)"),
        option_text("id", "ID", w.id, sizeof w.id, "the entity to ask (%)"),
        option_number("kind", &w.kind, (struct option_range){0, UINT16_MAX}, "its kind (%)"),
        option_time("timeout",
                    &w.target.timeout_ms,
                    (struct option_range){TIMEOUT_MIN_MS, TIMEOUT_MAX_MS},
                    "how long to wait for an answer (%)"),
        option_text("ca",
                    "FILE",
                    w.ca,
                    sizeof w.ca,
                    "certificates (PEM) that tls:// and wss:// trust (the system's)"),
        option_switch("insecure-tls", &w.insecure, "do not check the gateway's certificate"),
        option_text("pushes",
                    "TEXT",
                    w.target.pushes,
                    sizeof w.target.pushes,
                    "a request payload that makes the actor push"),
        option_switch("slow",
                      &w.target.slow,
                      "also try what waits for the other end's own time limits: takes minutes"),
        option_text(
            "only", "TEXT", w.only, sizeof w.only, "play only vectors with this in their name"),
        option_switch("list", &w.list, "print the vectors; connect to nothing"),
        {0},
    };
    const struct command command = {
        .name = "conform",
        .summary = "Check that a gateway or a client keeps the clients' protocol, or a host that "
                   "of hosts.",
        .arguments = "HOST:PORT|tls://HOST:PORT|ws[s]://HOST:PORT[/PATH]|skynet://HOST:PORT|host "
                     "ADDRESS|client [tcp|ws] -- PROGRAM [WORD...]",
        .details = details,
        .options = options,
        .arguments_min = 0,
        .arguments_max = 2,
    };
    const char *arguments[8];
    int count = 0;
    w.program = cut_program(&argc, argv);
    const int code = options_parse(&command, argc, argv, arguments, &count);

    return code >= 0 ? code : conform(&w, arguments, count);
}

int main(int argc, char **argv)
{
    static const struct verb verb = {"conform", cmd_conform, NULL, ""};

    return program_main(&verb, 1, argc, argv);
}
