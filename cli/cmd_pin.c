/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold pin`, `pin list` and `unpin`: at which node an id or a vnode is to live.
 */
#include "base/mem.h"
#include "cli/actor_word.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/ring_diff.h"
#include "cli/subcommand.h"
#include "ring/ring.h"
#include "wire/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE_SIZE = 1200, BATCH = 1000, IF_DEAD_SIZE = 8 };

/* ---- pin list ---- */

static void put_row(struct rows *r, bool json, const Rh__PinRow *row)
{
    char name[ACTOR_NAME_SIZE];

    rows_text(r, "%s", row->pin->actor == NULL ? "-" : proto_actor(row->pin->actor, name));
    if (json) {
        rows_text(r, "%s", row->pin->actor == NULL ? "-" : name);
    }
    rows_number(r, row->vnode);
    rows_number(r, row->pin->from);
    rows_number(r, row->pin->to);
    rows_text(r, "%s", row->pin->node);
    rows_text(r, "%s", row->pin->waits ? "wait" : "hash");
    rows_text(r, "%s", row->owner);
    rows_text(r, "%s", row->state);
}

static int list(int argc, char **argv)
{
    static const char *const columns[] = {
        "ACTOR", "VNODE", "FROM", "TO", "NODE", "IF DEAD", "OWNER", "STATE", NULL};
    static const char *const json_columns[] = {
        "ACTOR", "ID", "VNODE", "FROM", "TO", "NODE", "IF DEAD", "OWNER", "STATE", NULL};
    struct query q;
    const struct command command = {
        .name = "pin list",
        .summary = "List the pins, by cell: what is pinned, to which node, and where it is.",
        .arguments = "",
        .details =
            "STATE is one of:\n"
            "there    it is at its node\n"
            "moves    it is on its way, or waits for its turn; or its node is outside its role's\n"
            "         zones (--role-zone), and it lives by hash\n"
            "drains   its node drains, and it lives by hash\n"
            "dead     its node is dead: it lives by hash, or waits for the node (--if-dead wait)\n"
            "unknown  no node has that name: it lives by hash",
        .options = query_options(&q, NULL),
    };
    const int code = query_parse(&q, &command, argc, argv);
    Rh__AdminPins what = RH__ADMIN_PINS__INIT;
    struct rows r;
    bool more = true;

    if (code >= 0) {
        return code;
    }
    rows_init(&r, q.json ? json_columns : columns);
    while (more) {
        Rh__AdminReply *reply = query_ask(&q, &what.base);

        if (reply == NULL) {
            rows_fini(&r);
            return 1;
        }
        for (size_t i = 0; i < reply->n_pins; i++) {
            put_row(&r, q.json, reply->pins[i]);
        }
        what.from += (uint32_t)reply->n_pins;
        more = reply->n_pins > 0 && what.from < reply->pins_count;
        admin_free(reply);
    }
    query_print(&q, &r);
    return 0;
}

/* ---- pin and unpin ---- */

static void free_wishes(Rh__AdminPin *what)
{
    for (size_t i = 0; i < what->n_pins; i++) {
        proto_free(&what->pins[i]->base);
    }
    what->n_pins = 0;
}

/* A number is a vnode, anything else an actor. */
static bool add_wish(const struct query *q, Rh__AdminPin *what, const char *name, const char *node)
{
    Rh__PinWish *wish = mem_new(1, sizeof *wish);
    Rh__Actor actor = RH__ACTOR__INIT;
    uint8_t id[ACTOR_ID_MAX];

    *wish = (Rh__PinWish)RH__PIN_WISH__INIT;
    what->pins[what->n_pins++] = wish;
    wish->node = mem_string(node);
    if (name[0] != '\0' && name[strspn(name, "0123456789")] == '\0') {
        return query_number(what->remove ? "unpin" : "pin",
                            "VNODE",
                            name,
                            (struct option_range){0, RING_VNODES_MAX},
                            &wish->vnode);
    }
    if (!actor_read_short(q, what->remove ? "unpin" : "pin", name, &actor, id)) {
        return false;
    }
    wish->actor = mem_new(1, sizeof *wish->actor);
    *wish->actor = (Rh__Actor)RH__ACTOR__INIT;
    wish->actor->kind = actor.kind;
    wish->actor->id.len = actor.id.len;
    wish->actor->id.data = mem_copy(actor.id.data, actor.id.len);
    return true;
}

static void tell_next(const struct query *q, const Rh__AdminPin *what, bool good)
{
    if (good && what->remove) {
        query_next(q, "the planner moves what was pinned only if the nodes' shares need it");
    } else if (good) {
        query_next(q,
                   "it moves there if it is elsewhere; `ringhold pin list` shows when it is there");
    }
}

static bool ask(const struct query *q, Rh__AdminPin *what)
{
    bool good = true;

    if (what->dry_run) {
        Rh__AdminReply *reply = query_ask(q, &what->base);

        good = reply != NULL;
        if (good) {
            ring_diff_print(q, reply);
        }
        admin_free(reply);
    } else {
        good = query_do(q, &what->base, NULL);
        tell_next(q, what, good);
    }
    free_wishes(what);
    return good;
}

/* Lines of the words that are else on the command line; a batch of them is one command. */
static bool ask_lines(const struct query *q, Rh__AdminPin *what, const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char line[LINE_SIZE];
    char name[LINE_SIZE];
    char node[LINE_SIZE];
    bool good = file != NULL;

    if (!good) {
        (void)fprintf(stderr, "ringhold: %s can't be read\n", path);
    }
    for (size_t number = 1; good && fgets(line, sizeof line, file) != NULL; number++) {
        const int words = sscanf(line, "%1199s %1199s", name, node); // LINE_SIZE - 1

        if (words == EOF) {
            continue; // an empty line
        }
        if (words < 1 || (words == 1) != what->remove) {
            (void)fprintf(stderr, "ringhold: %s: line %zu: it has %d words\n", path, number, words);
            good = false;
        }
        if (good && !add_wish(q, what, name, words == 2 ? node : "")) {
            (void)fprintf(stderr, "ringhold: %s: line %zu is wrong\n", path, number);
            good = false;
        } else if (good) {
            what->pins[what->n_pins - 1]->line = (uint32_t)number;
        }
        if (good && what->n_pins == BATCH) {
            good = ask(q, what);
        }
    }
    if (file != NULL && file != stdin) {
        (void)fclose(file);
    }
    return good && (what->n_pins == 0 || ask(q, what));
}

static bool has_words(const struct query *q, const Rh__AdminPin *what, const char *path)
{
    const int wanted = path[0] != '\0' ? 0 : what->remove ? 1 : 2;

    if (q->argument_count != wanted) {
        (void)fprintf(stderr,
                      what->remove
                          ? "ringhold unpin: use VNODE or KIND/ID, or --lines FILE\n"
                          : "ringhold pin: use VNODE or KIND/ID, and NODE; or --lines FILE\n");
    }
    return q->argument_count == wanted;
}

static int change(const struct query *q, Rh__AdminPin *what, const char *path)
{
    Rh__PinWish *wishes[BATCH];
    bool good = has_words(q, what, path);

    what->pins = wishes;
    if (good && path[0] != '\0') {
        good = ask_lines(q, what, path);
    } else if (good) {
        good =
            add_wish(q, what, q->arguments[0], what->remove ? "" : q->arguments[1]) && ask(q, what);
    }
    free_wishes(what);
    what->pins = NULL;
    return good ? 0 : 1;
}

static struct option lines_option(char *path, size_t size)
{
    return option_text(
        "lines",
        "FILE",
        path,
        size,
        "many: one in each line, in the same words; - reads stdin; 1000 lines at a time");
}

static int pin(int argc, char **argv)
{
    struct query q;
    char path[256] = "";
    char if_dead[IF_DEAD_SIZE] = "hash";
    bool rehearses = false;
    const struct option more[] = {
        option_text("if-dead",
                    "hash|wait",
                    if_dead,
                    sizeof if_dead,
                    "while NODE is dead, others get it by hash, or it waits for NODE (%)"),
        lines_option(path, sizeof path),
        option_switch("dry-run", &rehearses, "only show what would move"),
        query_reason(&q),
    };
    const struct command command = {
        .name = "pin",
        .summary = "Pin an id or a vnode to a node: it moves there, and stays.",
        .arguments = "[VNODE|KIND/ID NODE]",
        .details =
            "A number alone is a vnode; 0/7 is the id 7 of kind 0. An actor moves with its cell, "
            "so\n"
            "all other ids of that cell go along. While NODE drains, what\n"
            "is pinned to it lives by hash; so it does while NODE is outside its role's zones\n"
            "(--role-zone) and another node of the role is inside.",
        .options = query_options_more(&q, more, sizeof more / sizeof more[0]),
        .arguments_max = 2,
    };
    const int code = query_parse(&q, &command, argc, argv);
    Rh__AdminPin what = RH__ADMIN_PIN__INIT;

    if (code >= 0) {
        return code;
    }
    what.waits = strcmp(if_dead, "wait") == 0;
    if (!what.waits && strcmp(if_dead, "hash") != 0) {
        (void)fprintf(stderr, "ringhold pin: --if-dead must be hash or wait\n");
        return 1;
    }
    what.by = query_who();
    what.reason = q.reason;
    what.dry_run = rehearses;
    return change(&q, &what, path);
}

int cmd_unpin(int argc, char **argv)
{
    struct query q;
    char path[256] = "";
    const struct option more[] = {
        lines_option(path, sizeof path),
        query_reason(&q),
    };
    const struct command command = {
        .name = "unpin",
        .summary = "End a pin: the planner treats what was pinned like anything else again.",
        .arguments = "[VNODE|KIND/ID]",
        .details = "It moves only if the nodes' shares need it.",
        .options = query_options_more(&q, more, sizeof more / sizeof more[0]),
        .arguments_max = 1,
    };
    const int code = query_parse(&q, &command, argc, argv);
    Rh__AdminPin what = RH__ADMIN_PIN__INIT;

    if (code >= 0) {
        return code;
    }
    what.by = query_who();
    what.reason = q.reason;
    what.remove = true;
    return change(&q, &what, path);
}

int cmd_pin(int argc, char **argv)
{
    static const struct subcommand table[] = {{.name = "list", .run = list}, {.run = pin}};

    return subcommand_run("pin", table, argc, argv);
}
