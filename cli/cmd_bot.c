/* SPDX-License-Identifier: Apache-2.0
 *
 * Bots: load as players make it, and a ledger of what became of it.
 */
#include "base/clock.h"
#include "cli/admin.h"
#include "cli/bots_uv.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/rows.h"
#include "gateway/packet.h"
#include "gateway/token.h"
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
};

struct bot_words {
    char keys[PATH_SIZE];
    char cluster[TOKEN_CLUSTER_MAX + 1];
    char check[16];
    char address[BOTS_ADDRESSES_MAX][128];
    uint32_t kind;
    bool no_bind;
    bool json;
    bool quiet;
    struct keyring ring;
    bool clean; /* the ledger was, and somebody got in */
};

/* ---- what it says ---- */

static void put_latency(const char *what, const struct histogram *h)
{
    char p50[48];
    char p99[48];
    char p999[48];
    char max[48];

    if (h->count > 0) {
        (void)printf("  %-9s p50 %s  p99 %s  p99.9 %s  max %s\n",
                     what,
                     duration_text(histogram_at(h, 500), p50, sizeof p50),
                     duration_text(histogram_at(h, 990), p99, sizeof p99),
                     duration_text(histogram_at(h, 999), p999, sizeof p999),
                     duration_text(h->max_us, max, sizeof max));
    }
}

static void put_ledger(const struct bot_ledger *l)
{
    (void)printf("  ledger    requests: lost %" PRIu64 " duplicated %" PRIu64
                 " out-of-order %" PRIu64 " wrong %" PRIu64 "; pushes: lost %" PRIu64
                 " duplicated %" PRIu64 ": %s\n",
                 l->lost,
                 l->duplicated,
                 l->disordered,
                 l->wrong,
                 l->pushes_lost,
                 l->pushes_duplicated,
                 bot_ledger_is_clean(l) ? "clean" : "NOT CLEAN");
}

static void put_text(const struct bots_outcome *o)
{
    const struct bot_ledger *l = o->ledger;

    (void)printf("%" PRIu64 " logins in %.1f s, the last newcomer after %.1f s; %" PRIu64
                 " bots at a time\n",
                 l->logins,
                 o->seconds,
                 o->in_seconds,
                 l->live_max);
    (void)printf("  lines     %" PRIu64 " attempts (%.0f/s), turned away %" PRIu64
                 ", told to go %" PRIu64 ", kicked %" PRIu64 ", cut %" PRIu64
                 ", unreachable %" PRIu64 ", dropped by will %" PRIu64 "\n",
                 l->attempts,
                 (double)l->attempts / o->seconds,
                 l->turned_away,
                 l->told_to_go,
                 l->kicked,
                 l->cut,
                 l->unreachable,
                 l->dropped);
    (void)printf("  requests  %" PRIu64 " asked, %" PRIu64 " OK, %" PRIu64
                 " unknown as the line went, %" PRIu64 " unanswered at the end\n",
                 l->asked,
                 l->status[STATUS_OK],
                 l->unknown,
                 o->waiting);
    (void)printf(
        "  pushes    %" PRIu64 ", actors begun afresh %" PRIu64 "\n", l->pushes, l->begun_afresh);
    put_latency("login", &l->login);
    put_latency("request", &l->latency);
    for (int i = 1; i < BOT_STATUSES; i++) {
        if (l->status[i] > 0) {
            (void)printf("  %s: %" PRIu64 "\n", packet_status_name((uint8_t)i), l->status[i]);
        }
    }
    if (l->kick_code != 0) {
        (void)printf("  the first kick had code %" PRIu32 "\n", l->kick_code);
    }
    if (o->reason[0] != '\0') {
        (void)printf("  the first that could not connect: %s\n", o->reason);
    }
    put_ledger(l);
}

static void put_figure(const char *key, uint64_t value)
{
    (void)printf("\"%s\":%" PRIu64 ",", key, value);
}

static void put_figures(const char *key, const struct histogram *h)
{
    (void)printf("\"%s\":{\"count\":%" PRIu64 ",\"p50_us\":%" PRIu64 ",\"p99_us\":%" PRIu64
                 ",\"p999_us\":%" PRIu64 ",\"max_us\":%" PRIu64 "},",
                 key,
                 h->count,
                 histogram_at(h, 500),
                 histogram_at(h, 990),
                 histogram_at(h, 999),
                 h->max_us);
}

