/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold txn resolve`: decides a pending transaction, after it has shown what
 * each decision means.
 */
#include "cli/cmd_txn.h"

#include "base/stamp.h"
#include "cli/query.h"

#include <stdio.h>
#include <string.h>

struct resolve_wish {
    bool commit;
    bool abort;
    bool retry;
    bool dry_run;
};

static const char *choice_name(Rh__ResolveChoice choice)
{
    static const char *const names[] = {"explain", "commit", "abort", "retry"};

    return (unsigned)choice < sizeof names / sizeof names[0] ? names[choice] : "?";
}

static void put_table(const Rh__AdminReply *reply, const Rh__TxnRow *t)
{
    text_printf(2, "transaction %s  %s  %s", STAMP(t->txn), t->state, t->why);
    if (t->waiting_for[0] != '\0') {
        text_printf(9, "waiting  %s", t->waiting_for);
    }
    for (size_t i = 0; i < reply->n_resolve; i++) {
        const Rh__ResolveRow *row = reply->resolve[i];
        const bool refused = row->refusal[0] != '\0';

        (void)printf("\n");
        text_printf(4,
                    "--%s  %s%s",
                    choice_name(row->choice),
                    refused ? "refused: " : "",
                    refused ? row->refusal : row->effect);
        for (size_t k = 0; k < row->n_parts; k++) {
            const Rh__ResolvePart *part = row->parts[k];

            text_printf(17, "    %-12s vote: %s", part->node, part->vote);
            text_printf(17, "    %-12s holds: %s", "", part->holds);
            text_printf(17, "    %-12s would: %s", "", refused ? "stay as it is" : part->effect);
        }
    }
}

static void put_json(const Rh__AdminReply *reply, const Rh__TxnRow *t)
{
    (void)printf("{\"txn\":\"%s\",\"done\":", STAMP(t->txn));
    json_print_string(reply->text);
    (void)printf(",\"choices\":[");
    for (size_t i = 0; i < reply->n_resolve; i++) {
        const Rh__ResolveRow *row = reply->resolve[i];

        (void)printf("%s{\"choice\":", i == 0 ? "" : ",");
        json_print_string(choice_name(row->choice));
        (void)printf(",\"refused\":");
        json_print_string(row->refusal);
        (void)printf(",\"effect\":");
        json_print_string(row->effect);
        (void)printf(",\"participants\":[");
        for (size_t k = 0; k < row->n_parts; k++) {
            const Rh__ResolvePart *part = row->parts[k];

            (void)printf("%s{\"node\":", k == 0 ? "" : ",");
            json_print_string(part->node);
            (void)printf(",\"vote\":");
            json_print_string(part->vote);
            (void)printf(",\"holds\":");
            json_print_string(part->holds);
            (void)printf(",\"effect\":");
            json_print_string(part->effect);
            (void)printf("}");
        }
        (void)printf("]}");
    }
    (void)printf("]}\n");
}

/* One choice that was refused is a failure; explanations are not. */
static int put(const struct query *q, const Rh__AdminReply *reply, Rh__ResolveChoice choice,
               uint64_t number)
{
    Rh__TxnRow done = RH__TXN_ROW__INIT;
    const Rh__TxnRow *t = reply->n_txns > 0 ? reply->txns[0] : &done;

    done.txn = number;
    if (q->json) {
        put_json(reply, t);
    } else if (reply->text[0] != '\0') {
        text_printf(2, "transaction %s: %s", STAMP(number), reply->text);
    } else {
        put_table(reply, t);
    }
    return choice != RH__RESOLVE_CHOICE__RESOLVE_EXPLAIN && reply->n_resolve > 0 &&
                   reply->resolve[0]->refusal[0] != '\0'
               ? 1
               : 0;
}

static int ask(const struct query *q, const struct resolve_wish *wish, uint64_t number)
{
    Rh__AdminResolve what = RH__ADMIN_RESOLVE__INIT;
    Rh__AdminReply *reply;
    int code;

    what.txn = number;
    what.choice = wish->commit  ? RH__RESOLVE_CHOICE__RESOLVE_COMMIT
                  : wish->abort ? RH__RESOLVE_CHOICE__RESOLVE_ABORT
                  : wish->retry ? RH__RESOLVE_CHOICE__RESOLVE_RETRY
                                : RH__RESOLVE_CHOICE__RESOLVE_EXPLAIN;
    what.dry_run = wish->dry_run;
    what.by = query_who();
    what.reason = proto_text(q->reason);
    reply = query_ask(q, &what.base);
    if (reply == NULL) {
        return 1;
    }
    code = put(q, reply, what.choice, number);
    admin_free(reply);
    return code;
}

int txn_resolve(int argc, char **argv)
{
    struct resolve_wish wish = {0};
    struct query q;
    const struct option more[] = {
        option_switch("commit", &wish.commit, "commit it: possible only if all have voted"),
        option_switch("abort", &wish.abort, "abort it: nothing moves"),
        option_switch("retry", &wish.retry, "abort it and begin it anew, in one step"),
        option_switch("dry-run", &wish.dry_run, "only print what would happen"),
        query_reason(&q),
    };
    const struct command command = {
        .name = "txn resolve",
        .summary = "Decide a pending transaction. Without a choice: explain all three.",
        .arguments = "NUMBER",
        .details = "NUMBER is 1.76, as `ringhold txn list` shows it, or the same as an integer.\n"
                   "Refuses a decision that could make two owners. The history keeps who asked and "
                   "why: see ringhold events.",
        .options = query_options_more(&q, more, sizeof more / sizeof more[0]),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    q.prose = true;
    const int code = query_parse(&q, &command, argc, argv);
    uint64_t number = 0;

    if (code >= 0) {
        return code;
    }
    if (wish.commit + wish.abort + wish.retry > 1) {
        (void)fprintf(stderr,
                      "ringhold txn resolve: give only one of --commit, --abort, --retry\n");
        return 1;
    }
    return query_stamp("txn resolve", q.arguments[0], &number) ? ask(&q, &wish, number) : 1;
}
