/* SPDX-License-Identifier: Apache-2.0
 *
 * Bots: load as players make it, and a ledger of what became of it.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "daemon/admin.h"
#include "daemon/options.h"
#include "gateway/access/token.h"
#include "gateway/protocol/packet.h"
#include "load/bot_report.h"
#include "load/bots_uv.h"
#include "load/commands.h"
#include "wire/hello.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    COUNT_MAX = 10000000,
    RATE_MAX = 10000000,
    SIZE_MAX_BYTES = 60 * 1024,
    TIME_MAX_MS = 7 * 86400000,
    KIND_MAX = 65535,
    PATH_SIZE = 512,
    EXIT_UNCLEAN = 2,
    SCRIPT_SIZE_MAX = 64 * 1024,
};

struct bot_args {
    char keys[PATH_SIZE];
    char cluster[TOKEN_CLUSTER_MAX + 1];
    char check[16];
    char address[BOTS_ADDRESSES_MAX][128];
    char script_path[PATH_SIZE];
    char play[PATH_SIZE * 4];
    struct script script;
    uint32_t kind;
    uint32_t ask_ms;
    uint32_t drop_percent;
    uint32_t away_ms;
    uint32_t stay_ms;
    bool no_bind;
    bool no_keep;
    bool json;
    bool quiet;
    struct keyring ring;
    bool clean; /* the ledger was, and somebody got in */
};

/* ---- what it says ---- */

static void tell(const struct bots_outcome *outcome, void *context)
{
    struct bot_args *w = context;

    (w->json ? bot_report_json : bot_report_text)(outcome);
    w->clean = bot_ledger_is_clean(outcome->ledger) && outcome->waiting == 0 &&
               outcome->ledger->logins > 0;
}

static void progress(const struct bots_outcome *o, void *context)
{
    const struct bot_args *w = context;
    const struct bot_ledger *l = o->ledger;

    if (!w->quiet) {
        (void)fprintf(stderr,
                      "%5.0f s  in %" PRIu64 "  logins %" PRIu64 "  resumed %" PRIu64
                      "  turned away %" PRIu64 "  answers %" PRIu64 "  pushes %" PRIu64
                      "  ledger %s\n",
                      o->seconds,
                      l->live,
                      l->logins,
                      l->resumed,
                      l->turned_away,
                      l->status[STATUS_OK],
                      l->pushes,
                      bot_ledger_is_clean(l) ? "clean" : "NOT CLEAN");
    }
}

/* ---- what it is told ---- */

static bool take_check(const struct bot_args *w, enum bot_check *out)
{
    static const char *const names[] = {
        [BOT_CHECK_NONE] = "none", [BOT_CHECK_ECHO] = "echo", [BOT_CHECK_COUNT] = "count"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(w->check, names[i]) == 0) {
            *out = (enum bot_check)i;
            return true;
        }
    }
    (void)fprintf(
        stderr, "ringhold bot: --check: '%s' is not one of none, echo, count\n", w->check);
    return false;
}

static bool take_keys(struct bot_args *w, struct bots_config *bots)
{
    char why[KEYRING_WHY_SIZE];

    if (w->keys[0] == '\0') {
        return true;
    }
    if (!hello_name_is_valid(w->cluster)) {
        (void)fprintf(stderr, "ringhold bot: --cluster: '%s' is not a valid name\n", w->cluster);
        return false;
    }
    if (!keyring_load(w->keys, &w->ring, why)) {
        (void)fprintf(stderr, "ringhold bot: %s\n", why);
        return false;
    }
    bots->keys = &w->ring;
    bots->cluster = w->cluster;
    bots->unix_s = clock_wall_us() / 1000000;
    return true;
}

/* NULL: it can't be read, or is too long for a script. Else freed by the caller. */
static char *read_text(const char *path)
{
    char *text = mem_new(1, SCRIPT_SIZE_MAX + 1);
    FILE *file = fopen(path, "rb");
    const size_t size = file == NULL ? 0 : fread(text, 1, SCRIPT_SIZE_MAX + 1, file);
    const bool good = file != NULL && ferror(file) == 0 && size <= SCRIPT_SIZE_MAX &&
                      memchr(text, '\0', size) == NULL;

    if (file != NULL) {
        (void)fclose(file);
    }
    if (!good) {
        mem_free(text);
        return NULL;
    }
    text[size] = '\0';
    return text;
}