static void put_json(const struct bots_outcome *o)
{
    const struct bot_ledger *l = o->ledger;

    (void)printf("{\"seconds\":%.3f,\"in_seconds\":%.3f,", o->seconds, o->in_seconds);
    put_figure("attempts", l->attempts);
    put_figure("logins", l->logins);
    put_figure("live_max", l->live_max);
    put_figure("over", l->over);
    put_figure("turned_away", l->turned_away);
    put_figure("hint_max_ms", l->hint_max_ms);
    put_figure("told_to_go", l->told_to_go);
    put_figure("kicked", l->kicked);
    put_figure("kick_code", l->kick_code);
    put_figure("cut", l->cut);
    put_figure("unreachable", l->unreachable);
    put_figure("dropped", l->dropped);
    put_figure("asked", l->asked);
    put_figure("ok", l->status[STATUS_OK]);
    put_figure("unknown", l->unknown);
    put_figure("unanswered", o->waiting);
    put_figure("lost", l->lost);
    put_figure("duplicated", l->duplicated);
    put_figure("out_of_order", l->disordered);
    put_figure("wrong", l->wrong);
    put_figure("pushes", l->pushes);
    put_figure("pushes_lost", l->pushes_lost);
    put_figure("pushes_duplicated", l->pushes_duplicated);
    put_figure("begun_afresh", l->begun_afresh);
    put_figures("login", &l->login);
    put_figures("request", &l->latency);
    (void)printf("\"statuses\":{");
    const char *comma = "";
    for (int i = 0; i < BOT_STATUSES; i++) {
        if (l->status[i] > 0) {
            (void)printf("%s\"%s\":%" PRIu64, comma, packet_status_name((uint8_t)i), l->status[i]);
            comma = ",";
        }
    }
    (void)printf("},\"clean\":%s}\n", bot_ledger_is_clean(l) ? "true" : "false");
}

static void tell(const struct bots_outcome *outcome, void *context)
{
    struct bot_words *w = context;

    (w->json ? put_json : put_text)(outcome);
    w->clean = bot_ledger_is_clean(outcome->ledger) && outcome->waiting == 0 &&
               outcome->ledger->logins > 0;
}

static void progress(const struct bots_outcome *o, void *context)
{
    const struct bot_words *w = context;
    const struct bot_ledger *l = o->ledger;

    if (!w->quiet) {
        (void)fprintf(stderr,
                      "%5.0f s  in %" PRIu64 "  logins %" PRIu64 "  turned away %" PRIu64
                      "  answers %" PRIu64 "  pushes %" PRIu64 "  ledger %s\n",
                      o->seconds,
                      l->live,
                      l->logins,
                      l->turned_away,
                      l->status[STATUS_OK],
                      l->pushes,
                      bot_ledger_is_clean(l) ? "clean" : "NOT CLEAN");
    }
}

/* ---- what it is told ---- */

static bool take_check(const struct bot_words *w, enum bot_check *out)
{
    static const char *const names[] = {
        [BOT_CHECK_NONE] = "none", [BOT_CHECK_ECHO] = "echo", [BOT_CHECK_COUNT] = "count"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(w->check, names[i]) == 0) {
            *out = (enum bot_check)i;
            return true;
        }
    }
    (void)fprintf(stderr, "ringhold bot: --check: '%s' is not none, echo or count\n", w->check);
    return false;
}

