/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints what a run of bots did and found.
 */
#include "load/bot_report.h"

#include "cli/rows.h"
#include "gateway/protocol/packet.h"

#include <inttypes.h>
#include <stdio.h>

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
                 " duplicated %" PRIu64 " out-of-order %" PRIu64 ": %s\n",
                 l->lost,
                 l->duplicated,
                 l->disordered,
                 l->wrong,
                 l->pushes_lost,
                 l->pushes_duplicated,
                 l->pushes_disordered,
                 bot_ledger_is_clean(l) ? "clean" : "NOT CLEAN");
}

void bot_report_text(const struct bots_outcome *o)
{
    const struct bot_ledger *l = o->ledger;

    (void)printf("%" PRIu64 " logins in %.1f s, the last new bot after %.1f s; %" PRIu64
                 " bots at a time\n",
                 l->logins,
                 o->seconds,
                 o->in_seconds,
                 l->live_max);
    (void)printf("  lines     %" PRIu64 " attempts (%.0f/s), turned away %" PRIu64
                 ", told to go %" PRIu64 ", kicked %" PRIu64 ", cut %" PRIu64
                 ", unreachable %" PRIu64 ", dropped by plan %" PRIu64 "\n",
                 l->attempts,
                 (double)l->attempts / o->seconds,
                 l->turned_away,
                 l->told_to_go,
                 l->kicked,
                 l->cut,
                 l->unreachable,
                 l->dropped);
    (void)printf("  sessions  %" PRIu64 " resumed, %" PRIu64 " gone, %" PRIu64 " replaced\n",
                 l->resumed,
                 l->gone,
                 l->replaced);
    (void)printf("  requests  %" PRIu64 " asked, %" PRIu64 " OK, %" PRIu64 " sent again, %" PRIu64
                 " unknown, %" PRIu64 " unanswered at the end; %" PRIu64 " notified\n",
                 l->asked,
                 l->status[STATUS_OK],
                 l->again,
                 l->unknown,
                 o->waiting,
                 l->notified);
    (void)printf(
        "  pushes    %" PRIu64 ", actors started afresh %" PRIu64 "\n", l->pushes, l->begun_afresh);
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
        (void)printf("  the first failed connection: %s\n", o->reason);
    }
    put_ledger(l);
    if (l->first[0] != '\0') {
        (void)printf("  the first fault: %s\n", l->first);
    }
}

static void put_stat(const char *key, uint64_t value)
{
    (void)printf("\"%s\":%" PRIu64 ",", key, value);
}

/* What JSON would want escaped is a `?`. */
static void put_words(const char *key, const char *text)
{
    (void)printf("\"%s\":\"", key);
    for (; *text != '\0'; text++) {
        const bool plain = (unsigned char)*text >= ' ' && *text != '"' && *text != '\\';

        (void)putchar(plain ? *text : '?');
    }
    (void)printf("\",");
}

static void put_stats(const char *key, const struct histogram *h)
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

void bot_report_json(const struct bots_outcome *o)
{
    const struct bot_ledger *l = o->ledger;

    (void)printf("{\"seconds\":%.3f,\"in_seconds\":%.3f,", o->seconds, o->in_seconds);
    put_stat("attempts", l->attempts);
    put_stat("logins", l->logins);
    put_stat("live_max", l->live_max);
    put_stat("over", l->over);
    put_stat("turned_away", l->turned_away);
    put_stat("hint_max_ms", l->hint_max_ms);
    put_stat("told_to_go", l->told_to_go);
    put_stat("kicked", l->kicked);
    put_stat("kick_code", l->kick_code);
    put_stat("cut", l->cut);
    put_stat("unreachable", l->unreachable);
    put_stat("dropped", l->dropped);
    put_stat("resumed", l->resumed);
    put_stat("gone", l->gone);
    put_stat("replaced", l->replaced);
    put_stat("asked", l->asked);
    put_stat("again", l->again);
    put_stat("notified", l->notified);
    put_stat("ok", l->status[STATUS_OK]);
    put_stat("unknown", l->unknown);
    put_stat("unanswered", o->waiting);
    put_stat("lost", l->lost);
    put_stat("duplicated", l->duplicated);
    put_stat("out_of_order", l->disordered);
    put_stat("wrong", l->wrong);
    put_stat("pushes", l->pushes);
    put_stat("pushes_lost", l->pushes_lost);
    put_stat("pushes_duplicated", l->pushes_duplicated);
    put_stat("pushes_out_of_order", l->pushes_disordered);
    put_stat("begun_afresh", l->begun_afresh);
    put_stats("login", &l->login);
    put_stats("request", &l->latency);
    put_words("first", l->first);
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