static bool take_script_text(struct bot_args *w, const char *name, const char *text)
{
    char why[SCRIPT_WHY_SIZE];
    uint32_t number = 0;

    if (!script_parse(&w->script, text, &number, why)) {
        (void)fprintf(stderr, "ringhold bot: %s:%" PRIu32 ": %s\n", name, number, why);
        return false;
    }
    return true;
}

/* What --ask, --drop and --stay say. */
static bool take_flags(struct bot_args *w)
{
    char text[256] = "login";
    size_t size = strlen(text);

    if (w->ask_ms > 0) {
        size += (size_t)snprintf(
            text + size, sizeof text - size, "; request {n} every %" PRIu32 "ms", w->ask_ms);
    }
    if (w->drop_percent > 0) {
        size += (size_t)snprintf(text + size,
                                 sizeof text - size,
                                 "; drop %" PRIu32 "%%/min resume within %" PRIu32 "ms",
                                 w->drop_percent,
                                 w->away_ms > 0 ? w->away_ms : 1);
    }
    if (w->stay_ms > 0) {
        (void)snprintf(text + size, sizeof text - size, "; wait %" PRIu32 "ms; leave", w->stay_ms);
    }
    return take_script_text(w, "its options", text);
}

static bool take_script(struct bot_args *w)
{
    if (w->script_path[0] == '\0') {
        return w->play[0] == '\0' ? take_flags(w) : take_script_text(w, "--play", w->play);
    }
    char *text = read_text(w->script_path);

    if (text == NULL) {
        (void)fprintf(stderr,
                      "ringhold bot: %s: can't be read, or is not a text of at most %d bytes\n",
                      w->script_path,
                      SCRIPT_SIZE_MAX);
        return false;
    }
    const bool good = take_script_text(w, w->script_path, text);
    mem_free(text);
    return good;
}

static bool leaves(const struct script *s)
{
    return s->count > 0 && s->line[s->count - 1].act == SCRIPT_LEAVE;
}

static bool take(struct bot_args *w, const char *addresses, struct bots_plan *plan)
{
    size_t count = 0;

    if (admin_split(addresses, w->address, BOTS_ADDRESSES_MAX, &count) != ERR_OK || count == 0) {
        (void)fprintf(stderr,
                      "ringhold bot: '%s' is not HOST:PORT[,HOST:PORT…], at most %d\n",
                      addresses,
                      BOTS_ADDRESSES_MAX);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        plan->address[i] = w->address[i];
    }
    plan->address_count = (uint32_t)count;
    plan->bots.kind = (uint16_t)w->kind;
    plan->bots.bind = !w->no_bind;
    plan->bots.keep = !w->no_keep;
    plan->bots.script = &w->script;
    if (!take_check(w, &plan->bots.check) || !take_keys(w, &plan->bots) || !take_script(w)) {
        return false;
    }
    if (plan->time_ms == 0 && !leaves(&w->script) && !plan->bots.once) {
        plan->time_ms = 10000;
    }
    return true;
}

static void add_players(struct options *t, struct bot_args *w, struct bots_config *c)
{
    const struct option_range any_time = {0, TIME_MAX_MS};

    (void)options_add(
        t, option_number("n", &c->count, (struct option_range){1, COUNT_MAX}, "bots (%)"));
    (void)options_add(t,
                      option_number("rate",
                                    &c->rate,
                                    (struct option_range){0, RATE_MAX},
                                    "new bots that log in per second (%: all at once)"));
    (void)options_add(
        t,
        option_time(
            "ask", &w->ask_ms, any_time, "each bot asks its actor this often; 0ms: never (%)"));
    (void)options_add(t,
                      option_number("size",
                                    &c->size,
                                    (struct option_range){0, SIZE_MAX_BYTES},
                                    "bytes of a request; the request's number always fits (%)"));
    (void)options_add(
        t,
        option_number("drop",
                      &w->drop_percent,
                      (struct option_range){0, 100 * 60},
                      "percent of the bots that drop their connection each minute (%)"));
    (void)options_add(
        t,
        option_time("away",
                    &w->away_ms,
                    any_time,
                    "a bot that dropped its connection comes back within this time (%)"));
    (void)options_add(
        t, option_time("stay", &w->stay_ms, any_time, "a bot leaves after this time (never)"));
    (void)options_add(
        t, option_switch("once", &c->once, "a bot that is turned away does not try again"));
    (void)options_add(
        t, option_switch("no-bind", &w->no_bind, "do not bind the bots to their actors"));
    (void)options_add(t,
                      option_switch("no-keep",
                                    &w->no_keep,
                                    "a dropped connection ends the session: do not resume it"));
    (void)options_add(
        t,
        option_text(
            "script",
            "FILE",
            w->script_path,
            sizeof w->script_path,
            "what each bot does, instead of --ask, --drop, --away and --stay: docs/bots.md"));
    (void)options_add(
        t,
        option_text("play",
                    "TEXT",
                    w->play,
                    sizeof w->play,
                    "the same as --script, given here: 'request hi every 1s; wait 10s; leave'"));
}

