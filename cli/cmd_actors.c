/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold actors`: who lives, node after node and page after page.
 */
#include "base/history.h"
#include "base/log.h"
#include "cli/actor_word.h"
#include "cli/commands.h"
#include "cli/query.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SHOWN = 100,
    KEPT_MAX = 1000, /* rows that are kept until all are there: then columns stand right */
    ANY_KIND = ACTOR_KIND_MAX + 1,
    NODE_NAME_SIZE = 64,
    WHY_SIZE = 128,
};

/* What is shown so far. */
struct roll {
    const struct query *q;
    struct admin *admin;
    struct rows rows;
    uint32_t limit; /* rows; UINT32_MAX = no limit */
    uint32_t count;
    bool cut;    /* there are more, or may be */
    bool failed; /* a node's are not all there */
};

static void add_row(struct roll *l, const char *node, const Rh__ActorRow *row)
{
    char word[HISTORY_WORD_SIZE];

    rows_text(&l->rows, "%s", node);
    rows_number(&l->rows, row->kind);
    rows_text(&l->rows, "%s", history_word(bytes_of(row->id.data, row->id.len), word));
    rows_text(&l->rows, "%s", row->state);
    rows_number(&l->rows, row->unused_ms);
    l->count++;
    if (l->count % KEPT_MAX == 0) {
        rows_print_some(&l->rows, l->q->json);
    }
}

/* Why there are no rows in it, or NULL. A cursor only grows, so that a list has an end. */
static const char *fault_of(const struct roll *l, const Rh__AdminReply *reply,
                            const Rh__AdminActors *what, char text[WHY_SIZE])
{
    if (reply == NULL) {
        (void)snprintf(text,
                       WHY_SIZE,
                       "no answer of node %.63s in %" PRIu32 " ms",
                       what->node,
                       l->q->timeout_ms);
        return text;
    }
    if (reply->error[0] != '\0') {
        return reply->error;
    }
    if (reply->actors == NULL ||
        (reply->actors->next != 0 && reply->actors->next <= what->cursor)) {
        (void)snprintf(text, WHY_SIZE, "the answer of node %.63s can't be decoded", what->node);
        return text;
    }
    return NULL;
}

/* The next page of a node, behind those before it. False: there is none. */
static bool add_page(struct roll *l, Rh__AdminActors *what)
{
    char text[WHY_SIZE];

    what->limit = l->limit - l->count;
    Rh__AdminReply *reply = admin_try(l->admin, &what->base, l->q->timeout_ms);
    const char *fault = fault_of(l, reply, what, text);

    if (fault != NULL) {
        (void)fprintf(stderr, "ringhold actors: %s\n", fault);
        l->failed = true;
        admin_free(reply);
        return false;
    }
    const Rh__ActorsAnswer *page = reply->actors;
    for (size_t i = 0; i < page->n_rows && l->count < l->limit; i++) {
        add_row(l, what->node, page->rows[i]);
        l->cut = l->count == l->limit && i + 1 < page->n_rows;
    }
    what->cursor = page->next;
    admin_free(reply);
    return what->cursor != 0;
}

static void add_node(struct roll *l, Rh__AdminActors *what)
{
    if (l->count == l->limit) {
        l->cut = true;
        return;
    }
    what->cursor = 0;
    while (add_page(l, what)) {
        if (l->count == l->limit) {
            l->cut = true;
            return;
        }
    }
}

/* All that may have actors: one that is away and has lost its vnodes has none. */
static void add_nodes(struct roll *l, Rh__AdminActors *what)
{
    Rh__AdminNodes nodes = RH__ADMIN_NODES__INIT;
    Rh__AdminReply *reply = admin_ask(l->admin, &nodes.base, l->q->timeout_ms);

    if (reply == NULL || reply->error[0] != '\0') {
        if (reply != NULL) {
            (void)fprintf(stderr, "ringhold actors: %s\n", reply->error);
        }
        l->failed = true;
        admin_free(reply);
        return;
    }
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *node = reply->nodes[i];

        if (node->member != NULL && (node->live || node->vnodes > 0)) {
            what->node = node->member->name;
            add_node(l, what);
        }
    }
    admin_free(reply);
}

static int list(struct roll *l, Rh__AdminActors *what)
{
    static const char *const columns[] = {"NODE", "KIND", "ID", "STATE", "UNUSED MS", NULL};
    const struct admin_where where = query_where(l->q);

    log_set_level(LOG_ERROR); // what fails is told in one line
    l->admin = admin_open(&where);
    if (l->admin == NULL) {
        return 1;
    }
    rows_init(&l->rows, columns);
    if (what->node[0] != '\0') {
        add_node(l, what);
    } else {
        add_nodes(l, what);
    }
    admin_close(l->admin);
    if (l->failed && l->count == 0) {
        rows_fini(&l->rows);
        return 1;
    }
    query_print(l->q, &l->rows);
    if (l->cut) {
        (void)fprintf(stderr,
                      "ringhold actors: these are the first %" PRIu32 "; --limit 0 lists all\n",
                      l->count);
    }
    return l->failed ? 1 : 0;
}

int cmd_actors(int argc, char **argv)
{
    struct query q;
    char node[NODE_NAME_SIZE] = "";
    char prefix[HISTORY_WORD_SIZE] = "";
    uint32_t kind = ANY_KIND;
    uint32_t limit = SHOWN;
    const struct option more[] = {
        option_text("node", "NAME", node, sizeof node, "only those of this node (all nodes)"),
        option_number("kind",
                      &kind,
                      (struct option_range){0, ACTOR_KIND_MAX},
                      "only those of this kind (any)"),
        option_text("prefix", "TEXT", prefix, sizeof prefix, "only ids that begin with it"),
        option_number("limit",
                      &limit,
                      (struct option_range){0, UINT32_MAX},
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
            "UNUSED MS: since its last request. Ids are printed as in a history: bytes that are\n"
            "not plain characters as %XX; --prefix takes them so.",
        .options = query_options_more(&q, more, sizeof more / sizeof more[0]),
    };
    const int code = query_parse(&q, &command, argc, argv);
    Rh__AdminActors what = RH__ADMIN_ACTORS__INIT;
    Rh__Actor begin = RH__ACTOR__INIT;
    uint8_t id[ACTOR_ID_MAX];

    if (code >= 0) {
        return code;
    }
    if (prefix[0] != '\0' && !actor_parse_id(prefix, &begin, id)) {
        (void)fprintf(
            stderr,
            "ringhold actors: --prefix: '%s' is not the beginning of an id: bytes as %%XX, "
            "at most %d\n",
            prefix,
            ACTOR_ID_MAX);
        return 1;
    }
    what.node = node;
    what.any_kind = kind == ANY_KIND;
    what.kind = kind;
    what.prefix = begin.id;
    struct roll l = {.q = &q, .limit = limit == 0 ? UINT32_MAX : limit};
    return list(&l, &what);
}
