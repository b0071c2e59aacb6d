/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold actors`: who lives, node after node and page after page.
 */
#include "base/log.h"
#include "cli/actor_word.h"
#include "cli/commands.h"
#include "cli/query.h"

#include <inttypes.h>
#include <ringhold.h>
#include <stdio.h>

enum {
    SHOWN = 100,
    KEPT_MAX = 1000, /* rows that are kept until all are there: then columns stand right */
    NODE_NAME_SIZE = 64,
};

/* What is shown so far. */
struct shown {
    enum rows_format format;
    struct rows rows;
    uint32_t limit; /* rows; 0 = no limit */
    uint32_t count;
    bool cut; /* there are more */
};

static int add_row(void *context, const struct rh_live *live)
{
    struct shown *s = context;

    s->cut = s->limit != 0 && s->count == s->limit;
    if (s->cut) {
        return 1;
    }
    rows_text(&s->rows, "%s", live->node);
    actor_cells(
        &s->rows, s->format == ROWS_JSON, live->kind, bytes_of(live->id.data, live->id.size));
    rows_text(&s->rows, "%s", live->state);
    rows_ms(&s->rows, live->unused_ms);
    s->count++;
    if (s->count % KEPT_MAX == 0) {
        rows_print_some(&s->rows, s->format);
    }
    return 0;
}

static struct rh_admin *open_admin(const struct query *q)
{
    const struct link_files tls = link_args_files(&q->tls);
    const struct rh_admin_options options = {
        .abi = RH_ABI,
        .size = sizeof options,
        .cluster = q->cluster,
        .join = q->coordinators,
        .by = "ringhold actors", // a list leaves nothing in the history
        .timeout_ms = q->timeout_ms,
        .link_ca = tls.ca,
        .link_certificate = tls.certificate,
        .link_key = tls.key,
    };

    log_set_level(LOG_ERROR); // what fails is told in one line
    return rh_admin_open(&options);
}

static int list(const struct query *q, struct rh_live_filter *filter)
{
    static const char *const columns[] = {"NODE", "ACTOR", "STATE", "UNUSED=unused_ms", NULL};
    static const char *const json_columns[] = {
        "NODE", "ACTOR", "KIND", "ID", "STATE", "UNUSED=unused_ms", NULL};
    struct shown s = {.format = q->format, .limit = filter->limit};
    struct rh_admin *admin = open_admin(q);

    if (admin == NULL) {
        return 1;
    }
    filter->limit += filter->limit != 0; // one more, to know whether there are more
    rows_init(&s.rows, q->json ? json_columns : columns);
    const int result = rh_actors(admin, filter, add_row, &s);
    if (result != RH_OK) {
        (void)fprintf(stderr, "ringhold actors: %s\n", rh_admin_said(admin));
    }
    rh_admin_close(admin);
    if (result != RH_OK && s.count == 0) {
        rows_fini(&s.rows);
        return 1;
    }
    query_print(q, &s.rows);
    if (s.cut) {
        (void)fprintf(stderr,
                      "ringhold actors: these are the first %" PRIu32 "; --limit 0 lists all\n",
                      s.count);
    }
    return result == RH_OK ? 0 : 1;
}

int cmd_actors(int argc, char **argv)
{
    struct query q;
    char node[NODE_NAME_SIZE] = "";
    struct actor_filter wanted = {.one_kind = false};
    uint32_t limit = SHOWN;
    const struct option more[] = {
        option_text("node", "NAME", node, sizeof node, "only those of this node (all nodes)"),
        actor_kind_option(&wanted),
        actor_prefix_option(&wanted),
        option_number("limit",
                      &limit,
                      (struct option_range){0, UINT32_MAX - 1},
                      "show so many at most; 0: all (100)"),
    };
    const struct command command = {
        .name = "actors",
        .summary = "List who lives, on which node.",
        .arguments = "",
        .details =
            "An actor that lives from the beginning of the list to its end, and stays at its "
            "node,\n"
            "is in it once. One that comes, goes or moves meanwhile may be in it, or not.\n"
            "UNUSED: since its last request. ACTOR is KIND/ID, with %XX for what a shell could\n"
            "take for something else; --prefix takes an id's beginning so.",
        .options = query_options_more(&q, more, sizeof more / sizeof more[0]),
    };
    const int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    if (!actor_filter_read(&q, command.name, &wanted)) {
        return 1;
    }
    struct rh_live_filter filter = {.size = sizeof filter,
                                    .limit = limit,
                                    .node = node[0] == '\0' ? NULL : node,
                                    .prefix = {wanted.prefix.data, wanted.prefix.len},
                                    .one_kind = wanted.one_kind,
                                    .kind = (uint16_t)wanted.kind};
    return list(&q, &filter);
}
