/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold remembered list | forget`: ids whose actors live again by themselves.
 */
#include "cli/actor_word.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/subcommand.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 100, FORGET_MAX = 8 };

/* Show a page. True: there is more, and room for it. */
static bool add_page(struct rows *r, bool json, const Rh__AdminReply *reply, uint32_t limit,
                     uint32_t *shown)
{
    for (size_t i = 0; i < reply->n_remembered && (limit == 0 || *shown < limit); i++) {
        const Rh__Actor *actor = reply->remembered[i];

        actor_cells(r, json, actor->kind, bytes_of(actor->id.data, actor->id.len));
        ++*shown;
    }
    return reply->remembered_next != NULL && (limit == 0 || *shown < limit);
}

static int show(const struct query *q, Rh__AdminRemembered *what, uint32_t limit)
{
    static const char *const columns[] = {"ACTOR", NULL};
    static const char *const json_columns[] = {"ACTOR", "KIND", "ID", NULL};
    Rh__AdminReply *reply = NULL;
    struct rows r;
    uint32_t shown = 0;
    bool more = true;

    rows_init(&r, q->json ? json_columns : columns);
    while (more) {
        Rh__AdminReply *before = reply; // whose `next` is asked for

        reply = query_ask(q, &what->base);
        admin_free(before);
        if (reply == NULL) {
            rows_fini(&r);
            return 1;
        }
        more = add_page(&r, q->json, reply, limit, &shown);
        what->after = reply->remembered_next;
    }
    query_print(q, &r);
    if (limit != 0 && shown == limit && reply->remembered_count > shown) {
        (void)fprintf(stderr,
                      "ringhold remembered list: these are the first %" PRIu32 " of %" PRIu32
                      " in all; --limit 0 lists all\n",
                      shown,
                      reply->remembered_count);
    }
    admin_free(reply);
    return 0;
}

static int list(int argc, char **argv)
{
    struct query q;
    struct actor_filter filter = {.one_kind = false};
    uint32_t limit = SHOWN;
    const struct option more[] = {
        actor_kind_option(&filter),
        actor_prefix_option(&filter),
        option_number("limit",
                      &limit,
                      (struct option_range){0, UINT32_MAX},
                      "show so many at most; 0: all (100)"),
    };
    const struct command command = {
        .name = "remembered list",
        .summary = "List the ids that the fleet remembers.",
        .arguments = "",
        .details =
            "Of kinds that say so (--kind N@remember:NAME, rh_actor_ops.remember): their actors\n"
            "live again, without a request, when their node has died or the fleet was restarted.",
        .options = query_options_more(&q, more, sizeof more / sizeof more[0]),
    };
    const int code = query_parse(&q, &command, argc, argv);
    Rh__AdminRemembered what = RH__ADMIN_REMEMBERED__INIT;

    if (code >= 0) {
        return code;
    }
    if (!actor_filter_read(&q, command.name, &filter)) {
        return 1;
    }
    what.any_kind = !filter.one_kind;
    what.kind = filter.kind;
    what.prefix = filter.prefix;
    return show(&q, &what, limit);
}

static int forget(int argc, char **argv)
{
    struct query q;
    const struct option reason = query_reason(&q);
    const struct command command = {
        .name = "remembered forget",
        .summary = "Have the fleet forget ids: they live no more until they are asked again.",
        .arguments = "KIND/ID…",
        .details = "As `ringhold remembered list` shows it: 0/boss-7. Up to 8 at a time, "
                   "all\nof them or none. An actor that lives ends like one that nobody uses: it "
                   "saves what it has.",
        .options = query_options(&q, &reason),
        .arguments_min = 1,
        .arguments_max = FORGET_MAX,
    };
    const int code = query_parse(&q, &command, argc, argv);
    Rh__AdminForget what = RH__ADMIN_FORGET__INIT;
    Rh__Actor actor[FORGET_MAX];
    Rh__Actor *actors[FORGET_MAX];
    uint8_t id[FORGET_MAX][ACTOR_ID_MAX];

    if (code >= 0) {
        return code;
    }
    for (int i = 0; i < q.argument_count; i++) {
        actor[i] = (Rh__Actor)RH__ACTOR__INIT;
        actors[i] = &actor[i];
        if (!actor_read(&q, command.name, q.arguments[i], &actor[i], id[i])) {
            return 1;
        }
    }
    what.actors = actors;
    what.n_actors = (size_t)q.argument_count;
    what.by = query_who();
    what.reason = q.reason;
    if (!query_do(&q, &what.base, NULL)) {
        return 1;
    }
    query_next(
        &q,
        "those that live save what they have and end; the next request to one starts it, and "
        "it is remembered again");
    return 0;
}

int cmd_remembered(int argc, char **argv)
{
    static const struct subcommand table[] = {
        {"list", list, "[options]"},
        {"forget", forget, "[options] KIND/ID…"},
        {0},
    };

    return subcommand_run("remembered", table, argc, argv);
}