static void add_rest(struct options *t, struct bot_args *w, struct bots_plan *plan)
{
    (void)options_add(
        t,
        option_number(
            "kind", &w->kind, (struct option_range){0, KIND_MAX}, "kind of their actors (%)"));
    (void)options_add(t,
                      option_text("prefix",
                                  "TEXT",
                                  plan->bots.prefix,
                                  sizeof plan->bots.prefix,
                                  "prefix of their ids, before a number (%)"));
    (void)options_add(t,
                      option_text("check",
                                  "WHAT",
                                  w->check,
                                  sizeof w->check,
                                  "what the actors answer: the request (echo), the number of "
                                  "requests they ran, in digits (count), or anything (none)"));
    (void)options_add(
        t,
        option_text("keys",
                    "FILE",
                    w->keys,
                    sizeof w->keys,
                    "the gateways' --auth-keys: each bot makes its own token with it"));
    (void)options_add(t,
                      option_text("cluster",
                                  "NAME",
                                  w->cluster,
                                  sizeof w->cluster,
                                  "the cluster that the tokens are for (%)"));
    (void)options_add(
        t,
        option_time(
            "time",
            &plan->time_ms,
            (struct option_range){0, TIME_MAX_MS},
            "the bots stop after this time (10s; with --stay or --once, when all have left)"));
    (void)options_add(t,
                      option_number("sources",
                                    &plan->sources,
                                    (struct option_range){0, 60000},
                                    "connect from this many loopback addresses, from 127.0.1.1 on: "
                                    "for more connections than one address has ports (%)"));
    (void)options_add(
        t,
        option_number("open",
                      &plan->open_max,
                      (struct option_range){0, COUNT_MAX},
                      "connections at a time (%: as many as the limit of open files allows)"));
    (void)options_add(
        t, option_switch("quiet", &w->quiet, "no progress line each second on standard error"));
    (void)options_add(
        t, option_switch("json", &w->json, "print one JSON object; latencies in microseconds"));
}

int cmd_bot(int argc, char **argv)
{
    static struct bot_args w = {
        .cluster = "ringhold", .check = "none", .ask_ms = 1000, .away_ms = 1000};
    struct bots_plan plan = {.bots = {.count = 1000, .answer_ms = 20000, .prefix = "bot-"},
                             .progress = progress,
                             .context = &w};
    struct options options = {0};
    const struct command command = {
        .name = "bot",
        .summary = "Play thousands of players on gateways' --frames addresses: they log in, send "
                   "requests, receive pushes, drop the connection, come back and resume; check "
                   "every answer and push.",
        .arguments = "HOST:PORT[,HOST:PORT...]",
        .details = "Exit code 2: an answer or push was lost, doubled, reordered or wrong, or no "
                   "bot could log in.",
        .options = options.row,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[8];
    char why[128];
    int count = 0;

    add_players(&options, &w, &plan.bots);
    add_rest(&options, &w, &plan);
    const int code = options_parse(&command, argc, argv, arguments, &count);
    if (code >= 0) {
        return code;
    }
    if (!take(&w, arguments[0], &plan)) {
        return 1;
    }
    plan.bots.seed = clock_boottime_us() ^ (uint64_t)getpid() << 32;
    if (!bots_run(&plan, tell, why)) {
        (void)fprintf(stderr, "ringhold bot: %s\n", why);
        return 1;
    }
    script_fini(&w.script);
    return w.clean ? 0 : EXIT_UNCLEAN;
}