static bool take_keys(struct bot_words *w, struct bots_config *bots)
{
    char why[KEYRING_WHY_SIZE];

    if (w->keys[0] == '\0') {
        return true;
    }
    if (!hello_name_is_valid(w->cluster)) {
        (void)fprintf(stderr, "ringhold bot: --cluster: '%s' is no name\n", w->cluster);
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

static bool take(struct bot_words *w, const char *addresses, struct bots_plan *plan)
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
    if (plan->time_ms == 0 && plan->bots.stay_ms == 0 && !plan->bots.once) {
        plan->time_ms = 10000;
    }
    return take_check(w, &plan->bots.check) && take_keys(w, &plan->bots);
}

static void add_players(struct options *t, struct bot_words *w, struct bots_config *c)
{
    const struct option_range any_time = {0, TIME_MAX_MS};

    (void)options_add(
        t, option_number("n", &c->count, (struct option_range){1, COUNT_MAX}, "bots (1000)"));
    (void)options_add(t,
                      option_number("rate",
                                    &c->rate,
                                    (struct option_range){0, RATE_MAX},
                                    "of them that log in a second (0: all at once)"));
    (void)options_add(
        t,
        option_time("ask", &c->ask_ms, any_time, "each asks its actor so often; 0ms: never (1s)"));
    (void)options_add(t,
                      option_number("size",
                                    &c->size,
                                    (struct option_range){0, SIZE_MAX_BYTES},
                                    "bytes of a request, at least those of its number (0)"));
    (void)options_add(t,
                      option_number("drop",
                                    &c->drop_percent,
                                    (struct option_range){0, 100 * 60},
                                    "percent of the bots that drop the line each minute (0)"));
    (void)options_add(
        t, option_time("away", &c->away_ms, any_time, "and come back after so long at most (1s)"));
    (void)options_add(
        t, option_time("stay", &c->stay_ms, any_time, "a bot is through after so long (never)"));
    (void)options_add(t,
                      option_switch("once", &c->once, "a bot that is turned away is through, too"));
    (void)options_add(t,
                      option_switch("no-bind", &w->no_bind, "they are not bound to their actors"));
}

static void add_rest(struct options *t, struct bot_words *w, struct bots_plan *plan)
{
    (void)options_add(
        t,
        option_number("kind", &w->kind, (struct option_range){0, KIND_MAX}, "of their actors (0)"));
    (void)options_add(t,
                      option_text("prefix",
                                  "TEXT",
                                  plan->bots.prefix,
                                  sizeof plan->bots.prefix,
                                  "of their ids, before a number (bot-)"));
    (void)options_add(
        t,
        option_text("check",
                    "WHAT",
                    w->check,
                    sizeof w->check,
                    "the actors answer what they got (echo), how many requests they have run, in "
                    "digits (count), or anything (none)"));
    (void)options_add(t,
                      option_text("keys",
                                  "FILE",
                                  w->keys,
                                  sizeof w->keys,
                                  "the gateways' --auth-keys: each bot makes itself a token"));
    (void)options_add(t,
                      option_text("cluster",
                                  "NAME",
                                  w->cluster,
                                  sizeof w->cluster,
                                  "whose gateways the tokens are for (ringhold)"));
    (void)options_add(
        t,
        option_time("time",
                    &plan->time_ms,
                    (struct option_range){0, TIME_MAX_MS},
                    "the bots stop after so long (10s; with --stay or --once, when all "
                    "are through)"));
    (void)options_add(
        t,
        option_number("sources",
                      &plan->sources,
                      (struct option_range){0, 60000},
                      "connect from so many loopback addresses, 127.0.1.1 and on: for "
                      "more connections than one address has ports (0)"));
    (void)options_add(t,
                      option_number("open",
                                    &plan->open_max,
                                    (struct option_range){0, COUNT_MAX},
                                    "connections at a time (0: as many files as there may be)"));
    (void)options_add(t,
                      option_switch("quiet", &w->quiet, "no line each second on standard error"));
    (void)options_add(
        t, option_switch("json", &w->json, "one JSON object; latencies in microseconds"));
}

int cmd_bot(int argc, char **argv)
{
    static struct bot_words w = {.cluster = "ringhold", .check = "none"};
    struct bots_plan plan = {.bots = {.count = 1000,
                                      .ask_ms = 1000,
                                      .away_ms = 1000,
                                      .answer_ms = 20000,
                                      .prefix = "bot-"},
                             .progress = progress,
                             .context = &w};
    struct options options = {0};
    const struct command command = {
        .name = "bot",
        .summary =
            "Play thousands of players on gateways' --frames addresses: log in, ask, be pushed "
            "to, drop the line, come back; keep a ledger.",
        .arguments = "HOST:PORT[,HOST:PORT...]",
        .details = "Exit 2: the ledger is not clean, an answer is missing, or nobody got in.",
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
    return w.clean ? 0 : EXIT_UNCLEAN;
}
