/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold txn list` and `show`: the changes of the ring, with the votes and
 * times of each.
 */
#include "cli/cmd_txn.h"
#include "base/stamp.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/subcommand.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 1024, AFTER_SIZE = 32 };

static size_t votes(const Rh__TxnRow *t)
{
    size_t count = 0;

    for (size_t i = 0; i < t->n_votes; i++) {
        count += strcmp(t->votes[i]->vote, "prepared") == 0 ? 1 : 0;
    }
    return count;
}

/* What is planned and does not begin: behind what has a number, where programs look for the newest.
 */
static void put_planned(const Rh__AdminReply *reply, struct rows *r)
{
    for (size_t i = 0; i < reply->n_obstacles; i++) {
        const Rh__ObstacleRow *o = reply->obstacles[i];

        rows_stamp(r, 0);
        rows_text(r, "planned");
        rows_number(r, o->vnodes);
        rows_text(r, "%s", o->drains[0] == '\0' ? "-" : o->drains);
        rows_text(r, "-");
        rows_text(r, "0/0");
        rows_stamp(r, 0);
        rows_text(r, "%s%s", o->drains[0] == '\0' ? "" : "drain ", o->drains);
        rows_text(r, "%s", o->reason);
        rows_ms(r, (o->left_us + 999) / 1000);
        rows_text(r, "%s", "");
        rows_text(r, "%s", o->text);
    }
}

static void put_txns(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {"TXN",
                                          "STATE",
                                          "VNODES",
                                          "FROM",
                                          "TO",
                                          "VOTES",
                                          "VERSION",
                                          "WHY",
                                          "+REASON",
                                          "+LEFT=left_ms",
                                          "OUTCOME",
                                          "WAITING FOR",
                                          NULL};

    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_txns; i++) {
        const Rh__TxnRow *t = reply->txns[i];

        rows_stamp(r, t->txn);
        rows_text(r, "%s", t->state);
        rows_number(r, t->n_moves);
        rows_text(r, "%s", t->n_moves == 0 ? "-" : t->moves[0]->from);
        rows_text(r, "%s", t->n_moves == 0 ? "-" : t->moves[0]->to);
        rows_text(r, "%zu/%zu", votes(t), t->n_votes);
        rows_stamp(r, t->version);
        rows_text(r, "%s", t->why);
        rows_text(r, "%s", "");
        rows_figure(r, 0, "%s", "");
        rows_text(r, "%s", t->outcome_why);
        rows_text(r, "%s", t->waiting_for);
    }
    put_planned(reply, r);
}

static int txn_list(int argc, char **argv)
{
    struct query q;
    uint32_t limit = 32;
    const struct option limit_option = option_number(
        "limit", &limit, (struct option_range){1, LIST_MAX}, "how many of the newest to show (32)");
    const struct command command = {
        .name = "txn list",
        .summary =
            "List changes of the ring: the last, newest first, and those that wait to begin.",
        .arguments = "",
        .options = query_options(&q, &limit_option),
    };
    const int code = query_parse(&q, &command, argc, argv);
    struct rows txns;

    if (code >= 0) {
        return code;
    }
    Rh__AdminTxns what = RH__ADMIN_TXNS__INIT;
    what.limit = limit;
    Rh__AdminReply *reply = query_ask(&q, &what.base);
    if (reply == NULL) {
        return 1;
    }
    put_txns(reply, &txns);
    query_print(&q, &txns);
    admin_free(reply);
    return 0;
}

static void show_json_phases(const Rh__TxnVote *v)
{
    (void)printf(",\"asked_us\":%" PRIu64 ",\"voted_us\":%" PRIu64 ",\"adopted_us\":%" PRIu64
                 ",\"actors\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"to_go\":%" PRIu32 "}",
                 v->asked_us,
                 v->voted_us,
                 v->adopted_us,
                 v->actors,
                 v->bytes,
                 v->to_go);
}

static void show_json(const Rh__TxnRow *t)
{
    (void)printf("{\"txn\":\"%s\",\"state\":", STAMP(t->txn));
    json_print_string(t->state);
    (void)printf(",\"why\":");
    json_print_string(t->why);
    (void)printf(",\"outcome\":");
    json_print_string(t->outcome_why);
    json_print_stamp("version", t->version);
    json_print_stamp("superseded_by", t->superseded_by);
    (void)printf(",\"created_us\":%" PRIu64 ",\"decided_us\":%" PRIu64 ",\"waiting_for\":",
                 t->created_us,
                 t->decided_us);
    json_print_string(t->waiting_for);
    (void)printf(",\"moves\":[");
    for (size_t i = 0; i < t->n_moves; i++) {
        (void)printf("%s{\"vnode\":%u,\"from\":", i == 0 ? "" : ",", t->moves[i]->vnode);
        json_print_string(t->moves[i]->from);
        (void)printf(",\"to\":");
        json_print_string(t->moves[i]->to);
        (void)printf("}");
    }
    (void)printf("],\"votes\":[");
    for (size_t i = 0; i < t->n_votes; i++) {
        (void)printf("%s{\"node\":", i == 0 ? "" : ",");
        json_print_string(t->votes[i]->node);
        json_print_stamp("incarnation", t->votes[i]->incarnation);
        (void)printf(",\"vote\":");
        json_print_string(t->votes[i]->vote);
        show_json_phases(t->votes[i]);
    }
    (void)printf("],\"begun_us\":%" PRIu64 ",\"proposed_us\":%" PRIu64 ",\"outcome_us\":%" PRIu64
                 "}\n",
                 t->begun_us,
                 t->proposed_us,
                 t->outcome_us);
}

/* "+3.2 ms" after it was begun; "-": it has not come. */
static const char *after_text(const Rh__TxnRow *t, uint64_t at_us, char out[AFTER_SIZE])
{
    const uint64_t after_us = at_us - t->begun_us;

    if (at_us == 0) {
        (void)snprintf(out, AFTER_SIZE, "-");
    } else {
        (void)snprintf(
            out, AFTER_SIZE, "+%" PRIu64 ".%" PRIu64 " ms", after_us / 1000, after_us % 1000 / 100);
    }
    return out;
}

static void show_moves(const struct query *q, const Rh__TxnRow *t)
{
    static const char *const columns[] = {"VNODE", "FROM", "TO", NULL};
    struct rows r;

    rows_init(&r, columns);
    for (size_t i = 0; i < t->n_moves; i++) {
        rows_number(&r, t->moves[i]->vnode);
        rows_text(&r, "%s", t->moves[i]->from);
        rows_text(&r, "%s", t->moves[i]->to);
    }
    query_print(q, &r);
}

/* When each step came, for each node that takes part. Only the leader that drove the transaction
 * remembers that. */
static void show_votes(const struct query *q, const Rh__TxnRow *t)
{
    static const char *const columns[] = {"NODE",
                                          "VOTE",
                                          "ASKED",
                                          "VOTED",
                                          "NEW RING",
                                          "ACTORS",
                                          "SIZE=bytes",
                                          "TO GO",
                                          "+INCARNATION",
                                          NULL};
    char text[AFTER_SIZE];
    struct rows r;

    rows_init(&r, columns);
    for (size_t i = 0; i < t->n_votes; i++) {
        const Rh__TxnVote *v = t->votes[i];

        rows_text(&r, "%s", v->node);
        rows_text(&r, "%s", v->vote);
        rows_text(&r, "%s", after_text(t, v->asked_us, text));
        rows_text(&r, "%s", after_text(t, v->voted_us, text));
        rows_text(&r, "%s", after_text(t, v->adopted_us, text));
        rows_number(&r, v->actors);
        rows_size(&r, v->bytes);
        rows_number(&r, v->to_go);
        rows_stamp(&r, v->incarnation);
    }
    query_print(q, &r);
}

static void show_head(const Rh__TxnRow *t)
{
    char text[AFTER_SIZE];
    char created[48];
    char decided[48];

    text_printf(2,
                "transaction %s  %s%s%s",
                STAMP(t->txn),
                t->state,
                t->outcome_why[0] == '\0' ? "" : ": ",
                t->outcome_why);
    (void)printf("why       %s\n", t->why[0] == '\0' ? "-" : t->why);
    (void)printf("created   %s\n", wall_text(t->created_us, created, sizeof created));
    (void)printf("decided   %s\n", wall_text(t->decided_us, decided, sizeof decided));
    if (t->version != 0) {
        (void)printf("version   %s\n", STAMP(t->version));
    }
    if (t->superseded_by != 0) {
        (void)printf("again as  %s\n", STAMP(t->superseded_by));
    }
    if (t->waiting_for[0] != '\0') {
        text_printf(10, "waiting   %s", t->waiting_for);
    }
    if (t->begun_us == 0) {
        (void)printf("phases    not known: another leader drove it, or it was long ago\n\n");
        return;
    }
    (void)printf("proposed  %s", after_text(t, t->proposed_us, text));
    (void)printf("\nin force  %s, since the beginning, as all times below\n\n",
                 after_text(t, t->outcome_us, text));
}

static void show_table(const struct query *q, const Rh__TxnRow *t)
{
    if (!query_bare(q)) {
        show_head(t);
    }
    show_moves(q, t);
    (void)printf("\n");
    show_votes(q, t);
}

static int txn_show(int argc, char **argv)
{
    struct query q;
    const struct command command = {
        .name = "txn show",
        .summary = "Show one transaction: its moves, votes, outcome, and what it waits for.",
        .arguments = "NUMBER",
        .details = "NUMBER is 1.76, as `ringhold txn list` shows it, or the same as an integer.\n"
                   "Also the time of each step since the beginning; ACTORS were handed over, those "
                   "TO GO\nhave not stopped yet. The leader that drove the transaction remembers "
                   "the last 256.",
        .options = query_options(&q, NULL),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int code = query_parse(&q, &command, argc, argv);
    uint64_t number = 0;

    if (code >= 0) {
        return code;
    }
    if (!query_stamp("txn show", q.arguments[0], &number)) {
        return 1;
    }
    Rh__AdminTxn what = RH__ADMIN_TXN__INIT;
    what.txn = number;
    Rh__AdminReply *reply = query_ask(&q, &what.base);
    if (reply == NULL) {
        return 1;
    }
    if (reply->n_txns == 0) {
        (void)fprintf(
            stderr, "ringhold txn show: transaction %s is unknown or forgotten\n", STAMP(number));
        admin_free(reply);
        return 1;
    }
    if (q.json) {
        show_json(reply->txns[0]);
    } else {
        show_table(&q, reply->txns[0]);
    }
    admin_free(reply);
    return 0;
}

int cmd_txn(int argc, char **argv)
{
    static const struct subcommand table[] = {
        {"list", txn_list, "[options]"},
        {"show", txn_show, "[options] NUMBER"},
        {"resolve", txn_resolve, "[options] NUMBER [--commit | --abort | --retry]"},
        {0},
    };

    return subcommand_run("txn", table, argc, argv);
}
